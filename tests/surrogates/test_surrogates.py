"""Values against the formulas by enumeration; slopes and declarations are in test_checking."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from helpers import reference
from helpers.catalogue import SURROGATES
from helpers.marks import slow, some_of
from helpers.problems import draw_scores, one_list, uneven
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import _kernels, losses, make_surrogate

Linear = partial(PAPKRanker, curves=None)  # no folds are asked


@pytest.mark.parametrize("name", SURROGATES)
def test_matches_the_definition_at_every_depth(name):
    rng = np.random.default_rng(0)
    for trial in range(some_of(100 if name == "ts" else 400)):
        n_pos, n_neg = rng.integers(1, 4 if name == "ts" else 9, 2)
        k, p, q = rng.integers(1, n_neg + 1), draw_scores(rng, n_pos), draw_scores(rng, n_neg)
        m = int(rng.integers(k, q.size + 1)) if trial % 2 else k
        depth = m if m < q.size else int(rng.integers(m, m + 3))  # capped at what there is
        value, _ = one_list(name, k, p, q, None if trial % 4 == 0 else depth)
        expected = SURROGATES[name].definition(list(p), list(q), k, m)
        assert value == pytest.approx(expected, abs=1e-12)


def test_every_surrogate_has_a_row_in_the_catalogue():
    known = "CONTRIBUTING.md, 'A surrogate', says what a row of tests/helpers/catalogue.py needs"
    assert set(SURROGATES) == set(losses.SURROGATES), known


def test_unknown_name_lists_the_known_and_suggests():
    with pytest.raises(InputError, match="did you mean 'clipped_ramp'"):
        make_surrogate("clippedramp", 3)
    for k in (0, -3, 2.5, None, [1], np.inf, np.nan, "3"):
        with pytest.raises(InputError, match="at least 1"):
            make_surrogate("avg", k)
    assert make_surrogate("avg", np.float64(3.0)).k == 3


def test_negatives_that_count():
    """A share is rounded up and never below k; a number is capped; so in kernels."""
    assert make_surrogate("ts", 2, 7).negatives_counted([1, 6, 7, 8]).tolist() == [1, 6, 7, 7]
    for percent in (10, 20, 30, 55, 90, 700):
        depth = percent if percent > 100 else percent / 100
        surrogate = make_surrogate("avg", 5, depth)
        for n_neg in range(1, 500):
            share = max(min(5, n_neg), -(-percent * n_neg // 100)) if percent < 100 else n_neg
            expected = min(share, depth) if depth > 1 else share
            assert surrogate.negatives_counted([n_neg])[0] == expected, (percent, n_neg)
            assert _kernels.counted_negatives(surrogate.kernel_depth, 5, n_neg) == expected


@pytest.mark.parametrize("depth", [4, 0, -1, 1.0, math.nan, math.inf, 7.5, "deep", True])
def test_depths_that_cannot_be(depth):
    with pytest.raises(InputError, match="whole number of at least k=5, a share"):
        make_surrogate("ts", 5, depth)


def test_a_share_of_one_is_not_one_negative():
    assert make_surrogate("ts", 1, 1).depth == 1
    with pytest.raises(InputError, match=r"got 1\.0"):
        make_surrogate("ts", 1, 1.0)


@pytest.mark.parametrize("sweep", [_kernels.hinge_sweep, _kernels.clipped_sweep])
@pytest.mark.parametrize("m", [1, 2, 127, 128, 129, 400])
def test_sweeps_are_the_sums_over_pairs(sweep, m):
    rng = np.random.default_rng(m)
    for draw in (lambda size: rng.integers(-6, 7, size) / 2, lambda size: rng.normal(size=size)):
        p, q = np.sort(draw(m))[::-1].copy(), draw(70)
        clipped = sweep is _kernels.clipped_sweep
        excess = q - p[:, None] + clipped
        sloped = (excess >= 0) & (excess < 1) if clipped else excess >= 0
        rows, columns = np.empty(m, dtype=np.int64), np.empty(70, dtype=np.int64)
        value = sweep(p, q, rows, columns)
        assert value == pytest.approx(np.clip(excess, 0, 1 if clipped else np.inf).sum())
        np.testing.assert_array_equal(rows, sloped.sum(axis=1))
        np.testing.assert_array_equal(columns, sloped.sum(axis=0))


SIZES = (1e3, 1e9, 1e12, 1e15, 1e17, 1e300)


@pytest.mark.parametrize(
    ("size", "lists"),
    [
        *[(size, ((5, 3), (90, 90))) for size in SIZES],
        (1e15, ((300, 250),)),  # fractions of so many pairs take seconds
        *[slow(size, ((300, 250), (400, 400))) for size in SIZES],
    ],
)
def test_clipped_ramp_keeps_its_digits_beside_outliers(size, lists):
    value, _ = one_list("clipped_ramp", 2, np.array([0.1, -size]), np.array([0.0, -3 * size]))
    assert value == pytest.approx(0.475, abs=1e-15)
    rng = np.random.default_rng(0)
    for n_pos, k in lists:
        p, q = rng.normal(size=n_pos), rng.normal(size=2 * n_pos)
        p[rng.random(n_pos) < 0.2] *= size
        q[rng.random(q.size) < 0.2] *= size
        near = rng.random(q.size) < 0.2  # close to a large one
        q[near] = rng.choice(p, near.sum()) + rng.normal(size=near.sum())
        value, coef = one_list("clipped_ramp", k, p, q)
        assert 0.0 <= value <= 1.0
        # 1 - p + q is rounded once where the scores are large, never summed with others
        exact = reference.clipped_ramp(list(map(Fraction, p)), list(map(Fraction, q)), k)
        assert value == pytest.approx(float(exact), abs=1e-14)
        assert coef.sum() == pytest.approx(0.0, abs=1e-14)


# --- depth and weights of users, from the risk to the estimator ---------------------------------


def test_policies_about_users_with_fewer_negatives():
    data = uneven()
    surrogate, users = make_surrogate("avg", 3, 12), data.n_users
    enough = int((data.n_neg >= 12).sum())
    assert 0 < enough < users
    assert EmpiricalRisk(surrogate, data, "exclude").n_users == enough
    assert EmpiricalRisk(surrogate, data, "cap").n_users == users
    with pytest.raises(InputError, match="fewer than depth=12"):
        EmpiricalRisk(surrogate, data, "raise")
    share = make_surrogate("avg", 3, 0.5)
    assert EmpiricalRisk(share, data, "exclude").n_users == users


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
    for n_blocks in (None, 1) if name == "ts" else ():
        results = [CuttingPlane(0.05, tol=1e-8, n_blocks=n_blocks).solve(risk) for risk in risks]
        assert all(result.converged for result in results)
        assert results[0].objective == pytest.approx(results[1].objective, abs=1e-7)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("negatives", "unknown user_weight"),
        ([1.0], "15 users"),
        (np.zeros(15), "above zero"),
        (np.full(15, np.nan), "is nan; weights must be above zero"),
        (["a"] * 15, "numbers"),
    ],
)
def test_weights_that_cannot_be(wrong, words):
    with pytest.raises(InputError, match=words):
        uneven().weighted(wrong)


def rows(data):
    """A data set as X, y, groups."""
    return data.X[data.rows], data.labels, data.user_of_position


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
        Linear(k=3, **options).fit(X, y, groups=users, sample_weight=weight and weight(y))
