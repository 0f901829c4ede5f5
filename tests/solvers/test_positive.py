"""Weights >= 0, all or some: by certificate, and against the full problem with these in cvxpy."""

from dataclasses import replace
from functools import partial

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from helpers import problems
from helpers.commands import run, run_json
from helpers.full_problem import full_problem
from helpers.marks import slow
from helpers.problems import objective
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    SubgradientDescent,
    make_surrogate,
)
from structsvm_papk.data.columns.units import Units
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.oracles.list_risk import Thresholds
from structsvm_papk.rankers.settings import make_solver
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient
from structsvm_papk.solvers.cut_model import CutModel
from structsvm_papk.solvers.solver import Status
from structsvm_papk.solvers.stochastic_subgradient import StochasticSubgradient
from structsvm_papk.surrogates import CONVEX

SOLVERS = {
    "bundle": CuttingPlane,
    "one_slack": partial(CuttingPlane, method="one_slack"),
    "one_slack, clarabel": partial(CuttingPlane, method="one_slack", qp_solver="clarabel"),
    "clarabel": partial(CuttingPlane, qp_solver="clarabel"),
    "few blocks": partial(CuttingPlane, n_blocks=5),
}


def optimum(risk, alpha, positive=True):
    """The optimum of the whole problem, every pair of it, over w >= 0 where `positive` says so."""
    free, w = full_problem(risk, alpha)
    signs = np.broadcast_to(positive, risk.n_features)
    problem = cp.Problem(free.objective, [*free.constraints, w[np.flatnonzero(signs)] >= 0])
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return problem.value


def random_problem(seed):
    """A risk and an alpha; some columns have a sign that w >= 0 cannot use, some none."""
    rng = np.random.default_rng(seed)
    n_users, n_features = rng.integers(1, 13), rng.integers(1, 9)
    n_pos, n_neg = rng.integers(1, 5, n_users), rng.integers(3, 12, n_users)
    groups = np.repeat(np.arange(n_users), n_pos + n_neg)
    y = np.concatenate([np.arange(p + n) < p for p, n in zip(n_pos, n_neg, strict=True)])
    X = rng.normal(size=(y.size, n_features)) * 10.0 ** rng.integers(-1, 2, n_features)
    X[y] += rng.choice([-1.0, 0.0, 1.0], n_features) * rng.random(n_features) * X.std(axis=0)
    if rng.random() < 0.3:
        X = np.round(X)  # ties, and columns that are constant
    data = RankingData.from_groups(X, y, groups)
    depth = rng.choice([None, 3, 0.5, 0.9])
    depth = depth if depth is None or depth < 1 else int(depth)
    surrogate = make_surrogate(rng.choice(CONVEX), int(rng.integers(1, 4)), depth)
    return EmpiricalRisk(surrogate, data, "cap"), float(10.0 ** rng.uniform(-3, 0))


def random_signs(seed, n_features):
    """A mask with at least one True."""
    rng = np.random.default_rng([1, seed])
    signs = rng.random(n_features) < 0.5
    signs[rng.integers(n_features)] = True
    return signs


@pytest.mark.parametrize(
    "seeds",
    [range(1), pytest.param(range(1, 60), marks=pytest.mark.stress)],
    ids=["a few", "many"],
)
def test_every_bound_is_below_the_optimum_and_the_last_one_there(seeds):
    signs = 0
    for seed in seeds:
        risk, alpha = random_problem(seed)
        best = optimum(risk, alpha)
        for name, solver in SOLVERS.items():
            result = solver(alpha, tol=1e-6, positive=True).solve(risk)
            where = f"seed {seed}, {name}"
            assert result.converged, where
            assert (result.w >= 0).all(), where
            assert (result.curve("lower_bound") <= best + 1e-9).all(), where
            assert (result.curve("objective") >= best - 1e-9).all(), where
            assert result.objective == pytest.approx(best, rel=2e-6, abs=2e-9), where
            assert result.objective == pytest.approx(objective(risk, alpha, result.w), rel=1e-12)
        signs += best > 1.001 * CuttingPlane(alpha).solve(risk).objective
    assert signs >= len(seeds) / 3  # else the constraint was hardly ever felt


