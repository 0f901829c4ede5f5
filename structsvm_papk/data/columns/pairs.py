"""Pairs of columns: a weight for each cell of two columns that are cut.

A column of numbers is cut into sixths of its rows, a column of levels has a cell for each. Missing
values are a cell of their own where training had some. A pair has at most 254 cells.

Where both columns count together a cell's weight is often about the product of its places in them.
So a fit has one more weight for each pair, for

    pattern of a cell  =  (its place in one column, -1 .. 1) (its place in the other)

beside those of cells, which the penalty holds to that pattern: few rows say what it is. The two are
added up when the fit is over, and a term has nothing but a weight for each cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.levels import MOST_LEVELS, LevelColumns, with_patterns
from structsvm_papk.data.columns.terms import Cut, Pair
from structsvm_papk.data.columns.value_counts import ValueCounts

if TYPE_CHECKING:
    from structsvm_papk.data.columns.terms import AdditiveFunction, FilledRows

MOST_CELLS = MOST_LEVELS
# Of a column of numbers. With 20 pairs, on five sets of KEEL, average precision is .805 .814 .811
# .812 .809 with 4, 6, 8, 12, 15.
_CELLS = 6
_STIFF = 2.0  # how many times stronger the penalty is on a cell than on a level
_SMALL = 5.0  # rows that are added to those of a cell
_SWEEPS = 3  # over both columns, to fit a function of each
_UPDATES = 200_000_000  # pairs times rows that are looked at, at the most


@dataclass(frozen=True)
class ColumnCut:
    """A column and how it is cut."""

    column: int
    cut: Cut
    with_gap: bool

    @property
    def n_cells(self) -> int:
        """With that of missing values, where training had some."""
        return self.cut.n_cells + self.with_gap

    @property
    def places(self) -> Array:
        """Where each cell stands, from -1 to 1; 0 for levels and missing values: without order."""
        places = np.zeros(self.n_cells)
        if self.cut.edges is not None:
            places[: self.cut.n_cells] = np.linspace(-1.0, 1.0, self.cut.n_cells)
        return places

    def cells(self, rows: FilledRows) -> Array:
        """The cell of each row; -1 for what training did not have."""
        values = rows.X[:, self.column].astype(np.float64)
        if rows.holes is not None:
            values = np.where(rows.holes[:, self.column], np.nan, values)
        cells = self.cut.cells(values)
        cells[cells >= self.n_cells] = -1
        return cells


def cut_of_numbers(column: int, values: ValueCounts, with_gap: bool) -> ColumnCut:
    """A column of numbers, cut into sixths of its rows, or between values where they are few.

    A column of two values or more has two cells or more. Edges lie in the middle between two values
    that occur: a value that is rounded a little elsewhere stays in its cell.
    """
    distinct = values.values
    edges = distinct[1:]
    if edges.size >= _CELLS:
        shares = np.arange(1, _CELLS) / _CELLS
        edges = np.unique(distinct[np.searchsorted(values.up_to, shares * values.up_to[-1])])
    edges = edges[edges > distinct[0]]
    if not edges.size:  # nearly all rows have the lowest value: it, and the others
        edges = distinct[1:2]
    below = distinct[np.searchsorted(distinct, edges) - 1]
    middle = below + (edges - below) / 2
    edges = np.where(middle > below, middle, edges)
    return ColumnCut(column, Cut(edges, edges.size + 1), with_gap)


@dataclass(frozen=True)
class ColumnPair:
    """Two columns, and how they are cut."""

    first: ColumnCut
    second: ColumnCut

    @property
    def columns(self) -> tuple[int, int]:
        """Their numbers."""
        return self.first.column, self.second.column

    @property
    def n_cells(self) -> int:
        """Cells of both."""
        return self.first.n_cells * self.second.n_cells

    @property
    def pattern(self) -> Array:
        """The product of the places of each cell, shape (n_cells,)."""
        return np.outer(self.first.places, self.second.places).ravel()

    def codes(self, first: Array, second: Array) -> Array:
        """The cell of both of rows in these cells of each, `n_cells` for none of them."""
        known = (first >= 0) & (second >= 0)
        return np.where(known, first * self.second.n_cells + second, self.n_cells)

    def matrix(self, w: Array) -> Array:
        """The weights as `Pair` has them: with a row and a column of missing values, maybe of 0."""
        weights = np.zeros((self.first.cut.n_cells + 1, self.second.cut.n_cells + 1))
        own = w.reshape(self.first.n_cells, self.second.n_cells)
        weights[: own.shape[0], : own.shape[1]] = own
        return weights


@dataclass(frozen=True, eq=False)
class PairCuts:
    """Pairs of columns with a weight for each of their cells, and then one for each pattern."""

    pairs: tuple[ColumnPair, ...]

    @classmethod
    def of_pairs(cls, pairs: Sequence[ColumnPair]) -> PairCuts:
        """These pairs, in the order of their columns."""
        return cls(tuple(sorted(pairs, key=lambda pair: pair.columns)))

    @classmethod
    def of(cls, function: AdditiveFunction, with_gaps: Array) -> PairCuts | None:
        """Those of a function's pairs, None where it has none.

        `with_gaps` says which columns had missing values in training.
        """
        pairs = []
        for pair in function.pairs:
            first, second = (
                ColumnCut(j, cut, bool(with_gaps[j]))
                for j, cut in zip(pair.columns, pair.cuts, strict=True)
            )
            pairs.append(ColumnPair(first, second))
        return cls(tuple(pairs)) if pairs else None

    @property
    def n_cells(self) -> Array:
        """Of each pair."""
        return np.array([pair.n_cells for pair in self.pairs])

    @property
    def n_weights(self) -> int:
        """Of cells and of patterns."""
        return int(self.n_cells.sum()) + len(self.pairs)

    @cached_property
    def patterns(self) -> Array:
        """Those of all pairs, one after the other."""
        return np.concatenate([pair.pattern for pair in self.pairs])

    def columns(self, rows: FilledRows) -> LevelColumns:
        """The cells of some rows."""
        cuts = {cut.column: cut for pair in self.pairs for cut in (pair.first, pair.second)}
        cells = {column: cut.cells(rows) for column, cut in cuts.items()}
        codes = np.empty((rows.X.shape[0], len(self.pairs)), dtype=np.uint8)
        for place, pair in enumerate(self.pairs):
            first, second = pair.columns
            codes[:, place] = pair.codes(cells[first], cells[second])
        return LevelColumns(codes, self.n_cells, stiff=_STIFF, patterns=self.patterns)

    def terms(self, w: Array, names: Sequence[str], deviations: Array) -> tuple[Pair, ...]:
        """The terms of some weights: what each cell adds."""
        added = with_patterns(w, self.n_cells, self.patterns)
        ends = np.cumsum(self.n_cells).tolist()
        terms = []
        for pair, end, deviation in zip(self.pairs, ends, deviations.tolist(), strict=True):
            first, second = pair.columns
            terms.append(
                Pair(
                    names=(names[first], names[second]),
                    columns=pair.columns,
                    cuts=(pair.first.cut, pair.second.cut),
                    weights=pair.matrix(added[end - pair.n_cells : end]),
                    deviation=deviation,
                )
            )
        return tuple(terms)

    def weights(self, function: AdditiveFunction, scale: Array | None = None) -> Array:
        """The weights with which a function's pairs add the same, 0 for pairs that it lacks.

        The split between cells and patterns is the one of the smallest penalty, where weights are
        multiplied by `scale` before they are squared.
        """
        known = {pair.columns: pair for pair in function.pairs}
        parts = []
        for pair in self.pairs:
            own = np.zeros((pair.first.n_cells, pair.second.n_cells))
            old = known.get(pair.columns)
            if old is not None and old.weights.shape >= own.shape:
                own = old.weights[: own.shape[0], : own.shape[1]]
            parts.append(own.ravel())
        added = np.concatenate(parts)
        square = np.ones(self.n_weights) if scale is None else np.square(scale)
        of_cells, of_patterns = np.split(square, [added.size])
        firsts = np.cumsum(self.n_cells) - self.n_cells
        pull = of_cells * self.patterns
        above = np.add.reduceat(pull * added, firsts)
        below = np.add.reduceat(pull * self.patterns, firsts)
        v = above / (of_patterns + below)
        return np.concatenate([added - self.patterns * np.repeat(v, self.n_cells), v])


# --- which pairs are worth it ---------------------------------------------------------------------


def best_pairs(
    cuts: Sequence[ColumnCut], rows: FilledRows, residuals: Array, n_pairs: int
) -> tuple[ColumnPair, ...]:
    """The pairs of some columns that are worth a weight for each cell, the best first.

    At the optimum of a ranker without pairs every row has a residual: the slope of the risk in its
    score. A weight for a cell lowers the risk at first order by ``|G|``, where G is the sum of the
    residuals of its rows. So pairs are ordered by

        sum over cells of G^2 / (n + 5)    less what chance gives,  sum of s^2 n h / (n + 5)

    with n the rows of a cell and s^2 the mean square of the residuals; 5 rows keep small cells from
    coming first. The penalty leaves some of what a column does by itself in the residuals. So G is
    less the sum of a function of each of the two columns, fitted by least squares, and h is the
    share of chance that this leaves: ``1 - n/a - n/b + n/N``, in a cell of a and b rows of its
    columns' cells, of N rows. Of many columns some of the rows are looked at, so that it takes less
    time than a fit.
    """
    n = len(cuts)
    if n < 2:
        return ()
    every = -(-residuals.size * n * (n - 1) // 2 // _UPDATES)
    if every > 1:  # not every n-th: in lists of equal length all of them may be positives
        picked = np.random.default_rng(0).permutation(residuals.size)[: residuals.size // every]
        rows = rows.take(picked)
        residuals = residuals[picked]
    sizes = np.array([cut.n_cells for cut in cuts])
    cells = np.empty((n, residuals.size), dtype=np.uint8)
    for place, cut in enumerate(cuts):
        cells[place] = np.maximum(cut.cells(rows), 0)
    gains = np.full((n, n), -np.inf)
    _write_gains(cells, residuals, sizes, gains)
    first, second = np.triu_indices(n, 1)
    gain = gains[first, second]
    best = np.argsort(-gain, kind="stable")[:n_pairs]
    best = best[gain[best] > 0.0]
    return tuple(
        ColumnPair(cuts[i], cuts[j]) for i, j in zip(first[best], second[best], strict=True)
    )


@kernel
def _write_gains(cells: Array, slopes: Array, sizes: Array, gains: Array) -> None:
    """Write what each pair gains above chance; pairs of too many cells are left out."""
    mean_square = 0.0
    for slope in slopes:
        mean_square += slope * slope / slopes.size
    for a in range(sizes.size):
        for b in range(a + 1, sizes.size):
            n_cells = sizes[a] * sizes[b]
            if n_cells > MOST_CELLS:
                continue
            sums = np.zeros(n_cells)
            counts = np.zeros(n_cells)
            for i in range(slopes.size):
                c = cells[a, i] * sizes[b] + cells[b, i]
                sums[c] += slopes[i]
                counts[c] += 1.0
            shape = (sizes[a], sizes[b])
            gains[a, b] = _gain(sums.reshape(shape), counts.reshape(shape), mean_square)


@kernel
def _gain(sums: Array, counts: Array, mean_square: float) -> float:
    """What the cells of one pair gain above chance, beyond a function of each of its columns."""
    of_first = np.zeros(counts.shape[0])
    of_second = np.zeros(counts.shape[1])
    n_rows = 0.0
    for i in range(of_first.size):
        for j in range(of_second.size):
            of_first[i] += counts[i, j]
            of_second[j] += counts[i, j]
            n_rows += counts[i, j]
    for _ in range(_SWEEPS):
        for i in range(of_first.size):
            total = 0.0
            for j in range(of_second.size):
                total += sums[i, j]
            for j in range(of_second.size):
                sums[i, j] -= counts[i, j] * (total / max(of_first[i], 1.0))
        for j in range(of_second.size):
            total = 0.0
            for i in range(of_first.size):
                total += sums[i, j]
            for i in range(of_first.size):
                sums[i, j] -= counts[i, j] * (total / max(of_second[j], 1.0))
    gain = 0.0
    for i in range(of_first.size):
        for j in range(of_second.size):
            n = counts[i, j]
            if n > 0.0:
                left = 1.0 - n / of_first[i] - n / of_second[j] + n / n_rows
                gain += (sums[i, j] * sums[i, j] - mean_square * n * left) / (n + _SMALL)
    return gain
