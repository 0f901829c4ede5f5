"""Parquet files, and their columns as arrays.

They are read without Arrow's threads, which can abort a process as it ends.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError


@contextmanager
def open_parquet(path: PathLike, buffer_bytes: int = 0) -> Iterator[Any]:
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
        with _opened(path, parquet, buffer_bytes) as file:
            yield file
    except (ArrowException, UnicodeDecodeError) as error:  # text is decoded as it is taken out
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def _opened(path, parquet, buffer_bytes):
    try:
        return parquet.ParquetFile(os.fspath(path), buffer_size=buffer_bytes, pre_buffer=False)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error  # Arrow's own text is longer
        raise InputError(f"cannot read {path}: {why}") from None


def narrow_or_double(schema: Any, features: Sequence[int]) -> np.dtype:
    """float32 where all of these columns are, else float64."""
    narrow = all(str(schema.field(c).type) == "float" for c in features)
    return np.dtype(np.float32 if narrow else np.float64)


def feature_matrix(path: PathLike, frame: Any, features: Sequence[int]) -> Array:
    """Columns of an Arrow table as one matrix, see `narrow_or_double`."""
    X = np.empty((frame.num_rows, len(features)), narrow_or_double(frame.schema, features))
    for position, c in enumerate(features):
        X[:, position] = plain_numbers(path, frame, c)
    return X


def numbers(path: PathLike, frame: Any, c: int) -> Array:
    """One column of an Arrow table as float64, or float32 where it is."""
    values = plain_numbers(path, frame, c)
    return values if values.dtype == np.float32 else values.astype(np.float64)


def plain_numbers(path: PathLike, frame: Any, c: int) -> Array:
    """Numbers as the file has them; other types as float64 where they can be."""
    values = values_of(path, frame, c)
    if values.dtype.kind in "iufb":
        return values
    try:
        if values.dtype.kind in "mM":
            raise TypeError("a time is not a number: its unit would decide the value")
        return values.astype(np.float64)
    except (TypeError, ValueError):
        field = frame.schema.field(c)
        raise InputError(
            f"{path}: column {field.name!r} has type {field.type}, not numbers; drop or encode it "
            "first"
        ) from None


def values_of(path: PathLike, frame: Any, c: int) -> Array:
    """One column of an Arrow table as an array; nested and missing values are refused."""
    column, field = frame.column(c), frame.schema.field(c)
    if column.type.num_fields and not str(column.type).startswith("dictionary"):
        raise InputError(
            f"{path}: column {field.name!r} has type {column.type}: nested values "
            "are neither features nor users"
        )
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(f"{path}: column {field.name!r} is missing at row {row} (counted from 0)")
    return column.to_numpy()
