"""What a matrix of features may hold: real and finite numbers, dense or CSR.

float32 and float64 stay. Refused with row and column: NaN and infinite values, dates and durations,
text, and whole numbers that double precision rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time, timedelta
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import Columns
from structsvm_papk.data.columns.csr import CSRColumns
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.validation import EXACT, as_array, as_numbers, is_number
from structsvm_papk.data.validation import missing as missing_values
from structsvm_papk.errors import InputError, check_choice

ROUNDED = (
    "such whole numbers lose digits in double precision; give them as float64 if that is meant, "
    "or subtract an offset"
)
YOUR_TABLE = '(see the page "Your table")'
SEPARATE = "separate"
LOWEST = "lowest"
MISSING = (SEPARATE, LOWEST)
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)
_COMPLEX = (complex, np.complexfloating)
_NESTED = (list, tuple, set, dict, np.ndarray)
IN_DAYS = (
    "dates and durations are numbers only in a unit: give days, for example, "
    f"(today - date).dt.days {YOUR_TABLE}"
)
ONE_VALUE = "a value must be one number or text: give a column for each part of it"
_MISREAD: dict[Any, str] = {
    str: 'text is no number: make numbers of the column, pd.to_numeric(column, errors="coerce"), '
    "or text of all of it, column.astype(str), whichever it was in training; columns of an array "
    f"that are text are named in categorical_features {YOUR_TABLE}",
    _TIMES: IN_DAYS,
    bytes: 'bytes are no text: give column.str.decode("utf-8")',
    _COMPLEX: "Complex data not supported: X must hold real numbers",  # as scikit-learn says
    _NESTED: ONE_VALUE,
    object: "it is neither a number nor text: give numbers (for dates, days since a fixed date) "
    f"or text, column.astype(str), which has a weight for each value {YOUR_TABLE}",
}
_BATCH_VALUES = 1 << 22  # values of X that are looked at before the next ones


def columns_of(X: Any) -> Columns:
    """The storage of a matrix that `check_matrix` or `finite_matrix` has returned."""
    return CSRColumns(X) if sparse.issparse(X) else DenseColumns(X)


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
    if X.dtype not in (np.float64, np.float32):
        try:
            X = X.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"X must be numeric: {error}") from None
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rows, features), got shape {X.shape}")
    if 0 in X.shape:
        raise InputError(f"X is empty: shape {X.shape}")
    return finite_matrix(X, names, missing)


def as_frame(X: Any) -> Any:
    """X, of an Arrow table or a Polars frame a pandas frame of the same columns.

    Raises
    ------
    InputError
        A series, a lazy frame, or columns of which some have names of text and others have not, or
        names of several parts.
    """
    if hasattr(X, "collect_schema") and not hasattr(X, "to_numpy"):
        raise InputError("X is a lazy frame: give X.collect()")
    if hasattr(X, "__dask_graph__") and hasattr(X, "columns"):
        raise InputError("X is a frame of Dask, which only fit takes: give X.compute()")
    X = _as_pandas(X)
    if not hasattr(X, "iloc"):
        return X
    if X.ndim != 2:
        raise InputError("X is one column of a data frame: give a frame, such as X.to_frame()")
    if not X.shape[1]:
        raise InputError("X has no columns")
    if not X.columns.is_unique:
        name = X.columns[X.columns.duplicated()][0]
        raise InputError(
            f"X has several columns called {name!r}: give each a name of its own, or keep the "
            "first, X.loc[:, ~X.columns.duplicated()]"
        )
    kinds = {isinstance(name, str) for name in X.columns}
    if len(kinds) == 2:
        raise InputError(
            "some columns of X have names of text and others have not: make all of them text, "
            "X.columns = X.columns.astype(str)"
        )
    if X.columns.nlevels > 1:
        raise InputError(
            f"columns of X have names of several parts, as {X.columns[0]!r}: make text of them, "
            'X.columns = ["_".join(map(str, name)) for name in X.columns]'
        )
    if kinds == {False}:
        X = _with_names(X)
    return _with_dense_gaps(X)


def _with_names(X: Any) -> Any:
    """A frame with the numbers of its columns as text, so that another order of them is noticed.

    Where they only count the columns, these have no names.
    """
    numbers = list(X.columns)
    counted = list(range(len(numbers)))
    if numbers == counted:
        return X
    if set(numbers) == set(counted):
        raise InputError(
            f"columns of X are numbered, and not in order ({numbers[0]!r} is the first): give "
            "X.sort_index(axis=1), or names of text, X.columns.astype(str)"
        )
    X = X.copy(deep=False)
    X.columns = X.columns.map(str)
    return X


def _as_pandas(X: Any) -> Any:
    if hasattr(X, "column_names") and hasattr(X, "to_pandas"):  # Arrow
        return X.to_pandas()
    if hasattr(X, "columns") and hasattr(X, "to_numpy") and not hasattr(X, "iloc"):  # Polars
        import pandas as pd

        return pd.DataFrame({str(name): _of_polars(X[name]) for name in X.columns})
    return X


def _of_polars(column: Any) -> Any:
    """The values of a Polars series, None where one is missing."""
    values = column.to_numpy()
    if values.dtype.kind == "O" or values.ndim > 1 or column.null_count():
        objects = np.empty(len(column), dtype=object)
        objects[:] = column.to_list()
        return objects
    return values


def _with_dense_gaps(frame: Any) -> Any:
    """A frame whose sparse columns are dense, unless all are sparse and leave out zeros."""
    is_sparse = [hasattr(dtype, "fill_value") for dtype in frame.dtypes]
    left_out = [getattr(dtype, "fill_value", None) for dtype in frame.dtypes]
    if not any(is_sparse) or all(value == 0 for value in left_out):
        return frame
    return frame.astype(
        {
            name: dtype.subtype
            for name, dtype, of_sparse in zip(frame.columns, frame.dtypes, is_sparse, strict=True)
            if of_sparse
        }
    )


def readable(X: Any) -> Any:
    """X where its conversion to floats changes no value, with NaN for None and pandas' NA.

    Refused are times and text, and whole numbers that double precision rounds: conversion would
    take them without a word. Frames are looked at column by column, as their own conversion to an
    array may be such a one.
    """
    if sparse.issparse(X):
        if X.dtype.kind in "iuc":
            entries = X.tocoo()
            _refuse_misread(entries.data, lambda e: (entries.row[e], entries.col[e]))
        return X
    X = as_frame(X)
    if hasattr(X, "iloc"):
        columns = [X.iloc[:, c] for c in range(X.shape[1])]  # several may have one name
        for name, column in zip(X.columns, columns, strict=True):
            _refuse_misread(_exact(column), lambda row, name=name: (row, repr(name)))
        if all(map(is_plain_number, columns)) or not X.isna().any(axis=None):
            return X
        floats = {c: _as_floats(as_array(column, "X")) for c, column in enumerate(columns)}
        frame = type(X)(floats, index=X.index)
        frame.columns = X.columns
        return frame
    # lists as objects: of mixed types numpy would make text, or floats that are rounded
    values = np.array(X, dtype=object) if isinstance(X, list | tuple) else as_array(X, "X")
    if values.ndim == 2:
        # of a dict scikit-learn says it
        _refuse_misread(values, lambda index: divmod(index, values.shape[1]), left=(dict,))
    if values.dtype.kind == "O" and missing_values(values).any():
        return _as_floats(values)
    return X


def is_plain_number(column: Any) -> bool:
    """Whether a series has one of numpy's types of numbers, in which NaN is the only hole."""
    return isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"


