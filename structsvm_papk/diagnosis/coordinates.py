"""How far the items of a user are apart, feature by feature and in all directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData

_FEW_FEATURES = 500  # up to which directions are scaled, not features only
_SAMPLE_ENTRIES = 1 << 21
_LEAST_SPREAD = 1e-14  # of a direction, squared and relative to the largest


class Coordinates:
    """Coordinates ``T'x`` of subgradients x that suit the data.

    First every feature is divided by its spread within users; then, unless there are too many
    features, the directions of a sample's correlation matrix are by theirs. Directions with hardly
    any spread are enlarged as far as the digits of X reach. T may be any invertible matrix; a
    sample makes one that is good enough.
    """

    def __init__(self, data: RankingData) -> None:
        rows, spread = _sample(data), spread_within_users(data)
        self.scale = scale = np.where(spread > 0.0, spread, 1.0)
        self.T = sparse.diags_array(1.0 / scale)
        if scale.size <= _FEW_FEATURES:
            correlation = (rows / scale).T @ (rows / scale) / max(1, rows.shape[0])
            spread, basis = np.linalg.eigh(correlation)
            floor = _LEAST_SPREAD * max(spread[-1], np.finfo(float).tiny)
            self.T = (basis / np.sqrt(np.maximum(spread, floor))) / scale[:, None]

    def of(self, slopes: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """Slopes (the last axis counts) in these coordinates, at directions in these."""
        return lambda w: slopes(self.T @ w) @ self.T

    def back(self, x: Array) -> Array:
        """A subgradient in the given coordinates."""
        point: Array = x * self.scale if sparse.issparse(self.T) else np.linalg.solve(self.T.T, x)
        return point

    def noise(self, bound: Array) -> Array:
        """Bound of the rounding errors here, for one of them in the given coordinates."""
        noise: Array = np.abs(self.T).T @ bound
        return noise


def spread_within_users(data: RankingData) -> Array:
    """Root mean square of each feature less its mean within users; 0 for a constant one."""
    step = max(1, _SAMPLE_ENTRIES // data.n_features)
    pieces = [np.arange(a, b, step) for a, b in zip(data.indptr, data.indptr[1:], strict=False)]
    bounds = np.unique(np.concatenate([*pieces, data.indptr]))  # users, long ones in pieces
    total, first = np.zeros(data.n_features), 0
    while first < bounds.size - 1:
        last = np.searchsorted(bounds, bounds[first] + step, side="right") - 1
        part = bounds[first : max(last, first + 1) + 1]
        rows, starts = _dense(data, np.arange(part[0], part[-1])), part[:-1] - part[0]
        sizes = np.diff(part)
        rows -= np.repeat(rows[starts], sizes, axis=0)  # exactly 0 where a feature is constant
        rows -= np.repeat(np.add.reduceat(rows, starts) / sizes[:, None], sizes, axis=0)
        total += np.square(rows).sum(axis=0)
        first = max(last, first + 1)
    spread: Array = np.sqrt(total / data.rows.size)
    return spread


def _dense(data: RankingData, positions: Array) -> Array:
    """Rows at list positions, as a dense array of doubles."""
    rows = data.X[data.rows[positions]]
    dense: Array = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
    return dense


def _sample(data: RankingData) -> Array:
    """Some rows, less the mean of their user's: whole users if possible, spread over the data."""
    wanted = max(1, _SAMPLE_ENTRIES // data.n_features)
    step = -(-data.rows.size // wanted)
    users = range(0, data.n_users, step) if data.n_users > step else range(data.n_users)
    stride = 1 if data.n_users > step else step
    parts = [np.arange(data.indptr[u], data.indptr[u + 1], stride) for u in users]
    return np.vstack([rows - rows.mean(axis=0) for rows in (_dense(data, part) for part in parts)])
