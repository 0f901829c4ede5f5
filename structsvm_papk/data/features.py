"""The feature matrix: what it may hold, its products, and what the columns are like.

Features are real and finite numbers, dense or CSR; float32 and float64 stay. Refused with row and
column: NaN and infinite values, dates and durations, text, and whole numbers that double precision
rounds. Then all that reads the rows:

    scores[p] = x_p . w        sum_p coef[p] x_p        x_p = X[rows[p]]

Kernels read the rows in place, whatever their order; sums are in float64 whatever the storage, and
never depend on the number of threads. Rows whose coefficient is zero are not touched: with top-k
surrogates that is most of them.

A surrogate that depends on differences within a user only does not change when one vector is
subtracted from all rows of a user. So where a column such as a time stamp shares most of its digits
within a user, risks multiply a copy of the lists less each user's first row (`less_first_rows`):
the subtraction of close numbers is exact or nearly so, and what all rows share is gone before
anything is rounded. See ``docs/math/certificate.md`` for the bounds of rounding.

In the kernels u counts users, p list positions, f columns, and e the entries that CSR stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._jit import REORDERED_SUMS, is_row_major, kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.piecewise import PiecewiseColumns
from structsvm_papk.data.validation import EXACT, as_array, as_numbers, is_number
from structsvm_papk.data.validation import missing as missing_values
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.solvers.oracle import Rounding, error_of_sum

_OFFSET = 1024.0  # how many times its spread a column's values must be for a copy to pay
_STEPS = 4  # steps of the storage type within a user that are too few to be more than rounding
_BLOCK_VALUES = 1 << 17  # of X that are scored at a time: the scores of a block stay in the cache
ROUNDED = (
    "such whole numbers lose digits in double precision; give them as float64 if that is meant, "
    "or subtract an offset"
)
MISSING = ("lowest",)
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
_TEXTS = (str, bytes)
_BATCH_VALUES = 1 << 22  # values of X that are looked at before the next ones


# --- what it may hold ---------------------------------------------------------------------------


class NonFinite(NamedTuple):
    """A feature that is NaN or infinite, and where it stands."""

    row: int
    column: int
    value: float


def check_matrix(X: Any, names: Sequence[str] | None = None, missing: str | None = None) -> Any:
    """X as finite float64 or float32, dense or canonical CSR; not copied where it is.

    With `missing` NaN stays, of which None and pandas' NA become one. Messages use the `names` of
    the columns.
    """
    check_missing(missing)
    X = readable(X)
    if not sparse.issparse(X):
        X = as_array(X, "X")
    if X.dtype.kind == "c":
        raise InputError("X must be numeric and real, but it holds complex numbers")
    if X.dtype not in (np.float64, np.float32):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"X must be numeric: {error}") from None
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rows, features), got shape {X.shape}")
    if 0 in X.shape:
        raise InputError(f"X is empty: shape {X.shape}")
    return finite_matrix(X, names, missing)


def readable(X: Any) -> Any:
    """X where its conversion to floats changes no value, with NaN for what is missing."""
    refuse_misread(X)
    return nan_for_missing(X)


def finite_matrix(X: Any, names: Sequence[str] | None = None, missing: str | None = None) -> Any:
    """A matrix of floats whose values are finite, or NaN with `missing`; CSR is made canonical."""
    if sparse.issparse(X):
        X = canonical_csr(X)
    refuse_non_finite(X, names, missing)
    return X


def check_missing(missing: Any) -> None:
    """Refuse what is neither None nor a way to treat missing values."""
    if missing is not None:
        check_choice("missing", missing, MISSING)


def nan_for_missing(X: Any) -> Any:
    """X with NaN for None and pandas' NA, which numbers cannot be made of; else X itself."""
    if sparse.issparse(X):
        return X
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        columns = [X.iloc[:, c] for c in range(X.shape[1])]
        if all(map(_is_numeric, columns)) or not any(column.isna().any() for column in columns):
            return X
        # by number, as several columns may have one name
        floats = {c: _as_floats(column) for c, column in enumerate(columns)}
        frame = type(X)(floats, index=X.index)
        frame.columns = X.columns
        return frame
    if isinstance(X, list | tuple) and _holds_none(X):
        X = np.array(X, dtype=object)
    if isinstance(X, np.ndarray) and X.dtype.kind == "O" and missing_values(X).any():
        return _as_floats(X)
    return X


