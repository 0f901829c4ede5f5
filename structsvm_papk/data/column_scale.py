"""What columns are divided by before the penalty sees them, and how that is decided.

    sd_f = sqrt( sum_u sum_{i of u} (x_if - mean_uf)^2 / n_rows )

    each          s_f = sd_f
    indicators    s_f = (high_f - low_f) / 2 where column f takes two values only, else sd_f
    common        s_f = sqrt( mean of sd_g^2 over the columns g that vary )

A rare indicator divided by its deviation, which is almost nothing, would be nearly free: one list
in which it says something by chance would give it a large weight. Half the difference of the two
values is the deviation of an indicator that is as often one as the other. So those are treated as
numbers are, rare ones have a small variance, and what the two values are called does not matter.

Columns that are constant within users, or as good as that, are divided by 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel, read_only
from structsvm_papk._types import Array
from structsvm_papk.data.features import Spread, difference, spread_of
from structsvm_papk.data.piecewise import PiecewiseColumns, variation_of_pieces
from structsvm_papk.errors import InputError

_SMALLEST = 1e-150  # what a column can be divided by lies between these
_LARGEST = 1e300
_ROWS_AT_A_TIME = 1024  # of which columns are searched for a third value
_COMMON = 1e150  # beside a larger one, other columns divided by the same number would be zero


class ScaleRule(StrEnum):
    """What each column is divided by; see the formulas above. Model files hold it."""

    EACH = "each"
    INDICATORS = "indicators"
    COMMON = "common"


@dataclass(frozen=True)
class Variation:
    """How the columns of some lists vary.

    Attributes
    ----------
    deviation : ndarray of shape (n_features,)
        Pooled within users, ``sd_f`` above; 0 for a column that is constant there.
    low, high : ndarray of shape (n_features,)
        The two values of a column in all rows, the same for a constant one; NaN where a column
        takes more values than two, and where nobody looked: in a sparse X.
    n_rows : int
    is_sparse : bool
    """

    deviation: Array
    low: Array
    high: Array
    n_rows: int
    is_sparse: bool

    @classmethod
    def of(cls, X: Any, rows: Array, indptr: Array, spread: Spread) -> Variation:
        """Of the lists ``rows[indptr[u]:indptr[u + 1]]`` of X."""
        if isinstance(X, PiecewiseColumns):
            return cls._of_pieces(X, rows, indptr)
        is_sparse = sparse.issparse(X)
        low = np.full(X.shape[1], np.nan)
        high = low
        if rows.size and not is_sparse:
            low, high = _two_values(X, rows)
        return cls(
            deviation=within_user_deviation(X, rows, indptr, spread),
            low=low,
            high=high,
            n_rows=rows.size,
            is_sparse=is_sparse,
        )

    @classmethod
    def _of_pieces(cls, matrix: PiecewiseColumns, rows: Array, indptr: Array) -> Variation:
        """Of the straight parts, as of the columns themselves, and of the pieces."""
        straight = cls.of(matrix.X, rows, indptr, spread_of(matrix.X, rows, indptr))
        pieces = variation_of_pieces(matrix, rows, indptr)
        return cls(
            deviation=np.concatenate([straight.deviation, pieces.deviation]),
            low=np.concatenate([straight.low, pieces.low]),
            high=np.concatenate([straight.high, pieces.high]),
            n_rows=rows.size,
            is_sparse=False,
        )

    @classmethod
    def pooled(cls, parts: Sequence[Variation]) -> Variation:
        """Of several sets of users together."""
        filled = [part for part in parts if part.n_rows] or list(parts[:1])
        lows = np.array([part.low for part in filled])
        highs = np.array([part.high for part in filled])
        low = lows.min(axis=0)  # NaN where one of them is
        high = highs.max(axis=0)
        known = ((lows == low) | (lows == high)) & ((highs == low) | (highs == high))
        two = known.all(axis=0)
        return cls(
            deviation=_pooled_deviation(filled),
            low=np.where(two, low, np.nan),
            high=np.where(two, high, np.nan),
            n_rows=sum(part.n_rows for part in filled),
            is_sparse=any(part.is_sparse for part in filled),
        )

    @property
    def half_difference(self) -> Array:
        """Of the two values of a column; NaN where it takes more."""
        return self.high / 2 - self.low / 2  # which does not overflow

    @property
    def is_indicator(self) -> Array:
        """Columns of two values that vary within users."""
        return _can_divide(self.deviation) & _can_divide(self.half_difference)

    def rule(self, how: bool | str) -> ScaleRule:
        """What `standardize`, True or 'auto', means for these columns.

        'auto' is `INDICATORS` only where a dense X has any, so that the rule says what was done.
        """
        if not isinstance(how, str):
            return ScaleRule.EACH
        if self.is_sparse:
            return ScaleRule.COMMON
        return ScaleRule.INDICATORS if self.is_indicator.any() else ScaleRule.EACH

    def scale(self, rule: ScaleRule) -> Array:
        """What the columns are divided by, shape (n_features,)."""
        if rule == ScaleRule.COMMON:
            return self._common_scale()
        scale = scale_of(self.deviation)
        if rule == ScaleRule.INDICATORS:
            scale = np.where(self.is_indicator, self.half_difference, scale)
        return scale

    def _common_scale(self) -> Array:
        usual = self.deviation[(self.deviation > _SMALLEST) & (self.deviation < _COMMON)]
        if not usual.size:
            return np.ones(self.deviation.size)
        largest = usual.max()
        mean_square = np.mean(np.square(usual / largest))
        return np.full(self.deviation.size, largest * np.sqrt(mean_square))


def check_standardize(how: Any) -> None:
    """Refuse what is neither 'auto' nor True or False."""
    if not (isinstance(how, bool | np.bool_) or (isinstance(how, str) and how == "auto")):
        raise InputError(f"standardize must be 'auto', True or False, got {how!r}")


def scale_of(deviation: Array) -> Array:
    """What columns are divided by: 1 for those that are constant, or as good as that."""
    return np.where(_can_divide(deviation), deviation, 1.0)


def _can_divide(numbers: Array) -> Array:
    return (numbers > _SMALLEST) & (numbers < _LARGEST)


def within_user_deviation(X: Any, rows: Array, indptr: Array, spread: Spread) -> Array:
    """The deviation of each column over the lists ``rows[indptr[u]:indptr[u + 1]]``; 0: constant.

    Offsets between users do not count, as they do not to a ranking. Deviations are taken from the
    user's first row, in units of the largest of them, so that neither a common offset nor values of
    1e-100 or 1e100 cost digits.
    """
    unit = np.where(spread.within > 0.0, spread.within, 1.0)
    squares = np.zeros(unit.size)
    if sparse.issparse(X):
        _csr_squares(X.data, X.indices, X.indptr, rows, indptr, 1.0 / unit, squares)
    else:
        _row_squares(read_only(X), rows, indptr, 1.0 / unit, squares)
    return np.asarray(unit * np.sqrt(squares / max(rows.size, 1)))


def _pooled_deviation(parts: Sequence[Variation]) -> Array:
    each = np.array([part.deviation for part in parts])
    n_rows = np.array([part.n_rows for part in parts])
    share = n_rows / max(n_rows.sum(), 1)
    unit = np.where(each.any(axis=0), each.max(axis=0), 1.0)
    return np.asarray(unit * np.sqrt(share @ np.square(each / unit)))


def _two_values(X: Any, rows: Array) -> tuple[Array, Array]:
    """The two values of each column, NaN for one with more; ends when all have more.

    On data without indicators that is after the first few rows.
    """
    low = np.full(X.shape[1], np.nan)
    high = np.full(X.shape[1], np.nan)
    columns = np.arange(X.shape[1])  # without a third value so far
    lowest = X[rows[0]]
    highest = X[rows[0]]
    for first in range(0, rows.size, _ROWS_AT_A_TIME):
        block = X[rows[first : first + _ROWS_AT_A_TIME]]
        if columns.size < X.shape[1]:
            block = block[:, columns]
        seen = np.vstack([lowest, highest, block])
        lowest = seen.min(axis=0)
        highest = seen.max(axis=0)
        two = ((seen == lowest) | (seen == highest)).all(axis=0)
        columns = columns[two]
        lowest = lowest[two]
        highest = highest[two]
        if not columns.size:
            break
    low[columns] = lowest
    high[columns] = highest
    return low, high


@kernel
def _row_squares(X, rows, indptr, inverse, squares):
    mean = np.empty(squares.size)
    for u in range(indptr.size - 1):
        first = indptr[u]
        last = indptr[u + 1]
        mean[:] = 0.0
        for p in range(first + 1, last):
            row = X[rows[p]]
            origin = X[rows[first]]
            for f in range(mean.size):
                mean[f] += difference(row[f], origin[f]) * inverse[f]
        mean /= max(last - first, 1)
        for p in range(first, last):
            row = X[rows[p]]
            origin = X[rows[first]]
            for f in range(mean.size):
                away = difference(row[f], origin[f]) * inverse[f] - mean[f]
                squares[f] += away * away


@kernel
def _csr_squares(data, indices, indptr, rows, bounds, inverse, squares):
    """Entries that are not stored are zeros; the origin of a column is its first stored entry."""
    origin = np.zeros(squares.size)
    mean = np.zeros(squares.size)
    count = np.zeros(squares.size, dtype=np.int64)
    for u in range(bounds.size - 1):
        users_rows = rows[bounds[u] : bounds[u + 1]]
        n = users_rows.size
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                if count[f] == 0:
                    origin[f] = data[e]
                mean[f] += difference(data[e], origin[f]) * inverse[f]
                count[f] += 1
        for row in users_rows:  # the sums become means, over the zeros too
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                if count[f] > 0:
                    zero = -origin[f] * inverse[f]
                    mean[f] = (mean[f] + (n - count[f]) * zero) / n
                    away = zero - mean[f]
                    squares[f] += (n - count[f]) * (away * away)
                    count[f] = -1
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                f = indices[e]
                away = difference(data[e], origin[f]) * inverse[f] - mean[f]
                squares[f] += away * away
        for row in users_rows:
            for e in range(indptr[row], indptr[row + 1]):
                mean[indices[e]] = 0.0
                count[indices[e]] = 0
