"""The pooled within-user standard deviation of every column: the units of a standardized problem.

    sd_f = sqrt( sum_u sum_{i of u} (x_if - mean_uf)^2 / n_rows )

Offsets between users do not count, as they do not to a ranking. Deviations are taken from the
user's first row, in units of the largest of them, so that neither a common offset nor values of
1e-100 or 1e100 cost digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data._products import difference, is_row_major
from structsvm_papk.data.origins import Spread

_SMALLEST, _LARGEST = 1e-150, 1e150  # whose squares are numbers


def within_user_deviation(X: Any, rows: Array, indptr: Array, spread: Spread) -> Array:
    """The deviation of each column over the lists ``rows[indptr[u]:indptr[u + 1]]``; 0: constant.

    `spread` is the `Spread` of the lists.
    """
    unit = np.where(spread.within > 0.0, spread.within, 1.0)
    squares = np.zeros(unit.size)
    if sparse.issparse(X):
        _csr_squares(X.data, X.indices, X.indptr, rows, indptr, 1.0 / unit, squares)
    elif is_row_major(X):
        _row_squares(X, rows, indptr, 1.0 / unit, squares)
    else:
        _column_squares(X.T, rows, indptr, 1.0 / unit, squares)
    deviation: Array = unit * np.sqrt(squares / max(rows.size, 1))
    return deviation


def scale_of(deviation: Array) -> Array:
    """What columns are divided by: 1 for those without a deviation, or one without a square."""
    usual = (deviation > _SMALLEST) & (deviation < _LARGEST)
    return np.where(usual, deviation, 1.0)


def pooled(deviations: Sequence[Array], n_rows: Sequence[int]) -> Array:
    """The deviations of several sets of users together, of those of each set and its rows."""
    each, share = np.array(deviations), np.array(n_rows) / max(sum(n_rows), 1)
    unit = np.where(each.any(axis=0), each.max(axis=0), 1.0)
    together: Array = unit * np.sqrt(share @ np.square(each / unit))
    return together


@kernel
def _row_squares(X, rows, indptr, inverse, squares):
    mean = np.empty(squares.size)
    for u in range(indptr.size - 1):
        first, last = indptr[u], indptr[u + 1]
        mean[:] = 0.0
        for p in range(first + 1, last):
            row, origin = X[rows[p]], X[rows[first]]
            for f in range(mean.size):
                mean[f] += difference(row[f], origin[f]) * inverse[f]
        mean /= max(last - first, 1)
        for p in range(first, last):
            row, origin = X[rows[p]], X[rows[first]]
            for f in range(mean.size):
                squares[f] += (difference(row[f], origin[f]) * inverse[f] - mean[f]) ** 2


@kernel
def _column_squares(columns, rows, indptr, inverse, squares):
    for f in range(squares.size):
        column = columns[f]
        for u in range(indptr.size - 1):
            first, last = indptr[u], indptr[u + 1]
            mean = 0.0
            for p in range(first + 1, last):
                mean += difference(column[rows[p]], column[rows[first]]) * inverse[f]
            mean /= max(last - first, 1)
            for p in range(first, last):
                value = difference(column[rows[p]], column[rows[first]]) * inverse[f]
                squares[f] += (value - mean) ** 2


@kernel
def _csr_squares(data, indices, indptr, rows, bounds, inverse, squares):
    """Entries that are not stored are zeros; the origin of a column is its first stored entry."""
    origin, mean = np.zeros(squares.size), np.zeros(squares.size)
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
                    squares[f] += (n - count[f]) * (zero - mean[f]) ** 2
                    count[f] = -1
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                squares[f] += (difference(data[e], origin[f]) * inverse[f] - mean[f]) ** 2
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                mean[indices[e]], count[indices[e]] = 0.0, 0
