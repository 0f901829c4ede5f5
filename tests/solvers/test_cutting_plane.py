"""Every method on every convex surrogate: by certificate, and against the full problem."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers import problems
from helpers.marks import slow
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
from structsvm_papk.solvers import alpha_path
from structsvm_papk.solvers.bundle.cvxpy_problems import PaddedProblem
from structsvm_papk.solvers.bundle.qp import RestrictedQP
from structsvm_papk.surrogates import CONVEX

METHODS = ("bundle", "line_search", "one_slack")


@pytest.mark.parametrize(
    ("name", "alpha"),
    [
        *[("avg", 0.3), ("max", 0.02), ("ts", 0.3), ("pauc", 0.02)],
        *[slow("avg", 0.02), slow("max", 0.3), slow("ts", 0.02), slow("pauc", 0.3)],
    ],
)
def test_agrees_with_the_full_problem(name, alpha):
    oracle = problems.risk(name)
    optimum = problems.full_problem(oracle, alpha)
    for method in METHODS:
        result = CuttingPlane(alpha, tol=1e-7, method=method).solve(oracle)
        assert result.converged
        assert result.gap <= 1e-7
        assert result.objective == pytest.approx(optimum, rel=1e-6)
        assert result.objective == pytest.approx(objective(oracle, alpha, result.w), rel=1e-12)


@pytest.mark.parametrize(
    ("name", "k"),
    [
        *[("avg", 160), ("max", 10), ("ts", 160), ("pauc", 10)],
        *[slow("avg", 10), slow("max", 160), slow("ts", 10), slow("pauc", 160)],
    ],
)
def test_one_user_in_blocks_agrees_with_one_slack(name, k):
    oracle = problems.one_user_risk(name, k)
    blocks = CuttingPlane(1e-2, tol=1e-8, n_blocks=12).solve(oracle)
    plain = CuttingPlane(1e-2, tol=1e-6, method="one_slack").solve(oracle)
    assert blocks.converged and plain.converged
    assert plain.lower_bound <= blocks.objective
    assert blocks.lower_bound <= plain.objective
    assert blocks.objective == pytest.approx(plain.objective, rel=2e-6)


@pytest.mark.parametrize("name", CONVEX)
def test_cuts_lie_below_their_blocks(name):
    rng = np.random.default_rng(1)
    for oracle in (
        problems.risk(name).with_blocks(5),
        problems.one_user_risk(name).with_blocks(7),
        problems.one_user_risk(name, 160).with_blocks(7),
    ):
        asked = [oracle.cuts(rng.normal(size=oracle.n_features)) for _ in range(12)]
        for cuts in asked:
            assert (cuts.slopes @ cuts.point + cuts.intercepts).sum() == pytest.approx(cuts.value)
            for other in asked:
                height = other.slopes @ cuts.point + other.intercepts
                assert (height <= cuts.slopes @ cuts.point + cuts.intercepts + 1e-12).all()


def test_every_qp_solver_gives_the_same_certified_optimum():
    oracle = problems.risk("max")
    optimum = problems.full_problem(oracle, 0.05)
    for solver in ("blocks", "piqp", "clarabel", "osqp"):
        result = CuttingPlane(0.05, tol=1e-6, qp_solver=solver).solve(oracle)
        assert result.converged
        assert result.objective == pytest.approx(optimum, rel=2e-6)


@pytest.mark.parametrize("failure", ["error", "nothing", "nan"])
def test_a_failing_qp_solver_is_replaced_and_noted(failure, monkeypatch):
    original = PaddedProblem.dual

    def dual(self, solver, tol):
        if solver != "PIQP":
            return original(self, solver, tol)
        if failure == "error":
            self.problem.solve = _raise_solver_error
            return original(self, solver, tol)
        return None if failure == "nothing" else np.full(self.used, np.nan)

    monkeypatch.setattr(PaddedProblem, "dual", dual)
    solver = CuttingPlane(0.05, tol=1e-6, method="one_slack", qp_solver="piqp")
    result = solver.solve(problems.risk("avg"))
    assert result.converged
    assert "piqp failed" in result.message
    assert "blocks took over" in result.message


@pytest.mark.parametrize(("method", "asked"), [("one_slack", True), ("bundle", False)])
def test_only_the_textbook_method_asks_cvxpy_by_default(method, asked, monkeypatch):
    original, names = PaddedProblem.dual, []

    def dual(self, solver, tol):
        names.append(solver)
        return original(self, solver, tol)

    monkeypatch.setattr(PaddedProblem, "dual", dual)
    assert CuttingPlane(0.1, method=method).solve(problems.risk("ts")).converged
    assert set(names) == ({"PIQP"} if asked else set())


def _raise_solver_error(**_):
    raise cp.SolverError("injected")


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


def test_large_alpha_is_not_degenerate():
    result = CuttingPlane(1e6, tol=1e-6).solve(problems.risk("avg"))
    assert result.status is Status.CONVERGED
    assert result.w.any()


def test_path_reuses_cuts_and_agrees_with_cold_solves():
    oracle, alphas = problems.risk("ts"), [1e-2, 1.0, 1e-1]
    path = alpha_path(oracle, alphas, CuttingPlane(1.0, tol=1e-8))
    cold = [CuttingPlane(alpha, tol=1e-8).solve(oracle) for alpha in alphas]
    for warm, alone in zip(path, cold, strict=True):
        assert warm.objective == pytest.approx(alone.objective, rel=2e-8)
    passes = np.diff(cold[0].curve("data_passes"))  # the last step may need none
    assert (passes[:-1] >= 1).all() and passes[-1] >= 0
    assert sum(r.data_passes for r in path) < sum(r.data_passes for r in cold)
    again = CuttingPlane(alphas[0], tol=1e-8).solve(oracle, warm_start=path[0])
    assert again.data_passes <= 4  # one of them at zero, to see that it is the same risk


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


def test_a_risk_that_is_not_finite_is_refused():
    class Broken:
        n_features = 2

        def __call__(self, w):
            return np.nan, np.zeros(2)

    with pytest.raises(InputError, match="not finite"):
        CuttingPlane(0.1).solve(Broken())


def test_unknown_qp_solver_lists_the_known():
    with pytest.raises(InputError, match="blocks, piqp, clarabel"):
        CuttingPlane(1.0, qp_solver="simplex").solve(problems.risk("avg"))


def test_restricted_qp_solvers_agree_and_duals_are_feasible():
    rng = np.random.default_rng(0)
    for n_features in (4, 60):  # fewer and more features than cuts
        slopes, intercepts = rng.normal(size=(40, n_features)), rng.normal(size=40)
        blocks = np.sort(np.append(np.arange(8), rng.integers(0, 8, 32)))
        values = []
        for solver in ("blocks", "piqp", "clarabel"):
            theta = RestrictedQP(solver).solve(slopes, intercepts, blocks, 1e-9)
            assert (theta >= 0).all()
            assert np.bincount(blocks, theta) == pytest.approx(np.ones(8), abs=1e-14)
            total = theta @ slopes
            values.append(theta @ intercepts - total @ total / 2)
        assert values == pytest.approx([values[0]] * 3, abs=1e-7)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("size", [1e8, 1e16])
def test_a_start_far_out_does_not_spoil_the_bound(name, size):
    """There the intercepts of cuts have lost all their digits."""
    for oracle in (problems.risk(name), problems.one_user_risk(name)):
        best = CuttingPlane(0.1, tol=1e-8).solve(oracle)
        start = size * np.linspace(1, -1, oracle.n_features)
        far = CuttingPlane(0.1, tol=1e-6).solve(oracle, w_init=start)
        assert far.lower_bound <= best.objective
        assert far.converged
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
    one = CuttingPlane(1.0, tol=1e-8).solve(oracle)
    two = CuttingPlane(1e4, tol=1e-8).solve(EmpiricalRisk(oracle.surrogate, scaled))
    assert two.converged
    assert two.data_passes <= 2 * one.data_passes
    assert two.objective == pytest.approx(one.objective, rel=2e-8)


@pytest.mark.parametrize("name", ["avg", "max", "ts"])
def test_a_whole_number_for_alpha_is_as_good_as_a_float(name):
    oracle = problems.one_user_risk(name)
    whole, real = (CuttingPlane(alpha).solve(oracle) for alpha in (1, 1.0))
    np.testing.assert_array_equal(whole.w, real.w)
    assert whole.status is real.status and whole.n_iter == real.n_iter


def test_a_result_fits_a_screen_and_shows_as_a_table_in_notebooks():
    oracle = problems.risk("avg")
    result = CuttingPlane(1e-2).solve(oracle)
    assert len(repr(result)) < 400
    table = result._repr_html_()
    assert f"<td>{result.objective:.8g}</td>" in table
    assert "<td>converged</td>" in table


@pytest.mark.parametrize("depth", [None, 1, 2])
def test_an_interrupt_that_a_kernel_made_a_system_error_of(depth):
    cause = None if depth is None else KeyboardInterrupt()
    for _ in range((depth or 1) - 1):
        outer = SystemError("a pickled type returned a result with an exception set")
        outer.__cause__, cause = cause, outer

    def callback(progress):
        if progress.iteration == 3:
            raise SystemError("returned a result with an exception set") from cause

    risk = EmpiricalRisk(make_surrogate("ts", 3), problems.ranking_data())
    solver = CuttingPlane(1e-3, tol=1e-9)
    if depth is None:
        with pytest.raises(SystemError):
            solver.solve(risk, callback=callback)
    else:
        result = solver.solve(risk, callback=callback)
        assert result.status is Status.INTERRUPTED and result.n_iter == 3
