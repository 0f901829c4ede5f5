"""Text files as they are opened, and where a row stands, for messages."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError


def open_bytes(path: Path) -> BinaryIO:
    """A text file open for reading; a name ending in ``.gz`` is decompressed."""
    if path.suffix == ".gz":
        return cast("BinaryIO", gzip.open(path, "rb"))
    return open(path, "rb")


def open_text(path: Path, newline: str | None = None) -> Any:
    """`open_bytes`, as UTF-8 text without a byte order mark."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline=newline)


def without_gz(path: Path) -> Path:
    """The name without a ``.gz`` at its end."""
    if path.suffix == ".gz":
        return path.with_suffix("")
    return path


@contextmanager
def errors_name(source: object) -> Iterator[None]:
    """Put the file in front of what is said of its rows."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def place_of(path: PathLike, row: int) -> str:
    """Where a row of data stands."""
    return f"{path}, row {row} of the data (counted from 0)"
