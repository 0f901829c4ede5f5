"""Text files as they are opened, and where a row stands, for messages."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, BinaryIO

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError

_HOLE = bytes(4096)
_BUFFER_BYTES = 1 << 16


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


def place_of(path: PathLike, row: int) -> str:
    """Where a row of data stands."""
    return f"{path}, row {row} of the data (counted from 0)"
