"""Data sets in three `.npy` files that are read in pieces.

A source, this one or `ParquetFiles`, knows the number of its rows and features without reading
them, and reads any range of rows. It never holds more than the range that was asked for.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structsvm_papk.errors import InputError

_SCAN_ROWS = 1 << 16


@dataclass(frozen=True)
class NpyFile:
    """A `.npy` file of one or two dimensions, stored by rows.

    Attributes
    ----------
    path : str
    dtype : dtype
    shape : tuple of int
    offset : int
        Where the values begin, in bytes.
    """

    path: str
    dtype: np.dtype
    shape: tuple
    offset: int

    @classmethod
    def open(cls, path):
        """Read the header, and check that the file is as long as it says.

        Raises
        ------
        InputError
            No file, not a `.npy` file, truncated, Python objects, stored by columns.
        """
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        except (ValueError, EOFError) as error:
            raise InputError(
                f"{path} is not a complete .npy file of numbers ({error}); it may be truncated"
            ) from None
        if not isinstance(array, np.memmap):
            raise InputError(f"{path} is no .npy file; give one file for each array")
        if not array.flags.c_contiguous:
            raise InputError(
                f"{path} is stored by columns; save it with np.save(path, np.ascontiguousarray(X))"
            )
        return cls(str(path), array.dtype, array.shape, array.offset)

    @property
    def row_bytes(self):
        """Bytes of one row."""
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def read(self, start, stop):
        """The rows ``start <= i < stop`` as an array."""
        out = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        try:
            with open(self.path, "rb", buffering=0) as file:
                self.read_into(file, start, out)
        except OSError as error:
            raise InputError(f"cannot read {self.path}: {error.strerror or error}") from None
        return out

    def read_into(self, file, start, out):
        """Fill `out` with the rows from `start` on.

        Explicit reads into memory of the caller's: pages of a memory map would count as the
        process's own for as long as the system likes.

        Raises
        ------
        OSError
            The file ends before the rows do, or cannot be read.
        """
        file.seek(self.offset + start * self.row_bytes)
        left = memoryview(out).cast("B") if out.size else memoryview(b"")
        while left:
            n_read = file.readinto(left)
            if not n_read:
                raise OSError(f"{self.path} ends early: it has been truncated")
            left = left[n_read:]


@dataclass(frozen=True)
class NpyFiles:
    """Features, labels and users in three `.npy` files of the same number of rows.

    Attributes
    ----------
    X, y, groups : NpyFile
    """

    X: NpyFile
    y: NpyFile
    groups: NpyFile

    feature_names = None
    first_index = None

    @classmethod
    def open(cls, X, y=None, groups=None):
        """Open three files, or the files `X.npy`, `y.npy` and `groups.npy` of a directory."""
        if y is None and groups is None:
            X, y, groups = (Path(X) / f"{name}.npy" for name in ("X", "y", "groups"))
        files = cls(*(NpyFile.open(path) for path in (X, y, groups)))
        files._check()
        return files

    @property
    def name(self):
        """The file of the features, for messages."""
        return self.X.path

    @property
    def columns_used(self):
        """One line that says what was taken for the features, the label and the user."""
        return (
            f"{self.n_features} features ({self.X.path}), label {self.y.path}, "
            f"user {self.groups.path}"
        )

    @property
    def n_rows(self):
        """Number of rows."""
        return self.X.shape[0]

    @property
    def n_features(self):
        """Number of columns of X."""
        return self.X.shape[1]

    @property
    def row_bytes(self):
        """Bytes of the features of one row in memory."""
        return self.X.row_bytes

    def lists(self):
        """Labels and users in pieces: yields (first row, labels, groups)."""
        for start in range(0, self.n_rows, _SCAN_ROWS):
            stop = min(start + _SCAN_ROWS, self.n_rows)
            yield start, self.y.read(start, stop), self.groups.read(start, stop)

    def rows(self, start, stop):
        """X, labels and groups of a range of rows."""
        fresh = NpyFiles.open(self.X.path, self.y.path, self.groups.path)
        if fresh != self:
            raise InputError(f"{self.name}: the file is another one now (other type or shape)")
        return tuple(file.read(start, stop) for file in (self.X, self.y, self.groups))

    def open_features(self, scratch=None):
        """The features as an open file that can be read at any row: (`NpyFile`, file)."""
        return self.X, open(self.X.path, "rb", buffering=0)

    def _check(self):
        if len(self.X.shape) != 2 or not self.X.shape[0] or not self.X.shape[1]:
            raise InputError(f"{self.X.path}: shape {self.X.shape}, expected (rows, features)")
        if self.X.dtype not in (np.float64, np.float32):
            raise InputError(
                f"{self.X.path} holds {self.X.dtype}; features must be float64 or float32 in the "
                "byte order of this machine"
            )
        for file in (self.y, self.groups):
            if file.shape != (self.n_rows,):
                raise InputError(
                    f"{file.path} has shape {file.shape}, but {self.X.path} has {self.n_rows} rows"
                )
