"""Lines of text files: the first that is wrong, and the line of a row, for messages.

Each format has its own way to split a file into numbered lines with their fields.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from structsvm_papk.errors import InputError

_HOLE = bytes(4096)
_BUFFER_BYTES = 1 << 16
Lines: TypeAlias = Iterable[tuple[int, list[Any]]]  # number, from 1, and fields


class _WithoutHole(io.RawIOBase):
    """The bytes of a file; a block of null characters is refused before it is made a line.

    Files that a download or a crash has left with a hole can be far longer than the memory.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path = path
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def readinto(self, buffer: Any) -> int:
        content = self._file.read(len(buffer))
        if _HOLE in content:
            raise InputError(
                f"{self._path} holds {len(_HOLE)} null characters in a row: it is not a text file, "
                "or a part of it is lost"
            )
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path) -> io.BufferedReader:
    """A text file open for reading; a name ending in ``.gz`` is decompressed."""
    file: Any = gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")  # noqa: SIM115
    return io.BufferedReader(_WithoutHole(path, file), _BUFFER_BYTES)


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