@pytest.mark.parametrize(
    "seeds",
    [range(1), pytest.param(range(1, 100), marks=pytest.mark.stress)],
    ids=["a few", "many"],
)
def test_some_weights_of_each_problem_have_a_sign(seeds):
    felt = 0
    for seed in seeds:
        risk, alpha = random_problem(seed)
        signs = random_signs(seed, risk.n_features)
        best = optimum(risk, alpha, signs)
        names = SOLVERS if 0 < seed < 20 else ["bundle", list(SOLVERS)[seed % len(SOLVERS)]]
        for name in names:
            result = SOLVERS[name](alpha, tol=1e-6, positive=signs).solve(risk)
            where = f"seed {seed}, {name}"
            assert result.converged, where
            assert (result.w[signs] >= 0).all(), where
            assert (result.curve("lower_bound") <= best + 1e-9).all(), where
            assert (result.curve("objective") >= best - 1e-9).all(), where
            assert result.objective == pytest.approx(best, rel=2e-6, abs=2e-9), where
            assert result.objective == pytest.approx(objective(risk, alpha, result.w), rel=1e-12)
        tight = CuttingPlane(alpha, tol=1e-9, positive=signs).solve(risk)
        assert tight.converged
        assert tight.objective == pytest.approx(best, rel=1e-8, abs=1e-9)
        felt += (result.w[~signs] < 0).any() and (result.w[signs] == 0).any()
    assert felt >= len(seeds) / 4  # weights below 0, and others that were kept from it


def test_named_one_by_one_all_or_none_are_true_or_false_bit_for_bit():
    risk = EmpiricalRisk(make_surrogate("ts", 3, 0.9), problems.uneven(n_features=6), "cap")
    ramp = problems.risk("ramp", n_users=4, n_features=6)
    quick = ("bundle", "one_slack", "few blocks")
    ways = [(partial(SOLVERS[name], 0.01), risk) for name in quick]
    ways += [(partial(CCCP, 0.01), ramp), (partial(SubgradientDescent, 0.01), ramp)]
    ways += [(partial(kind, 0.01), risk) for kind in (AveragedSubgradient, StochasticSubgradient)]
    start = np.linspace(1, -1, 6)
    for make, given in ways:
        for value in (True, False):
            expected = make(positive=value, max_iter=4).solve(given, start)
            for same in (np.full(6, value), [value] * 6, (np.bool_(value),) * 6):
                result = make(positive=same, max_iter=4).solve(given, start)
                np.testing.assert_array_equal(result.w, expected.w)
                np.testing.assert_array_equal(result.curve("gap"), expected.curve("gap"))


@pytest.mark.parametrize("name", [slow("avg"), slow("max"), "ts", slow("pauc")])
def test_columns_turned_by_a_negative_scale_have_the_mirrored_optimum(name):
    """A weight <= 0 of a column is one >= 0 of the same column with its sign turned."""
    data = problems.uneven(n_features=6).standardized()
    signs = np.array([True, True, False, True, False, True])
    turned = np.array([-1.0, 1.0, -1.0, -1.0, 1.0, 1.0])
    mirrored = data.scaled_by(data.units.scale * turned)
    by_hand = RankingData(data.X[data.rows] / mirrored.units.scale, data.labels, data.indptr)
    X = sp.csr_matrix(data.X[data.rows])
    sparse = RankingData(X, data.labels, data.indptr).in_units(Units(mirrored.units.scale))
    surrogate = make_surrogate(name, 3, 0.9)
    solver = CuttingPlane(0.01, tol=1e-8, positive=signs)
    best = optimum(EmpiricalRisk(surrogate, by_hand, "cap"), 0.01, signs)
    for lists in (mirrored, by_hand, sparse):
        result = solver.solve(EmpiricalRisk(surrogate, lists, "cap"))
        assert result.converged and result.lower_bound <= best + 1e-9
        assert result.objective == pytest.approx(best, rel=1e-7)
    assert best > 1.0001 * CuttingPlane(0.01).solve(EmpiricalRisk(surrogate, data, "cap")).objective


