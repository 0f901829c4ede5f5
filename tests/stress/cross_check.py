"""The certified optimum against independent solvers, on seeded small instances.

    python tests/stress/cross_check.py --problems 400 --json tests/stress/results/cross_check.json

Each instance is solved by all three methods of the cutting plane, by ascent on the dual (of data
in memory and in two partitions), in rational arithmetic (`exact_optimum`), by two QP solvers on the
problem written in full (every pair of every user, through cvxpy), and by a long averaged
subgradient run. Deviations are ``|F - F_exact| / max(F_exact, 1e-3)``. A violation is a certified
lower bound above the exact optimum, compared as fractions, or above what the subgradient run
reached; there must be none.
"""

import sys
import warnings
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from exact_optimum import ExactRisk, minimise, objective
from searching import main

from structsvm_papk import CuttingPlane, DualAscent, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.surrogates import CONVEX

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.problems import partitioned, written_in_full

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e2)
METHODS = {"bundle": 1e-9, "line_search": 1e-7, "one_slack": 1e-7}
QP_SOLVERS = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "PIQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "eps_duality_gap_abs": 1e-10},
}
FAMILIES = ("normal", "tied", "duplicated", "one_positive", "few_negatives", "uneven", "one_user")
_ROUNDING = 1e-12  # of an objective evaluated in floating point, whose terms may cancel
_STRONG = 0.1  # below, the subgradient run is far from its end: only the bound is held against it
_STEPS = 3000  # of the subgradient run
_EPOCHS = 100  # of the ascent, which need not converge where there are so few features
_LARGEST = {
    "bundle": 1e-8,
    "ascent": 1e-8,
    "parts": 1e-8,
    "line_search": 1e-6,
    "one_slack": 1e-6,
    "CLARABEL": 1e-6,
    "PIQP": 1e-6,
}


def instance(family, seed):
    """Ranking data of a family, and k."""
    rng = np.random.default_rng([seed, FAMILIES.index(family)])
    k, d = int(rng.integers(1, 4)), int(rng.integers(1, 5))
    sizes = rng.integers(k + 2, k + 7, size=1 if family == "one_user" else 3)
    if family == "one_user":
        sizes = sizes + 6
    if family == "uneven":
        sizes[0] += 15
    n_pos = np.minimum(rng.integers(1, 5, size=sizes.size), sizes - k)
    if family == "one_positive":
        n_pos[:] = 1
    if family == "few_negatives":  # k = n_neg
        n_pos = sizes - k
    X = rng.normal(size=(sizes.sum(), d))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    y = np.arange(sizes.sum()) - np.repeat(indptr[:-1], sizes) < np.repeat(n_pos, sizes)
    X[y, 0] += rng.uniform(0.0, 2.0)
    if family == "tied":
        X = np.round(X)
    if family == "duplicated":
        X = X[rng.integers(0, X.shape[0] // 2, size=X.shape[0])]
    return RankingData(X, y, indptr), k


def averaged_subgradient(oracle, alpha, n_steps):
    """Weighted average of the iterates with steps ``2 / (alpha (t + 2))``; its objective.

    Lacoste-Julien, Schmidt and Bach, "A simpler approach to obtaining an O(1/t) convergence rate
    for the projected stochastic subgradient method" (2012).
    """
    w = average = np.zeros(oracle.n_features)
    for t in range(n_steps):
        w = w - 2.0 / (alpha * (t + 2)) * (alpha * w + oracle(w)[1])
        average = average + 2.0 / (t + 2) * (w - average)
    return alpha / 2 * (average @ average) + oracle(average)[0]


def check(seed, report, n_steps=_STEPS):
    """One instance; surrogate, alpha and family follow from its seed."""
    name, alpha = CONVEX[seed % len(CONVEX)], ALPHAS[seed // len(CONVEX) % len(ALPHAS)]
    family = FAMILIES[seed % len(FAMILIES)]
    report.describe(f"{name}, {family}, alpha {alpha:g}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a solver that is not sure is still compared
        solved, values, exact = solutions(name, family, seed, alpha, n_steps)
    for way, value in values.items():
        deviation = abs(float(Fraction(value) - exact.optimum)) / max(float(exact.optimum), 1e-3)
        report.measure(name, way, deviation)
        if deviation > _LARGEST.get(way, np.inf):
            report.add("far off", way, f"{deviation:.1e}")
    for way, result in solved.items():
        if not result.converged:
            report.count(f"not converged: {way}, {result.status}")
        for kind, figures in faults(result, exact):
            report.add(kind, way, figures)


@dataclass
class Exact:
    """The referee of one instance, and what the subgradient run reached."""

    risk: ExactRisk
    alpha: float
    optimum: Fraction
    descended: float


def solutions(name, family, seed, alpha, n_steps):
    """Results by method of the package, objectives of every way, and the exact optimum."""
    data, k = instance(family, seed)
    oracle = EmpiricalRisk(make_surrogate(name, k), data)
    solved = {
        method: CuttingPlane(alpha, tol=tol, method=method).solve(oracle)
        for method, tol in METHODS.items()
    }
    solved["ascent"] = DualAscent(alpha, tol=1e-9, max_iter=_EPOCHS, seed=seed).solve(oracle)
    parts = partitioned(oracle.surrogate, data, 2)
    solved["parts"] = CuttingPlane(alpha, tol=METHODS["bundle"]).solve(parts)
    risk = ExactRisk(name, k, oracle.data)
    _, optimum, _ = minimise(risk, alpha, solved["bundle"].w)
    values = {
        way: result.objective
        for way, result in solved.items()  # with few features and a small alpha ascent is slow
        if result.converged or way not in ("ascent", "parts")
    }
    for solver, options in QP_SOLVERS.items():
        problem = written_in_full(oracle, alpha)  # cvxpy cannot solve all of them a second time
        problem.solve(solver=solver, **options)
        if problem.status == "optimal":  # other answers are no opinion: they are counted
            values[solver] = problem.value
    descended = averaged_subgradient(oracle, alpha, n_steps)
    if alpha >= _STRONG:
        values["subgradient"] = descended
    return solved, values, Exact(risk, alpha, optimum, descended)


def faults(result, exact):
    """What contradicts a certificate: kind and figures."""
    bound = Fraction(result.lower_bound)
    reached = objective(exact.risk, exact.alpha, result.w)
    if bound > exact.optimum:
        yield "bound above the exact optimum", f"{float(bound - exact.optimum):.1e}"
    if bound > exact.descended:
        yield "bound above the subgradient run", f"{result.lower_bound - exact.descended:.1e}"
    if abs(Fraction(result.objective) - reached) > Fraction(_ROUNDING) * max(1, reached):
        yield "objective off", f"{float(Fraction(result.objective) - reached):.1e}"


if __name__ == "__main__":
    sys.exit(main(check, "cross_check.py", __doc__.partition("\n")[0]))
