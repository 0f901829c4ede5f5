"""How often each value of a column occurs, whatever the order of the rows and of parts of them.

    bin(x) = key(x) >> bits

where key is x as a whole number, in the same order: its sign, exponent and digits. In memory bits
is 0. Where rows come in parts, at most so many bins are kept: `bits` is the smallest number for
which all values together fill no more of them. That number, the count and the largest value of each
bin are the same however the rows are dealt out.

To sort a long column takes a large part of a fit, and a quantile is one value of it. So its values
are put into some thousand bins, and whoever looks at a bin has the values in it told apart:
`ValueCounts.opened`. Quantiles are exact, and do not depend on where bins begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from structsvm_papk._jit import kernel, read_only
from structsvm_papk._types import Array

_COLUMNS_AT_A_TIME = 8
_DOUBLE = float(np.finfo(np.float64).eps)
MOST_BINS = 1 << 12  # a bin then holds few of the rows between two of 16 quantiles
_LONG = 1 << 14  # rows of a column that is not sorted
_DIGITS = 15  # of the distance from the middle, in float32, that bins do not tell apart
_NUMBERS = (1 << (32 - _DIGITS)) + 1  # that bins may have, with the one of NaN
_FEWEST_BINS = 64  # with fewer, or one of several values with such a share of the rows,
_LARGEST_SHARE = 16  # a column is sorted
_FOR_MIDDLE = 1000  # values, whichever they are: what is counted does not depend on the middle


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
    resolution : float
        Relative distance of neighbouring numbers of the column's type, `eps` of `numpy.finfo`.
    """

    values: Array
    counts: Array
    bits: int = 0
    resolution: float = _DOUBLE

    @classmethod
    def of(cls, column: Array) -> ValueCounts:
        """Of all values of a column."""
        ordered = np.sort(column[~np.isnan(column)]).astype(np.float64) + 0.0  # -0 is 0
        if not ordered.size:
            return cls(ordered, np.zeros(0, dtype=np.int64), resolution=_resolution(column))
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        counts = np.diff(starts, append=ordered.size)
        return cls(ordered[starts], counts, resolution=_resolution(column))

    @classmethod
    def joined(cls, parts: Sequence[ValueCounts], most: int = MOST_BINS) -> ValueCounts:
        """Of the rows of several parts, in at most so many bins, two or more."""
        values = np.concatenate([part.values for part in parts])
        counts = np.concatenate([part.counts for part in parts])
        order = np.argsort(values)
        bins = _Bins(values[order], counts[order])
        bits = max(part.bits for part in parts)
        resolution = max(part.resolution for part in parts)
        apart = _first_difference(bins.values)
        distinct = np.sort(apart[apart > 0])
        if distinct.size >= most:
            bits = max(bits, int(distinct[-most]).bit_length())
        if not values.size:
            return cls(values, counts, bits, resolution)
        # neighbours are in one bin where no digit of the key that counts differs
        last = np.flatnonzero(np.append(apart >> np.uint64(bits) != 0, True))
        ends = np.cumsum(bins.counts)[last]
        return cls(bins.values[last], np.diff(ends, prepend=0), bits, resolution)

    def opened(self, values: Array) -> ValueCounts:
        """The same, where the bins of these values are single values, as far as that is known.

        It is the same object where nothing changes.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class LongColumn(ValueCounts):
    """A column in memory, of which few bins are ever sorted.

    Attributes
    ----------
    column : ndarray of shape (n_rows,)
    bin_of_row : ndarray of int32, shape (n_rows,)
    lowest : ndarray of float64, shape (n_bins,)
        The smallest value of each bin.
    number : ndarray of int64, shape (n_bins,)
        What rows call the bin; of a single value nothing reads it.
    """

    column: Array
    bin_of_row: Array
    lowest: Array
    number: Array

    @classmethod
    def of(cls, column: Array) -> ValueCounts:
        """Of all values of a column; sorted where its bins are few."""
        some = column[:: -(-column.size // _FOR_MIDDLE)]
        some = some[~np.isnan(some)]
        middle = np.float64(np.median(some)) if some.size else 0.0
        bin_of_row = np.empty(column.size, dtype=np.int32)
        n = _write_bins(read_only(column), middle, bin_of_row)
        counts = np.zeros(n, dtype=np.int64)
        lowest = np.full(n, np.inf)
        highest = np.full(n, -np.inf)
        _count(read_only(column), bin_of_row, counts, lowest, highest)
        number = np.flatnonzero(counts)
        lowest = lowest[number] + 0.0  # -0 is 0
        values = highest[number] + 0.0
        counts = counts[number]
        of_several = counts[lowest < values]
        if not of_several.size:
            return ValueCounts(values, counts, resolution=_resolution(column))
        if number.size < _FEWEST_BINS or of_several.max() > column.size // _LARGEST_SHARE:
            return ValueCounts.of(column)
        return cls(
            values=values,
            counts=counts,
            resolution=_resolution(column),
            column=column,
            bin_of_row=bin_of_row,
            lowest=lowest,
            number=number,
        )

    def opened(self, values: Array) -> ValueCounts:
        places = np.searchsorted(self.values, values)
        places = places[self.lowest[places] < self.values[places]]
        if not places.size:
            return self
        is_opened = np.zeros(_NUMBERS, dtype=bool)
        is_opened[self.number[places]] = True
        inside = ValueCounts.of(self.column[np.flatnonzero(is_opened[self.bin_of_row])])
        kept = np.delete(np.arange(self.values.size), places)
        at = np.searchsorted(self.values[kept], inside.values)
        return replace(
            self,
            values=np.insert(self.values[kept], at, inside.values),
            counts=np.insert(self.counts[kept], at, inside.counts),
            lowest=np.insert(self.lowest[kept], at, inside.values),
            number=np.insert(self.number[kept], at, 0),
        )


def _resolution(column: Array) -> float:
    return float(np.finfo(np.result_type(column, np.float32)).eps)  # whole numbers as float64


def _first_difference(values: Array) -> Array:
    """In which digits of the key neighbours of increasing values differ."""
    raw = values.view(np.int64)
    keys = raw ^ ((raw >> 63) & np.iinfo(np.int64).max)  # in the order of the values
    return (keys[1:] ^ keys[:-1]).view(np.uint64)


@kernel
def _write_bins(column: Array, middle: float, bins: Array) -> int:
    """Write the bin of each value, the smaller the lower from 0 on, and return their number.

    A bin is as wide as a share of its distance from the middle. NaN are in one beyond the others.
    """
    one = np.empty(1, dtype=np.float32)
    first = np.int32(2**31 - 1)
    last = np.int32(-(2**31))
    for i in range(column.size):
        if np.isnan(column[i]):
            continue
        one[0] = np.float64(column[i]) - middle + 0.0  # -0 is 0
        raw = one.view(np.int32)[0]
        bins[i] = (raw ^ ((raw >> 31) & np.int32(2**31 - 1))) >> _DIGITS
        first = min(first, bins[i])
        last = max(last, bins[i])
    n = max(int(last) - int(first) + 1, 0)
    for i in range(column.size):
        bins[i] = n if np.isnan(column[i]) else bins[i] - first
    return n


@kernel
def _count(column: Array, bins: Array, counts: Array, lowest: Array, highest: Array) -> None:
    for i in range(column.size):
        b = bins[i]
        if b < counts.size:
            counts[b] += 1
            lowest[b] = min(lowest[b], np.float64(column[i]))
            highest[b] = max(highest[b], np.float64(column[i]))


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
            if most is not None:
                yield ValueCounts.joined([ValueCounts.of(values)], most)
            elif values.size < _LONG:
                yield ValueCounts.of(values)
            else:
                yield LongColumn.of(values)


def joined_counts(
    parts: Sequence[Iterable[ValueCounts]], most: int = MOST_BINS
) -> list[ValueCounts]:
    """Of each column, in the rows of several parts."""
    return [ValueCounts.joined(columns, most) for columns in zip(*parts, strict=True)]
