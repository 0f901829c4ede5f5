"""How often each value of a column occurs, whatever the order of the rows and of parts of them.

    bin(x) = key(x) >> bits

where key is x as a whole number, in the same order: its sign, exponent and digits. In memory bits
is 0, and every value has its own bin. Where rows come in parts, at most so many bins are kept:
`bits` is the smallest number for which all values together fill no more of them. That number, the
count and the largest value of each bin are the same however the rows are dealt out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from structsvm_papk._types import Array

_COLUMNS_AT_A_TIME = 8
MOST_BINS = 1 << 12  # a bin then holds few of the rows between two of 16 quantiles


class _Bins(NamedTuple):
    values: Array
    counts: Array


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
    """

    values: Array
    counts: Array
    bits: int = 0

    @classmethod
    def of(cls, column: Array) -> ValueCounts:
        """Of all values of a column."""
        ordered = np.sort(column[~np.isnan(column)]).astype(np.float64) + 0.0  # -0 is 0
        if not ordered.size:
            return cls(ordered, np.zeros(0, dtype=np.int64))
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        return cls(ordered[starts], np.diff(starts, append=ordered.size))

    @classmethod
    def joined(cls, parts: Sequence[ValueCounts], most: int = MOST_BINS) -> ValueCounts:
        """Of the rows of several parts, in at most so many bins, two or more."""
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.argsort(values)
        bins = _Bins(values[order], counts[order])
        bits = max(part.bits for part in parts)
        apart = _first_difference(bins.values)
        distinct = np.sort(apart[apart > 0])
        if distinct.size >= most:
            bits = max(bits, int(distinct[-most]).bit_length())
        if not values.size:
            return cls(values, counts, bits)
        # neighbours are in one bin where no digit of the key that counts differs
        last = np.flatnonzero(np.append(apart >> np.uint64(bits) != 0, True))
        ends = np.cumsum(bins.counts)[last]
        return cls(bins.values[last], np.diff(ends, prepend=0), bits)


def _first_difference(values: Array) -> Array:
    """In which digits of the key neighbours of increasing values differ."""
    raw = values.view(np.int64)
    keys = raw ^ ((raw >> 63) & np.iinfo(np.int64).max)  # in the order of the values
    return (keys[1:] ^ keys[:-1]).view(np.uint64)


def counts_of_columns(X: Array, rows: Array, most: int | None = None) -> list[ValueCounts]:
    """Of each column of a dense matrix, in some of its rows; `most`: in so many bins at most."""
    in_order = np.sort(rows)  # their order does not count, and so the matrix is read in its own
    all_rows = in_order.size == X.shape[0] and bool((np.diff(in_order) == 1).all())
    counts = []
    for j in range(0, X.shape[1], _COLUMNS_AT_A_TIME):
        some = X[:, j : j + _COLUMNS_AT_A_TIME]
        columns = np.ascontiguousarray((some if all_rows else some[in_order]).T)
        for values in columns:
            column = ValueCounts.of(values)
            counts.append(column if most is None else ValueCounts.joined([column], most))
    return counts


def joined_counts(
    parts: Sequence[Sequence[ValueCounts]], most: int = MOST_BINS
) -> list[ValueCounts]:
    """Of each column, in the rows of several parts."""
    return [ValueCounts.joined(columns, most) for columns in zip(*parts, strict=True)]
