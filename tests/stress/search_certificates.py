"""Search for a false certificate: random problems, every way to solve them, an exact referee.

    python tests/stress/search_certificates.py --problems 5000
    python tests/stress/search_certificates.py --only interrupted --seconds 120

A problem is solved by several methods. The objective at every point that any of them returns is
computed again in extended precision, from the definitions (`helpers/exact_risk.py`), and

* a lower bound above any of these objectives is false;
* a reported objective has to be the objective at the reported point;
* "converged" has to be within its tolerance of the best point of all;
* what is no `InputError` is an error of the program, and so is a refusal of harmless data;
* a solve that is interrupted and resumed has to end where it would have.

Every fourth problem is small enough for its optimum in fractions, and so is every other fourth, an
oracle that no list stands behind, with slopes over twelve orders of magnitude that cancel. Of
others the best point usually comes from a twin: the same rows with each user's first one
subtracted, which changes no objective and leaves nothing to cancel.
"""

import sys
import tempfile
import time
import warnings

import numpy as np
from ranking_problems import draw, draw_oracle
from referee import TOL, Answer, judge
from searching import main

from helpers.exact_risk import Wide
from helpers.interrupts import ctrl_c_after, ctrl_c_after_call
from helpers.problems import warm_path
from structsvm_papk import CCCP, CuttingPlane, DualAscent
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files import Checkpoint

# limits on iterations, not on time: the same seed gives the same answers on every machine
_LIMITS = {"max_iter": 40}
_DESCENT = {"max_iter": 4, "starts": ("zero",)}
_BREAKS = 4  # of one run at most


def check(seed, report, only=None):
    """One problem: solve it in several ways, then judge all answers together."""
    rng = np.random.default_rng(seed)
    if only == "own_oracle" or (only is None and seed % 4 == 3):
        problem, chosen = draw_oracle(rng), ["own_oracle"]
    else:
        problem = draw(rng, "exact" if seed % 4 == 2 else None)
        ways = CONVEX_WAYS if problem.convex else RAMP_WAYS
        first, *others = ways
        others = rng.choice(others, int(rng.integers(1, 3)), replace=False)
        chosen = ["twin", first, *others] if only is None else ["twin", *{only} & {*ways}]
    report.problem, answers = problem.words, []
    for name in chosen:
        answers += _guarded(str(name), WAYS[name], problem, rng, report)
    judge(problem, answers, report)


def _guarded(name, way, problem, rng, report):
    """The answers of a way to solve; refusals and errors are reported."""
    answers = []
    report.counts[f"runs: {name}"] += 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", DegenerateOptimumWarning)
        try:
            for each in way(problem, rng, report):
                answers.append(each)
        except InputError as error:
            report.counts[f"refused: {name}"] += 1
            if problem.benign:
                report.add("refusal of harmless data", name, str(error)[:200])
        except Exception as error:
            report.crash(name, error)
    return answers


# ---- ways to solve a convex problem


def _solver(problem, method="bundle", alpha=None, tol=TOL, **more):
    return CuttingPlane(alpha or problem.alpha, tol, method=method, **(_LIMITS | more))


def _a_solver(problem, rng):
    """One of those that keep checkpoints, and its name."""
    alpha, name = problem.alpha, str(rng.choice(["bundle", "other", "ascent"]))
    if not problem.convex:
        return CCCP(alpha, tol=1e-3, max_iter=10), "cccp"
    if name == "ascent" and problem.surrogate == "avg":
        # resumed it takes up to four times as many iterations
        return DualAscent(alpha, TOL, max_iter=400), name
    name = name if name == "bundle" else "one_slack"
    tol = TOL if name == "bundle" else 1e-4
    return CuttingPlane(alpha, tol, method=name, max_iter=100), name


def twin(problem, rng, report):
    """The problem without offsets, to a tighter tolerance."""
    tol = 1e-9 if problem.convex else TOL
    solver = _solver(problem, tol=tol) if problem.convex else CCCP(problem.alpha, **_DESCENT)
    return [Answer("twin", solver.solve(problem.twin()), tol)]


def bundle(problem, rng, report):
    options = {"n_blocks": int(rng.choice([1, 3, 50]))} if rng.random() < 0.5 else {}
    if rng.random() < 0.02:
        options["qp_solver"] = str(rng.choice(["PIQP", "CLARABEL"]))
    risk = problem.risk(n_threads=int(rng.integers(1, 3)))
    return [Answer("bundle", _solver(problem, **options).solve(risk))]


def from_afar(problem, rng, report):
    """A start far away: the cuts there have few digits."""
    w = rng.normal(size=problem.X.shape[1]) * 10.0 ** rng.uniform(-3, 8)
    return [Answer("from_afar", _solver(problem).solve(problem.risk(), w_init=w))]


def other_method(problem, rng, report):
    """One cut for all users together."""
    return [Answer("one_slack", _solver(problem, "one_slack").solve(problem.risk()))]


def own_oracle(problem, rng, report):
    """The two methods that ask for cuts only."""
    for method in ("bundle", "one_slack"):
        solver = _solver(problem, method, max_iter=25, qp_solver="interior_point")
        start = rng.normal(size=problem.oracle.n_features) * 10.0 ** rng.uniform(-6, 6)
        result = solver.solve(problem.oracle, start if rng.random() < 0.3 else None)
        yield Answer(f"own oracle, {method}", result)


