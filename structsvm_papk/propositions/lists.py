"""Many small lists of one shape, and what statements about them are made of.

An instance is one or more lists (claims on convexity need two); arrays carry the instances first,
then the lists of an instance, then the items: p has shape (n, m, n_pos), q (n, m, n_neg).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import Any, TypeAlias

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.datasets.margin_conditions import CONDITIONS, largest_negative
from structsvm_papk.surrogates import make_surrogate

TOL = 1e-9
FULL = " at full depth"  # of a name: all negatives count
DELTA = 1.0
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Shape:
    """Sizes of the lists: positives, negatives, k, and lists per instance."""

    n_pos: int
    n_neg: int
    k: int
    n_lists: int = 1

    @property
    def beta(self) -> int:
        """``min(n_pos, k)``."""
        return min(self.n_pos, self.k)

    @property
    def printed_share(self) -> float:
        """The share of positives in the paper's Theorem 2."""
        b = self.k / self.n_neg
        return 1.0 if self.n_pos / (self.n_pos + self.n_neg) <= b else b

    @property
    def size(self) -> tuple[int, int, int]:
        """Items of one list, then k: the order in which counterexamples are preferred."""
        return (self.n_pos + self.n_neg, self.k, self.n_pos)


@dataclass(frozen=True)
class Batch:
    """Instances of one shape: scores p (n, m, n_pos) and q (n, m, n_neg)."""

    p: np.ndarray
    q: np.ndarray
    shape: Shape

    def __len__(self) -> int:
        return len(self.p)

    def take(self, rows: Array | list[int]) -> Batch:
        """Return the chosen instances."""
        return Batch(self.p[rows], self.q[rows], self.shape)

    @property
    def scale(self) -> Array:
        """Largest absolute score of each instance, plus one: the size of rounding errors."""
        return 1 + np.maximum(np.abs(self.p).max(axis=(1, 2)), np.abs(self.q).max(axis=(1, 2)))

    @property
    def best(self) -> Array:
        """Positives in decreasing order."""
        return -np.sort(-self.p, axis=-1)

    @property
    def top(self) -> Array:
        """Largest negative of each list."""
        return self.q.max(axis=-1)

    def surrogate(self, name: str, depth: int | None = None) -> Array:
        """Values (n, m) of a surrogate at a training depth, by the package's kernels."""
        n, m = self.p.shape[:2]
        scores = np.concatenate([self.p, self.q], axis=-1).reshape(n * m, -1)
        indptr = np.arange(n * m + 1, dtype=np.int64) * scores.shape[1]
        n_pos = np.full(n * m, self.shape.n_pos, dtype=np.int64)
        loss = make_surrogate(name, self.shape.k, depth)
        values, _ = loss.value_and_subgradient(scores.ravel(), indptr, n_pos)
        return values.reshape(n, m)

    def risk(self, depth: int | None = None) -> Array:
        """Definition 1, in numpy: the share of pairs (best beta, top k or m) with ``p <= q``."""
        p = self.best[..., : self.shape.beta]
        q = -np.sort(-self.q, axis=-1)[..., : depth or self.shape.k]
        return (p[..., :, None] <= q[..., None, :]).mean(axis=(-2, -1))

    def margins(self) -> dict[str, Array]:
        """Largest delta of each margin condition, as in `structsvm_papk.margins.check_scores`."""
        delta = {
            condition: largest_negative(self.p, self.shape.beta, condition, 0.0) - self.top
            for condition in CONDITIONS
        }
        return delta | {"moderate": np.where(delta["strong"] >= 0, delta["weak"], -np.inf)}

    def least_auc_risks(self) -> Array:
        """Smallest AUC risk of beta positives, for every k negatives on the last axis."""
        wrong = (self.p[..., :, None] <= self.q[..., None, :]).astype(float)
        pos = _subsets(self.shape.n_pos, self.shape.beta)
        neg = _subsets(self.shape.n_neg, self.shape.k)
        risks: Array = pos @ wrong @ neg.T / (self.shape.beta * self.shape.k)
        return risks.min(axis=-2)

    def ts_by_enumeration(self) -> Array:
        """Equation (14), second line, word by word: all Z- and all orderings of the items.

        An ordering is an order of the negatives and, for each positive, how many of them it has
        above; ``pi_ij = 1`` where negative j is above positive i. The first sum takes the beta
        positives that the *ordering* ranks highest: the Z+ with the smallest sum.
        """
        best = np.full(self.p.shape[:2], -np.inf)
        for loss, rest in self._orderings():
            best = np.maximum(best, (loss.min(axis=1)[:, None] + rest).max(axis=1))
        return best / (self.shape.beta * self.shape.k)

    def ts_first_line(self) -> Array:
        """Equation (14), first line: for each Z- the smallest, over Z+, maximum over orderings."""
        best: dict[frozenset[int], Array] = {}
        for chosen, (loss, rest) in zip(self._negatives(), self._orderings(), strict=True):
            largest = (loss[:, :, None] + rest[:, :, None]).max(axis=1)  # of each Z+
            known = best.get(frozenset(chosen), -np.inf)
            best[frozenset(chosen)] = np.maximum(known, largest)
        worst: Array = np.max([value.min(axis=1) for value in best.values()], axis=0)
        return worst / (self.shape.beta * self.shape.k)

    def equation_8(self) -> Array:
        """Equation (8): for each Z- the smallest, over Z+, maximum over orderings of both.

        An ordering of beta positives and k negatives is a matrix with nested rows.
        """
        largest: dict[frozenset[int], Array] = {}
        chosen_pos = list(combinations(range(self.shape.n_pos), self.shape.beta))
        sets = np.moveaxis(self.p[..., chosen_pos], 1, -1)  # (n, sets, beta, m)
        for negatives, counts, gain in self._small_orderings():
            values = (gain[:, :, None] - np.einsum("ob,nsbm->nosm", counts, sets)).max(axis=1)
            known = largest.get(negatives, -np.inf)
            largest[negatives] = np.maximum(known, values)
        worst: Array = np.max([value.min(axis=1) for value in largest.values()], axis=0)
        return worst / (self.shape.beta * self.shape.k)

    def equation_9(self) -> Array:
        """Equation (9): the minimum over the positives that stand in the rows comes last.

        The largest row sums then meet the best positives.
        """
        best = np.swapaxes(self.best[..., : self.shape.beta], 1, 2)
        largest = np.full(self.p.shape[:2], -np.inf)
        for _, counts, gain in self._small_orderings():
            values = gain - -np.sort(-counts) @ best
            largest = np.maximum(largest, values.max(axis=1))
        return largest / (self.shape.beta * self.shape.k)

    def _small_orderings(self) -> Iterator[tuple[frozenset[int], Array, Array]]:
        """For each of `_negatives`: their set; row sums of orderings with beta positives, shape
        (orderings, beta); and for each the loss plus the negatives' scores, (n, orderings, m).
        """
        shape = self.shape
        counts = np.array(list(product(range(shape.k + 1), repeat=shape.beta)))
        above = (np.arange(shape.k) < counts[:, :, None]).sum(axis=1).astype(float)
        for order in self._negatives():
            columns = np.swapaxes(self.q[..., list(order)], 1, 2)
            yield frozenset(order), counts, counts.sum(axis=1)[:, None] + above @ columns

    def loose_structural(self) -> Array:
        """The structural surrogate with the metric in its loss only, as in section 3.1.

        ``max over orderings pi of the items: risk(pi) + 1/(n_pos n_neg) sum_ij pi_ij (q_j - p_i)``:
        its scores are those of the AUC, over all pairs. Given where the positives stand, items in
        the order of their scores are best, so that the places of the positives are enumerated.
        """
        shape = self.shape
        q = -np.sort(-self.q, axis=-1)
        lead = q[..., None, :] - self.best[..., :, None]
        value = np.full(self.p.shape[:2], -np.inf)
        for places in combinations(range(shape.n_pos + shape.n_neg), shape.n_pos):
            above = np.array(places) - np.arange(shape.n_pos)  # negatives above each positive
            wrong = np.arange(shape.n_neg) < above[:, None]
            loss = wrong[: shape.beta, : shape.k].mean()
            value = np.maximum(value, loss + (wrong * lead).mean(axis=(-2, -1)))
        return value

    def _negatives(self) -> Iterator[tuple[int, ...]]:
        """Every order of every set of k negatives."""
        for chosen in combinations(range(self.shape.n_neg), self.shape.k):
            yield from permutations(chosen)

    def _orderings(self) -> Iterator[tuple[Array, Array]]:
        """For each of `_negatives`: the first sum of (14), shape (orderings, sets Z+), and the
        other two, shape (n, orderings, m).
        """
        shape = self.shape
        n, m = self.p.shape[:2]
        counts = np.array(list(product(range(shape.k + 1), repeat=shape.n_pos)))
        above = (np.arange(shape.k) < counts[:, :, None]).astype(float)
        loss = counts @ _subsets(shape.n_pos, shape.beta).T
        reward = -counts @ np.swapaxes(self.p, 1, 2).reshape(n, shape.n_pos, m)
        for order in self._negatives():
            columns = np.swapaxes(self.q[..., list(order)], 1, 2)
            yield loss, reward + above.sum(axis=1) @ columns

    def risk_at_share(self, a: float) -> Array:
        """``R_{a,b}`` of the laws that give each item of a list the same chance, b = k / n_neg."""
        n_pos = self.shape.n_pos
        weight = np.clip(a * n_pos - np.arange(n_pos), 0.0, 1.0) / (a * n_pos)
        wrong = self.best[..., :, None] <= -np.sort(-self.q, axis=-1)[..., None, : self.shape.k]
        risk: Array = wrong.mean(axis=-1) @ weight
        return risk

    def printed_population_value(self) -> Array:
        """``Pr(pair wrong, both in their top shares) / (ab)`` of these laws, ties included."""
        wrong = self.p[..., :, None] <= self.q[..., None, :]
        counted = _in_top(self.p, self.shape.beta)[..., :, None]
        counted = counted & _in_top(self.q, self.shape.k)[..., None, :]
        share: Array = (wrong & counted).sum(axis=(-2, -1)) / (self.shape.beta * self.shape.k)
        return share

    def midpoint(self) -> Batch:
        """Each instance's mean list."""
        p, q = (side.mean(axis=1, keepdims=True) for side in (self.p, self.q))
        return Batch(p, q, self.shape)

    def value(self, name: str) -> Array:
        """Values (n, m) of the risk, of a surrogate, or of the largest delta of a condition."""
        if name.startswith("delta_"):
            return self.margins()[name.removeprefix("delta_")]
        if name == "printed population value":
            return self.printed_population_value()
        if name == "loose structural":
            return self.loose_structural()
        if name in ("equation (8)", "equation (9)"):
            return self.equation_8() if name == "equation (8)" else self.equation_9()
        if name == "risk at the printed share":
            return self.risk_at_share(self.shape.printed_share)
        depth = self.shape.n_neg if name.endswith(FULL) else None
        name = name.removesuffix(FULL)
        return self.risk(depth) if name == "risk" else self.surrogate(name, depth)

    def of_first(self, *names: str) -> Array:
        """Values of the first list by name, shape (n_names, n)."""
        return np.array([self.value(name)[:, 0] for name in names])

    def described(self, quantities: Sequence[str]) -> dict[str, Any]:
        """The first instance with named values, one per list."""
        values: dict[str, Any] = {name: self.value(name)[0].tolist() for name in quantities}
        p = self.p[0]
        q = self.q[0]
        if len(p) > 1:
            middle = self.midpoint()
            values |= {
                f"{name} at the midpoint": float(middle.value(name)[0, 0]) for name in quantities
            }
        else:  # one value of each, and items in decreasing order
            values = {name: value for name, (value,) in values.items()}
            p = -np.sort(-p, axis=-1)
            q = -np.sort(-q, axis=-1)
        lists = [
            {"positives": a.tolist(), "negatives": b.tolist()} for a, b in zip(p, q, strict=True)
        ]
        return {"k": self.shape.k, "lists": lists, "values": values}


