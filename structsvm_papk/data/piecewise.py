"""A storage of the features beside dense and CSR: columns as pieces, which are not written out.

For a column with knots ``t_0 < .. < t_B`` it stands for the columns

    x - t_0                                      the straight part
    clip((x - t_b) / (t_{b+1} - t_b), 0, 1)      b = 0 .. B - 1, the pieces

so that weights v of the straight part and w_b of the pieces give the continuous piecewise linear
function ``f(x) = v (x - t_0) + sum_b w_b clip(..)``. The straight parts of all columns come first,
then the pieces, column by column. A column with one knot is its straight part alone.

Written out, sixteen pieces are seventeen columns. Here a row has for each column the number of its
cell, a byte, beside the value x itself: cell 0 is before the first knot, cell b between the knots
``t_{b-1}`` and ``t_b``, cell B + 1 behind the last. In a cell f is linear,

    f(x) = value + slope (x - origin)

so a score is a look-up for each column. A sum of rows adds to two tables, the number of rows in
each cell and the sum of ``x - origin`` there; sums from behind make the pieces' entries of these.

In the kernels u counts users, p list positions, f columns, c cells of all columns, b pieces.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._jit import REORDERED_SUMS, is_row_major, kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.curves import MOST_PIECES, Knots

_ROWS_AT_A_TIME = 1024


class PiecewiseColumns:
    """A dense matrix whose columns stand for their straight part and their pieces.

    It has a shape, a dtype and rows that can be picked as a matrix has; `toarray` writes it out.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
        float64 or float32, without NaN; not copied.
    knots : Knots
    cells : ndarray of uint8, shape (n_rows, n_columns), optional
        Where they are known already.
    """

    def __init__(self, X: Array, knots: Knots, cells: Array | None = None) -> None:
        self.X = X
        self.knots = knots
        self.cells = cells_of(X, knots) if cells is None else cells

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and weights."""
        return self.X.shape[0], self.knots.n_weights

    @property
    def dtype(self) -> Any:
        """Of the values."""
        return self.X.dtype

    @property
    def nbytes(self) -> int:
        """Of the values and the cells."""
        return self.X.nbytes + self.cells.nbytes

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: Any) -> PiecewiseColumns:
        return PiecewiseColumns(self.X[rows], self.knots, self.cells[rows])

    def toarray(self) -> Array:
        """The matrix written out, in float64."""
        knots = self.knots
        X = self.X.astype(np.float64)
        column = knots.column_of_piece
        within = (X[:, column] - knots.positions[knots.left]) / knots.widths
        return np.hstack([X - knots.first, np.clip(within, 0.0, 1.0)])

    def column_of(self, weight: int) -> tuple[int, str]:
        """The column that a weight belongs to, and what of it, for messages."""
        if weight < self.knots.n_columns:
            return weight, ""
        piece = weight - self.knots.n_columns
        left = self.knots.left[piece]
        low, high = self.knots.positions[left : left + 2]
        return int(self.knots.column_of_piece[piece]), f" between {low:.6g} and {high:.6g}"

    @property
    def _stored(self) -> tuple[Array, Array]:
        """Values and cells as kernels take them."""
        return read_only(self.X), read_only(self.cells)

    # --- products -------------------------------------------------------------------------------

    def scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        """As `features.scores`."""
        table = self.knots.table(w)
        X, cells = self._stored
        if is_row_major(X):
            _row_scores(X, cells, rows, self.knots.cell_starts, table, start, stop, out)
        else:
            _column_scores(X.T, cells.T, rows, self.knots.cell_starts, table, start, stop, out)

    def add_weighted_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        """As `features.add_weighted_rows`, of the `active` positions between some bounds."""
        knots = self.knots
        starts = knots.cell_starts
        X, cells = self._stored
        add = _row_sums
        if not is_row_major(X):
            X = X.T
            cells = cells.T
            add = _column_sums
        sums = np.empty((knots.origins.size, 2))
        for part in range(bounds.size - 1):
            sums[:] = 0.0
            some = active[bounds[part] : bounds[part + 1]]
            add(X, cells, rows, coef, some, starts, knots.origins, sums)
            _add_sums(sums, starts, knots.positions, knots.starts, out[part])

    def reported_scores(self, rows: Array, w: Array, out: Array) -> None:
        """As `features.reported_scores`: in the order of the columns, every sum rounded."""
        table = self.knots.table(w)
        X, cells = self._stored
        if is_row_major(X):
            _rows_in_order(X, cells, rows, self.knots.cell_starts, table, out)
        else:
            _columns_in_order(X.T, cells.T, rows, self.knots.cell_starts, table, out)

    def contributions(self, w: Array) -> Array:
        """What each column adds to the score of each row, shape (n_rows, n_columns)."""
        table = self.knots.table(w)
        cell = self.knots.cell_starts[:-1] + self.cells
        added: Array = table[cell, 0] + table[cell, 1] * (self.X - table[cell, 2])
        return added

    def deviations_of_curves(self, rows: Array, indptr: Array, w: Array) -> Array:
        """Pooled deviation within users of what each column adds to the scores."""
        table = self.knots.table(w)
        squares = np.zeros(self.knots.n_columns)
        X, cells = self._stored
        _contribution_squares(X, cells, rows, indptr, self.knots.cell_starts, table, squares)
        return np.asarray(np.sqrt(squares / max(rows.size, 1)))