def _is_numeric(column):
    """Whether a series has one of numpy's types of numbers, in which NaN is the only hole."""
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"


def _as_floats(values):
    values = as_array(values, "X")
    return as_numbers(values, "X").astype(np.float64, copy=False)


def _holds_none(rows):
    for row in rows:
        if isinstance(row, list | tuple) and any(value is None for value in row):
            return True
    return False


def refuse_misread(X: Any) -> None:
    """Raise where features are times or text, or whole numbers that double precision rounds.

    Conversion to numbers would take them without a word. Frames are looked at column by column, as
    their own conversion to an array may be such a one.
    """
    if sparse.issparse(X):
        if X.dtype.kind in "iu":
            X = X.tocoo()
            _refuse_misread(X.data, lambda e: (X.row[e], X.col[e]))
    elif hasattr(X, "to_numpy") and hasattr(X, "columns"):
        for c, name in enumerate(X.columns):
            column = X.iloc[:, c] if hasattr(X, "iloc") else X[:, c]
            _refuse_misread(as_array(column, "X"), lambda row, name=name: (row, repr(name)))
    else:
        # lists as objects: of mixed types numpy would make text, or floats that are rounded
        values = np.array(X, dtype=object) if isinstance(X, list) else as_array(X, "X")
        n_columns = values.shape[-1] if values.ndim > 1 else 1
        _refuse_misread(values, lambda index: divmod(index, n_columns))


def _refuse_misread(values, place):
    """`place` gives row and column of an index into all values, row by row."""
    if values.dtype.kind in "bf" and values.dtype.itemsize <= 8:
        return
    types: set[Any] = {values.dtype.type}
    if values.dtype.kind == "O":
        types = set(map(type, values.flat))
    misread = tuple(kind for kind in types if issubclass(kind, (*_TIMES, *_TEXTS)))
    index: int | None = None
    if misread and values.size:
        index = next(i for i, value in enumerate(values.flat) if isinstance(value, misread))
    elif all(map(is_number, types)):
        index = first_rounded(values)
    if index is None:
        return
    value = values.flat[index]
    shown = value
    if isinstance(value, _TEXTS):
        shown = repr(str(value))
        reason = "text is no number: encode or drop it"
    elif isinstance(value, _TIMES):
        reason = "dates and durations are numbers only in a unit: give days, for example"
    else:
        reason = ROUNDED
    row, column = place(index)
    raise InputError(f"X holds {shown} at row {row}, column {column} (counted from 0): {reason}")


def canonical_csr(X: Any) -> Any:
    """CSR in which every entry is stored once and those of a row in order; X itself where it is.

    Entries stored several times are added up in float64, and stay float64. Indices that lead out of
    the arrays are refused: SciPy lets them be, our kernels follow them.
    """
    csr = X.tocsr()
    try:
        csr.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"X is not a valid CSR matrix: {error}") from None
    if _with_fresh_flags(csr).has_canonical_format:
        return csr
    csr = _with_fresh_flags(csr, copy=True)
    csr.sort_indices()
    if not _with_fresh_flags(csr).has_canonical_format:
        csr = csr.astype(np.float64)
        csr.sum_duplicates()
    return csr


def _with_fresh_flags(csr, copy=False):
    """The same matrix, whose flags are not older than its arrays: SciPy keeps what it once saw."""
    return type(csr)((csr.data, csr.indices, csr.indptr), shape=csr.shape, copy=copy)


def refuse_non_finite(
    X: Any, names: Sequence[str] | None = None, missing: str | None = None
) -> None:
    """Raise where a feature is NaN or infinite; with `missing` only where it is infinite."""
    feature = first_non_finite(X, missing)
    if feature is None:
        return
    column = feature.column if names is None else repr(names[feature.column])
    advice = what_to_do(feature.value, sparse.issparse(X))
    shown = "NaN" if np.isnan(feature.value) else feature.value
    raise InputError(
        f"X holds {shown} at row {feature.row}, column {column} (counted from 0); {advice}"
    )


