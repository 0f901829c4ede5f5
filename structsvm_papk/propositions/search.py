"""Search for counterexamples: random lists, lattices full of ties, and hill climbing.

A statement is `violation(batch)`, positive where the claim fails, and `holds(batch)`, true where
its hypothesis does. `prepare(batch)` moves random scores into the hypothesis. Violations at most
``TOL * scale`` are rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, product
from typing import Any, Protocol

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.propositions.lists import TOL, Batch, Shape

GRIDS = (np.arange(-3, 4.0), np.arange(-4, 4.5) / 2, np.arange(-8, 9) / 4)
MOST_LATTICE = 30_000


@dataclass(frozen=True)
class Effort:
    """How much to try per shape: random draws, climbing steps and population; which shapes; and
    how many large and small data sets, where a claim is about data.
    """

    n_random: int = 150
    n_steps: int = 30
    n_climbers: int = 24
    largest: int = 100
    n_data: tuple[int, int] = (4, 70)

    def allows(self, shape: Shape) -> bool:
        """Whether lists of this shape are tried: no side is longer than `largest`."""
        return max(shape.n_pos, shape.n_neg) <= self.largest


@dataclass
class Found:
    """Instances tried that satisfy the hypothesis, the largest violation seen (rounding where the
    claim holds), and one instance that violates the claim, as small as was found.
    """

    instances: int = 0
    worst: float = -np.inf
    example: Any = None

    @property
    def violated(self) -> bool:
        """True when a counterexample was found."""
        return self.example is not None

    def drawn_words(self) -> str:
        """How the instances were drawn."""
        raise NotImplementedError

    def described(self, quantities: Sequence[str]) -> dict[str, Any] | None:
        """The counterexample with the values that the claim is about."""
        return None if self.example is None else self.example.described(quantities)


class Refutable(Protocol):
    """A statement that can be searched for a counterexample."""

    def search(self, seed: int, effort: Effort) -> Found:
        """Try to refute it."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A claim, and a control whose verdict must be the opposite."""

    id: str
    title: str
    claim: str
    formula: str
    source: str
    hypothesis: str = "none"
    statement: Refutable
    control: Refutable
    control_words: str
    quantities: tuple[str, ...] = ("risk",)


@dataclass
class Outcome(Found):
    """What came out of a search through lists."""

    n_shapes: int = 0
    drawn: dict[str, int] = field(
        default_factory=lambda: {"random": 0, "lattice": 0, "climbing": 0}
    )

    def drawn_words(self) -> str:
        """How the instances were drawn, with counts."""
        return (
            f"{self.drawn['random']} random lists, {self.drawn['lattice']} on tie-rich lattices, "
            f"{self.drawn['climbing']} by climbing towards a violation; "
            f"{self.n_shapes} shapes, with n_pos = 1 and k = n_neg"
        )


def _record(statement: Statement, batch: Batch, source: str, outcome: Outcome) -> Array:
    """Evaluate, count, and keep the worst instance."""
    if len(batch) == 0:
        return np.zeros(0)
    violation = statement.violation(batch)
    outcome.instances += len(batch)
    outcome.drawn[source] += len(batch)
    outcome.worst = max(outcome.worst, float(violation.max()))
    worst = int(np.argmax(violation / batch.scale))
    smaller = outcome.example is None or batch.shape.size < outcome.example.shape.size
    if smaller and violation[worst] > TOL * batch.scale[worst]:
        outcome.example = batch.take([worst])
    return violation


def _keep(statement: Statement, batch: Batch, prepare: bool = False) -> Batch:
    """Return the instances that satisfy the hypothesis, moved into it first on request."""
    if prepare and statement.prepare is not None:
        batch = statement.prepare(batch)
    return batch.take(np.flatnonzero(statement.holds(batch)))


