"""False certificates with weights that have to be >= 0, all or some, held against cvxpy.

    python tests/stress/search_positive.py --problems 400

Every convex problem is written in full with ``w >= 0``, where the weights have signs, and solved by
Clarabel; methods, starts, warm starts, a path and an interrupted run are judged by it. Ramps are
judged by points with these signs.
"""

import sys
import tempfile
import warnings

import numpy as np
from ranking_problems import draw
from searching import main

from helpers.interrupts import ctrl_c_after_call
from helpers.problems import full_problem, warm_path
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
    signs = np.full(risk.n_features, True)
    if seed % 3:
        signs = rng.random(risk.n_features) < 0.5
    report.problem += f", signs {np.flatnonzero(signs).tolist()}"
    best = _optimum(risk, alpha, signs) if problem.convex else np.inf
    positive = signs if seed % 3 else True
    make = _convex_ways if problem.convex else _ramp_ways
    ways = make(rng, risk, alpha, positive)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = [(name, way()) for name, way in ways.items() if only in (None, name)]
    points = rng.normal(size=(50, risk.n_features)) * 10 ** rng.uniform(-3, 2, (50, 1))
    points = np.where(signs, np.abs(points), points)
    attained = [_objective(risk, alpha, w) for w in (*points, *(each.w for _, each in answers))]
    best = min(best, *attained)
    for name, result in answers:
        report.counts[f"{name}: {result.status}"] += 1
        if (result.w[signs] < 0).any():
            report.add("a weight below 0", name, f"{result.w[signs].min():.3g}")
        _judge(report, name, result, _objective(risk, alpha, result.w), best)


def _judge(report, name, result, value, best):
    """One answer, against the objective at its point and the least one that is known."""
    scale = max(value, 1e-3)
    if abs(value - result.objective) > 1e-9 * max(1.0, value):
        report.add("objective is not that of the point", name, f"{value} {result.objective}")
    if result.lower_bound > best + _NEAR * scale:
        report.add("false bound", name, f"{result.lower_bound} above {best}")
    tol = 1e-4 if name == "one_slack" or "cccp" in name else 1e-7
    certified = result.status in ("converged", "degenerate") and result.lower_bound > -np.inf
    if certified and value > best + (tol + _NEAR) * scale:
        report.add("converged, but is not optimal", name, f"{value} above {best}")


def _objective(risk, alpha, w):
    return float(alpha / 2 * (w @ w) + risk(w)[0])


def _optimum(risk, alpha, signs):
    problem, _ = full_problem(risk, alpha, signs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver="CLARABEL", **_TIGHT)
    return problem.value if problem.status == "optimal" else np.inf


def _convex_ways(rng, risk, alpha, positive):
    solver = CuttingPlane(alpha, 1e-7, max_iter=500, positive=positive)
    other = alpha * 10 ** rng.uniform(-1, 1)
    far = rng.normal(size=risk.n_features) * 10 ** rng.uniform(-2, 5)
    loose = {"tol": 1e-4, "max_iter": 300, "positive": positive}

    def from_free():
        return solver.solve(risk, warm_start=CuttingPlane(other, 1e-6).solve(risk))

    def from_signed():
        first = CuttingPlane(other, 1e-4, positive=rng.random(risk.n_features) < 0.5).solve(risk)
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
        "one_slack": lambda: CuttingPlane(alpha, method="one_slack", **loose).solve(risk),
        "warm start of a free one": from_free,
        "warm start": from_signed,
        "path": lambda: warm_path(risk, [30 * alpha, 3 * alpha, alpha], solver)[-1],
        "resumed": resumed,
    }


def _ramp_ways(rng, risk, alpha, positive):
    cccp = CCCP(alpha, tol=1e-4, max_iter=8, positive=positive)
    descent = SubgradientDescent(alpha, max_iter=50, positive=positive)
    start = rng.normal(size=risk.n_features)
    return {
        "cccp": lambda: cccp.solve(risk),
        "cccp from a start": lambda: cccp.solve(risk, w_init=start),
        "subgradient": lambda: descent.solve(risk),
    }


if __name__ == "__main__":
    sys.exit(main(check, __doc__, ["bundle", "path", "resumed", "cccp"], 400))
