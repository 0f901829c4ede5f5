"""What statements about lists are made of: violations, hypotheses, and shapes of lists.

A violation is a function of a `Batch` of instances that is positive where a statement fails; a
hypothesis tells on which instances it is claimed.
"""

import itertools
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.datasets.margin_conditions import largest_negative
from structsvm_papk.propositions.lists import Batch, Shape, shapes

Measure: TypeAlias = Callable[[Batch], Array]
Move: TypeAlias = Callable[[Batch], Batch]

DELTA = 1.0
_ROUNDING = 1e-12


def below(*names: str) -> Measure:
    """Violation of ``names[0] <= names[1] <= ..``."""

    def violation(batch: Batch) -> Array:
        values = [batch.value(name)[:, 0] for name in names]
        return np.max([a - b for a, b in itertools.pairwise(values)], axis=0)

    return violation


def vanish(*names: str) -> Measure:
    """Violation of: all these values are zero."""
    return lambda batch: np.max([np.abs(batch.value(name)[:, 0]) for name in names], axis=0)


def both(*violations: Measure) -> Measure:
    """Violation of several statements at once."""
    return lambda batch: np.max([v(batch) for v in violations], axis=0)


def equal(*names: str) -> Measure:
    """Violation of: all these values agree."""

    def violation(batch: Batch) -> Array:
        values = np.array([batch.value(name)[:, 0] for name in names])
        return values.max(axis=0) - values.min(axis=0)

    return violation


def convex(name: str) -> Measure:
    """Violation of midpoint convexity along the two lists of an instance."""

    def violation(batch: Batch) -> Array:
        return batch.midpoint().value(name)[:, 0] - batch.value(name).mean(axis=1)

    return violation


def realises(condition: str, delta: float = DELTA) -> Measure:
    """Return the hypothesis: the margin condition holds with margin delta."""
    return lambda batch: np.all(batch.margins()[condition] >= delta - _ROUNDING, axis=1)


def move_into(condition: str, delta: float = DELTA) -> Move:
    """Shift the negatives so that the largest one is as high as the condition allows."""

    def prepare(batch: Batch) -> Batch:
        limit = largest_negative(batch.p, batch.shape.beta, condition, delta)[..., None]
        moved = batch.q + (limit - batch.top[..., None])
        return batch.with_scores(batch.p, np.minimum(moved, limit))  # rounding must not lift it

    return prepare


def margin_implies(premise: str, conclusion: str) -> Measure:
    """Violation of: the premise with margin delta gives the conclusion with margin delta."""

    def violation(batch: Batch) -> Array:
        margins = batch.margins()
        gap = np.minimum(DELTA, margins[premise]) - margins[conclusion]
        return np.where(np.isfinite(gap), gap, DELTA)[:, 0]

    return violation


def _where(shape_ok: Callable[[Shape], bool], n_lists: int = 1, **how: Any) -> list[Shape]:
    return [s for s in shapes(n_lists=n_lists, **how) if shape_ok(s)]


EVERY = shapes()
LOW = _where(lambda s: s.n_pos <= s.k)
HIGH = _where(lambda s: s.n_pos > s.k)
ENOUGH = _where(lambda s: s.n_pos >= 2 * s.beta - 1)
SMALL = shapes(largest=4, extra=((6, 6, 3), (5, 7, 2)))
TINY = [s for s in shapes(largest=4, extra=()) if s.k <= 3]
PAIRS = shapes(largest=4, extra=((8, 10, 5),), n_lists=2)
PAIRS_LOW = [s for s in PAIRS if s.n_pos <= s.k]


def p_beta_above_mean(batch: Batch) -> Array:
    """Whether the beta-th best positive is at least the mean positive."""
    p = batch.best[:, 0]
    return p[:, batch.shape.beta - 1] >= p.mean(axis=1) - _ROUNDING


def without_hinge_margin(name: str) -> Measure:
    """Violation of risk <= surrogate whose hinge has margin 0 instead of 1."""

    def violation(batch: Batch) -> Array:
        lowered = batch.with_scores(batch.p + 1.0, batch.q)
        return batch.risk()[:, 0] - lowered.value(name)[:, 0]

    return violation


def clipped_limit(factor: float, at: str = "", risk_at: str | None = None) -> Measure:
    """Violation of ``ClippedRamp(c s) = risk(s)`` at c = factor / (smallest winning gap).

    `at` and `risk_at`: the depth of the surrogate and, where it is another one, of the risk.
    """
    names = f"risk{at if risk_at is None else risk_at}", f"clipped_ramp{at}"

    def violation(batch: Batch) -> Array:
        gaps = batch.p[:, 0, :, None] - batch.q[:, 0, None, :]
        smallest = np.where(gaps > 0, gaps, np.inf).min(axis=(1, 2))
        c = factor / np.where(np.isfinite(smallest), smallest, 1.0)
        scaled = batch.with_scores(batch.p * c[:, None, None], batch.q * c[:, None, None])
        risk, never_below = batch.value(names[0])[:, 0], below(*names)
        distance = np.abs(scaled.value(names[1])[:, 0] - risk)
        # rounding of the scaled scores enters relative to their size, not to 1
        return np.maximum(distance - 1e-13 * scaled.scale, never_below(batch))

    return violation


def separated_gaps(batch: Batch) -> Array:
    """Whether gaps of winning pairs are not tiny against the scores (scaling meets rounding)."""
    gaps = batch.p[:, 0, :, None] - batch.q[:, 0, None, :]
    smallest = np.where(gaps > 0, gaps, np.inf).min(axis=(1, 2))
    return smallest > 1e-6 * batch.scale


def tie_some(batch: Batch) -> Batch:
    """Move the negatives so that one of them ties the best positive."""
    shift = batch.p[:, 0].max(axis=1) - batch.q[:, 0, 0]
    q = batch.q + shift[:, None, None]
    q[:, 0, 0] = batch.p[:, 0].max(axis=1)
    return batch.with_scores(batch.p, q)


def or_free(always: Measure, under: Measure, condition: Measure) -> Measure:
    """One statement of two parts: `always` everywhere, `under` where the condition holds."""
    return lambda batch: np.maximum(
        always(batch), np.where(condition(batch), under(batch), -np.inf)
    )


def half(prepare: Move) -> Move:
    """Move every second instance only."""

    def mixed(batch: Batch) -> Batch:
        moved = prepare(batch)
        p, q = batch.p.copy(), batch.q.copy()
        p[::2], q[::2] = moved.p[::2], moved.q[::2]
        return batch.with_scores(p, q)

    return mixed
