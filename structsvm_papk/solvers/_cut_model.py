"""The cutting-plane model of a risk, and a dual point of it."""

import numpy as np
from numba import njit

_SWEEPS = 15
_FEW_BLOCKS = 8  # with fewer, coordinate steps crawl and the QP is small
_QP_ROUNDS = 4
ROUNDING = 4 * np.finfo(float).eps  # of a sum, relative to the sum of the absolute terms


class CutModel:
    """Cuts ``R_j(z) >= a_i . z + b_i`` of every block j, and a dual point of them.

    The variables are ``z = w``, or ``z = (w, s)`` for a risk ``R(w) = min_s sum_j R_j(w, s)``. The
    model is ``sum_j max_(cuts i of block j) (a_i . z + b_i)``. The dual point `theta` is
    non-negative and sums to 1 over each block; see `lower_bound`.

    Cuts live in slots that are reused; `order` lists the slots in use, block after block.

    Parameters
    ----------
    n_variables, n_blocks : int
    qp_solver : str
        cvxpy solver for the restricted problem.
    """

    def __init__(self, n_variables, n_blocks, qp_solver):
        from structsvm_papk.qp import RestrictedQP  # cvxpy takes a second to import

        self.n_blocks = n_blocks
        self.qp = RestrictedQP(qp_solver)
        self._slopes = np.empty((0, n_variables))
        self._intercepts = np.empty(0)
        self._block = np.empty(0, dtype=np.int64)
        self._theta = np.empty(0)
        self._idle = np.empty(0, dtype=np.int64)
        self.order = np.empty(0, dtype=np.int64)
        self.starts = np.zeros(n_blocks, dtype=np.int64)

    @property
    def size(self):
        """Number of cuts."""
        return self.order.size

    def active_cuts(self):
        """``(slopes, intercepts, blocks)`` of the cuts with dual weight: they make the bound."""
        slots = self.order[self._theta[self.order] > 0.0]
        return self._slopes[slots], self._intercepts[slots], self._block[slots]

    def add(self, slopes, intercepts, blocks):
        """Add cuts with dual weight zero, or one where their block had none."""
        slots = self._free_slots(intercepts.size)
        self._slopes[slots], self._intercepts[slots] = slopes, intercepts
        self._block[slots], self._idle[slots], self._theta[slots] = blocks, 0, 0.0
        self._list(np.concatenate([self.order, slots]))
        sums = np.add.reduceat(self._theta[self.order], self.starts)
        self._theta[self.order[self.starts[sums == 0.0]]] = 1.0

    def drop_idle(self, max_idle):
        """Drop the cuts that have had no dual weight for more than `max_idle` iterations."""
        active = self._theta[self.order] > 0.0
        self._idle[self.order] = np.where(active, 0, self._idle[self.order] + 1)
        keep = self._idle[self.order] <= max_idle
        if not keep.all():
            self._list(self.order[keep])

    def minimise(self, centre, curvature, target):
        """Improve the dual point for ``min_z sum_f curvature_f/2 (z_f - centre_f)^2 + model(z)``.

        Coordinate steps over the blocks first; where they do not reach the wanted accuracy, the
        restricted QP on the cuts that matter.

        Parameters
        ----------
        centre, curvature : ndarray of shape (n_variables,)
        target : float
            Wanted duality gap of this problem.

        Returns
        -------
        z : ndarray
            Minimiser that belongs to the dual point.
        inner_gap : float
            Duality gap that was reached.
        """
        z = self._primal(centre, curvature)
        inner_gap = np.inf
        if self.n_blocks >= _FEW_BLOCKS:
            inner_gap = block_sweeps(
                self._slopes,
                self._intercepts,
                self.order,
                self.starts,
                self._theta,
                z,
                1.0 / curvature,
                _SWEEPS,
                target,
            )
            z = self._primal(centre, curvature)
        for _ in range(_QP_ROUNDS):
            if inner_gap <= target or not self._solve_qp(z, centre, curvature, 0.5 * target):
                break
            z = self._primal(centre, curvature)
            inner_gap = self.inner_gap(z)
        return z, inner_gap

    def inner_gap(self, z):
        """``model(z)`` less its value at the dual point: zero where theta is optimal for z."""
        heights = self._heights(z)
        top = np.maximum.reduceat(heights, self.starts).sum()
        return top - heights @ self._theta[self.order]

    def value(self, z):
        """``model(z)``."""
        return np.maximum.reduceat(self._heights(z), self.starts).sum()

    def lower_bound(self, alpha, n_features, upper_bound):
        """Certified lower bound of ``min_w alpha/2 ||w||^2 + R(w)`` from the dual point.

        With ``g = A' theta`` it is ``b . theta - ||g_w||^2 / (2 alpha)``; where there is an s, it
        lies between 0 and the optimum, so ``min(0, g_s)`` times an upper bound of that is added.
        What rounding may have added to these sums is taken off.
        """
        theta = self._theta[self.order]
        slots = self.order[theta > 0.0]
        theta, slopes, intercepts = theta[theta > 0.0], self._slopes[slots], self._intercepts[slots]
        total = theta @ slopes
        slope, rest = total[:n_features], total[n_features:]
        least = np.minimum(rest, 0.0).sum() * upper_bound
        size = theta @ np.abs(intercepts) + np.abs(slope / alpha) @ (
            theta @ np.abs(slopes[:, :n_features])
        )
        bound = theta @ intercepts - slope @ slope / (2 * alpha) + least
        return bound - ROUNDING * size

    def _heights(self, z):
        return self._slopes[self.order] @ z + self._intercepts[self.order]

    def _primal(self, centre, curvature):
        return centre - self._theta[self.order] @ self._slopes[self.order] / curvature

    def _solve_qp(self, z, centre, curvature, tol):
        """Solve the restricted QP on the cuts with dual weight and the highest of each block."""
        heights = self._heights(z)
        tops = np.maximum.reduceat(heights, self.starts)
        block = self._block[self.order]
        chosen = (self._theta[self.order] > 0.0) | (heights >= tops[block])
        slots = self.order[chosen]
        shifted = self._intercepts[slots] + self._slopes[slots] @ centre
        found = self.qp.solve(
            self._slopes[slots] / np.sqrt(curvature), shifted, block[chosen], 1.0, tol
        )
        if found is None:
            return False
        self._theta[self.order] = 0.0
        self._theta[slots] = found
        return True

    def _free_slots(self, n):
        used = np.zeros(self._block.size, dtype=bool)
        used[self.order] = True
        free = np.flatnonzero(~used)
        if free.size < n:
            self._grow(max(n - free.size, self._block.size))
            free = np.concatenate([free, np.arange(used.size, self._block.size)])
        return free[:n]

    def _grow(self, extra):
        d = self._slopes.shape[1]
        self._slopes = np.concatenate([self._slopes, np.empty((extra, d))])
        self._intercepts = np.concatenate([self._intercepts, np.empty(extra)])
        self._block = np.concatenate([self._block, np.zeros(extra, dtype=np.int64)])
        self._theta = np.concatenate([self._theta, np.zeros(extra)])
        self._idle = np.concatenate([self._idle, np.zeros(extra, dtype=np.int64)])

    def _list(self, slots):
        self.order = slots[np.argsort(self._block[slots], kind="stable")]
        counts = np.bincount(self._block[self.order], minlength=self.n_blocks)
        self.starts = np.concatenate([[0], np.cumsum(counts)[:-1]])


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _height(slopes, intercepts, slot, z):
    total = intercepts[slot]
    row = slopes[slot]
    for f in range(z.size):
        total += row[f] * z[f]
    return total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
