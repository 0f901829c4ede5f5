"""The certified optimum against independent solvers, on seeded small instances.

    python benchmarks/cross_check.py --instances 240

Each instance is solved by all three methods of the cutting plane, by two QP solvers on the problem
written in full (every pair of every user, through cvxpy), and by a long averaged subgradient run.
Deviations are ``|F - F_certified| / max(F_certified, 1e-3)``. A violation is a certified lower
bound above an objective that somebody reached; there must be none.
"""

import argparse
import sys
import time
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.surrogates import CONVEX

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from problems import written_in_full

ALPHAS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e2)
METHODS = {"bundle": 1e-9, "line_search": 1e-7, "one_slack": 1e-7}
QP_SOLVERS = {
    "CLARABEL": {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10},
    "PIQP": {"eps_abs": 1e-10, "eps_rel": 1e-10, "eps_duality_gap_abs": 1e-10},
}
FAMILIES = ("normal", "tied", "duplicated", "one_positive", "few_negatives", "uneven", "one_user")
_ROUNDING = 1e-10
_STRONG = 0.1  # below, the subgradient run is far from its end: only the bound is held against it
_LARGEST = {"line_search": 1e-6, "one_slack": 1e-6, "CLARABEL": 1e-6, "PIQP": 1e-6}


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


def check(name, family, seed, alpha, n_steps):
    """Deviation of every other way, and the violation of the certified bounds."""
    data, k = instance(family, seed)
    oracle = EmpiricalRisk(make_surrogate(name, k), data)
    solved = {
        method: CuttingPlane(alpha, tol=tol, method=method).solve(oracle)
        for method, tol in METHODS.items()
    }
    found = {method: result.objective for method, result in solved.items()}
    for solver, options in QP_SOLVERS.items():
        problem = written_in_full(oracle, alpha)  # cvxpy cannot solve all of them a second time
        problem.solve(solver=solver, **options)
        if problem.status == "optimal":  # other answers are no opinion: they are counted
            found[solver] = problem.value
    certified, descended = found.pop("bundle"), averaged_subgradient(oracle, alpha, n_steps)
    if alpha >= _STRONG:
        found["subgradient"] = descended
    scale = max(certified, 1e-3)
    deviations = {way: abs(value - certified) / scale for way, value in found.items()}
    reached = min(certified, found["line_search"], found["one_slack"], descended)
    bound = max(result.lower_bound for result in solved.values())
    return deviations, max(bound - reached, 0.0) / scale, solved


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=240)
    parser.add_argument("--steps", type=int, default=3000, help="of the subgradient run")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # a solver that is not sure of its answer is still compared
    rows, violation, unfinished, bad = defaultdict(list), 0.0, [], []
    started = time.perf_counter()
    for number in range(options.instances):
        name = CONVEX[number % len(CONVEX)]
        alpha = ALPHAS[number // len(CONVEX) % len(ALPHAS)]
        family = FAMILIES[number % len(FAMILIES)]
        case = (name, family, options.seed + number, alpha)
        deviations, violated, solved = check(*case, options.steps)
        for method, result in solved.items():
            if not result.converged:
                unfinished.append(f"{method} on {case}: {result.status}, gap {result.gap:.1e}")
        violation = max(violation, violated)
        wide = [way for way, limit in _LARGEST.items() if deviations.get(way, 0.0) > limit]
        if wide or violated > _ROUNDING:
            bad.append((case, wide, violated))
        for way, deviation in deviations.items():
            rows[name, way].append(deviation)
    report(rows, options.instances, time.perf_counter() - started)
    print(f"largest violation of a lower bound: {violation:.1e}")
    for line in unfinished:
        print("not converged:", line)
    for case, wide, violated in bad:
        print("disagreement:", *case, wide, f"{violated:.1e}")
    return int(bool(bad))


def report(rows, n_instances, seconds):
    ways = list(dict.fromkeys(way for _, way in rows))
    print(f"{n_instances} instances in {seconds:.0f} s; largest (median) relative deviation")
    print(f"{'':8}" + "".join(f"{way:>20}" for way in ways))
    for name in [*CONVEX, "all"]:
        cells = []
        for way in ways:
            names = CONVEX if name == "all" else [name]
            values = np.concatenate([rows[part, way] for part in names if rows[part, way]])
            cells.append(f"{values.max():.1e} ({np.median(values):.0e})")
        print(f"{name:8}" + "".join(f"{cell:>20}" for cell in cells))
    for solver in QP_SOLVERS:
        answered = sum(len(rows[name, solver]) for name in CONVEX)
        print(f"{solver} answered 'optimal' on {answered} of {n_instances}")


if __name__ == "__main__":
    sys.exit(main())
