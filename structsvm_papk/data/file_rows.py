"""A matrix whose rows are in a file: some are kept in memory, the others are read when needed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array, Callback

BATCH_BYTES = 1 << 22  # read at a time, while the batch before is in work
_GAP_BYTES = 1 << 15  # between two rows that is read along with them: as long as a call takes
_LEAST_GAPS = 32  # no gap is larger than this part of a batch
_IDLE = 3  # evaluations that a row may be kept without being asked for
_PLACE_BYTES = 20  # of a row that is kept, beside its features
_ROW_BYTES = 4  # of every row


class Piece(NamedTuple):
    """Some of the rows that were asked for: ``X[places]`` is ``rows[indices]``."""

    X: Array
    places: Array
    indices: Array


class _Batch(NamedTuple):
    """The rows ``start <= i < stop`` of those to be read, at the places `places` of `buffer`."""

    buffer: Array
    places: Array
    start: int
    stop: int


class FileRows:
    """Rows of a file, `capacity` of which are kept in memory.

    Which ones is left to whoever works with them: what is asked for is kept as long as there is
    room, and what `keep` was called with in any case. They are in `kept`, at the places that `keep`
    returns; two batches of `batch_bytes` with rows that are in work come on top.
    ``read(start, out)`` fills an array with the rows from `start` on; `rows_read` counts them,
    those between others included.
    """

    def __init__(
        self,
        read: Callback,
        shape: tuple[int, int],
        dtype: Any,
        capacity: int,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self._read = read
        self.shape = shape
        self.dtype = dtype
        row_bytes = shape[1] * np.dtype(dtype).itemsize
        self._largest_gap = max(1, min(_GAP_BYTES, batch_bytes // _LEAST_GAPS) // row_bytes)
        batch = max(1, min(batch_bytes // row_bytes, shape[0]))
        self._buffers = np.empty((2, batch, shape[1]), dtype)
        self.kept = np.empty((capacity, shape[1]), dtype)  # takes memory as far as it is written
        self._place_of_row = np.full(shape[0], -1, dtype=np.int32)  # in `kept`; -1: not there
        self._row_at_place = np.full(capacity, -1, dtype=np.int64)  # -1: a free place
        self._last_asked = np.zeros(capacity, dtype=np.int32)  # in which evaluation, by place
        self._free = np.arange(capacity, dtype=np.int32)  # places
        self._evaluation = 1  # that goes on, counted from 1
        self._short_of_room = False
        self.rows_read = 0

    @staticmethod
    def room(
        shape: tuple[int, int], dtype: Any, n_bytes: float, batch_bytes: int = BATCH_BYTES
    ) -> int:
        """The capacity of an object that takes so many bytes; below zero where none is so small."""
        row_bytes = shape[1] * np.dtype(dtype).itemsize
        batches = 2 * max(row_bytes, min(batch_bytes, shape[0] * row_bytes))
        free = n_bytes - batches - _ROW_BYTES * shape[0]
        return min(shape[0], int(free // (row_bytes + _PLACE_BYTES)))

    def __getitem__(self, rows: Array) -> Array:
        """A copy of some rows."""
        out = np.empty((rows.size, self.shape[1]), self.dtype)
        for piece in self.pieces(rows):
            out[piece.indices] = piece.X[piece.places]
        return out

    def pieces(self, rows: Array) -> Iterator[Piece]:
        """Some rows, a piece at a time, which lasts until the next one is asked for."""
        places = self._place_of_row[rows]
        in_memory = np.flatnonzero(places >= 0)
        self._last_asked[places[in_memory]] = self._evaluation
        if in_memory.size:
            yield Piece(self.kept, places[in_memory].astype(np.int64), in_memory)
        missing = np.flatnonzero(places < 0)
        if (np.diff(rows[missing]) < 0).any():
            missing = missing[np.argsort(rows[missing], kind="stable")]
        for batch in self._batches(rows[missing]):
            indices = missing[batch.start : batch.stop]
            yield Piece(batch.buffer, batch.places, indices)
            self._admit(rows[indices], batch.buffer, batch.places)

    def keep(self, rows: Array) -> Array:
        """Keep these rows in memory until the next call; return their places in `kept`.

        An evaluation ends with it: others are given up where there was no room for all.
        """
        places = self._place_of_row[rows]
        # they count as asked for in the next evaluation, so that none of them is given up
        self._last_asked[places[places >= 0]] = self._evaluation + 1
        missing = np.unique(rows[places < 0])
        needed = missing.size - self._free.size
        wanted = needed
        if self._short_of_room:  # then room is made for rows that the next evaluation asks for
            wanted += self.kept.shape[0] // 8
        self._give_up(wanted, needed)
        for batch in self._batches(missing):
            self._admit(missing[batch.start : batch.stop], batch.buffer, batch.places)
        self._evaluation += 1
        self._short_of_room = False
        return self._place_of_row[rows].astype(np.int64)

    def lend(self, n_rows: int) -> Array:
        """Memory of so many rows, until anything else is asked for; what it held is forgotten."""
        capacity = self.kept.shape[0]
        self._forget(np.arange(capacity - n_rows, capacity))
        return self.kept[capacity - n_rows :]

    def _give_up(self, wanted, needed):
        """Free places of rows that were not asked for lately, and as many as needed in any case."""
        if wanted <= 0:
            return
        taken = self._row_at_place >= 0
        given_up = np.flatnonzero(taken & (self._last_asked <= self._evaluation - _IDLE))
        if given_up.size < needed:
            candidates = np.flatnonzero(taken & (self._last_asked <= self._evaluation))
            oldest_first = np.argsort(self._last_asked[candidates], kind="stable")
            given_up = candidates[oldest_first][:needed]
        self._forget(given_up)

    def _forget(self, places):
        places = places[self._row_at_place[places] >= 0]  # the others are free already
        self._place_of_row[self._row_at_place[places]] = -1
        self._row_at_place[places] = -1
        self._free = np.concatenate([self._free, places.astype(np.int32)])

    def _admit(self, rows, X, places):
        """Keep some sorted rows ``X[places]``, as far as there is room."""
        distinct = np.flatnonzero(np.diff(rows, prepend=-1))  # a row may be asked for twice
        distinct = distinct[: self._free.size]
        self._short_of_room |= distinct.size == self._free.size
        if not distinct.size:
            return
        chosen, self._free = np.split(self._free, [distinct.size])
        self.kept[chosen] = X[places[distinct]]
        self._place_of_row[rows[distinct]] = chosen
        self._row_at_place[chosen] = rows[distinct]
        self._last_asked[chosen] = self._evaluation

    def _batches(self, rows):
        """Read sorted rows, each `_Batch` while the one before is in work."""
        if not rows.size:
            return
        steps = np.diff(rows)
        # rows that are close to each other are one run, read with what lies between them
        is_break = steps > self._largest_gap
        run_ends = np.append(np.flatnonzero(is_break) + 1, rows.size)
        # where each row comes to lie, if the runs are written one after the other
        offsets = np.concatenate([[0], np.cumsum(np.where(is_break, 1, steps))])
        # a batch ends where the next row would lie beyond its buffer
        size = self._buffers.shape[1]
        bounds = np.searchsorted(offsets, np.arange(0, offsets[-1] + 1 + size, size))
        ranges = [(int(start), int(stop)) for start, stop in pairwise(bounds) if start < stop]
        with ThreadPoolExecutor(1) as reader:  # a thread that does not outlive the reading

            def submit(i):
                start, stop = ranges[i]
                buffer = self._buffers[i % 2]  # in turn: the other one is in work
                return reader.submit(self._fill, buffer, rows, offsets, run_ends, start, stop)

            read = submit(0)
            for i, (start, stop) in enumerate(ranges):
                places = read.result()
                if i + 1 < len(ranges):
                    read = submit(i + 1)
                yield _Batch(self._buffers[i % 2], places, start, stop)

    def _fill(self, buffer, rows, offsets, run_ends, start, stop):
        """Read ``rows[start:stop]``, run after run; return their places in the buffer."""
        places = offsets[start:stop] - offsets[start]
        first = start
        for run_end in run_ends[np.searchsorted(run_ends, start, side="right") :]:
            last = min(int(run_end), stop)
            place = places[first - start]
            n_rows = int(rows[last - 1] - rows[first]) + 1
            self._read(int(rows[first]), buffer[place : place + n_rows])
            self.rows_read += n_rows
            first = last
            if first == stop:
                return places
        raise AssertionError("the runs end with the rows")
