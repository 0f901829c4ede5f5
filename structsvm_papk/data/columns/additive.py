"""The function that a fit returns: a sum of terms.

A score is ``((t_1 + t_2) + t_3) + ..`` over the terms in their order, every sum rounded. So the
score of a row is the sum of its contributions to the last bit, and rows with the same values have
the same score, wherever they stand and however they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import for_each
from structsvm_papk.data.columns.checks import YOUR_TABLE, columns_of
from structsvm_papk.data.columns.terms import Curve, Levels, Pair, Term
from structsvm_papk.errors import InputError, warn

_BLOCK_ROWS = 1 << 13  # that are scored at a time: the values of a column stay in the cache


class FilledRows(NamedTuple):
    """A matrix whose missing values were filled, and a mask of where they were."""

    X: Any
    holes: Array | None = None

    def take(self, rows: Array) -> FilledRows:
        """Some of them."""
        holes = None if self.holes is None else self.holes[rows]
        return FilledRows(self.X[rows], holes)


@dataclass(frozen=True, eq=False)
class AdditiveFunction:
    """A sum of terms: one of each column, and those of two columns.

    Attributes
    ----------
    curves : tuple of Curve
        Of columns of numbers, in their order.
    of_levels : tuple of Levels
        Of the other columns.
    pairs : tuple of Pair
    """

    curves: tuple[Curve, ...] = ()
    of_levels: tuple[Levels, ...] = ()
    pairs: tuple[Pair, ...] = ()

    @property
    def n_columns(self) -> int:
        """Columns of X."""
        return len(self.curves) + len(self.of_levels)

    @cached_property
    def of_columns(self) -> tuple[Term, ...]:
        """The terms of one column, in the order of the columns."""
        return tuple(sorted((*self.curves, *self.of_levels), key=lambda term: term.columns))

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Those of one column in the order of the columns, then those of two."""
        return (*self.of_columns, *self.pairs)

    @property
    def is_zero(self) -> bool:
        """Whether all scores are the same."""
        return all(term.is_zero for term in self.terms)

    @cached_property
    def lines(self) -> Array | None:
        """The slope of each column, where all terms are lines through 0; else None."""
        return None if any(curve.knots[0] != 0.0 for curve in self.curves) else self.slopes

    @cached_property
    def slopes(self) -> Array | None:
        """The slope of each column, where all terms are lines; else None."""
        if self.of_levels or self.pairs or not all(curve.is_line for curve in self.curves):
            return None
        return np.array([curve.slope for curve in self.curves])

    @cached_property
    def gaps(self) -> Array:
        """What a missing value of each column of numbers adds; NaN where training had none."""
        gaps = np.full(self.n_columns, np.nan)
        for term in self.curves:
            if term.gap is not None:
                gaps[term.column] = term.gap
        return gaps

    @property
    def levels(self) -> dict[int, tuple[Any, ...]]:
        """The levels of each column that has some."""
        return {term.column: term.levels for term in self.of_levels}

    def scores(self, rows: FilledRows, n_threads: int = 1) -> Array:
        """The score of each row, shape (n_rows,)."""
        if self.lines is not None and rows.holes is None and np.isnan(self.gaps).all():
            return columns_of(rows.X).reported_scores(self.lines, n_threads=n_threads)
        rows = _dense(rows)
        out = np.zeros(rows.X.shape[0])
        starts = range(0, out.size, _BLOCK_ROWS)

        def fill(start: int) -> None:
            block = slice(start, start + _BLOCK_ROWS)
            for term in self.terms:
                out[block] += _added(term, rows, block)

        for_each(fill, starts, n_threads)
        return out

    def contributions(self, rows: FilledRows) -> Array:
        """What each term adds to the score of each row, shape (n_rows, n_terms)."""
        rows = _dense(rows)
        added = np.empty((rows.X.shape[0], len(self.terms)))
        for t, term in enumerate(self.terms):
            added[:, t] = _added(term, rows, slice(None))
        return added

    def refuse_new_gaps(self, X: Any, names: Sequence[str] | None) -> None:
        """Refuse a missing value of a column of numbers that had none in training."""
        if sparse.issparse(X):
            return
        without = [term.column for term in self.curves if term.gap is None]
        missing = np.isnan(X[:, without]) if without else np.zeros((0, 0), dtype=bool)
        if not missing.any():
            return
        row, place = np.argwhere(missing)[0].tolist()
        column = without[place] if names is None else repr(str(names[without[place]]))
        raise InputError(
            f"X has a missing value at row {row}, column {column} (counted from 0), which had none "
            f"in training: fill it, or train with rows in which it is missing {YOUR_TABLE}"
        )

    def warn_of_new_gaps(self, X: Any, names: Sequence[str] | None) -> None:
        """Warn where a column of levels that had no missing value in training has few others."""
        for term in self.of_levels:
            share = 0.0 if term.gap is not None else np.isnan(X[:, term.column]).mean()
            if share > 0.5:
                column = term.column if names is None else repr(str(names[term.column]))
                warn(
                    f"column {column} is missing in {'every row' if share == 1.0 else 'most rows'}"
                    f", and never was in training: it adds 0 {YOUR_TABLE}"
                )


def _dense(rows: FilledRows) -> FilledRows:
    return rows._replace(X=rows.X.toarray()) if sparse.issparse(rows.X) else rows


def _added(term: Term, rows: FilledRows, block: slice) -> Array:
    """What a term adds to some rows; where values were filled, its `gap` comes on top.

    A pair of columns has cells for missing values instead.
    """
    values = [rows.X[block, column].astype(np.float64) for column in term.columns]
    if rows.holes is not None and len(values) == 2:
        is_hole = [rows.holes[block, column] for column in term.columns]
        values = [np.where(hole, np.nan, x) for hole, x in zip(is_hole, values, strict=True)]
    added = term.of(values)
    if rows.holes is not None and term.gap is not None:
        added = added + rows.holes[block, term.columns[0]] * term.gap
    return added
