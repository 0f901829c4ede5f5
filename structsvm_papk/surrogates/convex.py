"""The convex surrogates of the pAp@k risk; notation as in `structsvm_papk.surrogates.base`."""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.surrogates import _kernels
from structsvm_papk.surrogates.base import PairMean, Segments, Surrogate
from structsvm_papk.surrogates.list_terms import (
    ListTerms,
    MeanThreshold,
    NegativeTerms,
    PositiveTerms,
)


class Avg(PairMean):
    """``1/m sum_{j<=m} (1 - mean(p) + q_(j))_+``, equation (10). Convex.

    No upper bound of the risk in general; it is where ``p_(beta) >= mean(p)``.
    """

    name = "avg"
    top_negatives_only = True

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        _kernels.average(self.k, self.counted, *lists)

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array]:  # noqa: D102
        return np.full(n_pos.shape, np.inf), self.negatives_counted(n_neg) / n_neg

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return MeanThreshold(n_neg, self.depth_of_list(n_neg), n_rows=1)


class Max(Segments):
    """``1/(beta m) sum_{i>n_pos-beta} sum_{j<=m} (1 - p_(i) + q_(j))_+``, equation (24). Convex."""

    name = "max"
    low_positives_only = True
    parts = np.array([(_kernels.BOTTOM, 1)])

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array]:  # noqa: D102
        return np.minimum(n_pos, self.k) / n_pos, self.negatives_counted(n_neg) / n_neg

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return PositiveTerms(n_pos, self.depth_of_list(n_neg), n_counted=min(n_pos, self.k))


class TS(Segments):
    """The tight structural surrogate, equation (14), solved exactly. Convex.

    With ``t_i = p_(i) - 1[i <= beta]`` and ``t~`` its least-squares non-increasing regression,

        TS = 1/(beta m) sum_{i<=n_pos} sum_{j<=m} (q_(j) - t~_i)_+

    The maximising ordering is monotone in the score, and every row of it contributes
    ``C(r) - r t_i`` with one common concave C; isotonic problems of that form are solved by the
    least-squares regression. The paper's Algorithm 2 computes something else, see `TSAlg2`.
    """

    name = "ts"
    parts = np.array([(_kernels.POOLED, 1)])

    def l1_bound(self, n_pos: Array) -> Array:  # noqa: D102
        return Surrogate.l1_bound(self, n_pos)

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return NegativeTerms(n_neg, self.depth_of_list(n_neg), min(n_pos, self.k), pooled=True)


class PAUC(Segments):
    """``1/(n_pos m) sum_{i<=n_pos} sum_{j<=m} (1 - p_(i) + q_(j))_+``. Convex.

    The structural surrogate of the partial AUC over [0, m/n_neg] (Narasimhan and Agarwal, 2013).
    """

    name = "pauc"
    parts = np.array([(_kernels.ALL, 1)])
    mean_over_all = True

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        m = self.depth_of_list(n_neg)
        # where every pair counts, blocks on the longer side leave less to share
        if m == n_neg > n_pos:
            return NegativeTerms(n_neg, m, n_rows=n_pos, pooled=False)
        return PositiveTerms(n_pos, m, n_counted=n_pos)
