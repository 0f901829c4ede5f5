"""A risk with an exact optimum: a sum of piecewise linear functions of one feature each.

    R(w) = sum_f sum_j max_i (a_fji w_f + b_fji),   F(w) = alpha/2 ||w||^2 + R(w)

Values are computed as fractions and rounded once, slopes are exact; the solvers see blocks that mix
features.
"""

import numpy as np

from helpers.exact_risk import fractions, minimise
from structsvm_papk.solvers.oracle import BlockOracle


class PiecewiseLinear(BlockOracle):
    """R for ``slopes[f, j, i]`` and ``heights[f, j, i]``; block j holds the terms j of all f."""

    def __init__(self, slopes, heights):
        self.n_features, self.n_blocks = slopes.shape[:2]
        self.slopes, self.heights = fractions(slopes), fractions(heights)

    def _active(self, w):
        """Values and slopes of all terms at a w of fractions, shape (n_features, n_blocks)."""
        lines = self.slopes * w[:, None, None] + self.heights
        best = np.argmax(lines, axis=2)[:, :, None]
        pair = (np.take_along_axis(each, best, 2)[:, :, 0] for each in (lines, self.slopes))
        return tuple(pair)

    def blocks(self, w):
        values, slopes = self._active(fractions(w))
        return values.sum(axis=0).astype(float), slopes.T.astype(float)

    def cut(self, w):
        """Slope and intercept of the piece of R at w, in fractions."""
        values, slopes = self._active(w)
        slope = slopes.sum(axis=1)
        return slope, values.sum() - slope @ w

    def value(self, w):
        """R(w) as a fraction."""
        return self._active(fractions(w))[0].sum()

    def optimum(self, alpha):
        """The least F as a fraction."""
        return minimise(self.cut, alpha, np.zeros(self.n_features))
