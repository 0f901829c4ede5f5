"""Levels, cells of pairs, and storages side by side, against indicators that are written out."""

from dataclasses import fields
from itertools import pairwise

import numpy as np
import pytest

from helpers.columns import assert_as_written_out, knots_at_quantiles, lists_of, mixed_columns
from structsvm_papk import RankingData
from structsvm_papk.data.columns.base import ColumnsBeside
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.levels import MOST_LEVELS, LevelColumns
from structsvm_papk.data.columns.pieces import PiecewiseColumns


def levels(rng, n, with_none=True, patterns=None):
    """A few columns of levels, of which one has as many as there may be, another one only."""
    n_levels = np.array([3, MOST_LEVELS, 1, 7])
    codes = np.column_stack([rng.integers(0, most + with_none, n) for most in n_levels])
    codes[: n // 2, 3] = 2
    return LevelColumns(codes.astype(np.uint8), n_levels, stiff=3.0, patterns=patterns)


def indicators(columns):
    parts = [columns.codes[:, [j]] == np.arange(n) for j, n in enumerate(columns.n_levels.tolist())]
    return np.hstack(parts).astype(float)


def patterned(rng, n):
    """The same with a pattern for each column, of which the third is 0."""
    patterns = rng.normal(size=3 + MOST_LEVELS + 1 + 7)
    patterns[3 + MOST_LEVELS] = 0.0
    return levels(rng, n, patterns=patterns)


def beside(rng, n, curves, d=4):
    """Numbers, as lines or curves, and levels behind them."""
    X = mixed_columns(rng, n, d)
    numbers = DenseColumns(X)
    if curves:
        rising = rng.random(d) < 0.4
        numbers = PiecewiseColumns(X, knots_at_quantiles(X, np.arange(n), 5, rising))
    return ColumnsBeside([numbers, levels(rng, n), levels(rng, n, with_none=False)])


@pytest.mark.parametrize("with_none", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_levels_are_their_indicators(seed, with_none):
    rng = np.random.default_rng(seed)
    columns = levels(rng, int(rng.integers(9, 400)), with_none)
    np.testing.assert_array_equal(columns.toarray(), indicators(columns))
    assert_as_written_out(columns, rng)


@pytest.mark.parametrize("seed", range(4))
def test_a_pattern_is_a_column_of_its_values(seed):
    rng = np.random.default_rng(seed)
    columns = patterned(rng, int(rng.integers(9, 400)))
    of_levels = indicators(columns)
    ends = np.cumsum(columns.n_levels)
    of_patterns = [
        of_levels[:, end - n : end] @ columns.patterns[end - n : end]
        for end, n in zip(ends, columns.n_levels, strict=True)
    ]
    np.testing.assert_array_equal(columns.toarray(), np.column_stack([of_levels, *of_patterns]))
    is_level = np.arange(columns.n_weights) < columns.patterns.size
    assert_as_written_out(columns, rng, called_indicators=is_level)
    weight = columns.n_weights - 1
    told = columns.values_of(weight, np.arange(columns.n_rows))
    assert told.column == 3 and told.which == ", pattern,"
    np.testing.assert_array_equal(told.values, columns.toarray()[:, weight])


def test_a_pattern_that_is_the_same_in_all_rows_of_a_list_does_not_vary():
    codes = np.repeat(np.arange(3), [9, 5, 7])[:, None]
    patterns = np.array([0.1, 0.7, -0.3])
    columns = LevelColumns(codes.astype(np.uint8), np.array([3]), patterns=patterns)
    rows, indptr = np.arange(21), np.array([0, 9, 14, 21])
    variation = columns.variation(rows, indptr, columns.spread(rows, indptr))
    assert variation.deviation.tolist() == [0.0] * 4


@pytest.mark.parametrize("curves", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_storages_side_by_side_are_their_matrices_side_by_side(seed, curves):
    rng = np.random.default_rng(seed)
    columns = beside(rng, int(rng.integers(9, 300)), curves)
    written = np.hstack([part.toarray() for part in columns.parts])
    np.testing.assert_array_equal(columns.toarray(), written)
    assert columns.n_columns == 4 + 4 + 4
    is_rise = np.zeros(columns.n_weights, dtype=bool)
    if curves:
        knots = columns.knots
        of_pieces = slice(knots.n_straight, knots.n_weights)
        is_rise[of_pieces] = knots.is_rising[knots.column_of_piece]
    assert_as_written_out(columns, rng, called_indicators=~is_rise)


@pytest.mark.parametrize("curves", [False, True])
def test_deviations_of_terms_are_those_of_what_each_column_adds(curves):
    rng = np.random.default_rng(11)
    n = 150
    columns = beside(rng, n, curves)
    rows, indptr = lists_of(rng, n)
    w = rng.normal(size=columns.n_weights)
    deviation = columns.variation(rows, indptr, columns.spread(rows, indptr)).deviation
    computed = columns.term_deviations(w, rows, indptr, deviation)
    column_of_weight = [columns.values_of(i, rows).column for i in range(columns.n_weights)]
    written = columns.toarray()[rows]
    expected = []
    for column in range(columns.n_columns):
        own = np.flatnonzero(np.array(column_of_weight) == column)
        added = written[:, own] @ w[own]
        squares = [
            np.square(added[a:b] - added[a:b].mean()).sum() for a, b in pairwise(indptr) if b > a
        ]
        expected.append(np.sqrt(sum(squares) / n))
    np.testing.assert_allclose(computed, expected, rtol=1e-9, atol=1e-12)


def test_cells_have_a_stiffness_of_their_own_levels_none_and_pieces_the_given_one():
    columns = levels(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(columns.stiffness(30.0), np.full(columns.n_weights, 3.0))
    plain = LevelColumns(columns.codes, columns.n_levels)
    np.testing.assert_array_equal(plain.stiffness(30.0), np.ones(plain.n_weights))
    both = beside(np.random.default_rng(0), 40, curves=True)
    own = np.concatenate([part.stiffness(30.0) for part in both.parts])
    np.testing.assert_array_equal(both.stiffness(30.0), own)
    assert 30.0 in own


def test_offsets_of_numbers_are_subtracted_and_levels_stay():
    rng = np.random.default_rng(3)
    n = 60
    X = rng.normal(size=(n, 2)) + 1e9
    columns = ColumnsBeside([DenseColumns(X), levels(rng, n)])
    rows, indptr = lists_of(rng, n)
    spread = columns.spread(rows, indptr)
    assert spread.has_offsets and spread.shifted.tolist() == [True] * 2 + [False] * 265
    shifted, at = columns.less_first_rows(rows, indptr, spread)
    written = shifted.toarray()[at]
    expected = columns.toarray()[rows]
    for a, b in pairwise(indptr):
        expected[a:b, :2] -= expected[a, :2] if b > a else 0.0
    np.testing.assert_array_equal(written, expected)


@pytest.mark.parametrize("curves", [False, True])
def test_what_is_known_of_lists_stays_beside_further_columns(curves):
    rng = np.random.default_rng(5)
    n = 90
    y = np.arange(n) % 3 == 0
    lists = RankingData.from_groups(np.zeros((n, 1)), y, np.arange(n) // 9)
    columns = beside(rng, n, curves)
    further = levels(rng, n)
    names = [f"column {j}" for j in range(columns.n_columns + further.n_columns)]
    known = lists.with_columns(columns).beside(further, names)
    anew = lists.with_columns(ColumnsBeside([*columns.parts, further]), names)
    np.testing.assert_array_equal(known.columns.toarray(), anew.columns.toarray())
    for one, other in ((known.spread(), anew.spread()), (known.variation(), anew.variation())):
        for field in fields(one):
            values = getattr(one, field.name), getattr(other, field.name)
            np.testing.assert_array_equal(*values, err_msg=field.name)
    assert known.fingerprint() == anew.fingerprint()


def test_content_and_digests_know_the_levels():
    rng = np.random.default_rng(5)
    n = 30
    columns = beside(rng, n, curves=False)
    rows, indptr = lists_of(rng, n)
    gains = np.zeros(n, dtype=np.uint64)

    def digest(of, in_rows):
        digests = np.zeros(indptr.size - 1, dtype=np.uint64)
        of.digest(in_rows, indptr, gains, digests)
        return digests

    plain = digest(columns, rows)
    turned = np.concatenate([rows[a:b][::-1] for a, b in pairwise(indptr)])
    np.testing.assert_array_equal(digest(columns, turned), plain)
    other = columns.take(np.arange(n))
    other.parts[1].codes[rows[0], 0] ^= 1
    changed = digest(other, rows) != plain
    assert changed.sum() == 1
    contents = [b"".join(np.asarray(part).tobytes() for part in c.content() if not
                isinstance(part, str)) for c in (columns, other)]  # fmt: skip
    assert contents[0] != contents[1]


def test_messages_name_the_column_and_the_level():
    columns = beside(np.random.default_rng(6), 30, curves=False)
    told = columns.values_of(4 + 3 + MOST_LEVELS + 1 + 2, np.arange(30))
    assert told.column == 4 + 3 and told.which == ", level 2,"
    np.testing.assert_array_equal(told.values, columns.parts[1].codes[:, 3] == 2)
