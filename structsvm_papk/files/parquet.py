"""Columns of Parquet, read without Arrow's threads, which can abort a process as it ends."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import validation
from structsvm_papk.data.columns.checks import IN_DAYS, ROUNDED, first_rounded, what_to_do
from structsvm_papk.data.roles import Kind
from structsvm_papk.errors import InputError
from structsvm_papk.files.lines import place_of
from structsvm_papk.files.text import WITHOUT_IT, each_column, how_to_leave_out, texts_of


@contextmanager
def opened(path: PathLike, buffer_bytes: int = 0) -> Iterator[Any]:
    """An open ``pyarrow.parquet.ParquetFile``; `buffer_bytes` are read at a time, 0: all of a
    chunk.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(
            f"reading Parquet ({path}) needs pyarrow: pip install pyarrow (the extra 'frames')"
        ) from None
    try:
        try:
            file = parquet.ParquetFile(os.fspath(path), buffer_size=buffer_bytes, pre_buffer=False)
        except OSError as error:
            # Arrow's own text is longer
            reason = os.strerror(error.errno) if error.errno else error
            raise InputError(f"cannot read {path}: {reason}") from None
        with file:
            _check_counts(path, file.metadata)
            yield file
    except (ArrowException, UnicodeDecodeError) as error:  # text is decoded as it is taken out
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def _check_counts(path: PathLike, metadata: Any) -> None:
    """Refuse a file whose footer contradicts itself: later reads go by its numbers of rows."""
    counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        raise InputError(
            f"{path} is not a readable Parquet file: its footer states {metadata.num_rows} rows, "
            f"and {', '.join(map(str, counts[:5]))} in its row groups"
        )


def index_columns(path: PathLike, schema: Any) -> list[str]:
    """The columns that a frame of pandas had as its index."""
    try:
        index = (schema.pandas_metadata or {}).get("index_columns", ())
        return [name for name in index if isinstance(name, str)]
    except (ValueError, TypeError, AttributeError, RecursionError):  # no JSON, or no object
        raise InputError(
            f"{path} is not a readable Parquet file: what pandas has noted in it is damaged"
        ) from None


def text_columns(schema: Any) -> set[str]:
    """The columns of text, and those of categories."""
    texts = ("string", "large_string", "string_view", "dictionary")
    return {field.name for field in schema if str(field.type).startswith(texts)}


def read_columns(
    path: Path,
    kinds: Mapping[str, Kind],
    features: Collection[str] = (),
) -> dict[str, Array]:
    """Some columns of a whole file, see `values_of`; features may be text."""
    with opened(path) as file:
        texts = text_columns(file.schema_arrow).intersection(features)
        kinds = {**kinds, **dict.fromkeys(texts, Kind.TEXT_OR_HOLE)}
        frame = file.read(list(kinds), use_threads=False)
        if frame.num_rows != file.metadata.num_rows:
            raise fewer_rows(path, frame.num_rows, file.metadata.num_rows)
        if frame.num_rows == 0:
            raise InputError(f"{path}: the file has no data rows")

        def values(name: str) -> Array:
            return values_of(path, frame, name, kinds[name], is_feature=name in features)

        return each_column(kinds, values, features)


def fewer_rows(path: PathLike, n_there: int, n_stated: int) -> InputError:
    """The error of a file that holds other rows than it states."""
    return InputError(f"{path} is damaged or has changed: {n_there} rows of {n_stated} are there")


def values_of(
    path: PathLike,
    frame: Any,
    name: str,
    kind: Kind,
    *,
    first: int = 0,
    is_feature: bool = False,
    in_parts: bool = False,
) -> Array:
    """A column of an Arrow table: numbers of its own type or float64, or ids.

    Ids are of the type of the file, as text where numpy has no such type. Nested values are
    refused, and missing ones but holes. Rows are counted from `first` on, for messages;
    of text in a feature the message says how to leave the column out. With `in_parts` the lists
    are not in memory.
    """
    column = frame.column(name)
    if column.type.num_fields and not str(column.type).startswith("dictionary"):
        raise InputError(
            f"{path}: column {name!r} has type {column.type}: nested values are neither features "
            "nor users"
        )
    is_number = kind in (Kind.NUMBER, Kind.NUMBER_OR_HOLE)
    if kind is Kind.TEXT_OR_HOLE:
        return np.array(column.to_pylist(), dtype=object)
    if column.null_count and kind is not Kind.NUMBER_OR_HOLE:
        row = first + np.flatnonzero(column.is_null().to_numpy())[0]
        advice = f"; {WITHOUT_IT}" if is_number else ""
        if is_feature:
            advice = f"; {what_to_do(np.nan, in_parts=in_parts)}"
        raise InputError(f"{place_of(path, row)}: column {name!r} is missing{advice}")
    if is_number:
        return _numbers(path, column, name, is_feature)
    values = column.to_numpy()
    if values.dtype.kind == "O":
        return _texts(path, column, name)
    return values


def _numbers(path: PathLike, column: Any, name: str, is_feature: bool) -> Array:
    if column.null_count and str(column.type).startswith(("int", "uint")):
        there = column.drop_null().to_numpy()
        index = first_rounded(there)
        if index is not None:
            row = np.flatnonzero(column.is_valid().to_numpy())[index]
            raise InputError(
                f"{place_of(path, row)}: column {name!r} holds {there[index]}: {ROUNDED}"
            )
    values = column.to_numpy()
    try:
        return validation.as_numbers(values, f"{path}: column {name!r}")
    except InputError as error:
        if not is_feature:
            raise
        in_days = f": {IN_DAYS}" if values.dtype.kind in "mM" else ""
        raise InputError(f"{error}{in_days}; {how_to_leave_out(name)}") from None


def _texts(path: PathLike, column: Any, name: str) -> Array:
    import pandas as pd

    values = column.to_pandas()
    if isinstance(values.iloc[0], bytes):  # text of older writers
        try:
            values = values.map(bytes.decode)
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: column {name!r} has type {column.type} and is no UTF-8 text; write it as "
                "text or whole numbers"
            ) from None
    return texts_of(path, pd.Series(values, dtype=object).map(str), name)
