"""Dense matrices: a weight for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from structsvm_papk._jit import REORDERED_SUMS, kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import (
    ROWS_AT_A_TIME,
    ColumnValues,
    ListRows,
    MatrixColumns,
    Spread,
    difference,
    digest_of_entry,
    mix,
)

_BATCH_VALUES = 1 << 22  # values that are looked at before the next ones


class DenseColumns(MatrixColumns):
    """A dense matrix of float64 or float32; one that is not in C order is copied."""

    def __init__(self, X: Array) -> None:
        super().__init__(np.ascontiguousarray(X))

    @property
    def n_entries(self) -> int:
        return self.X.size

    @property
    def nbytes(self) -> int:
        return self.X.nbytes

    def add_scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        _row_scores(read_only(self.X), rows, w, start, stop, out)

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        _row_add(read_only(self.X), rows, coef, active, bounds, out)

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        _rows_in_order(read_only(self.X), rows, read_only(w), out)

    def take(self, rows: Any) -> DenseColumns:
        return DenseColumns(self.X[rows])

    def join(self, others: Sequence[DenseColumns]) -> DenseColumns:
        return DenseColumns(np.concatenate([self.X, *(other.X for other in others)]))

    def less_first_rows(self, rows: Array, indptr: Array, spread: Spread) -> ListRows:
        copied = np.empty((rows.size, self.n_weights))
        _row_differences(read_only(self.X), rows, indptr, copied)
        return ListRows(DenseColumns(copied), np.arange(rows.size))

    def toarray(self) -> Array:
        return self.X.astype(np.float64, copy=False)

    def content(self) -> Iterator[Any]:
        yield self.X

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        _row_digests(read_only(self.X), rows, indptr, gains, digests)

    def with_missing(self) -> Array:
        mask = np.zeros(self.n_columns, dtype=bool)
        step = max(1, _BATCH_VALUES // self.n_columns)
        for start in range(0, self.n_rows, step):
            mask |= np.isnan(self.X[start : start + step]).any(axis=0)
        return mask

    def spread(self, rows: Array, indptr: Array) -> Spread:
        largest = np.zeros(self.n_weights)
        within = np.zeros(self.n_weights)
        _row_extremes(read_only(self.X), rows, indptr, largest, within)
        return Spread(
            largest=largest,
            within=within,
            shifted=np.ones(self.n_weights, dtype=bool),
            row_terms=self.n_weights,
        )

    def add_squares(self, rows: Array, indptr: Array, inverse: Array, squares: Array) -> None:
        _row_squares(read_only(self.X), rows, indptr, inverse, squares)

    def two_values(self, rows: Array) -> tuple[Array, Array]:
        """Ends when all have more.

        On data without indicators that is after the first few rows.
        """
        X = self.X
        low = np.full(X.shape[1], np.nan)
        high = np.full(X.shape[1], np.nan)
        if not rows.size:
            return low, high
        columns = np.arange(X.shape[1])  # without a third value so far
        lowest = X[rows[0]]
        highest = X[rows[0]]
        for first in range(0, rows.size, ROWS_AT_A_TIME):
            block = X[rows[first : first + ROWS_AT_A_TIME, None], columns]
            seen = np.vstack([lowest, highest, block])
            lowest = seen.min(axis=0)
            highest = seen.max(axis=0)
            two = ((seen == lowest) | (seen == highest)).all(axis=0)
            columns = columns[two]
            lowest = lowest[two]
            highest = highest[two]
            if not columns.size:
                break
        low[columns] = lowest
        high[columns] = highest
        return low, high

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        return ColumnValues(weight, "", self.X[rows, weight])


@kernel
def _rows_in_order(X: Array, rows: Array, w: Array, out: Array) -> None:
    for p in range(rows.size):
        row = X[rows[p]]
        total = out[p]
        for f in range(w.size):
            total += np.float64(row[f]) * w[f]
        out[p] = total


@kernel(fastmath=REORDERED_SUMS)
def _row_scores(X: Array, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
    for p in range(start, stop):
        row = X[rows[p]]
        total = 0.0
        for f in range(w.size):
            total += row[f] * w[f]
        out[p] += total


@kernel(fastmath=REORDERED_SUMS)
def _row_add(X: Array, rows: Array, coef: Array, active: Array, bounds: Array, out: Array) -> None:
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            row = X[rows[p]]
            coef_p = coef[p]
            for f in range(total.size):
                total[f] += coef_p * row[f]


@kernel
def _row_differences(X: Array, rows: Array, bounds: Array, out: Array) -> None:
    for u in range(bounds.size - 1):
        if bounds[u] == bounds[u + 1]:
            continue
        first = X[rows[bounds[u]]]
        for p in range(bounds[u], bounds[u + 1]):
            row = X[rows[p]]
            for f in range(out.shape[1]):
                out[p, f] = difference(row[f], first[f])


@kernel
def _row_extremes(X: Array, rows: Array, indptr: Array, largest: Array, within: Array) -> None:
    for u in range(indptr.size - 1):
        if indptr[u] == indptr[u + 1]:
            continue
        origin = X[rows[indptr[u]]]
        for p in range(indptr[u], indptr[u + 1]):
            row = X[rows[p]]
            for f in range(largest.size):
                largest[f] = max(largest[f], abs(np.float64(row[f])))
                within[f] = max(within[f], abs(difference(row[f], origin[f])))


@kernel
def _row_squares(X: Array, rows: Array, indptr: Array, inverse: Array, squares: Array) -> None:
    mean = np.empty(squares.size)
    for u in range(indptr.size - 1):
        first = indptr[u]
        last = indptr[u + 1]
        mean[:] = 0.0
        for p in range(first + 1, last):
            row = X[rows[p]]
            origin = X[rows[first]]
            for f in range(mean.size):
                mean[f] += difference(row[f], origin[f]) * inverse[f]
        mean /= max(last - first, 1)
        for p in range(first, last):
            row = X[rows[p]]
            origin = X[rows[first]]
            for f in range(mean.size):
                away = difference(row[f], origin[f]) * inverse[f] - mean[f]
                squares[f] += away * away


@kernel
def _row_digests(X: Array, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
    one = np.empty(1)
    for u in range(digests.size):
        for p in range(indptr[u], indptr[u + 1]):
            digest = gains[p]
            for f in range(X.shape[1]):
                digest += digest_of_entry(X[rows[p], f], f, one)
            digests[u] += mix(digest)
        digests[u] = mix(digests[u])