def what_to_do(value: float, in_sparse: bool = False) -> str:
    """What to do with a feature that is NaN or infinite, for messages."""
    if np.isinf(value) or in_sparse:
        return "remove or impute missing and infinite values first"
    return (
        "remove or impute missing values first; where one means that a source did not return the "
        'item, train with missing="lowest" (--missing lowest)'
    )


def first_non_finite(X: Any, missing: str | None = None) -> NonFinite | None:
    """The first feature that is NaN or infinite, with `missing` only infinite; None without one."""
    if sparse.issparse(X):
        bad = np.flatnonzero(~np.isfinite(X.data))
        if not bad.size:
            return None
        entry = bad[0]
        row = np.searchsorted(X.indptr, entry, side="right") - 1
        return NonFinite(int(row), int(X.indices[entry]), X.data[entry])
    for start, batch in _batches(X):
        bad = np.isinf(batch) if missing else ~np.isfinite(batch)
        if bad.any():
            row, column = np.argwhere(bad)[0].tolist()
            return NonFinite(start + row, column, batch[row, column])
    return None


def columns_with_holes(X: Any) -> Array:
    """Which columns hold NaN, a mask."""
    mask = np.zeros(X.shape[1], dtype=bool)
    if not sparse.issparse(X):
        for _, batch in _batches(X):
            mask |= np.isnan(batch).any(axis=0)
    return mask


