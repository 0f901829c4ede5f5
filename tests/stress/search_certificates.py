"""Search for a false certificate: random problems, every way to solve them, an exact referee.

    python tests/stress/search_certificates.py --problems 5000

A problem is solved by several methods. The objective at every point that any of them returns is
computed again in extended precision, from the definitions (`helpers/exact_risk.py`), and

* a lower bound above any of these objectives is false;
* a reported objective has to be the objective at the reported point;
* "converged" has to be within its tolerance of the best point of all;
* what is no `InputError` is an error of the program, and so is a refusal of harmless data;
* "w = 0 is optimal" must not meet a point below the objective at zero.

Every fourth problem is an oracle that no list stands behind, with slopes over twelve orders of
magnitude that cancel, exact in every entry, whose optimum is known as a fraction (`own_oracles`).

The best point usually comes from a twin of the problem: the same rows with each user's first one
subtracted, which changes no objective and leaves nothing to cancel.
"""

import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import own_oracles
from ranking_problems import CONVEX, draw
from searching import main

from helpers.exact_risk import Wide
from helpers.sources import npy_source, parquet_source
from structsvm_papk import CCCP, CuttingPlane, DualAscent, GlobalRamp, PAPKRanker, alpha_path
from structsvm_papk.diagnosis import diagnose
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files import Checkpoint
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.solvers.result import RISK_SCALE

_EPS = np.finfo(float).eps
_TOL = 1e-6
# limits on iterations, not on time: the same seed gives the same answers on every machine
_LIMITS = {"max_iter": 40}
_DESCENT = {"max_iter": 4, "starts": ("zero",)}
_BUDGETS = (3e4, 1e5, 1e6, 1e8)  # bytes: the first that is enough, so that data are in pieces
_CERTIFIED = ("converged", "degenerate")


@dataclass(frozen=True)
class Answer:
    """What one method said, as plain values."""

    method: str
    alpha: float
    tol: float
    w: np.ndarray
    objective: float
    bound: float
    status: str


def answer(method, result, tol=_TOL):
    """From a `SolverResult`."""
    return Answer(
        method, result.alpha, tol, result.w, result.objective, result.lower_bound,
        str(result.status),
    )  # fmt: skip


def check(seed, report):
    """One problem: solve it in several ways, then judge all answers together."""
    rng = np.random.default_rng(seed)
    if seed % 4 == 3:
        own_oracles.check(rng, report)
        return
    problem = draw(rng)
    report.describe(problem.words)
    ways = dict(CONVEX_WAYS if problem.surrogate in CONVEX else RAMP_WAYS)
    first = [name for name in ways if name in ("bundle", "cccp")]
    others = [name for name in ways if name not in first]
    chosen = first + list(rng.choice(others, int(rng.integers(1, 3)), replace=False))
    answers = list(_guarded("twin", twin, problem, rng, report))
    for name in chosen:
        answers += _guarded(name, ways[name], problem, rng, report)
    if answers:
        _Judge(problem, answers, report).judge()


def _guarded(name, way, problem, rng, report):
    """The answers of a way to solve; refusals and errors are reported."""
    report.count(f"runs: {name}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", DegenerateOptimumWarning)
        try:
            return [each for each in way(problem, rng, report) if each is not None]
        except InputError as error:
            report.count(f"refused: {name}")
            if problem.benign:
                report.add("refusal of harmless data", name, str(error)[:200])
        except Exception as error:
            report.crash(name, error)
    return []


# ---- ways to solve a convex problem


def _solver(problem, method="bundle", alpha=None, tol=_TOL, **more):
    return CuttingPlane(alpha or problem.alpha, tol, method=method, **(_LIMITS | more))


def twin(problem, rng, report):
    """The problem without offsets, to a tighter tolerance."""
    tol = 1e-9 if problem.surrogate in CONVEX else _TOL
    return [answer("twin", _any_solver(problem, tol=tol).solve(problem.twin()), tol)]


