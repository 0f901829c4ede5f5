"""How far the items of a user are apart, feature by feature and in all directions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.deviations import scale_of
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
        rows, self.scale = _sample(data), scale_of(data.divided(data.deviation()))
        scale = self.scale
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


def _dense(data: RankingData, positions: Array) -> Array:
    """Rows at list positions, as a dense array of doubles."""
    rows = data.X[data.rows[positions]]
    dense = rows.toarray() if sparse.issparse(rows) else rows
    return data.divided(dense.astype(np.float64))


def _sample(data: RankingData) -> Array:
    """Some rows, less the mean of their user's: whole users if possible, spread over the data."""
    wanted = max(1, _SAMPLE_ENTRIES // data.n_features)
    step = -(-data.rows.size // wanted)
    users = range(0, data.n_users, step) if data.n_users > step else range(data.n_users)
    stride = 1 if data.n_users > step else step
    parts = [np.arange(data.indptr[u], data.indptr[u + 1], stride) for u in users]
    return np.vstack([rows - rows.mean(axis=0) for rows in (_dense(data, part) for part in parts)])
