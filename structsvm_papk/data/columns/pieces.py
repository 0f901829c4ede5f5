"""Columns as curves: straight parts and pieces, which are not written out.

`knots` says what the weights of a curve mean. Written out, a curve of sixteen pieces is seventeen
columns. Here a row has for each column the number of its cell, a byte, beside the value x itself:
cell 0 is before the first knot, cell i between the knots ``t_{i-1}`` and ``t_i``, the last one
behind the last knot. In a cell the function is linear,

    f(x) = value + slope (x - origin)

so a score is a look-up for each column. A sum of rows adds to two tables, the number of rows in
each cell and the sum of ``x - origin`` there; sums from behind make the entries of straight parts
and pieces of these.

In the kernels u counts users, p list positions, f columns, c cells of all columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._jit import REORDERED_SUMS, kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import (
    ROWS_AT_A_TIME,
    Columns,
    ColumnValues,
    Spread,
    Variation,
)
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.knots import Knots

_ROWS_WRITTEN = 64  # at a time, each a sum of these rows


class PiecewiseColumns(Columns):
    """A dense matrix whose columns stand for curves.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        float64 or float32, without NaN; copied where it is not in C order.
    knots : Knots
    cells : ndarray of uint8, shape (n_rows, n_columns), optional
        Where they are known already.
    """

    def __init__(self, X: Array, knots: Knots, cells: Array | None = None) -> None:
        self.X = np.ascontiguousarray(X)
        self._knots = knots
        self.cells = cells_of(self.X, knots) if cells is None else cells
        self.n_rows = X.shape[0]
        self.n_weights = knots.n_weights
        self.dtype = X.dtype

    @property
    def n_entries(self) -> int:
        return self.X.size

    @property
    def nbytes(self) -> int:
        return self.X.nbytes + self.cells.nbytes

    @property
    def n_columns(self) -> int:
        return self.knots.n_columns

    @property
    def knots(self) -> Knots:
        return self._knots

    @property
    def _stored(self) -> _Stored:
        """Values and cells as kernels take them."""
        return _Stored(read_only(self.X), read_only(self.cells))

    # --- products -------------------------------------------------------------------------------

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        added = np.zeros((bounds.size - 1, self.n_weights))
        _pull(self._stored, rows, coef, active, bounds, self._curves, added)
        out += added

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        out = np.zeros((coef.shape[0], self.n_weights))
        some = self.take(rows)
        _combined_pull(some._stored, np.ascontiguousarray(coef.T), self._curves, out)
        return out

    @cached_property
    def _curves(self) -> _Curves:
        knots = self.knots
        return _Curves(
            cell_starts=knots.cell_starts,
            origins=knots.origins,
            starts=knots.starts,
            straight=knots.straight_of_column,
            widths=knots.widths,
            straight_rises=knots.straight_rises,
            piece=knots.piece,
            shares=knots.shares,
        )

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        table = self.knots.table(w)
        X, cells = self._stored
        _rows_in_order(X, cells, rows, self.knots.cell_starts, table, out)

    def term_deviations(self, w: Array, rows: Array, indptr: Array, deviation: Array) -> Array:
        table = self.knots.table(w)
        squares = np.zeros(self.n_columns)
        X, cells = self._stored
        _contribution_squares(X, cells, rows, indptr, self.knots.cell_starts, table, squares)
        return np.asarray(np.sqrt(squares / max(rows.size, 1)))

    # --- rows -----------------------------------------------------------------------------------

    def take(self, rows: Any) -> PiecewiseColumns:
        return PiecewiseColumns(self.X[rows], self.knots, self.cells[rows])

    def join(self, others: Sequence[PiecewiseColumns]) -> PiecewiseColumns:
        X = np.concatenate([self.X, *(other.X for other in others)])
        cells = np.concatenate([self.cells, *(other.cells for other in others)])
        return PiecewiseColumns(X, self.knots, cells)

    def toarray(self) -> Array:
        written = np.empty((self.n_rows, self.n_weights))
        for start in range(0, self.n_rows, _ROWS_WRITTEN):
            some = np.arange(start, min(start + _ROWS_WRITTEN, self.n_rows))
            written[some] = self.combined_rows(some, np.eye(some.size))
        return written

    def content(self) -> Iterator[Any]:
        knots = self.knots
        yield "curves"  # knots and values say which cell a value is in
        yield knots.positions
        yield knots.scores
        yield knots.starts
        yield knots.piece
        yield knots.is_rising
        yield self.X

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        DenseColumns(self.X).digest(rows, indptr, gains, digests)

    # --- what the columns are like --------------------------------------------------------------

    def spread(self, rows: Array, indptr: Array) -> Spread:
        """Lines are measured from their knot; of curves all have a range."""
        knots = self.knots
        lowest = np.full(knots.n_columns, np.inf)
        highest = np.full(knots.n_columns, -np.inf)
        _row_range(read_only(self.X), rows, lowest, highest)
        of_line = np.zeros(knots.n_columns)
        if rows.size:
            of_line = np.maximum(np.abs(lowest - knots.first), np.abs(highest - knots.first))
        of_curve = knots.scores[knots.starts[1:] - 1] - knots.scores[knots.starts[:-1]]
        straight = np.where(knots.is_line, of_line, of_curve)[knots.column_of_straight]
        largest = np.concatenate([straight, np.ones(knots.n_pieces)])
        return Spread(
            largest=largest,
            within=largest,
            shifted=np.zeros(knots.n_weights, dtype=bool),
            row_terms=knots.n_weights,
            column_terms=int(2 * np.diff(knots.starts).max() + 2),  # sums over the cells
        )

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        """Of lines as of dense columns; a piece takes two values where no row is inside it.

        Of a column that has to rise no piece is called an indicator, see `Knots.stiffness`.
        """
        knots = self.knots
        lines = np.flatnonzero(knots.is_line)
        dense = DenseColumns(self.X[:, lines])
        of_lines = dense.variation(rows, indptr, dense.spread(rows, indptr))
        unit = np.zeros(knots.n_weights)
        unit[: knots.n_straight] = 1.0
        deviation = self.term_deviations(unit, rows, indptr, unit)
        deviation[lines] = of_lines.deviation
        low = np.full(knots.n_columns, np.nan)
        high = low.copy()
        low[lines] = of_lines.low
        high[lines] = of_lines.high
        straight = knots.column_of_straight
        squares = np.zeros(knots.n_pieces)
        inside = np.zeros(knots.n_pieces, dtype=bool)
        X, cells = self._stored
        _piece_squares(
            X, cells, rows, indptr, knots.cell_starts, self._piece_of_cell, self._in_pieces,
            self._piece_starts, squares, inside,
        )  # fmt: skip
        inside |= knots.is_rising[knots.column_of_piece]
        of_pieces = np.sqrt(squares / max(rows.size, 1))
        return Variation(
            deviation=np.append(deviation[straight], of_pieces),
            low=np.append(low[straight], np.where(inside, np.nan, 0.0)),
            high=np.append(high[straight], np.where(inside, np.nan, 1.0)),
            n_rows=rows.size,
        )

    @cached_property
    def _piece_starts(self) -> Array:
        """The first piece of each column among those of all."""
        counts = np.bincount(self.knots.column_of_piece, minlength=self.n_columns)
        return np.concatenate([[0], np.cumsum(counts)])

    @cached_property
    def _piece_of_cell(self) -> Array:
        """The piece of each cell; cells beyond the knots are in the first piece or the last one."""
        knots = self.knots
        piece = np.zeros(knots.origins.size, dtype=np.int64)
        piece[knots.cell_starts[:-1]] = self._piece_starts[:-1]
        piece[knots.cell_starts[1:] - 1] = self._piece_starts[1:] - 1
        piece[knots.cell_of_interval] = knots.piece
        return piece

    @cached_property
    def _in_pieces(self) -> Array:
        """For each cell its piece's value at the cell's origin, its slope there, and the origin.

        The value is 0 in cells before the knots, and 1 behind them.
        """
        knots = self.knots
        inside = np.zeros((knots.origins.size, 3))
        inside[knots.cell_starts[1:] - 1, 0] = 1.0
        risen = np.cumsum(knots.shares) - knots.shares
        new = np.append(True, np.diff(knots.piece) > 0)[: knots.piece.size]
        first = np.maximum.accumulate(np.where(new, np.arange(new.size), 0))
        cell = knots.cell_of_interval
        inside[cell, 0] = risen - risen[first] if risen.size else 0.0
        inside[cell, 1] = knots.shares / knots.widths
        inside[:, 2] = knots.origins
        return inside

    def stiffness(self, stiffness: float) -> Array:
        return self.knots.stiffness(stiffness)

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        knots = self.knots
        column = int(knots.column_of_weight[weight])
        which = ""
        if weight >= knots.n_straight:
            intervals = np.flatnonzero(knots.piece == weight - knots.n_straight)
            low = knots.positions[knots.left[intervals[0]]]
            high = knots.positions[knots.left[intervals[-1]] + 1]
            which = f" between {low:.6g} and {high:.6g}"
        return ColumnValues(column, which, self.X[rows, column])


def cells_of(X: Array, knots: Knots) -> Array:
    """The cell of every value."""
    cells = np.empty_like(X, dtype=np.uint8)
    _count_knots(read_only(X), knots.positions, knots.starts, cells)
    return cells


@kernel
def _count_knots(X: Array, positions: Array, starts: Array, cells: Array) -> None:
    """Count the knots that are not above each value, some rows at a time.

    Every knot is compared with every value, in vector registers: faster than a bisection, whose
    branches nobody can predict.
    """
    values = np.empty(ROWS_AT_A_TIME, dtype=X.dtype)
    number = np.empty(ROWS_AT_A_TIME, dtype=np.uint8)
    for first in range(0, X.shape[0], ROWS_AT_A_TIME):
        n = min(ROWS_AT_A_TIME, X.shape[0] - first)
        for f in range(X.shape[1]):
            for i in range(n):
                values[i] = X[first + i, f]
            number[:] = 0
            for knot in positions[starts[f] : starts[f + 1]]:
                for i in range(ROWS_AT_A_TIME):
                    number[i] += np.uint8(values[i] >= knot)
            for i in range(n):
                cells[first + i, f] = number[i]


@kernel
def _linear(table: Array, c: int, x: float) -> float:
    """In float64, every step rounded by itself."""
    return table[c, 0] + table[c, 1] * (np.float64(x) - table[c, 2])


@kernel
def _rows_in_order(
    X: Array, cells: Array, rows: Array, cell_starts: Array, table: Array, out: Array
) -> None:
    for p in range(rows.size):
        row = X[rows[p]]
        cell = cells[rows[p]]
        total = out[p]
        for f in range(row.size):
            total += _linear(table, cell_starts[f] + cell[f], row[f])
        out[p] = total


class _Stored(NamedTuple):
    """Values, and the cells that they are in."""

    X: Array
    cells: Array


class _Curves(NamedTuple):
    """What sums of rows read of `Knots`; `straight` is the weight of each straight part."""

    cell_starts: Array
    origins: Array
    starts: Array
    straight: Array
    widths: Array
    straight_rises: Array
    piece: Array
    shares: Array


# A sum of rows is taken in two steps. For each cell are added up, over the rows, their coefficients
# and ``coef (x - origin)``: `sums` has these two, and beside them, in the same line of the cache,
# the origin. Then `_add_sums` makes the entries of the weights of them.


@kernel(fastmath=REORDERED_SUMS)
def _pull(
    stored: _Stored,
    rows: Array,
    coef: Array,
    active: Array,
    bounds: Array,
    curves: _Curves,
    out: Array,
) -> None:
    sums = np.zeros((curves.origins.size, 3))
    sums[:, 2] = curves.origins
    for part in range(bounds.size - 1):
        some = active[bounds[part] : bounds[part + 1]]
        _add_to_cells(stored, rows, coef, some, curves.cell_starts, sums)
        _add_sums(sums, curves, out[part])


@kernel(fastmath=REORDERED_SUMS)
def _add_to_cells(
    stored: _Stored, rows: Array, coef: Array, some: Array, cell_starts: Array, sums: Array
) -> None:
    for p in some:
        row = stored.X[rows[p]]
        cell = stored.cells[rows[p]]
        coef_p = coef[p]
        for f in range(row.size):
            c = cell_starts[f] + cell[f]
            sums[c, 0] += coef_p
            sums[c, 1] += coef_p * (row[f] - sums[c, 2])


@kernel(fastmath=REORDERED_SUMS)
def _combined_pull(stored: _Stored, coef: Array, curves: _Curves, out: Array) -> None:
    """`_pull` of all rows, for all coefficients of a row at a time, which lie beside each other."""
    origins = curves.origins
    n = coef.shape[1]
    number = np.zeros((origins.size, n))
    away = np.zeros((origins.size, n))
    for i in range(stored.X.shape[0]):
        for f in range(stored.X.shape[1]):
            c = curves.cell_starts[f] + stored.cells[i, f]
            distance = stored.X[i, f] - origins[c]
            for part in range(n):
                number[c, part] += coef[i, part]
                away[c, part] += coef[i, part] * distance
    sums = np.empty((origins.size, 3))
    for part in range(n):
        sums[:, 0] = number[:, part]
        sums[:, 1] = away[:, part]
        _add_sums(sums, curves, out[part])


@kernel
def _add_sums(sums: Array, curves: _Curves, out: Array) -> None:
    """The entries of straight parts and pieces, of the sums of the cells, which become 0.

    What an interval adds is the coefficients of the rows behind it, and of its own by their share.
    """
    starts = curves.starts
    straight = curves.straight
    piece = curves.piece
    n_straight = out.size - (piece[-1] + 1 if piece.size else 0)
    for f in range(starts.size - 1):
        first = curves.cell_starts[f]
        n_intervals = starts[f + 1] - starts[f] - 1
        if n_intervals == 0:  # a line
            out[straight[f]] += sums[first, 1] + sums[first + 1, 1]
            continue
        behind = sums[first + n_intervals + 1, 0]
        of_straight = 0.0
        for i in range(n_intervals - 1, -1, -1):
            interval = starts[f] - f + i
            rise = behind + sums[first + 1 + i, 1] / curves.widths[interval]
            behind += sums[first + 1 + i, 0]
            out[n_straight + piece[interval]] += rise * curves.shares[interval]
            of_straight += rise * curves.straight_rises[interval]
        if straight[f] >= 0:
            out[straight[f]] += of_straight
    sums[:, :2] = 0.0


# --- how the pieces vary --------------------------------------------------------------------------


@kernel
def _contribution_squares(
    X: Array,
    cells: Array,
    rows: Array,
    indptr: Array,
    cell_starts: Array,
    table: Array,
    squares: Array,
) -> None:
    n_columns = squares.size
    first = np.empty(n_columns)
    total = np.empty(n_columns)
    square = np.empty(n_columns)
    for u in range(indptr.size - 1):
        n = indptr[u + 1] - indptr[u]
        total[:] = 0.0
        square[:] = 0.0
        for p in range(indptr[u], indptr[u + 1]):
            i = rows[p]
            for f in range(n_columns):
                value = _linear(table, cell_starts[f] + cells[i, f], X[i, f])
                if p == indptr[u]:
                    first[f] = value
                total[f] += value - first[f]
                square[f] += (value - first[f]) * (value - first[f])
        if n > 0:
            for f in range(n_columns):
                squares[f] += max(0.0, square[f] - total[f] * total[f] / n)


@kernel
def _share_below(x: float, value: float, slope: float, origin: float) -> float:
    """What share of the piece of its cell lies below x.

    It takes numbers: with an array the call is not inlined, and takes twice the time.
    """
    if slope > 0.0:  # beyond the knots the difference may be infinite
        return min(value + slope * (x - origin), 1.0)
    return value


@kernel
def _piece_squares(
    X: Array,
    cells: Array,
    rows: Array,
    indptr: Array,
    cell_starts: Array,
    piece_of_cell: Array,
    in_pieces: Array,
    piece_starts: Array,
    squares: Array,
    inside: Array,
) -> None:
    """Add the squared distances from the user's mean, in each piece; note pieces with rows inside.

    They are taken from the user's first row on: where all rows are the same they are exactly 0.
    """
    n_columns = cell_starts.size - 1
    number = np.empty(squares.size)
    away = np.empty(squares.size)
    square = np.empty(squares.size)
    reference = np.zeros(squares.size)  # the value of a piece in the user's first row
    for u in range(indptr.size - 1):
        n = indptr[u + 1] - indptr[u]
        if n == 0:
            continue
        # 1. where the user's first row is
        number[:] = 0.0
        away[:] = 0.0
        square[:] = 0.0
        first = rows[indptr[u]]
        for f in range(n_columns):
            if piece_starts[f] == piece_starts[f + 1]:
                continue
            c = cell_starts[f] + cells[first, f]
            own = piece_of_cell[c]
            for b in range(piece_starts[f], piece_starts[f + 1]):
                reference[b] = 1.0 if b < own else 0.0
            reference[own] = _share_below(
                X[first, f], in_pieces[c, 0], in_pieces[c, 1], in_pieces[c, 2]
            )
        # 2. how far rows are from it, in the piece they lie in
        for p in range(indptr[u], indptr[u + 1]):
            row = X[rows[p]]
            cell = cells[rows[p]]
            for f in range(n_columns):
                if piece_starts[f] == piece_starts[f + 1]:
                    continue
                c = cell_starts[f] + cell[f]
                own = piece_of_cell[c]
                share = _share_below(row[f], in_pieces[c, 0], in_pieces[c, 1], in_pieces[c, 2])
                if 0.0 < share < 1.0:
                    inside[own] = True
                share -= reference[own]
                number[own] += 1.0
                away[own] += share
                square[own] += share * share
        # 3. to these come the rows before the piece, where it is 0, and behind it, where it is 1
        for f in range(n_columns):
            before = 0.0
            for b in range(piece_starts[f], piece_starts[f + 1]):
                behind = n - before - number[b]
                there = reference[b]
                ahead = 1.0 - there
                total = away[b] + behind * ahead - before * there
                squared = square[b] + behind * ahead * ahead + before * there * there
                squares[b] += max(0.0, squared - total * total / n)
                before += number[b]


@kernel
def _row_range(X: Array, rows: Array, lowest: Array, highest: Array) -> None:
    for i in rows:
        row = X[i]
        for f in range(lowest.size):
            lowest[f] = min(lowest[f], np.float64(row[f]))
            highest[f] = max(highest[f], np.float64(row[f]))
