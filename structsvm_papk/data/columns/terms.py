"""What a ranker adds up: a score is the sum of terms, and a term reads one column, or two.

====== ==================== ============================================================
Curve  a column of numbers  piecewise linear between knots; a line has one knot
Levels text, categories     the weight of the column's value
Pair   two columns          the weight of the cell that the two values are in
====== ==================== ============================================================

A missing value adds its own weight `gap`, and nothing else of that column. Only with
``missing="lowest"`` it adds that beside what the lowest value of the column in its list adds.
Columns of levels are read as whole numbers: the place of a value among the levels, -1 for one that
training did not have, which adds 0, and NaN for a missing one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array


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
