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

Rounding: each user's mean is taken off first, as only differences of its rows count. With S the
largest ``sum_f |x_f w_f|`` in the box, what is added up has a sum of absolute values of at most
``m = 1 + 4 S + alpha ||w||^2``, and no term passes through more than n = max m_u + sum(beta) + 3d
additions and a few products: the bound is off by less than ``n eps m``, twice which is taken off.
"""

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import increasing_order, sort
from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.surrogates._kernels import counted_negatives

MAX_FEATURES = 8
MAX_WORK = 1_000_000
_SWEEPS = 4
_PENALTIES = (0.3, 0.03, 0.003)
_FEW = 16  # operations on a term beside the sums


class Boxes:
    """Bounds over boxes for one risk."""

    def __init__(self, risk: ListRisk) -> None:
        if not risk.surrogate.boxed:
            raise InputError(
                f"no global search for surrogate {risk.surrogate.name!r}: it is for 'ramp' and "
                "'clipped_ramp'" + ("; CuttingPlane certifies this one" if risk.convex else "")
            )
        self.data, self.surrogate = risk.data, risk.surrogate
        self._refuse_large()
        X, sizes = self.data.X[self.data.rows], self.data.sizes
        X = np.array(X.toarray() if sparse.issparse(X) else X, dtype=np.float64, order="C")
        X -= np.repeat(np.add.reduceat(X, self.data.indptr[:-1]) / sizes[:, None], sizes, axis=0)
        self._X = X = self.data.divided(X)
        self._largest = np.abs(X).max(axis=0)

    def bounds(
        self, alpha: float, low: Array, high: Array, run: Callback
    ) -> tuple[Array, Array, Array]:
        """As `BoxedOracle.bounds`, of ``alpha/2 ||w||^2 + R(w)`` for ``low[b] <= w <= high[b]``.

        What rounding may have added is taken off. `run` is `ListRisk.map_ranges`.
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

        run(part, np.arange(n + 1))
        return lower - self._rounding(alpha, low, high), centre, split

    def _rounding(self, alpha, low, high):
        """How far rounding may have raised the bounds, see above."""
        farthest = np.maximum(np.abs(low), np.abs(high))
        size = 1 + 4 * farthest @ self._largest + alpha * np.square(farthest).sum(axis=1)
        k = self.surrogate.k
        most = self.surrogate.negatives_counted(self.data.n_neg).max()
        n_terms = most + np.minimum(self.data.n_pos, k).sum() + 3 * low.shape[1] + _FEW
        return 2 * n_terms * np.finfo(float).eps * size

    def _refuse_large(self):
        data, d, n_pos = self.data, self.data.n_features, int(self.data.n_pos.sum())
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
    X, indptr, n_pos, user_weight, k, depth, clipped, alpha, low, high, lower, centre, split
):
    """Write the bound over each box, the objective at its centre, and where the box is cut best."""
    n_users, d = n_pos.size, X.shape[1]
    total = user_weight.sum()
    n_rows = n_pos.sum()
    most = 0
    for u in range(n_users):
        n_neg = indptr[u + 1] - indptr[u] - n_pos[u]
        most += n_pos[u] * counted_negatives(depth, k, n_neg)
    scores = np.empty(X.shape[0])
    level, slope = np.empty(n_rows), np.empty((n_rows, d))
    open_row, open_level = np.empty(most, dtype=np.int64), np.empty(most)
    open_slope, weight = np.empty((most, d)), np.empty(most)
    chosen = np.empty(n_rows, dtype=np.bool_)
    safe = np.empty(n_rows)
    for b in range(lower.size):
        w = 0.5 * (low[b] + high[b])
        radius = 0.5 * (high[b] - low[b])
        for i in range(X.shape[0]):
            scores[i] = np.sum(X[i] * w)
        error = np.zeros(d)
        value, crude = 0.0, 0.0
        n_open, first_row = 0, 0
        for u in range(n_users):
            m = counted_negatives(depth, k, indptr[u + 1] - indptr[u] - n_pos[u])
            scale = user_weight[u] / (total * m * min(n_pos[u], k))
            n_open, added, bound = _one_user(
                X, scores, indptr[u], indptr[u] + n_pos[u], indptr[u + 1], k, m, clipped, scale,
                radius, first_row, level, slope, safe, chosen,
                n_open, open_row, open_level, open_slope, error,
            )  # fmt: skip
            value += added
            crude += bound
            first_row += n_pos[u]
        nearest = np.minimum(np.maximum(0.0, low[b]), high[b])
        crude += alpha / 2 * np.sum(nearest * nearest)
        centre[b] = value + alpha / 2 * np.sum(w * w)
        _choose_weights(
            alpha * w, radius, level, slope, chosen,
            n_open, open_row, open_level, open_slope, weight,
        )  # fmt: skip
        for m in range(n_open):
            level[open_row[m]] += weight[m] * open_level[m]
            slope[open_row[m]] += weight[m] * open_slope[m]
        lower[b] = max(crude, _over_corners(alpha, w, radius, n_pos, k, level, slope))
        best = 0
        for f in range(d):
            error[f] += alpha * radius[f] * radius[f]
            if error[f] > error[best]:
                best = f
        split[b] = best


