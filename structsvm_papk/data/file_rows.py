"""A matrix whose rows are in a file: some are kept in memory, the others are read when needed."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, pairwise
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback

BATCH_BYTES = 1 << 22  # read at a time, while the batch before is in work
_GAP_BYTES = 1 << 15  # between two rows that is read along with them: as long as a call takes
_GAPS = 32  # of the longest such gaps make a batch at least
_IDLE = 3  # evaluations that a row may be kept without being asked for
_PLACE_BYTES = 20  # of a row that is kept, beside its features
_ROW_BYTES = 4  # of every row


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
        self._gap = max(1, min(_GAP_BYTES, batch_bytes // _GAPS) // row_bytes)
        batch = max(1, min(batch_bytes // row_bytes, shape[0]))
        self._buffers = np.empty((2, batch, shape[1]), dtype)
        self.kept = np.empty((capacity, shape[1]), dtype)  # counts as far as it is written
        self._place = np.full(shape[0], -1, dtype=np.int32)
        self._row = np.full(capacity, -1, dtype=np.int64)
        self._asked = np.zeros(capacity, dtype=np.int32)  # the evaluation
        self._free = np.arange(capacity, dtype=np.int32)
        self._now = 1
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
        for X, places, at in self.pieces(rows):
            out[at] = X[places]
        return out

    def pieces(self, rows: Array) -> Iterator[tuple[Array, Array, Array]]:
        """Some rows, a piece at a time: ``(X, places, at)``, where ``X[places]`` is ``rows[at]``.

        A piece lasts until the next one is asked for.
        """
        places = self._place[rows]
        kept = np.flatnonzero(places >= 0)
        self._asked[places[kept]] = self._now
        if kept.size:
            yield self.kept, places[kept].astype(np.int64), kept
        missing = np.flatnonzero(places < 0)
        if (np.diff(rows[missing]) < 0).any():
            missing = missing[np.argsort(rows[missing], kind="stable")]
        for X, places, lo, hi in self._batches(rows[missing]):
            at = missing[lo:hi]
            yield X, places, at
            self._admit(rows[at], X, places)

    def keep(self, rows: Array) -> Array:
        """Keep these rows in memory until the next call; return their places in `kept`.

        An evaluation ends with it: others are given up where there was no room for all.
        """
        places = self._place[rows]
        self._asked[places[places >= 0]] = self._now + 1
        missing = np.unique(rows[places < 0])
        wanted = missing.size + (self._row.size // 8 if self._short_of_room else 0)
        self._give_up(wanted - self._free.size, missing.size - self._free.size)
        for X, at, lo, hi in self._batches(missing):
            self._admit(missing[lo:hi], X, at)
        self._now += 1
        self._short_of_room = False
        return self._place[rows].astype(np.int64)

    def lend(self, n_rows: int) -> Array:
        """Memory of so many rows, until anything else is asked for; what it held is forgotten."""
        self._forget(np.arange(self._row.size)[self._row.size - n_rows :])
        return self.kept[self._row.size - n_rows :]

    def _give_up(self, wanted, needed):
        """Free places of rows that were not asked for lately, and as many as needed in any case."""
        if wanted <= 0:
            return
        idle = np.flatnonzero((self._row >= 0) & (self._asked <= self._now - _IDLE))
        if idle.size < needed:
            others = np.flatnonzero((self._row >= 0) & (self._asked <= self._now))
            idle = others[np.argsort(self._asked[others], kind="stable")][:needed]
        self._forget(idle)

    def _forget(self, places):
        places = places[self._row[places] >= 0]
        self._place[self._row[places]] = -1
        self._row[places] = -1
        self._free = np.concatenate([self._free, places.astype(np.int32)])

    def _admit(self, rows, X, places):
        """Keep some sorted rows ``X[places]``, as far as there is room."""
        first = np.flatnonzero(np.diff(rows, prepend=-1))[: self._free.size]
        self._short_of_room |= first.size == self._free.size
        if not first.size:
            return
        chosen, self._free = np.split(self._free, [first.size])
        self.kept[chosen] = X[places[first]]
        self._place[rows[first]] = chosen
        self._row[chosen] = rows[first]
        self._asked[chosen] = self._now

    def _batches(self, rows):
        """Read sorted rows, one batch ahead: ``(X, places, lo, hi)`` for ``rows[lo:hi]``."""
        if not rows.size:
            return
        steps = np.diff(rows)
        breaks = steps > self._gap
        # where each row comes to lie, if the runs are written one after the other
        offsets = np.concatenate([[0], np.cumsum(np.where(breaks, 1, steps))])
        size = self._buffers.shape[1]
        bounds = np.searchsorted(offsets, np.arange(0, offsets[-1] + 1 + size, size))
        plan = [(int(lo), int(hi)) for lo, hi in pairwise(bounds) if lo < hi]
        ends = np.append(np.flatnonzero(breaks) + 1, rows.size)
        with ThreadPoolExecutor(1) as reader:  # a thread that does not outlive the reading
            reads = (
                reader.submit(self._fill, self._buffers[i % 2], rows, offsets, ends, *part)
                for i, part in enumerate(plan)
            )
            ahead = [next(reads)]
            for i, (lo, hi) in enumerate(plan):
                places = ahead[0].result()
                ahead = list(islice(reads, 1))
                yield self._buffers[i % 2], places, lo, hi

    def _fill(self, buffer, rows, offsets, ends, lo, hi):
        """Read ``rows[lo:hi]``, run after run; return their places in the buffer."""
        places = offsets[lo:hi] - offsets[lo]
        first = lo
        for end in ends[np.searchsorted(ends, lo, side="right") :]:
            last = min(int(end), hi)
            place = places[first - lo]
            n_rows = int(rows[last - 1] - rows[first]) + 1
            self._read(int(rows[first]), buffer[place : place + n_rows])
            self.rows_read += n_rows
            first = last
            if first == hi:
                return places
        raise AssertionError("the runs end with the rows")
