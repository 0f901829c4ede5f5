"""Columns of few values, each with a weight of its own: text, categories, crossed columns.

Column j takes the levels 0 .. L_j - 1, and stands for an indicator of each. They are not written
out: a row has for each column its level, a byte, so that a score is a look-up for each column, and
a sum of rows adds each coefficient at one place. A value that is none of the levels (a missing one,
or one that training did not have) has the number L_j, and adds nothing.

In the kernels u counts users, p list positions, f columns, c levels of all columns; every column
has one more place than levels, for that number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._jit import kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import Columns, ColumnValues, Spread, Variation
from structsvm_papk.data.columns.dense import DenseColumns

MOST_LEVELS = 254  # a level is a byte, and one number means none of them


class LevelColumns(Columns):
    """Columns of levels.

    Parameters
    ----------
    codes : ndarray of uint8, shape (n_rows, n_columns)
        The level of every row in every column, or the number of levels for none.
    n_levels : ndarray of int64, shape (n_columns,)
    stiff : float
        How many times stronger the penalty is on the weights than on that of a line.
    names : sequence of str, optional
        What messages call the columns.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        codes: Array,
        n_levels: Array,
        stiff: float = 1.0,
        names: Sequence[str] | None = None,
    ) -> None:
        self.codes = codes
        self.n_levels = n_levels
        self.stiff = stiff
        self.names = names
        self.n_rows = codes.shape[0]
        self.n_weights = int(n_levels.sum())

    @property
    def n_entries(self) -> int:
        return self.codes.size

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    @property
    def n_columns(self) -> int:
        return self.n_levels.size

    @cached_property
    def starts(self) -> Array:
        """The first place of each column among those of all."""
        return np.concatenate([[0], np.cumsum(self.n_levels + 1)])

    @cached_property
    def _place_of_weight(self) -> Array:
        """The place of each weight: all but the last of each column."""
        has_weight = np.ones(self.starts[-1], dtype=bool)
        has_weight[self.starts[1:] - 1] = False
        return np.flatnonzero(has_weight)

    def _table(self, w: Array) -> Array:
        table = np.zeros(self.starts[-1])
        table[self._place_of_weight] = w
        return table

    # --- products -------------------------------------------------------------------------------

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        sums = np.zeros((bounds.size - 1, self.starts[-1]))
        _sums(read_only(self.codes), rows, coef, active, bounds, self.starts, sums)
        out += sums[:, self._place_of_weight]

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        sums = np.zeros((self.starts[-1], coef.shape[0]))
        _combined_sums(self.codes[rows], np.ascontiguousarray(coef.T), self.starts, sums)
        return np.ascontiguousarray(sums[self._place_of_weight].T)

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        _in_order(read_only(self.codes), rows, self.starts, self._table(w), out)

    # --- rows -----------------------------------------------------------------------------------

    def take(self, rows: Any) -> LevelColumns:
        codes = np.ascontiguousarray(self.codes[rows])
        return LevelColumns(codes, self.n_levels, self.stiff, self.names)

    def join(self, others: Sequence[LevelColumns]) -> LevelColumns:
        codes = np.concatenate([self.codes, *(other.codes for other in others)])
        return LevelColumns(codes, self.n_levels, self.stiff, self.names)

    def toarray(self) -> Array:
        place = self.starts[:-1] + self.codes
        written = np.zeros((self.n_rows, self.starts[-1]))
        np.put_along_axis(written, place, 1.0, axis=1)
        return written[:, self._place_of_weight]

    def content(self) -> Iterator[Any]:
        yield "levels"
        yield self.n_levels
        yield self.codes

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        DenseColumns(self.codes).digest(rows, indptr, gains, digests)

    # --- what the columns are like --------------------------------------------------------------

    def spread(self, rows: Array, indptr: Array) -> Spread:
        one = np.ones(self.n_weights)
        return Spread(
            largest=one,
            within=one,
            shifted=np.zeros(self.n_weights, dtype=bool),
            row_terms=self.n_columns,
        )

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        squares = np.zeros(self.starts[-1])
        _squares(read_only(self.codes), rows, indptr, self.starts, squares)
        return Variation(
            deviation=np.sqrt(squares[self._place_of_weight] / max(rows.size, 1)),
            low=np.zeros(self.n_weights),
            high=np.ones(self.n_weights),
            n_rows=rows.size,
        )

    def term_deviations(self, w: Array, rows: Array, indptr: Array, deviation: Array) -> Array:
        squares = np.zeros(self.n_columns)
        codes = read_only(self.codes)
        _term_squares(codes, rows, indptr, self.starts, self._table(w), squares)
        return np.asarray(np.sqrt(squares / max(rows.size, 1)))

    def stiffness(self, stiffness: float) -> Array:
        return np.full(self.n_weights, self.stiff)

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        column = int(np.repeat(np.arange(self.n_columns), self.n_levels)[weight])
        level = weight - int(self.n_levels[:column].sum())
        return ColumnValues(column, f", level {level},", self.codes[rows, column] == level)


