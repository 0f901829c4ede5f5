"""Sparse matrices in CSR, of which zeros are not stored: a weight for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._jit import REORDERED_SUMS, kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import (
    Columns,
    ColumnValues,
    ListRows,
    Spread,
    Variation,
    WrittenOut,
    difference,
    digest_of_entry,
    mix,
)


class CSRColumns(Columns):
    """A canonical CSR matrix of float64 or float32, see `checks.canonical_csr`; not copied."""

    is_sparse = True

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_weights = X.shape
        self.dtype = X.dtype

    @property
    def _arrays(self) -> tuple[Array, Array, Array]:
        """As kernels take them."""
        return self.X.data, self.X.indices, self.X.indptr

    @property
    def n_entries(self) -> int:
        return int(self.X.nnz)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._arrays)

    def add_scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        data, indices, indptr = self._arrays
        _csr_scores(data, indices, indptr, rows, w, start, stop, out)

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        data, indices, indptr = self._arrays
        _csr_add(data, indices, indptr, rows, coef, active, bounds, out)

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        data, indices, indptr = self._arrays
        _csr_in_order(data, indices, indptr, rows, w, out)

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        return np.asarray(coef @ self.X[rows], dtype=np.float64)

    def take(self, rows: Any) -> CSRColumns:
        return CSRColumns(self.X[rows])

    def join(self, others: Sequence[CSRColumns]) -> CSRColumns:
        return CSRColumns(sparse.vstack([self.X, *(other.X for other in others)], format="csr"))

    def less_first_rows(self, rows: Array, indptr: Array, spread: Spread) -> ListRows:
        """In the columns that every row stores."""
        copied = self.X[rows].astype(np.float64, copy=False)
        _csr_differences(copied.data, copied.indices, copied.indptr, indptr, spread.shifted)
        return ListRows(CSRColumns(copied), np.arange(rows.size))

    def toarray(self) -> Array:
        return np.asarray(self.X.toarray(), dtype=np.float64)

    def written_out(self, rows: Array) -> WrittenOut:
        some = self.X[rows]
        weights = np.unique(some.indices)
        return WrittenOut(weights, np.asarray(some[:, weights].toarray(), dtype=np.float64))

    def content(self) -> Iterator[Any]:
        yield f"csr {self.X.shape}"
        yield self.X.indptr
        yield self.X.indices
        yield self.X.data

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        data, indices, bounds = self._arrays
        _csr_digests(data, indices, bounds, rows, indptr, gains, digests)

    def spread(self, rows: Array, indptr: Array) -> Spread:
        data, indices, bounds = self._arrays
        largest = np.zeros(self.n_weights)
        counts = np.zeros(self.n_weights, dtype=np.int64)
        row_terms = _csr_largest(data, indices, bounds, rows, largest, counts)
        shifted = counts == rows.size  # stored in every row
        within = np.where(shifted, 0.0, largest)
        if shifted.any():
            _csr_within(data, indices, bounds, rows, indptr, shifted, within)
        return Spread(largest=largest, within=within, shifted=shifted, row_terms=int(row_terms))

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        """As of dense columns; how many values a column takes is not looked at."""
        unit = np.where(spread.within > 0.0, spread.within, 1.0)
        squares = np.zeros(unit.size)
        data, indices, bounds = self._arrays
        _csr_squares(data, indices, bounds, rows, indptr, 1.0 / unit, squares)
        unknown = np.full(self.n_weights, np.nan)
        return Variation(
            deviation=unit * np.sqrt(squares / max(rows.size, 1)),
            low=unknown,
            high=unknown,
            n_rows=rows.size,
            is_sparse=True,
        )

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        return ColumnValues(weight, "", self.X[:, [weight]].toarray()[rows, 0])


@kernel(fastmath=REORDERED_SUMS)
def _csr_scores(
    data: Array,
    indices: Array,
    indptr: Array,
    rows: Array,
    w: Array,
    start: int,
    stop: int,
    out: Array,
) -> None:
    for p in range(start, stop):
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += data[e] * w[indices[e]]
        out[p] += total


@kernel(fastmath=REORDERED_SUMS)
def _csr_add(
    data: Array,
    indices: Array,
    indptr: Array,
    rows: Array,
    coef: Array,
    active: Array,
    bounds: Array,
    out: Array,
) -> None:
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            coef_p = coef[p]
            for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
                total[indices[e]] += coef_p * data[e]


@kernel
def _csr_in_order(
    data: Array, indices: Array, indptr: Array, rows: Array, w: Array, out: Array
) -> None:
    for p in range(rows.size):
        total = out[p]
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += np.float64(data[e]) * w[indices[e]]
        out[p] = total


@kernel
def _csr_differences(
    data: Array, indices: Array, indptr: Array, bounds: Array, columns: Array
) -> None:
    first = np.zeros(columns.size)
    for u in range(bounds.size - 1):
        for p in range(bounds[u], bounds[u + 1]):
            for e in range(indptr[p], indptr[p + 1]):
                f = indices[e]
                if not columns[f]:
                    continue
                if p == bounds[u]:
                    first[f] = data[e]
                data[e] = difference(data[e], first[f])


@kernel
def _csr_largest(
    data: Array, indices: Array, indptr: Array, rows: Array, largest: Array, counts: Array
) -> int:
    longest = 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
        for e in range(indptr[row], indptr[row + 1]):
            f = indices[e]
            largest[f] = max(largest[f], abs(np.float64(data[e])))
            counts[f] += 1
    return longest


@kernel
def _csr_within(
    data: Array,
    indices: Array,
    indptr: Array,
    rows: Array,
    bounds: Array,
    shifted: Array,
    within: Array,
) -> None:
    origin = np.zeros(shifted.size)
    for u in range(bounds.size - 1):
        for p in range(bounds[u], bounds[u + 1]):
            for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
                f = indices[e]
                if not shifted[f]:
                    continue
                if p == bounds[u]:
                    origin[f] = data[e]
                within[f] = max(within[f], abs(difference(data[e], origin[f])))


@kernel
def _csr_squares(
    data: Array,
    indices: Array,
    indptr: Array,
    rows: Array,
    bounds: Array,
    inverse: Array,
    squares: Array,
) -> None:
    """Entries that are not stored are zeros; the origin of a column is its first stored entry."""
    origin = np.zeros(squares.size)
    mean = np.zeros(squares.size)
    count = np.zeros(squares.size, dtype=np.int64)
    for u in range(bounds.size - 1):
        users_rows = rows[bounds[u] : bounds[u + 1]]
        n = users_rows.size
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                if count[f] == 0:
                    origin[f] = data[e]
                mean[f] += difference(data[e], origin[f]) * inverse[f]
                count[f] += 1
        for row in users_rows:  # the sums become means, over the zeros too
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                if count[f] > 0:
                    zero = -origin[f] * inverse[f]
                    mean[f] = (mean[f] + (n - count[f]) * zero) / n
                    away = zero - mean[f]
                    squares[f] += (n - count[f]) * (away * away)
                    count[f] = -1
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                away = difference(data[e], origin[f]) * inverse[f] - mean[f]
                squares[f] += away * away
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                mean[indices[e]] = 0.0
                count[indices[e]] = 0


@kernel
def _csr_digests(
    data: Array,
    indices: Array,
    bounds: Array,
    rows: Array,
    indptr: Array,
    gains: Array,
    digests: Array,
) -> None:
    one = np.empty(1)
    for u in range(digests.size):
        for p in range(indptr[u], indptr[u + 1]):
            digest = gains[p]
            for e in range(bounds[rows[p]], bounds[rows[p] + 1]):
                digest += digest_of_entry(data[e], indices[e], one)
            digests[u] += mix(digest)
        digests[u] = mix(digests[u])
