"""Bounds over boxes by sampling and by brute force; global optima against every other solver."""

from fractions import Fraction

import numpy as np
import pytest

from helpers import catalogue
from helpers.catalogue import RAMPS
from helpers.exact_risk import ExactRisk, fractions
from helpers.marks import slow, some_of
from helpers.problems import objective, uneven
from structsvm_papk.data import RankingData
from structsvm_papk.datasets import linear_lists
from structsvm_papk.datasets.generators import two_gaussians
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.solver import Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate


def one_user_risk(name, k=3, n_pos=8, n_neg=20, d=2, separation=1.0, seed=0, **options):
    lists = two_gaussians(n_pos, n_neg, d, separation, seed=seed)
    data = RankingData.from_groups(*lists[:3])
    return EmpiricalRisk(make_surrogate(name, k), data, **options)


def many_users_risk(name, k=2, seed=0):
    lists = linear_lists(n_users=4, n_items=12, n_features=3, relevant_share=0.4, seed=seed)
    data = RankingData.from_groups(*lists[:3])
    return EmpiricalRisk(make_surrogate(name, k), data)


def deep_weighted_risk(name):
    data = uneven(n_features=2).weighted("positives")
    return EmpiricalRisk(make_surrogate(name, 3, 0.7), data, "cap")


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize("make", [one_user_risk, many_users_risk, deep_weighted_risk])
def test_bound_is_below_the_objective_in_the_box(name, make):
    rng = np.random.default_rng(0)
    risk = make(name)
    d, alpha, n = risk.n_features, 0.03, some_of(80)
    centre = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-1, 2, (n, 1))
    half = rng.random((n, d)) * 10.0 ** rng.integers(-3, 2, (n, 1))
    lower, value, split = risk.bounds(alpha, centre - half, centre + half)
    for b in range(n):
        assert value[b] == pytest.approx(objective(risk, alpha, centre[b]), abs=1e-11)
        corners = np.sign(rng.normal(size=(6, d)))
        for w in np.vstack([corners, rng.uniform(-1, 1, (6, d)), np.zeros((1, d))]):
            assert lower[b] <= objective(risk, alpha, centre[b] + half[b] * w) + 1e-11
    assert ((split >= 0) & (split < d)).all()


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize("scale", [slow(1.0), 1e4, slow(1e8)])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_bound_of_a_point_is_never_above_its_exact_objective(name, scale, offset):
    """A box without extent leaves nothing but rounding between its bound and the value."""
    rng = np.random.default_rng(3)
    data = many_users_risk(name).data
    X, alpha = data.X[data.rows] * scale + offset, 0.03
    data = RankingData(X, data.labels, data.indptr)
    risk = EmpiricalRisk(make_surrogate(name, 2), data)
    n = some_of(20)
    points = rng.normal(size=(n, 3)) * 10.0 ** rng.integers(-2, 2, (n, 1))
    lower = risk.bounds(alpha, points, points)[0]
    same = ExactRisk(X, data.labels, data.user_of_position, 2)
    for w, bound in zip(fractions(points), lower, strict=True):
        slope, height = same.cut(catalogue.SURROGATES[name].formula, w)
        exact = Fraction(alpha) / 2 * (w @ w) + slope @ w + height
        assert Fraction(bound) <= exact
        assert float(exact - Fraction(bound)) <= 1e-11 * (1 + scale * np.abs(w).sum())


@pytest.mark.parametrize("name", RAMPS)
def test_bound_tightens_with_the_square_of_the_box_at_a_smooth_point(name):
    risk = one_user_risk(name, d=3)
    w = np.random.default_rng(1).normal(size=(1, 3))
    gaps = []
    for half in (1e-3, 1e-4):
        sides = 1e-2, w - half, w + half
        lower, value, _ = risk.bounds(*sides)
        lower += risk._boxes._rounding(*sides)  # what is taken off for rounding does not shrink
        slope = np.abs(1e-2 * w[0] + risk(w[0])[1]).sum() * half  # how far F itself falls
        gaps.append(abs(value[0] - slope - lower[0]))
    assert gaps[1] <= gaps[0] / 50 + 1e-13


@pytest.mark.parametrize("name", RAMPS)
def test_optimum_in_two_dimensions_against_a_fine_grid_and_other_solvers(name):
    risk = one_user_risk(name)
    result = GlobalRamp(0.05).solve(risk)
    line = np.linspace(-1, 1, 61) * np.sqrt(2 * result.objective / 0.05)
    grid = np.array([[a, b] for a in line for b in line])
    _, values, _ = risk.bounds(0.05, grid, grid)
    assert result.status is Status.CONVERGED
    assert 0 <= result.gap <= 1e-4
    assert result.lower_bound <= result.objective <= values.min() + 1e-9
    w = np.random.default_rng(0).normal(size=2)
    reached = [CCCP(0.05, tol=1e-4).solve(risk, start).objective for start in (None, w)]
    reached.append(SubgradientDescent(0.05, max_iter=300).solve(risk, w).objective)
    assert result.lower_bound <= min(reached) + 1e-12


def test_progress_is_monotone():
    risk = one_user_risk("clipped_ramp", d=3, n_pos=12, n_neg=60, k=4)
    full = GlobalRamp(1e-2).solve(risk)
    assert (np.diff(full.curve("objective")) <= 0).all()
    assert (np.diff(full.curve("n_boxes")) > 0).all() and full.history[0].n_open == 1
    assert full.data_passes >= CCCP(1e-2).solve(risk).data_passes
    assert (np.diff(full.curve("lower_bound")) >= -1e-12).all()


def test_sizes_are_refused_before_anything_is_solved():
    lists = linear_lists(n_users=2, n_items=20, n_features=12)
    data = RankingData.from_groups(*lists[:3])
    with pytest.raises(InputError, match=r"12 features.*limits are 8 features"):
        GlobalRamp(1e-2).solve(EmpiricalRisk(make_surrogate("ramp", 3), data))
    large = one_user_risk("ramp", n_pos=4000, n_neg=5000, d=6, k=100)
    with pytest.raises(InputError, match="4000 positives"):
        GlobalRamp(1e-2).solve(large)
