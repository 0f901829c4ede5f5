"""Data sets cut into partitions of whole users.

A partition is a small description with ``load() -> RankingData``: rows of arrays, or a range of
rows of files. Files must hold each user's rows together; which users come first does not matter.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import validation
from structsvm_papk.data.columns.checks import refuse_non_finite
from structsvm_papk.data.grades import MOST_GRADES, are_grades, check_label_gain, gains_of
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, as_path, check_number, check_type, whole_number
from structsvm_papk.files.lines import errors_name
from structsvm_papk.files.sources import NpyFiles, ParquetFiles, Source, refuse_text

SOURCES = "Parquet, or a directory with X.npy, y.npy and groups.npy"  # what `open_source` reads


def is_source(path: Path) -> bool:
    """Whether `open_source` is for this path, by its name: rows can be read without the others."""
    return path.is_dir() or path.suffix in (".parquet", ".pq")


def open_source(path: PathLike, **columns: Any) -> Source:
    """A source from a path: a directory with `X.npy`, `y.npy` and `groups.npy`, or Parquet."""
    path = as_path(path)
    if (path / "X.npy").exists():
        return NpyFiles.open(path)
    return ParquetFiles.open(path, **columns)


@dataclass(frozen=True)
class UserRows:
    """User u owns the rows ``indptr[u]:indptr[u + 1]`` of a source.

    Labels are kept as int8: relevance, above 0, or grades, which count as `label_gain` says.
    `relevant_from` is the least label in the file that is relevant; None with grades.
    """

    users: np.ndarray
    indptr: np.ndarray
    labels: np.ndarray
    relevant_from: float | None
    label_gain: str | Sequence[float] | None = None

    @property
    def gains(self) -> Array:
        """What the labels 0, 1, .. count; those below 0 count as 0."""
        if self.label_gain is None:
            return np.array([0.0, 1.0])
        highest = max(int(self.labels.max()), 0)
        return gains_of(np.arange(highest + 1), self.label_gain)

    @property
    def lists_a_row(self) -> int:
        """Lists in which a row stands, at most, see `RankingData.by_grade`; 1 of binary labels."""
        occurring = np.maximum(np.unique(self.labels), 0)
        return max(1, np.unique(self.gains[occurring]).size - 1)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        objects = sum(map(sys.getsizeof, self.users)) if self.users.dtype == object else 0
        return self.users.nbytes + objects + self.indptr.nbytes + self.labels.nbytes


def scan_users(
    source: Source,
    threshold: float | None = None,
    label_gain: str | Sequence[float] | None = None,
) -> UserRows:
    """Read labels and users of a source in batches; each user's rows must stand together.

    Labels of more than two whole values are grades, where `label_gain` says what they count and no
    threshold is given.
    """
    check_type("source", source, Source, "what open_source returns")
    check_number("relevance_threshold", threshold, optional=True)
    kept = np.empty(source.n_rows, dtype=np.int8)
    user_of_run: list[Array] = []  # a run: rows of one user that stand together
    starts: list[Array] = []  # the first row of each run
    distinct: list[Array] = []
    last_user = None
    for first, labels, groups in source.lists():
        _check_batch(source, first, labels, groups)
        as_kept = np.clip(labels, -128, 127) if threshold is None else labels >= threshold
        kept[first : first + labels.size] = as_kept
        distinct.append(_distinct_labels(labels))
        is_start = np.append(True, groups[1:] != groups[:-1])
        is_start[0] = last_user is None or groups[0] != last_user  # a run may span two batches
        last_user = groups[-1]
        user_of_run.append(groups[is_start])
        starts.append(first + np.flatnonzero(is_start))
    values = np.concatenate(distinct)
    relevant_from = None
    if threshold is None and label_gain is not None and are_grades(values):
        label_gain = check_label_gain(label_gain)
        with errors_name(source.name):
            gains_of(values, label_gain)
    else:
        label_gain = None
        relevant_from = validation.relevant_from(values, threshold, source.name)
    # users may be as many as a third of the rows: no copy lives longer than it must
    indptr = np.full(1 + sum(map(len, starts)), source.n_rows)
    np.concatenate(starts, out=indptr[:-1])
    del starts
    users = np.concatenate(user_of_run)
    del user_of_run
    _refuse_scattered(source, users, indptr)
    return UserRows(
        users=users,
        indptr=indptr,
        labels=kept,
        relevant_from=relevant_from,
        label_gain=label_gain,
    )


def _distinct_labels(labels):
    """The smallest distinct labels and the largest one: enough to tell their classes."""
    distinct = np.unique(labels).astype(np.float64)
    return np.append(distinct[:MOST_GRADES], distinct[-1])


def _check_batch(source, first, labels, groups):
    try:
        validation.check_grades(labels, groups.size)
        validation.check_ids(groups, groups.size, "users")
    except InputError as error:
        raise InputError(
            f"{source.name}: {error}; rows are counted from row {first} of the data"
        ) from None


def _refuse_scattered(source, users, indptr):
    """Every user must be one run of rows."""
    try:
        if (users[1:] > users[:-1]).all():
            return
        order = np.argsort(users, kind="stable")
    except TypeError:
        raise InputError(f"{source.name}: the users' labels are of different types") from None
    in_order = users[order]
    repeated = np.flatnonzero(in_order[1:] == in_order[:-1])
    if repeated.size:
        run = order[repeated[0]]
        next_run = order[repeated[0] + 1]
        user = users[run : run + 1].tolist()[0]
        raise InputError(
            f"{source.name}: the rows of user {user!r} do not stand together: rows {indptr[run]} "
            f"to {indptr[run + 1] - 1}, and again from row {indptr[next_run]} (counted from 0); "
            "sort the data by user first"
        )


def cut_users(indptr: Array, n_rows: int) -> Array:
    """Bounds of runs of users with at most `n_rows` rows each, or of one user with more."""
    bounds = [0]
    while bounds[-1] < indptr.size - 1:
        first = bounds[-1]
        last = np.searchsorted(indptr, indptr[first] + n_rows, side="right") - 1
        bounds.append(max(int(last), first + 1))
    return np.array(bounds)


@dataclass(frozen=True)
class FilePartition:
    """The rows ``start <= i < stop`` of a source, read by whoever loads it."""

    source: Source
    start: int
    stop: int
    relevant_from: float | None  # as in `UserRows`
    label_gain: str | Sequence[float] | None = None

    def load(self) -> RankingData:
        """Read and check the rows, as `RankingData`."""
        X, labels, groups = self.source.rows(self.start, self.stop)
        first_rows = np.flatnonzero(np.append(True, groups[1:] != groups[:-1]))
        with errors_name(self.source.name):
            refuse_non_finite(X, self.source.feature_names, in_parts=True, first=self.start)
        with errors_name(self):
            return RankingData(
                X=X,
                y=labels if self.relevant_from is None else labels >= self.relevant_from,
                indptr=np.append(first_rows, groups.size),
                users=groups[first_rows],
                feature_names=self.source.feature_names,
                label_gain=self.label_gain,
            )

    def __str__(self) -> str:
        return f"{self.source.name}, rows {self.start} to {self.stop - 1}"


@dataclass(frozen=True)
class ArrayPartition:
    """The users ``first <= u < last`` of data in this process."""

    data: RankingData
    first: int
    last: int

    def load(self) -> RankingData:
        """A copy of the rows of these users only."""
        users = np.arange(self.data.n_users)
        return self.data.subset((users >= self.first) & (users < self.last)).with_own_rows()

    def __reduce__(self) -> tuple[Any, ...]:
        """Only the rows of its users go to another process."""
        return ArrayPartition, (self.load(), 0, self.last - self.first)

    def __str__(self) -> str:
        return f"users {self.first} to {self.last - 1}"


def file_partitions(
    source: Source,
    partition_bytes: int = 1 << 27,
    relevance_threshold: float | None = None,
    *,
    label_gain: str | Sequence[float] | None = None,
) -> list[FilePartition]:
    """Cut files into partitions with about `partition_bytes` of features each.

    Parameters
    ----------
    source : NpyFiles or ParquetFiles
    partition_bytes : int
    relevance_threshold : float, optional
        Labels of at least this are relevant.
    label_gain : {'linear', 'exponential'} or sequence of float, optional
        As for `scan_users`; by default grades are refused.

    Returns
    -------
    list of FilePartition

    Raises
    ------
    InputError
        As for `scan_users`.
    """
    partition_bytes = whole_number("partition_bytes", partition_bytes)
    rows = scan_users(source, relevance_threshold, label_gain)
    bounds = cut_users(rows.indptr, max(1, partition_bytes // source.row_bytes))
    return [
        FilePartition(
            source=source,
            start=int(start),
            stop=int(stop),
            relevant_from=rows.relevant_from,
            label_gain=rows.label_gain,
        )
        for start, stop in pairwise(rows.indptr[bounds])
    ]


def array_partitions(data: RankingData, n_partitions: int) -> list[ArrayPartition]:
    """Cut data in memory into at most `n_partitions` partitions with about as many rows each.

    Raises
    ------
    InputError
        Columns of text, or missing values, which need a fit in memory.
    """
    names = data.feature_names
    if data.levels:
        refuse_text([str(j if names is None else names[j]) for j in data.levels])
    refuse_non_finite(data.X, names, in_parts=True)
    rows_each = -(-data.rows.size // n_partitions)  # rounded up
    bounds = cut_users(data.indptr, rows_each)
    return [ArrayPartition(data, int(first), int(last)) for first, last in pairwise(bounds)]
