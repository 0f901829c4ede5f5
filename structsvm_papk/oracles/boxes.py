"""Lower bounds of a Ramp or ClippedRamp objective over boxes of w, for a global search.

Let ``loss(z)`` be ``(1 - z)_+`` or ``min(1, (1 - z)_+)``. For one user and any k negatives N,

    R(w) >= 1/(beta k) min_Z sum_{i in Z} sum_{j in N} loss(z_ij),   z_ij = (x_i - x_j) . w

over the sets Z of beta positives, because R takes the maximum over N; N is the best at the centre
c of the box. Over a box every ``z_ij`` stays in an interval, and there loss has a linear minorant

    t * (height - fall * (z - z_c)),   0 <= t <= 1

with t = 1 where the loss is linear or concave on the interval (its chord), and t free where zero is
a minorant as well. For fixed t, with ``L_i`` the sum of positive i's minorants,

    alpha/2 ||c||^2 + alpha c . (w - c) + 1/(beta k) min_Z sum_{i in Z} L_i(w)

is concave in w, so its minimum over the box is at a corner: all 2^d are looked at. Every t gives a
valid bound; a good t makes the slopes cancel, so that near a minimum the error shrinks with the
square of the box. The bound by intervals alone, ``loss(max z_ij)``, is used where it is higher.

Rounding: only differences of one user's rows count, so each user's mean is taken off first, at a
relative error of the result. With S the largest ``sum_f |x_f w_f|`` in the box, all that is added
up has a sum of absolute values of at most ``m = 1 + 4 S + alpha ||w||^2``, and no term passes
through more than n = max m_u + sum(beta) + 3d additions and a few products, so the computed bound
is off by less than ``n eps m``. Twice that is taken off.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.oracles._box_kernels import bound_boxes

if TYPE_CHECKING:
    from structsvm_papk.oracles.list_risk import ListRisk

MAX_FEATURES = 8
MAX_WORK = 1_000_000
_FEW = 16  # operations on a term beside the sums


class Boxes:
    """Bounds over boxes for one risk."""

    def __init__(self, risk: ListRisk) -> None:
        if not risk.surrogate.boxed:
            raise InputError(
                f"no global search for surrogate {risk.surrogate.name!r}: it is for 'ramp' and "
                "'clipped_ramp'" + ("; CuttingPlane certifies this one" if risk.convex else "")
            )
        self.data, self.surrogate, self.n_threads = risk.data, risk.surrogate, risk.n_threads
        self.n_features = risk.n_features
        self._refuse_large()
        X = risk.data.X[risk.data.rows]
        X = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64, order="C")
        sums = np.add.reduceat(X, risk.data.indptr[:-1], axis=0)
        X -= np.repeat(sums / risk.data.sizes[:, None], risk.data.sizes, axis=0)
        self._X = X = risk.data.divided(X)
        self._largest = np.abs(X).max(axis=0)

    @property
    def work(self) -> int:
        """Multiplications for one box."""
        data, d = self.data, self.n_features
        n_pos = int(data.n_pos.sum())
        pairs = data.n_pos @ self.surrogate.negatives_counted(data.n_neg)
        return d * (data.rows.size + int(pairs) + (n_pos << d))

    def bounds(self, alpha: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Bound ``alpha/2 ||w||^2 + R(w)`` over boxes ``low[b] <= w <= high[b]``.

        Returns for each a lower bound, less what rounding may have added, the objective at the
        centre, and the coordinate along which to cut.
        """
        n = low.shape[0]
        lower, centre, split = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        data, surrogate = self.data, self.surrogate
        weight = np.ones(data.n_users) if data.user_weight is None else data.user_weight

        def part(lo, hi):
            bound_boxes(
                self._X, data.indptr, data.n_pos, weight, surrogate.k, surrogate.counted,
                surrogate.clipped, alpha,
                low[lo:hi], high[lo:hi], lower[lo:hi], centre[lo:hi], split[lo:hi],
            )  # fmt: skip

        edges = np.linspace(0, n, self.n_threads + 1).astype(int)
        if self.n_threads == 1:
            part(0, n)
        else:
            with ThreadPoolExecutor(self.n_threads) as pool:
                list(pool.map(part, edges[:-1], edges[1:]))
        return lower - self._rounding(alpha, low, high), centre, split

    def _rounding(self, alpha, low, high):
        """How far rounding may have raised the bounds, see above."""
        farthest = np.maximum(np.abs(low), np.abs(high))
        size = 1 + 4 * farthest @ self._largest + alpha * np.square(farthest).sum(axis=1)
        k = self.surrogate.k
        most = self.surrogate.negatives_counted(self.data.n_neg).max()
        n_terms = most + np.minimum(self.data.n_pos, k).sum() + 3 * self.n_features + _FEW
        return 2 * n_terms * np.finfo(float).eps * size

    def _refuse_large(self):
        data = self.data
        if self.n_features <= MAX_FEATURES and self.work <= MAX_WORK:
            return
        raise InputError(
            f"too large for a global certificate: {self.n_features} features, "
            f"{data.n_pos.sum()} positives and {data.n_neg.sum()} negatives at "
            f"k={self.surrogate.k}; the limits are {MAX_FEATURES} features and "
            f"{MAX_WORK:,} multiplications a box (this is {self.work:.1e}). "
            "Use CCCP, which has no limit, or a sample of the users"
        )