def bundle(problem, rng, report):
    options = {"n_blocks": int(rng.choice([1, 3, 50]))} if rng.random() < 0.5 else {}
    if rng.random() < 0.02:
        options["qp_solver"] = str(rng.choice(["PIQP", "CLARABEL"]))
    risk = problem.risk(
        n_threads=int(rng.integers(1, 3)), skip_rows=bool(rng.random() < 0.8)
    )  # fmt: skip
    return [answer("bundle", _solver(problem, **options).solve(risk))]


def from_afar(problem, rng, report):
    """A start far away: the cuts there have few digits."""
    w = rng.normal(size=problem.X.shape[1]) * 10.0 ** rng.uniform(-3, 8)
    return [answer("from_afar", _solver(problem).solve(problem.risk(), w_init=w))]


def other_method(problem, rng, report):
    """One cut for all users together."""
    method = str(rng.choice(["line_search", "one_slack"]))
    return [answer(method, _solver(problem, method).solve(problem.risk()))]


def warm_start(problem, rng, report):
    """From the result at another alpha, by any method; the first result is judged as well."""
    risk = problem.risk()
    method = str(rng.choice(["bundle", "line_search", "one_slack"]))
    other = problem.alpha * 10.0 ** rng.uniform(-2, 2)
    blocks = {"n_blocks": 1} if method != "bundle" else {}
    first = _solver(problem, "bundle", other, 1e-3, **blocks).solve(risk)
    w_init = np.zeros(risk.n_features) if rng.random() < 0.3 else None
    last = _solver(problem, method, **blocks).solve(risk, w_init, warm_start=first)
    return [answer("warm_start: first", first, 1e-3), answer(f"warm_start: {method}", last)]


def path(problem, rng, report):
    """A path of alphas; every one of them is judged."""
    alphas = problem.alpha * 10.0 ** rng.uniform(-1.5, 1.5, 2)
    results = alpha_path(problem.risk(), alphas, _solver(problem))
    return [answer("alpha_path", each) for each in results if each is not None]


def ascent(problem, rng, report):
    """Ascent on the dual: cold, from dual variables of another alpha, from afar, resumed."""
    settings = {"max_iter": int(rng.choice([3, 40, 150])), "seed": int(rng.integers(1000))}
    risk, alpha = problem.risk(), problem.alpha * 10.0 ** rng.uniform(-1.5, 1.5)
    first = DualAscent(alpha, _TOL, **settings).solve(risk)
    solver, start = DualAscent(problem.alpha, _TOL, **settings), rng.normal(size=risk.n_features)
    stop = int(rng.integers(1, 12))
    with tempfile.TemporaryDirectory() as folder:
        solver.solve(risk, callback=lambda p: p.iteration >= stop, checkpoint=Checkpoint(folder))
        resumed = solver.solve(risk, checkpoint=Checkpoint(folder))
    return [
        answer("ascent", first),
        answer("ascent: warm", solver.solve(risk, warm_start=first)),
        answer("ascent: from afar", solver.solve(risk, start * 10.0 ** rng.uniform(-3, 6))),
        answer("ascent: resumed", resumed),
        answer("ascent: to the bundle", _solver(problem).solve(risk, warm_start=first)),
    ]


def resumed(problem, rng, report):
    """Stopped after some iterations, and resumed from the checkpoint."""
    stop = int(rng.integers(1, 12 if problem.surrogate in CONVEX else 5))
    method = str(rng.choice(["bundle", "line_search", "one_slack"]))
    solver = _any_solver(problem, method)
    with tempfile.TemporaryDirectory() as folder:
        first = solver.solve(
            problem.risk(), callback=lambda p: p.iteration >= stop, checkpoint=Checkpoint(folder)
        )
        try:
            last = solver.solve(problem.risk(), checkpoint=Checkpoint(folder))
        except InputError as error:
            report.add("own checkpoint refused", f"resumed: {method}", str(error)[-200:])
            return [answer("resumed: first", first)]
    return [answer("resumed: first", first), answer(f"resumed: {method}", last)]