def _subsets(n: int, size: int) -> Array:
    """Indicator rows of all subsets of `size` out of n."""
    return np.array([np.bincount(c, minlength=n) for c in combinations(range(n), size)], float)


def _in_top(scores: Array, n: int) -> Array:
    """Items above which fewer than `n` of their side score."""
    n_above: Array = (scores[..., None, :] > scores[..., :, None]).sum(axis=-1)
    return n_above < n


def shapes(
    largest: int = 6,
    extra: Sequence[tuple[int, int, int]] = ((12, 20, 10), (30, 50, 5), (3, 40, 40)),
    n_lists: int = 1,
) -> list[Shape]:
    """All shapes with up to `largest` positives and negatives by size, then larger ones."""
    small = [
        Shape(n_pos, n_neg, k, n_lists)
        for n_pos in range(1, largest + 1)
        for n_neg in range(1, largest + 1)
        for k in range(1, n_neg + 1)
    ]
    return sorted(small, key=lambda s: s.size) + [Shape(*s, n_lists) for s in extra]


Measure: TypeAlias = Callable[[Batch], Array]
Move: TypeAlias = Callable[[Batch], Batch]


def below(*names: str) -> Measure:
    """Violation of ``names[0] <= names[1] <= ..``."""

    def violation(batch: Batch) -> Array:
        values = batch.of_first(*names)
        return (values[:-1] - values[1:]).max(axis=0)

    return violation


