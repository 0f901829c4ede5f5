"""Whether 0 lies in the subdifferential at w = 0: the test for convex risks, see `zero_test`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from structsvm_papk._types import Array
from structsvm_papk.data.column_scale import scale_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.solvers.result import Progress
from structsvm_papk.solvers.rounding import EPS

_SUM_ROUNDING = 64 * EPS  # of a slope, relative to the entries that it is made of
_ROUNDING = 1e-12
_FEW_FEATURES = 500  # up to which directions are scaled, not features only
_SAMPLE_ENTRIES = 1 << 21
_LEAST_SPREAD = 1e-14  # of a direction, squared and relative to the largest
_TOL = 1e-9  # of the bundle; the least squares give the digits that are missing
_CLOSE = 1e-5  # of the squared distance, where it is the distance that counts
_LEAST = 1e-12
_MAX_ITER = 60
_SUMS = 1e3  # weight of the sums of a block's weights in the least squares, beside slopes of 1


class Verdict(StrEnum):
    """Whether w = 0 is optimal; each answer but the last has a proof."""

    DEGENERATE = "degenerate"  # 0 is the exact minimiser for every alpha
    INFORMATIVE = "informative"  # a direction lowers the surrogate
    UNDECIDED = "undecided"  # no direction was found, and no proof that there is none


@dataclass(frozen=True)
class ZeroTest:
    """Whether w = 0 minimises one risk.

    Attributes
    ----------
    verdict : Verdict
    distance : float
        Distance of 0 from the subdifferential at 0, from above: the norm of an element of it. For
        the surrogates that are not convex, of that of Avg, Max or a majorant, see `diagnose`; nan
        where nothing was computed.
    lower_bound : float
        Of the distance: ``-D(direction)``, how fast the surrogate falls along `direction`.
    direction : ndarray or None
        Unit vector along which the surrogate falls from 0.
    """

    verdict: Verdict
    distance: float
    lower_bound: float
    direction: Array | None = field(default=None, repr=False)


class Slopes:
    """The support points of the subdifferential at 0: gradients at tiny w.

    How tiny: let all scores be within s of 0. For TS, beta thresholds ``p - 1`` come first, then
    the others, ``p``. A pooled block of a of the former and b of the latter has its mean within s
    of ``-a/(a+b)``; the next threshold on its left is below that, and the next one on its right
    above, as soon as ``2 s < min(a, b)/(a+b)``, which is at least 1/n_pos. So all of them pool, at
    a threshold of ``mean(p) - beta/n_pos``, and a negative is above it if ``2 s < 1/n_pos``: all
    pairs count, which makes the slope n_pos/beta times that of Avg. The other hinges are active as
    soon as ``2 s < 1``. A tenth of what that allows is taken.
    """

    def __init__(self, risk: ListRisk) -> None:
        self.risk = risk
        self.n_features = risk.n_features
        self.small = 0.05 / risk.data.n_pos.max()

    def __call__(self, w: Array) -> Array:
        """A support point, shape (n_features,)."""
        return self.of_blocks(w).sum(axis=0)

    def of_blocks(self, w: Array) -> Array:
        """What each block adds to a support point, shape (n_blocks, n_features)."""
        scores = self.risk.scores(w)
        largest = np.abs(scores).max()
        if largest > 0.0:
            scores *= self.small / largest
        return self.risk.slopes(self.risk.user_values(scores)[1])


def convex_test(
    slopes: Slopes,
    tol: float,
    coordinates: Coordinates | None = None,
    max_iter: int | None = None,
    any_direction: bool = False,
) -> ZeroTest:
    """Whether 0 is in the subdifferential; a second look in other coordinates where it seems so."""
    noise = rounding_of(slopes.risk)
    how: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "any_direction": any_direction}
    nearest = min_norm_point(slopes, slopes.n_features, noise=noise, **how)
    if nearest.direction is not None:
        fall = nearest.lower_bound
        w = nearest.direction
        return ZeroTest(Verdict.INFORMATIVE, nearest.distance, fall, w)
    there = coordinates or Coordinates(slopes.risk.data)
    scaled_noise = there.noise(noise)
    again = min_norm_point(there.of(slopes), slopes.n_features, noise=scaled_noise, **how)
    if again.direction is not None:
        w = there.T @ again.direction
        norm = float(np.linalg.norm(w))
        fall = again.lower_bound / norm
        return ZeroTest(Verdict.INFORMATIVE, nearest.distance, fall, w / norm)
    inside = all(one.distance <= 10 * tol * one.scale for one in (nearest, again))
    inside &= bool((noise <= 10 * tol * there.scale).all())  # otherwise X has too few digits
    verdict = Verdict.DEGENERATE if inside else Verdict.UNDECIDED
    return ZeroTest(verdict, nearest.distance, 0.0)


def rounding_of(risk: ListRisk) -> Array:
    """Bound of the rounding error of each entry of a slope: sums of multiples of rows of X."""
    data = risk.data
    heaviest = (data.n_pos / np.minimum(data.n_pos, risk.surrogate.k)).max()
    return _SUM_ROUNDING * 2 * heaviest * data.divided(data.spread().largest)


class NearestPoint(NamedTuple):
    """Bounds of the distance of 0 from K.

    `direction` is a unit vector w with ``max_{v in K} v . w = -lower_bound < 0``, or None; `scale`
    the largest norm of a support point.
    """

    distance: float
    lower_bound: float
    direction: Array | None
    scale: float


def min_norm_point(
    lmo: Callable[[Array], Array],
    n_features: int,
    tol: float = 1e-9,
    max_iter: int | None = None,
    noise: float | Array = 0.0,
    any_direction: bool = False,
) -> NearestPoint:
    """The point of smallest norm in K = conv(V), which is known by ``lmo(w) in argmax_V v . w``.

    After Wolfe (Mathematical Programming 11, 1976): x is the point of smallest norm in the hull of
    the support points that are kept. With ``v = lmo(-x)``, ``v . x / ||x|| <= dist(0, K) <= ||x||``
    and -x separates 0 from K as soon as ``v . x > 0``. It goes on to a difference of bounds of
    ``tol * scale``; with `any_direction` to the first that separates. The entries of support points
    are in error by up to `noise`; by default 2000 are asked for, and 20 more for each feature.
    """
    points = lmo(np.zeros(n_features))[None]
    x = points[0]
    lower = 0.0
    direction = None
    scale = np.linalg.norm(x)
    for _ in range((max_iter or 2000 + 20 * n_features) - 1):
        norm = np.linalg.norm(x)
        if norm - lower <= tol * scale:
            break
        vertex = lmo(-x)
        scale = max(scale, np.linalg.norm(vertex))
        height = vertex @ x / norm
        unsure = _ROUNDING * scale + np.sum(noise * np.abs(x)) / norm
        if height > max(lower, unsure):
            lower = height
            direction = -x / norm
            if any_direction:
                break
        if norm - height <= tol * scale:
            break
        points = np.vstack([points, vertex])
        weights = _smallest(points / scale, np.zeros(len(points)))
        points = points[weights > 0.0]
        weights = weights[weights > 0.0]
        nearer = weights @ points
        if nearer @ nearer >= x @ x:
            break
        x = nearer
    return NearestPoint(float(np.linalg.norm(x)), float(lower), direction, float(scale))


class Coordinates:
    """Coordinates ``T'x`` of subgradients x that suit the data.

    Every feature is divided by its spread within users; then, unless there are too many features,
    the directions of a sample's correlation matrix by theirs, as far as the digits of X reach.
    """

    def __init__(self, data: RankingData) -> None:
        rows = _sample(data)
        scale = scale_of(data.divided(data.deviation()))
        self.scale = scale
        self.T = sparse.diags_array(1.0 / scale)
        self._turns = False  # whether there are directions beside the features
        if scale.size <= _FEW_FEATURES:
            with np.errstate(over="ignore", invalid="ignore"):
                correlation = (rows / scale).T @ (rows / scale) / max(1, rows.shape[0])
            # rounding of a constant of 1e200 is larger than a square of it can be
            self._turns = bool(np.isfinite(correlation).all())
            if self._turns:
                spread, self._basis = np.linalg.eigh(correlation)
                floor = _LEAST_SPREAD * max(spread[-1], np.finfo(float).tiny)
                self._spread = np.sqrt(np.maximum(spread, floor))
                self.T = (self._basis / self._spread) / scale[:, None]

    def of(self, slopes: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Slopes (the last axis counts) in these coordinates, at directions in these."""
        return lambda w: slopes(self.T @ w) @ self.T

    def back(self, x: Array) -> Array:
        """A subgradient in the given coordinates."""
        turned = self._basis @ (self._spread * x) if self._turns else x
        return turned * self.scale  # T is a rotation between two scalings

    def noise(self, bound: Array) -> Array:
        """Bound of the rounding errors here, for one of them in the given coordinates."""
        return np.abs(self.T).T @ bound


