"""The function that a fit returns, a sum of terms, and the terms, which read one column or two.

====== ==================== ============================================================
Curve  a column of numbers  piecewise linear between knots; a line has one knot
Levels text, categories     the weight of the column's value
Pair   two columns          the weight of the cell that the two values are in
====== ==================== ============================================================

A missing value adds its own weight `gap`, and nothing else of that column. Only with
``missing="lowest"`` it adds that beside what the lowest value of the column in its list adds.
Columns of levels are read as whole numbers: the place of a value among the levels, -1 for one that
training did not have, which adds 0, and NaN for a missing one.

A score is ``((t_1 + t_2) + t_3) + ..`` over the terms in their order, every sum rounded. So the
score of a row is the sum of its contributions to the last bit, and rows with the same values have
the same score, wherever they stand and however they are stored.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import for_each
from structsvm_papk.data.columns.checks import YOUR_TABLE, columns_of
from structsvm_papk.errors import InputError, warn

_BLOCK_ROWS = 1 << 13  # that are scored at a time: the values of a column stay in the cache


class Term(ABC):
    """What one column, or two, add to a score.

    Attributes
    ----------
    name : str
        Of the column, as in the data frame, else its number, counted from 0; of two, both.
    names : tuple of str
        Of each of its columns.
    columns : tuple of int
        The columns that it reads.
    deviation : float
        Standard deviation within lists of what it added to the scores in training.
    gap : float or None
        What a missing value adds; None where training had none in its column, and of two columns,
        which have cells for missing values.
    """

    name: str
    names: tuple[str, ...]
    columns: tuple[int, ...]
    deviation: float
    gap: float | None = None

    @property
    @abstractmethod
    def is_zero(self) -> bool:
        """Whether it adds the same to every score."""

    @property
    @abstractmethod
    def heights(self) -> Array:
        """What it adds at its knots, for its levels or in its cells; of a line nothing."""

    @property
    def course(self) -> str:
        """How it moves as its column grows: 'rises', 'falls', 'both', or '-'."""
        return "-"

    @property
    def mean_slope(self) -> float:
        """The slope of a line; of a curve that of the line between its ends."""
        return 0.0

    @property
    def levels_of_columns(self) -> dict[int, tuple[Any, ...]]:
        """The levels of each of its columns that has some."""
        return {}

    def at_levels(self, levels: Sequence[Any]) -> Array:
        """What it adds for each of some levels of its column; 0 for those that it does not know."""
        return np.zeros(len(levels))

    @abstractmethod
    def of(self, values: Sequence[Array]) -> Array:
        """What it adds for values of its columns, where NaN is a missing value."""

    def renamed(self, names: Sequence[str]) -> Self:
        """The same, where the columns of X have these names."""
        return replace(self, name=names[self.columns[0]])  # type: ignore[type-var]

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """What it is as plain values, for JSON; the page on production has the formulas."""


@dataclass(frozen=True)
class Curve(Term):
    """A piecewise linear function of a column, or a straight line.

        f(x) = values[i] + (values[i+1] - values[i]) (x - knots[i]) / (knots[i+1] - knots[i])

    for ``knots[i] <= x <= knots[i+1]``. Beyond its knots a curve is flat. A line has one knot,
    where it is 0, and its slope everywhere.

    Attributes
    ----------
    name, deviation
        As of `Term`.
    column : int
    knots : ndarray of shape (n_knots,)
        Where the slope may change, increasing.
    values : ndarray of shape (n_knots,)
        The function at the knots; 0 at the first.
    slope : float
        Beyond the knots: 0 but for lines.
    gap : float or None
        What a missing value adds; None where training had none in this column.
    """

    name: str
    column: int
    knots: Array
    values: Array
    slope: float
    deviation: float
    gap: float | None = None

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.column,)

    @property
    def is_line(self) -> bool:
        """Whether it has one knot."""
        return self.knots.size == 1

    @property
    def is_zero(self) -> bool:
        return not (self.slope or self.values.any() or self.gap)

    @property
    def heights(self) -> Array:
        return self.values[:0] if self.is_line else self.values

    @property
    def course(self) -> str:
        steps = np.append(np.diff(self.values), self.slope)
        if not (steps < 0.0).any():
            return "rises" if steps.any() else "-"
        return "both" if (steps > 0.0).any() else "falls"

    @property
    def mean_slope(self) -> float:
        if self.is_line:
            return self.slope
        return float((self.values[-1] - self.values[0]) / (self.knots[-1] - self.knots[0]))

    def __call__(self, x: ArrayLike) -> Array:
        """The function at some values of the column, an array of the same shape; NaN stays NaN.

        Where the values at the knots rise, no larger x has a smaller f(x), whatever is rounded.
        """
        x = np.asarray(x, dtype=np.float64)
        out = np.empty(x.size)
        _curve(x.ravel(), self.knots, self.values, self.slope, out)
        return out.reshape(x.shape)

    def of(self, values: Sequence[Array]) -> Array:
        added = self(values[0])
        return added if self.gap is None else np.where(np.isnan(values[0]), self.gap, added)

    def description(self) -> dict[str, Any]:
        return {
            "kind": "line" if self.is_line else "curve",
            "column": self.name,
            "knots": self.knots.tolist(),
            "values": self.values.tolist(),
            "slope": float(self.slope),
            "gap": self.gap,
        }


@dataclass(frozen=True)
class Levels(Term):
    """A weight for each value of a column: text, categories, booleans.

    Attributes
    ----------
    name, deviation
        As of `Term`.
    column : int
    levels : tuple of str, bool, int or float
        The values that training had.
    weights : ndarray of shape (n_levels,)
    gap : float or None
        What a missing value adds; None where training had none, and then it adds 0.
    """

    name: str
    column: int
    levels: tuple[Any, ...]
    weights: Array
    deviation: float
    gap: float | None = None

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return (self.name,)

    @property
    def columns(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.column,)

    @property
    def is_zero(self) -> bool:
        return not (self.weights.any() or self.gap)

    @property
    def heights(self) -> Array:
        return self.weights

    @property
    def levels_of_columns(self) -> dict[int, tuple[Any, ...]]:
        return {self.column: self.levels}

    def at_levels(self, levels: Sequence[Any]) -> Array:
        place = {level: i for i, level in enumerate(self.levels)}
        return self.of([np.array([float(place.get(level, -1)) for level in levels])])

    def of(self, values: Sequence[Array]) -> Array:
        return weights_at(self._table, values[0])

    @cached_property
    def _table(self) -> Array:
        """Weights of the levels, of a missing value, and of any other value."""
        return np.concatenate([self.weights, [self.gap or 0.0, 0.0]])

    def description(self) -> dict[str, Any]:
        return {
            "kind": "levels",
            "column": self.name,
            "levels": list(self.levels),
            "weights": self.weights.tolist(),
            "gap": self.gap,
        }


class Cut(NamedTuple):
    """How the values of a column are put into cells.

    `edges` are the values at which the next cell begins, of a column of numbers; None for levels,
    each of which is a cell. `n_cells` counts them, without that of missing values, which is the
    last; `names` are those of levels.
    """

    edges: Array | None
    n_cells: int
    names: tuple[Any, ...] = ()

    def cells(self, values: Array) -> Array:
        """The cell of each value, int16; -1 for a level that training did not have."""
        gap = np.isnan(values)
        if self.edges is not None:
            cells = np.zeros(values.size, dtype=np.int16)
            for edge in self.edges:  # a few: faster than a bisection
                cells += values >= edge
        else:
            cells = np.where(gap, 0, values).astype(np.int16)
        cells[gap] = self.n_cells
        return cells

    def description(self) -> dict[str, Any]:
        """Its edges, or its levels."""
        if self.edges is None:
            return {"levels": list(self.names)}
        return {"edges": self.edges.tolist()}


@dataclass(frozen=True)
class Pair(Term):
    """A weight for each cell of two columns.

    Attributes
    ----------
    names : tuple of str
    columns : tuple of int
        The two columns.
    cuts : tuple of Cut
        How each of them is cut.
    weights : ndarray of shape (n_cells + 1, n_cells + 1)
        The weight of each cell; the last row and column are those of missing values.
    """

    names: tuple[str, str]
    columns: tuple[int, int]
    cuts: tuple[Cut, Cut]
    weights: Array
    deviation: float

    @property
    def name(self) -> str:  # type: ignore[override]
        """Of both columns."""
        return " x ".join(self.names)

    @property
    def is_zero(self) -> bool:
        return not self.weights.any()

    @property
    def heights(self) -> Array:
        return self.weights.ravel()

    @property
    def levels_of_columns(self) -> dict[int, tuple[Any, ...]]:
        of_columns = zip(self.columns, self.cuts, strict=True)
        return {column: cut.names for column, cut in of_columns if cut.edges is None}

    def renamed(self, names: Sequence[str]) -> Self:
        first, second = self.columns
        return replace(self, names=(names[first], names[second]))

    def of(self, values: Sequence[Array]) -> Array:
        first = self.cuts[0].cells(values[0])
        second = self.cuts[1].cells(values[1])
        known = (first >= 0) & (second >= 0)
        return np.where(known, self.weights[first, second], 0.0)

    def description(self) -> dict[str, Any]:
        return {
            "kind": "pair",
            "columns": list(self.names),
            "cells": [cut.description() for cut in self.cuts],
            "weights": self.weights.tolist(),
        }


def weights_at(table: Array, codes: Array) -> Array:
    """Weights of levels; the last two of the table are of a missing value and of any other one."""
    n_levels = table.size - 2
    gap = np.isnan(codes)
    place = np.where(gap, n_levels, codes).astype(np.int64)
    return table[np.where(place < 0, n_levels + 1, place)]


@kernel
def _curve(x: Array, knots: Array, values: Array, slope: float, out: Array) -> None:
    last = knots.size - 1
    for i in range(x.size):
        if np.isnan(x[i]):
            out[i] = np.nan
        elif x[i] < knots[0]:
            out[i] = values[0] if slope == 0.0 else values[0] + slope * (x[i] - knots[0])
        elif x[i] >= knots[last]:
            out[i] = values[last] if slope == 0.0 else values[last] + slope * (x[i] - knots[last])
        else:
            low = 0
            high = last
            while high - low > 1:
                middle = (low + high) // 2
                if x[i] >= knots[middle]:
                    low = middle
                else:
                    high = middle
            rise = (values[high] - values[low]) / (knots[high] - knots[low])
            value = values[low] + rise * (x[i] - knots[low])
            # rounded it may pass the next knot's value
            if values[high] >= values[low]:
                out[i] = min(value, values[high])
            else:
                out[i] = max(value, values[high])


# --- their sum ------------------------------------------------------------------------------------


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
                out[block] += added_by(term, rows, block)

        for_each(fill, starts, n_threads)
        return out

    def contributions(self, rows: FilledRows) -> Array:
        """What each term adds to the score of each row, shape (n_rows, n_terms)."""
        rows = _dense(rows)
        added = np.empty((rows.X.shape[0], len(self.terms)))
        for t, term in enumerate(self.terms):
            added[:, t] = added_by(term, rows)
        return added

    def with_deviations(self, deviations: Mapping[int, float]) -> AdditiveFunction:
        """The same, where the terms of some columns of numbers have other deviations."""
        curves = [
            replace(curve, deviation=deviations.get(curve.column, curve.deviation))
            for curve in self.curves
        ]
        return replace(self, curves=tuple(curves))

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


def added_by(term: Term, rows: FilledRows, block: slice = slice(None)) -> Array:
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
