"""The two products with the feature matrix: rows times a vector, and a weighted sum of rows.

Every kernel reads the rows ``rows[start:stop]`` of the matrix, so that no sorted copy of it is
needed; sums are in float64 whatever the storage, and never depend on the number of threads. Rows
whose coefficient is zero are not touched: with top-k surrogates that is most of them.

With `origins` (`Origins`) a row is read as its difference to another row of the matrix, entry by
entry and in float64, before anything is multiplied.
"""

import numpy as np
from numba import njit
from scipy import sparse

_SUMS = {"reassoc", "contract", "nsz"}


def scores(X, rows, w, start, stop, out, origins=None):
    """Write ``X[rows[p]] . w`` into ``out[p]`` for ``start <= p < stop``."""
    if origins is not None:
        _shifted_scores(X, rows, origins, w, start, stop, out)
    elif sparse.issparse(X):
        _csr_scores(X.data, X.indices, X.indptr, rows, w, start, stop, out)
    elif is_row_major(X):
        _row_scores(X, rows, w, start, stop, out)
    else:
        _column_scores(X.T, rows, w, start, stop, out)


def add_weighted_rows(X, rows, coef, start, stop, out, origins=None):
    """Add ``sum_p coef[p] X[rows[p]]`` over ``start <= p < stop`` to the vector ``out``."""
    active = start + np.flatnonzero(coef[start:stop])
    if origins is not None:
        _add_shifted(X, rows, origins, coef, active, out)
    elif sparse.issparse(X):
        _csr_add(X.data, X.indices, X.indptr, rows, coef, active, out)
    elif is_row_major(X):
        _row_add(X, rows, coef, active, out)
    else:
        _column_add(X.T, rows, coef, active, out)


def shifted_rows(X, rows, origins):
    """The rows less their origins, as a dense float64 or a CSR matrix."""
    if origins is None:
        return X[rows]
    if not sparse.issparse(X):
        return X[rows].astype(np.float64) - X[origins.rows]
    part = X[rows].astype(np.float64)
    _csr_shift(part.data, part.indices, part.indptr, X.data, X.indices, X.indptr, *origins)
    return part


def is_row_major(X):
    """Whether the entries of a row lie next to each other."""
    return abs(X.strides[0]) >= abs(X.strides[1])


def _shifted_scores(X, rows, origins, w, start, stop, out):
    if sparse.issparse(X):
        _csr_scores_from(X.data, X.indices, X.indptr, rows, *origins, w, start, stop, out)
    elif is_row_major(X):
        _row_scores_from(X, rows, origins.rows, w, start, stop, out)
    else:
        _column_scores_from(X.T, rows, origins.rows, w, start, stop, out)


def _add_shifted(X, rows, origins, coef, active, out):
    if sparse.issparse(X):
        _csr_add_from(X.data, X.indices, X.indptr, rows, *origins, coef, active, out)
    elif is_row_major(X):
        _row_add_from(X, rows, origins.rows, coef, active, out)
    else:
        _column_add_from(X.T, rows, origins.rows, coef, active, out)


@njit(cache=True, nogil=True)
def difference(value, origin):
    """In float64, and rounded by itself: the sums' freedom to reorder must not undo it."""
    return np.float64(value) - np.float64(origin)


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _row_scores(X, rows, w, start, stop, out):
    for p in range(start, stop):
        row = X[rows[p]]
        total = 0.0
        for f in range(w.size):
            total += row[f] * w[f]
        out[p] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _column_scores(columns, rows, w, start, stop, out):
    out[start:stop] = 0.0
    for f in range(w.size):
        column = columns[f]
        for p in range(start, stop):
            out[p] += w[f] * column[rows[p]]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _csr_scores(data, indices, indptr, rows, w, start, stop, out):
    for p in range(start, stop):
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += data[e] * w[indices[e]]
        out[p] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _row_add(X, rows, coef, active, out):
    for p in active:
        row = X[rows[p]]
        c = coef[p]
        for f in range(out.size):
            out[f] += c * row[f]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _column_add(columns, rows, coef, active, out):
    for f in range(out.size):
        column = columns[f]
        total = 0.0
        for p in active:
            total += coef[p] * column[rows[p]]
        out[f] += total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _csr_add(data, indices, indptr, rows, coef, active, out):
    for p in active:
        c = coef[p]
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            out[indices[e]] += c * data[e]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _row_scores_from(X, rows, origins, w, start, stop, out):
    for p in range(start, stop):
        row, origin = X[rows[p]], X[origins[p]]
        total = 0.0
        for f in range(w.size):
            total += difference(row[f], origin[f]) * w[f]
        out[p] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _column_scores_from(columns, rows, origins, w, start, stop, out):
    out[start:stop] = 0.0
    for f in range(w.size):
        column = columns[f]
        for p in range(start, stop):
            out[p] += w[f] * difference(column[rows[p]], column[origins[p]])


@njit(cache=True, nogil=True)
def _take_origin(data, indices, indptr, row, shifted, origin):
    """Write a row's shifted entries; they are stored in every row, so all are overwritten."""
    for e in range(indptr[row], indptr[row + 1]):
        if shifted[indices[e]]:
            origin[indices[e]] = data[e]


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _csr_scores_from(data, indices, indptr, rows, origins, shifted, w, start, stop, out):
    origin, last = np.zeros(w.size), -1
    for p in range(start, stop):
        if origins[p] != last:
            last = origins[p]
            _take_origin(data, indices, indptr, last, shifted, origin)
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += difference(data[e], origin[indices[e]]) * w[indices[e]]
        out[p] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _row_add_from(X, rows, origins, coef, active, out):
    for p in active:
        row, origin = X[rows[p]], X[origins[p]]
        c = coef[p]
        for f in range(out.size):
            out[f] += c * difference(row[f], origin[f])


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _column_add_from(columns, rows, origins, coef, active, out):
    for f in range(out.size):
        column = columns[f]
        total = 0.0
        for p in active:
            total += coef[p] * difference(column[rows[p]], column[origins[p]])
        out[f] += total


@njit(cache=True, nogil=True, fastmath=_SUMS)
def _csr_add_from(data, indices, indptr, rows, origins, shifted, coef, active, out):
    origin, last = np.zeros(out.size), -1
    for p in active:
        if origins[p] != last:
            last = origins[p]
            _take_origin(data, indices, indptr, last, shifted, origin)
        c = coef[p]
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            out[indices[e]] += c * difference(data[e], origin[indices[e]])


@njit(cache=True, nogil=True)
def _csr_shift(part, part_indices, part_indptr, data, indices, indptr, origins, shifted):
    """Subtract the origins from the rows of another matrix with the same columns, in place."""
    origin, last = np.zeros(shifted.size), -1
    for p in range(origins.size):
        if origins[p] != last:
            last = origins[p]
            _take_origin(data, indices, indptr, last, shifted, origin)
        for e in range(part_indptr[p], part_indptr[p + 1]):
            part[e] = difference(part[e], origin[part_indices[e]])
