"""The surrogates that are not convex; notation as in `structsvm_papk.surrogates.base`."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.surrogates import _kernels
from structsvm_papk.surrogates.base import PairMean, Segments, Surrogate
from structsvm_papk.surrogates.majorants import Frozen, FrozenPairs, FrozenPositives


class TSAlg2(Segments):
    """What the paper's Algorithm 2 computes for TS. Not convex; for comparisons only.

    Its line 11 ranks the positives by the scores instead of by the ordering that is maximised:

        1/(beta m) [ sum_{i<=beta} sum_{j<=m} (1 - p_(i) + q_(j))_+
                     + sum_{i>beta} sum_{j<=m} (q_(j) - p_(i))_+ ]

    Never below `TS`. With k = 1, one negative at 0 and positives (1, 0) and (0, 1) it is 0 and 0,
    but 1/2 at the midpoint; cuts made from it are not valid.
    """

    name = "ts_alg2"
    convex = False
    parts = np.array([(_kernels.TOP, 1), (_kernels.REST, 0)])

    def l1_bound(self, n_pos: Array) -> Array:  # noqa: D102
        return Surrogate.l1_bound(self, n_pos)


class Ramp(Segments):
    """``1/(beta m) sum_{i<=beta} sum_{j<=m} (1 - p_(i) + q_(j))_+``, equation (8).

    Not convex where n_pos > k; an upper bound of the risk.
    """

    name = "ramp"
    convex = False
    majorised = boxed = True
    parts = np.array([(_kernels.TOP, 1)])

    def majorant(self, scores: Array, indptr: Array, n_pos: Array) -> FrozenPositives:
        """A convex surrogate that is nowhere below this one, and tight at these scores."""
        rank = Frozen.at(self, scores, indptr, n_pos).rank
        return FrozenPositives(self.k, depth=self.depth, chosen=rank < self.k)

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array]:  # noqa: D102
        return np.minimum(n_pos, self.k) / n_pos, self.negatives_counted(n_neg) / n_neg

    def is_convex_on(self, n_pos: Array) -> bool:
        """Where every user has ``n_pos <= k``: there Ramp is convex."""
        return bool((np.asarray(n_pos) <= self.k).all())


class ClippedRamp(PairMean):
    """``1/(beta m) sum_{i<=beta} sum_{j<=m} min(1, (1 - p_(i) + q_(j))_+)``. Not convex.

    Values in [0, 1], never below the risk, and equal to it once the scores are scaled up far
    enough, ties included.
    """

    name = "clipped_ramp"
    convex = False
    majorised = boxed = clipped = top_negatives_only = True

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        _kernels.clipped_pairs(self.k, self.counted, *lists)

    def majorant(self, scores: Array, indptr: Array, n_pos: Array) -> FrozenPairs:
        """A convex surrogate that is nowhere below this one, and tight at these scores."""
        frozen = Frozen.at(self, scores, indptr, n_pos)
        return FrozenPairs(self.k, depth=self.depth, **frozen._asdict())
