"""Whether 0 lies in the subdifferential K at w = 0: the test for convex risks, see `zero_test`.

The steepest descent from 0 solves ``min_v ||v||^2 / 2 + D(v) = -dist(0, K)^2 / 2`` with D the
support function of K, so the package's own bundle is the test: it meets a v with ``D(v) < 0``, or
its cuts hold the point of K that is nearest to 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

import numpy as np
from scipy import sparse
from scipy.optimize import nnls

from structsvm_papk._rounding import EPS
from structsvm_papk._types import Array
from structsvm_papk.data.columns.units import scale_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.list_risk import ListRisk, runs_of_users
from structsvm_papk.solvers.cut_model import default_blocks
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.solvers.solver import Progress

_SUM_ROUNDING = 64 * EPS  # of a slope, relative to the entries that it is made of
_FEW_FEATURES = 500  # up to which directions are scaled, not features only
_SAMPLE_ENTRIES = 1 << 21
_LEAST_SPREAD = 1e-14  # of a direction, squared and relative to the largest
_TOL = 1e-9  # of the bundle; the least squares give the digits that are missing
_CLOSE = 1e-5  # of the squared distance, where it is the distance that counts
_LEAST = 1e-12
_MAX_ITER = 60
_MORE_SLOPES = 500  # after the bundle, one at a time
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
    """The support points of K, as sums over blocks of users: gradients at tiny w.

    How tiny: let all scores be within s of 0. For TS, beta thresholds ``p - 1`` come first, then
    the others, ``p``. A pooled block of a of the former and b of the latter has its mean within s
    of ``-a/(a+b)``; the next threshold on its left is below that, and the next one on its right
    above, as soon as ``2 s < min(a, b)/(a+b)``, which is at least 1/n_pos. So all of them pool, at
    a threshold of ``mean(p) - beta/n_pos``, and a negative is above it if ``2 s < 1/n_pos``: all
    pairs count, which makes the slope n_pos/beta times that of Avg. The other hinges are active as
    soon as ``2 s < 1``. A tenth of what that allows is taken.
    """

    def __init__(self, risk: ListRisk) -> None:
        n_blocks = min(default_blocks(risk), 2 * risk.n_features + 32)  # few, for least squares
        bounds = runs_of_users(risk.data, n_blocks)
        self.risk = ListRisk(risk.surrogate, risk.data, bounds, risk.n_threads)
        self.small = 0.05 / risk.data.n_pos.max()

    def __call__(self, w: Array) -> Array:
        """What each block adds to a support point, shape (n_blocks, n_features)."""
        scores = self.risk.scores(w)
        largest = np.abs(scores).max()
        if largest > 0.0:
            scores *= self.small / largest
        return self.risk.slopes(self.risk.user_values(scores)[1])

    def fall(self, w: Array) -> float:
        """``-D(w)``."""
        return float(-self(w).sum(axis=0) @ w)


def convex_test(
    risk: ListRisk, tol: float, coordinates: Coordinates | None = None, with_distance: bool = False
) -> ZeroTest:
    """Whether 0 is in K; `with_distance`, also how far it is where it is not."""
    coordinates = coordinates or Coordinates(risk.data)
    slopes = Slopes(risk)
    noise = rounding_of(risk)
    nearest = _nearest(coordinates.of(slopes), risk.n_features, coordinates.noise(noise))
    if nearest.direction is not None:
        w = coordinates.T @ nearest.direction
        w /= np.linalg.norm(w)
        test = ZeroTest(Verdict.INFORMATIVE, np.nan, slopes.fall(w), w)
        return _with_distance(slopes, test, w) if with_distance else test
    distance = float(np.linalg.norm(coordinates.back(nearest.point)))
    scale = float(np.linalg.norm(coordinates.back(nearest.first)))
    inside = np.linalg.norm(nearest.point) <= 10 * tol * np.linalg.norm(nearest.first)
    inside &= distance <= 10 * tol * scale
    inside &= (noise <= 10 * tol * coordinates.scale).all()  # otherwise X has too few digits
    return ZeroTest(Verdict.DEGENERATE if inside else Verdict.UNDECIDED, distance, 0.0)


def rounding_of(risk: ListRisk) -> Array:
    """Bound of the rounding error of each entry of a slope: sums of multiples of rows of X."""
    data = risk.data
    heaviest = (data.n_pos / np.minimum(data.n_pos, risk.surrogate.k)).max()
    return _SUM_ROUNDING * 2 * heaviest * np.abs(data.units.of_columns(data.spread().largest))


class Coordinates:
    """Coordinates ``T'x`` of subgradients x that suit the data.

    Every feature is divided by its spread within users; then, unless there are too many features,
    the directions of a sample's correlation matrix by theirs, as far as the digits of X reach.
    """

    def __init__(self, data: RankingData) -> None:
        rows = _sample(data)
        scale = scale_of(data.units.deviation(data.deviation()))
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
    every_user = 1
    every_row = step
    if data.n_users > step:
        every_user = step
        every_row = 1
    parts = []
    for u in range(0, data.n_users, every_user):
        rows = data.columns.take(data.rows[data.indptr[u] : data.indptr[u + 1] : every_row])
        divided = data.units.of_columns(rows.toarray())
        parts.append(divided - divided.mean(axis=0))
    return np.vstack(parts)


class _SlopeOracle(BlockOracle):
    """``1 + D``, D in units of its first slope."""

    def __init__(self, slopes: Callable[[Array], Array], n_features: int) -> None:
        self.slopes = slopes
        self.n_features = n_features
        self.at_zero = slopes(np.zeros(n_features))
        self.n_blocks = self.at_zero.shape[0]
        self.first = self.at_zero.sum(axis=0)
        self.scale = float(np.linalg.norm(self.first)) or 1.0
        self.offsets = np.full(self.n_blocks, 1.0 / self.n_blocks)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        slopes = (self.slopes(w) if w.any() else self.at_zero) / self.scale
        return slopes @ w + self.offsets, slopes

    def cuts(self, w: Array) -> Cuts:
        values, slopes = self.blocks(w)
        return Cuts(float(values.sum()), slopes, self.offsets, w, np.zeros(values.size))


@dataclass(frozen=True)
class _Nearest:
    """A point of K near 0, the first slope, and a w with ``D(w) < 0`` where one was met."""

    point: Array
    first: Array
    direction: Array | None = None


def _nearest(slopes: Callable[[Array], Array], n_features: int, noise: Array) -> _Nearest:
    """Slopes at the nearest point of those so far, as after Wolfe (Mathematical Programming 11,
    1976), until it separates 0 from K or comes no nearer. Of several blocks the bundle, which
    needs fewer slopes, comes first; of one user, alone, it takes longer than that.
    """
    oracle = _SlopeOracle(slopes, n_features)

    def falls(w: Array, slope: Array) -> bool:
        return bool(oracle.scale * slope @ w < -noise @ np.abs(w))

    def descends(progress: Progress) -> bool:
        return progress.objective < 1.0 - _TOL

    rows = oracle.at_zero / oracle.scale
    block = np.arange(oracle.n_blocks)
    if oracle.n_blocks > 1:
        result = CuttingPlane(1.0, tol=_TOL, max_iter=_MAX_ITER).solve(oracle, callback=descends)
        if falls(result.w, oracle.blocks(result.w)[1].sum(axis=0)):
            return _Nearest(oracle.first, oracle.first, result.w)
        assert result.cuts is not None
        rows, _, block = result.cuts
    distance = np.inf
    for _ in range(_MORE_SLOPES):
        weights = _smallest(rows, block)
        point = weights @ rows
        nearer = float(np.linalg.norm(point))
        if not nearer < distance * (1 - 1e-9):
            break
        distance = nearer
        if distance <= _LEAST:
            break
        new = oracle.blocks(-point)[1]
        if falls(-point, new.sum(axis=0)):
            return _Nearest(oracle.scale * point, oracle.first, -point)
        rows = np.vstack([rows[weights > 0.0], new])
        block = np.concatenate([block[weights > 0.0], np.arange(oracle.n_blocks)])
    return _Nearest(oracle.scale * point, oracle.first)


def _with_distance(slopes: Slopes, test: ZeroTest, start: Array) -> ZeroTest:
    """An informative test with the distance, and with a steeper direction where one was met.

    The optimum is ``1 - dist(0, K)^2 / 2`` in units of the first slope, so that the bundle's bound
    of it is one of the distance.
    """
    oracle = _SlopeOracle(slopes, start.size)
    fall = test.lower_bound / oracle.scale  # at most the distance
    solver = CuttingPlane(1.0, tol=max(_CLOSE * fall**2 / 2, _LEAST), max_iter=2 * _MAX_ITER)
    result = solver.solve(oracle, fall * start)
    distance = float(oracle.scale * np.sqrt(max(2.0 * (1.0 - result.lower_bound), 0.0)))
    if result.w.any():
        w = result.w / np.linalg.norm(result.w)
        if (steeper := slopes.fall(w)) > test.lower_bound:
            test = ZeroTest(Verdict.INFORMATIVE, distance, steeper, w)
    return replace(test, distance=max(distance, test.lower_bound))


def _smallest(slopes: Array, block: Array) -> Array:
    """Weights of the point of smallest norm among sums of a convex combination for each block."""
    sums = (block == np.unique(block)[:, None]).astype(float)
    system = np.vstack([slopes.T, _SUMS * sums])
    target = np.concatenate([np.zeros(slopes.shape[1]), np.full(sums.shape[0], _SUMS)])
    weights, _ = nnls(system, target, maxiter=10 * block.size)
    total: Array = (sums * weights).sum(axis=1) @ sums
    return weights / total
