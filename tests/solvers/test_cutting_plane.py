"""The cutting plane: QP solvers, blocks, sweeps, exact bounds, paths."""

import re
from dataclasses import replace
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from helpers import problems
from helpers.catalogue import CONVEX, SOLVERS
from helpers.marks import slow
from helpers.piecewise import PiecewiseLinear
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk._rounding import EPS
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.cut_model import (
    CutModel,
    _along_face,
    _InnerProducts,
    _WrittenOut,
    block_sweeps,
    default_blocks,
    gram_sweeps,
)
from structsvm_papk.solvers.qp import (
    PaddedProblem,
    RestrictedQP,
    at_corner,
    duality_gap,
    onto_simplices,
)
from structsvm_papk.solvers.solver import Status


def heavy_tails(name, scale):
    """Lists with a column of outliers, in units that leave no digits of the objective."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=200), rng.standard_cauchy(200) * scale])
    y = X[:, 0] + rng.normal(size=200) > 0.8
    lists = RankingData.from_groups(X, y, np.repeat(np.arange(20), 10))
    return EmpiricalRisk(make_surrogate(name, 3), lists)


@pytest.mark.parametrize("name", CONVEX)
@pytest.mark.parametrize("solver", ["bundle", "dual_ascent"])
def test_no_bound_is_below_0_of_a_risk_that_is_not(name, solver):
    if not SOLVERS[solver].solves(name):
        pytest.skip("it is not for this one")
    risk = heavy_tails(name, 1e40 if name == "avg" else 1e12)
    result = SOLVERS[solver].make(1e-2, max_iter=30 if solver == "bundle" else 2).solve(risk)
    assert 0.0 <= result.lower_bound <= result.objective <= 1.0
    assert min(result.curve("lower_bound")) >= 0.0 and result.gap <= 1.0


def test_a_run_without_end_names_columns_of_very_different_sizes():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(1500, 10))
    score = X[:, :5].sum(axis=1) + 3 * rng.standard_t(3, size=1500)
    X[:, 3] *= 1e6
    X[:, 7] /= 1e6
    lists = RankingData.from_groups(X, score > np.quantile(score, 0.8), np.repeat(range(50), 30))
    risk = EmpiricalRisk(make_surrogate("avg", 5), lists)
    result = CuttingPlane(0.01, tol=1e-8, max_iter=40).solve(risk)
    assert not result.converged
    (note,) = [note for note in result.notes if "differ in size" in note]
    assert "e+1" in note and note.index("column 3 ") < note.index("column 7 ")


def test_a_risk_that_may_be_negative_has_its_own_bound():
    def risk(w):
        return float(abs(w[0] - 1.0) - 5.0), np.sign(w - 1.0)

    risk.n_features = 1
    result = CuttingPlane(1e-2).solve(risk)
    assert result.lower_bound == pytest.approx(-4.995) == result.objective


@pytest.mark.parametrize("name", cp.installed_solvers())
def test_a_qp_solver_that_cvxpy_finds_works_or_is_refused(name):
    oracle = problems.risk("avg")
    try:
        solver = CuttingPlane(0.05, tol=1e-4, method="one_slack", qp_solver=name.lower())
        result = solver.solve(oracle)
    except InputError as error:
        assert re.match(f"QP solver '{name.lower()}' .*; choose another", str(error))
        assert name in ("HIGHS", "SCIPY"), "these solve quadratic programs"
        return
    reference = CuttingPlane(0.05, tol=1e-8).solve(oracle)
    assert result.converged and "took over" not in result.message
    assert result.lower_bound <= reference.objective <= result.objective + 1e-9


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

    RestrictedQP("piqp")  # a process tries a solver once, and this is not the time
    monkeypatch.setattr(PaddedProblem, "dual", dual)
    result = CuttingPlane(0.05, tol=1e-6, method=method).solve(problems.risk("avg"))
    assert result.converged
    assert set(asked) == ({"PIQP"} if method == "one_slack" else set())
    replaced = "piqp failed" in result.message and "interior_point took over" in result.message
    assert replaced == (method == "one_slack" and failure is not None)


def test_a_plain_function_is_an_oracle():
    class Distance:
        """||w - (1, 2)||_1, which is polyhedral."""

        n_features = 2

        def __call__(self, w):
            return np.abs(w - [1, 2]).sum(), np.sign(w - [1, 2])

    result = CuttingPlane(0.1, tol=1e-9).solve(Distance())
    assert result.w == pytest.approx([1, 2], abs=1e-6)
    assert result.objective == pytest.approx(0.25)
    Distance.__call__ = lambda self, w: (np.nan, np.zeros(2))
    with pytest.raises(InputError, match="not finite"):
        CuttingPlane(0.1).solve(Distance())


def test_unknown_qp_solver_lists_the_known():
    with pytest.raises(InputError, match="choose from interior_point, clarabel"):
        CuttingPlane(1.0, qp_solver="simplex").solve(problems.risk("avg"))


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


@pytest.mark.parametrize(
    ("name", "n_positives", "few"),
    [("ts", 40, True), ("pauc", 40, True), ("pauc", 160, False), ("avg", 40, False)],
)
def test_terms_of_one_list_with_slopes_at_every_partner_have_few_blocks(name, n_positives, few):
    rng = np.random.default_rng(0)
    y = np.arange(200) < n_positives
    data = RankingData.from_groups(rng.normal(size=(200, 3)), y, np.zeros(200))
    assert (default_blocks(EmpiricalRisk(make_surrogate(name, 5, 0.9), data)) == 8) == few


def test_sweeps_by_inner_products_are_those_by_slopes():
    rng = np.random.default_rng(0)
    slopes, heights = rng.normal(size=(12, 30)), rng.normal(size=12)
    gram = slopes @ slopes.T
    pairs = np.array([0, 2, 3, 5, 7, 9, 11])  # of three, rounding says which two are level
    theta = np.repeat(1 / np.diff([*pairs, 12]), np.diff([*pairs, 12]))
    for n in (1, 2, 5):
        one, two = theta.copy(), theta.copy()
        now = heights - gram @ two
        block_sweeps(slopes, heights, pairs, one, -(one @ slopes), n, 0.0)
        gram_sweeps(gram, now, pairs, two, n, 0.0)
        np.testing.assert_allclose(two, one, atol=1e-11)
        np.testing.assert_allclose(now, heights - gram @ two, atol=1e-11)
    starts = np.array([0, 3, 4, 9])
    theta = np.repeat(1 / np.diff([*starts, 12]), np.diff([*starts, 12]))
    assert gram_sweeps(gram, heights - gram @ theta, starts, theta, 200, 1e-9) <= 1e-9
    assert duality_gap(theta, slopes, heights, starts) <= 2e-9


@pytest.mark.parametrize("seed", range(5))
def test_a_corner_has_few_cuts_the_same_slope_and_no_lower_dual(seed):
    rng = np.random.default_rng(seed)
    n_blocks, n_features = 4, 3
    slopes = rng.normal(size=(60, n_features))
    heights = rng.normal(size=60)
    starts = np.arange(0, 60, 15)
    theta = onto_simplices(rng.random(60), starts)
    corner = at_corner(theta, slopes, heights, starts)
    assert np.count_nonzero(theta) == 60
    assert np.count_nonzero(corner) <= n_features + n_blocks
    assert corner.min() >= 0
    np.testing.assert_allclose(corner @ slopes, theta @ slopes, atol=1e-12)
    np.testing.assert_allclose(np.add.reduceat(corner, starts), 1.0, atol=1e-12)
    assert corner @ heights > theta @ heights


def test_one_list_in_few_blocks_keeps_few_cuts():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5000, 10)) @ (rng.normal(size=(10, 10)) * 10.0 ** rng.uniform(-2, 0, 10))
    score = X @ rng.normal(size=10) + 0.3 * rng.normal(size=5000)
    lists = RankingData(X, score > np.quantile(score, 0.7), [0, 5000])
    result = CuttingPlane(1e-3).solve(EmpiricalRisk(make_surrogate("ts", 2), lists))
    assert result.converged
    assert result.curve("n_cuts").max() <= 200  # 412 where the QP's weights stay


@pytest.mark.parametrize("written_out", [True, False])
def test_steps_along_a_face_reach_its_maximum(written_out):
    rng = np.random.default_rng(0)
    slopes = np.eye(12, 30) + 0.02 * rng.normal(size=(12, 30))  # so that all weights stay above 0
    heights = 0.1 * rng.normal(size=12)
    starts = np.array([0, 3, 4, 9])
    theta = onto_simplices(np.ones(12), starts)
    cuts = _WrittenOut(slopes) if written_out else _InnerProducts(slopes @ slopes.T)
    for _ in range(4):
        theta = _along_face(cuts, heights, starts, theta)
    now = heights + cuts.rise(theta)
    assert theta.min() > 0
    np.testing.assert_allclose(
        now, np.add.reduceat(theta * now, starts)[[0] * 3 + [1] + [2] * 5 + [3] * 3], atol=1e-9
    )
    assert duality_gap(theta, slopes, heights, starts) <= 1e-9


@pytest.mark.parametrize("n_blocks", [3, 12])
@pytest.mark.parametrize("n_features", [4, 40, 1001])
def test_weights_of_cuts_come_as_close_as_the_target_asks(n_blocks, n_features):
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(5 * n_blocks, n_features)) / np.sqrt(n_features)
    heights = rng.normal(size=5 * n_blocks)
    model = CutModel(np.full(n_features, -np.inf), n_features, n_blocks, "interior_point")
    model.add(slopes, heights, np.repeat(np.arange(n_blocks), 5))
    z, value = model.minimise(np.zeros(n_features), np.full(n_features, 0.01), 1e-8)
    theta = model._theta[model.order]
    assert duality_gap(theta, slopes / 0.1, heights, model.starts) <= 1e-8
    np.testing.assert_allclose(z, -(theta @ slopes) / 0.01, atol=1e-9)
    tops = np.maximum.reduceat(slopes @ z + heights, model.starts)
    np.testing.assert_allclose(value, tops.sum(), atol=1e-9)


# --- bounds that are exact in every entry, against exact optima ---------------------------------

ULP = 2.0**-52
SLOPES_THAT_CANCEL = (
    ((1.0, 1e16, -1e16), 1.0),
    ((0.49 * ULP * 2.0**40, 2.0**40, -(2.0**40)), 1e-8),
    ((0.49 * ULP * 2.0**36, 2.0**36, -(2.0**36)), 1e-10),
    ((1e-9, 1e8, -1e8), 1e-12),
)


def cancelling(rng, n_blocks, n_pieces):
    """Slopes over 12 orders of magnitude that cancel, but for what is near the last digit."""
    slopes = 10.0 ** rng.uniform(-6, 6) * (1 + rng.random((n_blocks, n_pieces)))
    slopes[1::2] = -slopes[: n_blocks - 1 : 2]
    slopes[-1] = np.spacing(np.abs(slopes).max()) * rng.uniform(0.1, 0.9, n_pieces)
    return slopes, (n_blocks * slopes[-1].mean()) ** 2 * 10.0 ** rng.uniform(-2, 1)


def test_bounds_are_below_exact_optima_for_slopes_that_cancel():
    rng = np.random.default_rng(0)
    cases = [(np.reshape(slopes, (3, 1)), alpha) for slopes, alpha in SLOPES_THAT_CANCEL]
    cases += [cancelling(rng, n, int(rng.integers(1, 4))) for n in 8 * [3, 21]]
    for i, (slopes, alpha) in enumerate(cases):
        heights = rng.uniform(0, 1, (1, *slopes.shape)) / len(slopes)
        oracle = PiecewiseLinear(slopes[None], heights)
        result = CuttingPlane(alpha, 1e-6, max_iter=10).solve(oracle)
        assert Fraction(result.lower_bound) <= oracle.optimum(alpha)
        assert i >= len(SLOPES_THAT_CANCEL) or not result.converged  # the digits do not suffice


def test_weights_that_have_drifted_are_scaled_back():
    rng = np.random.default_rng(0)
    model = CutModel(np.full(2, -np.inf), 2, 9, "interior_point")
    model.add(rng.normal(size=(36, 2)), rng.normal(size=36), np.repeat(np.arange(9), 4))
    model._theta[:36] = np.tile([1.0, 2e-12, 0.0, 0.0], 9)  # as many small steps leave them
    model.minimise(np.zeros(2), np.ones(2), 1e9)
    sums = np.add.reduceat(model._theta[model.order], model.starts)
    np.testing.assert_allclose(sums, 1.0, rtol=0, atol=1e-15)


def test_cuts_of_the_best_point_stay_until_it_moves():
    rng = np.random.default_rng(0)
    model = CutModel(np.full(2, -np.inf), 2, 3, "interior_point")
    blocks = np.arange(3)
    slopes = rng.normal(size=(3, 3, 2))
    model.add(slopes[0], np.full(3, 9.0), blocks)  # the highest: they have all of the weight
    model.add(slopes[1], np.zeros(3), blocks)
    model.keep_added()
    model.add(slopes[2], np.zeros(3), blocks)
    model.drop_idle(0)
    np.testing.assert_array_equal(model.cuts()[0][::2], slopes[0])
    np.testing.assert_array_equal(model.cuts()[0][1::2], slopes[1])
    model.add(slopes[2], np.zeros(3), blocks)
    model.keep_added()
    model.drop_idle(0)
    np.testing.assert_array_equal(model.cuts()[0][1::2], slopes[2])


def test_products_of_cuts_lose_no_more_than_the_rounding_of_one():
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=(400, 2000)) * 10.0 ** rng.uniform(-3.0, 0.0, (400, 1))
    slopes[1::2] = slopes[::2] + 1e-5 * slopes[1::2]  # cuts that are nearly alike
    gram = slopes @ slopes.T
    own = _InnerProducts(gram).slopes()
    assert np.abs(own @ own.T - gram).max() <= 20 * EPS * gram.max()


@pytest.mark.parametrize("n_draws", [6, slow(200)])
def test_the_bound_holds_at_any_weights(n_draws):
    """Of the restricted problem, w >= 0, at dual points far from what the QP would answer."""
    rng = np.random.default_rng(0)
    for _ in range(n_draws):
        d, n_blocks, alpha = int(rng.integers(1, 5)), int(rng.integers(1, 4)), 0.1
        slopes, heights = rng.normal(size=(n_blocks * 3, d)), rng.random(n_blocks * 3)
        model = CutModel(np.zeros(d), d, n_blocks, "interior_point")
        model.add(slopes, heights, np.repeat(np.arange(n_blocks), 3))
        model._theta[:] = 0.0
        model._theta[model.order] = rng.dirichlet(np.ones(3), n_blocks).ravel()
        w, xi = cp.Variable(d, nonneg=True), cp.Variable(n_blocks)
        cuts = [xi[i // 3] >= slopes[i] @ w + heights[i] for i in range(n_blocks * 3)]
        least = cp.Problem(cp.Minimize(alpha / 2 * cp.sum_squares(w) + cp.sum(xi)), cuts)
        least.solve(solver="CLARABEL")
        assert model.lower_bound(alpha, 1e9) <= least.value + 1e-7
        z, _ = model.minimise(np.zeros(d), np.full(d, alpha), 1e-10)
        assert (z >= 0).all()
        assert model.lower_bound(alpha, 1e9) == pytest.approx(least.value, abs=1e-6)


def test_the_slope_in_s_may_cancel_too():
    model = CutModel(np.full(1, -np.inf), 2, 3, "interior_point")
    model.add(np.array([[0.0, 1.0], [0.0, 1e16], [0.0, -1e16]]), np.full(3, 0.2), np.arange(3))
    # with slopes 1 + 1e16 - 1e16 in s the risk rises by s >= 0: no more than the intercepts hold
    assert model.lower_bound(1.0, 1.0) <= 0.6
    model = CutModel(np.full(1, -np.inf), 2, 3, "interior_point")
    model.add(np.array([[0.0, -1.0], [0.0, 1e16], [0.0, -1e16]]), np.full(3, 0.2), np.arange(3))
    assert model.lower_bound(1.0, 1.0) <= -0.4  # 0.6 - s for some s between 0 and 1


# --- paths --------------------------------------------------------------------------------------


def test_a_path_reuses_cuts_and_does_not_evaluate_its_points_again():
    alphas, solver = [1e-1, 1e-2, 1e-4, 1e-3], CuttingPlane(1.0, tol=1e-6)
    many = problems.risk("avg", n_users=400, n_items=12, n_features=3)
    for risk in (many, problems.risk("ts", n_users=60)):
        path = problems.warm_path(risk, alphas, solver)
        cold = [replace(solver, alpha=alpha).solve(risk) for alpha in alphas]
        for alpha, warm, alone in zip(alphas, path, cold, strict=True):
            assert warm.alpha == alpha and warm.gap <= 1e-6 and alone.gap <= 1e-6
            assert warm.lower_bound <= alone.objective * (1 + 1e-12)
            assert alone.lower_bound <= warm.objective * (1 + 1e-12)
        again = replace(solver, alpha=alphas[0]).solve(risk, warm_start=path[0])
        assert again.data_passes <= 1 and again.gap <= 1e-6
        np.testing.assert_array_equal(again.w, path[0].w)
