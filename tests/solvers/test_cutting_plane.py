"""Every solver of convex risks on every problem: by certificate, and against the full problem."""

from functools import partial

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers import problems
from helpers.problems import objective
from structsvm_papk import (
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    RankingData,
    Status,
    make_surrogate,
)
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.qp import PaddedProblem
from structsvm_papk.surrogates import CONVEX

SOLVERS = {
    "bundle": CuttingPlane,
    "line_search": partial(CuttingPlane, method="line_search"),
    "one_slack": partial(CuttingPlane, method="one_slack"),
    **{name: partial(CuttingPlane, qp_solver=name) for name in ("piqp", "clarabel", "osqp")},
    "few blocks": partial(CuttingPlane, n_blocks=5),
    "ascent": DualAscent,
}


def short_lists(name):
    """Lists of 2 to 30 rows of users that weigh more and less."""
    rng = np.random.default_rng(3)
    sizes, n_pos = np.array([2, 30, 2, 5, 3]), np.array([1, 20, 1, 4, 1])
    starts = np.concatenate([[0], np.cumsum(sizes)])
    y = np.arange(42) - np.repeat(starts[:-1], sizes) < np.repeat(n_pos, sizes)
    weight = [1.0, 2.0, 0.5, 3.0, 1.0]
    X = np.asfortranarray(rng.normal(size=(42, 50)))
    data = RankingData(X, y, starts, user_weight=weight)
    return EmpiricalRisk(make_surrogate(name, 4, 8), data, policy="cap")


def offsets(name):
    """A column whose offset leaves it few digits."""
    data = problems.ranking_data(n_users=6, n_features=5)
    X = data.X[data.rows] + np.array([0, 0, 1e9, 0, 0])
    return EmpiricalRisk(make_surrogate(name, 3), RankingData(X, data.labels, data.indptr))


def deep_list(depth):
    """One list at another depth: blocks of it, and of short lists where rows are skipped."""

    def make(name):
        data = problems.one_user_risk(name, n_neg=700).data
        return EmpiricalRisk(make_surrogate(name, 5, depth), data, "cap")

    return make


def deep(name):
    return EmpiricalRisk(make_surrogate(name, 3, 5), problems.ranking_data())


PROBLEMS = {  # maker, alpha, tolerance, solvers
    "users": (problems.risk, 0.3, 1e-7, SOLVERS),
    "users, depth 5": (deep, 0.02, 1e-7, ("bundle", "ascent")),
    "short lists": (short_lists, 0.1, 1e-8, ("bundle", "ascent")),
    "offsets": (offsets, 0.1, 1e-5, ("bundle", "ascent")),
    "one list, k=10": (problems.one_user_risk, 0.01, 1e-6, ("bundle", "one_slack", "few blocks")),
    "one list, depth 40": (deep_list(40), 0.1, 1e-6, ("bundle", "line_search", "ascent")),
    "one list, a tenth": (deep_list(0.1), 0.1, 1e-6, ("bundle", "line_search", "ascent")),
}


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_solver_reaches_the_optimum(problem, name):
    make, alpha, tol, solvers = PROBLEMS[problem]
    oracle = make(name)
    if make is problems.risk or (make is deep and name != "ts"):  # else many pairs
        optimum = problems.full_problem(oracle, alpha)
    else:
        optimum = CuttingPlane(alpha, tol=min(tol, 1e-8)).solve(oracle).objective
    for solver in solvers:
        result = SOLVERS[solver](alpha, tol=tol).solve(oracle)
        assert result.converged and result.gap <= tol, solver
        assert result.lower_bound <= optimum + 1e-9
        assert result.objective == pytest.approx(optimum, rel=3 * tol, abs=1e-3 * tol)
        assert result.objective == pytest.approx(objective(oracle, alpha, result.w), rel=1e-12)


@pytest.mark.parametrize("failure", [None, "error", "nothing", "nan"])
@pytest.mark.parametrize("method", ["one_slack", "bundle"])
def test_the_textbook_method_asks_cvxpy_which_is_replaced_where_it_fails(
    failure, method, monkeypatch
):
    original, asked = PaddedProblem.dual, []

    def dual(self, solver, tol, slopes, *cuts):
        asked.append(solver)
        if solver == "PIQP" and failure == "error":
            self.problem.solve = fails
        elif solver == "PIQP" and failure is not None:
            return None if failure == "nothing" else np.full(len(slopes), np.nan)
        return original(self, solver, tol, slopes, *cuts)

    def fails(**_):
        raise cp.SolverError("injected")

    monkeypatch.setattr(PaddedProblem, "dual", dual)
    result = CuttingPlane(0.05, tol=1e-6, method=method).solve(problems.risk("avg"))
    assert result.converged
    assert set(asked) == ({"PIQP"} if method == "one_slack" else set())
    replaced = "piqp failed" in result.message and "blocks took over" in result.message
    assert replaced == (method == "one_slack" and failure is not None)


