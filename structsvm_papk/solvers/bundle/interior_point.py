"""An interior-point method for the restricted problem of a cutting-plane model with blocks.

    minimise over v, xi    1/2 ||v||^2 + sum_j xi_j
    subject to             a_i . v + b_i + s_i = xi_j,   s_i >= 0,   for every cut i of block j

with multipliers theta_i >= 0 that sum to 1 over each block. A general QP solver factorises systems
of size features + blocks; here every xi_j is eliminated by hand, so that a step costs one Cholesky
factorisation of size features, however many blocks there are. Mehrotra's predictor-corrector.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from structsvm_papk._types import Array

_MAX_STEPS = 50
_TO_BOUNDARY = 0.995
_PATIENCE = 5  # steps without progress before rounding is blamed


def solve(slopes: Array, intercepts: Array, starts: Array, tol: float) -> Array | None:
    """Multipliers whose certified duality gap is at most `tol`, or the best that were reached.

    Cuts stand block after block, from `starts` on; no block is empty.
    """
    state = _State(slopes, intercepts, starts)
    best, best_gap, stalled = None, np.inf, 0
    for _ in range(_MAX_STEPS):
        theta = onto_simplices(state.theta, starts)
        gap = duality_gap(theta, slopes, intercepts, starts)
        stalled = 0 if gap < 0.9 * best_gap else stalled + 1
        if gap < best_gap:
            best, best_gap = theta, gap
        if best_gap <= tol or stalled > _PATIENCE:
            break
        try:
            state.step()
        except (LinAlgError, ValueError):  # rounding has taken over: the best so far stands
            break
    return best


def duality_gap(theta: Array, slopes: Array, intercepts: Array, starts: Array) -> float:
    """Gap of a feasible theta: the primal objective at ``-A' theta`` less the dual one."""
    heights = intercepts - slopes @ (theta @ slopes)
    return np.maximum.reduceat(heights, starts).sum() - heights @ theta


def onto_simplices(theta: Array, starts: Array) -> Array:
    """Clip and rescale each block to a probability vector, uniform where nothing is left."""
    theta = np.maximum(theta, 0.0)
    sizes = np.diff(np.append(starts, theta.size))
    sums = np.add.reduceat(theta, starts)
    empty = np.repeat(sums <= 0.0, sizes)
    share = theta / np.repeat(np.where(sums > 0.0, sums, 1.0), sizes)
    return np.where(empty, 1.0 / np.repeat(sizes, sizes), share)


class _State:
    """Iterate (v, xi, slack, theta) and the block structure."""

    def __init__(self, slopes, intercepts, starts):
        self.slopes, self.intercepts, self.starts = slopes, intercepts, starts
        sizes = np.diff(np.append(starts, intercepts.size))
        self.block = np.repeat(np.arange(starts.size), sizes)
        self.theta = 1.0 / sizes[self.block]
        self.v = -(self.theta @ slopes)
        self.heights = slopes @ self.v + intercepts
        self.xi = np.maximum.reduceat(self.heights, starts)
        spread = self.xi[self.block] - self.heights
        room = max(spread.mean(), 1e-8 * (1.0 + np.abs(self.xi).max()))
        self.xi = self.xi + room
        self.slack = spread + room

    def sums(self, values):
        """Sum over the cuts of each block."""
        return np.add.reduceat(values, self.starts)

    def step(self):
        """One predictor-corrector step."""
        theta, slack = self.theta, self.slack
        system = _NewtonSystem(self)
        mean = theta @ slack / theta.size
        affine = system.solve(-theta * slack)
        theta_ahead = theta + _longest(theta, affine.theta) * affine.theta
        slack_ahead = slack + _longest(slack, affine.slack) * affine.slack
        centring = (theta_ahead @ slack_ahead / theta.size / mean) ** 3
        move = system.solve(centring * mean - theta * slack - affine.slack * affine.theta)
        length = min(_longest(theta, move.theta), _longest(slack, move.slack))
        self.v = self.v + length * move.v
        self.xi = self.xi + length * move.xi
        self.slack = slack + length * move.slack
        self.theta = theta + length * move.theta
        self.heights = self.heights + length * move.heights


class _Move:
    """A Newton direction."""

    def __init__(self, v, xi, slack, theta, heights):
        self.v, self.xi, self.slack, self.theta, self.heights = v, xi, slack, theta, heights


class _NewtonSystem:
    """The linear system at one iterate, with the slacks, multipliers and xi eliminated.

    With ratios r_i = theta_i / slack_i and their weighted mean cut of each block, what is left is
    ``I + sum_i r_i c_i c_i'`` for the centred cuts c_i. Centring before squaring matters:
    near the optimum the ratios differ by many orders of magnitude.
    """

    def __init__(self, state):
        self.state = state
        slopes = state.slopes
        self.ratio = state.theta / state.slack
        self.total = state.sums(self.ratio)
        share = self.ratio / self.total[state.block]
        self.mean = np.add.reduceat(share[:, None] * slopes, state.starts, axis=0)
        self.centred = slopes - self.mean[state.block]
        scaled = np.sqrt(self.ratio)[:, None] * self.centred
        matrix = scaled.T @ scaled
        matrix.flat[:: slopes.shape[1] + 1] += 1.0
        self.factor = cho_factor(matrix, overwrite_a=True, check_finite=True)
        self.dual_residual = state.v + state.theta @ slopes
        self.sum_residual = 1.0 - state.sums(state.theta)
        self.primal_residual = state.xi[state.block] - state.heights - state.slack

    def solve(self, complementarity):
        """Direction towards ``theta * slack`` changing by `complementarity` to first order."""
        state = self.state
        pull = complementarity / state.slack - self.ratio * self.primal_residual
        level = (state.sums(pull) - self.sum_residual) / self.total
        right = -self.dual_residual - pull @ self.centred - self.sum_residual @ self.mean
        v = cho_solve(self.factor, right, check_finite=False)
        relative = self.centred @ v
        rise = self.mean @ v
        slack = self.primal_residual + level[state.block] - relative
        theta = (complementarity - state.theta * slack) / state.slack
        return _Move(v, level + rise, slack, theta, relative + rise[state.block])


def _longest(values, direction):
    """Longest step in (0, 1] that keeps positive values positive."""
    return 1.0 / max(1.0, (-direction / values).max() / _TO_BOUNDARY)
