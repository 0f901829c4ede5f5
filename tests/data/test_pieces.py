"""Columns as pieces, held against the columns written out."""

from itertools import product

import numpy as np
import pytest

from helpers.columns import assert_as_written_out, knots_at_quantiles, mixed_columns
from structsvm_papk import RankingData
from structsvm_papk.data.columns.knots import MOST_PIECES, ColumnKnots, Knots, knots_of
from structsvm_papk.data.columns.pieces import PiecewiseColumns


@pytest.mark.parametrize("seed", range(12))
def test_products_and_spreads_are_those_of_the_columns_written_out(seed):
    rng = np.random.default_rng(seed)
    dtype, order = [*product([np.float64, np.float32], "CF")][seed % 4]
    n = int(rng.integers(5, 200))
    d = int(rng.integers(1, 7))
    X = np.asarray(mixed_columns(rng, n, d), dtype=dtype, order=order)
    X[rng.permutation(n)[: n // 3], 0] = 0.123
    trained = rng.permutation(n)
    if seed % 3 == 0:
        trained = trained[: max(3, n // 2)]  # values outside the knots too
    rising = rng.random(d) < 0.3
    knots = knots_at_quantiles(X, trained, int(rng.integers(1, 20)), rising)
    is_rise = np.arange(knots.n_weights) >= knots.n_straight
    is_rise &= knots.is_rising[knots.column_of_weight]
    assert_as_written_out(PiecewiseColumns(X, knots), rng, called_indicators=~is_rise)


def test_cells_count_the_knots_that_are_not_above_a_value():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 600, size=(3000, 2)).astype(float)
    knots = knots_at_quantiles(X, np.arange(3000), MOST_PIECES)
    assert np.diff(knots.starts).max() <= 255
    cells = PiecewiseColumns(X, knots).cells
    for j in range(2):
        expected = np.searchsorted(knots.column(j), X[:, j], side="right")
        np.testing.assert_array_equal(cells[:, j], expected)
    assert cells.max() > 250


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize("x", [-5.0, 0.0, 0.2, 1.0, 1.7, 2.5, 3.0, 40.0])
def test_a_curve_is_the_formula_between_its_knots_and_flat_beyond(x, rising):
    """Three intervals, of which the last two are one piece."""
    t = np.array([0.0, 1.0, 2.5, 3.0])
    z = np.array([-1.5, 0.2, 0.5, 2.0])
    knots = Knots.of([ColumnKnots(t, z, np.array([0, 1, 1]))], np.array([rising]))
    score = np.interp(x, t, z)
    if rising:
        w = np.array([2.0, 0.3, 1.2])
        value = sum(w[b] * np.clip((x - t[b]) / (t[b + 1] - t[b]), 0, 1) for b in range(3))
    else:
        w = np.array([0.5, 2.0, -1.0])  # the straight part, two pieces
        value = w[0] * (score - z[0])
        value += w[1] * np.clip((score - z[0]) / (z[1] - z[0]), 0, 1)
        value += w[2] * np.clip((score - z[1]) / (z[3] - z[1]), 0, 1)
    columns = PiecewiseColumns(np.array([[x]]), knots)
    assert columns.reported_scores(w)[0] == pytest.approx(value, abs=1e-14)
    assert columns.toarray()[0] @ w == pytest.approx(value, abs=1e-14)
    assert knots.values(w)[0] == 0
    assert knots.slopes(w).tolist() == [0.0]


@pytest.mark.parametrize("stiffness", [3.0, 30.0])
def test_weights_of_a_function_are_those_of_the_smallest_penalty(stiffness):
    """Among all splits into straight part and pieces: checked by least squares."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3))
    rising = np.array([False, True, False])
    knots = knots_at_quantiles(X, np.arange(300), 5, rising)
    scale = rng.uniform(0.3, 3.0, knots.n_weights) * np.sqrt(knots.stiffness(stiffness))
    w = rng.normal(size=knots.n_weights)
    values = knots.values(w)
    found = knots.weights(values, knots.slopes(w), scale)
    np.testing.assert_allclose(knots.values(found), values, atol=1e-12)
    of_units = np.column_stack([knots.values(unit) for unit in np.eye(knots.n_weights)])
    least = np.linalg.lstsq(of_units / scale, values, rcond=None)[0] / scale
    np.testing.assert_allclose(found, least, atol=1e-9)


@pytest.mark.parametrize("stiffness", [3.0, 30.0])
@pytest.mark.parametrize("kind", ["normal", "rare", "mostly zero", "few", "heavy"])
def test_no_rising_function_costs_more_than_as_straight_part_and_pieces(kind, stiffness):
    """Else a bound of the problem of rises would not be one of the rising functions."""
    rng = np.random.default_rng(3)
    n = 400
    column = {
        "normal": rng.normal(size=n),
        "rare": np.where(rng.random(n) < 0.94, 0.0, rng.integers(1, 5, n)),
        "mostly zero": np.where(rng.random(n) < 0.9, 0.0, rng.exponential(size=n)),
        "few": rng.integers(0, 5, n),
        "heavy": np.exp(3 * rng.normal(size=n)),
    }[kind]
    lists = RankingData.from_groups(
        column[:, None], rng.random(n) < 0.3, np.repeat(np.arange(20), 20)
    )
    free, rising = (
        lists.with_curves(knots_of(lists.value_counts(), 16, np.array([has_to])))
        .standardized("auto")
        .stiffened(stiffness)
        for has_to in (False, True)
    )
    straight = np.zeros(free.n_features)
    straight[0] = 1.0
    for _ in range(50):
        w = rng.exponential(size=free.n_features) * (rng.random(free.n_features) < 0.3)
        for weights in (straight, w):
            values = free.knots.values(weights)
            rises = rising.knots.weights(values, np.zeros(1))
            cost = np.square(free.units.of_solver(weights)).sum()
            assert np.square(rising.units.of_solver(rises)).sum() <= cost * (1 + 1e-9)


def test_the_fingerprint_knows_values_and_knots():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    lists = RankingData.from_groups(X, rng.integers(0, 2, 40), np.repeat([0, 1], 20))
    knots = [knots_at_quantiles(X, lists.rows, n) for n in (4, 5)]
    rising = [knots_at_quantiles(X, lists.rows, 4, np.array(some)) for some in ([1, 0], [0, 1])]
    prints = {lists.with_curves(each).fingerprint() for each in (*knots, *rising)}
    assert len(prints | {lists.fingerprint()}) == 5
    assert lists.with_curves(knots[0]).fingerprint() == lists.with_curves(knots[0]).fingerprint()