def estimator(problem, rng, report):
    weight = problem.weight[problem.user]
    convex = problem.surrogate in CONVEX
    ranker = PAPKRanker(
        problem.k, problem.surrogate, depth=problem.depth, alpha=problem.alpha, tol=_TOL,
        solver_options=None if convex else {"starts": _DESCENT["starts"]}, standardize=False,
        max_iter=(_LIMITS if convex else _DESCENT)["max_iter"],
    )  # fmt: skip
    ranker.fit(problem.X, problem.y, groups=problem.user, sample_weight=weight)
    return [answer("estimator", ranker.result_)]


def streamed(problem, rng, report):
    """From files, in pieces."""
    order = np.argsort(problem.user, kind="stable")
    rows = np.ascontiguousarray(problem.dense[order]), problem.y[order], problem.user[order]
    with tempfile.TemporaryDirectory() as folder:
        if rng.random() < 0.5:
            source = npy_source(Path(folder), *rows)
        else:
            source = parquet_source(Path(folder), *rows, rows=int(rng.integers(5, 60)))
        risk = _streamed(problem, source)
        return [answer("streamed", _any_solver(problem).solve(risk))]


def _any_solver(problem, method="bundle", tol=_TOL):
    if problem.surrogate in CONVEX:
        return _solver(problem, method, tol=tol)
    return CCCP(problem.alpha, **_DESCENT)


def _streamed(problem, source):
    for budget in _BUDGETS:
        try:
            return StreamedRisk(problem.loss(), source, budget, user_weight=problem.weight)
        except InputError as error:
            if "too small" not in str(error):
                raise
    return None


def zero_test(problem, rng, report):
    """`diagnose`: its verdict on w = 0 against points that are looked for here."""
    test = diagnose(problem.risk(), per_user=False).joint
    report.count(f"zero is {test.verdict}")
    exact, alpha = problem.exact, problem.alpha
    if str(test.verdict) == "degenerate":
        W = _ways_down(problem)
        best = int(np.argmin(_objectives(problem, W, alpha)))
        return [Answer("zero_test", alpha, _TOL, W[:, best], np.nan, -np.inf, "zero is optimal")]
    if str(test.verdict) == "informative":
        w = test.direction[:, None]
        steps = 2.0 ** np.arange(-30, 4) / max(exact.sizes(w)[0], 1e-300)
        if exact.values(problem.surrogate, w * steps).min() >= 1:
            report.add("no way down", "zero_test", f"slope {-test.lower_bound:.3g}")
    return []


def _ways_down(problem):
    """Columns: mean differences, as they are and whitened, and single features; many lengths."""
    means = problem.exact.differences()
    spread = np.abs(means).max(axis=0)
    spread[spread == 0] = 1.0
    mean = means.mean(axis=0)
    ways = [mean, mean / spread, mean / spread**2, *np.diag(np.sign(mean) / spread)]
    ways = np.array(ways).T
    ways /= np.maximum(problem.exact.sizes(ways), 1e-300)
    return np.hstack([ways * step for step in 4.0 ** np.arange(-8, 3)])


# ---- ways to solve a problem that is not convex


def cccp(problem, rng, report):
    """Several starts, some majorants."""
    names = ["zero", "avg", "logistic", "centred_logistic"]
    starts = tuple(str(name) for name in rng.choice(names, 2, replace=False))
    solver = CCCP(problem.alpha, max_iter=int(rng.integers(1, 5)), starts=starts)
    return [answer("cccp", solver.solve(problem.risk()))]


def given_start(problem, rng, report):
    """From one start, above which no descent may end."""
    w = rng.normal(size=problem.X.shape[1])
    w /= max(problem.exact.sizes(w[:, None])[0], 1e-100)
    w *= 10.0 ** rng.uniform(-1, 2)
    result = CCCP(problem.alpha, **_DESCENT).solve(problem.risk(), w_init=w)
    start = float(_objectives(problem, w[:, None], problem.alpha)[0])
    if result.objective > start + 1e-9 * max(1.0, start):
        report.add("a descent rose", "given_start", f"{start:.9g} to {result.objective:.9g}")
    return [answer("given_start", result)]


