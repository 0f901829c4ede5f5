"""Files that a run writes: checked before the work starts, replaced in one step when it ends."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from structsvm_papk.errors import InputError


def check_writable(path):
    """Raise `InputError` unless a file could be written at `path` now; nothing is left behind."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"cannot write {path}: it is a directory")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {path}: it is not a regular file")
    if path.exists() and not os.access(path, os.W_OK):
        raise InputError(f"cannot write {path}: permission denied")
    try:
        handle, name = _temporary_beside(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    os.close(handle)
    os.unlink(name)


def write_atomically(path, content):
    """Write bytes so that `path` holds the old or the new content, never a part of it.

    The bytes go to a temporary file in the same directory, are flushed to the disk, and take the
    name `path` by a rename. A symbolic link keeps pointing where it points.

    Raises
    ------
    InputError
        The file cannot be written; what was there before is untouched.
    """
    path = Path(path)
    try:
        handle, name = _temporary_beside(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode_for(path))
        os.replace(name, path.resolve())
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name)
    _sync_directory(path.resolve().parent)


def remove_leftovers(folder):
    """Remove the temporary files that killed processes left in a folder of one run."""
    for path in Path(folder).glob(".*.tmp"):
        with suppress(OSError):
            path.unlink()


def _temporary_beside(path):
    target = Path(path).resolve()
    return tempfile.mkstemp(prefix=f".{target.name[:40]}.", suffix=".tmp", dir=target.parent)


def _mode_for(path):
    if path.exists():
        return path.stat().st_mode & 0o777
    umask = os.umask(0)
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