@kernel
def _contribution_squares(X, cells, rows, indptr, cell_starts, table, squares):
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


def cells_of(X: Array, knots: Knots) -> Array:
    """The cell of every value, in the order in which X is stored."""
    cells = np.empty_like(X, dtype=np.uint8)
    _count_knots(read_only(X), knots.positions, knots.starts, cells)
    return cells


@kernel
def _count_knots(X, positions, starts, cells):
    """Count the knots that are not above each value, some rows at a time.

    Every knot is compared with every value, in vector registers: faster than a bisection, whose
    branches nobody can predict.
    """
    values = np.empty(_ROWS_AT_A_TIME, dtype=X.dtype)
    number = np.empty(_ROWS_AT_A_TIME, dtype=np.uint8)
    for first in range(0, X.shape[0], _ROWS_AT_A_TIME):
        n = min(_ROWS_AT_A_TIME, X.shape[0] - first)
        for f in range(X.shape[1]):
            for i in range(n):
                values[i] = X[first + i, f]
            number[:] = 0
            for knot in positions[starts[f] : starts[f + 1]]:
                for i in range(_ROWS_AT_A_TIME):
                    number[i] += np.uint8(values[i] >= knot)
            for i in range(n):
                cells[first + i, f] = number[i]


# not REORDERED_SUMS: in vector registers look-ups take half as long again; and both orders of X
# give the same bits
@kernel
def _row_scores(X, cells, rows, cell_starts, table, start, stop, out):
    for p in range(start, stop):
        row = X[rows[p]]
        cell = cells[rows[p]]
        total = 0.0
        for f in range(row.size):
            c = cell_starts[f] + cell[f]
            total += table[c, 0] + table[c, 1] * (row[f] - table[c, 2])
        out[p] = total


@kernel
def _column_scores(columns, cells, rows, cell_starts, table, start, stop, out):
    out[start:stop] = 0.0
    for f in range(columns.shape[0]):
        column = columns[f]
        for p in range(start, stop):
            c = cell_starts[f] + cells[f, rows[p]]
            out[p] += table[c, 0] + table[c, 1] * (column[rows[p]] - table[c, 2])


@kernel
def _linear(table, c, x):
    """In float64, every step rounded by itself."""
    return table[c, 0] + table[c, 1] * (np.float64(x) - table[c, 2])


