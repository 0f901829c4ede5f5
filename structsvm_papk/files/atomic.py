"""Files that a run writes: checked before the work starts, replaced in one step when it ends."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError, as_path

try:
    import fcntl
except ImportError:  # Windows: what a kill leaves behind stays there
    fcntl = None  # type: ignore[assignment]

_DATA_SUFFIXES = (".npy", ".parquet")  # what is read of a folder
_TEMPORARY = ".structsvm-papk.tmp"  # the end of names of temporary files


def check_writable(path: PathLike) -> None:
    """Raise `InputError` unless a file could be written at `path` now; nothing is left behind."""
    path = as_path(path)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")
    try:
        with _temporary_beside(path):
            pass
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def check_apart(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Raise `InputError` where a file that is to be written is read too, or is written twice.

    Files are the same where they are one file to the system, whatever their names. Of a folder
    that is read, the `.npy` and `.parquet` files are.
    """
    for i, output in enumerate(outputs):
        for path in inputs:
            is_inside = path.is_dir() and resolved(output).parent == resolved(path)
            is_data = is_inside and resolved(output).suffix in _DATA_SUFFIXES
            if is_data or _is_same(output, path):
                raise InputError(
                    f"{output} is an input of this command ({path}): writing it would destroy "
                    "the input; choose another name"
                )
        for other in outputs[:i]:
            if _is_same(output, other) or resolved(other) == resolved(output):
                raise InputError(f"{output} would be written twice; choose different names")


def resolved(path: Path) -> Path:
    """The path that links lead to."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):  # before Python 3.13 the former
        raise InputError(f"cannot follow {path}: its links lead in a loop") from None


def _is_same(path, other):
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return False


def write_atomically(path: PathLike, content: bytes) -> None:
    """Write bytes so that `path` holds the old or the new content, never a part of it.

    The bytes go to a temporary file in the same directory, are flushed to the disk, and take the
    name `path` by a rename. A symbolic link keeps pointing where it points.
    """
    path = as_path(path)
    try:
        with _temporary_beside(path) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.chmod(file.name, _mode_for(path))
            os.replace(file.name, resolved(path))
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    _sync_directory(resolved(path).parent)


@contextmanager
def _temporary_beside(path: Path) -> Iterator[Any]:
    """A new file, open, in the directory of what `path` leads to: only there can it be renamed.

    It is locked while it is in use: by that those are known which a kill has left behind, and they
    are removed here.
    """
    target = resolved(path)
    _remove_left_over(target.parent)
    file = _locked_file(target)
    try:
        yield file
    finally:
        with suppress(OSError):  # of a full disk, a second time
            file.close()
        with suppress(FileNotFoundError):
            os.unlink(file.name)


def _locked_file(target):
    while True:
        file = tempfile.NamedTemporaryFile(  # noqa: SIM115
            prefix=f".{target.name[:40]}.", suffix=_TEMPORARY, dir=target.parent, delete=False
        )
        if fcntl is None:
            return file
        with suppress(OSError):  # a file system without locks, where nothing is removed either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.path.exists(file.name):  # nobody took it for left over before it was locked
            return file
        file.close()


def _remove_left_over(directory):
    """Remove temporary files that no process has locked."""
    if fcntl is None:
        return
    for path in directory.glob(f".*{_TEMPORARY}"):
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()


def _mode_for(path):
    """Permissions of the file that is replaced, or those that a new one would have."""
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)  # the system tells it only as it is changed
    os.umask(umask)
    return 0o666 & ~umask


def _sync_directory(directory):
    """Make the rename itself durable, where the system can do that."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