def _random(shape: Shape, n: int, rng: np.random.Generator) -> Batch:
    """Scores from normal and heavy-tailed laws, of several sizes and separations."""
    size_p, size_q = (n, shape.n_lists, shape.n_pos), (n, shape.n_lists, shape.n_neg)
    heavy = rng.random((n, 1, 1)) < 0.3
    p = np.where(heavy, rng.standard_t(1.2, size_p), rng.standard_normal(size_p))
    q = np.where(heavy, rng.standard_t(1.2, size_q), rng.standard_normal(size_q))
    stretch = 10 ** rng.uniform(-1, 1, (n, 1, 1))
    shift = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], (n, 1, 1))
    ranked = rng.random((n, 1, 1)) < 0.2  # whole numbers: many ties
    p, q = p * stretch + shift, q * stretch
    return Batch(np.where(ranked, np.rint(p), p), np.where(ranked, np.rint(q), q), shape)


def _on_grid(shape: Shape, grid: Array, n: int, rng: np.random.Generator) -> Batch:
    """Random points of a lattice of few values, so that ties are the rule."""
    p = rng.choice(grid, (n, shape.n_lists, shape.n_pos))
    return Batch(p, rng.choice(grid, (n, shape.n_lists, shape.n_neg)), shape)


def _climb(
    statement: Statement, start: Batch, rng: np.random.Generator, effort: Effort, outcome: Outcome
) -> None:
    """Hill climbing from the instances closest to a violation."""
    if len(start) == 0:
        return
    violation = statement.violation(start)
    first = np.argsort(-violation / start.scale, kind="stable")[: effort.n_climbers]
    here, height = start.take(first), violation[first]
    for _ in range(effort.n_steps):
        moved = _perturb(here, rng)
        moved = moved if statement.prepare is None else statement.prepare(moved)
        values = np.full(len(here), -np.inf)
        rows = np.flatnonzero(statement.holds(moved))
        values[rows] = _record(statement, moved.take(rows), "climbing", outcome)
        better = values > height
        here = here.with_scores(
            np.where(better[:, None, None], moved.p, here.p),
            np.where(better[:, None, None], moved.q, here.q),
        )
        height = np.where(better, values, height)


def _perturb(batch: Batch, rng: np.random.Generator) -> Batch:
    """Move a random part of the scores by steps of random size."""
    n = len(batch)
    step = 10 ** rng.uniform(-2, 0.7, (n, 1, 1))
    parts = []
    for scores in (batch.p, batch.q):
        chosen = rng.random(scores.shape) < 0.5
        parts.append(scores + step * chosen * rng.standard_normal(scores.shape))
    return batch.with_scores(*parts)


# ----------------------------------------------------------------- making counterexamples small


def minimise(
    statement: Statement, example: Batch, rng: np.random.Generator, effort: Effort
) -> Batch:
    """Return the counterexample with the fewest items and the simplest scores.

    Shapes are tried from the smallest up to that of `example`: every point of the lattices where
    they are few, else random points and climbing. The first shape with a violation wins; in it, the
    point with the coarsest grid and the smallest scores.
    """
    for shape in statement.shapes:
        if shape.size > example.shape.size:
            break
        smallest = _simplest_on_lattice(statement, shape, rng)
        if smallest is None and shape.size < example.shape.size:
            smallest = _hunt(statement, shape, rng, effort)
        if smallest is not None:
            return smallest
    return _rounded(statement, example)


def _simplest_on_lattice(
    statement: Statement, shape: Shape, rng: np.random.Generator
) -> Batch | None:
    for grid in GRIDS:
        points = _keep(statement, _lattice(shape, grid, rng))
        if len(points) == 0:
            continue
        violation = statement.violation(points)
        bad = np.flatnonzero(violation > 1e-6)
        if len(bad):
            return points.take([bad[_simplest(points.take(bad), violation[bad])]])
    return None