def vanish(*names: str) -> Measure:
    """Violation of: all these values are zero."""
    return lambda batch: np.abs(batch.of_first(*names)).max(axis=0)


def both(*violations: Measure) -> Measure:
    """Violation of several statements at once."""
    return lambda batch: np.max([v(batch) for v in violations], axis=0)


def equal(*names: str) -> Measure:
    """Violation of: all these values agree."""
    return lambda batch: np.ptp(batch.of_first(*names), axis=0)


def convex(name: str) -> Measure:
    """Violation of midpoint convexity along the two lists of an instance."""
    return lambda batch: batch.midpoint().of_first(name)[0] - batch.value(name).mean(axis=1)


def realises(condition: str, delta: float = DELTA) -> Measure:
    """Return the hypothesis: the margin condition holds with margin delta."""
    return lambda batch: np.all(batch.margins()[condition] >= delta - _ROUNDING, axis=1)


def move_into(condition: str, delta: float = DELTA) -> Move:
    """Shift the negatives so that the largest one is as high as the condition allows."""

    def prepare(batch: Batch) -> Batch:
        limit = largest_negative(batch.p, batch.shape.beta, condition, delta)[..., None]
        moved = batch.q + (limit - batch.top[..., None])
        return Batch(batch.p, np.minimum(moved, limit), batch.shape)  # rounding must not lift it

    return prepare