@kernel
def _rows_in_order(X, cells, rows, cell_starts, table, out):
    for p in range(rows.size):
        row = X[rows[p]]
        cell = cells[rows[p]]
        total = 0.0
        for f in range(row.size):
            total += _linear(table, cell_starts[f] + cell[f], row[f])
        out[p] = total


@kernel
def _columns_in_order(columns, cells, rows, cell_starts, table, out):
    out[:] = 0.0
    for f in range(columns.shape[0]):
        for p in range(rows.size):
            cell = cell_starts[f] + cells[f, rows[p]]
            out[p] += _linear(table, cell, columns[f, rows[p]])


@kernel(fastmath=REORDERED_SUMS)
def _row_sums(X, cells, rows, coef, active, cell_starts, origins, sums):
    """Of each cell, over its rows, the sum of their coefficients and of ``coef (x - origin)``."""
    for p in active:
        row = X[rows[p]]
        cell = cells[rows[p]]
        coef_p = coef[p]
        for f in range(row.size):
            c = cell_starts[f] + cell[f]
            sums[c, 0] += coef_p
            sums[c, 1] += coef_p * (row[f] - origins[c])


@kernel(fastmath=REORDERED_SUMS)
def _column_sums(columns, cells, rows, coef, active, cell_starts, origins, sums):
    for f in range(columns.shape[0]):
        column = columns[f]
        for p in active:
            c = cell_starts[f] + cells[f, rows[p]]
            sums[c, 0] += coef[p]
            sums[c, 1] += coef[p] * (column[rows[p]] - origins[c])


@kernel
def _add_sums(sums, cell_starts, positions, starts, out):
    """The entries of the straight parts and the pieces, of the sums of the cells."""
    n_columns = starts.size - 1
    for f in range(n_columns):
        first = starts[f]
        straight = sums[cell_starts[f], 1]
        behind = 0.0  # rows in the cells behind
        for i in range(starts[f + 1] - 1, first - 1, -1):  # knots, and the cells behind them
            c = cell_starts[f] + 1 + i - first
            number = sums[c, 0]
            away = sums[c, 1]
            straight += away + number * (positions[i] - positions[first])
            if i < starts[f + 1] - 1:
                width = positions[i + 1] - positions[i]
                out[n_columns + i - f] += behind + away / width
            behind += number
        out[f] += straight


# --- how the pieces vary --------------------------------------------------------------------------


class PieceVariation(NamedTuple):
    """Deviation of each piece within users, and its two values: NaN where it takes more."""

    deviation: Array
    low: Array
    high: Array


def variation_of_pieces(matrix: PiecewiseColumns, rows: Array, indptr: Array) -> PieceVariation:
    """How the pieces vary in the lists ``rows[indptr[u]:indptr[u + 1]]``."""
    knots = matrix.knots
    inverse = np.zeros(knots.origins.size)
    inverse[knots.cell_of_piece] = 1.0 / knots.widths
    squares = np.zeros(knots.widths.size)
    starts = knots.cell_starts
    X, cells = matrix._stored
    _piece_squares(X, cells, rows, indptr, starts, knots.origins, inverse, squares)
    low, high = _two_values(matrix, rows)
    return PieceVariation(np.sqrt(squares / max(rows.size, 1)), low, high)


