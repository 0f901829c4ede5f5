"""The two products with the feature matrix: rows times a vector, and a weighted sum of rows.

Every kernel reads the rows ``rows[start:stop]`` of the matrix, so that no sorted copy of it is
needed; sums are in float64 whatever the storage, and never depend on the number of threads. Rows
whose coefficient is zero are not touched: with top-k surrogates that is most of them.
"""

import numpy as np
from numba import njit
from scipy import sparse

_SUMS = {"reassoc", "contract", "nsz"}


def scores(X, rows, w, start, stop, out):
    """Write ``X[rows[p]] . w`` into ``out[p]`` for ``start <= p < stop``."""
    if sparse.issparse(X):
        _csr_scores(X.data, X.indices, X.indptr, rows, w, start, stop, out)
    elif _is_row_major(X):
        _row_scores(X, rows, w, start, stop, out)
    else:
        _column_scores(X.T, rows, w, start, stop, out)


def add_weighted_rows(X, rows, coef, start, stop, out):
    """Add ``sum_p coef[p] X[rows[p]]`` over ``start <= p < stop`` to the vector ``out``."""
    active = start + np.flatnonzero(coef[start:stop])
    if sparse.issparse(X):
        _csr_add(X.data, X.indices, X.indptr, rows, coef, active, out)
    elif _is_row_major(X):
        _row_add(X, rows, coef, active, out)
    else:
        _column_add(X.T, rows, coef, active, out)


def _is_row_major(X):
    return abs(X.strides[0]) >= abs(X.strides[1])


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