def warm_start(problem, rng, report):
    """From the result at another alpha, by any method; the first result is judged as well."""
    risk, method = problem.risk(), str(rng.choice(["bundle", "one_slack"]))
    other = problem.alpha * 10.0 ** rng.uniform(-2, 2)
    blocks = {"n_blocks": 1} if method != "bundle" else {}
    first = _solver(problem, "bundle", other, 1e-3, **blocks).solve(risk)
    w_init = np.zeros(risk.n_features) if rng.random() < 0.3 else None
    last = _solver(problem, method, **blocks).solve(risk, w_init, warm_start=first)
    return [Answer("warm_start: first", first, 1e-3), Answer(f"warm_start: {method}", last)]


def path(problem, rng, report):
    """A path of alphas; every one of them is judged."""
    alphas = problem.alpha * 10.0 ** rng.uniform(-1.5, 1.5, 2)
    results = warm_path(problem.risk(), alphas, _solver(problem))
    return [Answer("warm_path", each) for each in results if each is not None]


def ascent(problem, rng, report):
    """Ascent on the dual: cold, from dual variables of another alpha, from afar."""
    if problem.surrogate != "avg":
        return []
    settings = {"max_iter": int(rng.choice([3, 40, 150])), "seed": int(rng.integers(1000))}
    risk, alpha = problem.risk(), problem.alpha * 10.0 ** rng.uniform(-1.5, 1.5)
    first = DualAscent(alpha, TOL, **settings).solve(risk)
    solver, start = DualAscent(problem.alpha, TOL, **settings), rng.normal(size=risk.n_features)
    return [
        Answer("ascent", first),
        Answer("ascent: warm", solver.solve(risk, warm_start=first)),
        Answer("ascent: from afar", solver.solve(risk, start * 10.0 ** rng.uniform(-3, 6))),
        Answer("ascent: to the bundle", _solver(problem).solve(risk, warm_start=first)),
    ]


def interrupted(problem, rng, report):
    """Ctrl-C at any time or after a number of calls, then resumed: it ends where it would have."""
    (solver, name), risk = _a_solver(problem, rng), problem.risk()
    tol = getattr(solver, "tol", TOL)
    with tempfile.TemporaryDirectory() as folder:  # an interrupt while numba compiles breaks numba
        for _ in range(2):
            solver.solve(risk, checkpoint=Checkpoint(f"{folder}/kept"))
    began = time.perf_counter()
    whole = solver.solve(risk)
    longest = 1.2 * (time.perf_counter() - began)
    yield Answer(f"undisturbed: {name}", whole, tol)
    with tempfile.TemporaryDirectory() as folder:
        place = Checkpoint(f"{folder}/kept", float(rng.choice([0.0, 1e6])))
        for _ in range(_BREAKS):
            by_clock = ctrl_c_after(max(rng.uniform(0, longest), 5e-4))
            by_calls = ctrl_c_after_call(int(10 ** rng.uniform(1, 4.5)))
            try:
                with by_clock if rng.random() < 0.5 else by_calls:
                    result = solver.solve(risk, checkpoint=place)
            except KeyboardInterrupt:
                report.counts["interrupts before a result"] += 1
                continue
            yield Answer(f"interrupted: {name}", result, tol)
            if result.status != "interrupted":
                return
        last = solver.solve(risk, checkpoint=place)
    yield Answer(f"interrupted, to its end: {name}", last, tol)
    if problem.benign and whole.converged and not last.converged:
        report.add("does not end as undisturbed", name, f"{whole.status}, {last.status}")


# ---- ways to solve a problem that is not convex


def cccp(problem, rng, report):
    """Several starts, some majorants."""
    names = ["zero", "avg", "logistic", "centred_logistic"]
    starts = tuple(str(name) for name in rng.choice(names, 2, replace=False))
    solver = CCCP(problem.alpha, max_iter=int(rng.integers(1, 5)), starts=starts)
    return [Answer("cccp", solver.solve(problem.risk()))]


def given_start(problem, rng, report):
    """From one start, above which no descent may end."""
    w = rng.normal(size=problem.X.shape[1])
    w /= max(problem.exact.sizes(w[:, None])[0], 1e-100)
    w *= 10.0 ** rng.uniform(-1, 2)
    result = CCCP(problem.alpha, **_DESCENT).solve(problem.risk(), w_init=w)
    start = float(_objectives(problem, w[:, None], problem.alpha)[0])
    if result.objective > start + 1e-9 * max(1.0, start):
        report.add("a descent rose", "given_start", f"{start:.9g} to {result.objective:.9g}")
    return [Answer("given_start", result)]


_CONVEX = (bundle, from_afar, other_method, warm_start, path, ascent, interrupted)
CONVEX_WAYS = {each.__name__: each for each in _CONVEX}
RAMP_WAYS = {each.__name__: each for each in (cccp, given_start, interrupted)}
WAYS = {"twin": twin, "own_oracle": own_oracle} | CONVEX_WAYS | RAMP_WAYS


def _objectives(problem, W, alpha):
    """``F`` at the columns of W, in extended precision."""
    return Wide(alpha) / 2 * (W.astype(Wide) ** 2).sum(axis=0) + problem.risks(W)


if __name__ == "__main__":
    sys.exit(main(check, __doc__, sorted(WAYS)))