def margin_implies(premise: str, conclusion: str) -> Measure:
    """Violation of: the premise with margin delta gives the conclusion with margin delta."""

    def violation(batch: Batch) -> Array:
        margins = batch.margins()
        gap = np.minimum(DELTA, margins[premise]) - margins[conclusion]
        return np.where(np.isfinite(gap), gap, DELTA)[:, 0]

    return violation


EVERY = shapes()
LOW = [s for s in EVERY if s.n_pos <= s.k]
HIGH = [s for s in EVERY if s.n_pos > s.k]
PRINTED_NOT_ABOVE = [s for s in EVERY if s.printed_share <= s.beta / s.n_pos]
ENOUGH = [s for s in EVERY if s.n_pos >= 2 * s.beta - 1]
SMALL = shapes(largest=4, extra=((6, 6, 3), (5, 7, 2)))
TINY = [s for s in shapes(largest=4, extra=()) if s.k <= 3]
TINY_ALL_PAIRS = [s for s in TINY if s.n_pos <= s.k == s.n_neg]
PAIRS = shapes(largest=4, extra=((8, 10, 5),), n_lists=2)
PAIRS_LOW = [s for s in PAIRS if s.n_pos <= s.k]


def distinct(batch: Batch) -> Array:
    """Whether no two scores of the first list are equal."""
    scores = np.sort(np.concatenate([batch.p[:, 0], batch.q[:, 0]], axis=1), axis=1)
    return np.diff(scores, axis=1).min(axis=1) > 1e-9


