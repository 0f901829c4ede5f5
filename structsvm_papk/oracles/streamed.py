"""Training on files larger than memory, on one machine.

The features stay in their file. Every pass reads partition after partition, one ahead; as many as
fit stay in memory. So do labels and users in any case.
"""

import math
import os
import weakref
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from mmap import mmap
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array, Callback
from structsvm_papk.data.columns.base import Spread
from structsvm_papk.data.columns.checks import refuse_non_finite
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.knots import check_curves, knots_of
from structsvm_papk.data.columns.units import Units
from structsvm_papk.data.columns.value_counts import (
    MOST_BINS,
    ValueCounts,
    counts_of_columns,
    joined_counts,
)
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.validation import checked_weight
from structsvm_papk.errors import InputError, OracleFailure, check_number, check_type, whole_number
from structsvm_papk.files.lines import errors_name
from structsvm_papk.files.partitions import cut_users, scan_users
from structsvm_papk.files.sources import Source
from structsvm_papk.oracles.list_risk import Need, Partition, users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.partitions import Partitions, PartitionSummary, summarise
from structsvm_papk.surrogates import Surrogate

_PARTITIONS_IN_BUDGET = 12
_MOST_BYTES = 2**53  # of a budget: more there is nowhere
_ROW_BYTES = 48  # without its features, of a row in work: its index, its score, its coefficient
# with grades so much for each of its lists, and once more
_USER_BYTES = 24  # of a user without its label and first row: while they are sorted, and kept
_CUT_SHARE = 0.15  # of the budget for the solver's cuts
_CUTS_A_BLOCK = 40  # how many it may hold at a time, with copies
_BIN_BYTES = 64  # of values that are counted before there are cuts: two parts, and both together
_LEAST_BINS = 256  # which is as many as a column has knots


class StreamedRisk(PartitionedRisk):
    """The risk of data in files, read in partitions within a memory budget.

    Parameters
    ----------
    surrogate : Surrogate
    source : NpyFiles or ParquetFiles
        Each user's rows must stand together. Parquet is written to a temporary file first (in
        `TMPDIR`), in one pass, which needs as much space as the features need in memory.
    memory_budget : int
        Bytes for everything that grows with the data and with the model: what is read, what is
        computed for each row, labels, users, and the solver's cuts. The interpreter and the
        libraries come on top (about 330 MB).
    relevance_threshold : float, optional
        Labels of at least this are relevant; needed unless they are 0/1, -1/1 or booleans, or
        grades with `label_gain`.
    policy : {'exclude', 'raise', 'cap'}
        As for `EmpiricalRisk`.
    n_threads : int
        Threads that share the work on a partition; one more reads ahead.
    user_weight : {'equal', 'positives'} or ndarray of shape (n_users,)
        As for `RankingData`; numbers in the order of the users in the file.
    label_gain : {'linear', 'exponential'} or sequence of float, optional
        Labels of more than two whole values are grades, which count so; see `RankingData`.
    curves : int, optional
        Pieces of a curve for each column, between quantiles of all rows, for which the file is read
        once more; by default the columns are lines.
    positive : bool
        Whether every curve has to rise. Its weights are its rises then, of which the solver has to
        be told that they are 0 or above (``positive=True``).

    Raises
    ------
    InputError
        Files that cannot be used, a user whose rows do not stand together, no user that can be
        used, a budget that is too small for the largest user.
    OracleFailure
        In mid-course: the file of the features was truncated, changed, or cannot be read.
    """

    partitions: "_StreamedPartitions"

    def __init__(
        self,
        surrogate: Surrogate,
        source: Source,
        memory_budget: int,
        relevance_threshold: float | None = None,
        policy: str = "cap",
        n_threads: int = 1,
        user_weight: str | ArrayLike = "equal",
        *,
        label_gain: str | Sequence[float] | None = None,
        curves: int | None = None,
        positive: bool = False,
    ) -> None:
        check_type("source", source, Source, "what open_source returns")
        check_number("memory_budget", memory_budget, above=0)
        held = _StreamedPartitions(
            surrogate,
            source,
            budget=int(min(memory_budget, _MOST_BYTES)),
            policy=policy,
            relevance_threshold=relevance_threshold,
            label_gain=label_gain,
            n_threads=whole_number("n_threads", n_threads),
            user_weight=user_weight,
            pieces=check_curves(curves),
            positive=positive,
        )
        super().__init__(surrogate, held)

    @property
    def share_in_memory(self) -> float:
        """Share of the feature matrix that stays in memory."""
        return self.partitions.share_in_memory()