def _batches(X):
    """First row and rows of a dense matrix, some at a time."""
    step = max(1, _BATCH_VALUES // X.shape[1])
    for start in range(0, X.shape[0], step):
        yield start, X[start : start + step]


def first_rounded(values: Array) -> int | None:
    """Index (row by row) of a whole number that is not equal to its double; None if all are."""
    if values.dtype.kind not in "iufO" or (values.dtype.kind == "f" and values.dtype.itemsize <= 8):
        return None
    try:
        size = np.abs(values.astype(np.float64)).ravel()
    except OverflowError:
        raise InputError("X holds a whole number beyond double precision") from None
    large = np.flatnonzero((size >= EXACT) & np.isfinite(size))  # every smaller one is exact
    for index, value in zip(large.tolist(), values.ravel()[large].tolist(), strict=True):
        if int(value) != int(float(value)):
            return index
    return None


# --- products -----------------------------------------------------------------------------------


class ListRows(NamedTuple):
    """Rows of the lists: list position p has the row ``X[rows[p]]``."""

    X: Any
    rows: Array


def scores(X: Any, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
    """Write ``X[rows[p]] . w`` into ``out[p]`` for ``start <= p < stop``."""
    if isinstance(X, PiecewiseColumns):
        X.scores(rows, w, start, stop, out)
    elif sparse.issparse(X):
        _csr_scores(X.data, X.indices, X.indptr, rows, w, start, stop, out)
    elif is_row_major(X):
        _row_scores(read_only(X), rows, w, start, stop, out)
    else:
        _column_scores(read_only(X.T), rows, w, start, stop, out)


def add_weighted_rows(X: Any, rows: Array, coef: Array, edges: Array, out: Array) -> None:
    """Add ``sum_p coef[p] X[rows[p]]`` over ``edges[c] <= p < edges[c + 1]`` to ``out[c]``."""
    # of booleans the indices are found five times faster
    active = edges[0] + np.flatnonzero(coef[edges[0] : edges[-1]] != 0.0)
    bounds = np.searchsorted(active, edges)
    if isinstance(X, PiecewiseColumns):
        X.add_weighted_rows(rows, coef, active, bounds, out)
    elif sparse.issparse(X):
        _csr_add(X.data, X.indices, X.indptr, rows, coef, active, bounds, out)
    elif is_row_major(X):
        _row_add(read_only(X), rows, coef, active, bounds, out)
    else:
        _column_add(read_only(X.T), rows, coef, active, bounds, out)


def combined_rows(X: Any, rows: Array, coef: Array) -> Array:
    """``coef @ X[rows]`` in float64, for several rows of coefficients."""
    if not isinstance(X, PiecewiseColumns):
        return np.asarray(coef @ X[rows], dtype=np.float64)
    out = np.zeros((coef.shape[0], X.shape[1]))
    for part, own in enumerate(coef):
        add_weighted_rows(X, rows, own, np.array([0, rows.size]), out[part : part + 1])
    return out


def as_dense(X: Any) -> Array:
    """Some rows of any storage as an array; itself where it is one."""
    if sparse.issparse(X) or isinstance(X, PiecewiseColumns):
        return np.asarray(X.toarray())
    return np.asarray(X)


def stacked(parts: Sequence[Any]) -> Any:
    """The rows of several matrices of one storage, of pieces with the same knots."""
    if isinstance(parts[0], PiecewiseColumns):
        X = np.concatenate([part.X for part in parts])
        return PiecewiseColumns(X, parts[0].knots, np.concatenate([part.cells for part in parts]))
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts)
    return np.concatenate(parts)


def less_first_rows(X: Any, rows: Array, indptr: Array, columns: Array) -> ListRows:
    """The lists less each user's first row, a copy in float64; of sparse X in some columns only.

    These `columns` are True where every row stores an entry.
    """
    if sparse.issparse(X):
        copied = X[rows].astype(np.float64, copy=False)
        _csr_differences(copied.data, copied.indices, copied.indptr, indptr, columns)
    else:
        copied = np.empty((rows.size, X.shape[1]))
        _row_differences(read_only(X), rows, indptr, copied)
    return ListRows(copied, np.arange(rows.size))


def reported_scores(X: Any, w: Array, rows: Array | None = None, n_threads: int = 1) -> Array:
    """``X[rows] @ w`` in float64, of all rows by default: the scores that leave the package.

    Every score is ``((x_1 w_1 + x_2 w_2) + x_3 w_3) + ..``, each product and each sum rounded, in
    the order of the columns. So rows with the same values have the same score to the last bit,
    wherever they stand and however they are stored: BLAS promises nothing of the kind, and what
    ties would depend on it. Zeros that a CSR matrix does not store change no sum. Solvers use
    `scores`, which may add up in another order.
    """
    rows = np.arange(X.shape[0]) if rows is None else rows
    w = read_only(w)
    out = np.empty(rows.size)
    n_columns = X.X.shape[1] if isinstance(X, PiecewiseColumns) else X.shape[1]
    size = max(1, _BLOCK_VALUES // n_columns)
    starts = range(0, rows.size, size)

    def fill(start: int) -> None:
        block = rows[start : start + size]
        part = out[start : start + size]
        if isinstance(X, PiecewiseColumns):
            X.reported_scores(block, w, part)
        elif sparse.issparse(X):
            _csr_in_order(X.data, X.indices, X.indptr, block, w, part)
        elif X.flags.c_contiguous:
            _rows_in_order(read_only(X), block, w, part)
        elif X.flags.f_contiguous:
            _columns_in_order(read_only(X.T), block, w, part)
        else:  # a slice with gaps: kernels would be compiled for it anew
            copied = np.ascontiguousarray(X[block])
            _rows_in_order(read_only(copied), np.arange(block.size), w, part)

    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            fill(start)
    else:
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(fill, starts))
    return out


@kernel
def _rows_in_order(X, rows, w, out):
    in_fours = rows.size - rows.size % 4
    for p in range(0, in_fours, 4):  # four sums at a time: one alone waits for its own additions
        row_0 = X[rows[p]]
        row_1 = X[rows[p + 1]]
        row_2 = X[rows[p + 2]]
        row_3 = X[rows[p + 3]]
        total_0 = 0.0
        total_1 = 0.0
        total_2 = 0.0
        total_3 = 0.0
        for f in range(w.size):
            total_0 += np.float64(row_0[f]) * w[f]
            total_1 += np.float64(row_1[f]) * w[f]
            total_2 += np.float64(row_2[f]) * w[f]
            total_3 += np.float64(row_3[f]) * w[f]
        out[p] = total_0
        out[p + 1] = total_1
        out[p + 2] = total_2
        out[p + 3] = total_3
    for p in range(in_fours, rows.size):
        row = X[rows[p]]
        total = 0.0
        for f in range(w.size):
            total += np.float64(row[f]) * w[f]
        out[p] = total


@kernel
def _columns_in_order(columns, rows, w, out):
    out[:] = 0.0
    for f in range(w.size):
        column = columns[f]
        for p in range(rows.size):
            out[p] += np.float64(column[rows[p]]) * w[f]


@kernel
def _csr_in_order(data, indices, indptr, rows, w, out):
    for p in range(rows.size):
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += np.float64(data[e]) * w[indices[e]]
        out[p] = total


@kernel
def difference(value, origin):
    """In float64, and rounded by itself: the sums' freedom to reorder must not undo it."""
    return np.float64(value) - np.float64(origin)


@kernel(fastmath=REORDERED_SUMS)
def _row_scores(X, rows, w, start, stop, out):
    for p in range(start, stop):
        row = X[rows[p]]
        total = 0.0
        for f in range(w.size):
            total += row[f] * w[f]
        out[p] = total


@kernel(fastmath=REORDERED_SUMS)
def _row_add(X, rows, coef, active, bounds, out):
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            row = X[rows[p]]
            coef_p = coef[p]
            for f in range(total.size):
                total[f] += coef_p * row[f]


@kernel(fastmath=REORDERED_SUMS)
def _column_scores(columns, rows, w, start, stop, out):
    out[start:stop] = 0.0
    for f in range(w.size):
        column = columns[f]
        for p in range(start, stop):
            out[p] += w[f] * column[rows[p]]


@kernel(fastmath=REORDERED_SUMS)
def _column_add(columns, rows, coef, active, bounds, out):
    for part in range(bounds.size - 1):
        for f in range(columns.shape[0]):
            column = columns[f]
            total = 0.0
            for p in active[bounds[part] : bounds[part + 1]]:
                total += coef[p] * column[rows[p]]
            out[part, f] += total


@kernel(fastmath=REORDERED_SUMS)
def _csr_scores(data, indices, indptr, rows, w, start, stop, out):
    for p in range(start, stop):
        total = 0.0
        for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
            total += data[e] * w[indices[e]]
        out[p] = total


@kernel(fastmath=REORDERED_SUMS)
def _csr_add(data, indices, indptr, rows, coef, active, bounds, out):
    for part in range(bounds.size - 1):
        total = out[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            coef_p = coef[p]
            for e in range(indptr[rows[p]], indptr[rows[p] + 1]):
                total[indices[e]] += coef_p * data[e]


@kernel
def _row_differences(X, rows, bounds, out):
    for u in range(bounds.size - 1):
        if bounds[u] == bounds[u + 1]:
            continue
        first = X[rows[bounds[u]]]
        for p in range(bounds[u], bounds[u + 1]):
            row = X[rows[p]]
            for f in range(out.shape[1]):
                out[p, f] = difference(row[f], first[f])


@kernel
def _csr_differences(data, indices, indptr, bounds, columns):
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


# --- sizes, and what rounding can do --------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """How large the values of each column are, and how far apart within a user.

    `within` is the largest distance to the user's first row (`largest` for columns that are not
    shifted); `shifted` are the columns from which that row may be subtracted: for sparse X those
    that are stored in every row. A row's score adds up at most `row_terms` values, and an entry of
    a sum of rows at most `column_terms` besides those of the rows.
    """

    largest: Array
    within: Array
    shifted: Array
    row_terms: int
    column_terms: int = 0

    @cached_property
    def has_offsets(self) -> bool:
        """Whether subtracting the user's first row pays."""
        # a constant column moves no row past another, but its offset rounds the scores: it is
        # compared with the column that spreads the most
        within = np.where(self.within > 0.0, self.within, self.within.max())
        return bool((self.shifted & (self.largest > _OFFSET * within)).any())


def spread_of(X: Any, rows: Array, indptr: Array) -> Spread:
    """The `Spread` of the lists ``rows[indptr[u]:indptr[u + 1]]`` of X, in one pass."""
    if isinstance(X, PiecewiseColumns):
        return _spread_of_pieces(X, rows, indptr)
    n_features = X.shape[1]
    largest = np.zeros(n_features)
    if not sparse.issparse(X):
        within = np.zeros(n_features)
        _row_extremes(read_only(X), rows, indptr, largest, within)
        return Spread(
            largest=largest,
            within=within,
            shifted=np.ones(n_features, dtype=bool),
            row_terms=n_features,
        )
    counts = np.zeros(n_features, dtype=np.int64)
    row_terms = _csr_largest(X.data, X.indices, X.indptr, rows, largest, counts)
    shifted = counts == rows.size  # stored in every row
    within = np.where(shifted, 0.0, largest)
    if shifted.any():
        _csr_within(X.data, X.indices, X.indptr, rows, indptr, shifted, within)
    return Spread(largest=largest, within=within, shifted=shifted, row_terms=int(row_terms))


def _spread_of_pieces(matrix: PiecewiseColumns, rows: Array, indptr: Array) -> Spread:
    """Straight parts are measured from the first knot, pieces lie between 0 and 1."""
    knots = matrix.knots
    lowest = np.full(knots.n_columns, np.inf)
    highest = np.full(knots.n_columns, -np.inf)
    _row_range(read_only(matrix.X), rows, lowest, highest)
    straight = np.zeros(knots.n_columns)
    if rows.size:
        straight = np.maximum(np.abs(lowest - knots.first), np.abs(highest - knots.first))
    largest = np.concatenate([straight, np.ones(knots.widths.size)])
    return Spread(
        largest=largest,
        within=largest,
        shifted=np.zeros(knots.n_weights, dtype=bool),
        row_terms=knots.n_weights,
        column_terms=int(2 * knots.n_pieces.max() + 2),  # sums over the cells
    )


def rounding_bound(spread: Spread, shifted: bool, l1_bound: float, chain: int) -> Rounding:
    """The `Rounding` of a risk, whose rows may be less their user's first one (`shifted`).

    A user's absolute subgradients add up to `l1_bound` at most, in the mean over the users; at
    most `chain` rows are added up one after the other in a slope.
    """
    largest_entry = spread.within if shifted else spread.largest
    sizes = l1_bound * largest_entry  # of all terms together, in absolute value
    return Rounding(
        scores=error_of_sum(spread.row_terms, sizes),
        slopes=error_of_sum(chain + spread.column_terms, sizes),
    )


def refuse_unresolved(X: Any, rows: Array, spread: Spread, names: Sequence[str] | None) -> None:
    """Refuse a column whose values within a user differ by rounding of their storage only."""
    if not spread.shifted.any():
        return
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


def column_text(X: Any, rows: Array, f: int, spread: Spread, names: Sequence[str] | None) -> str:
    """A column with its mean and spread, for messages."""
    spreads_over = spread.within[f]
    which = ""
    if isinstance(X, PiecewiseColumns):
        f, which = X.column_of(f)
        X = X.X
    values = X[:, [f]].toarray()[:, 0] if sparse.issparse(X) else X[:, f]
    mean = values[rows].mean(dtype=np.float64)
    name = f"column {f} of X (counted from 0)" if names is None else f"column {names[f]!r}"
    return f"{name}{which} has mean {mean:.6g}, and spreads over {spreads_over:.3g} within a user"


@kernel
def _row_range(X, rows, lowest, highest):
    for i in rows:
        row = X[i]
        for f in range(lowest.size):
            lowest[f] = min(lowest[f], np.float64(row[f]))
            highest[f] = max(highest[f], np.float64(row[f]))


@kernel
def _row_extremes(X, rows, indptr, largest, within):
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


def effective_number(weight: Array) -> float:
    """``(sum v)^2 / sum v^2``: how many equal weights have a mean as certain as these weights'."""
    share = weight / weight.max()  # squares of weights could be too large or too small for a float
    return float(share.sum() ** 2 / np.square(share).sum())
