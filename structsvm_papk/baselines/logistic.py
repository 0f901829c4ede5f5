"""Logistic regression of relevance on the features, pooled or centred within users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from structsvm_papk._types import Callback
from structsvm_papk.baselines.cross_entropy import CrossEntropy
from structsvm_papk.baselines.recording import Recorder
from structsvm_papk.errors import InputError

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData
    from structsvm_papk.solvers.result import SolverResult


@dataclass(frozen=True)
class Logistic:
    """``alpha/2 ||w||^2 + mean_r log(1 + exp(-y_r (w.x_r + b)))`` over all rows, y = +-1.

    `centred`: each user's mean is taken off the features first (dense ones only); `equal_users`:
    every user weighs the same, instead of every row.
    """

    alpha: float = 1e-4
    centred: bool = False
    equal_users: bool = False
    max_iter: int = 100

    def __post_init__(self) -> None:
        if not self.alpha >= 0 or not np.isfinite(self.alpha):
            raise InputError(f"alpha must be a non-negative number, got {self.alpha!r}")

    def solve(
        self, data: RankingData, k: int | None = None, callback: Callback | None = None
    ) -> SolverResult:
        """Fit on `RankingData`; k is not used."""
        X = data.X[data.rows]
        if self.centred:
            if sparse.issparse(X):
                raise InputError("centred logistic regression needs dense features")
            means = np.add.reduceat(X, data.indptr[:-1]) / data.sizes[:, None]
            X = X - np.repeat(means, data.sizes, axis=0)
        weights = np.repeat(1.0 / (data.n_users * data.sizes), data.sizes)
        loss = CrossEntropy(X, data.labels, self.alpha, weights if self.equal_users else None)
        record = Recorder(callback)

        def step(intermediate_result):
            if record.add(intermediate_result.fun, len(record.history) + 1):
                raise StopIteration

        point, value = loss.fit(max_iter=self.max_iter, callback=step)
        return record.result(point[:-1], value, self.alpha)
