"""Columns of few values, each with a weight of its own: text, categories, crossed columns.

Column j takes the levels 0 .. L_j - 1, and stands for an indicator of each. They are not written
out: a row has for each column its level, a byte, so that a score is a look-up for each column, and
a sum of rows adds each coefficient at one place. A value that is none of the levels (a missing one,
or one that training did not have) has the number L_j, and adds nothing.

In the kernels u counts users, p list positions, f columns, c levels. Tables have a row for each
column and a place for each level, as many as the column of most levels has, and for that number.

A column may have one more weight, for a pattern: a number for each of its levels. A row of level l
then has ``w_l + v pattern_l`` of its weights w_l and v. Where levels follow the pattern the penalty
is smaller than on a weight for each of them alone.
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
    patterns : ndarray of shape (n_levels.sum(),), optional
        The pattern of each column, one after the other; their weights come after those of levels.
    """

    dtype = np.dtype(np.float64)

    def __init__(
        self,
        codes: Array,
        n_levels: Array,
        stiff: float = 1.0,
        patterns: Array | None = None,
    ) -> None:
        self.codes = codes
        self.n_levels = n_levels
        self.stiff = stiff
        self.patterns = patterns
        self.n_rows = codes.shape[0]
        self.n_weights = int(n_levels.sum()) + (0 if patterns is None else n_levels.size)

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
    def _shape(self) -> tuple[int, int]:
        """Of a table: a row for each column, a place for each level and one for none of them."""
        return self.n_columns, int(self.n_levels.max()) + 1

    @cached_property
    def _place_of_level(self) -> Array:
        """The place in a table of each level."""
        return np.flatnonzero(np.arange(self._shape[1]) < self.n_levels[:, None])

    @cached_property
    def _first_levels(self) -> Array:
        """The first level of each column among those of all."""
        return np.cumsum(self.n_levels) - self.n_levels

    def _at_places(self, of_levels: Array) -> Array:
        """A table with a number for each level; 0 for none of them."""
        table = np.zeros(self._shape)
        table.flat[self._place_of_level] = of_levels
        return table

    def _table(self, w: Array) -> Array:
        """What each level adds to a score."""
        return self._at_places(with_patterns(w, self.n_levels, self.patterns))

    def _of_weights(self, of_levels: Array) -> Array:
        """Sums over the rows of each level, along the last axis, and those of each pattern."""
        if self.patterns is None:
            return of_levels
        of_patterns = np.add.reduceat(of_levels * self.patterns, self._first_levels, axis=-1)
        return np.concatenate([of_levels, of_patterns], axis=-1)

    # --- products -------------------------------------------------------------------------------

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        sums = np.zeros((bounds.size - 1, self._place_of_level.size))
        table = np.zeros(self._shape)
        _sums(read_only(self.codes), rows, coef, active, bounds, table, self._place_of_level, sums)
        out += self._of_weights(sums)

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        sums = np.zeros((*self._shape, coef.shape[0]))
        _combined_sums(self.codes[rows], np.ascontiguousarray(coef.T), sums)
        of_levels = sums.reshape(-1, coef.shape[0])[self._place_of_level]
        return np.ascontiguousarray(self._of_weights(of_levels.T))

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        _in_order(read_only(self.codes), rows, self._table(w), out)

    # --- rows -----------------------------------------------------------------------------------

    def take(self, rows: Any) -> LevelColumns:
        codes = np.ascontiguousarray(self.codes[rows])
        return LevelColumns(codes, self.n_levels, self.stiff, self.patterns)

    def join(self, others: Sequence[LevelColumns]) -> LevelColumns:
        codes = np.concatenate([self.codes, *(other.codes for other in others)])
        return LevelColumns(codes, self.n_levels, self.stiff, self.patterns)

    def toarray(self) -> Array:
        level = self._place_of_level % self._shape[1]
        of_levels = np.repeat(self.codes, self.n_levels, axis=1) == level
        return self._of_weights(of_levels.astype(np.float64))

    def inner_products(self, factors: Array) -> Array:
        n_of_levels = int(self.n_levels.sum())
        squares = self._at_places(np.square(factors[:n_of_levels]))
        products = np.zeros((self.n_rows, self.n_rows))
        _add_of_same_levels(read_only(self.codes), squares, products)
        if self.patterns is not None:
            pattern = self._at_places(self.patterns)
            of_rows = pattern[np.arange(self.n_columns), self.codes] * factors[n_of_levels:]
            products += of_rows @ of_rows.T
        return products

    def content(self) -> Iterator[Any]:
        yield "levels"
        yield self.n_levels
        yield self.codes
        if self.patterns is not None:
            yield self.patterns

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        DenseColumns(self.codes).digest(rows, indptr, gains, digests)

    # --- what the columns are like --------------------------------------------------------------

    def spread(self, rows: Array, indptr: Array) -> Spread:
        largest = np.ones(self.n_weights)
        if self.patterns is not None:
            of_patterns = np.maximum.reduceat(np.abs(self.patterns), self._first_levels)
            largest[self.patterns.size :] = of_patterns
        return Spread(
            largest=largest,
            within=largest,
            shifted=np.zeros(self.n_weights, dtype=bool),
            row_terms=self.n_weights - int(self.n_levels.sum()) + self.n_columns,
        )

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        squares = np.zeros(self._shape)
        _squares(read_only(self.codes), rows, indptr, squares)
        deviation = np.sqrt(squares.flat[self._place_of_level] / max(rows.size, 1))
        low = np.zeros(deviation.size)
        high = np.ones(deviation.size)
        if self.patterns is not None:
            several = np.full(self.n_columns, np.nan)
            of_patterns = self._deviations_of(self._at_places(self.patterns), rows, indptr)
            deviation = np.concatenate([deviation, of_patterns])
            low = np.concatenate([low, several])
            high = np.concatenate([high, several])
        return Variation(deviation=deviation, low=low, high=high, n_rows=rows.size)

    def term_deviations(self, w: Array, rows: Array, indptr: Array, deviation: Array) -> Array:
        return self._deviations_of(self._table(w), rows, indptr)

    def _deviations_of(self, table: Array, rows: Array, indptr: Array) -> Array:
        """Deviation within users of what each column adds by a table."""
        squares = np.zeros(self.n_columns)
        _term_squares(read_only(self.codes), rows, indptr, table, squares)
        return np.asarray(np.sqrt(squares / max(rows.size, 1)))

    def stiffness(self, stiffness: float) -> Array:
        return np.full(self.n_weights, self.stiff)

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        n_of_levels = int(self.n_levels.sum())
        if weight >= n_of_levels:
            column = weight - n_of_levels
            assert self.patterns is not None
            pattern = self._at_places(self.patterns)[column]
            return ColumnValues(column, ", pattern,", pattern[self.codes[rows, column]])
        column = int(np.repeat(np.arange(self.n_columns), self.n_levels)[weight])
        level = weight - int(self.n_levels[:column].sum())
        return ColumnValues(column, f", level {level},", self.codes[rows, column] == level)


