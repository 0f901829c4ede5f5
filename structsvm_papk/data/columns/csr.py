"""Sparse matrices in CSR, of which zeros are not stored: a weight for each column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._jit import REORDERED_SUMS, kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import (
    ColumnValues,
    ListRows,
    MatrixColumns,
    Spread,
    WrittenOut,
    difference,
    digest_of_entry,
    mix,
)


class CSRColumns(MatrixColumns):
    """A canonical CSR matrix of float64 or float32, see `checks.canonical_csr`."""

    is_sparse = True

    @property
    def _stored(self) -> Stored:
        """As kernels take it."""
        return Stored(self.X.data, self.X.indices, self.X.indptr)

    @property
    def n_entries(self) -> int:
        return int(self.X.nnz)

    @property
    def nbytes(self) -> int:
        return sum(array.nbytes for array in self._stored)

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        _csr_add(self._stored, rows, coef, active, bounds, out)

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        _csr_in_order(self._stored, rows, w, out)

    def take(self, rows: Any) -> CSRColumns:
        return CSRColumns(self.X[rows])

    def join(self, others: Sequence[CSRColumns]) -> CSRColumns:
        return CSRColumns(sparse.vstack([self.X, *(other.X for other in others)], format="csr"))

    def less_first_rows(self, rows: Array, indptr: Array, spread: Spread) -> ListRows:
        """In the columns that every row stores."""
        copied = self.X[rows].astype(np.float64, copy=False)
        columns = CSRColumns(copied)
        _csr_differences(columns._stored, indptr, spread.shifted)
        return ListRows(columns, np.arange(rows.size))

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
        _csr_digests(self._stored, rows, indptr, gains, digests)

    def spread(self, rows: Array, indptr: Array) -> Spread:
        largest = np.zeros(self.n_weights)
        counts = np.zeros(self.n_weights, dtype=np.int64)
        row_terms = _csr_largest(self._stored, rows, largest, counts)
        shifted = counts == rows.size  # stored in every row
        within = np.where(shifted, 0.0, largest)
        if shifted.any():
            _csr_within(self._stored, rows, indptr, shifted, within)
        return Spread(largest=largest, within=within, shifted=shifted, row_terms=int(row_terms))

    def add_squares(self, rows: Array, indptr: Array, inverse: Array, squares: Array) -> None:
        _csr_squares(self._stored, rows, indptr, inverse, squares)

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        return ColumnValues(weight, "", self.X[:, [weight]].toarray()[rows, 0])


class Stored(NamedTuple):
    """The arrays of a CSR matrix."""

    data: Array
    indices: Array
    indptr: Array


@kernel(fastmath=REORDERED_SUMS)
def _csr_add(X: Stored, rows: Array, coef: Array, active: Array, bounds: Array, out: Array) -> None:
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            coef_p = coef[p]
            for e in range(X.indptr[rows[p]], X.indptr[rows[p] + 1]):
                total[X.indices[e]] += coef_p * X.data[e]


@kernel
def _csr_in_order(X: Stored, rows: Array, w: Array, out: Array) -> None:
    for p in range(rows.size):
        total = out[p]
        for e in range(X.indptr[rows[p]], X.indptr[rows[p] + 1]):
            total += np.float64(X.data[e]) * w[X.indices[e]]
        out[p] = total


@kernel
def _csr_differences(X: Stored, bounds: Array, columns: Array) -> None:
    first = np.zeros(columns.size)
    for u in range(bounds.size - 1):
        for p in range(bounds[u], bounds[u + 1]):
            for e in range(X.indptr[p], X.indptr[p + 1]):
                f = X.indices[e]
                if not columns[f]:
                    continue
                if p == bounds[u]:
                    first[f] = X.data[e]
                X.data[e] = difference(X.data[e], first[f])


@kernel
def _csr_largest(X: Stored, rows: Array, largest: Array, counts: Array) -> int:
    longest = 0
    for row in rows:
        longest = max(longest, X.indptr[row + 1] - X.indptr[row])
        for e in range(X.indptr[row], X.indptr[row + 1]):
            f = X.indices[e]
            largest[f] = max(largest[f], abs(np.float64(X.data[e])))
            counts[f] += 1
    return longest


@kernel
def _csr_within(X: Stored, rows: Array, bounds: Array, shifted: Array, within: Array) -> None:
    origin = np.zeros(shifted.size)
    for u in range(bounds.size - 1):
        for p in range(bounds[u], bounds[u + 1]):
            for e in range(X.indptr[rows[p]], X.indptr[rows[p] + 1]):
                f = X.indices[e]
                if not shifted[f]:
                    continue
                if p == bounds[u]:
                    origin[f] = X.data[e]
                within[f] = max(within[f], abs(difference(X.data[e], origin[f])))


@kernel
def _csr_squares(X: Stored, rows: Array, bounds: Array, inverse: Array, squares: Array) -> None:
    """Entries that are not stored are zeros; the origin of a column is its first stored entry."""
    origin = np.zeros(squares.size)
    mean = np.zeros(squares.size)
    count = np.zeros(squares.size, dtype=np.int64)
    for u in range(bounds.size - 1):
        users_rows = rows[bounds[u] : bounds[u + 1]]
        n = users_rows.size
        for row in users_rows:
            for e in range(X.indptr[row], X.indptr[row + 1]):
                f = X.indices[e]
                if count[f] == 0:
                    origin[f] = X.data[e]
                mean[f] += difference(X.data[e], origin[f]) * inverse[f]
                count[f] += 1
        for row in users_rows:  # the sums become means, over the zeros too
            for e in range(X.indptr[row], X.indptr[row + 1]):
                f = X.indices[e]
                if count[f] > 0:
                    zero = -origin[f] * inverse[f]
                    mean[f] = (mean[f] + (n - count[f]) * zero) / n
                    away = zero - mean[f]
                    squares[f] += (n - count[f]) * (away * away)
                    count[f] = -1
        for row in users_rows:
            for e in range(X.indptr[row], X.indptr[row + 1]):
                f = X.indices[e]
                away = difference(X.data[e], origin[f]) * inverse[f] - mean[f]
                squares[f] += away * away
        for row in users_rows:
            for e in range(X.indptr[row], X.indptr[row + 1]):
                mean[X.indices[e]] = 0.0
                count[X.indices[e]] = 0


@kernel
def _csr_digests(X: Stored, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
    one = np.empty(1)
    for u in range(digests.size):
        for p in range(indptr[u], indptr[u + 1]):
            digest = gains[p]
            for e in range(X.indptr[rows[p]], X.indptr[rows[p] + 1]):
                digest += digest_of_entry(X.data[e], X.indices[e], one)
            digests[u] += mix(digest)
        digests[u] = mix(digests[u])
