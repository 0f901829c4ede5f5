"""Oracles of a user's own with exact optima: sums of piecewise linear functions of one feature.

    R(w) = sum_f sum_j max_i (a_fji w_f + b_fji),   F(w) = alpha/2 ||w||^2 + R(w)

Values are computed as fractions and rounded once, slopes are exact. F falls apart into features, so
that its minimum is a fraction too; the solvers see blocks that mix features, slopes over twelve
orders of magnitude, and sums in which nearly all digits cancel.
"""

import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np

from structsvm_papk import CuttingPlane
from structsvm_papk.solvers.oracle import BlockOracle

_TOL = 1e-6


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


def draw(rng):
    """An oracle and an alpha."""
    shape = int(rng.integers(1, 5)), int(rng.integers(2, 30)), int(rng.integers(1, 4))
    slopes = rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6, (*shape[:2], 1))
    kind = str(rng.choice(["many magnitudes", "cancelling", "equal"]))
    alpha = 10.0 ** rng.uniform(-10, 3)
    if kind != "many magnitudes":
        half = shape[1] // 2
        slopes[:, half : 2 * half] = -slopes[:, :half]
        small = np.spacing(np.abs(slopes).max(axis=1)) * rng.uniform(0.1, 3.0, (shape[0], shape[2]))
        slopes[:, -1] = small if kind == "cancelling" else small * 10.0 ** rng.uniform(0, 14)
        alpha = float(np.mean(slopes[:, -1] ** 2)) * 10.0 ** rng.uniform(-2, 3)
    heights = rng.uniform(0, 2, shape) / (shape[0] * shape[1])
    return Pieces(slopes, heights), alpha, f"own oracle {shape} {kind} alpha={alpha:.1e}"


def check(rng, report):
    """Solve one oracle by the two methods that ask for cuts only, and judge the answers."""
    oracle, alpha, words = draw(rng)
    report.describe(words)
    optimum = oracle.optimum(alpha)
    for method in ("bundle", "one_slack"):
        solver = CuttingPlane(alpha, _TOL, max_iter=25, method=method, qp_solver="blocks")
        start = rng.normal(size=oracle.n_features) * 10.0 ** rng.uniform(-6, 6)
        report.count(f"runs: own oracle, {method}")
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            try:
                result = solver.solve(oracle, start if rng.random() < 0.3 else None)
            except Exception as error:
                report.crash(f"own oracle, {method}", error)
                continue
        report.count(f"status: own oracle {result.status}")
        _judge(oracle, alpha, result, optimum, method, report)


def _judge(oracle, alpha, result, optimum, method, report):
    value = oracle.objective(alpha, result.w)
    if result.lower_bound > -np.inf:
        report.count("bounds of own oracles")
        if Fraction(result.lower_bound) > optimum:
            excess = float(Fraction(result.lower_bound) - optimum)
            report.add(
                "false bound", f"own oracle, {method}",
                f"{result.lower_bound:.17g} is {excess:.3g} above the optimum; {result.status}",
            )  # fmt: skip
    scale = max(float(value), 1e-3)
    size = np.abs(oracle.blocks(result.w)[0]).sum() + alpha / 2 * (result.w @ result.w)
    off = abs(float(value - Fraction(result.objective)))
    if off > 2.0**-52 * (oracle.n_blocks + 4) * size:
        report.add("objective is not that of the point", f"own oracle, {method}", f"{off:.3g}")
    if result.status == "inconsistent":
        report.add("a convex risk is called inconsistent", f"own oracle, {method}", "")
    if result.converged and float(value - optimum) > 2 * _TOL * scale:
        report.add("converged, but is not optimal", f"own oracle, {method}", str(result.status))
