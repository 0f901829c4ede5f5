"""Every solver on every problem: by certificate, and against the problem written out for cvxpy."""

from functools import partial

import numpy as np
import pytest

from helpers import problems
from helpers.catalogue import CERTIFIED, CONVEX, DESCENTS, RAMPS, SOLVERS
from helpers.marks import slow
from helpers.problems import full_optimum, objective
from structsvm_papk import CCCP, CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.solvers.solver import Status

SOME = (False, True, True, False, True, False)


def with_rows(data, X):
    """The same lists with other columns."""
    return RankingData(X, data.labels, data.indptr, user_weight=data.user_weight)


def users(name):
    return problems.risk(name, n_features=6)


def deep(name):
    return EmpiricalRisk(make_surrogate(name, 3, 5), problems.ranking_data(n_features=6))


def uneven_lists(name):
    """Lists of 2 to 30 rows of users that weigh more and less."""
    rng = np.random.default_rng(3)
    sizes, n_pos = np.array([2, 30, 2, 5, 3]), np.array([1, 20, 1, 4, 1])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    y = np.arange(42) - np.repeat(starts[:-1], sizes) < np.repeat(n_pos, sizes)
    weight = [1.0, 2.0, 0.5, 3.0, 1.0]
    X = np.asfortranarray(rng.normal(size=(42, 50)))
    data = RankingData(X, y, starts, user_weight=weight)
    return EmpiricalRisk(make_surrogate(name, 4, 8), data, policy="cap")


def wide_lists(name, depth=None):
    data = problems.wide_data().weighted("positives")
    return EmpiricalRisk(make_surrogate(name, 3, depth), data, "exclude")


def offsets(name):
    """A column whose offset leaves it few digits."""
    data = problems.ranking_data(n_users=6, n_features=5)
    X = data.X[data.rows] + np.array([0, 0, 1e9, 0, 0])
    return EmpiricalRisk(make_surrogate(name, 3), with_rows(data, X))


def long_list(name, depth=None, k=5, n_neg=700):
    """One list, with columns that weights >= 0 cannot use."""
    data = problems.one_user_risk(name, n_neg=n_neg).data
    X = data.X[data.rows] * [1.0, -1.0, 1.0, -1.0, 1.0]
    return EmpiricalRisk(make_surrogate(name, k, depth), with_rows(data, X), "cap")


FREE = (False,)
BOTH = (False, True)
QUICK = ("bundle", "dual_ascent")
PROBLEMS = {  # maker, alpha, tolerance, solvers, signs of the weights
    "users": (users, 0.3, 1e-7, CERTIFIED, (False, True, SOME)),
    "users, depth 5": (deep, 0.02, 1e-7, (*QUICK, "few blocks"), (False, SOME)),
    "uneven lists": (uneven_lists, 0.1, 1e-8, QUICK, FREE),
    "wide": (wide_lists, 1e-1, 1e-7, QUICK, BOTH),
    "wide, depth 5": (partial(wide_lists, depth=5), 1e-3, 1e-7, QUICK, FREE),
    "offsets": (offsets, 0.1, 1e-5, QUICK, FREE),
    "one list": (
        partial(long_list, k=10, n_neg=160), 0.01, 1e-6,
        ("bundle", "one_slack", "few blocks"), BOTH,
    ),
    "one list, depth 40": (partial(long_list, depth=40), 0.1, 1e-6, (*QUICK, "few blocks"), FREE),
    "one list, a tenth": (partial(long_list, depth=0.1), 0.1, 1e-6, (*QUICK, "few blocks"), FREE),
}  # fmt: skip
WRITTEN_OUT = (users, deep)  # for cvxpy; of others the pairs are many


def _cases():
    """Problems, surrogates and signs: every day one surrogate of each problem, all signs."""
    for i, (problem, (*_, of_signs)) in enumerate(PROBLEMS.items()):
        for j, name in enumerate(CONVEX):
            everyday = name == "ts" if i == 0 else j == (i + 3) % len(CONVEX)
            for signs in of_signs:
                case = problem, name, signs
                yield case if everyday else slow(*case)


