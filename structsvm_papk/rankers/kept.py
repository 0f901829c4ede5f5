"""Fits on folds that a search keeps in a folder, for the next one."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.files.tensors import TensorFile, package_version

_FILE = TensorFile("fits", version=1)


class KeptFits:
    """Solutions of fits by the digest of all that determines them.

    A search takes those that a fresh one would compute, whatever else was changed; a file that is
    damaged counts as none. Several searches may use one folder at once.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._lock = threading.Lock()
        try:
            checkpoint.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write {checkpoint.folder}: {error.strerror}") from None
        check_writable(self._path("any"))

    def key(self, *parts: Any) -> str:
        """The digest of texts, numbers and arrays, and of the version of this package."""
        return fingerprint_of(package_version(), *parts)[:32]

    def read(self, key: str, shape: tuple[int, int]) -> tuple[Array, Array] | None:
        """Solutions of that shape and their seconds, or None."""
        if not self._path(key).exists():
            return None
        try:
            _, arrays = _FILE.read(self._path(key))
        except InputError:
            return None
        w, seconds = (arrays.get(name, np.empty(0)) for name in ("w", "seconds"))
        fit = (w.shape, seconds.shape) == (shape, shape[:1]) and np.isfinite(w).all()
        return (w, seconds) if fit else None

    def write(self, key: str, w: Array, seconds: Array) -> None:
        """Keep solutions; a disk that is full costs them, and not the search."""
        with self._lock:
            try:
                write_atomically(self._path(key), _FILE.encoded({}, {"w": w, "seconds": seconds}))
            except InputError as error:
                self.checkpoint.warn(f"No checkpoint: {error}. The run goes on.")

    def _path(self, key: str) -> Path:
        return self.checkpoint.folder / f"{key}.fits"
