"""Lists in the columns that a setting trains: lines, curves, levels, pairs, in their units."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.additive import AdditiveFunction
from structsvm_papk.data.columns.checks import LOWEST
from structsvm_papk.data.columns.knots import Knots, knots_of
from structsvm_papk.data.columns.pairs import PairCuts
from structsvm_papk.data.columns.plan import Plan
from structsvm_papk.data.columns.units import InUnits
from structsvm_papk.data.missing import constant_fill, filled_lists
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.rankers.settings import Setting

ListsT = TypeVar("ListsT", bound=InUnits)


@dataclass(frozen=True, eq=False)
class InColumns(Generic[ListsT]):
    """Lists in the columns that have weights, and what the weights are of.

    Attributes
    ----------
    plan : Plan
    lists : RankingData or PartitionedRisk
        In the units of the penalty; columns that fall are turned.
    constrained : bool or ndarray of bool
        Which weights have to be 0 or above: a setting `positive` of solvers.
    """

    plan: Plan
    lists: ListsT
    constrained: Any = False

    def function(self, w: Array, *, with_deviations: bool = False) -> AdditiveFunction:
        """The function of a solver's weights; columns that are constant within lists have none."""
        varies = self.lists.deviation() > 0.0  # the others' weights are what rounding leaves
        weights = np.where(varies, self.lists.units.of_columns(w), 0.0) + 0.0  # never -0
        deviations = self.lists.term_deviations(weights) if with_deviations else None
        return self.plan.function(weights, deviations)

    @property
    def scale(self) -> Array | None:
        """What each column's line or straight part is divided by; NaN where it has none."""
        scale = self.lists.units.scale
        if scale is None:
            return None
        straight = self.plan.straight
        return np.where(straight < 0, np.nan, np.abs(scale[straight]))

    def weights(self, function: AdditiveFunction) -> Array:
        """The solver's weights of a function."""
        units = self.lists.units
        return units.of_solver(self.plan.weights(function, units.scale))


class TrainingColumns:
    """What the columns of some lists may become: lines or curves, in the units of the penalty.

    Parameters
    ----------
    given : RankingData
        As they came, with missing values, and the places of levels.
    missing : {None, 'separate', 'lowest'}
    standardize : bool or 'auto'
    signs : ndarray of shape (n_columns,), optional
        1 and -1 for columns that have to rise and to fall, 0 for others.
    positive : bool
        Whether all columns have to rise.
    """

    def __init__(
        self,
        given: RankingData,
        missing: str | None,
        standardize: bool | str,
        signs: Array | None = None,
        positive: bool = False,
    ) -> None:
        self.given = given
        self.missing = missing
        self.standardize = standardize
        self.signs = signs
        self.positive = positive
        self.fill = constant_fill(given, missing)
        names = given.feature_names
        numbers = tuple(map(str, range(given.n_columns)))
        self.plan = Plan(
            names=numbers if names is None else tuple(map(str, names)),
            levels=given.levels,
            with_gaps=given.with_holes,
            fill=self.fill,
            adds_fill=missing == LOWEST,
        )
        self._rows = filled_lists(given, missing, self.fill, given.levels)
        self._made: dict[tuple[int | None, PairCuts | None], InColumns[RankingData]] = {}

    def of(self, setting: Setting, pairs: PairCuts | None = None) -> InColumns[RankingData]:
        """The lists in the columns of a setting, and of some pairs of columns."""
        made = self._in_columns(setting.pieces, pairs)
        lists = made.lists.stiffened(setting.stiffness)
        signs = made.plan.signs(self.signs, self.positive)
        if (signs < 0).any():
            lists = lists.turned(signs < 0)
        constrained: Any = signs != 0
        if not constrained.any():
            constrained = False
        return InColumns(made.plan, lists, constrained)

    def like(self, given: RankingData) -> TrainingColumns:
        """Those of other lists, by the same settings."""
        return TrainingColumns(given, self.missing, self.standardize, self.signs, self.positive)

    @property
    def lines_in_units(self) -> InColumns[RankingData]:
        """The lists with lines for columns of numbers."""
        return self._in_columns(None, None)

    def _in_columns(self, pieces: int | None, pairs: PairCuts | None) -> InColumns[RankingData]:
        """The lists standardized, made once."""
        if (pieces, pairs) not in self._made:
            plan = replace(self.plan, pairs=pairs)
            if pieces is not None:
                plan = replace(plan, knots=self._knots(pieces))
            lists = self.given
            if not plan.is_plain:
                lists.refuse_sparse_curves()
                lists = lists.with_columns(plan.columns(self._rows), plan.weight_names)
            self._made[pieces, pairs] = InColumns(plan, lists.standardized(self.standardize))
        return self._made[pieces, pairs]

    def _knots(self, pieces: int) -> Knots:
        """Knots of the columns of numbers, between values that are there."""
        numbers = self.plan.numbers
        rising = np.full(self.plan.n_columns, self.positive)
        if self.signs is not None:
            rising |= self.signs != 0
        counts = self.given.value_counts(columns=numbers)
        return knots_of(counts, pieces, rising[numbers])