def globally(problem, rng, report):
    """Branch and bound, on problems with few features and pairs."""
    if problem.X.shape[1] > 2 or problem.y.size > 150:
        return []
    solver = GlobalRamp(problem.alpha, 1e-3, time_limit=20.0, max_boxes=1000)
    return [answer("globally", solver.solve(problem.risk()), 1e-3)]


CONVEX_WAYS = {
    each.__name__: each
    for each in (
        *(bundle, from_afar, other_method, warm_start, path, resumed, estimator),
        *(streamed, zero_test, ascent),
    )
}
RAMP_WAYS = {
    each.__name__: each
    for each in (cccp, given_start, resumed, globally, estimator, streamed, zero_test)
}


# ---- the referee


def _objectives(problem, W, alpha):
    """``F`` at the columns of W, in extended precision."""
    W = np.asarray(W).astype(Wide)
    return Wide(alpha) / 2 * (W * W).sum(axis=0) + problem.exact.values(problem.surrogate, W)


class _Judge:
    """All answers to one problem, against the exact objective at all of their points."""

    def __init__(self, problem, answers, report):
        self.problem, self.answers, self.report = problem, answers, report
        self.W = np.array([each.w for each in answers]).T
        self.risks = problem.exact.values(problem.surrogate, self.W)
        self.sizes = problem.exact.sizes(self.W)

    def judge(self):
        squares = (self.W.astype(Wide) ** 2).sum(axis=0)
        for place, each in enumerate(self.answers):
            values = Wide(each.alpha) / 2 * squares + self.risks
            self.report.count(f"status: {each.status}")
            if each.status == "zero is optimal":
                self._zero(each, values[place])
            else:
                self._objective(each, values[place], self.sizes[place])
                self._bound(each, values)
                self._status(each, values[place], values)

    def _objective(self, each, value, size):
        rounding = 64 * _EPS * (self.problem.X.shape[1] + 8) * size
        allowed = 1e-9 * max(float(value), RISK_SCALE) + rounding
        off = float(abs(each.objective - value))
        if not off <= allowed:
            self.report.add(
                "objective is not that of the point", each.method,
                f"reported {each.objective:.15g}, is {float(value):.15g}, off by {off:.2g}; "
                f"status {each.status}",
            )  # fmt: skip

    def _bound(self, each, values):
        if each.bound == -np.inf:
            return
        self.report.count("bounds")
        best = int(np.argmin(values))
        value = float(values[best])
        # the bound is capped at the reported objective, which is rounded like any sum
        slack = 1e-13 * max(value, RISK_SCALE) + 16 * _EPS * self.sizes[best]
        excess = float(each.bound - values[best])
        if excess > slack:
            kind = "false bound" if excess > 1e-9 * max(value, RISK_SCALE) else "false by rounding"
            self.report.add(
                kind, each.method,
                f"bound {each.bound:.15g} is {excess:.2g} above the objective at the point of "
                f"{self.answers[best].method}; status {each.status}",
            )  # fmt: skip

    def _status(self, each, value, values):
        if each.status not in _CERTIFIED:
            return
        gap = float((value - values.min()) / max(value, RISK_SCALE))
        if gap > each.tol * (1 + 1e-6) + 1e-12:
            self.report.add(
                "converged, but is not optimal", each.method,
                f"true gap at least {gap:.2g}, tolerance {each.tol:.0e}; status {each.status}",
            )  # fmt: skip

    def _zero(self, each, value):
        if value < 1 - 1e-9:
            self.report.add(
                "zero is not optimal", each.method,
                f"an objective of {float(value):.12g} at alpha {each.alpha:.2g}",
            )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(check, "search_certificates.py", __doc__.partition("\n")[0]))
