"""A single list's loss as a mean of its largest terms, cut into blocks.

With ``f_1, f_2, ..`` convex terms of the scores, one for each positive or one for each negative,
``c`` the number of terms that count and ``r`` a number,

    loss = 1/(c r) (sum of the c largest f_i) = min_s s + 1/c sum_i (f_i/r - s)_+

so that any partition of the terms gives blocks, each convex in (scores, s). A surrogate says by
`Surrogate.list_terms` what its terms are; ``docs/math/one-list.md`` has the proofs.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.surrogates._kernels import hinge_sweep, pool_thresholds, top_k


class TermBlocks(NamedTuple):
    """Blocks of terms at some scores, at the best s, which is `lowest`.

    The subgradient of block b in the scores is ``own`` at the positions of its terms, and
    ``shared[b]`` at the positions ``partners``. ``counted[b]`` of its terms are among the c
    largest.
    """

    values: Array
    own: Array
    shared: Array
    partners: Array
    counted: Array
    lowest: float


@dataclass(frozen=True)
class ListTerms(ABC):
    """The terms of a list: one for each positive, or one for each negative, of which m count."""

    n_terms: int
    depth: int
    over_negatives: ClassVar[bool]

    @abstractmethod
    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:
        """The blocks of the terms at the list positions between each two of the bounds."""


def _parts(counted, bounds):
    """The counted positions, which increase, between each two of the bounds."""
    edges = np.searchsorted(counted, bounds)
    return [counted[start:stop] for start, stop in pairwise(edges)]


@dataclass(frozen=True)
class PositiveTerms(ListTerms):
    """The `n_counted` largest, c, over the positives of ``sum_{j<=m} (1 - p_i + q_(j))_+``; r=m."""

    n_counted: int
    over_negatives = False

    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:  # noqa: D102
        partners = n_pos + top_k(scores[n_pos:], self.depth)
        negatives, parts = scores[partners], _parts(top_k(-scores[:n_pos], self.n_counted), bounds)
        values, own = np.empty(len(parts)), np.zeros(scores.size, dtype=np.int64)
        shared = np.empty((len(parts), self.depth), dtype=np.int64)
        for b, part in enumerate(parts):
            part = part[np.argsort(-scores[part], kind="stable")]
            rows = np.empty(part.size, dtype=np.int64)
            values[b] = hinge_sweep(scores[part] - 1.0, negatives, rows, shared[b])
            own[part] = rows
        ceiling = scores[np.concatenate(parts)].max()
        lowest = np.maximum(1.0 - ceiling + negatives, 0.0).sum() / self.depth
        scale = 1.0 / (self.n_counted * self.depth)
        counted = np.array([part.size for part in parts])
        return TermBlocks(scale * values, -scale * own, scale * shared, partners, counted, lowest)


@dataclass(frozen=True)
class NegativeTerms(ListTerms):
    """The m = c largest over the negatives of ``sum_i (q_j - t_i)_+``; r is `n_rows`.

    The thresholds t are ``p_i - 1``, or `pooled` as in `TS`, with ``beta = n_rows``.
    """

    n_rows: int
    pooled: bool = False
    over_negatives = True

    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:  # noqa: D102
        thresholds, onto_positives = self._thresholds(scores[:n_pos])
        parts = _parts(n_pos + top_k(scores[n_pos:], self.depth), bounds)
        values, own = np.empty(len(parts)), np.zeros(scores.size, dtype=np.int64)
        rows = np.empty((len(parts), thresholds.size), dtype=np.int64)
        for b, part in enumerate(parts):
            columns = np.empty(part.size, dtype=np.int64)
            values[b] = hinge_sweep(thresholds, scores[part], rows[b], columns)
            own[part] = columns
        floor = scores[np.concatenate(parts)].min()
        lowest = np.maximum(floor - thresholds, 0.0).sum() / self.n_rows
        scale, counted = 1.0 / (self.n_rows * self.depth), np.array([part.size for part in parts])
        shared, partners = -scale * onto_positives(rows), np.arange(n_pos)
        return TermBlocks(scale * values, scale * own, shared, partners, counted, lowest)

    def _thresholds(self, positives):
        """Thresholds, and how to hand their counts on to the positives behind them."""
        order = np.argsort(-positives, kind="stable")
        thresholds = positives[order] - 1.0
        if self.pooled:
            pool_thresholds(thresholds, positives, 0, order, self.n_rows)
        return thresholds, lambda rows: rows[:, np.argsort(order)]


@dataclass(frozen=True)
class MeanThreshold(NegativeTerms):
    """The m = c largest over the negatives of ``(1 - mean(p) + q_j)_+``; r = 1."""

    def _thresholds(self, positives):
        share = np.full((1, positives.size), 1.0 / positives.size)
        return np.array([positives.mean() - 1.0]), lambda rows: rows @ share