@pytest.mark.parametrize("name", CONVEX)
def test_one_long_list_has_a_variable_that_may_be_of_any_sign(name):
    """R(w) = min over s of sum_j R_j(w, s): the sign of s is not constrained."""
    data = problems.one_user_risk(name, n_neg=60).data
    X = data.X[data.rows] * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    risk = EmpiricalRisk(make_surrogate(name, 10), RankingData(X, data.labels, data.indptr))
    result = CuttingPlane(0.01, n_blocks=8, positive=True).solve(risk)
    assert result.cuts[2].max() > 0
    assert result.converged and (result.w >= 0).all() and not result.w.all()
    one_block = CuttingPlane(0.01, tol=1e-8, n_blocks=1, positive=True).solve(risk)
    assert result.objective == pytest.approx(one_block.objective, rel=2e-6)
    assert result.lower_bound <= one_block.objective


@pytest.mark.parametrize("storage", ["partitions", "sparse", "standardized", "short lists"])
@pytest.mark.parametrize("name", ["avg", "ts"])
def test_every_storage_has_the_same_optimum(name, storage):
    data = problems.uneven()
    surrogate = make_surrogate(name, 3, 0.9)
    risk = EmpiricalRisk(surrogate, data, "cap")
    expected = CuttingPlane(0.01, tol=1e-9, positive=True).solve(risk)
    assert 0 < (expected.w == 0).sum() < expected.w.size
    if storage == "partitions":
        data = data.usable(3)
        expected = CuttingPlane(0.01, tol=1e-9, positive=True).solve(
            EmpiricalRisk(make_surrogate(name, 3), data)
        )
        risk = problems.partitioned(make_surrogate(name, 3), data, 4)
    elif storage == "sparse":
        X = sp.csr_matrix(data.X[data.rows])
        risk = EmpiricalRisk(surrogate, RankingData(X, data.labels, data.indptr), "cap")
    elif storage == "standardized":
        expected = CuttingPlane(0.01, tol=1e-9, positive=True).solve(
            EmpiricalRisk(surrogate, data.standardized(), "cap")
        )
        X = data.X[data.rows] / data.standardized().units.scale
        risk = EmpiricalRisk(surrogate, RankingData(X, data.labels, data.indptr), "cap")
    else:
        assert risk.with_blocks(4).n_blocks > 1
    result = CuttingPlane(0.01, tol=1e-7, positive=True).solve(risk)
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=2e-7)


def test_more_features_than_the_model_keeps_products_of():
    """Wide problems are solved in the span of the cuts; those >= 0 in that of the free features.

    A column and its equal parts have the same optimum: w of the parts has the norm of the whole.
    """
    data = problems.ranking_data(n_features=20)
    surrogate = make_surrogate("ts", 3)
    solver = CuttingPlane(0.05, tol=1e-8, positive=True)
    expected = solver.solve(EmpiricalRisk(surrogate, data))
    n_parts = 130
    X = np.repeat(data.X[data.rows], n_parts, axis=1) / np.sqrt(n_parts)
    risk = EmpiricalRisk(surrogate, RankingData(X, data.labels, data.indptr))
    result = replace(solver, tol=1e-7).solve(risk)
    assert n_parts * (expected.w > 0).sum() > 1000  # beyond, the span is used
    assert result.converged
    assert result.objective == pytest.approx(expected.objective, rel=2e-7)


