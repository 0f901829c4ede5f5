"""Oracles of a user's own with exact optima: slopes over twelve orders of magnitude that cancel."""

import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np

from structsvm_papk import CuttingPlane

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.pieces import Pieces

_TOL = 1e-6


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
