"""The certified optimum against independent solvers, on seeded small instances.

    python tests/stress/cross_check.py --instances 280 --json tests/stress/results/cross_check.json

Each instance is solved by all three methods of the cutting plane, by ascent on the dual (of data
in memory and in two partitions), in rational arithmetic (`exact_optimum`), by two QP solvers on the
problem written in full (every pair of every user, through cvxpy), and by a long averaged
subgradient run. Deviations are ``|F - F_exact| / max(F_exact, 1e-3)``. A violation is a certified
lower bound above the exact optimum, compared as fractions, or above what the subgradient run
reached; there must be none.
"""

import argparse
import json
import sys
import time
import warnings
from collections import defaultdict
from fractions import Fraction
from pathlib import Path

import numpy as np
from exact_optimum import ExactRisk, minimise, objective

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


def check(name, family, seed, alpha, n_steps):
    """Deviation of every way from the exact optimum, and what is wrong with a certificate."""
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
    found = {method: result.objective for method, result in solved.items()}
    for way in ("ascent", "parts"):
        if not solved[way].converged:  # few features and a small alpha: it is slow
            del found[way]
    for solver, options in QP_SOLVERS.items():
        problem = written_in_full(oracle, alpha)  # cvxpy cannot solve all of them a second time
        problem.solve(solver=solver, **options)
        if problem.status == "optimal":  # other answers are no opinion: they are counted
            found[solver] = problem.value
    descended = averaged_subgradient(oracle, alpha, n_steps)
    if alpha >= _STRONG:
        found["subgradient"] = descended
    scale = max(float(optimum), 1e-3)
    deviations = {way: abs(float(Fraction(v) - optimum)) / scale for way, v in found.items()}
    notes = [
        note
        for method, result in solved.items()
        for note in faults(method, result, risk, alpha, optimum, descended)
    ]
    return deviations, solved, notes


def faults(method, result, risk, alpha, optimum, descended):
    """What contradicts a certificate, in words."""
    bound, reached = Fraction(result.lower_bound), objective(risk, alpha, result.w)
    if bound > optimum:
        yield f"{method}: bound above the exact optimum by {float(bound - optimum):.1e}"
    if result.lower_bound > descended:
        yield f"{method}: bound above the subgradient run by {result.lower_bound - descended:.1e}"
    if abs(Fraction(result.objective) - reached) > Fraction(_ROUNDING) * max(1, reached):
        yield f"{method}: objective off by {float(Fraction(result.objective) - reached):.1e}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=280)
    parser.add_argument("--steps", type=int, default=3000, help="of the subgradient run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # a solver that is not sure of its answer is still compared
    rows, unfinished, bad = defaultdict(list), [], []
    started = time.perf_counter()
    for number in range(options.instances):
        name = CONVEX[number % len(CONVEX)]
        alpha = ALPHAS[number // len(CONVEX) % len(ALPHAS)]
        family = FAMILIES[number % len(FAMILIES)]
        case = (name, family, options.seed + number, alpha)
        deviations, solved, notes = check(*case, options.steps)
        unfinished += [
            f"{method} on {case}: {result.status}, gap {result.gap:.1e}"
            for method, result in solved.items()
            if not result.converged
        ]
        wide = [way for way, limit in _LARGEST.items() if deviations.get(way, 0.0) > limit]
        bad += [f"{case}: {note}" for note in [*notes, *(f"{way} is far off" for way in wide)]]
        for way, deviation in deviations.items():
            rows[name, way].append(deviation)
    seconds = time.perf_counter() - started
    report(rows, options.instances, seconds)
    print(*(f"not converged: {line}" for line in unfinished), sep="\n")
    print(*(f"disagreement: {line}" for line in bad), sep="\n")
    if options.json:
        found = {"instances": options.instances, "seed": options.seed, "seconds": seconds}
        found |= {"not_converged": unfinished, "disagreements": bad, "rows": summary(rows)}
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(bool(bad))


def summary(rows):
    return [
        {
            "surrogate": name,
            "way": way,
            "answers": len(values),
            "largest": max(values),
            "median": float(np.median(values)),
        }
        for (name, way), values in rows.items()
    ]


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
