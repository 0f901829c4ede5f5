"""Lower bounds of a Ramp or ClippedRamp objective over boxes of w, for a global search.

Let ``loss(z)`` be ``(1 - z)_+`` or ``min(1, (1 - z)_+)``. For one user and any k negatives N,

    R(w) >= 1/(beta k) min_Z sum_{i in Z} sum_{j in N} loss(z_ij),   z_ij = (x_i - x_j) . w

over the sets Z of beta positives, because R takes the maximum over N; N is the best at the centre
c of the box. Over a box every ``z_ij`` stays in an interval, and there loss has a linear minorant

    height - fall * (z - z_c)

the loss itself where it is linear, else its chord; or zero, where that is higher at the centre and
a minorant as well. With ``L_i`` the sum of positive i's minorants,

    alpha/2 ||c||^2 + alpha c . (w - c) + 1/(beta k) min_Z sum_{i in Z} L_i(w)

is concave in w, so its minimum over the box is at a corner: all 2^d are looked at. The bound by
intervals alone, ``loss(max z_ij)``, is used where it is higher.

Rounding: each user's mean is taken off first, as only differences of its rows count. With S the
largest ``sum_f |x_f w_f|`` in the box, what is added up has a sum of absolute values of at most
``m = 1 + 4 S + alpha ||w||^2``, and no term passes through more than n = max m_u + sum(beta) + 3d
additions and a few products: the bound is off by less than ``n eps m``, twice which is taken off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._rounding import EPS
from structsvm_papk._sorting import increasing_order, sort
from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.list_risk import ListRisk

MAX_FEATURES = 8
MAX_WORK = 1_000_000
_FEW = 16  # operations on a term beside the sums


class Users(NamedTuple):
    """The lists: rows less their user's mean, bounds, positives, weights, and what a pair costs.

    Of each user's negatives the `n_counted` highest count; the positives of all users have rows of
    their own, those of a user from `first_row` on.
    """

    X: Array
    indptr: Array
    n_pos: Array
    n_counted: Array
    first_row: Array
    weight: Array
    k: int
    clipped: bool


class Minorants(NamedTuple):
    """``level + slope . (w - c)`` below the loss of each positive, in a box with centre c.

    `safe` is the loss by intervals alone. `error` says by coordinate how much a box loses by being
    as wide as it is.
    """

    level: Array
    slope: Array
    safe: Array
    error: Array


class Boxes:
    """Bounds over boxes for one risk."""

    def __init__(self, risk: ListRisk) -> None:
        if not risk.surrogate.boxed:
            raise InputError(
                f"no global search for surrogate {risk.surrogate.name!r}: it is for 'ramp' and "
                "'clipped_ramp'" + ("; CuttingPlane certifies this one" if risk.convex else "")
            )
        self.data = risk.data
        self.surrogate = risk.surrogate
        self._refuse_large()
        data = self.data
        X = np.ascontiguousarray(data.columns.take(data.rows).toarray())
        mean = np.add.reduceat(X, data.indptr[:-1]) / data.sizes[:, None]
        X = data.units.of_columns(X - np.repeat(mean, data.sizes, axis=0))
        self._largest = np.abs(X).max(axis=0)
        self._users = Users(
            X=X,
            indptr=data.indptr,
            n_pos=data.n_pos,
            n_counted=self.surrogate.negatives_counted(data.n_neg),
            first_row=np.cumsum(data.n_pos) - data.n_pos,
            weight=data.weight_of_user,
            k=self.surrogate.k,
            clipped=self.surrogate.clipped,
        )

    def bounds(
        self, alpha: float, low: Array, high: Array, run: Callback
    ) -> tuple[Array, Array, Array]:
        """As `BoxedOracle.bounds`, of ``alpha/2 ||w||^2 + R(w)`` for ``low[b] <= w <= high[b]``.

        What rounding may have added is taken off. `run` is `ListRisk.map_ranges`.
        """
        n = low.shape[0]
        lower = np.empty(n)
        centre = np.empty(n)
        split = np.empty(n, dtype=np.int64)

        def part(lo: int, hi: int) -> None:
            boxes = slice(lo, hi)
            bound_boxes(
                self._users, alpha, low[boxes], high[boxes],
                lower[boxes], centre[boxes], split[boxes],
            )  # fmt: skip

        run(part, np.arange(n + 1))
        return lower - self._rounding(alpha, low, high), centre, split

    def _rounding(self, alpha: float, low: Array, high: Array) -> Array:
        """How far rounding may have raised the bounds, see above."""
        farthest = np.maximum(np.abs(low), np.abs(high))
        size = 1 + 4 * farthest @ self._largest + alpha * np.square(farthest).sum(axis=1)
        k = self.surrogate.k
        most = self.surrogate.negatives_counted(self.data.n_neg).max()
        n_terms = most + np.minimum(self.data.n_pos, k).sum() + 3 * low.shape[1] + _FEW
        return 2 * n_terms * EPS * size

    def _refuse_large(self) -> None:
        data = self.data
        d = self.data.n_features
        n_pos = int(self.data.n_pos.sum())
        pairs = data.n_pos @ self.surrogate.negatives_counted(data.n_neg)
        work = d * (data.rows.size + int(pairs) + (n_pos << d))  # multiplications a box
        if d > MAX_FEATURES or work > MAX_WORK:
            raise InputError(
                f"too large for a global certificate: {d} features, {n_pos} positives and "
                f"{data.n_neg.sum()} negatives at k={self.surrogate.k}; the limits are "
                f"{MAX_FEATURES} features and {MAX_WORK:,} multiplications a box (this is "
                f"{work:.1e}). Use CCCP, which has no limit, or a sample of the users"
            )


@kernel
def bound_boxes(
    users: Users, alpha: float, low: Array, high: Array, lower: Array, centre: Array, split: Array
) -> None:
    """Write the bound over each box, the objective at its centre, and where the box is cut best."""
    n_pos = users.n_pos
    d = users.X.shape[1]
    total = users.weight.sum()
    n_rows = n_pos.sum()
    scores = np.empty(users.X.shape[0])
    minorants = Minorants(np.empty(n_rows), np.empty((n_rows, d)), np.empty(n_rows), np.empty(d))
    for b in range(lower.size):
        # 1. the scores at the centre
        w = 0.5 * (low[b] + high[b])
        radius = 0.5 * (high[b] - low[b])
        for i in range(users.X.shape[0]):
            scores[i] = np.sum(users.X[i] * w)
        # 2. minorants of every positive's loss; the risk at the centre, and by intervals alone
        minorants.error[:] = 0.0
        value = 0.0
        crude = 0.0
        for u in range(n_pos.size):
            added, bound = _one_user(users, u, scores, total, radius, minorants)
            value += added
            crude += bound
        # 3. to what intervals say comes the penalty of the point that is nearest to zero
        nearest = np.minimum(np.maximum(0.0, low[b]), high[b])
        crude += alpha / 2 * np.sum(nearest * nearest)
        centre[b] = value + alpha / 2 * np.sum(w * w)
        # 4. the least of the concave minorant, which a corner has
        at_corners = _over_corners(alpha, w, radius, n_pos, users.k, minorants)
        lower[b] = max(crude, at_corners)
        # 5. the box is cut where its width costs most
        best = 0
        for f in range(d):
            minorants.error[f] += alpha * radius[f] * radius[f]
            if minorants.error[f] > minorants.error[best]:
                best = f
        split[b] = best


@kernel
def _one_user(
    users: Users,
    u: int,
    scores: Array,
    total: Array,
    radius: Array,
    minorants: Minorants,
) -> tuple[float, float]:
    """Write linear minorants of each positive's loss; the loss at the centre, and by intervals.

    `total` is the sum of all users' weights.
    """
    X = users.X
    clipped = users.clipped
    level = minorants.level
    slope = minorants.slope
    safe = minorants.safe
    error = minorants.error
    d = radius.size
    start = users.indptr[u]
    n = users.n_pos[u]
    middle = start + n
    m = users.n_counted[u]
    first_row = users.first_row[u]
    scale = users.weight[u] / (total * m * min(n, users.k))
    top = middle + increasing_order(-scores[middle : users.indptr[u + 1]])[:m]
    losses = np.zeros(n)
    edge = np.empty(d)
    for i in range(n):
        row = first_row + i
        level[row] = 0.0
        slope[row] = 0.0
        safe[row] = 0.0
        for j in top:
            # 1. the pair's margin z at the centre, and how far it can be from it in the box
            z = scores[start + i] - scores[j]
            reach = 0.0
            for f in range(d):
                edge[f] = X[start + i, f] - X[j, f]
                reach += radius[f] * abs(edge[f])
            least = z - reach
            most = z + reach
            # 2. its loss at the centre, and at the largest margin: no loss in the box is lower
            loss = max(0.0, 1.0 - z)
            losses[i] += min(1.0, loss) if clipped else loss
            worst = max(0.0, 1.0 - most)
            safe[row] += scale * (min(1.0, worst) if clipped else worst)
            # 3. minorant over the box: height - fall * (z' - z), or 0 where the loss may be that
            may_be_zero = False
            if least >= 1.0:  # zero everywhere
                continue
            if clipped and most <= 0.0:  # one everywhere
                level[row] += scale
                continue
            if clipped and least < 0.0:
                if most <= 1.0:  # concave: the chord from 1 at `least` to 1 - most at `most`
                    fall = most / (most - least)
                else:  # the chord to the point where the loss becomes zero
                    fall = 1.0 / (1.0 - least)
                    may_be_zero = True
                height = 1.0 - fall * (z - least)
            else:  # 1 - z', the loss itself as long as z' <= 1
                fall = 1.0
                height = 1.0 - z
                may_be_zero = most > 1.0
            # 4. what a narrower box would gain by it, and the minorant itself
            if may_be_zero or (clipped and least < 0.0):
                for f in range(d):
                    error[f] += scale * radius[f] * abs(edge[f])
            if height > 0.0 or not may_be_zero:
                level[row] += scale * height
                for f in range(d):
                    slope[row, f] -= scale * fall * edge[f]
    beta = min(n, users.k)
    order = increasing_order(losses)
    value = 0.0
    for r in range(beta):
        value += scale * losses[order[r]]
    ordered = safe[first_row : first_row + n].copy()
    sort(ordered, np.empty(n))
    bound = np.sum(ordered[:beta])
    return value, bound


@kernel
def _over_corners(
    alpha: float, w: Array, radius: Array, n_pos: Array, k: int, minorants: Minorants
) -> float:
    """Smallest value over the box's corners of the concave minorant."""
    level = minorants.level
    slope = minorants.slope
    d = w.size
    n_corners = 1 << d
    best = np.inf
    reg = alpha / 2 * np.sum(w * w)
    offset = np.empty(d)
    for corner in range(n_corners):
        total = reg
        for f in range(d):
            offset[f] = radius[f] if (corner >> f) & 1 else -radius[f]
            total += alpha * w[f] * offset[f]
        row = 0
        for n in n_pos:
            beta = min(n, k)
            values = np.empty(n)
            for i in range(n):
                values[i] = level[row + i]
                for f in range(d):
                    values[i] += slope[row + i, f] * offset[f]
            if beta < n:
                sort(values, np.empty(n))
            for i in range(beta):
                total += values[i]
            row += n
        best = min(best, total)
    return best
