"""Columns as pieces, held against the columns written out."""

import numpy as np
import pytest
from structsvm_papk.data.units.scale import Variation

from structsvm_papk import RankingData
from structsvm_papk.data import features
from structsvm_papk.data.columns.knots import MOST_PIECES, Knots, check_curves, knots_at_quantiles
from structsvm_papk.data.columns.pieces import PiecewiseColumns
from structsvm_papk.errors import InputError


def mixed_columns(rng, n, d):
    """Numbers, binary columns, few values, heavy tails, a constant, many zeros."""
    X = rng.normal(size=(n, d))
    for j in range(d):
        X[:, j] = [
            X[:, j],
            rng.integers(0, 2, n),
            rng.integers(0, 5, n),
            np.exp(3 * X[:, j]),
            np.full(n, 3.0),
            np.where(rng.random(n) < 0.8, 0.0, X[:, j]),
        ][rng.integers(6)]
    return X


def lists_of(rng, n, n_users=4):
    """Some order of the rows, and bounds of the users."""
    sizes = np.bincount(rng.integers(0, n_users, n), minlength=n_users)
    return rng.permutation(n), np.concatenate([[0], np.cumsum(sizes)])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("seed", range(12))
def test_products_and_spreads_are_those_of_the_columns_written_out(dtype, order, seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 200)), int(rng.integers(1, 7))
    X = np.asarray(mixed_columns(rng, n, d), dtype=dtype, order=order)
    rows, indptr = lists_of(rng, n)
    X[rows[indptr[1] : indptr[2]], 0] = 0.123  # constant within one user
    trained = rows if seed % 3 else rows[: max(3, n // 2)]  # values outside the knots too
    matrix = PiecewiseColumns(X, knots_at_quantiles(X, trained, int(rng.integers(1, 20))))
    written = matrix.toarray()
    assert written.shape == matrix.shape
    close = {"rtol": 1e-11, "atol": 1e-11 * np.abs(written).max()}

    w = rng.normal(size=matrix.shape[1])
    out = np.empty(n)
    features.scores(matrix, rows, w, 0, n, out)
    np.testing.assert_allclose(out, written[rows] @ w, **close)
    np.testing.assert_allclose(
        features.reported_scores(matrix, w, rows), written[rows] @ w, **close
    )

    coef = np.where(rng.random(n) < 0.5, 0.0, rng.normal(size=n))
    edges = np.array([0, n // 3, n])
    sums = np.zeros((2, matrix.shape[1]))
    features.add_weighted_rows(matrix, rows, coef, edges, sums)
    for part, some in enumerate([slice(0, n // 3), slice(n // 3, n)]):
        np.testing.assert_allclose(sums[part], coef[some] @ written[rows[some]], **close)

    spread = features.spread_of(matrix, rows, indptr)
    assert (np.abs(written).max(axis=0) <= spread.largest * (1 + 1e-12)).all()
    variation = Variation.of(matrix, rows, indptr, spread)
    expected = Variation.of(written, rows, indptr, features.spread_of(written, rows, indptr))
    np.testing.assert_allclose(variation.deviation, expected.deviation, rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(variation.deviation == 0, expected.deviation == 0)
    np.testing.assert_allclose(variation.half_difference, expected.half_difference, rtol=1e-12)


def test_cells_count_the_knots_that_are_not_above_a_value():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 600, size=(3000, 2)).astype(float)
    knots = knots_at_quantiles(X, np.arange(3000), MOST_PIECES)
    cells = PiecewiseColumns(X, knots).cells
    for j in range(2):
        expected = np.searchsorted(knots.column(j), X[:, j], side="right")
        np.testing.assert_array_equal(cells[:, j], expected)
    assert cells.max() > 250


def test_knots_are_quantiles_or_all_values_where_there_are_few():
    n = 1000
    X = np.column_stack(
        [
            np.arange(n),
            np.arange(n) % 5,
            np.arange(n) % 2,
            np.full(n, 7.0),
            np.where(np.arange(n) < 900, 0, np.arange(n)),
            np.where(np.arange(n) % 4, np.nan, np.arange(n) % 12),
            np.where(np.arange(n) % 3, 1e308, -1e308),
        ]
    )
    knots = knots_at_quantiles(X, np.arange(n), 4)
    assert [knots.column(j).tolist() for j in range(7)] == [
        [0, 249, 499, 749, 999],
        [0, 1, 2, 3, 4],
        [0],  # a binary column is a line
        [7],
        [0, 999],  # three quarters of the quantiles fall together
        [0, 4, 8],  # what is missing does not count
        [-1e308],
    ]
    assert knots.n_weights == sum(len(knots.column(j)) for j in range(7))


@pytest.mark.parametrize("x", [-5.0, 0.0, 0.2, 1.0, 2.5, 3.0, 40.0])
def test_a_curve_is_the_formula_inside_and_goes_straight_on_outside(x):
    t = np.array([0.0, 1.0, 3.0])
    w = np.array([0.5, 2.0, -1.0])  # the straight part, two pieces
    value = w[0] * (x - t[0])
    for b in range(2):
        value += w[1 + b] * np.clip((x - t[b]) / (t[b + 1] - t[b]), 0, 1)
    knots = Knots.of([t])
    curve = knots.curves(w, ["age"], [1.0])[0]
    assert curve(x) == pytest.approx(value, abs=1e-15)
    score = features.reported_scores(PiecewiseColumns(np.array([[x]]), knots), w)
    assert score[0] == pytest.approx(value, abs=1e-15)
    assert curve.values[0] == 0
    np.testing.assert_allclose(knots.weights(curve.values, w[:1]), w, atol=1e-15)


def test_the_fingerprint_knows_values_and_knots():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    lists = RankingData.from_groups(X, rng.integers(0, 2, 40), np.repeat([0, 1], 20))
    knots = [knots_at_quantiles(X, lists.rows, n) for n in (4, 5)]
    prints = {lists.fingerprint(), *(lists.with_curves(each).fingerprint() for each in knots)}
    assert len(prints) == 3
    assert lists.with_curves(knots[0]).fingerprint() == lists.with_curves(knots[0]).fingerprint()


@pytest.mark.parametrize("pieces", [0, 255, 2.5, "many", True])
def test_numbers_of_pieces_that_cannot_be(pieces):
    with pytest.raises((InputError, TypeError), match="curves"):
        check_curves(pieces)


def test_more_pieces_than_a_byte_holds():
    with pytest.raises(InputError, match="at most 254 pieces"):
        check_curves(255)
