"""What a ranker adds to a score for one column: a straight line, or a piecewise linear curve.

    f(x) = values[b] + (values[b + 1] - values[b]) (x - t_b) / (t_{b+1} - t_b)

for ``t_b <= x <= t_{b+1}``, with knots ``t_0 < .. < t_B``, and the same straight line ``slope``
before the first and behind the last of them. A score is the sum over the columns,
``sum_j f_j(x_j)``.

The weights of a column are its slope v and, for each piece, what the function rises there beyond
the straight line: ``f(x) = v (x - t_0) + sum_b w_b clip((x - t_b) / (t_{b+1} - t_b), 0, 1)``. Those
of the straight parts of all columns come first, then those of the pieces, column by column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data.value_counts import ValueCounts, counts_of_columns
from structsvm_papk.errors import InputError, whole_number

MOST_PIECES = 254  # a cell is a byte, and two lie outside the knots
PIECES = 16  # what `curves="auto"` takes
_LARGEST = 1e300  # a column that spreads over more stays a line: a width may overflow


@dataclass(frozen=True)
class Curve:
    """The function of one column.

    Attributes
    ----------
    name : str
        Of the column: as in the data frame, else its number, counted from 0.
    knots : ndarray of shape (n_knots,)
        Where the slope may change, increasing. One knot says that the function is a straight line.
    values : ndarray of shape (n_knots,)
        The function at the knots; 0 at the first.
    slope : float
        Before the first knot and behind the last one.
    deviation : float
        Standard deviation within lists of what the column added to the scores in training.
    """

    name: str
    knots: Array
    values: Array
    slope: float
    deviation: float

    def __call__(self, x: ArrayLike) -> Array:
        """The function at some values of the column, an array of the same shape; NaN stays NaN."""
        x = np.asarray(x, dtype=np.float64)
        first = self.knots[0]
        last = self.knots[-1]
        beyond = np.minimum(x - first, 0.0) + np.maximum(x - last, 0.0)
        inside = np.interp(np.clip(x, first, last), self.knots, self.values)
        return np.asarray(inside + self.slope * beyond)


def check_curves(curves: Any) -> int | None:
    """The number of pieces of a curve; None for a line, and while folds are to decide ('auto')."""
    if curves is None or (isinstance(curves, str) and curves == "auto"):
        return None
    if isinstance(curves, str):
        raise InputError(f"curves={curves!r} must be 'auto', None, or a number of pieces")
    pieces = whole_number("curves", curves)
    if pieces > MOST_PIECES:
        raise InputError(f"curves={pieces}: a column has at most {MOST_PIECES} pieces")
    return pieces


@dataclass(frozen=True, eq=False)
class Knots:
    """Where the functions of the columns may change their slope.

    Attributes
    ----------
    positions : ndarray of shape (n_knots,)
        Increasing in each column, one column after the other.
    starts : ndarray of int64, shape (n_columns + 1,)
        Column j has the knots ``positions[starts[j]:starts[j + 1]]``, one or more.
    """

    positions: Array
    starts: Array

    @classmethod
    def of(cls, columns: Sequence[Array]) -> Knots:
        """Of an array of knots for each column."""
        counts = [knots.size for knots in columns]
        return cls(
            positions=np.concatenate(columns).astype(np.float64),
            starts=np.concatenate([[0], np.cumsum(counts)]),
        )

    def with_lines(self, n: int) -> Knots:
        """These, and behind them so many columns that are lines through 0."""
        last = self.starts[-1]
        return Knots(
            positions=np.concatenate([self.positions, np.zeros(n)]),
            starts=np.concatenate([self.starts, last + 1 + np.arange(n)]),
        )

    def first_columns(self, n: int) -> Knots:
        """Those of the first so many columns."""
        return Knots(self.positions[: self.starts[n]], self.starts[: n + 1])

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return self.starts.size - 1

    @property
    def n_pieces(self) -> Array:
        """Pieces of each column."""
        return np.diff(self.starts) - 1

    @property
    def n_weights(self) -> int:
        """One for each straight part, one for each piece."""
        return int(self.positions.size)

    @property
    def first(self) -> Array:
        """The first knot of each column."""
        return self.positions[self.starts[:-1]]

    @cached_property
    def column_of_knot(self) -> Array:
        """The column of each knot."""
        return np.repeat(np.arange(self.n_columns), np.diff(self.starts))

    @cached_property
    def column_of_piece(self) -> Array:
        """The column of each piece."""
        return np.repeat(np.arange(self.n_columns), self.n_pieces)

    @cached_property
    def left(self) -> Array:
        """Index of the knot where each piece begins; it ends at the next one."""
        # a column has one knot more than pieces
        return np.arange(self.column_of_piece.size) + self.column_of_piece

    @cached_property
    def widths(self) -> Array:
        """Of the pieces."""
        return self.positions[self.left + 1] - self.positions[self.left]

    @cached_property
    def cell_starts(self) -> Array:
        """The first cell of each column among those of all: it has one more than knots."""
        return self.starts + np.arange(self.starts.size)

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

    @cached_property
    def cell_of_piece(self) -> Array:
        """The cell of each piece among those of all columns."""
        return self._cells_behind[self.left]

    def column(self, j: int) -> Array:
        """The knots of one column."""
        return self.positions[self.starts[j] : self.starts[j + 1]]

    def values(self, w: Array) -> Array:
        """The functions at all knots for some weights, 0 at the first of each column."""
        column = self.column_of_knot
        steps = np.zeros(self.positions.size)
        steps[self.left + 1] = w[self.n_columns :]
        risen = np.cumsum(steps)
        risen -= risen[self.starts[:-1]][column]
        return w[: self.n_columns][column] * (self.positions - self.first[column]) + risen

    def weights(self, values: Array, slopes: Array) -> Array:
        """The weights of functions with these values at the knots, and slopes beyond them."""
        rise = values[self.left + 1] - values[self.left]
        return np.concatenate([slopes, rise - slopes[self.column_of_piece] * self.widths])

    def table(self, w: Array) -> Array:
        """Value, slope and origin in each cell, shape (n_cells, 3), for some weights."""
        values = self.values(w)
        table = np.zeros((self.origins.size, 3))
        table[self._cells_behind, 0] = values  # 0 before the first knot, as at it
        table[:, 1] = np.repeat(w[: self.n_columns], np.diff(self.cell_starts))
        table[self.cell_of_piece, 1] = (values[self.left + 1] - values[self.left]) / self.widths
        table[:, 2] = self.origins
        return table

    def curves(self, w: Array, names: Sequence[str], deviations: Array) -> list[Curve]:
        """The function of each column, of weights in the units of the columns."""
        values = self.values(w)
        return [
            Curve(
                name=names[j],
                knots=self.column(j),
                values=values[self.starts[j] : self.starts[j + 1]],
                slope=float(w[j]),
                deviation=float(deviations[j]),
            )
            for j in range(self.n_columns)
        ]


def stiffened_scale(knots: Knots, scale: Array | None, stiffness: float) -> Array:
    """What columns are divided by so that the penalty is so many times stronger on pieces."""
    stiff = np.ones(knots.n_weights)
    stiff[knots.n_columns :] = np.sqrt(stiffness)
    return stiff if scale is None else scale * stiff


def knots_at_quantiles(X: Array, rows: Array, n_pieces: int) -> Knots:
    """`knots_of` the columns of a dense matrix, by the values in some rows."""
    return knots_of(counts_of_columns(X, rows), n_pieces)


def knots_of(columns: Sequence[ValueCounts], n_pieces: int) -> Knots:
    """Knots at values that cut each column into pieces of about as many rows.

    A column of fewer distinct values has a knot at each of them, and one of at most two values is a
    line.
    """
    return Knots.of([_knots(column, n_pieces) for column in columns])


def _knots(column: ValueCounts, n_pieces: int) -> Array:
    """The knots of one column."""
    values = column.values
    if not values.size:
        return np.zeros(1)
    if values.size <= 2 or not float(values[-1]) - float(values[0]) < _LARGEST:
        return values[:1]
    if values.size > n_pieces + 1:
        rows = np.cumsum(column.counts)  # up to each value
        shares = np.arange(n_pieces + 1) / n_pieces
        places = np.maximum(np.ceil(shares * rows[-1]), 1.0)
        values = np.unique(values[np.searchsorted(rows, places)])
    return values if values.size > 1 else column.values[:1]