@pytest.mark.parametrize("n_draws", [6, slow(200)])
def test_the_bound_holds_at_any_weights(n_draws):
    """`lower_bound` of arbitrary dual points, far from what the QP would answer."""
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


@pytest.mark.parametrize("name", CONVEX)
def test_zero_is_optimal_where_no_slope_of_a_subgradient_is_negative(name):
    """Positives are lower in every column: only weights < 0 would help."""
    data = problems.ranking_data()
    X = -np.abs(data.X[data.rows])
    X[data.labels] -= 3.0
    data = RankingData(X, data.labels, data.indptr)
    risk = EmpiricalRisk(make_surrogate(name, 3), data)
    for solver in SOLVERS.values():
        result = solver(0.1, positive=True).solve(risk)
        assert result.status is Status.DEGENERATE and not result.w.any()
        assert result.objective == pytest.approx(1.0, abs=1e-12)
    assert solver(0.1).solve(risk).objective < 0.9
    assert (risk(np.zeros(risk.n_features))[1] >= 0).all()  # why: a subgradient >= 0
    groups = np.repeat(np.arange(data.n_users), data.sizes)
    ranker = PAPKRanker(3, name, positive=True, curves=None)
    with pytest.warns(DegenerateOptimumWarning, match="among weights >= 0") as raised:
        ranker.fit(X, data.labels, groups)
    settings = raised[0].message.settings
    assert settings == {"positive": False}
    assert ranker.set_params(**settings).fit(X, data.labels, groups).coef_.any()


def test_starts_warm_starts_and_paths_stay_there():
    risk = EmpiricalRisk(make_surrogate("ts", 3, 0.9), problems.uneven(n_features=6), "cap")
    solver = CuttingPlane(0.01, positive=True)
    expected = solver.solve(risk)
    assert 0 < (expected.w == 0).sum() < 6
    far = -100.0 * np.ones(6)
    for method in ("bundle", "one_slack"):
        result = replace(solver, method=method).solve(risk, far)
        assert result.objective == pytest.approx(expected.objective, rel=2e-6)
        assert (result.w >= 0).all()
    signed = CuttingPlane(0.01).solve(risk)
    assert (signed.w < 0).any()
    warm = solver.solve(risk, warm_start=signed)
    assert warm.objective == pytest.approx(expected.objective, rel=2e-6)
    assert warm.lower_bound <= expected.objective
    alphas = (1.0, 0.1, 0.01)
    for alpha, result in zip(alphas, problems.warm_path(risk, alphas, solver), strict=True):
        fresh = CuttingPlane(alpha, positive=True).solve(risk)
        assert result.objective == pytest.approx(fresh.objective, rel=2e-6)


def test_a_sample_of_the_users_takes_steps_there_too():
    data = problems.ranking_data(n_users=400, n_items=12, n_features=3)
    w = CuttingPlane(0.01).solve(EmpiricalRisk(make_surrogate("avg", 3), data)).w
    weakest = np.abs(w) == np.abs(w).min()
    X = data.X[data.rows] * np.where(weakest, -1, 1) * np.sign(w)
    data = RankingData(X, data.labels, data.indptr)
    plain = EmpiricalRisk(make_surrogate("avg", 3), data)
    expected = CuttingPlane(0.01, tol=1e-8, positive=True).solve(plain)
    assert 0 < (expected.w == 0).sum() < 3
    risk = EmpiricalRisk(make_surrogate("avg", 3), data, thresholds=Thresholds(sample_rows=1000))
    assert risk.sample is not None
    result = CuttingPlane(0.01, tol=1e-8, positive=True).solve(risk)
    assert result.converged and (result.w >= 0).all()
    assert result.objective == pytest.approx(expected.objective, rel=3e-8)


