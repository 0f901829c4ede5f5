"""Weights >= 0: any dual point, a sample of the users, refusals, models and commands."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from helpers import problems
from helpers.commands import run, run_json
from helpers.marks import slow
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
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.oracles.list_risk import Thresholds
from structsvm_papk.rankers.settings import make_solver
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient
from structsvm_papk.solvers.cut_model import CutModel
from structsvm_papk.solvers.stochastic_subgradient import StochasticSubgradient


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


def test_a_ranker_says_that_the_signs_leave_nothing():
    """Positives are lower in every column: only weights < 0 would help."""
    data = problems.ranking_data()
    X = -np.abs(data.X[data.rows])
    X[data.labels] -= 3.0
    rows = X, data.labels, data.user_of_position
    ranker = PAPKRanker(3, positive=True, curves=None)
    with pytest.warns(DegenerateOptimumWarning, match="among weights >= 0") as raised:
        ranker.fit(*rows)
    settings = raised[0].message.settings
    assert settings == {"positive": False}
    assert ranker.set_params(**settings).fit(*rows).coef_.any()


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
