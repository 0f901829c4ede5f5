"""Parquet files, and their columns as arrays.

They are read without Arrow's threads, which can abort a process as it ends.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.validation import as_numbers
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


def index_columns(schema: Any) -> list[str]:
    """The columns that a frame of pandas had as its index."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in index if isinstance(name, str)]


def numbers(path: PathLike, frame: Any, name: str) -> Array:
    """A column of an Arrow table as numbers or truth values of its type, or float64."""
    return as_numbers(values_of(path, frame, name), f"{path}: column {name!r}")


def values_of(path: PathLike, frame: Any, name: str) -> Array:
    """A column of an Arrow table as an array; nested and missing values are refused."""
    column = frame.column(name)
    if column.type.num_fields and not str(column.type).startswith("dictionary"):
        raise InputError(
            f"{path}: column {name!r} has type {column.type}: nested values are neither features "
            "nor users"
        )
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(f"{path}: column {name!r} is missing at row {row} (counted from 0)")
    values = column.to_numpy()
    if values.dtype.kind == "O" and isinstance(values[0], bytes):  # text of older writers
        try:
            values = np.array([value.decode() for value in values], dtype=object)
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: column {name!r} has type {column.type} and is no UTF-8 text; write it as "
                "text or whole numbers"
            ) from None
    return values
