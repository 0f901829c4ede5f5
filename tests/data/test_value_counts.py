"""Knots follow from the values of all rows, and not from where a row or a part stands."""

import numpy as np
import pytest

from structsvm_papk.data.columns.knots import knots_of
from structsvm_papk.data.columns.value_counts import (
    ValueCounts,
    counts_of_columns,
    joined_counts,
)

N = 40_000


def columns():
    rng = np.random.default_rng(0)
    return np.column_stack(
        [
            rng.normal(size=N),
            1.7e9 + 1e5 * rng.random(N),  # a time stamp
            np.exp(20 * rng.normal(size=N)),
            rng.integers(-5, 6, N),
            np.where(rng.random(N) < 0.9, 0.0, -rng.random(N)),
            np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        ]
    )


def test_values_are_counted_once_each_and_zero_has_no_sign():
    column = np.array([2.0, -0.0, np.nan, 0.0, -1.0, 2.0, 2.0])
    counted = ValueCounts.of(column)
    assert counted.values.tolist() == [-1, 0, 2]
    assert not np.signbit(counted.values[1])
    assert counted.counts.tolist() == [1, 2, 3]
    assert ValueCounts.of(column.astype(np.float32)).values.dtype == np.float64
    assert ValueCounts.of(np.full(3, np.nan)).values.size == 0


@pytest.mark.parametrize("most", [64, 1000])
def test_bins_do_not_depend_on_how_rows_are_dealt_out(most):
    X = columns()
    at_once = joined_counts([counts_of_columns(X, np.arange(N), most)], most)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        order = rng.permutation(N)
        ends = np.sort(rng.integers(0, N, 6))
        counts = None
        for rows in np.split(order, ends):
            own = [ValueCounts.of(column) for column in X[rows].T]
            counts = joined_counts([own] if counts is None else [counts, own], most)
        for one, other in zip(at_once, counts, strict=True):
            assert one.bits == other.bits
            np.testing.assert_array_equal(one.values, other.values)
            np.testing.assert_array_equal(one.counts, other.counts)
    for j, column in enumerate(at_once):
        values = X[~np.isnan(X[:, j]), j]
        assert column.values.size <= most
        assert column.counts.sum() == values.size
        assert np.isin(column.values, values).all()
        # up to each of them so many rows
        up_to = np.searchsorted(np.sort(values), column.values, side="right")
        np.testing.assert_array_equal(np.cumsum(column.counts), up_to)
    assert at_once[3].bits == 0  # eleven values
    assert at_once[0].bits > 0


def test_knots_are_quantiles_of_all_rows_in_any_order():
    """Every n-th row of lists of ten, their positives first, would be positives only."""
    rng = np.random.default_rng(0)
    X = np.where(np.arange(N) % 10 == 0, 0.0, rng.integers(1, 6, N) * rng.choice([-1, 1], N))
    knots = knots_of(counts_of_columns(X[:, None], np.arange(N)), 16)
    assert knots.positions.tolist() == list(range(-5, 6))
    normal = rng.normal(size=(N, 1))
    expected = np.sort(normal[:, 0])[np.maximum(np.arange(5) * N // 4 - 1, 0)]
    for rows in (np.arange(N), rng.permutation(N)):
        knots = knots_of(counts_of_columns(normal, rows), 4)
        assert np.isin(expected, knots.positions).all()
        begins = np.append(True, np.diff(knots.piece) > 0)
        np.testing.assert_array_equal(knots.positions[:-1][begins], expected[:-1])
