"""Exact rational arithmetic, and the proofs in it that no w realises a margin condition.

Floats are rational numbers, so ``w.x`` has an exact value. Whoever found the weights of a proof is
not trusted: every proof looks at the data again.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import linalg

from structsvm_papk._rounding import EPS
from structsvm_papk._types import Array, Matrix
from structsvm_papk.data.ranking_data import RankingData

Weights = Sequence[Fraction] | Array  # w, or weights of rows: exact, or in floats
System = list[list[Fraction]]
Rows = frozenset[int]


def dense_rows(X: Matrix, rows: Array) -> Array:
    """Return the chosen rows of a dense or sparse matrix as dense float64."""
    part = X[rows]
    return np.asarray(part.toarray() if hasattr(part, "toarray") else part, dtype=np.float64)


def fractions(values: Weights) -> list[Fraction]:
    """Floats, or Fractions among them, as Fractions without rounding."""
    return [Fraction(v) for v in values]


def fill_to_share(weights: Array, share: Fraction, r: int) -> list[Fraction] | None:
    """Exact weights in [0, share/r] that add to `share`, near the floats; None when impossible."""
    cap = share / r
    exact = [min(cap, v) for v in fractions(weights)]
    missing = share - sum(exact)
    for i in np.argsort(weights)[::-1]:
        if missing == 0:
            break
        change = max(-exact[i], min(missing, cap - exact[i]))
        exact[i] += change
        missing -= change
    return exact if missing == 0 else None


class ExactLists:
    """Exact order statistics of the scores ``w.x`` of every user.

    Only rows that rounding leaves in doubt are evaluated exactly.
    """

    def __init__(self, data: RankingData, w: Weights) -> None:
        self._data = data
        self._w = w
        rounded = np.array([float(v) for v in w])
        self._scores = data.scores(rounded)
        size = np.asarray(abs(data.X).astype(np.float64) @ np.abs(rounded)).ravel()
        # bound on the error of X @ w in float64, rounding of w included: 4 d eps |X| |w|
        self._errors = (4 * (len(rounded) + 2) * EPS * size)[data.rows]

    def extreme(self, positions: Array, n: int, largest: bool) -> list[Fraction]:
        """Return the `n` largest or smallest scores among these list positions, in this order."""
        sign = -1.0 if largest else 1.0
        scores = sign * self._scores[positions]
        errors = self._errors[positions]
        # n rows are surely not above the limit: a row that surely is cannot be among the n
        limit = np.partition(scores + errors, n - 1)[n - 1]
        doubtful = positions[scores - errors <= limit]
        weights = [(j, weight) for j, weight in enumerate(fractions(self._w)) if weight]
        exact = []
        for row in dense_rows(self._data.X, self._data.rows[doubtful]):
            products = (Fraction(float(row[j])) * weight for j, weight in weights)
            exact.append(sum(products, Fraction(0)))
        return sorted(exact, reverse=largest)[:n]

    def margin(self, pos: Array, neg: Array, r: int) -> Fraction:
        """Mean of the r smallest scores at `pos` less the largest at `neg`."""
        return sum(self.extreme(pos, r, False), Fraction(0)) / r - self.extreme(neg, 1, True)[0]


def exact_margins(data: RankingData, w: Weights, k: int, condition: str) -> list[Any]:
    """Exact largest margin of each user for a condition and a given w (None: no margin at all)."""
    lists = ExactLists(data, w)
    margins: list[Any] = []
    for start, n_pos, stop in zip(data.indptr[:-1], data.n_pos, data.indptr[1:], strict=True):
        pos = np.arange(start, start + n_pos)
        beta = min(int(n_pos), k)
        neg = np.arange(start + n_pos, stop)
        margin: Any = lists.margin(pos, neg, beta if condition == "beta" else 1)
        if condition == "moderate" and margin < 0:
            margin = None
        elif condition in ("weak", "moderate"):
            margin = lists.extreme(pos, beta, True)[-1] - lists.extreme(neg, 1, True)[0]
        margins.append(margin)
    return margins


def solve_near(columns: System, target: list[Fraction], values: Array) -> list[Fraction] | None:
    """Exact solution of ``sum_j x_j columns[j] = target`` close to the floats `values`.

    A well-conditioned set of columns is chosen by pivoted QR (scaled by `values`, so that entries
    far from zero are preferred); the others keep their float value exactly.

    Returns None where the chosen columns do not solve the system exactly.
    """
    x = fractions(values)
    A = np.array([[float(v) for v in column] for column in columns]).T
    _, R, order = linalg.qr(A * np.maximum(np.abs(values), 1e-12), mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(R))
    rank = 0
    if diagonal.size and diagonal[0]:
        rank = int((diagonal > diagonal[0] * 1e-11).sum())
    basis = order[:rank]
    rest = order[rank:]
    residual = list(target)
    for j in rest:
        if x[j]:
            residual = [r - x[j] * v for r, v in zip(residual, columns[j], strict=True)]
    solution = _eliminate([columns[j] for j in basis], residual)
    if solution is None:
        return None
    for j, value in zip(basis, solution, strict=True):
        x[j] = value
    return x


def _eliminate(columns: System, target: list[Fraction]) -> list[Fraction] | None:
    """Solve a full-column-rank system exactly; None when it is inconsistent.

    Fraction-free elimination (Bareiss) on whole numbers: every division leaves no remainder.
    """
    n = len(columns)
    previous = 1  # the pivot before: it divides what the next one makes
    rows = [_whole([column[i] for column in columns] + [target[i]]) for i in range(len(target))]
    rows.sort(key=lambda row: max(abs(v).bit_length() for v in row))  # short numbers first
    for j in range(n):
        pivot = next((i for i in range(j, len(rows)) if rows[i][j]), None)
        if pivot is None:
            return None
        rows[j], rows[pivot] = rows[pivot], rows[j]
        head = rows[j]
        for i in range(j + 1, len(rows)):
            row = rows[i]
            rest = [(head[j] * row[c] - row[j] * head[c]) // previous for c in range(j + 1, n + 1)]
            rows[i] = [0] * (j + 1) + rest
        previous = head[j]
    if any(row[n] for row in rows[n:]):  # an equation 0 = something
        return None
    return _back_substitute(rows, n)


def _whole(row: list[Fraction]) -> list[int]:
    """Multiply a row of Fractions by the common denominator."""
    common = math.lcm(*(v.denominator for v in row))
    return [int(v * common) for v in row]


def _back_substitute(rows: list[list[int]], n: int) -> list[Fraction]:
    x = [Fraction(0)] * n
    for j in reversed(range(n)):
        known = sum((rows[j][c] * x[c] for c in range(j + 1, n)), Fraction(0))
        x[j] = (rows[j][n] - known) / rows[j][j]
    return x


@dataclass(frozen=True)
class HullProof:
    """Exact weights for the inequality (*) of `separation`: ``f(w) <= v.w`` for every w.

    `pos_weights`, `neg_weights`: row of X to weight; both sides of a user add to the same share,
    all shares to 1; `n_lowest`: r of each user.
    """

    pos_weights: dict[int, Fraction]
    neg_weights: dict[int, Fraction]
    n_lowest: tuple[int, ...]

    def of_all_users(self, users: Sized) -> HullProof:
        """The proof about one user as one about as many: the others have no weights."""
        return HullProof(self.pos_weights, self.neg_weights, (1,) * len(users))

    def vector(self, data: RankingData) -> list[Fraction]:
        """Return v, exactly."""
        v = [Fraction(0)] * data.n_features
        for sign, weights in ((1, self.pos_weights), (-1, self.neg_weights)):
            rows = np.fromiter(weights, dtype=np.int64, count=len(weights))
            for row, values in zip(rows.tolist(), dense_rows(data.X, rows), strict=True):
                filled = np.flatnonzero(values)
                for j, value in zip(filled, fractions(values[filled]), strict=True):
                    v[j] += sign * weights[row] * value
        return v

    def is_valid(self, data: RankingData, chosen: Array | None = None) -> bool:
        """Whether the weights satisfy their constraints on this data, checked exactly."""
        usable = np.ones(data.rows.size, dtype=bool)
        if chosen is not None:  # other positives are left out
            usable = ~data.labels | chosen
        label = dict(zip(data.rows[usable].tolist(), data.labels[usable].tolist(), strict=True))
        user = user_of_rows(data)
        pos_sums = [Fraction(0)] * data.n_users
        neg_sums = [Fraction(0)] * data.n_users
        sides = ((True, self.pos_weights, pos_sums), (False, self.neg_weights, neg_sums))
        for is_positive, weights, sums in sides:
            for row, weight in weights.items():
                if weight < 0 or label.get(row) is not is_positive:
                    return False
                sums[user[row]] += weight
        capped = all(
            weight * self.n_lowest[user[row]] <= pos_sums[user[row]]
            for row, weight in self.pos_weights.items()
        )
        return capped and pos_sums == neg_sums and sum(pos_sums) == 1

    def is_identity(self, data: RankingData) -> bool:
        """Whether the weights are valid and v is zero, so that f is nowhere above zero."""
        return self.is_valid(data) and not any(self.vector(data))

    def refutes(self, data: RankingData, condition: str, beta: tuple[int, ...]) -> bool:
        """Whether no w realises the condition, for this beta of each user."""
        asked = beta if condition == "beta" else (1,) * data.n_users
        return self.n_lowest == asked and self.is_identity(data)

    def bound(self, data: RankingData) -> float:
        """Upper bound on f over the unit ball; 0.0 only when v is zero."""
        square = sum(x * x for x in self.vector(data))
        if not square:
            return 0.0
        # up by more than the root is rounded, and where that is below the smallest float
        return np.nextafter(_root(square) * (1 + 1e-15), np.inf)


def _root(value: Fraction) -> float:
    """Square root of a Fraction that may be far below the range of floats."""
    # 4^shift brings the value to size one, 2^-shift takes it back from the root, both exactly
    shift = max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return float(value * 4**shift) ** 0.5 * 0.5**shift


@dataclass(frozen=True)
class SubsetProof:
    """Exact proof that no w puts beta positives of each user strictly above its negatives.

    `conflicts`: each with v = 0: the positives in it cannot all be strictly above; `needed`: beta
    of each user.
    """

    conflicts: tuple[HullProof, ...]
    needed: tuple[int, ...]

    def of_all_users(self, needed: tuple[int, ...]) -> SubsetProof:
        """The proof about one user as one about all of them, with the beta of each."""
        return SubsetProof(tuple(c.of_all_users(needed) for c in self.conflicts), needed)

    def refutes(self, data: RankingData, condition: str, beta: tuple[int, ...]) -> bool:
        """Whether no w realises the condition, for this beta of each user."""
        return self.needed == beta and self.is_valid(data)

    def is_valid(self, data: RankingData) -> bool:
        """Check every conflict exactly, then that no choice of positives avoids all of them."""
        sets = [frozenset(p.pos_weights) for p in self.conflicts if p.is_identity(data)]
        return no_choice_avoids(sets, positives_of_users(data), self.needed, user_of_rows(data))


@dataclass(frozen=True)
class CommonProof:
    """Exact proof for moderate: whenever all positives reach ``max q``, those in it tie with it.

    `identity`: with v = 0; `needed`: beta of each user; one user keeps fewer positives than that.
    """

    identity: HullProof
    needed: tuple[int, ...]

    def of_all_users(self, needed: tuple[int, ...]) -> CommonProof:
        """The proof about one user as one about all of them, with the beta of each."""
        return CommonProof(self.identity.of_all_users(needed), needed)

    def refutes(self, data: RankingData, condition: str, beta: tuple[int, ...]) -> bool:
        """Whether no w realises the condition, for this beta of each user."""
        return self.needed == beta and self.is_valid(data)

    def is_valid(self, data: RankingData) -> bool:
        """Check the identity exactly, and count the positives that remain."""
        if not self.identity.is_identity(data):
            return False
        stuck = {row for row, weight in self.identity.pos_weights.items() if weight > 0}
        return any(
            len(set(positives) - stuck) < n
            for positives, n in zip(positives_of_users(data), self.needed, strict=True)
        )


Proof = HullProof | SubsetProof | CommonProof


def positives_of_users(data: RankingData) -> list[list[int]]:
    """The rows of X that are positives, user by user."""
    return [
        data.rows[start : start + n].tolist()
        for start, n in zip(data.indptr[:-1], data.n_pos, strict=True)
    ]


def user_of_rows(data: RankingData) -> dict[int, int]:
    """The user of each row of X, by its number."""
    return dict(zip(data.rows.tolist(), data.user_of_position.tolist(), strict=True))


def no_choice_avoids(
    sets: Sequence[Rows],
    groups: Sequence[Sequence[int]],
    needed: Iterable[int],
    group_of: Mapping[int, int],
    deadline: float = np.inf,
) -> bool:
    """Whether every choice of ``needed[g]`` elements from each group contains one of the sets.

    Exhaustive search over removals: in each set still complete, some element must go.

    Raises TimeoutError: after the deadline.
    """
    # how many elements of each group may go
    spare = [len(group) - n for group, n in zip(groups, needed, strict=True)]
    ordered = sorted(set(sets), key=len)

    def none_avoids(kept: Rows, removed: Rows, spare: Sequence[int]) -> bool:
        """The same of the choices with the elements that are kept, without those removed."""
        if time.monotonic() > deadline:
            raise TimeoutError
        complete = next((s for s in ordered if not s & removed), None)
        if complete is None:
            return False
        if _disjoint_excess(ordered, removed, kept, spare, group_of):
            return True
        for element in sorted(complete - kept):
            group = group_of[element]
            if spare[group] > 0:
                fewer = list(spare)
                fewer[group] -= 1
                if not none_avoids(kept, removed | {element}, fewer):
                    return False
            kept = kept | {element}  # the choices without it are done
        return True

    return none_avoids(frozenset(), frozenset(), spare)


def _disjoint_excess(
    sets: Sequence[Rows],
    removed: Rows,
    kept: Rows,
    spare: Sequence[int],
    group_of: Mapping[int, int],
) -> bool:
    """Whether more complete sets are disjoint than elements may still go: each has to lose one."""
    used: set[int] = set()
    n_disjoint = 0
    for conflict in sets:
        free = conflict - kept
        if not conflict & removed and not free & used:
            if not free:
                return True
            used |= free
            n_disjoint += 1
    return n_disjoint > sum(spare)
