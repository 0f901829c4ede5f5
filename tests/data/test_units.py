"""What columns are divided by, held against definitions that look at every value."""

import numpy as np
import pytest
from scipy import sparse

from helpers.marks import slow
from structsvm_papk import RankingData
from structsvm_papk.data.columns.base import Variation
from structsvm_papk.data.columns.units import ScaleRule, Units

N_USERS, SIZE = 9, 12
USERS = np.random.default_rng(5).permutation(np.repeat(np.arange(N_USERS), SIZE))
FORMS = [np.ascontiguousarray, np.asfortranarray]


@pytest.fixture
def columns():
    """Columns of few and of many values, and what the two values of each are: None for more."""
    rng = np.random.default_rng(0)
    coin = rng.random(USERS.size) < 0.3
    third = coin.astype(float)
    third[-1] = 2.0
    last = np.zeros(USERS.size)
    last[-1] = 1.0
    given = [
        (coin, (0.0, 1.0)),
        (np.where(coin, 1.0, -1.0), (-1.0, 1.0)),
        (np.where(coin, 100.0, 0.0), (0.0, 100.0)),
        (np.where(coin, -3.0, -7.5), (-7.5, -3.0)),
        (np.where(coin, 1e9 + 1.0, 1e9), (1e9, 1e9 + 1.0)),
        (np.where(coin, -0.0, 0.0) + (USERS == 4), (0.0, 1.0)),  # constant within users
        (last, (0.0, 1.0)),
        (np.full(USERS.size, 7.0), (7.0, 7.0)),
        (third, None),
        (rng.normal(size=USERS.size), None),
        (rng.integers(0, 3, USERS.size), None),
    ]
    return np.column_stack([values for values, _ in given]).astype(float), [two for _, two in given]


def lists(X, keep=None):
    y = np.arange(USERS.size) % 3 == 0
    data = RankingData.from_groups(X, y, USERS)
    return data if keep is None else data.subset(keep)


def by_definition(X, users, rule):
    """The divisors, value by value."""
    scale = np.ones(X.shape[1])
    deviation = np.zeros(X.shape[1])
    for f, column in enumerate(X.T.astype(np.float64)):
        away = np.concatenate([column[users == u] - column[users == u].mean() for u in set(users)])
        deviation[f] = np.sqrt(np.mean(away**2))
        values = np.unique(column)
        if deviation[f] > 1e-12 * np.abs(column).max():
            is_indicator = rule == "indicators" and values.size == 2
            scale[f] = (values[1] - values[0]) / 2 if is_indicator else deviation[f]
    return scale


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, slow(np.float32)])
def test_two_values_are_found_wherever_the_rows_stand(columns, form, dtype):
    X, expected = columns
    X = form(X.astype(dtype))
    if dtype == np.float32:
        expected[4] = (1e9, 1e9)  # which is 1e9 + 1, too
    variation = lists(X).variation()
    for f, two in enumerate(expected):
        found = (variation.low[f], variation.high[f])
        assert found == two if two is not None else np.isnan(found).all(), f
    scale = lists(X).standardized().units.scale
    np.testing.assert_allclose(scale, by_definition(X, USERS, "indicators"), rtol=1e-6)
    np.testing.assert_array_equal(scale[[0, 1, 2, 3, 6]], [0.5, 1.0, 50.0, 2.25, 0.5])
    assert lists(X).standardized().units.rule == ScaleRule.INDICATORS
    each = lists(X).standardized(True)
    np.testing.assert_allclose(each.units.scale, by_definition(X, USERS, "each"), rtol=1e-6)
    assert each.units.rule == ScaleRule.EACH


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint32, np.int64])
def test_whole_numbers_and_booleans_are_indicators(dtype):
    coins = np.random.default_rng(1).random((USERS.size, 4)) < [0.5, 0.3, 0.1, 0.01]
    np.testing.assert_array_equal(lists(coins.astype(dtype)).standardized().units.scale, 0.5)


def test_without_indicators_nothing_is_different(columns):
    X = columns[0][:, 7:]
    auto = lists(X).standardized()
    each = lists(X).standardized(True)
    assert auto.units.scale.tobytes() == each.units.scale.tobytes()
    assert auto.units.rule == each.units.rule == ScaleRule.EACH
    assert auto.fingerprint() == each.fingerprint()


def test_rows_of_no_list_do_not_count(columns):
    X, expected = columns
    X = X.copy()
    keep = np.arange(N_USERS) != USERS[-1]  # the third value of a column is of this user
    some = lists(X, keep).standardized()
    rows = keep[USERS]
    expected_scale = by_definition(X[rows], USERS[rows], "indicators")
    np.testing.assert_allclose(some.units.scale, expected_scale, rtol=1e-12)
    assert some.units.scale[8] == 0.5 and np.isnan(lists(X).variation().low[8])
    assert expected[8] is None


def test_values_that_no_number_can_divide_by():
    X = np.zeros((USERS.size, 3))
    half = np.arange(USERS.size) % 2 == 0
    X[:, 0] = np.where(half, 1.5e308, -1.5e308)  # the difference overflows, its half does not
    X[:, 1] = np.where(half, 1e-200, 0.0)
    X[:, 2] = np.where(half, 1e200, 0.0)
    scale = lists(X).standardized().units.scale
    assert scale[0] == scale[1] == 1.0 and scale[2] == 5e199


@pytest.mark.parametrize("seed", range(20))
def test_parts_have_the_values_and_the_deviation_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, size=(N_USERS, 40))  # each user has values of its own kind
    pairs = np.array([[0.0, 1.0], [0.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    kinds[:, :20] = np.minimum(kinds[:, :20], 2)  # no third value in these
    coin = (rng.random((USERS.size, 40)) < 0.5).astype(int)
    X = pairs[kinds[USERS], coin]
    whole = lists(X).variation()
    part_of = rng.integers(0, 3, N_USERS)
    parts = [lists(X, part_of == p).variation() for p in range(3)]
    found = Variation.pooled(parts)
    np.testing.assert_array_equal(found.low, whole.low)
    np.testing.assert_array_equal(found.high, whole.high)
    np.testing.assert_allclose(found.deviation, whole.deviation, rtol=1e-12)
    assert found.n_rows == whole.n_rows and np.isnan(whole.low[20:]).any()
    two = np.array([np.unique(column).size <= 2 for column in X.T])
    np.testing.assert_array_equal(np.isfinite(found.low), two)


def test_a_sparse_part_makes_all_one_number():
    X = (np.random.default_rng(2).random((USERS.size, 3)) < 0.4).astype(float)
    parts = [lists(form(X)).variation() for form in (np.asarray, sparse.csr_array)]
    both = Variation.pooled(parts)
    units = Units.of(both, "auto")
    assert both.is_sparse and units.rule == ScaleRule.COMMON
    np.testing.assert_allclose(units.scale, np.sqrt(np.mean(parts[0].deviation ** 2)), rtol=1e-12)
    assert Units.of(Variation.pooled([parts[1]]), True).rule == ScaleRule.EACH
