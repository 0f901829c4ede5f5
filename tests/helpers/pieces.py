"""A risk with an exact optimum: a sum of piecewise linear functions of one feature each.

    R(w) = sum_f sum_j max_i (a_fji w_f + b_fji),   F(w) = alpha/2 ||w||^2 + R(w)

Values are computed as fractions and rounded once, slopes are exact. F falls apart into features, so
that its minimum is a fraction too; the solvers see blocks that mix features.
"""

from fractions import Fraction
from itertools import pairwise

import numpy as np

from structsvm_papk.solvers.oracle import BlockOracle


class Pieces(BlockOracle):
    """R for ``slopes[f, j, i]`` and ``heights[f, j, i]``; block j holds the terms j of all f."""

    def __init__(self, slopes, heights):
        self.slopes, self.heights = slopes, heights
        self.n_features, self.n_blocks = slopes.shape[:2]
        self.lines = [
            [
                list(zip(map(Fraction, a), map(Fraction, b), strict=True))
                for a, b in zip(*term, strict=True)
            ]
            for term in zip(slopes.tolist(), heights.tolist(), strict=True)
        ]

    def blocks(self, w):
        values = [Fraction(0)] * self.n_blocks
        slopes = np.zeros((self.n_blocks, self.n_features))
        for f, terms in enumerate(self.lines):
            x = Fraction(float(w[f]))
            for j, lines in enumerate(terms):
                heights = [a * x + b for a, b in lines]
                best = heights.index(max(heights))
                values[j] += heights[best]
                slopes[j, f] = self.slopes[f, j, best]
        return np.array([float(value) for value in values]), slopes

    def objective(self, alpha, w):
        """F(w) as a fraction."""
        return sum(
            self._objective(terms, alpha, Fraction(float(x)))
            for terms, x in zip(self.lines, w, strict=True)
        )

    def optimum(self, alpha):
        """The least F as a fraction: features one by one."""
        return sum(min(self._candidates(terms, alpha)) for terms in self.lines)

    @staticmethod
    def _objective(terms, alpha, x):
        return Fraction(alpha) / 2 * x * x + sum(max(a * x + b for a, b in t) for t in terms)

    def _candidates(self, terms, alpha):
        """F at every corner, and at the minimum of every parabola between two of them."""
        corners = {Fraction(0)}
        for lines in terms:
            for i, (a, b) in enumerate(lines):
                corners |= {(d - b) / (a - c) for c, d in lines[:i] if c != a}
        corners = sorted(corners)
        between = [(low + high) / 2 for low, high in pairwise(corners)]
        for x in (corners[0] - 1, *between, corners[-1] + 1):
            slope = sum(max((a * x + b, a) for a, b in lines)[1] for lines in terms)
            yield self._objective(terms, alpha, -slope / Fraction(alpha))
        yield from (self._objective(terms, alpha, x) for x in corners)
