"""Lines of text files: the first that is wrong, and the line of a row, for messages.

Each format has its own way to split a file into numbered lines with their fields.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

Lines: TypeAlias = Iterable[tuple[int, list[Any]]]  # number, from 1, and fields


def open_bytes(path: Path) -> Any:
    """A file open for reading; a name ending in ``.gz`` is decompressed."""
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return open(path, "rb")


def open_text(path: Path, newline: str | None = None) -> Any:
    """`open_bytes`, as UTF-8 text without a byte order mark."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline=newline)


def without_gz(path: Path) -> Path:
    """The name without a ``.gz`` at its end."""
    if path.suffix == ".gz":
        return path.with_suffix("")
    return path


def first_wrong(path: Path, lines: Lines, fault: Callable[[list[Any]], str | None]) -> str | None:
    """Which line is the first with a fault, and what it is; None where all are right."""
    for number, fields in lines:
        reason = fault(fields)
        if reason is not None:
            return f"{path}, line {number}: {reason}"
    return None


def line_of(path: Path, lines: Lines, row: int) -> str:
    """The file and the line of a row, counted from 0."""
    for number, _ in islice(lines, row, row + 1):
        return f"{path}, line {number}"
    return f"{path}, line ?"