def _move(slopes, theta, low, high, fall, inverse, z):
    """Move dual weight from one cut of a block to another by an exact line search."""
    norm = 0.0
    for f in range(z.size):
        norm += inverse[f] * (slopes[high, f] - slopes[low, f]) ** 2
    step = theta[low]
    if norm * step > fall:
        step = fall / norm
        theta[low] -= step
    else:
        theta[low] = 0.0
    theta[high] += step
    for f in range(z.size):
        z[f] -= step * inverse[f] * (slopes[high, f] - slopes[low, f])


@njit(cache=True, nogil=True)
def block_sweeps(slopes, intercepts, order, starts, theta, z, inverse, max_sweeps, target):
    """Maximise the dual block by block with pairwise steps; return the last sweep's gap.

    `inverse` holds the inverse curvatures. Each visit moves weight from the lowest active cut of a
    block to its highest. `theta` and `z` are updated in place; stops after `max_sweeps` or when the
    gap falls to `target`.
    """
    heights = np.empty(order.size)
    gap = np.inf
    for _ in range(max_sweeps):
        gap = 0.0
        for j in range(starts.size):
            first = starts[j]
            last = starts[j + 1] if j + 1 < starts.size else order.size
            if last - first < 2:
                continue
            for visit in range(2):
                high, low, mean = first, -1, 0.0
                for i in range(first, last):
                    heights[i] = _height(slopes, intercepts, order[i], z)
                    if heights[i] > heights[high]:
                        high = i
                    if theta[order[i]] > 0.0:
                        mean += theta[order[i]] * heights[i]
                        if low < 0 or heights[i] < heights[low]:
                            low = i
                if visit == 0:
                    gap += heights[high] - mean
                if heights[high] <= heights[low]:
                    break
                _move(
                    slopes,
                    theta,
                    order[low],
                    order[high],
                    heights[high] - heights[low],
                    inverse,
                    z,
                )
        if gap <= target:
            break
    return gap