class _StreamedPartitions(Partitions):
    """Partitions of a file of features."""

    def __init__(
        self,
        surrogate: Surrogate,
        source: Source,
        *,
        budget: int,
        policy: str,
        relevance_threshold: float | None,
        label_gain: str | Sequence[float] | None,
        n_threads: int,
        user_weight: str | ArrayLike,
        pieces: int | None,
        positive: bool,
    ) -> None:
        need = users_needed(surrogate, policy)
        self.n_threads = n_threads
        n_cells = 0 if pieces is None else source.n_features  # of a row, a byte each
        self._row_bytes = source.row_bytes + n_cells
        room = _CUT_SHARE * budget
        self.most_start_rows = max(1, int(room / source.row_bytes))
        self._lists = scan_users(source, relevance_threshold, label_gain)
        self._gains = self._lists.gains
        self._n_rows_on_file = source.n_rows
        self._names = source.feature_names
        n_pos = self._positives_of(np.arange(self._lists.users.size))
        self._user_weight = checked_weight(user_weight, self._lists.users, n_pos)
        self._bounds, free = self._plan(source, budget)
        self._file = _FeatureFile(source)
        largest = int(np.diff(self._lists.indptr[self._bounds]).max())
        self._buffers = [self._file.buffer(largest) for _ in range(2)]
        if pieces is not None:
            bins = int(room / (_BIN_BYTES * source.n_features))
            counts = self._counts_of_all(min(max(bins, _LEAST_BINS), MOST_BINS))
            self.knots = knots_of(counts, pieces, np.full(source.n_features, positive))
        n_weights = source.n_features if self.knots is None else self.knots.n_weights
        self.most_blocks = max(1, int(room / (8 * n_weights * _CUTS_A_BLOCK)))
        # of the partitions with users
        self.kept: dict[int, RankingData] = {}
        self._users: list[Array] = []
        self._spreads: list[Spread] = []
        summaries = []
        for p in range(self._bounds.size - 1):
            summary, free = self._survey(p, need, free)
            summaries.append(summary)
        super().__init__(summaries, surrogate, need.policy)

    def share_in_memory(self) -> float:
        """Share of the rows on file that stay in memory."""
        return sum(data.columns.n_rows for data in self.kept.values()) / self._n_rows_on_file

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """The body reads the file, which must be as it was."""
        try:
            self._file.check()
            yield
        except OSError as error:
            raise OracleFailure(f"the features cannot be read any more: {error}") from None

    def run(self, task: Callback, shares: Sequence[int]) -> Iterator[Any]:
        """Yield the task's result for each partition with users, reading one ahead."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(self._load, 0)
            for i, share in enumerate(shares):
                with self._readable():
                    data = ahead.result()
                if i + 1 < len(shares):
                    ahead = reader.submit(self._load, i + 1)
                yield task(Partition(data, share, self.n_threads, cache=None))

    def _plan(self, source: Source, budget: int) -> tuple[Array, int]:
        """Bounds of the partitions in users, and the bytes that are free to keep some of them."""
        lists = self._lists
        always = lists.nbytes + (_USER_BYTES + lists.users.itemsize) * lists.users.size
        free = int((1 - _CUT_SHARE) * budget) - always
        in_work = _ROW_BYTES
        if lists.label_gain is not None:
            in_work *= 1 + lists.lists_a_row
        bytes_a_row = 2 * self._row_bytes + in_work  # one partition in work, another one read
        # rows of few columns take more memory in work than as they are read
        share = max(_PARTITIONS_IN_BUDGET * self._row_bytes, bytes_a_row)
        bounds = cut_users(lists.indptr, max(1, free // share))
        needed = int(np.diff(lists.indptr[bounds]).max()) * bytes_a_row
        if needed > free:  # of the largest list, as partitions of several have room
            least = math.ceil((always + needed + 1) / (1 - _CUT_SHARE))
            raise InputError(
                f"{source.name}: a memory budget of {budget / 1e6:.3g} MB is too small: labels and "
                f"users take {always / 1e6:.3g} MB, and to read and compute "
                f"{needed // bytes_a_row} rows at a time {needed / 1e6:.3g} MB; "
                f"give at least {_in_megabytes(least)} MB"
            )
        return bounds, free - needed

    def _counts_of_all(self, bins: int) -> list[ValueCounts]:
        """How often each value of a column occurs in all rows, in so many bins."""
        counts: list[ValueCounts] = []
        for start, stop in pairwise(self._lists.indptr[self._bounds].tolist()):
            X = self._buffers[0][: stop - start]
            with self._named(start, stop):
                self._file.read(start, X)
            own = list(counts_of_columns(X, np.arange(stop - start), bins))
            counts = joined_counts([counts, own], bins) if counts else own
        return counts

    @contextmanager
    def _named(self, start: int, stop: int) -> Iterator[None]:
        """What is wrong with some rows of the file says which they are."""
        try:
            yield
        except (OSError, InputError) as error:
            raise InputError(
                f"{self._file.npy.path}, rows {start} to {stop - 1}: {error}"
            ) from None

    def _survey(self, p: int, need: Need, free: int) -> tuple[PartitionSummary, int]:
        """Read and check a partition, keep it if there is room; summary, bytes still free."""
        first, last = self._bounds[p : p + 2]
        start, stop = self._lists.indptr[[first, last]]
        cost = (stop - start) * (self._row_bytes + 9)  # its index and label
        buffer = self._file.buffer(stop - start) if cost <= free else self._buffers[0]
        with self._named(start, stop):
            lists = self._read(np.arange(first, last), buffer)
        with errors_name(self._file.npy.path):
            refuse_non_finite(lists.X, self._names, in_parts=True, first=start)
        with self._named(start, stop):
            data, summary = summarise(self._in_columns(lists), need.negatives, need.setting)
        if data is None:
            return summary, free
        excluded = summary.exclusions
        users = np.delete(
            np.arange(first, last), np.append(excluded.no_positive, excluded.few_negatives)
        )
        self._users.append(users)
        self._spreads.append(summary.spread)
        if cost > free:
            return summary, free
        self.kept[len(self._users) - 1] = data
        return summary, free - cost

    def _load(self, i: int) -> RankingData:
        """The i-th partition with users; two of them may be in use at a time."""
        self._file.check()
        if i in self.kept:
            return self.kept[i].in_units(Units())  # a view: what is computed for it does not stay
        data = self._in_columns(self._read(self._users[i], self._buffers[i % 2]))
        data._spread = self._spreads[i]
        return data

    def _in_columns(self, data: RankingData) -> RankingData:
        """Lists with curves in place of lines, where these are wanted."""
        return data if self.knots is None else data.with_curves(self.knots)

    def _read(self, users: Array, buffer: Array) -> RankingData:
        """The lists of some users of a partition, with their rows in the buffer."""
        lists = self._lists
        start = lists.indptr[users[0]]
        stop = lists.indptr[users[-1] + 1]
        X = buffer[: stop - start]
        self._file.read(start, X)
        sizes = lists.indptr[users + 1] - lists.indptr[users]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        labels = lists.labels[start:stop]
        rows = np.empty(indptr[-1], dtype=np.int64)
        _best_first(labels, lists.indptr[users] - start, indptr, rows)
        weight = None if self._user_weight is None else self._user_weight[users]
        grades = None
        if lists.label_gain is not None:
            grades = labels[rows]
        return RankingData.from_parts(
            columns=DenseColumns(X),
            rows=rows,
            indptr=indptr,
            n_pos=self._positives_of(users),
            users=lists.users[users],
            user_weight=weight,
            feature_names=self._names,
            grades=grades,
            label_gain=lists.label_gain,
        )

    def _positives_of(self, users: Array) -> Array:
        """The number of positives of each of the users."""
        lists = self._lists
        graded = lists.label_gain is not None
        n_pos = np.empty(users.size, dtype=np.int64)
        _count_positives(lists.labels, self._gains, graded, lists.indptr, users, n_pos)
        return n_pos


def _in_megabytes(n_bytes: int) -> str:
    """Bytes in millions, rounded up to three digits: what is not less."""
    unit = 10 ** max(len(str(n_bytes)) - 3, 0)
    return f"{-(-n_bytes // unit) * unit / 1e6:.12g}"


class _FeatureFile:
    """An open file of features that must not change."""

    def __init__(self, source: Source) -> None:
        self.npy, self._file = source.open_features()
        weakref.finalize(self, self._file.close)
        self._identity = self._now()

    def buffer(self, n_rows: int) -> Array:
        """Memory for some rows; it counts only as far as it is written."""
        # the allocator would not give it back to the system when it is not needed any more
        memory = mmap(-1, n_rows * self.npy.row_bytes)
        return np.frombuffer(memory, self.npy.dtype).reshape(n_rows, self.npy.shape[1])

    def check(self) -> None:
        """Refuse a file of another size or time than at first."""
        if self._now() != self._identity:
            raise OSError(f"{self.npy.path} has changed")

    def read(self, start: int, out: Array) -> None:
        """Fill `out` with the rows from `start` on."""
        self.npy.read_into(self._file, start, out)

    def _now(self) -> tuple[int, int]:
        status = os.fstat(self._file.fileno())
        return status.st_size, status.st_mtime_ns


@kernel
def _best_first(labels: Array, starts: Array, indptr: Array, rows: Array) -> None:
    """List each user's rows as they are in memory, by decreasing label."""
    for u in range(starts.size):
        end = starts[u] + indptr[u + 1] - indptr[u]
        lowest = labels[starts[u]]
        highest = labels[starts[u]]
        for row in range(starts[u], end):
            lowest = min(lowest, labels[row])
            highest = max(highest, labels[row])
        i = indptr[u]
        for label in range(highest, lowest - 1, -1):
            for row in range(starts[u], end):
                if labels[row] == label:
                    rows[i] = row
                    i += 1


@kernel
def _count_positives(
    labels: Array, gains: Array, graded: bool, indptr: Array, users: Array, n_pos: Array
) -> None:
    """Count each user's rows above gain 0, or with grades above the lowest gain of the list."""
    for i in range(users.size):
        start = indptr[users[i]]
        end = indptr[users[i] + 1]
        lowest = gains[max(labels[start], 0)] if graded else 0.0
        for row in range(start, end):
            if graded:
                lowest = min(lowest, gains[max(labels[row], 0)])
        n_pos[i] = 0
        for row in range(start, end):
            n_pos[i] += gains[max(labels[row], 0)] > lowest