@pytest.mark.parametrize("solver", [CuttingPlane, DualAscent])
@pytest.mark.parametrize("name", CONVEX)
def test_degenerate_optimum_is_said_to_be_so(name, solver):
    """Positives and negatives of one distribution, mirrored: no direction helps on average."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(12, 3))
    X = np.vstack([half, -half, half, -half])
    data = RankingData(X, np.arange(48) < 24, [0, 48])
    for alpha in (1e-3, 1e3):
        result = solver(alpha, tol=1e-6).solve(EmpiricalRisk(make_surrogate(name, 5), data))
        assert result.status is Status.DEGENERATE
        assert result.converged
        assert (result.w == 0).all()
        assert result.objective == 1.0
        assert "zero vector" in result.message
    result = solver(1e6, tol=1e-6).solve(problems.risk(name))
    assert result.status is Status.CONVERGED and result.w.any()


def test_a_plain_function_is_an_oracle():
    class Distance:
        """||w - (1, 2)||_1, which is polyhedral."""

        n_features = 2

        def __call__(self, w):
            return np.abs(w - [1, 2]).sum(), np.sign(w - [1, 2])

    result = CuttingPlane(0.1, tol=1e-9).solve(Distance())
    assert result.w == pytest.approx([1, 2], abs=1e-6)
    assert result.objective == pytest.approx(0.25)
    with pytest.raises(InputError, match="scores"):
        CuttingPlane(0.1, method="line_search").solve(Distance())
    Distance.__call__ = lambda self, w: (np.nan, np.zeros(2))
    with pytest.raises(InputError, match="not finite"):
        CuttingPlane(0.1).solve(Distance())


def test_unknown_qp_solver_lists_the_known():
    with pytest.raises(InputError, match="blocks, piqp, clarabel"):
        CuttingPlane(1.0, qp_solver="simplex").solve(problems.risk("avg"))


@pytest.mark.parametrize("name", CONVEX)
def test_a_start_far_out_does_not_spoil_the_bound(name):
    """There the intercepts of cuts have lost all their digits."""
    for oracle in (problems.risk(name), problems.one_user_risk(name)):
        best = CuttingPlane(0.1, tol=1e-8).solve(oracle)
        for size in (1e8, 1e16):
            start = size * np.linspace(1, -1, oracle.n_features)
            far = CuttingPlane(0.1, tol=1e-6).solve(oracle, w_init=start)
            assert far.lower_bound <= best.objective and far.converged
            assert far.objective == pytest.approx(best.objective, rel=2e-6)


def test_a_risk_that_is_not_convex_after_all_is_found_out():
    class Ramp:
        """min(1, |w - 3|): its cuts are not lower bounds."""

        n_features = 1

        def __call__(self, w):
            distance = abs(w[0] - 3.0)
            return min(1.0, distance), np.array([np.sign(w[0] - 3.0) * (distance < 1.0)])

    result = CuttingPlane(0.01, tol=1e-9).solve(Ramp(), w_init=np.array([3.5]))
    assert result.lower_bound <= result.objective
    with pytest.warns(ConvergenceWarning, match="no bound") as caught:
        wrong = CuttingPlane(1.0, tol=1e-9).solve(Ramp(), w_init=np.array([2.5]))
    assert caught[0].filename == __file__
    assert wrong.status is Status.INCONSISTENT
    assert wrong.lower_bound == -np.inf
    assert "no bound" in wrong.message


@pytest.mark.parametrize("name", CONVEX)
def test_many_features_are_solved_in_the_span_of_the_cuts(name):
    """An orthonormal change of basis into 1,500 columns changes nothing but the length of w."""
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(1500, 5)))[0][:, :5].T
    for small in (problems.risk(name, n_features=5), problems.one_user_risk(name)):
        data = small.data
        y = np.empty(data.rows.size, dtype=bool)
        y[data.rows] = data.labels
        wide = EmpiricalRisk(small.surrogate, RankingData(data.X @ basis, y, data.indptr))
        one, two = (CuttingPlane(1e-2, tol=1e-8).solve(oracle) for oracle in (small, wide))
        assert two.converged
        assert two.objective == pytest.approx(one.objective, rel=2e-8)


def test_scale_of_one_users_features_does_not_slow_the_level():
    """The variable s that the blocks of one list share has the scale of the risk, not of w."""
    oracle = problems.one_user_risk("max", k=1)
    data = oracle.data
    scaled = RankingData(data.X[data.rows] * 100.0, data.labels, data.indptr)
    one = CuttingPlane(1, tol=1e-8).solve(oracle)
    two = CuttingPlane(1e4, tol=1e-8).solve(EmpiricalRisk(oracle.surrogate, scaled))
    assert two.converged
    assert two.data_passes <= 2 * one.data_passes
    assert two.objective == pytest.approx(one.objective, rel=2e-8)


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_an_interrupt_that_a_kernel_made_a_system_error_of(depth):
    cause = KeyboardInterrupt() if depth else None
    for _ in range(depth - 1):
        outer = SystemError("a pickled type returned a result with an exception set")
        outer.__cause__, cause = cause, outer

    def callback(progress):
        if progress.iteration == 3:
            raise SystemError("returned a result with an exception set") from cause

    solver, oracle = CuttingPlane(1e-3, tol=1e-9), problems.risk("ts")
    if not depth:
        with pytest.raises(SystemError):
            solver.solve(oracle, callback=callback)
    else:
        result = solver.solve(oracle, callback=callback)
        assert result.status is Status.INTERRUPTED and result.n_iter == 3
