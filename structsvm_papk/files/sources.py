"""Sources: data sets in files that are read in batches, `NpyFiles` and `ParquetFiles`."""

from __future__ import annotations

import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.roles import Kind, listed, needed_column
from structsvm_papk.errors import InputError
from structsvm_papk.files import parquet
from structsvm_papk.files.lines import errors_name
from structsvm_papk.files.tables import choose_columns, feature_matrix, reading
from structsvm_papk.files.text import each_column

_COLUMNS = 8  # decoded at a time
_NAME_IT = "; name it with group="
_BUFFER_BYTES = 1 << 16  # of a column chunk that is read at a time


def refuse_text(names: Sequence[str]) -> None:
    """Refuse columns of text in lists that are not in memory."""
    raise InputError(
        f"text has levels only where the lists are in memory, and column {listed(names)} holds "
        f"text: give a sample of the users, or leave it out with ignore={list(names)!r}"
    )


@dataclass(frozen=True)
class NpyFile:
    """A `.npy` file of one or two dimensions, by rows, whose values follow the bytes `header`."""

    path: str
    dtype: np.dtype
    shape: tuple[int, ...]
    header: bytes

    @classmethod
    def open(cls, path: PathLike) -> NpyFile:
        """Read the header, and check that the file is as long as it says."""
        with reading(path):
            try:
                array = np.load(path, mmap_mode="r", allow_pickle=False)
            except (ValueError, EOFError) as error:
                raise InputError(
                    f"{path} is not a complete .npy file of numbers ({error}); it may be truncated"
                ) from None
        if not isinstance(array, np.memmap):
            raise InputError(f"{path} is not an .npy file; give one file for each array")
        if not array.flags.c_contiguous:
            raise InputError(
                f"{path} is stored by columns; save it with np.save(path, np.ascontiguousarray(X))"
            )
        with open(path, "rb") as file:
            header = file.read(array.offset)
        return cls(str(path), array.dtype, array.shape, header)

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return self.dtype.itemsize * int(np.prod(self.shape[1:], dtype=np.int64))

    def read(self, start: int, stop: int) -> Array:
        """The rows ``start <= i < stop`` as an array."""
        out = np.empty((stop - start, *self.shape[1:]), dtype=self.dtype)
        with reading(self.path), open(self.path, "rb", buffering=0) as file:
            # compared, not parsed: CPython's parser can fail where two threads use it at once
            if file.read(len(self.header)) != self.header:
                raise InputError(f"{self.path}: the file is another one now (other type or shape)")
            self.read_into(file, start, out)
        return out

    def read_into(self, file: Any, start: int, out: Array) -> None:
        """Fill `out` with the rows from `start` on; OSError where the file ends before.

        Explicit reads into memory of the caller's: pages of a memory map would count as the
        process's own for as long as the system likes.
        """
        file.seek(len(self.header) + start * self.row_bytes)
        # an array without values has no view as bytes
        unfilled = memoryview(out.data).cast("B") if out.size else memoryview(b"")
        while unfilled:
            n_read = file.readinto(unfilled)  # which may be fewer bytes than asked for
            if not n_read:
                raise OSError("it ends early: the file has been truncated")
            unfilled = unfilled[n_read:]