@kernel
def _in_order(codes: Array, rows: Array, starts: Array, table: Array, out: Array) -> None:
    in_fours = rows.size - rows.size % 4
    for p in range(0, in_fours, 4):  # four sums at a time: one alone waits for its own additions
        row_0 = codes[rows[p]]
        row_1 = codes[rows[p + 1]]
        row_2 = codes[rows[p + 2]]
        row_3 = codes[rows[p + 3]]
        total_0 = out[p]
        total_1 = out[p + 1]
        total_2 = out[p + 2]
        total_3 = out[p + 3]
        for f in range(row_0.size):
            first = starts[f]
            total_0 += table[first + row_0[f]]
            total_1 += table[first + row_1[f]]
            total_2 += table[first + row_2[f]]
            total_3 += table[first + row_3[f]]
        out[p] = total_0
        out[p + 1] = total_1
        out[p + 2] = total_2
        out[p + 3] = total_3
    for p in range(in_fours, rows.size):
        row = codes[rows[p]]
        total = out[p]
        for f in range(row.size):
            total += table[starts[f] + row[f]]
        out[p] = total


@kernel
def _sums(
    codes: Array,
    rows: Array,
    coef: Array,
    active: Array,
    bounds: Array,
    starts: Array,
    sums: Array,
) -> None:
    for part in range(bounds.size - 1):
        own = sums[part]
        for p in active[bounds[part] : bounds[part + 1]]:
            row = codes[rows[p]]
            for f in range(row.size):
                own[starts[f] + row[f]] += coef[p]


@kernel
def _combined_sums(codes: Array, coef: Array, starts: Array, sums: Array) -> None:
    for i in range(codes.shape[0]):
        for f in range(codes.shape[1]):
            own = sums[starts[f] + codes[i, f]]
            for part in range(own.size):
                own[part] += coef[i, part]


@kernel
def _squares(codes: Array, rows: Array, indptr: Array, starts: Array, squares: Array) -> None:
    """Add ``n_c (1 - n_c / n)`` of every user: of n rows n_c have level c."""
    count = np.zeros(squares.size)
    for u in range(indptr.size - 1):
        n = indptr[u + 1] - indptr[u]
        for p in range(indptr[u], indptr[u + 1]):
            row = codes[rows[p]]
            for f in range(row.size):
                count[starts[f] + row[f]] += 1.0
        for p in range(indptr[u], indptr[u + 1]):
            row = codes[rows[p]]
            for f in range(row.size):
                c = starts[f] + row[f]
                squares[c] += count[c] * (1.0 - count[c] / n)
                count[c] = 0.0


@kernel
def _term_squares(
    codes: Array, rows: Array, indptr: Array, starts: Array, table: Array, squares: Array
) -> None:
    """Add the squared distances from the user's mean of what each column adds."""
    mean = np.empty(squares.size)
    for u in range(indptr.size - 1):
        mean[:] = 0.0
        n = max(indptr[u + 1] - indptr[u], 1)
        for p in range(indptr[u], indptr[u + 1]):
            for f in range(squares.size):
                mean[f] += table[starts[f] + codes[rows[p], f]] / n
        for p in range(indptr[u], indptr[u + 1]):
            for f in range(squares.size):
                away = table[starts[f] + codes[rows[p], f]] - mean[f]
                squares[f] += away * away
