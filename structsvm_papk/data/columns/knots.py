"""Where the curves of columns may bend, and what the weights of a curve mean.

A curve is piecewise linear between knots ``t_0 < .. < t_K`` and flat beyond them. Its weights are
one v of the straight part, and one w_b for each piece:

    f(x) = v z(x) + sum_b w_b clip((z(x) - z_b) / (z_{b+1} - z_b), 0, 1)

z is the column's normal score: the share of the training rows below x, ties half, through the
inverse normal distribution, at the knots, and linear in x between them (van der Waerden, "Order
tests for the two-sample problem and their power", 1952). So the straight part is straight in the
column's quantiles, whatever its unit is and however heavy its tails are. Each piece has a sixteenth
of the rows, say; in the outermost two z has more knots, at shares halved until ten rows are left,
so that it follows the tails.

A column that has to rise has a piece between any two neighbouring knots, and no straight part: its
weights are the rises, and ``w >= 0`` says exactly that it rises. A column of at most two values is
a line ``v (x - t_0)``, which has one knot and goes on beyond it.

The weights of the straight parts of all columns come first, then those of the pieces, column by
column. An interval lies between two neighbouring knots, a cell is an interval or lies beyond the
knots of its column.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.value_counts import ValueCounts
from structsvm_papk.errors import InputError, count_or_auto

MOST_PIECES = 254
PIECES = 16  # what `curves="auto"` takes
_MOST_KNOTS = 255  # a cell is a byte, and two lie beyond the knots
_FEWEST_ROWS = 10  # of an interval in the tails
_LARGEST = 1e300  # a column that spreads over more stays a line: a width may overflow
_SMALLEST = 1e-290  # a width, below which a slope may overflow
_SAME = 16.0  # values apart by so many times the resolution of their type are one value


def check_curves(curves: Any) -> int | None:
    """The number of pieces of a curve; None for a line, and while folds are to decide ('auto')."""
    pieces = count_or_auto("curves", curves, "a number of pieces")
    if pieces is not None and pieces > MOST_PIECES:
        raise InputError(f"curves={pieces}: a column has at most {MOST_PIECES} pieces")
    return pieces


class ColumnKnots(NamedTuple):
    """The knots of one column: one for a line.

    Attributes
    ----------
    positions : ndarray of shape (n_knots,)
        Increasing.
    scores : ndarray of shape (n_knots,)
        Normal scores there; of a line nothing reads it.
    piece : ndarray of int64, shape (n_knots - 1,)
        The piece of each interval, counted from 0.
    """

    positions: Array
    scores: Array
    piece: Array

    @classmethod
    def of_line(cls, position: float = 0.0) -> ColumnKnots:
        """Of a line that is 0 at a position."""
        return cls(np.array([position]), np.zeros(1), np.zeros(0, dtype=np.int64))

    @property
    def rising(self) -> ColumnKnots:
        """The same knots, with a piece for each interval."""
        return self._replace(piece=np.arange(self.piece.size))


def knots_of(columns: Iterable[ValueCounts], n_pieces: int, rising: Array | None = None) -> Knots:
    """Knots between quantiles of columns; `rising` is a mask of those that have to rise.

    A column of few different values has a knot at each. A value that many rows have is a knot, and
    the others lie at quantiles of the rest.
    """
    return Knots.of([_knots(column, n_pieces) for column in columns], rising)


def _knots(column: ValueCounts, n_pieces: int) -> ColumnKnots:
    if not column.values.size:
        return ColumnKnots.of_line()
    column = _apart(column)
    distinct = column.values
    counts = column.counts
    if distinct.size <= 2 or not float(distinct[-1]) - float(distinct[0]) < _LARGEST:
        return ColumnKnots.of_line(float(distinct[0]))
    outer = _at_quantiles(counts, n_pieces)
    room = (_MOST_KNOTS - outer.size) // 2
    low = _in_tail(counts[: outer[1]])[:room]
    high = _in_tail(counts[outer[-2] + 1 :][::-1])[:room]
    places = np.unique(np.concatenate([outer, low, distinct.size - 1 - high]))
    shares = (column.up_to[places] - counts[places] / 2) / column.up_to[-1]
    return ColumnKnots(
        positions=distinct[places],
        scores=ndtri(shares),
        piece=np.searchsorted(outer, places[:-1], side="right") - 1,
    )


def _apart(column: ValueCounts) -> ValueCounts:
    """The values of a column, where values next to each other are one."""
    is_first = np.empty(column.values.size, dtype=bool)
    _write_first(column.values, _SAME * column.resolution, is_first)
    if is_first.all():
        return column
    first = np.flatnonzero(is_first)
    counts = np.add.reduceat(column.counts, first)
    return replace(column, values=column.values[first], counts=counts)


@kernel
def _write_first(values: Array, same: float, is_first: Array) -> None:
    """Which values are not as good as the first one before them that is not."""
    first = -np.inf
    for i in range(values.size):
        size = max(abs(values[i]), abs(first))
        is_first[i] = i == 0 or values[i] - first > max(same * size, _SMALLEST)
        if is_first[i]:
            first = values[i]


def _at_quantiles(counts: Array, n_pieces: int) -> Array:
    """Which of the different values cut the rows into about equal parts, the outermost included."""
    if counts.size <= n_pieces + 1:
        return np.arange(counts.size)
    often = counts > counts.sum() / n_pieces
    seldom = np.flatnonzero(~often)
    rows = np.cumsum(counts[seldom])
    n_left = max(n_pieces + 1 - int(often.sum()), 2)
    shares = np.arange(n_left) / (n_left - 1)
    places = np.searchsorted(rows, np.maximum(np.ceil(shares * rows[-1]), 1))
    return np.union1d(np.flatnonzero(often), seldom[places])


def _in_tail(counts: Array) -> Array:
    """Which values cut off shares of the rows that are halved towards the first value."""
    sizes = int(counts.sum()) // 2 ** np.arange(1, 63)
    return np.unique(np.searchsorted(np.cumsum(counts), sizes[sizes >= _FEWEST_ROWS], "right"))[
        ::-1
    ]


@dataclass(frozen=True, eq=False)
class Knots:
    """The knots of all columns, and what the weights of their curves add up to.

    Attributes
    ----------
    positions, scores : ndarray of shape (n_knots,)
        Knots, increasing in each column, one column after the other, and normal scores there.
    starts : ndarray of int64, shape (n_columns + 1,)
        Column j has the knots ``positions[starts[j]:starts[j + 1]]``, one or more.
    piece : ndarray of int64, shape (n_intervals,)
        The piece of each interval, among those of all columns.
    is_rising : ndarray of bool, shape (n_columns,)
        Columns without a straight part.
    """

    positions: Array
    scores: Array
    starts: Array
    piece: Array
    is_rising: Array

    @classmethod
    def of(cls, columns: Sequence[ColumnKnots], rising: Array | None = None) -> Knots:
        """Of the knots of each column; `rising` is a mask of those that have to rise."""
        if rising is None:
            rising = np.zeros(len(columns), dtype=bool)
        is_curve = np.array([column.piece.size > 0 for column in columns])
        columns = [
            column.rising if has_to else column
            for column, has_to in zip(columns, rising, strict=True)
        ]
        n_pieces = [int(column.piece[-1]) + 1 if column.piece.size else 0 for column in columns]
        before = np.cumsum(n_pieces) - n_pieces
        pieces = [column.piece + n for column, n in zip(columns, before, strict=True)]
        sizes = [column.positions.size for column in columns]
        return cls(
            positions=np.concatenate([column.positions for column in columns]),
            scores=np.concatenate([column.scores for column in columns]),
            starts=np.concatenate([[0], np.cumsum(sizes)]),
            piece=np.concatenate(pieces).astype(np.int64),
            is_rising=rising & is_curve,
        )

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.starts.size - 1

    @property
    def n_straight(self) -> int:
        """Columns with a straight part."""
        return self.n_columns - int(self.is_rising.sum())

    @property
    def n_pieces(self) -> int:
        """Pieces of all columns."""
        return int(self.piece[-1]) + 1 if self.piece.size else 0

    @property
    def n_weights(self) -> int:
        """One for each straight part, one for each piece."""
        return self.n_straight + self.n_pieces

    @property
    def first(self) -> Array:
        """The first knot of each column."""
        return self.positions[self.starts[:-1]]

    @property
    def is_line(self) -> Array:
        """Columns with one knot."""
        return np.diff(self.starts) == 1

    @cached_property
    def column_of_straight(self) -> Array:
        """The column of each straight part."""
        return np.flatnonzero(~self.is_rising)

    @cached_property
    def straight_of_column(self) -> Array:
        """The weight of the straight part of each column; -1 where there is none."""
        return np.where(self.is_rising, -1, np.cumsum(~self.is_rising) - 1)

    @cached_property
    def column_of_knot(self) -> Array:
        """The column of each knot."""
        return np.repeat(np.arange(self.n_columns), np.diff(self.starts))

    @cached_property
    def left(self) -> Array:
        """Index of the knot where each interval begins; it ends at the next one."""
        # a column has one knot more than intervals
        n_intervals = np.diff(self.starts) - 1
        column = np.repeat(np.arange(self.n_columns), n_intervals)
        return np.arange(column.size) + column

    @cached_property
    def widths(self) -> Array:
        """Of the intervals."""
        return self.positions[self.left + 1] - self.positions[self.left]

    @cached_property
    def score_rises(self) -> Array:
        """By how much the normal score rises in each interval."""
        return self.scores[self.left + 1] - self.scores[self.left]

    @cached_property
    def piece_rises(self) -> Array:
        """By how much the normal score rises in each piece."""
        return np.bincount(self.piece, self.score_rises, minlength=self.n_pieces)

    @cached_property
    def shares(self) -> Array:
        """What each interval is of its piece, in normal scores: they add up to 1."""
        return self.score_rises / self.piece_rises[self.piece]

    @cached_property
    def straight_rises(self) -> Array:
        """By how much the straight part rises in each interval for the weight 1."""
        return np.where(self.is_rising[self.column_of_knot[self.left]], 0.0, self.score_rises)

    @cached_property
    def straight_of_interval(self) -> Array:
        """The weight of the straight part in each interval; of a rising column any, times 0."""
        return np.maximum(self.straight_of_column[self.column_of_knot[self.left]], 0)

    @cached_property
    def column_of_piece(self) -> Array:
        """The column of each piece."""
        column = np.empty(self.n_pieces, dtype=np.int64)
        column[self.piece] = self.column_of_knot[self.left]
        return column

    @cached_property
    def column_of_weight(self) -> Array:
        """The column of each weight."""
        return np.concatenate([self.column_of_straight, self.column_of_piece])

    @cached_property
    def cell_starts(self) -> Array:
        """The first cell of each column among those of all: it has one more than knots."""
        return self.starts + np.arange(self.starts.size)

    @cached_property
    def cell_of_interval(self) -> Array:
        """The cell of each interval among those of all columns."""
        return self._cells_behind[self.left]

    @cached_property
    def origins(self) -> Array:
        """The knot from which x is measured in each cell."""
        origins = np.empty(self.cell_starts[-1])
        origins[self.cell_starts[:-1]] = self.first
        origins[self._cells_behind] = self.positions
        return origins

    @cached_property
    def _cells_behind(self) -> Array:
        """The cell behind each knot."""
        return np.arange(self.positions.size) + self.column_of_knot + 1

    def column(self, j: int) -> Array:
        """The knots of one column."""
        return self.positions[self.starts[j] : self.starts[j + 1]]

    def _rises(self, w: Array) -> Array:
        """By how much the functions of some weights rise in each interval."""
        straight = w[self.straight_of_interval] if self.n_straight else 0.0
        return straight * self.straight_rises + w[self.n_straight + self.piece] * self.shares

    def values(self, w: Array) -> Array:
        """The functions at all knots for some weights, 0 at the first of each column."""
        steps = np.zeros(self.positions.size)
        steps[self.left + 1] = self._rises(w)
        risen = np.cumsum(steps)
        return np.asarray(risen - risen[self.starts[:-1]][self.column_of_knot])

    def slopes(self, w: Array) -> Array:
        """The slope of each column beyond its knots: that of a line, else 0."""
        slopes = np.zeros(self.n_columns)
        slopes[self.column_of_straight] = w[: self.n_straight]
        return np.where(self.is_line, slopes, 0.0)

    def weights(self, values: Array, slopes: Array, scale: Array | None = None) -> Array:
        """The weights of functions with these values at the knots; `slopes` are those of lines.

        A curve is the sum of its straight part and its pieces in many ways: this is the one of the
        smallest penalty, where weights are multiplied by `scale` before they are squared.
        """
        square = np.ones(self.n_weights) if scale is None else np.square(scale)
        of_straight = square[: self.n_straight]
        of_pieces = square[self.n_straight :]
        rises: Array = np.bincount(
            self.piece, values[self.left + 1] - values[self.left], minlength=self.n_pieces
        )
        straight = np.maximum(self.straight_of_column[self.column_of_piece], 0)
        has_straight = ~self.is_rising[self.column_of_piece]
        pull = of_pieces * self.piece_rises * has_straight
        above = np.bincount(straight, pull * rises, minlength=self.n_straight)
        below = np.bincount(straight, pull * self.piece_rises, minlength=self.n_straight)
        v = above / (of_straight + below)
        lines = self.is_line[self.column_of_straight]
        v[lines] = slopes[self.column_of_straight][lines]
        if self.n_straight:
            rises = rises - has_straight * v[straight] * self.piece_rises
        return np.concatenate([v, rises])

    def table(self, w: Array) -> Array:
        """Value, slope and origin in each cell, shape (n_cells, 3), for some weights."""
        values = self.values(w)
        beyond = self.slopes(w)
        table = np.zeros((self.origins.size, 3))
        table[self._cells_behind, 0] = values  # 0 before the first knot, as at it
        table[self.cell_starts[:-1], 1] = beyond
        table[self.cell_starts[1:] - 1, 1] = beyond
        table[self.cell_of_interval, 1] = (values[self.left + 1] - values[self.left]) / self.widths
        table[:, 2] = self.origins
        return table

    def stiffness(self, stiffness: float) -> Array:
        """How many times stronger the penalty is on each weight than on that of a line.

        On pieces it is `stiffness` times as strong. Of a column that has to rise it is
        ``stiffness / (1 + stiffness)``: the largest that depends on nothing else, and with which no
        rising function costs more than the same function of straight part and pieces does, where
        both are divided by their deviations (``docs/math/proofs.md``, "Columns that rise").
        """
        stiff = np.ones(self.n_weights)
        rising = self.is_rising[self.column_of_piece]
        stiff[self.n_straight :] = np.where(rising, stiffness / (1.0 + stiffness), stiffness)
        return stiff
