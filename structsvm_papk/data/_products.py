"""The two products with the feature matrix: rows times a vector, and a weighted sum of rows.

Every kernel reads the rows ``rows[start:stop]`` of the matrix, so that no sorted copy of it is
needed; sums are in float64 whatever the storage, and never depend on the number of threads. Rows
whose coefficient is zero are not touched: with top-k surrogates that is most of them.

With `origins` (`Origins`) a row is read as its difference to another row of the matrix, entry by
entry and in float64, before anything is multiplied. numba compiles every kernel twice, with origins
and, without a trace of them, for None.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

_SUMS = {"reassoc", "contract", "nsz"}


class Origins(NamedTuple):
    """What is subtracted at each list position: a row of X, in the columns that are True."""

    rows: Array
    columns: Array

    def at(self, positions: Array) -> Origins:
        """The origins at some list positions."""
        return Origins(self.rows[positions], self.columns)


def scores(
    X: Any, rows: Array, w: Array, start: int, stop: int, out: Array, origins: Origins | None = None
) -> None:
    """Write ``X[rows[p]] . w`` into ``out[p]`` for ``start <= p < stop``."""
    at, columns = (None, None) if origins is None else origins
    if sparse.issparse(X):
        _csr_scores(X.data, X.indices, X.indptr, rows, at, columns, w, start, stop, out)
    elif is_row_major(X):
        _row_scores(X, rows, at, w, start, stop, out)
    else:
        _column_scores(X.T, rows, at, w, start, stop, out)


def add_weighted_rows(
    X: Any,
    rows: Array,
    coef: Array,
    edges: Array,
    out: Array,
    origins: Origins | None = None,
) -> None:
    """Add ``sum_p coef[p] X[rows[p]]`` over ``edges[c] <= p < edges[c + 1]`` to ``out[c]``."""
    # of booleans the indices are found five times faster
    active = edges[0] + np.flatnonzero(coef[edges[0] : edges[-1]] != 0.0)
    bounds = np.searchsorted(active, edges)
    at, columns = (None, None) if origins is None else origins
    if sparse.issparse(X):
        _csr_add(X.data, X.indices, X.indptr, rows, at, columns, coef, active, bounds, out)
    elif is_row_major(X):
        _row_add(X, rows, at, coef, active, bounds, out)
    else:
        _column_add(X.T, rows, at, coef, active, bounds, out)


def shifted_rows(X: Any, rows: Array, origins: Origins | None) -> Any:
    """The rows less their origins, as a dense float64 or a CSR matrix."""
    if origins is None:
        return X[rows]
    if not sparse.issparse(X):
        return X[rows].astype(np.float64) - X[origins.rows]
    part = X[rows].astype(np.float64)
    _csr_shift(part.data, part.indices, part.indptr, X.data, X.indices, X.indptr, *origins)
    return part


def is_row_major(X: Array) -> bool:
    """Whether the entries of a row lie next to each other."""
    return abs(X.strides[0]) >= abs(X.strides[1])


@kernel
def difference(value, origin):
    """In float64, and rounded by itself: the sums' freedom to reorder must not undo it."""
    return np.float64(value) - np.float64(origin)


@kernel
def _entry(values, i, origin, j):
    """An entry, less its origin where there is one."""
    if origin is None:
        return values[i]
    return difference(values[i], origin[j])


@kernel
def _row_of(X, rows, p):
    """Row ``rows[p]`` of X, or None."""
    if rows is None:
        return None
    return X[rows[p]]


@kernel(fastmath=_SUMS)
def _row_scores(X, rows, origins, w, start, stop, out):
    for p in range(start, stop):
        row, origin = X[rows[p]], _row_of(X, origins, p)
        total = 0.0
        for f in range(w.size):
            total += _entry(row, f, origin, f) * w[f]
        out[p] = total


@kernel(fastmath=_SUMS)
def _row_add(X, rows, origins, coef, active, bounds, out):
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            row, origin = X[rows[p]], _row_of(X, origins, p)
            c = coef[p]
            for f in range(total.size):
                total[f] += c * _entry(row, f, origin, f)


@kernel
def _column_entry(column, rows, origins, p):
    if origins is None:
        return column[rows[p]]
    return difference(column[rows[p]], column[origins[p]])


@kernel(fastmath=_SUMS)
def _column_scores(columns, rows, origins, w, start, stop, out):
    out[start:stop] = 0.0
    for f in range(w.size):
        for p in range(start, stop):
            out[p] += w[f] * _column_entry(columns[f], rows, origins, p)


@kernel(fastmath=_SUMS)
def _column_add(columns, rows, origins, coef, active, bounds, out):
    for part in range(bounds.size - 1):
        for f in range(columns.shape[0]):
            total = 0.0
            for p in active[bounds[part] : bounds[part + 1]]:
                total += coef[p] * _column_entry(columns[f], rows, origins, p)
            out[part, f] += total


@kernel
def _no_origin(origins, size):
    if origins is None:
        return None
    return np.zeros(size)


@kernel
def _take_origin(data, indices, indptr, origins, p, last, shifted, origin):
    """Write the shifted entries of p's origin where it is not the last one; return its row.

    They are stored in every row, so all are overwritten.
    """
    if origins is None:
        return last
    if origins[p] != last:
        for e in range(indptr[origins[p]], indptr[origins[p] + 1]):
            if shifted[indices[e]]:
                origin[indices[e]] = data[e]
    return origins[p]


@kernel(fastmath=_SUMS)
def _csr_scores(data, indices, indptr, rows, origins, shifted, w, start, stop, out):
    origin, last = _no_origin(origins, w.size), -1
    for p in range(start, stop):
        last = _take_origin(data, indices, indptr, origins, p, last, shifted, origin)
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += _entry(data, e, origin, indices[e]) * w[indices[e]]
        out[p] = total


@kernel(fastmath=_SUMS)
def _csr_add(data, indices, indptr, rows, origins, shifted, coef, active, bounds, out):
    origin, last = _no_origin(origins, out.shape[1]), -1
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            last = _take_origin(data, indices, indptr, origins, p, last, shifted, origin)
            c = coef[p]
            for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
                total[indices[e]] += c * _entry(data, e, origin, indices[e])


@kernel
def _csr_shift(part, part_indices, part_indptr, data, indices, indptr, origins, shifted):
    """Subtract the origins from the rows of another matrix with the same columns, in place."""
    origin, last = np.zeros(shifted.size), -1
    for p in range(origins.size):
        last = _take_origin(data, indices, indptr, origins, p, last, shifted, origin)
        for e in range(part_indptr[p], part_indptr[p + 1]):
            part[e] = difference(part[e], origin[part_indices[e]])
