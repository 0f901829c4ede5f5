"""False certificates with weights that have to be >= 0, held against cvxpy.

    python tests/stress/search_positive.py --problems 400

Every convex problem is written in full with ``w >= 0`` and solved by Clarabel; methods, starts,
warm starts, a path and an interrupted run are judged by it. Ramps are judged by points w >= 0.
"""

import sys
import tempfile
import warnings

import numpy as np
from ranking_problems import draw
from searching import main

from helpers.full_problem import full_problem
from helpers.interrupts import ctrl_c_after_call
from helpers.problems import warm_path
from structsvm_papk import CCCP, CuttingPlane, SubgradientDescent
from structsvm_papk.files.checkpoint import Checkpoint

_NEAR = 3e-7  # of Clarabel's optimum
_TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
_SHAPES = ("small", "one_list", "exact", "wide")


def check(seed, report, only=None):
    rng = np.random.default_rng(seed)
    problem = draw(rng, str(rng.choice(_SHAPES)))
    report.problem = problem.words
    if not problem.benign or problem.y.size > 200:
        report.counts["problems left out"] += 1
        return
    alpha = float(10 ** rng.uniform(-4, 1))
    risk = problem.risk()
    best = _optimum(risk, alpha) if problem.convex else np.inf
    ways = _convex_ways(rng, risk, alpha) if problem.convex else _ramp_ways(rng, risk, alpha)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [(name, way()) for name, way in ways.items() if only in (None, name)]
    points = np.abs(rng.normal(size=(50, risk.n_features))) * 10 ** rng.uniform(-3, 2, (50, 1))
    attained = [_objective(risk, alpha, w) for w in (*points, *(each.w for _, each in answers))]
    best = min(best, *attained)
    for name, result in answers:
        report.counts[f"{name}: {result.status}"] += 1
        _judge(report, name, result, _objective(risk, alpha, result.w), best)


def _judge(report, name, result, value, best):
    """One answer, against the objective at its point and the least one that is known."""
    scale = max(value, 1e-3)
    if (result.w < 0).any():
        report.add("a weight below 0", name, f"{result.w.min():.3g}")
    if abs(value - result.objective) > 1e-9 * max(1.0, value):
        report.add("objective is not that of the point", name, f"{value} {result.objective}")
    if result.lower_bound > best + _NEAR * scale:
        report.add("false bound", name, f"{result.lower_bound} above {best}")
    tol = 1e-4 if name in ("line_search", "one_slack") or "cccp" in name else 1e-7
    certified = result.status in ("converged", "degenerate") and result.lower_bound > -np.inf
    if certified and value > best + (tol + _NEAR) * scale:
        report.add("converged, but is not optimal", name, f"{value} above {best}")


def _objective(risk, alpha, w):
    return float(alpha / 2 * (w @ w) + risk(w)[0])


def _optimum(risk, alpha):
    import cvxpy as cp

    problem, w = full_problem(risk, alpha)
    problem = cp.Problem(problem.objective, [*problem.constraints, w >= 0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **_TIGHT)
    return problem.value if problem.status == "optimal" else np.inf


def _convex_ways(rng, risk, alpha):
    solver = CuttingPlane(alpha, 1e-7, max_iter=500, positive=True)
    other = alpha * 10 ** rng.uniform(-1, 1)
    far = rng.normal(size=risk.n_features) * 10 ** rng.uniform(-2, 5)
    loose = {"tol": 1e-4, "max_iter": 300, "positive": True}

    def from_free():
        return solver.solve(risk, warm_start=CuttingPlane(other, 1e-6).solve(risk))

    def from_positive():
        first = CuttingPlane(other, 1e-4, positive=True).solve(risk)
        return solver.solve(risk, warm_start=first)

    def resumed():
        with tempfile.TemporaryDirectory() as folder:
            place = Checkpoint(f"{folder}/kept", 0.0)
            for n in rng.integers(1, 3000, 3):
                try:
                    with ctrl_c_after_call(int(n)):
                        solver.solve(risk, checkpoint=place)
                except KeyboardInterrupt:
                    continue
            return solver.solve(risk, checkpoint=place)

    return {
        "bundle": lambda: solver.solve(risk),
        "from afar": lambda: solver.solve(risk, w_init=far),
        "line_search": lambda: CuttingPlane(alpha, method="line_search", **loose).solve(risk),
        "one_slack": lambda: CuttingPlane(alpha, method="one_slack", **loose).solve(risk),
        "warm start of a free one": from_free,
        "warm start": from_positive,
        "path": lambda: warm_path(risk, [30 * alpha, 3 * alpha, alpha], solver)[-1],
        "resumed": resumed,
    }


def _ramp_ways(rng, risk, alpha):
    cccp = CCCP(alpha, tol=1e-4, max_iter=8, positive=True)
    start = rng.normal(size=risk.n_features)
    return {
        "cccp": lambda: cccp.solve(risk),
        "cccp from a start": lambda: cccp.solve(risk, w_init=start),
        "subgradient": lambda: SubgradientDescent(alpha, max_iter=50, positive=True).solve(risk),
    }


if __name__ == "__main__":
    sys.exit(main(check, __doc__, ["bundle", "path", "resumed", "cccp"], 400))
