"""Which terms the columns of some lists become, and back: the terms of a solution's weights.

    columns of numbers     a line or a curve each; missing values were filled, see `missing`
    missing values         a weight for each column of numbers that has some: "is missing"
    columns of levels      a weight for each level, of two for the second; where there are missing
                           values a weight for each, and one for those
    pairs of columns       a weight for each cell, and one for their pattern: see `pairs`

They stand beside each other in this order. A missing value that was filled by one number c adds the
weight of "is missing" and what c adds: both together are the `gap` of the term, and so the penalty
holds it to the middle of its column, not to 0. With ``missing="lowest"``, where c is another one
for each list, `gap` is the weight alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import Columns, ColumnsBeside
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.knots import Knots
from structsvm_papk.data.columns.levels import LevelColumns
from structsvm_papk.data.columns.pairs import PairCuts
from structsvm_papk.data.columns.pieces import PiecewiseColumns
from structsvm_papk.data.columns.tables import Levels as LevelsOfColumns
from structsvm_papk.data.columns.terms import AdditiveFunction, Curve, FilledRows, Levels, Term
from structsvm_papk.errors import InputError


@dataclass(frozen=True, eq=False)
class Plan:
    """Which terms columns become.

    Attributes
    ----------
    names : tuple of str
        Of the columns as they were given.
    levels : mapping of int to tuple
        The levels of each column that has some.
    with_gaps : ndarray of bool, shape (n_columns,)
        Columns with missing values in training.
    fill : ndarray of shape (n_columns,), or None
        What stands in for a missing number; None: the lowest of its list.
    adds_fill : bool
        Whether a missing value adds what its `fill` adds beside its own weight: ``'lowest'``.
    knots : Knots or None
        Of the columns of numbers; None: they are lines.
    pairs : PairCuts or None
    """

    names: tuple[str, ...]
    levels: LevelsOfColumns = field(default_factory=dict)
    with_gaps: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    fill: Array | None = None
    adds_fill: bool = False
    knots: Knots | None = None
    pairs: PairCuts | None = None

    @property
    def n_columns(self) -> int:
        """Columns as they were given."""
        return len(self.names)

    @cached_property
    def numbers(self) -> Array:
        """The columns of numbers."""
        return np.delete(np.arange(self.n_columns), list(self.levels))

    @cached_property
    def gaps(self) -> Array:
        """The columns of numbers with missing values."""
        return self.numbers[self.with_gaps[self.numbers]]

    @property
    def is_plain(self) -> bool:
        """Whether columns are lines, nothing is missing, and all are numbers."""
        no_gaps = not self.gaps.size and not self.levels
        return no_gaps and self.knots is None and self.pairs is None

    @property
    def weight_names(self) -> list[str]:
        """What messages call the columns of the storages, see `columns`."""
        names = [self.names[j] for j in self.numbers]
        names += [f"{self.names[j]} is missing" for j in self.gaps]
        names += [self.names[j] for j in self.levels]
        if self.pairs is not None:
            names += [" x ".join(self.names[j] for j in pair.columns) for pair in self.pairs.pairs]
        return names

    # --- rows -> columns of weights ---------------------------------------------------------------

    def columns(self, rows: FilledRows) -> Columns:
        """The columns that have weights, of rows whose missing numbers were filled.

        But for pairs of columns, which stand behind them, see `PairCuts.columns`.
        """
        X = rows.X
        parts: list[Columns] = []
        numbers = self.numbers
        if numbers.size:
            values = X if numbers.size == self.n_columns else np.ascontiguousarray(X[:, numbers])
            if self.knots is None:
                parts.append(DenseColumns(values))
            else:
                parts.append(PiecewiseColumns(values, self.knots))
        if self._n_levels.size:
            parts.append(LevelColumns(self._all_codes(rows), self._n_levels))
        return parts[0] if len(parts) == 1 else ColumnsBeside(parts)

    def _all_codes(self, rows: FilledRows) -> Array:
        """Which numbers are missing, level 0 of one, and the levels of the other columns."""
        codes = np.empty((rows.X.shape[0], self._n_levels.size), dtype=np.uint8)
        n_gaps = self.gaps.size
        if n_gaps:
            assert rows.holes is not None
            codes[:, :n_gaps] = ~rows.holes[:, self.gaps]
        for place, j in enumerate(self.levels, start=n_gaps):
            codes[:, place] = self._codes(rows.X[:, j], j)
        return codes

    @cached_property
    def _n_levels(self) -> Array:
        """One of each column of numbers with gaps, then the levels, and the gap, of the others."""
        of_levels = [self._n_weights(j) + bool(self.with_gaps[j]) for j in self.levels]
        return np.array([1] * self.gaps.size + of_levels, dtype=np.int64)

    def _n_weights(self, j: int) -> int:
        """Levels of a column that have a weight.

        Of two the second, as an indicator has one; each beside missing values, which would be held
        to the first one else.
        """
        n_levels = len(self.levels[j])
        return 1 if n_levels == 2 and not self.with_gaps[j] else n_levels

    def _codes(self, values: Array, j: int) -> Array:
        """Which of the weights of a column each value has; their number where it has none."""
        n_weights = self._n_weights(j)
        gap = np.isnan(values)
        none = n_weights + bool(self.with_gaps[j])
        first = len(self.levels[j]) - n_weights
        code = np.where(gap | (values < first), none, values - first)
        return np.where(gap & self.with_gaps[j], n_weights, code)

    def signs(self, signs: Array | None, positive: bool) -> Array:
        """1 for weights that have to be >= 0, -1 for <= 0, 0 for free ones.

        Parameters
        ----------
        signs : ndarray of shape (n_columns,), optional
            1 for columns that have to rise, -1 for those that have to fall.
        positive : bool
            Whether all columns have to rise, and a missing value may not count for a row.
        """
        of_columns = np.zeros(self.n_columns) if signs is None else signs
        if positive:
            of_columns = np.ones(self.n_columns)
        of_gaps = np.full(self.gaps.size, -1.0 if positive and self.adds_fill else 0.0)
        of_numbers = of_columns[self.numbers]
        if self.knots is not None:
            of_numbers = of_numbers[self.knots.column_of_weight]
        n_free = int(self._n_levels[self.gaps.size :].sum())  # levels and cells have no order
        if self.pairs is not None:
            n_free += self.pairs.n_weights
        return np.concatenate([of_numbers, of_gaps, np.zeros(n_free)])

    @property
    def straight(self) -> Array:
        """The weight of each column's line or straight part; -1 where it has none."""
        weights = np.full(self.n_columns, -1)
        weights[self.numbers] = np.arange(self.numbers.size)
        if self.knots is not None:
            weights[self.numbers] = self.knots.straight_of_column
        return weights

    # --- weights -> terms -------------------------------------------------------------------------

    def function(self, w: Array, deviations: Array | None = None) -> AdditiveFunction:
        """The terms of weights of `columns`, in their own units.

        `deviations` are those of what each column of the storages adds to the scores, in the order
        of `weight_names`.
        """
        spread = np.zeros(len(self.weight_names)) if deviations is None else deviations
        n_numbers = self.numbers.size
        n_gaps = self.gaps.size
        n_of_numbers = n_numbers if self.knots is None else self.knots.n_weights
        of_numbers, *own, of_pairs = np.split(w, np.cumsum([n_of_numbers, *self._n_levels]))
        spreads = np.split(spread, np.cumsum([n_numbers, n_gaps, len(self.levels)]))
        curves = self._curves(of_numbers, own[:n_gaps], spreads[0].tolist())
        levels = [
            self._levels_of(j, weights, deviation)
            for j, weights, deviation in zip(
                self.levels, own[n_gaps:], spreads[2].tolist(), strict=True
            )
        ]
        pairs = self.pairs.terms(of_pairs, self.names, spreads[3]) if self.pairs else ()
        return AdditiveFunction(tuple(curves), tuple(levels), pairs)

    def _levels_of(self, j: int, own: Array, deviation: float) -> Levels:
        """The term of a column of levels."""
        levels = self.levels[j]
        return Levels(
            name=self.names[j],
            column=j,
            levels=tuple(levels),
            weights=_of_all_levels(own, levels),
            deviation=deviation,
            gap=float(own[-1]) if self.with_gaps[j] else None,
        )

    def _curves(
        self, w: Array, of_gaps: Sequence[Array], deviations: Sequence[float]
    ) -> list[Curve]:
        """The terms of the columns of numbers."""
        numbers = self.numbers
        if self.knots is None:
            slopes = w
            knots = [np.zeros(1)] * numbers.size
            values = knots
        else:
            inner = self.knots
            slopes = inner.slopes(w)
            at_knots = inner.values(w)
            knots = [inner.column(i) for i in range(numbers.size)]
            values = [at_knots[inner.starts[i] : inner.starts[i + 1]] for i in range(numbers.size)]
        gap_of = {j: float(own[0]) for j, own in zip(self.gaps.tolist(), of_gaps, strict=True)}
        curves = []
        for i, j in enumerate(numbers.tolist()):
            slope = float(slopes[i])
            curve = Curve(self.names[j], j, knots[i], values[i], slope, deviations[i])
            if j in gap_of:
                gap = gap_of[j]
                if not self.adds_fill:
                    assert self.fill is not None
                    gap += float(curve(self.fill[j]))
                curve = replace(curve, gap=gap)
            curves.append(curve)
        return curves

    # --- terms -> weights -------------------------------------------------------------------------

    def weights(self, function: AdditiveFunction, scale: Array | None = None) -> Array:
        """Weights of `columns`, in their own units, whose terms are those of a function.

        Where it has other knots or levels, or none, they are as close as these columns allow.
        `scale` is what weights are multiplied by before they are squared in the penalty.
        """
        if function.n_columns != self.n_columns:
            raise InputError(
                f"warm_start: the last fit had {function.n_columns} features, X has "
                f"{self.n_columns}"
            )
        of_column = function.of_columns
        parts = []
        if self.numbers.size:
            parts.append(self._weights_of_numbers(of_column, scale))
            parts.append(np.array([self._weight_of_gap(of_column[j]) for j in self.gaps.tolist()]))
        for j, levels in self.levels.items():
            added = of_column[j].at_levels(levels)
            if self.with_gaps[j]:
                added = np.append(added, of_column[j].gap or 0.0)
            first = len(levels) - self._n_weights(j)
            parts.append(added[first:] - (added[0] if first else 0.0))
        if self.pairs is not None:
            own = None if scale is None else scale[-self.pairs.n_weights :]
            parts.append(self.pairs.weights(function, own))
        return np.concatenate(parts)

    def _weights_of_numbers(self, of_column: Sequence[Term], scale: Array | None) -> Array:
        old = [of_column[j] for j in self.numbers.tolist()]
        slopes = np.array([term.mean_slope for term in old])
        if self.knots is None:
            return slopes
        values = [term.of([self.knots.column(i)]) for i, term in enumerate(old)]
        own = None if scale is None else scale[: self.knots.n_weights]
        return self.knots.weights(np.concatenate(values), slopes, own)

    def _weight_of_gap(self, term: Term) -> float:
        gap = term.gap or 0.0
        if self.adds_fill or term.gap is None:
            return float(gap)
        assert self.fill is not None
        return float(gap - term.of([self.fill[list(term.columns)]])[0])


def _of_all_levels(own: Array, levels: Sequence[Any]) -> Array:
    """The weights of all levels; those of two with one weight lie as far below 0 as above."""
    if own.size < len(levels):
        return np.array([-0.5, 0.5]) * own[0]
    return own[: len(levels)]