def _simplest(batch: Batch, violation: Array) -> int:
    """Index of the instance to show: no positive ties a negative, small scores, few values."""
    tied = (batch.p[..., :, None] == batch.q[..., None, :]).any(axis=(1, 2, 3))
    size = np.abs(batch.p).sum(axis=(1, 2)) + np.abs(batch.q).sum(axis=(1, 2))
    pairs = zip(batch.p, batch.q, strict=True)
    distinct = np.array([len(np.unique(np.concatenate(pair, -1))) for pair in pairs])
    return int(np.lexsort((-violation, distinct, size, tied))[0])


def _lattice(shape: Shape, grid: Array, rng: np.random.Generator) -> Batch:
    """All lists on a grid (sorted, for single lists), or a sample when there are too many."""
    if shape.n_lists == 1:
        p = _multisets(grid, shape.n_pos)
        q = _multisets(grid, shape.n_neg)
        if p is None or q is None or len(p) * len(q) > MOST_LATTICE:
            return _on_grid(shape, grid, MOST_LATTICE // 3, rng)
        at, to = np.divmod(np.arange(len(p) * len(q)), len(q))
        return Batch(p[at][:, None, :], q[to][:, None, :], shape)
    n_items = shape.n_lists * (shape.n_pos + shape.n_neg)
    if len(grid) ** n_items > MOST_LATTICE:
        return _on_grid(shape, grid, MOST_LATTICE // 3, rng)
    every = np.array(list(product(grid, repeat=n_items)))
    every = every.reshape(len(every), shape.n_lists, -1)
    return Batch(every[..., : shape.n_pos], every[..., shape.n_pos :], shape)


def _multisets(grid: Array, n: int) -> Array | None:
    if np.prod(len(grid) + np.arange(n)) / np.prod(1.0 + np.arange(n)) > MOST_LATTICE:
        return None
    return np.array(list(combinations_with_replacement(grid[::-1], n)))


def _hunt(
    statement: Statement, shape: Shape, rng: np.random.Generator, effort: Effort
) -> Batch | None:
    """Random draws and climbing in one shape; a rounded counterexample, or None."""
    outcome = Outcome()
    drawn = _keep(statement, _random(shape, 4 * effort.n_random, rng), prepare=True)
    _record(statement, drawn, "random", outcome)
    _climb(statement, drawn, rng, effort, outcome)
    return None if outcome.example is None else _rounded(statement, outcome.example)


def _rounded(statement: Statement, example: Batch) -> Batch:
    """Round the scores as coarsely as the violation survives."""
    for digits in range(6):
        rounded = example.with_scores(np.round(example.p, digits), np.round(example.q, digits))
        if statement.holds(rounded)[0] and statement.violation(rounded)[0] > 1e-6:
            return rounded
    return example


@dataclass(frozen=True)
class Statement:
    """A claim about lists: `violation` is positive where it fails, `holds` is its hypothesis,
    `prepare` moves random scores into the hypothesis; `shapes` in order of size.
    """

    violation: Callable[[Batch], Array]
    shapes: list[Shape]
    holds: Callable[[Batch], Array] = lambda batch: np.ones(len(batch), dtype=bool)
    prepare: Callable[[Batch], Batch] | None = None

    def search(self, seed: int, effort: Effort) -> Outcome:
        """Try all shapes; then make the counterexample, if any, small."""
        rng = np.random.default_rng(seed)
        allowed = list(filter(effort.allows, self.shapes))
        outcome = Outcome(n_shapes=len(allowed))
        for shape in allowed:
            drawn = _keep(self, _random(shape, effort.n_random, rng), prepare=True)
            _record(self, drawn, "random", outcome)
            grid = GRIDS[rng.integers(len(GRIDS))]
            lattice = _keep(self, _on_grid(shape, grid, effort.n_random, rng))
            _record(self, lattice, "lattice", outcome)
            _climb(self, drawn, rng, effort, outcome)
        if outcome.example is not None:
            outcome.example = minimise(self, outcome.example, rng, effort)
        return outcome