@kernel
def _piece_squares(X, cells, rows, indptr, cell_starts, origins, inverse, squares):
    """Add the squared distances from the user's mean, in each piece.

    They are taken from the user's first row on: where all rows are the same they are exactly 0.
    """
    n_columns = cell_starts.size - 1
    number = np.empty(origins.size)
    away = np.empty(origins.size)
    square = np.empty(origins.size)
    reference = np.zeros(origins.size)  # of the piece of a cell: its value in the first row
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
            own = cell_starts[f] + cells[first, f]
            for c in range(cell_starts[f], cell_starts[f + 1]):
                reference[c] = 1.0 if c < own else 0.0
            reference[own] = (np.float64(X[first, f]) - origins[own]) * inverse[own]
        # 2. how far rows are from it, in the piece they lie in
        for p in range(indptr[u], indptr[u + 1]):
            row = X[rows[p]]
            cell = cells[rows[p]]
            for f in range(n_columns):
                c = cell_starts[f] + cell[f]
                share = (np.float64(row[f]) - origins[c]) * inverse[c] - reference[c]
                number[c] += 1.0
                away[c] += share
                square[c] += share * share
        # 3. to these come the rows before the piece, where it is 0, and behind it, where it is 1
        for f in range(n_columns):
            before = number[cell_starts[f]]
            for c in range(cell_starts[f] + 1, cell_starts[f + 1] - 1):
                behind = n - before - number[c]
                there = reference[c]
                ahead = 1.0 - there
                total = away[c] + behind * ahead - before * there
                squared = square[c] + behind * ahead * ahead + before * there * there
                squares[c - 1 - 2 * f] += max(0.0, squared - total * total / n)
                before += number[c]


def _two_values(matrix: PiecewiseColumns, rows: Array) -> tuple[Array, Array]:
    """The two values of each piece, NaN for one with more; ends when all have more."""
    knots = matrix.knots
    inside = np.full((knots.widths.size, 2), np.nan)  # different values within the piece itself
    more = np.zeros(knots.widths.size, dtype=bool)  # than these
    lowest = np.full(knots.n_columns, MOST_PIECES + 2)  # of the cells that rows lie in
    highest = np.zeros(knots.n_columns, dtype=np.int64)
    columns = np.flatnonzero(knots.n_pieces > 0)
    for first in range(0, rows.size, _ROWS_AT_A_TIME):
        block = rows[first : first + _ROWS_AT_A_TIME]
        cells = matrix.cells[block]
        lowest = np.minimum(lowest, cells.min(axis=0))
        highest = np.maximum(highest, cells.max(axis=0))
        _note_values(
            np.ascontiguousarray(matrix.X[block]),
            np.ascontiguousarray(cells),
            columns,
            knots.starts,
            knots.positions,
            inside,
            more,
        )
        undecided = np.zeros(knots.n_columns, dtype=bool)
        undecided[knots.column_of_piece[~more]] = True
        columns = columns[undecided[columns]]
        if not columns.size:
            break
    lowest = lowest[knots.column_of_piece]
    highest = highest[knots.column_of_piece]
    own = knots.cell_of_piece - knots.cell_starts[knots.column_of_piece]
    zero = np.where(lowest < own, 0.0, np.nan)
    one = np.where(highest > own, 1.0, np.nan)
    taken = np.sort(np.column_stack([zero, one, inside]), axis=1)  # NaN comes last
    n_taken = (np.diff(taken, axis=1) > 0.0).sum(axis=1) + 1
    two = ~more & (n_taken <= 2) & ~np.isnan(taken[:, 0])
    high = np.fmax.reduce(taken, axis=1, initial=-np.inf)
    return np.where(two, taken[:, 0], np.nan), np.where(two, high, np.nan)


@kernel
def _note_values(X, cells, columns, starts, positions, inside, more):
    """Note the first two values of each piece for rows within it, and whether there are more."""
    for f in columns:
        n_knots = starts[f + 1] - starts[f]
        for i in range(X.shape[0]):
            c = np.int64(cells[i, f])
            piece = starts[f] - f + c - 1
            if c == 0 or c == n_knots or more[piece]:
                continue
            left = positions[starts[f] + c - 1]
            value = (np.float64(X[i, f]) - left) / (positions[starts[f] + c] - left)
            if value == inside[piece, 0] or value == inside[piece, 1]:
                continue
            if np.isnan(inside[piece, 0]):
                inside[piece, 0] = value
            elif np.isnan(inside[piece, 1]):
                inside[piece, 1] = value
            else:
                more[piece] = True
