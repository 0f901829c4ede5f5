"""Which pairs of columns are worth a weight for each of their cells.

At the optimum of a ranker without pairs every row has a residual: the slope c_i of the risk in its
score. A weight for a cell lowers the risk at first order by |G|, where G is the sum of the
residuals of its rows. So pairs are ordered by

    sum over cells of G^2 / (n + 5)    less what chance gives,  sum of s^2 n h / (n + 5)

with n the rows of a cell and s^2 the mean square of the residuals; 5 rows keep small cells from
coming first. The penalty leaves some of what a column does by itself in the residuals. So G is
less the sum of a function of each of the two columns, fitted by least squares, and h is the share
of chance that this leaves: 1 - n/a - n/b + n/N, in a cell of a and b rows of its columns' cells, of
N rows. A column of numbers is cut into sixths, and levels are cells of their own. Of
many columns some of the rows are looked at, so that it takes less time than a fit.
"""

from __future__ import annotations

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.pairs import MOST_CELLS, ColumnPair
from structsvm_papk.oracles.list_risk import RowSlopes
from structsvm_papk.rankers.in_columns import TrainingColumns

PAIRS = 20  # what `pairs="auto"` tries,
MANY_PAIRS = 300  # and this of many columns,
MANY_OF_ONE_LIST = 150  # of one list this, whose fits take longer
MOST_COLUMNS = 300  # among which pairs are looked for
_SMALL = 5.0  # rows that are added to those of a cell
_SWEEPS = 3  # over both columns, to fit a function of each
_UPDATES = 200_000_000  # pairs times rows that are looked at, at the most


def screened_pairs(
    columns: TrainingColumns, residuals: RowSlopes, n_pairs: int
) -> tuple[ColumnPair, ...]:
    """The best pairs of the columns that may be paired, so many at the most; the best first.

    Columns that have to rise or to fall are in no pair: it could turn them round.
    """
    cuts = columns.cuts_for_pairs
    n = len(cuts)
    if n < 2:
        return ()
    every = -(-residuals.rows.size * n * (n - 1) // 2 // _UPDATES)
    rows = residuals.rows
    slopes = residuals.slopes
    if every > 1:  # not every n-th: in lists of equal length all of them may be positives
        picked = np.random.default_rng(0).permutation(rows.size)[: rows.size // every]
        rows = rows[picked]
        slopes = slopes[picked]
    some = columns.rows.take(rows)
    sizes = np.array([cut.n_cells for cut in cuts])
    cells = np.empty((n, rows.size), dtype=np.uint8)
    for place, cut in enumerate(cuts):
        cells[place] = np.maximum(cut.cells(some), 0)
    gains = np.full((n, n), -np.inf)
    _gains(cells, slopes, sizes, _SMALL, MOST_CELLS, gains)
    first, second = np.triu_indices(n, 1)
    gain = gains[first, second]
    best = np.argsort(-gain, kind="stable")[:n_pairs]
    best = best[gain[best] > 0.0]
    return tuple(
        ColumnPair(cuts[i], cuts[j]) for i, j in zip(first[best], second[best], strict=True)
    )


@kernel
def _gains(
    cells: Array, slopes: Array, sizes: Array, small: float, most_cells: int, gains: Array
) -> None:
    """Write what each pair gains above chance; pairs of too many cells are left out."""
    mean_square = 0.0
    for slope in slopes:
        mean_square += slope * slope / slopes.size
    for a in range(sizes.size):
        for b in range(a + 1, sizes.size):
            n_cells = sizes[a] * sizes[b]
            if n_cells > most_cells:
                continue
            sums = np.zeros(n_cells)
            counts = np.zeros(n_cells)
            for i in range(slopes.size):
                c = cells[a, i] * sizes[b] + cells[b, i]
                sums[c] += slopes[i]
                counts[c] += 1.0
            shape = (sizes[a], sizes[b])
            gains[a, b] = _gain(sums.reshape(shape), counts.reshape(shape), mean_square, small)


@kernel
def _gain(sums: Array, counts: Array, mean_square: float, small: float) -> float:
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
                gain += (sums[i, j] * sums[i, j] - mean_square * n * left) / (n + small)
    return gain
