"""Steps from a sample of users: the same optimum and honest bounds, in fewer passes."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import problems
from helpers.problems import objective
from structsvm_papk import CuttingPlane, EmpiricalRisk, Status, alpha_path, make_surrogate
from structsvm_papk.oracles import list_risk
from structsvm_papk.solvers import steps
from structsvm_papk.surrogates import CONVEX


@pytest.fixture
def many(monkeypatch):
    """Makes small data count as large; returns a risk of 400 users with 3 features."""
    monkeypatch.setattr(list_risk, "_MANY_ROWS", 1000)
    data = problems.ranking_data(n_users=400, n_items=12, n_features=3)
    return lambda name, **options: EmpiricalRisk(make_surrogate(name, 3), data, **options)


@pytest.mark.parametrize("alpha", [1e-1, 1e-3])
@pytest.mark.parametrize("name", CONVEX)
def test_same_optimum_with_a_bound_that_holds_in_fewer_passes(name, alpha, many, monkeypatch):
    risk, rng = many(name), np.random.default_rng(0)
    assert risk.sample is not None and risk.sample.n_users == 20
    result = CuttingPlane(alpha, tol=1e-8).solve(risk)
    monkeypatch.setattr(list_risk, "_MANY_ROWS", 10**9)
    plain = many(name)
    assert plain.sample is None
    other = CuttingPlane(alpha, tol=1e-8).solve(plain)
    assert result.status is other.status is Status.CONVERGED
    assert result.data_passes < other.data_passes
    for one, two in ((result, other), (other, result)):
        assert one.lower_bound <= two.objective * (1 + 1e-12)
    assert result.objective == pytest.approx(objective(plain, alpha, result.w))
    for w in result.w + rng.normal(size=(20, 3)) * 10.0 ** rng.integers(-3, 2, (20, 1)):
        assert objective(plain, alpha, w) >= result.lower_bound


def test_what_is_in_the_sample(many):
    risk = many("avg")
    weight = np.where(np.arange(400) % 20 == 0, 3.0, 1.0)
    weighted = EmpiricalRisk(risk.surrogate, risk.data.weighted(weight))
    np.testing.assert_array_equal(weighted.sample.data.user_weight, np.full(20, 3.0))
    assert many("ramp").majorant(np.ones(3)).sample is None
    assert problems.risk("ts").sample is None


def test_a_tilted_risk_is_the_risk_and_a_line(many):
    risk, rng = many("max"), np.random.default_rng(1)
    tilt, origin = rng.normal(size=(2, 3))
    for n_blocks in (1, 7):
        tilted = steps._Tilted(risk, tilt, origin).with_blocks(n_blocks)
        for w in rng.normal(size=(5, 3)):
            value, slope = risk(w)
            cuts = tilted.cuts(w)
            assert cuts.slopes.shape == (n_blocks, 3)
            assert cuts.value == pytest.approx(value + tilt @ (w - origin))
            tight = (cuts.slopes @ w + cuts.intercepts).sum()
            assert tight == pytest.approx(cuts.value)
            np.testing.assert_allclose(cuts.slopes.sum(axis=0), slope + tilt)


def test_an_interrupt_in_the_sample_ends_the_solve(many, monkeypatch):
    def interrupted(scores):
        raise KeyboardInterrupt

    risk = many("ts")
    monkeypatch.setattr(risk.sample, "tangents", interrupted)
    with pytest.raises(KeyboardInterrupt):  # as in a first evaluation: there is no point yet
        CuttingPlane(1e-2).solve(risk)
    result = CuttingPlane(1e-2).solve(risk, np.ones(3))
    assert result.status is Status.INTERRUPTED
    assert np.isfinite(result.objective)


def test_a_path_reuses_cuts_and_does_not_evaluate_its_points_again(many):
    alphas, solver = [1e-1, 1e-2, 1e-4, 1e-3], CuttingPlane(1.0, tol=1e-6)
    for risk in (many("avg"), problems.risk("ts", n_users=60)):
        path = alpha_path(risk, alphas, solver)
        cold = [replace(solver, alpha=alpha).solve(risk) for alpha in alphas]
        for alpha, warm, alone in zip(alphas, path, cold, strict=True):
            assert warm.alpha == alpha and warm.gap <= 1e-6 and alone.gap <= 1e-6
            assert warm.lower_bound <= alone.objective * (1 + 1e-12)
            assert alone.lower_bound <= warm.objective * (1 + 1e-12)
        assert sum(each.data_passes for each in path) < sum(each.data_passes for each in cold)
        again = replace(solver, alpha=alphas[0]).solve(risk, warm_start=path[0])
        assert again.data_passes <= 1 and again.gap <= 1e-6
        np.testing.assert_array_equal(again.w, path[0].w)
