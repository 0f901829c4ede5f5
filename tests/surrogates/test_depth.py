"""Training depth and weights of users, from the risk to the estimator."""

import math

import numpy as np
import pytest

from helpers.problems import uneven
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import SURROGATES


def test_policies_about_users_with_fewer_negatives():
    data, w = uneven(), np.arange(4.0)
    surrogate, users = make_surrogate("avg", 3, 12), data.n_users
    enough = int((data.n_neg >= 12).sum())
    assert 0 < enough < users
    assert EmpiricalRisk(surrogate, data, "exclude").n_users == enough
    assert EmpiricalRisk(surrogate, data, "cap").n_users == users
    with pytest.raises(InputError, match="fewer than depth=12"):
        EmpiricalRisk(surrogate, data, "raise")
    share, everything, deep = (make_surrogate("avg", 3, d) for d in (0.5, math.inf, 30))
    assert EmpiricalRisk(share, data, "exclude").n_users == users
    risk = EmpiricalRisk(everything, data, "exclude")
    assert risk.n_users == users and risk(w)[0] == EmpiricalRisk(deep, data, "cap")(w)[0]


@pytest.mark.parametrize("name", SURROGATES)
def test_a_weight_of_two_is_the_user_twice(name):
    data, rng = uneven(5), np.random.default_rng(0)
    weight = rng.integers(1, 4, data.n_users)
    copies = np.repeat(np.arange(data.n_users), weight)
    place = np.concatenate([np.flatnonzero(data.user_of_position == u) for u in copies])
    groups = np.repeat(np.arange(copies.size), data.sizes[copies])
    repeated = RankingData.from_groups(data.X[data.rows[place]], data.labels[place], groups)
    both, surrogate = (data.weighted(weight), repeated), make_surrogate(name, 3, 0.6)
    risks = [EmpiricalRisk(surrogate, each, "cap", n_blocks=3) for each in both]
    w = np.random.default_rng(4).normal(size=data.n_features)
    (value, slope), (other, other_slope) = (risk(w) for risk in risks)
    assert value == pytest.approx(other, abs=1e-12)
    np.testing.assert_allclose(slope, other_slope, atol=1e-12)
    for method in ("bundle", "line_search") if name == "ts" else ():
        results = [CuttingPlane(0.05, tol=1e-8, method=method).solve(risk) for risk in risks]
        assert all(result.converged for result in results)
        assert results[0].objective == pytest.approx(results[1].objective, abs=1e-7)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("negatives", "unknown user_weight"),
        ([1.0], "15 users"),
        (np.zeros(15), "above zero"),
        (np.full(15, np.nan), "finite"),
        (["a"] * 15, "numbers"),
    ],
)
def test_weights_that_cannot_be(wrong, words):
    with pytest.raises(InputError, match=words):
        uneven().weighted(wrong)


def rows(data):
    """A data set as X, y, groups."""
    return data.X[data.rows], data.labels, data.user_of_position


def test_the_estimator_takes_depth_and_weights_of_rows_in_any_order():
    data = uneven()
    X, y, users = rows(data)
    options = {"k": 3, "surrogate": "ts", "depth": 0.6, "policy": "cap", "tol": 1e-8}
    options["standardize"] = False
    assert data.weighted("positives").fingerprint() != data.fingerprint()
    assert data.weighted("equal").user_weight is None
    risk = EmpiricalRisk(make_surrogate("ts", 3, 0.6), data.weighted("positives"), "cap")
    expected = CuttingPlane(1e-2, tol=1e-8).solve(risk).objective
    by_users = PAPKRanker(user_weight="positives", **options).fit(X, y, groups=users)
    order, weight = np.random.default_rng(0).permutation(y.size), data.n_pos[users]
    by_rows = PAPKRanker(**options)
    by_rows.fit(X[order], y[order], groups=users[order], sample_weight=weight[order])
    for ranker in (by_users, by_rows):
        assert ranker.result_.objective == pytest.approx(expected, abs=2e-8)
    model = by_users.to_model()
    assert (model.depth, model.user_weight) == (0.6, "positives")


@pytest.mark.parametrize(
    ("options", "weight", "words"),
    [
        ({"depth": 500, "policy": "cap"}, None, "the most negatives of a user are"),
        ({"depth": "deep"}, None, "depth='deep' must be a whole number"),
        ({}, lambda y: np.arange(1.0, y.size + 1), "the same on all rows of a user"),
        ({}, lambda y: np.ones(3), "rows"),
        ({"user_weight": "positives"}, lambda y: np.ones(y.size), "not both"),
    ],
)
def test_the_estimator_refuses_depths_and_weights_that_do_not_fit(options, weight, words):
    X, y, users = rows(uneven())
    with pytest.raises(InputError, match=words):
        PAPKRanker(k=3, **options).fit(X, y, groups=users, sample_weight=weight and weight(y))