def _exact(column):
    """Values of a column of a frame; whole numbers beside missing ones as objects, not floats."""
    if column.dtype.kind in "iu" and not is_plain_number(column):
        return column.to_numpy(dtype=object)
    return as_array(column, "X")


def _as_floats(values):
    return as_numbers(values, "X").astype(np.float64, copy=False)


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


def _refuse_misread(values, place, left=()):
    """Refuse what is no number, or is rounded; types that are `left` are refused later.

    `place` gives row and column of an index into all values, row by row.
    """
    if values.dtype.kind in "bf" and values.dtype.itemsize <= 8:
        return
    there = values
    types: set[Any] = {values.dtype.type}
    if values.dtype.kind == "O":
        there = np.where(missing_values(values), 0.0, values)  # which stays an array of objects
        types = set(map(type, there.flat))
    misread = tuple(kind for kind in types if _is_misread(kind) and not issubclass(kind, left))
    index: int | None = None
    if misread:
        index = next((i for i, value in enumerate(there.flat) if isinstance(value, misread)), None)
    elif all(map(is_number, types)):
        index = first_rounded(there)
    if index is None:
        return
    value = there.flat[index]
    reason = ROUNDED
    if misread:
        reason = next(why for kinds, why in _MISREAD.items() if isinstance(value, kinds))
    row, column = place(index)
    raise InputError(
        f"X holds {_shown(value)} at row {row}, column {column} (counted from 0): {reason}"
    )


def _is_misread(kind: type) -> bool:
    return not is_number(kind) or issubclass(kind, _COMPLEX)


def _shown(value: Any) -> str:
    """A value for messages: what is neither number, text nor time by its type."""
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, _NESTED):
        return f"a {type(value).__name__}"
    if isinstance(value, np.timedelta64):
        value = value.astype("timedelta64[s]").item()  # as "3 days, 0:00:00"
    if is_number(type(value)) or isinstance(value, (bytes, *_TIMES)):
        return str(value)
    return f"a value of type {type(value).__name__}"


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
    X: Any,
    names: Sequence[str] | None = None,
    missing: str | None = None,
    *,
    in_parts: bool = False,
    first: int = 0,
) -> None:
    """Raise where a feature is NaN or infinite; with `missing` only where it is infinite.

    With `in_parts` X is a part of lists that are not in memory. Rows are counted from `first` on.
    """
    feature = first_non_finite(X, missing)
    if feature is None:
        return
    column = feature.column if names is None else repr(names[feature.column])
    advice = what_to_do(feature.value, sparse.issparse(X), in_parts)
    shown = "NaN" if np.isnan(feature.value) else feature.value
    raise InputError(
        f"X holds {shown} at row {first + feature.row}, column {column} (counted from 0); {advice}"
    )


def what_to_do(value: float, in_sparse: bool = False, in_parts: bool = False) -> str:
    """What to do with a feature that is NaN or infinite, for messages."""
    if in_sparse:
        return "remove or impute missing and infinite values first"
    if in_parts and np.isnan(value):
        return "missing values need the lists in memory: give a sample of the users, or fill them"
    if np.isinf(value):
        return (
            "replace it, by NaN where the value is not known; most often it comes from a division "
            f"by zero {YOUR_TABLE}"
        )
    return (
        'remove or impute missing values first, or train with missing="separate" '
        f"{YOUR_TABLE}; where one means that a source did not return the item, with "
        'missing="lowest"'
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