@pytest.mark.parametrize("signs", [True, (False, True, True, False)], ids=["all", "some"])
@pytest.mark.parametrize("name", ["ramp", "clipped_ramp"])
def test_the_convex_concave_procedure_stays_there(name, signs):
    data = problems.uneven()
    X = data.X[data.rows] * np.array([1.0 if signs is True else -1.0, 1.0, 1.0, 1.0])
    data = RankingData(X, data.labels, data.indptr)
    risk = EmpiricalRisk(make_surrogate(name, 3), data, "cap")
    result = CCCP(0.01, positive=signs).solve(risk)
    signed = np.broadcast_to(signs, 4)
    assert result.converged
    assert all((start.w[signed] >= 0).all() for start in result.starts)
    assert result.objective < 0.9
    assert (result.w == 0).any() if signs is True else result.w[0] < 0
    assert result.objective == pytest.approx(objective(risk, 0.01, result.w), rel=1e-12)
    # critical: the majorant's own optimum over these w is no lower
    there = CuttingPlane(0.01, tol=1e-8, positive=signs).solve(risk.majorant(result.w))
    assert there.objective >= result.objective - 2e-6


@pytest.mark.parametrize("seeds", [range(1), pytest.param(range(1, 40), marks=pytest.mark.stress)])
def test_where_ramp_is_convex_the_convex_concave_procedure_finds_the_optimum(seeds):
    """With one positive a list Ramp is Avg: the problem can be written in full."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        n_users, n_features = rng.integers(2, 9), int(rng.integers(2, 7))
        y = np.tile(np.arange(8) < 1, n_users)
        X = rng.normal(size=(y.size, n_features))
        X[y] += rng.choice([-1.0, 0.0, 1.0], n_features)
        data = RankingData(X, y, np.arange(0, y.size + 1, 8))
        signs = random_signs(seed, n_features)
        best = optimum(EmpiricalRisk(make_surrogate("avg", 2), data, "cap"), 0.05, signs)
        ramp = EmpiricalRisk(make_surrogate("ramp", 2), data, "cap")
        result = CCCP(0.05, tol=1e-7, positive=signs).solve(ramp)
        assert (result.w[signs] >= 0).all()
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert result.lower_bound <= best + 1e-9


SOME = (False, True, True, False, True, False)


@pytest.mark.parametrize(
    ("keep", "signs"),
    [
        ("best", True),
        ("average", SOME),
        slow("best", SOME),
        slow("last", True),
        slow("last", SOME),
        slow("average", True),
    ],
)
def test_descent_projects(keep, signs):
    risk = problems.risk("avg", n_features=6)
    expected = CuttingPlane(0.05, positive=signs).solve(risk)
    settings = {"eta": 0.5, "max_iter": 3000, "keep": keep, "positive": signs}
    result = SubgradientDescent(0.05, start_scale=1.0, **settings).solve(risk)
    assert (result.w[np.broadcast_to(signs, 6)] >= 0).all()
    assert expected.lower_bound <= result.objective <= expected.objective + 2e-3


@pytest.mark.parametrize("signs", [slow(True), SOME], ids=["all", "some"])
@pytest.mark.parametrize("kind", [AveragedSubgradient, StochasticSubgradient])
def test_averaged_descent_projects(kind, signs):
    risk = problems.risk("avg", n_features=6)
    expected = CuttingPlane(0.05, positive=signs).solve(risk)
    result = kind(0.05, max_iter=500, positive=signs).solve(risk, w_init=-np.ones(6))
    assert (result.w[np.broadcast_to(signs, 6)] >= 0).all()
    assert expected.lower_bound <= result.objective <= expected.objective + 2e-3


def test_what_cannot_do_it_refuses_and_auto_takes_what_can():
    rng = np.random.default_rng(0)
    risk = problems.risk("avg")
    risk.suits_dual_ascent = lambda alpha: True
    for positive, kind in ((True, CuttingPlane), (False, DualAscent)):
        solver = make_solver("auto", risk.surrogate, 0.1, risk, positive=positive)
        assert type(solver) is kind
    with pytest.raises(InputError, match=r"DualAscent cannot keep weights .* cutting_plane, cccp"):
        PAPKRanker(3, solver="dual_ascent", positive=True).check_settings()
    for wrong in (1, "yes", None):
        for make in (CuttingPlane, SubgradientDescent, CCCP):
            with pytest.raises(TypeError, match="positive must be True, False, or"):
                make(0.1, positive=wrong)
    for wrong in ([1, 0, 1, 0], np.ones(4), [[True] * 4], ["yes"] * 4, []):
        for make in (CuttingPlane, SubgradientDescent, CCCP, AveragedSubgradient):
            with pytest.raises(TypeError, match="or one of them for each weight, got"):
                make(0.1, positive=wrong)
    for make in (CuttingPlane, SubgradientDescent, AveragedSubgradient, StochasticSubgradient):
        with pytest.raises(InputError, match="positive has 3 entries, but there are 4 weights"):
            make(0.1, positive=[True, False, True]).solve(risk)
    with pytest.raises(InputError, match="positive has 3 entries, but there are 4 weights"):
        CCCP(0.1, positive=[True, False, True]).solve(problems.risk("ramp"))
    masks = [CuttingPlane(0.1, positive=np.arange(4) == i) for i in range(4)]
    assert len(set(masks)) == 4 and masks[0] == CuttingPlane(0.1, positive=[True] + 3 * [False])
    # many sparse columns: DualAscent where signs are free
    X = sp.random(3000, 3000, 0.003, random_state=rng, format="csr")
    y = rng.random(3000) < 0.2
    groups = np.repeat(np.arange(100), 30)
    free = PAPKRanker(3, policy="cap", max_iter=2)
    with pytest.warns(Warning):
        assert free.fit(X, y, groups).to_model().solver == "dual_ascent"
        free.positive = True
        model = free.fit(X, y, groups).to_model()
    assert model.solver == "cutting_plane" and model.positive


def test_model_file_and_exports_say_so(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X @ [1.0, -1.0, 0.5, 0.0] + rng.normal(size=600) > 1
    groups = np.repeat(np.arange(30), 20)
    ranker = PAPKRanker(2, positive=True, curves=None).fit(X, y, groups)
    assert (ranker.coef_ >= 0).all() and ranker.coef_[1] == 0.0
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").positive
    assert ranker.export_weights()["positive"] is True
    free = PAPKRanker(2, curves=None).fit(X, y, groups)
    assert (free.coef_ < 0).any() and not free.to_model().positive


def test_commands(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, -1.0, 0.5] + rng.normal(size=400) > 1
    lines = [f"{int(r)} qid:{i // 20} " + " ".join(f"{j + 1}:{v:.6f}" for j, v in enumerate(x))
             for i, (r, x) in enumerate(zip(y, X, strict=True))]  # fmt: skip
    data, model = tmp_path / "train.txt", tmp_path / "model"
    data.write_text("\n".join(lines) + "\n")
    status, said = run_json(capsys, "fit", data, "--k", 2, "--model", model, "--positive")
    assert status == 0 and said["positive"] is True
    assert (load_model(model).function.slopes >= 0).all()
    flipped = tmp_path / "flipped.txt"
    columns = [line.split() for line in lines]
    flipped.write_text("".join(f"{r} {q} {two}\n" for r, q, _, two, _ in columns))
    assert run("fit", flipped, "--k", 2, "--model", model, "--positive") == 0
    assert "without --positive" in capsys.readouterr().err
    options = ("--k", 2, "--surrogate", "avg")
    compare = ["compare", data, *options, "--passes", 20]
    _, said = run_json(capsys, *compare, "--positive")
    _, free = run_json(capsys, *compare)
    assert said["positive"] is True and free["positive"] is False
    assert all(
        ours["objective"] > other["objective"]
        for ours, other in zip(said["runs"], free["runs"], strict=True)
    )