def at_printed_share(batch: Batch) -> Array:
    """Violation of: at the share of positives that Theorem 2 prints the risk is no larger."""
    return (batch.risk_at_share(batch.shape.printed_share) - batch.risk())[:, 0]


def deviation(divided: bool) -> Measure:
    """Violation of ``|R - R^| <= eps_+ / a + eps_- / b``, the laws those of a pair of lists.

    With a and b = 1 in place of the shares, unless `divided`.
    """

    def violation(batch: Batch) -> Array:
        shape = batch.shape
        a = shape.beta / shape.n_pos if divided else 1.0
        b = shape.k / shape.n_neg if divided else 1.0
        risk = batch.risk()
        return np.abs(risk[:, 0] - risk[:, 1]) - _apart(batch.p) / a - _apart(batch.q) / b

    return violation


def _apart(scores: Array) -> Array:
    """``sup_t |P(s > t) - P^(s > t)|`` of the two lists of each instance."""
    first, second = ((scores[:, i, :, None] > scores.reshape(len(scores), 1, -1)) for i in (0, 1))
    return np.abs(first.mean(axis=1) - second.mean(axis=1)).max(axis=1)


def p_beta_above_mean(batch: Batch) -> Array:
    """Whether the beta-th best positive is at least the mean positive."""
    p = batch.best[:, 0]
    return p[:, batch.shape.beta - 1] >= p.mean(axis=1) - _ROUNDING


def without_hinge_margin(name: str) -> Measure:
    """Violation of risk <= surrogate whose hinge has margin 0 instead of 1."""
    return lambda b: b.risk()[:, 0] - Batch(b.p + 1.0, b.q, b.shape).of_first(name)[0]


def clipped_limit(factor: float, at: str = "", risk_at: str | None = None) -> Measure:
    """Violation of ``ClippedRamp(c s) = risk(s)`` at c = factor / (smallest winning gap).

    `at` and `risk_at`: the depth of the surrogate and, where it is another one, of the risk.
    """
    names = f"risk{at if risk_at is None else risk_at}", f"clipped_ramp{at}"

    def violation(batch: Batch) -> Array:
        smallest = _smallest_gaps(batch)
        c = (factor / np.where(np.isfinite(smallest), smallest, 1.0))[:, None, None]
        scaled = Batch(batch.p * c, batch.q * c, batch.shape)
        distance = np.abs(scaled.of_first(names[1]) - batch.of_first(names[0]))[0]
        # rounding of the scaled scores enters relative to their size, not to 1
        return np.maximum(distance - 1e-13 * scaled.scale, below(*names)(batch))

    return violation


def separated_gaps(batch: Batch) -> Array:
    """Whether gaps of winning pairs are not tiny against the scores (scaling meets rounding)."""
    return _smallest_gaps(batch) > 1e-6 * batch.scale


def _smallest_gaps(batch: Batch) -> Array:
    gaps = batch.p[:, 0, :, None] - batch.q[:, 0, None, :]
    return np.where(gaps > 0, gaps, np.inf).min(axis=(1, 2))


def tie_some(batch: Batch) -> Batch:
    """Move the negatives so that one of them ties the best positive."""
    shift = batch.p[:, 0].max(axis=1) - batch.q[:, 0, 0]
    q = batch.q + shift[:, None, None]
    q[:, 0, 0] = batch.p[:, 0].max(axis=1)
    return Batch(batch.p, q, batch.shape)


def half(prepare: Move) -> Move:
    """Move every second instance only."""

    def mixed(batch: Batch) -> Batch:
        moved = prepare(batch)
        p = batch.p.copy()
        q = batch.q.copy()
        p[::2] = moved.p[::2]
        q[::2] = moved.q[::2]
        return Batch(p, q, batch.shape)

    return mixed