@kernel
def _one_user(
    X, scores, start, middle, stop, k, m, clipped, scale, radius,
    first_row, level, slope, safe, chosen,
    n_open, open_row, open_level, open_slope, error,
):  # fmt: skip
    """Linear minorants of each positive's loss; pairs with a free weight are listed, not added."""
    d = radius.size
    top = middle + increasing_order(-scores[middle:stop])[:m]
    n = middle - start
    losses = np.zeros(n)
    edge = np.empty(d)
    for i in range(n):
        row = first_row + i
        level[row] = 0.0
        slope[row] = 0.0
        safe[row] = 0.0
        for j in top:
            z = scores[start + i] - scores[j]
            reach = 0.0
            for f in range(d):
                edge[f] = X[start + i, f] - X[j, f]
                reach += radius[f] * abs(edge[f])
            least, most = z - reach, z + reach
            loss = max(0.0, 1.0 - z)
            losses[i] += min(1.0, loss) if clipped else loss
            worst = max(0.0, 1.0 - most)
            safe[row] += scale * (min(1.0, worst) if clipped else worst)
            # minorant over the box: weight * (height - fall * (z' - z)), weight in [0, 1] if free
            free = False
            if least >= 1.0:
                continue
            if clipped and most <= 0.0:
                level[row] += scale
                continue
            if clipped and least < 0.0:
                if most <= 1.0:
                    fall = most / (most - least)
                else:
                    fall = 1.0 / (1.0 - least)
                    free = True
                height = 1.0 - fall * (z - least)
            else:
                fall, height = 1.0, 1.0 - z
                free = most > 1.0
            if free or (clipped and least < 0.0):
                for f in range(d):
                    error[f] += scale * radius[f] * abs(edge[f])
            if free:
                open_row[n_open] = row
                open_level[n_open] = scale * height
                for f in range(d):
                    open_slope[n_open, f] = -scale * fall * edge[f]
                n_open += 1
            else:
                level[row] += scale * height
                for f in range(d):
                    slope[row, f] -= scale * fall * edge[f]
    beta = min(n, k)
    order = increasing_order(losses)
    value = 0.0
    for r in range(n):
        chosen[first_row + order[r]] = r < beta
        if r < beta:
            value += scale * losses[order[r]]
    ordered = safe[first_row : first_row + n].copy()
    sort(ordered, np.empty(n))
    bound = np.sum(ordered[:beta])
    return n_open, value, bound


@kernel
def _choose_weights(
    gradient, radius, level, slope, chosen, n_open, open_row, open_level, open_slope, weight
):  # fmt: skip
    """Weights of the free pairs that make the bound high: those at the centre's positives.

    For fixed positives the bound over the box is ``sum_m t_m b_m - sum_f r_f |g_f(t)|`` plus a
    constant; its smooth relatives ``sum_m t_m b_m - sum_f (r_f g_f(t))^2 / (2 mu)`` are maximised
    by coordinate ascent, for a few mu, and the best outcome is kept.
    """
    d = radius.size
    for row in range(level.size):
        if chosen[row]:
            gradient = gradient + slope[row]
    trial = np.empty(n_open)
    total = 0.0
    for m in range(n_open):
        trial[m] = 1.0 if open_level[m] > 0.0 else 0.0
        weight[m] = trial[m]
        if chosen[open_row[m]]:
            gradient = gradient + trial[m] * open_slope[m]
            total += trial[m] * open_level[m]
    spread = np.sum(radius * np.abs(gradient))
    best = total - spread
    for penalty in _PENALTIES:
        mu = penalty * spread + 1e-300
        for _ in range(_SWEEPS):
            for m in range(n_open):
                if not chosen[open_row[m]]:
                    continue
                pull, curvature = open_level[m], 1e-300
                for f in range(d):
                    step = radius[f] * open_slope[m, f]
                    pull -= step * radius[f] * gradient[f] / mu
                    curvature += step * step / mu
                new = min(1.0, max(0.0, trial[m] + pull / curvature))
                move = new - trial[m]
                if move != 0.0:
                    trial[m] = new
                    total += move * open_level[m]
                    for f in range(d):
                        gradient[f] += move * open_slope[m, f]
        bound = total - np.sum(radius * np.abs(gradient))
        if bound > best:
            best = bound
            weight[:n_open] = trial


@kernel
def _over_corners(alpha, w, radius, n_pos, k, level, slope):
    """Smallest value over the box's corners of the concave minorant."""
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