@pytest.mark.parametrize(("problem", "name", "signs"), [*_cases()])
def test_every_solver_reaches_the_optimum(problem, name, signs):
    make, alpha, tol, solvers, _ = PROBLEMS[problem]
    risk = make(name)
    if make in WRITTEN_OUT and (make is users or name != "ts"):
        best = full_optimum(risk, alpha, signs)
    else:
        plain = EmpiricalRisk(risk.surrogate, risk.data, "cap")
        best = CuttingPlane(alpha, tol=min(tol, 1e-8), positive=signs).solve(plain).objective
    for solver in solvers:
        if not SOLVERS[solver].solves(name, signs):
            continue
        how = {} if signs is False else {"positive": signs}
        result = SOLVERS[solver].make(alpha, tol=tol, **how).solve(risk)
        assert result.converged and result.gap <= tol, solver
        assert (result.w[np.broadcast_to(signs, result.w.shape)] >= 0).all(), solver
        assert (result.curve("lower_bound") <= best + 1e-9).all(), solver
        assert (result.curve("objective") >= best * (1 - 2e-8)).all(), solver
        assert result.objective == pytest.approx(best, rel=3 * tol, abs=1e-3 * tol), solver
        value = objective(risk, alpha, result.w)
        assert result.objective == pytest.approx(value, rel=1e-12), solver
    if signs is not False:  # else the constraint was not felt
        assert best > 1.0001 * CuttingPlane(alpha).solve(risk).objective


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize("signs", [False, True, (False, True, True, False)], ids=str)
def test_descents_to_critical_points_keep_signs(name, signs):
    data = problems.uneven()
    X = data.X[data.rows] * np.array([1.0 if signs is True else -1.0, 1.0, 1.0, 1.0])
    risk = EmpiricalRisk(make_surrogate(name, 3), with_rows(data, X), "cap")
    result = CCCP(0.01, positive=signs).solve(risk)
    signed = np.broadcast_to(signs, 4)
    assert result.converged and result.objective < 0.9
    assert all((start.w[signed] >= 0).all() for start in result.starts)
    assert signs is False or (result.w == 0).any() or result.w[0] < 0
    objectives = result.curve("objective")
    assert (np.diff(objectives[np.isfinite(objectives)]) <= 1e-12).all()
    assert result.objective <= min(start.objective for start in result.starts)
    assert result.objective == pytest.approx(objective(risk, 0.01, result.w), rel=1e-12)
    # critical: the majorant's own optimum over these w is no lower
    there = CuttingPlane(0.01, tol=1e-8, positive=signs).solve(risk.majorant(result.w))
    assert there.objective >= result.objective - 2e-6


@pytest.mark.parametrize("seed", [0, 1])
def test_where_ramp_is_convex_the_convex_concave_procedure_finds_the_optimum(seed):
    """With one positive a list Ramp is Avg: the problem can be written in full."""
    rng = np.random.default_rng(seed)
    n_users, n_features = rng.integers(2, 9), int(rng.integers(2, 7))
    y = np.tile(np.arange(8) < 1, n_users)
    X = rng.normal(size=(y.size, n_features))
    X[y] += rng.choice([-1.0, 0.0, 1.0], n_features)
    data = RankingData(X, y, np.arange(0, y.size + 1, 8))
    signs = np.arange(n_features) % 2 == 0
    best = full_optimum(EmpiricalRisk(make_surrogate("avg", 2), data, "cap"), 0.05, signs)
    ramp = EmpiricalRisk(make_surrogate("ramp", 2), data, "cap")
    result = CCCP(0.05, tol=1e-7, positive=signs).solve(ramp)
    assert (result.w[signs] >= 0).all()
    assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
    assert result.lower_bound <= best + 1e-9


STEPS = {"subgradient": {"eta": 1.0, "max_iter": 1000}, "averaged": {}, "stochastic": {}}


@pytest.mark.parametrize("signs", [False, True, slow(SOME)], ids=str)
@pytest.mark.parametrize("solver", DESCENTS)
@pytest.mark.parametrize("keep", ["best", "average", slow("last")])
def test_descents_approach_the_optimum_from_above_without_a_certificate(solver, keep, signs):
    if keep != "best" and solver != "subgradient":
        pytest.skip("has no choice")
    risk = users("avg")
    best = CuttingPlane(0.3, tol=1e-8, positive=signs).solve(risk)
    how = {"max_iter": 300, "positive": signs, **STEPS[solver]}
    how |= {"keep": keep} if solver == "subgradient" else {}
    descent = SOLVERS[solver].make(0.3, **how)
    result = descent.solve(risk, w_init=-np.ones(6))
    assert (result.w[np.broadcast_to(signs, 6)] >= 0).all()
    assert best.lower_bound <= result.objective <= 1.01 * best.objective
    assert result.objective == pytest.approx(objective(risk, 0.3, result.w), rel=1e-12)
    assert result.status is Status.FINISHED and result.lower_bound == -np.inf
    np.testing.assert_array_equal(descent.solve(risk, w_init=-np.ones(6)).w, result.w)