def with_patterns(w: Array, n_levels: Array, patterns: Array | None) -> Array:
    """What each level adds to a score: its own weight, and that of the pattern of its column."""
    if patterns is None:
        return w
    return w[: patterns.size] + patterns * np.repeat(w[patterns.size :], n_levels)


@kernel
def _in_order(codes: Array, rows: Array, table: Array, out: Array) -> None:
    for p in range(rows.size):
        i = rows[p]
        total = out[p]
        for f in range(table.shape[0]):
            total += table[f, codes[i, f]]
        out[p] = total


@kernel
def _sums(
    codes: Array,
    rows: Array,
    coef: Array,
    active: Array,
    bounds: Array,
    table: Array,
    places: Array,
    sums: Array,
) -> None:
    """Write the sums of each part; `table` holds those of one, and is 0 before and after it."""
    of_places = table.reshape(table.size)
    for part in range(bounds.size - 1):
        for p in active[bounds[part] : bounds[part + 1]]:
            i = rows[p]
            for f in range(table.shape[0]):
                table[f, codes[i, f]] += coef[p]
        for level in range(places.size):
            sums[part, level] = of_places[places[level]]
        of_places[:] = 0.0


@kernel
def _combined_sums(codes: Array, coef: Array, sums: Array) -> None:
    for i in range(codes.shape[0]):
        for f in range(codes.shape[1]):
            own = sums[f, codes[i, f]]
            for part in range(own.size):
                own[part] += coef[i, part]


@kernel
def _add_of_same_levels(codes: Array, squares: Array, products: Array) -> None:
    """Add to ``products[i, j]`` the squares of the levels that rows i and j have both."""
    for i in range(codes.shape[0]):
        for j in range(i + 1):
            total = 0.0
            for f in range(codes.shape[1]):
                if codes[i, f] == codes[j, f]:
                    total += squares[f, codes[i, f]]
            products[i, j] += total
            if i != j:
                products[j, i] += total


@kernel
def _squares(codes: Array, rows: Array, indptr: Array, squares: Array) -> None:
    """Add ``n_c (1 - n_c / n)`` of every user: of n rows n_c have level c."""
    count = np.zeros(squares.shape)
    for u in range(indptr.size - 1):
        n = indptr[u + 1] - indptr[u]
        for p in range(indptr[u], indptr[u + 1]):
            i = rows[p]
            for f in range(squares.shape[0]):
                count[f, codes[i, f]] += 1.0
        for p in range(indptr[u], indptr[u + 1]):
            i = rows[p]
            for f in range(squares.shape[0]):
                c = codes[i, f]
                squares[f, c] += count[f, c] * (1.0 - count[f, c] / n)
                count[f, c] = 0.0


@kernel
def _term_squares(codes: Array, rows: Array, indptr: Array, table: Array, squares: Array) -> None:
    """Add the squared distances from the user's mean of what each column adds.

    Taken from what it adds to the user's first row: what is constant has a distance of 0.
    """
    first = np.empty(squares.size)
    mean = np.empty(squares.size)
    for u in range(indptr.size - 1):
        n = indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        for f in range(squares.size):
            first[f] = table[f, codes[rows[indptr[u]], f]]
        mean[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i = rows[p]
            for f in range(squares.size):
                mean[f] += (table[f, codes[i, f]] - first[f]) / n
        for p in range(indptr[u], indptr[u + 1]):
            i = rows[p]
            for f in range(squares.size):
                away = table[f, codes[i, f]] - first[f] - mean[f]
                squares[f] += away * away
