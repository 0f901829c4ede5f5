"""Where curves bend: quantiles, values that many rows have, tails, and normal scores there."""

import numpy as np
import pytest
from scipy.stats import norm

from helpers.columns import knots_at_quantiles

N = 1000


def knots_of_column(column, n_pieces=4, **how):
    return knots_at_quantiles(np.asarray(column)[:, None], np.arange(len(column)), n_pieces, **how)


def normal_scores(column, at):
    """By definition: the share of the rows below, ties half, through the inverse normal."""
    shares = [np.mean(column < t) + np.mean(column == t) / 2 for t in at]
    return norm.ppf(shares)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.arange(N) % 5, [0, 1, 2, 3, 4]),
        (np.arange(N) % 2, [0]),  # a binary column is a line
        (np.full(N, 7.0), [7]),
        (np.where(np.arange(N) % 4, np.nan, np.arange(N) % 12), [0, 4, 8]),
        (np.where(np.arange(N) % 3, 1e308, -1e308), [-1e308]),
        (np.where(np.arange(N) % 3, 1e308, -np.arange(N) * 1e305), [-999 * 1e305]),  # as a width
        (np.full(N, np.nan), [0]),
    ],
)
def test_columns_of_few_values_have_a_knot_at_each(column, expected):
    assert knots_of_column(column).column(0).tolist() == expected


@pytest.mark.parametrize("n_pieces", [1, 2, 4, 16])
def test_pieces_have_about_as_many_rows_each(n_pieces):
    rng = np.random.default_rng(0)
    column = np.exp(rng.normal(size=N))
    knots = knots_of_column(column, n_pieces)
    assert knots.n_pieces == n_pieces
    ends = np.append(knots.positions[:-1][np.diff(knots.piece, prepend=-1) > 0], column.max())
    np.testing.assert_allclose(np.histogram(column, ends)[0], N / n_pieces, atol=1.01)


@pytest.mark.parametrize("ties", [False, True])
def test_scores_are_normal_scores(ties):
    column = np.random.default_rng(1).lognormal(size=N)
    if ties:
        column = np.round(column, 1)
    for rising in (None, np.array([True])):
        knots = knots_of_column(column, 16, rising=rising)
        np.testing.assert_allclose(
            knots.scores, normal_scores(column, knots.positions), rtol=1e-12, atol=1e-12
        )
        assert (np.diff(knots.scores) > 0).all()


def test_tails_have_knots_until_ten_rows_are_left():
    """Shares of the outermost pieces are halved; those knots bend nothing but the scores."""
    column = np.random.default_rng(3).normal(size=16_000)
    knots = knots_of_column(column, 16)
    assert knots.n_pieces == 16
    ordered = np.sort(column)
    for positions in (knots.positions, -knots.positions[::-1]):
        below = np.searchsorted(ordered, positions, side="left")
        in_first = below[below <= 1000]
        np.testing.assert_allclose(in_first, [0, 16, 31, 62, 125, 250, 500, 1000], atol=1.01)
        ordered = -ordered[::-1]
    # what a piece bends is one slope in scores
    assert (np.diff(knots.piece) >= 0).all()
    assert (knots.piece[:6] == 0).all() and (knots.piece[-6:] == 15).all()


def test_a_value_of_many_rows_is_a_knot_and_the_others_are_cut_by_themselves():
    rng = np.random.default_rng(4)
    column = np.where(rng.random(N) < 0.9, 0.0, rng.exponential(size=N))
    knots = knots_of_column(column, 4)
    positive = np.sort(column[column > 0])
    assert knots.column(0)[0] == 0.0
    pieces_end = knots.positions[1:][np.diff(knots.piece, append=4) > 0]
    assert pieces_end.size == 4
    shares = np.searchsorted(positive, pieces_end, side="right") / positive.size
    assert (np.diff(shares) > 0.2).all() and shares[-1] == 1.0
    both = np.where(rng.random(N) < 0.5, 0.0, np.where(rng.random(N) < 0.6, 1.0, column - 2))
    assert {0.0, 1.0} <= set(knots_of_column(both, 4).positions)


def test_values_one_unit_in_the_last_place_apart_are_one():
    rng = np.random.default_rng(5)
    five = rng.integers(1, 6, N) * 0.1
    up = np.where(rng.random(N) < 0.5, np.nextafter(five, 9.0), five)
    assert knots_of_column(five, 16).positions.size == 5
    knots = knots_of_column(up, 16)
    assert knots.positions.size == 5
    np.testing.assert_allclose(knots.scores, knots_of_column(five, 16).scores, rtol=1e-12)
    few = knots_of_column(np.where(five < 0.35, up, 0.1), 16)  # six values
    assert few.positions.size == 3 and few.n_pieces == 2
    two = np.where(np.arange(N) % 2, 0.3, np.nextafter(0.3, 1.0))
    assert knots_of_column(two).column(0).size == 1
    for step in (5e-324, 1e-295):  # slopes between them would overflow
        assert knots_of_column(np.arange(N) * step).column(0).size == 1


def test_values_are_one_by_the_digits_of_their_type():
    rng = np.random.default_rng(5)
    five = (rng.integers(1, 6, N) * 0.1).astype(np.float32)
    up = np.where(rng.random(N) < 0.5, np.nextafter(five, np.float32(9)), five)
    assert knots_of_column(five, 16).positions.size == 5
    assert knots_of_column(up, 16).positions.size == 5
    assert knots_of_column(up.astype(np.float64), 16).positions.size == 10


def test_many_close_values_are_not_all_one():
    """Each is one with its neighbour, but not with those further away."""
    column = np.linspace(1.0, 1.001, 40_000).astype(np.float32)
    assert (np.diff(np.unique(column)) < 2e-7).all()
    knots = knots_of_column(column, 16)
    assert knots.n_pieces == 16
    shares = np.searchsorted(column, knots.positions) / column.size
    np.testing.assert_allclose(
        norm.ppf(np.clip(shares, 1e-9, 1 - 1e-9))[5:-5], knots.scores[5:-5], atol=0.05
    )


@pytest.mark.parametrize("pieces", [64, 254])
def test_no_column_has_more_knots_than_a_byte_counts(pieces):
    column = np.random.default_rng(6).normal(size=50_000)
    knots = knots_of_column(column, pieces)
    assert pieces < knots.positions.size <= 255
    assert knots.n_pieces == pieces


def test_a_rising_column_has_a_piece_between_neighbouring_knots_and_no_straight_part():
    X = np.random.default_rng(7).normal(size=(N, 3))
    X[:, 2] = np.arange(N) % 2
    free = knots_at_quantiles(X, np.arange(N), 4)
    rising = knots_at_quantiles(X, np.arange(N), 4, np.array([False, True, True]))
    np.testing.assert_array_equal(rising.positions, free.positions)
    assert rising.is_rising.tolist() == [False, True, False]  # a line is a line
    assert rising.n_straight == 2 and rising.column_of_straight.tolist() == [0, 2]
    assert rising.straight_of_column.tolist() == [0, -1, 1]
    n_knots = rising.column(1).size
    assert (rising.column_of_piece == 1).sum() == n_knots - 1
    w = np.random.default_rng(8).normal(size=rising.n_weights)
    own = w[2 + 4 : 2 + 4 + n_knots - 1]
    values = rising.values(w)[rising.starts[1] : rising.starts[2]]
    np.testing.assert_allclose(np.diff(values), own, atol=1e-15)
    stiff = rising.stiffness(3.0)
    assert stiff[:2].tolist() == [1.0, 1.0]
    assert set(stiff[2:6]) == {3.0} and set(stiff[6:]) == {0.75}
