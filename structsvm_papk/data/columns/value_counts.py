"""How often each value of a column occurs, whatever the order of the rows and of parts of them.

    bin(x) = key(x) >> bits

where key is x as a whole number, in the same order: its sign, exponent and digits. In memory bits
is 0. Where rows come in parts, at most so many bins are kept: `bits` is the smallest number for
which all values together fill no more of them. That number, the count and the largest value of each
bin are the same however the rows are dealt out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from structsvm_papk._types import Array

_COLUMNS_AT_A_TIME = 8
_DOUBLE = float(np.finfo(np.float64).eps)
MOST_BINS = 1 << 12  # a bin then holds few of the rows between two of 16 quantiles


@dataclass(frozen=True)
class ValueCounts:
    """The values of a column with their counts, NaN left out.

    Attributes
    ----------
    values : ndarray of float64, shape (n_bins,)
        The largest of each bin, increasing.
    counts : ndarray of int64, shape (n_bins,)
    bits : int
        Binary digits of the key that bins do not tell apart; 0: bins are single values.
    resolution : float
        Relative distance of neighbouring numbers of the column's type, `eps` of `numpy.finfo`.
    """

    values: Array
    counts: Array
    bits: int = 0
    resolution: float = _DOUBLE

    @cached_property
    def up_to(self) -> Array:
        """How many rows have each value or a lower one."""
        return np.cumsum(self.counts)

    @classmethod
    def of(cls, column: Array) -> ValueCounts:
        """Of all values of a column."""
        in_order = np.sort(column)  # NaN last
        known = in_order[: np.searchsorted(in_order, np.nan)].astype(np.float64) + 0.0  # -0 is 0
        last = np.flatnonzero(np.append(known[1:] != known[:-1], True)[: known.size])
        of_type = np.result_type(column, np.float32)  # whole numbers as float64
        counts = np.diff(last, prepend=-1)
        return cls(known[last], counts, resolution=float(np.finfo(of_type).eps))

    @classmethod
    def joined(cls, parts: Sequence[ValueCounts], most: int = MOST_BINS) -> ValueCounts:
        """Of the rows of several parts, in at most so many bins, two or more."""
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.argsort(values)
        values = values[order]
        bits = max(part.bits for part in parts)
        resolution = max(part.resolution for part in parts)
        apart = _first_difference(values)
        distinct = np.sort(apart[apart > 0])
        if distinct.size >= most:
            bits = max(bits, int(distinct[-most]).bit_length())
        if not values.size:
            return cls(values, counts, bits, resolution)
        # neighbours are in one bin where no digit of the key that counts differs
        last = np.flatnonzero(np.append(apart >> np.uint64(bits) != 0, True))
        ends = np.cumsum(counts[order])[last]
        return cls(values[last], np.diff(ends, prepend=0), bits, resolution)


def _first_difference(values: Array) -> Array:
    """In which digits of the key neighbours of increasing values differ."""
    raw = values.view(np.int64)
    keys = raw ^ ((raw >> 63) & np.iinfo(np.int64).max)  # in the order of the values
    return (keys[1:] ^ keys[:-1]).view(np.uint64)


def counts_of_columns(
    X: Array, rows: Array, most: int | None = None, columns: Array | None = None
) -> Iterator[ValueCounts]:
    """Of columns of a dense matrix, all by default, in some of its rows.

    `most`: in so many bins at most.
    """
    in_order = np.sort(rows)  # their order does not count, and so the matrix is read in its own
    all_rows = in_order.size == X.shape[0] and bool((np.diff(in_order) == 1).all())
    columns = np.arange(X.shape[1]) if columns is None else columns
    for j in range(0, columns.size, _COLUMNS_AT_A_TIME):
        some = X[:, columns[j : j + _COLUMNS_AT_A_TIME]]
        for values in np.ascontiguousarray((some if all_rows else some[in_order]).T):
            counts = ValueCounts.of(values)
            yield counts if most is None else ValueCounts.joined([counts], most)


def joined_counts(
    parts: Sequence[Iterable[ValueCounts]], most: int = MOST_BINS
) -> list[ValueCounts]:
    """Of each column, in the rows of several parts."""
    return [ValueCounts.joined(columns, most) for columns in zip(*parts, strict=True)]
