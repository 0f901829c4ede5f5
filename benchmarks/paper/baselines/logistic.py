"""Logistic regression of relevance on the features, pooled or centred within users."""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.common import uncertified
from benchmarks.paper.baselines.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class Logistic:
    """``alpha/2 ||w||^2 + mean_r log(1 + exp(-y_r (w.x_r + b)))`` over all rows, y = +-1.

    `centred`: each user's mean is taken off the features first (dense ones only).
    """

    alpha: float = 1e-4
    centred: bool = False
    max_iter: int = 100

    def solve(self, data, k=None):
        """Fit on `RankingData`; k is not used."""
        X = data.X[data.rows]
        if self.centred:
            means = np.add.reduceat(X, data.indptr[:-1]) / data.sizes[:, None]
            X = X - np.repeat(means, data.sizes, axis=0)
        point, value = CrossEntropy(X, data.labels, self.alpha).fit(max_iter=self.max_iter)
        return uncertified(point[:-1], value, self.alpha)