@pytest.mark.parametrize("solver", DESCENTS)
def test_descents_take_what_is_not_convex(solver):
    risk = users("ts_alg2")
    for positive in (False, True):
        result = SOLVERS[solver].make(0.01, max_iter=100, positive=positive).solve(risk)
        assert result.objective < 1.0 or positive
        assert (result.w >= 0).all() or not positive
        assert result.objective == pytest.approx(objective(risk, 0.01, result.w), rel=1e-12)


def _degenerate():
    """Positives and negatives of one distribution, mirrored: no direction helps on average."""
    half = np.random.default_rng(0).normal(size=(12, 3))
    return RankingData(np.vstack([half, -half, half, -half]), np.arange(48) < 24, [0, 48])


def _lower_in_every_column():
    """Positives are lower everywhere: only weights < 0 would help."""
    data = problems.ranking_data()
    X = -np.abs(data.X[data.rows])
    X[data.labels] -= 3.0
    return RankingData(X, data.labels, data.indptr)


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("name", CONVEX)
def test_degenerate_optimum_is_said_to_be_so(name, signs):
    data = _lower_in_every_column() if signs else _degenerate()
    risk = EmpiricalRisk(make_surrogate(name, 3), data)
    for solver in ("bundle", "one_slack", "few blocks", "dual_ascent"):
        if not SOLVERS[solver].solves(name, signs):
            continue
        how = {"positive": True} if signs else {}
        for alpha in (1e-3, 1e3):
            result = SOLVERS[solver].make(alpha, tol=1e-6, **how).solve(risk)
            assert result.status is Status.DEGENERATE and result.converged
            assert not result.w.any() and "zero vector" in result.message
            assert result.objective == pytest.approx(1.0, abs=1e-12)
        if not signs and solver in QUICK:
            small = SOLVERS[solver].make(1e6, tol=1e-6).solve(problems.risk(name))
            assert small.status is Status.CONVERGED and small.w.any()
    if signs:
        assert CuttingPlane(0.1).solve(risk).objective < 0.9
        assert (risk(np.zeros(risk.n_features))[1] >= 0).all()  # why: a subgradient >= 0


@pytest.mark.parametrize("name", ["avg", slow("max"), "ts", slow("pauc")])
def test_a_start_far_out_does_not_spoil_the_bound(name):
    """There the intercepts of cuts have lost all their digits."""
    for risk in (problems.risk(name), problems.one_user_risk(name)):
        best = CuttingPlane(0.1, tol=1e-8).solve(risk)
        for size in (1e8, 1e16):
            start = size * np.linspace(1, -1, risk.n_features)
            far = CuttingPlane(0.1, tol=1e-6).solve(risk, w_init=start)
            assert far.lower_bound <= best.objective and far.converged
            assert far.objective == pytest.approx(best.objective, rel=2e-6)


@pytest.mark.parametrize("signs", [False, True])
@pytest.mark.parametrize("name", ["avg", slow("max"), "ts", slow("pauc")])
def test_many_features_are_solved_in_the_span_of_the_cuts(name, signs):
    """Those >= 0 in that of the free features. A column and its equal parts have one optimum."""
    n_parts = 320
    for small in (problems.risk(name, n_features=5), problems.one_user_risk(name)):
        solver = CuttingPlane(1e-2, tol=1e-8, positive=signs)
        expected = solver.solve(small)
        data = small.data
        X = np.repeat(data.X[data.rows], n_parts, axis=1) / np.sqrt(n_parts)
        wide = EmpiricalRisk(small.surrogate, with_rows(data, X))
        result = solver.solve(wide)
        assert result.converged
        assert result.objective == pytest.approx(expected.objective, rel=1e-7)


@pytest.mark.parametrize("signs", [False, True])
def test_starts_warm_starts_and_paths_have_the_same_optimum(signs):
    risk = EmpiricalRisk(make_surrogate("ts", 3, 0.9), problems.uneven(n_features=6), "cap")
    solver = CuttingPlane(0.01, positive=signs)
    best = solver.solve(risk)
    assert not signs or 0 < (best.w == 0).sum() < 6
    other = CuttingPlane(0.01, positive=not signs).solve(risk)
    runs = [solver.solve(risk, warm_start=other)]
    for method in ("bundle", "one_slack"):
        way = CuttingPlane(0.01, positive=signs, method=method)
        runs.append(way.solve(risk, -100.0 * np.ones(6)))
    for result in runs:
        assert result.objective == pytest.approx(best.objective, rel=2e-6)
        assert result.lower_bound <= best.objective * (1 + 1e-12)
        assert not signs or (result.w >= 0).all()
    alphas = (1.0, 0.1, 0.01)
    for alpha, result in zip(alphas, problems.warm_path(risk, alphas, solver), strict=True):
        fresh = CuttingPlane(alpha, positive=signs).solve(risk)
        assert result.objective == pytest.approx(fresh.objective, rel=2e-6)