def _sample(data: RankingData) -> Array:
    """Some rows, less the mean of their user's: whole users if possible, spread over the data."""
    wanted = max(1, _SAMPLE_ENTRIES // data.n_features)
    step = -(-data.rows.size // wanted)
    users = range(0, data.n_users, step) if data.n_users > step else range(data.n_users)
    stride = 1 if data.n_users > step else step
    parts = []
    for u in users:
        rows = data.X[data.rows[data.indptr[u] : data.indptr[u + 1] : stride]]
        dense = rows.toarray() if sparse.issparse(rows) else rows
        divided = data.divided(dense.astype(np.float64))
        parts.append(divided - divided.mean(axis=0))
    return np.vstack(parts)


class _Slope(BlockOracle):
    """``1 + D``, D in units of its first slope."""

    def __init__(self, slopes: Callable[[Array], Array], n_features: int) -> None:
        self.slopes = slopes
        self.n_features = n_features
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


def bundle_test(
    slopes: Callable[[Array], Array], n_features: int, noise: Array
) -> tuple[Any, Any, Array]:
    """A direction in which D falls beyond rounding, or a point of K near 0; the first slope.

    The steepest descent from 0 solves ``min_v ||v||^2 / 2 + D(v) = -dist(0, K)^2 / 2``, with a cut
    for each block of users and evaluation. Where no point has ``D(v) < 0``, the cuts that are left
    hold K's point of smallest norm, and non-negative least squares finds it. That takes some ten
    evaluations instead of the hundreds of `min_norm_point`, which decides what this leaves open.
    `slopes` gives those of the blocks, (n_blocks, n_features), with a support point of K for a sum.
    """
    oracle = _Slope(slopes, n_features)

    def descends(progress: Progress) -> bool:
        return progress.objective < 1.0 - _TOL

    result = CuttingPlane(1.0, tol=_TOL, max_iter=_MAX_ITER).solve(oracle, callback=descends)
    w = result.w
    if slopes(w).sum(axis=0) @ w < -noise @ np.abs(w):
        return w / np.linalg.norm(w), None, oracle.first
    assert result.cuts is not None
    slopes_of_cuts, _, block = result.cuts
    weights = _smallest(slopes_of_cuts, block)
    return None, oracle.scale * (weights @ slopes_of_cuts), oracle.first


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
    """Weights of the point of smallest norm among sums of a convex combination for each block."""
    sums = (block == np.unique(block)[:, None]).astype(float)
    system = np.vstack([slopes.T, _SUMS * sums])
    target = np.concatenate([np.zeros(slopes.shape[1]), np.full(sums.shape[0], _SUMS)])
    weights, _ = nnls(system, target, maxiter=10 * block.size)
    total: Array = (sums * weights).sum(axis=1) @ sums
    return weights / total
