"""Whether zero is in the subdifferential at 0, by cutting planes over blocks of users.

The steepest descent from 0 solves ``min_v ||v||^2 / 2 + D(v) = -dist(0, K)^2 / 2``, with a cut for
each block of users and evaluation. A point with ``D(v) < 0`` is a way down.
Otherwise the cuts that are left hold K's point of smallest norm: non-negative least squares finds
their weights to the last digits. That takes some ten evaluations where one support point a step
takes hundreds; what stays undecided is left to `min_norm`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from structsvm_papk._types import Array
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.solvers.result import Progress

_TOL = 1e-9  # of the bundle; the least squares give the digits that are missing
_CLOSE = 1e-5  # of the squared distance, where it is the distance that counts
_LEAST = 1e-12
_MAX_ITER = 60
_SUMS = 1e3  # weight of the sums of a block's weights in the least squares, beside slopes of 1


@dataclass(frozen=True)
class Answer:
    """A `direction` in which D falls beyond rounding, or a `point` of K near 0; `first` slope."""

    direction: Array | None
    point: Array | None
    first: Array


class _Slope(BlockOracle):
    """``1 + D``, D in units of its first slope."""

    def __init__(self, slopes: Callable[[Array], Array], n_features: int) -> None:
        self.slopes, self.n_features = slopes, n_features
        self.at_zero = slopes(np.zeros(n_features))
        self.n_blocks, self.first = self.at_zero.shape[0], self.at_zero.sum(axis=0)
        self.scale = float(np.linalg.norm(self.first)) or 1.0
        self.offsets = np.full(self.n_blocks, 1.0 / self.n_blocks)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        slopes = (self.slopes(w) if w.any() else self.at_zero) / self.scale
        return slopes @ w + self.offsets, slopes

    def cuts(self, w: Array) -> Cuts:
        values, slopes = self.blocks(w)
        return Cuts(float(values.sum()), slopes, self.offsets, w, np.zeros(values.size))


def bundle_test(slopes: Callable[[Array], Array], n_features: int, noise: Array) -> Answer:
    """Look for a direction of descent, and for zero in K where there is none.

    `slopes` gives those of the blocks at a direction, (n_blocks, n_features), whose sum is a
    support point of K; `noise` is the rounding error of each entry of a support point.
    """
    oracle = _Slope(slopes, n_features)

    def descends(progress: Progress) -> bool:
        return progress.objective < 1.0 - _TOL

    result = CuttingPlane(1.0, tol=_TOL, max_iter=_MAX_ITER).solve(oracle, callback=descends)
    w = result.w
    if slopes(w).sum(axis=0) @ w < -noise @ np.abs(w):
        return Answer(w / np.linalg.norm(w), None, oracle.first)
    assert result.cuts is not None
    slopes_of_cuts, _, block = result.cuts
    return Answer(None, oracle.scale * _smallest(slopes_of_cuts, block), oracle.first)


def distance_from_zero(slopes: Callable[[Array], Array], start: Array) -> tuple[float, Array]:
    """The distance of 0 from K, from above, and the steepest direction of descent that was met.

    The optimum is ``1 - dist(0, K)^2 / 2`` in units of the first slope, so that the bundle's bound
    of it is one of the distance. `start` is a unit vector along which D is negative.
    """
    oracle = _Slope(slopes, start.size)
    fall = max(-slopes(start).sum(axis=0) @ start, 0.0) / oracle.scale  # at most the distance
    solver = CuttingPlane(1.0, tol=max(_CLOSE * fall**2 / 2, _LEAST), max_iter=2 * _MAX_ITER)
    result = solver.solve(oracle, fall * start)
    distance = oracle.scale * np.sqrt(max(2.0 * (1.0 - result.lower_bound), 0.0))
    return float(distance), result.w


def _smallest(slopes: Array, block: Array) -> Array:
    """The point of smallest norm among sums of one convex combination for each block."""
    sums = (block == np.unique(block)[:, None]).astype(float)
    system = np.vstack([slopes.T, _SUMS * sums])
    target = np.concatenate([np.zeros(slopes.shape[1]), np.full(sums.shape[0], _SUMS)])
    weights, _ = nnls(system, target, maxiter=10 * block.size)
    weights /= (sums * weights).sum(axis=1) @ sums
    point: Array = weights @ slopes
    return point
