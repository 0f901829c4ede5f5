"""Lists seen from a row of their own, and what rounding can do to scores and subgradients.

Surrogates that depend on differences of scores within a user only do not change when one vector is
subtracted from all rows of a user. So a column such as a time stamp, whose values share most of
their digits within a user, is read as its difference to the user's first row: the subtraction of
close numbers is exact or nearly so, and what all rows share is gone before anything is rounded.
Data without such a column are read as they are. See ``docs/math/certificate.md`` for the bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data._products import difference, is_row_major
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.oracle import Rounding

EPS = float(np.finfo(float).eps)
FEW_ROUNDINGS = 24  # of one number, beside the sums: margins, scales, counts, differences
_OFFSET = 1024.0  # how many times its spread a column's values must be for origins to pay
_STEPS = 4  # steps of the storage type within a user that are too few to be more than rounding


@dataclass(frozen=True)
class Spread:
    """How large the values of each column are, and how far apart within a user.

    `within` is the largest distance to the user's first row (`largest` for columns that are not
    shifted); `shifted` are the columns from which that row may be subtracted: for sparse X those
    that are stored in every row. A row's score adds up at most `row_terms` values.
    """

    largest: Array
    within: Array
    shifted: Array
    row_terms: int

    @property
    def from_origins(self) -> bool:
        """Whether subtracting the user's first row pays."""
        within = np.where(self.within > 0.0, self.within, self.within.max())
        return bool((self.shifted & (self.largest > _OFFSET * within)).any())


def spread_of(X: Any, rows: Array, indptr: Array) -> Spread:
    """The `Spread` of the lists ``rows[indptr[u]:indptr[u + 1]]`` of X, in one pass."""
    d = X.shape[1]
    largest, within = np.zeros(d), np.zeros(d)
    shifted = np.ones(d, dtype=bool)
    if not sparse.issparse(X):
        read = _row_extremes if is_row_major(X) else _column_extremes
        read(X if is_row_major(X) else X.T, rows, indptr, largest, within)
        return Spread(largest, within, shifted, d)
    counts = np.zeros(d, dtype=np.int64)
    row_terms = _csr_largest(X.data, X.indices, X.indptr, rows, largest, counts)
    shifted = counts == rows.size
    within = np.where(shifted, 0.0, largest)
    if shifted.any():
        _csr_within(X.data, X.indices, X.indptr, rows, indptr, shifted, within)
    return Spread(largest, within, shifted, int(row_terms))


def rounding_bound(spread: Spread, shifted: bool, l1_bound: float, chain: int) -> Rounding:
    """The `Rounding` of a risk, whose rows may be read from their user's first one (`shifted`).

    A user's absolute subgradients add up to `l1_bound` at most, in the mean over the users; at
    most `chain` rows are added up one after the other in a slope.
    """
    steep = l1_bound * (spread.within if shifted else spread.largest)
    return Rounding(
        (spread.row_terms + FEW_ROUNDINGS) * EPS * steep, (chain + FEW_ROUNDINGS) * EPS * steep
    )


def refuse_unresolved(
    X: Any, rows: Array, spread: Spread, names: Sequence[str] | None = None
) -> None:
    """Refuse a column whose values within a user differ by rounding of their storage only."""
    step = np.spacing(spread.largest.astype(X.dtype)).astype(np.float64)
    bad = (spread.within > 0.0) & (spread.within <= _STEPS * step)
    bad &= spread.shifted & (spread.largest > _OFFSET * spread.within)
    if not bad.any():
        return
    f = int(np.flatnonzero(bad)[0])
    raise InputError(
        f"{column_text(X, rows, f, spread, names)}, which is at most {_STEPS} steps of "
        f"{X.dtype} at that size (one is {step[f]:.3g}): its digits do not suffice to rank by; "
        "subtract its offset before it is stored, keep it in float64, or leave it out"
    )


def column_text(
    X: Any, rows: Array, f: int, spread: Spread, names: Sequence[str] | None = None
) -> str:
    """A column with its mean and spread, for messages."""
    values = X[:, [f]].toarray()[:, 0] if sparse.issparse(X) else X[:, f]
    mean = values[rows].mean(dtype=np.float64)
    name = f"column {f} of X (counted from 0)" if names is None else f"column {names[f]!r}"
    return f"{name} has mean {mean:.6g}, and spreads over {spread.within[f]:.3g} within a user"


@kernel
def _row_extremes(X, rows, indptr, largest, within):
    for u in range(indptr.size - 1):
        origin = X[rows[indptr[u]]] if indptr[u] < indptr[u + 1] else X[0]
        for p in range(indptr[u], indptr[u + 1]):
            row = X[rows[p]]
            for f in range(largest.size):
                largest[f] = max(largest[f], abs(np.float64(row[f])))
                within[f] = max(within[f], abs(difference(row[f], origin[f])))


@kernel
def _column_extremes(columns, rows, indptr, largest, within):
    for f in range(largest.size):
        column = columns[f]
        for u in range(indptr.size - 1):
            for p in range(indptr[u], indptr[u + 1]):
                value = column[rows[p]]
                largest[f] = max(largest[f], abs(np.float64(value)))
                within[f] = max(within[f], abs(difference(value, column[rows[indptr[u]]])))


@kernel
def _csr_largest(data, indices, indptr, rows, largest, counts):
    longest = 0
    for row in rows:
        longest = max(longest, indptr[row + 1] - indptr[row])
        for e in range(indptr[row], indptr[row + 1]):
            f = indices[e]
            largest[f] = max(largest[f], abs(np.float64(data[e])))
            counts[f] += 1
    return longest


@kernel
def _csr_within(data, indices, indptr, rows, bounds, shifted, within):
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
