"""Search for counterexamples: random lists, lattices full of ties, and hill climbing.

Violations at most ``TOL * scale`` are rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from math import comb, prod
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.propositions.lists import TOL, Batch, Measure, Move, Shape

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


@dataclass(frozen=True)
class Found:
    """Instances tried that satisfy the hypothesis, how they were drawn, the largest violation, and
    one instance that violates the claim, as small as was found.
    """

    instances: int
    drawn: str
    worst: float
    counterexample: dict[str, Any] | None

    @property
    def verdict(self) -> str:
        """What the search says of the claim."""
        return "holds" if self.counterexample is None else "counterexample"


@dataclass(frozen=True, kw_only=True)
class Words:
    """What is said, by whom, under which hypothesis."""

    id: str
    title: str
    claim: str
    formula: str
    source: str
    hypothesis: str = "none"


@dataclass(frozen=True, kw_only=True)
class Claim(Words):
    """A claim, and a control whose verdict must be the opposite."""

    statement: Statement | Drawn
    control: Statement | Drawn
    control_words: str
    quantities: tuple[str, ...] = ("risk",)


@dataclass(frozen=True)
class Drawn:
    """A claim about instances that `draw(seed, effort)` yields, as data sets.

    `words` say how many were tried and how many were bad, of which the smallest by `size` is
    described.
    """

    violation: Callable[[Any], float]
    draw: Callable[[int, Effort], Iterable[Any]]
    words: str
    size: Callable[[Any], Any]

    def search(self, seed: int, effort: Effort, quantities: Sequence[str] = ()) -> Found:
        """Draw instances, and keep the one to show."""
        values: list[float] = []
        example = None
        least: Any = None
        for instance in self.draw(seed, effort):
            values.append(value := self.violation(instance))
            size = self.size(instance)
            if value > TOL and (example is None or size < least):
                example = instance.described(quantities)
                least = size
        n_bad = sum(value > TOL for value in values)
        drawn = self.words.format(n=len(values), n_bad=n_bad)
        return Found(len(values), drawn, max(values, default=-np.inf), example)


@dataclass(frozen=True)
class Statement:
    """A claim about lists: `violation` is positive where it fails, `holds` is its hypothesis,
    `prepare` moves random scores into the hypothesis; `shapes` in order of size.
    """

    violation: Measure
    shapes: list[Shape]
    holds: Measure = lambda batch: np.ones(len(batch), dtype=bool)
    prepare: Move = lambda batch: batch

    def search(self, seed: int, effort: Effort, quantities: Sequence[str] = ()) -> Found:
        """Try all shapes; then make the counterexample, if any, small."""
        search = CounterexampleSearch(self, np.random.default_rng(seed), effort)
        allowed = [s for s in self.shapes if max(s.n_pos, s.n_neg) <= effort.largest]
        for shape in allowed:
            search.try_shape(shape)
        words = (
            "{random} random lists, {lattice} on tie-rich lattices, {climbing} by climbing towards "
            "a violation; {} shapes, with n_pos = 1 and k = n_neg"
        ).format(len(allowed), **search.drawn)
        n = sum(search.drawn.values())
        example = None
        if search.example is not None:
            example = search.minimised(search.example).described(quantities)
        return Found(n, words, search.worst, example)

    def keep(self, batch: Batch) -> Batch:
        """The instances that satisfy the hypothesis."""
        return batch.take(np.flatnonzero(self.holds(batch)))


class CounterexampleSearch:
    """What was tried of a statement, the largest violation, and the smallest bad instance."""

    def __init__(self, statement: Statement, rng: np.random.Generator, effort: Effort) -> None:
        self.statement = statement
        self.rng = rng
        self.effort = effort
        self.drawn = {"random": 0, "lattice": 0, "climbing": 0}
        self.worst = -np.inf
        self.example: Batch | None = None

    def try_shape(self, shape: Shape) -> None:
        """Random lists, lists on a lattice, and climbing from the random ones."""
        drawn = self._draw(shape, self.effort.n_random)
        grid = GRIDS[self.rng.integers(len(GRIDS))]
        lattice = _on_grid(shape, grid, self.effort.n_random, self.rng)
        self._record(self.statement.keep(lattice), "lattice")
        self._climb(drawn)

    def _draw(self, shape: Shape, n: int) -> Batch:
        drawn = self.statement.keep(self.statement.prepare(_random(shape, n, self.rng)))
        self._record(drawn, "random")
        return drawn

    def _record(self, batch: Batch, source: str) -> Array:
        """Evaluate, count, and keep the worst instance."""
        if len(batch) == 0:
            return np.zeros(0)
        violation = self.statement.violation(batch)
        self.drawn[source] += len(batch)
        self.worst = max(self.worst, float(violation.max()))
        worst = int(np.argmax(violation / batch.scale))
        smaller = self.example is None or batch.shape.size < self.example.shape.size
        if smaller and violation[worst] > TOL * batch.scale[worst]:
            self.example = batch.take([worst])
        return violation

    def _climb(self, start: Batch) -> None:
        """Hill climbing from the instances closest to a violation."""
        if len(start) == 0:
            return
        violation = self.statement.violation(start)
        first = np.argsort(-violation / start.scale, kind="stable")[: self.effort.n_climbers]
        here = start.take(first)
        height = violation[first]
        for _ in range(self.effort.n_steps):
            moved = self.statement.prepare(_perturb(here, self.rng))
            values = np.full(len(here), -np.inf)
            rows = np.flatnonzero(self.statement.holds(moved))
            values[rows] = self._record(moved.take(rows), "climbing")
            better = (values > height)[:, None, None]
            p = np.where(better, moved.p, here.p)
            q = np.where(better, moved.q, here.q)
            here = Batch(p, q, here.shape)
            height = np.maximum(height, values)

    def minimised(self, example: Batch) -> Batch:
        """Return the counterexample with the fewest items and the simplest scores.

        Shapes are tried from the smallest up to that of `example`: every point of the lattices
        where they are few, else random points and climbing. The first shape with a violation wins;
        in it, the point with the coarsest grid and the smallest scores.
        """
        for shape in self.statement.shapes:
            if shape.size > example.shape.size:
                break
            smallest = self._simplest_on_lattice(shape)
            if smallest is None and shape.size < example.shape.size:
                smallest = self._hunt(shape)
            if smallest is not None:
                return smallest
        return self._rounded(example)

    def _simplest_on_lattice(self, shape: Shape) -> Batch | None:
        for grid in GRIDS:
            points = self.statement.keep(_lattice(shape, grid, self.rng))
            if len(points) == 0:
                continue
            violation = self.statement.violation(points)
            bad = np.flatnonzero(violation > 1e-6)
            if len(bad):
                return points.take([bad[_simplest(points.take(bad), violation[bad])]])
        return None

    def _hunt(self, shape: Shape) -> Batch | None:
        """Random draws and climbing in one shape; a rounded counterexample, or None."""
        search = CounterexampleSearch(self.statement, self.rng, self.effort)
        search._climb(search._draw(shape, 4 * self.effort.n_random))
        return None if search.example is None else self._rounded(search.example)

    def _rounded(self, example: Batch) -> Batch:
        """Round the scores as coarsely as the violation survives."""
        claim = self.statement
        for digits in range(6):
            p = np.round(example.p, digits)
            q = np.round(example.q, digits)
            rounded = Batch(p, q, example.shape)
            if claim.holds(rounded)[0] and claim.violation(rounded)[0] > 1e-6:
                return rounded
        return example


def _random(shape: Shape, n: int, rng: np.random.Generator) -> Batch:
    """Scores from normal and heavy-tailed laws, of several sizes and separations."""
    size_p = (n, shape.n_lists, shape.n_pos)
    size_q = (n, shape.n_lists, shape.n_neg)
    heavy = rng.random((n, 1, 1)) < 0.3
    p = np.where(heavy, rng.standard_t(1.2, size_p), rng.standard_normal(size_p))
    q = np.where(heavy, rng.standard_t(1.2, size_q), rng.standard_normal(size_q))
    stretch = 10 ** rng.uniform(-1, 1, (n, 1, 1))
    shift = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], (n, 1, 1))
    ranked = rng.random((n, 1, 1)) < 0.2  # whole numbers: many ties
    p = p * stretch + shift
    q = q * stretch
    return Batch(np.where(ranked, np.rint(p), p), np.where(ranked, np.rint(q), q), shape)


def _on_grid(shape: Shape, grid: Array, n: int, rng: np.random.Generator) -> Batch:
    """Random points of a lattice of few values, so that ties are the rule."""
    p = rng.choice(grid, (n, shape.n_lists, shape.n_pos))
    return Batch(p, rng.choice(grid, (n, shape.n_lists, shape.n_neg)), shape)


def _perturb(batch: Batch, rng: np.random.Generator) -> Batch:
    """Move a random part of the scores by steps of random size."""
    step = 10 ** rng.uniform(-2, 0.7, (len(batch), 1, 1))

    def moved(scores: Array) -> Array:
        chosen = rng.random(scores.shape) < 0.5
        return scores + step * chosen * rng.standard_normal(scores.shape)

    return Batch(moved(batch.p), moved(batch.q), batch.shape)


def _simplest(batch: Batch, violation: Array) -> int:
    """Index of the instance to show: no positive ties a negative, small scores, few values."""
    tied = (batch.p[..., :, None] == batch.q[..., None, :]).any(axis=(1, 2, 3))
    size = np.abs(batch.p).sum(axis=(1, 2)) + np.abs(batch.q).sum(axis=(1, 2))
    pairs = zip(batch.p, batch.q, strict=True)
    distinct = np.array([len(np.unique(np.concatenate(pair, -1))) for pair in pairs])
    return int(np.lexsort((-violation, distinct, size, tied))[0])


def _lattice(shape: Shape, grid: Array, rng: np.random.Generator) -> Batch:
    """All lists on a grid (sorted, for single lists), or a sample when there are too many."""
    sides = (shape.n_pos, shape.n_neg)
    n_items = shape.n_pos + shape.n_neg
    single = shape.n_lists == 1
    n = len(grid) ** (shape.n_lists * n_items)
    if single:
        n = prod(comb(len(grid) + size - 1, size) for size in sides)
    if n > MOST_LATTICE:
        return _on_grid(shape, grid, MOST_LATTICE // 3, rng)
    every: Iterable[Any] = product(grid, repeat=shape.n_lists * n_items)
    if single:
        each = (combinations_with_replacement(grid[::-1], size) for size in sides)
        every = (p + q for p, q in product(*each))
    lists = np.array(list(every)).reshape(n, shape.n_lists, n_items)
    return Batch(lists[..., : shape.n_pos], lists[..., shape.n_pos :], shape)