@dataclass(frozen=True)
class Source(ABC):
    """Rows in files; `columns_used` says in a line what was taken for features, label and user.

    `name` is the first file, for messages. No method holds more than the rows that are asked for.
    A class has to write `lists` and `rows`; `open_features` then copies the features to a file.
    """

    name: str
    n_rows: int
    n_features: int
    dtype: np.dtype
    columns_used: str
    feature_names: tuple[str, ...] | None
    first_index: ClassVar[None] = None
    batch_bytes: ClassVar[int] = 1 << 21  # of features that are copied at a time

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of one row in memory."""
        return self.n_features * self.dtype.itemsize

    @abstractmethod
    def lists(self) -> Iterator[tuple[int, Array, Array]]:
        """Labels and users in batches: yields (first row, labels, groups)."""

    @abstractmethod
    def rows(self, start: int, stop: int) -> tuple[Array, Array, Array]:
        """X, labels and groups of a range of rows."""

    def open_features(self) -> tuple[NpyFile, BinaryIO]:
        """The features as an open file that can be read at any row: (`NpyFile`, file).

        By default a temporary one, written in one pass: else rows would be decoded in every pass
        over the data. It has no name and is gone when it is closed, whatever ends the process.
        """
        directory = tempfile.gettempdir()
        needed = self.n_rows * self.row_bytes
        try:
            if shutil.disk_usage(directory).free < needed:
                raise OSError("there is not enough space")
            file = tempfile.TemporaryFile()  # noqa: SIM115
            self.write_features(file)
            file.flush()
        except OSError as error:
            raise InputError(
                f"cannot write {needed / 1e6:.0f} MB of features to a temporary file in "
                f"{directory}: {error.strerror or error}; choose another directory (TMPDIR)"
            ) from None
        features = NpyFile(
            path=self.name,
            dtype=self.dtype,
            shape=(self.n_rows, self.n_features),
            header=b"",
        )
        return features, file

    def write_features(self, out: BinaryIO) -> None:
        """Append the features to the file `out`, row after row."""
        step = max(1, self.batch_bytes // self.row_bytes)
        for start in range(0, self.n_rows, step):
            X, _, _ = self.rows(start, min(start + step, self.n_rows))
            out.write(X.astype(self.dtype, copy=False).tobytes())


@dataclass(frozen=True)
class NpyFiles(Source):
    """Features, labels and users in three `.npy` files of the same number of rows.

    Labels and users are read `scan_rows` at a time.
    """

    X: NpyFile
    y: NpyFile
    groups: NpyFile
    scan_rows: int = 1 << 16

    @classmethod
    def open(cls, folder: Path) -> NpyFiles:
        """Open the files `X.npy`, `y.npy` and `groups.npy` of a directory."""
        X = NpyFile.open(folder / "X.npy")
        y = NpyFile.open(folder / "y.npy")
        groups = NpyFile.open(folder / "groups.npy")
        if len(X.shape) != 2 or not X.shape[0] or not X.shape[1]:
            raise InputError(f"{X.path}: shape {X.shape}, expected (rows, features)")
        if X.dtype not in (np.float64, np.float32):
            raise InputError(
                f"{X.path} holds {X.dtype}; features must be float64 or float32 in the byte order "
                "of this machine"
            )
        for file in (y, groups):
            if file.shape != X.shape[:1]:
                raise InputError(
                    f"{file.path} has shape {file.shape}, but {X.path} has {X.shape[0]} rows"
                )
        used = f"{X.shape[1]} features ({X.path}), label {y.path}, user {groups.path}"
        return cls(
            name=X.path,
            n_rows=X.shape[0],
            n_features=X.shape[1],
            dtype=X.dtype,
            columns_used=used,
            feature_names=None,
            X=X,
            y=y,
            groups=groups,
        )

    def lists(self) -> Iterator[tuple[int, Array, Array]]:  # noqa: D102
        for start in range(0, self.n_rows, self.scan_rows):
            stop = min(start + self.scan_rows, self.n_rows)
            yield start, self.y.read(start, stop), self.groups.read(start, stop)

    def rows(self, start: int, stop: int) -> tuple[Array, Array, Array]:  # noqa: D102
        return self.X.read(start, stop), self.y.read(start, stop), self.groups.read(start, stop)

    def open_features(self) -> tuple[NpyFile, BinaryIO]:  # noqa: D102
        return self.X, open(self.X.path, "rb", buffering=0)


@dataclass(frozen=True)
class ParquetFiles(Source):
    """Rows of one Parquet file, or of several that continue each other.

    The features are float32 where every one of them is, else float64. At most `batch_rows` are
    decoded at a time.
    """

    paths: tuple[str, ...]
    n_rows_of: tuple[int, ...]
    label: str
    group: str
    feature_names: tuple[str, ...]
    batch_rows: int = 1 << 14

    @classmethod
    def open(
        cls,
        path: PathLike,
        label: str = "label",
        group: str | None = None,
        ignore: Sequence[str] = (),
    ) -> ParquetFiles:
        """Open a file, or the `.parquet` files of a directory in the order of their names."""
        paths = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
        if not paths:
            raise InputError(f"{path}: neither X.npy nor a .parquet file in this directory")
        schemas = []
        counts = []
        for file_path in paths:
            with parquet.opened(file_path, _BUFFER_BYTES) as file:
                schemas.append(file.schema_arrow)
                counts.append(file.metadata.num_rows)
            if not schemas[-1].equals(schemas[0]):
                raise InputError(f"{file_path}: other columns or types than {paths[0]}")
        schema = schemas[0]
        columns = choose_columns(
            paths[0],
            schema.names,
            parquet.index_columns(paths[0], schema),
            label=label,
            group=group,
            ignore=ignore,
        )
        texts = [name for name in columns.features if name in parquet.text_columns(schema)]
        if texts:
            with errors_name(paths[0]):
                refuse_text(texts)
        # Arrow calls those of 32 bits so, and those of 64 "double"
        all_float32 = all(str(schema.field(name).type) == "float" for name in columns.features)
        if not sum(counts):
            raise InputError(f"{path}: no data rows")
        return cls(
            name=str(paths[0]),
            n_rows=sum(counts),
            n_features=len(columns.features),
            dtype=np.dtype(np.float32 if all_float32 else np.float64),
            columns_used=columns.used,
            feature_names=columns.features,
            paths=tuple(map(str, paths)),
            n_rows_of=tuple(counts),
            label=columns.label or label,
            group=columns.group or needed_column("user", schema.names, path, hint=_NAME_IT),
        )

    def lists(self) -> Iterator[tuple[int, Array, Array]]:  # noqa: D102
        for first, frame in self._frames([self.label, self.group], 0, self.n_rows):
            labels, groups = self._labels_and_groups(first, frame)
            yield first, labels, groups

    def rows(self, start: int, stop: int) -> tuple[Array, Array, Array]:
        """X, labels and groups of a range of rows; the other row groups are not read."""
        X = np.empty((stop - start, self.n_features), dtype=self.dtype)
        columns = [*self.feature_names, self.label, self.group]
        labels = []
        groups = []
        for first, frame in self._frames(columns, start, stop):
            i = first - start
            X[i : i + frame.num_rows] = self._features(first, frame, self.feature_names)
            labels_here, groups_here = self._labels_and_groups(first, frame)
            labels.append(labels_here)
            groups.append(groups_here)
        return X, np.concatenate(labels), np.concatenate(groups)

    def write_features(self, out: BinaryIO) -> None:  # noqa: D102
        with tempfile.TemporaryFile() as stripe:
            for path in self.paths:
                self._write_file(path, stripe, out)

    def _write_file(self, path: str, stripe: Any, out: BinaryIO) -> None:
        """Append the features of one file to `out`, row after row.

        They go to the file `stripe` first, a few columns at a time: a decoder holds some megabytes
        of every column that it reads, more than many columns leave room for. There they stand one
        column after the other: row i of column c is the value ``c * n_rows + i`` of the row group.
        """
        width = self.dtype.itemsize
        step = max(1, self.batch_bytes // self.row_bytes)
        with parquet.opened(path, _BUFFER_BYTES) as file:
            for row_group in range(file.num_row_groups):
                n_rows = file.metadata.row_group(row_group).num_rows
                # 1. from the row group to the stripe, by columns
                rows_before = out.tell() // self.row_bytes
                for first_column in range(0, self.n_features, _COLUMNS):
                    names = list(self.feature_names[first_column : first_column + _COLUMNS])
                    for first, frame in self._decoded(self.name, file, [row_group], names):
                        features = self._features(rows_before + first, frame, names)
                        for c, column in enumerate(features.T, start=first_column):
                            stripe.seek((c * n_rows + first) * width)
                            stripe.write(np.ascontiguousarray(column))
                # 2. from the stripe to `out`, by rows
                for first in range(0, n_rows, step):
                    columns = np.empty((self.n_features, min(step, n_rows - first)), self.dtype)
                    for c, column in enumerate(columns):
                        stripe.seek((c * n_rows + first) * width)
                        stripe.readinto(column)
                    out.write(np.ascontiguousarray(columns.T).data)

    def _frames(self, columns: Sequence[str], start: int, stop: int) -> Iterator[tuple[int, Any]]:
        """Yield (first row, table) of a range of rows, small batches at a time."""
        rows_before = 0  # in the files before
        for path, n_rows in zip(self.paths, self.n_rows_of, strict=True):
            start_here = max(start - rows_before, 0)
            stop_here = min(stop - rows_before, n_rows)
            if start_here < stop_here:
                with parquet.opened(path, _BUFFER_BYTES) as file:
                    if file.metadata.num_rows != n_rows:
                        raise InputError(f"{path} is another file now: its number of rows differs")
                    for first, frame in self._of_file(path, file, columns, start_here, stop_here):
                        yield rows_before + first, frame
            rows_before += n_rows

    def _of_file(
        self, path: str, file: Any, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """(first row, table) of the rows ``start <= i < stop`` of one file, in batches."""
        sizes = np.array([file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)])
        ends = np.cumsum(sizes)
        starts = ends - sizes
        row_groups = np.flatnonzero((ends > start) & (starts < stop)).tolist()
        first_decoded = int(starts[row_groups[0]])
        for first, frame in self._decoded(path, file, row_groups, columns):
            row = first_decoded + first  # of the file
            if row >= stop:
                return
            begin = max(start - row, 0)
            end = min(stop - row, frame.num_rows)
            if begin < end:
                yield row + begin, frame.slice(begin, end - begin)

    def _decoded(
        self, path: str, file: Any, row_groups: Sequence[int], columns: Sequence[str]
    ) -> Iterator[tuple[int, Any]]:
        """(first row, table) of some row groups, in batches; the first group's first row is 0."""
        import pyarrow as pa

        n_rows = sum(file.metadata.row_group(i).num_rows for i in row_groups)
        row = 0
        batch = None
        try:
            for batch in file.iter_batches(self.batch_rows, row_groups, columns, use_threads=False):
                row += batch.num_rows
                if row > n_rows:
                    break
                yield row - batch.num_rows, pa.Table.from_batches([batch])
                pa.default_memory_pool().release_unused()  # it keeps some ten times what is in use
            if row != n_rows:
                raise parquet.fewer_rows(path, row, n_rows)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{path} is damaged or has changed: {error}") from None
        finally:
            del batch  # the last one
            pa.default_memory_pool().release_unused()

    def _features(self, first: int, frame: Any, names: Sequence[str]) -> Array:
        def values(name: str) -> Array:
            return parquet.values_of(
                self.name, frame, name, Kind.NUMBER, first=first, is_feature=True, in_parts=True
            )

        columns = each_column(names, values, names)
        X = feature_matrix(columns, self.name, first)
        return X.astype(self.dtype, copy=False)

    def _labels_and_groups(self, first: int, frame: Any) -> tuple[Array, Array]:
        labels = parquet.values_of(self.name, frame, self.label, Kind.NUMBER, first=first)
        groups = parquet.values_of(self.name, frame, self.group, Kind.ID, first=first)
        return labels.astype(float), groups
