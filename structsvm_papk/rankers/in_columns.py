"""Lists in the columns that a setting trains: lines, curves, levels, pairs, in their units.

A fit takes this way wherever its lists are, see `ColumnsToFit`: columns of a setting, a risk of
them, and the function of the weights that minimise it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from structsvm_papk._cholesky import Factor, factor_of
from structsvm_papk._types import Array, Callback
from structsvm_papk.data.columns.checks import LOWEST
from structsvm_papk.data.columns.dense import DenseColumns
from structsvm_papk.data.columns.knots import Knots, knots_of
from structsvm_papk.data.columns.missing import Filling, falling_columns
from structsvm_papk.data.columns.pairs import ColumnCut, PairCuts, cut_of_numbers
from structsvm_papk.data.columns.plan import Plan
from structsvm_papk.data.columns.terms import AdditiveFunction, Cut, FilledRows, added_by
from structsvm_papk.data.columns.value_counts import ValueCounts
from structsvm_papk.data.ranking_data import Parts, RankingData
from structsvm_papk.diagnosis.zero_test import beside_zero
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.partitions import Partitions
from structsvm_papk.rankers.settings import Setting
from structsvm_papk.solvers.solver import SolverResult
from structsvm_papk.surrogates import Surrogate

PartsT = TypeVar("PartsT", bound=Parts)
_WEIGHTS_A_ROW = 5  # from which on products of all rows of one list with each other pay,
_MOST_ROWS = 700  # and up to which


@dataclass(frozen=True, eq=False)
class InColumns(Generic[PartsT]):
    """Lists in the columns that have weights, and what the weights are of.

    Attributes
    ----------
    plan : Plan
    lists : RankingData or Partitions
        In the units of the penalty; columns that fall are turned.
    constrained : bool or ndarray of bool
        Which weights have to be 0 or above: a setting `positive` of solvers.
    without_pairs : RankingData, optional
        The lists without the pairs of columns, where there are some.
    """

    plan: Plan
    lists: PartsT
    constrained: Any = False
    without_pairs: PartsT | None = None

    @property
    def for_alpha(self) -> PartsT:
        """The lists whose columns the rule for alpha looks at: those without pairs."""
        return self.lists if self.without_pairs is None else self.without_pairs

    @cached_property
    def span(self: InColumns[RankingData]) -> RowSpan | None:
        """One list in the span of its rows; None where weights are few, or have signs.

        Several lists take a few passes, and less time than the products of their rows.
        """
        lists = self.lists
        n_rows = lists.rows.size
        if lists.n_users > 1 or n_rows > _MOST_ROWS or lists.n_features < _WEIGHTS_A_ROW * n_rows:
            return None
        if lists.is_sparse or self.constrained is not False:
            return None
        columns = lists.columns.take(lists.rows)
        factor = factor_of(
            columns.inner_products(lists.units.of_columns(np.ones(columns.n_weights)))
        )
        of_rows = np.zeros((lists.columns.n_rows, factor.pivots.size))
        of_rows[lists.rows] = factor.rows
        return RowSpan(lists.with_columns(DenseColumns(of_rows)), factor)

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


class RowSpan(NamedTuple):
    """One list whose columns are coordinates in the space that its rows span.

    The weights that minimise are sums of rows, ``w = M' b``. With ``M M' = L L'`` the scores
    ``M w`` are ``L v`` of some v with ``|v| = |w|``: the same problem, in at most as many weights
    as there are rows. Of a few hundred rows and thousands of cells it takes half of the time.
    """

    lists: RankingData
    factor: Factor

    def weights(self, scores: Array) -> Array:
        """Those that give the rows these scores, where some do."""
        return self.factor.coordinates(scores)


class ColumnsToFit(ABC, Generic[PartsT]):
    """What a fit is given: lists somewhere, and what their columns may become.

    Attributes
    ----------
    given : RankingData or Partitions
        As they came.
    signs : ndarray of shape (n_columns,), or None
        1 and -1 for columns that have to rise and to fall, 0 for others.
    filling : Filling
        What stands in for missing values.
    """

    given: PartsT
    signs: Array | None = None
    filling: Filling = Filling(None)

    @abstractmethod
    def of(self, setting: Setting, pairs: PairCuts | None = None) -> InColumns[PartsT]:
        """The lists in the columns of a setting, and of some pairs of columns."""

    @abstractmethod
    def risk(self, surrogate: Surrogate, lists: PartsT, policy: str, n_threads: int) -> Any:
        """The risk of a surrogate on lists that `of` has put into columns."""

    def fitted(self, in_columns: InColumns[PartsT], w: Array) -> AdditiveFunction:
        """The function of a solver's weights, with the deviations of its terms."""
        return in_columns.function(w, with_deviations=True)

    def beside_zero(
        self, risk: Any, solver: Any, result: SolverResult, callback: Callback
    ) -> tuple[SolverResult, bool]:
        """A result, and whether zero is proved to be optimal where it ended there."""
        return result, False


class ColumnsInPartitions(ColumnsToFit[Partitions]):
    """Columns in files or on workers, which are read as lines, or as curves between known knots.

    Which users are left out, and who computes, was said when they were read.
    """

    def __init__(
        self, given: Partitions, names: Any, standardize: bool | str, positive: bool
    ) -> None:
        self.given = given
        self.plan = Plan(
            names=tuple(map(str, range(given.n_columns) if names is None else names)),
            with_gaps=np.zeros(given.n_columns, dtype=bool),
            knots=given.knots,
        )
        self.standardize = standardize
        self.positive = positive

    def of(  # noqa: D102
        self, setting: Setting, pairs: PairCuts | None = None
    ) -> InColumns[Partitions]:
        lists = self.given
        if lists.units.scale is None:
            lists = lists.standardized(self.standardize).stiffened(setting.stiffness)
        return InColumns(self.plan, lists, self.positive)

    def risk(  # noqa: D102
        self, surrogate: Surrogate, lists: Partitions, policy: str, n_threads: int
    ) -> PartitionedRisk:
        return PartitionedRisk(surrogate, lists)


class TrainingColumns(ColumnsToFit[RankingData]):
    """What the columns of lists in memory may become, in the units of the penalty.

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

    Attributes
    ----------
    as_folds_see : tuple of TrainingColumns and Digests, or None
        Where `choosing` keeps those that folds look at, for the search for pairs that follows.
    """

    as_folds_see: Any = None

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
        self.filling = Filling.of(given, missing, falling_columns(signs))
        names = given.feature_names
        numbers = tuple(map(str, range(given.n_columns)))
        self.plan = Plan(
            names=numbers if names is None else tuple(map(str, names)),
            levels=given.levels,
            with_gaps=given.with_holes,
            fill=self.filling.constant,
            adds_fill=missing == LOWEST,
        )
        self.rows = self.filling.of_lists(given, given.levels)
        self._made: dict[int | None, InColumns[RankingData]] = {}
        self._cuts_of_numbers: dict[int, ColumnCut] = {}  # once their values were counted

    def of(  # noqa: D102
        self, setting: Setting, pairs: PairCuts | None = None
    ) -> InColumns[RankingData]:
        made = self._in_columns(setting.pieces)
        without_pairs = None
        if pairs is not None:
            without_pairs = made.lists.stiffened(setting.stiffness)
            plan = replace(made.plan, pairs=pairs)
            lists = made.lists.beside(pairs.columns(self.rows), plan.weight_names)
            made = InColumns(plan, lists.standardized(self.standardize))
        lists = made.lists.stiffened(setting.stiffness)
        signs = made.plan.signs(self.signs, self.positive)
        if (signs < 0).any():
            lists = lists.turned(signs < 0)
        constrained: Any = signs != 0
        if not constrained.any():
            constrained = False
        return InColumns(made.plan, lists, constrained, without_pairs)

    def risk(  # noqa: D102
        self, surrogate: Surrogate, lists: RankingData, policy: str, n_threads: int
    ) -> EmpiricalRisk:
        return EmpiricalRisk(surrogate, lists, policy, n_threads=n_threads)

    def fitted(  # noqa: D102
        self, in_columns: InColumns[RankingData], w: Array
    ) -> AdditiveFunction:
        function = super().fitted(in_columns, w)
        with_gap = [term for term in function.curves if term.gap is not None]
        if not with_gap:
            return function
        # numbers and their gaps are two columns of weights, and one term
        rows = self.rows if self.missing == LOWEST else FilledRows(self.given.X)
        added = DenseColumns(np.column_stack([added_by(term, rows) for term in with_gap]))
        lists = self.given
        spread = added.spread(lists.rows, lists.indptr)
        deviations = added.variation(lists.rows, lists.indptr, spread).deviation.tolist()
        return function.with_deviations(
            {term.column: own for term, own in zip(with_gap, deviations, strict=True)}
        )

    def beside_zero(  # noqa: D102
        self, risk: Any, solver: Any, result: SolverResult, callback: Callback
    ) -> tuple[SolverResult, bool]:
        return beside_zero(risk, solver, result, callback)

    def like(self, given: RankingData) -> TrainingColumns:
        """Those of other lists, by the same settings."""
        return TrainingColumns(given, self.missing, self.standardize, self.signs, self.positive)

    @property
    def lines_in_units(self) -> InColumns[RankingData]:
        """The lists with lines for columns of numbers."""
        return self._in_columns(None)

    def _in_columns(self, pieces: int | None) -> InColumns[RankingData]:
        """The lists standardized, made once."""
        if not self.plan.numbers.size:
            pieces = None  # nothing to cut
        if pieces not in self._made:
            plan = self.plan
            if pieces is not None:
                plan = replace(plan, knots=self._knots(pieces))
            self._made[pieces] = self._planned(plan)
        return self._made[pieces]

    def _planned(self, plan: Plan) -> InColumns[RankingData]:
        """The lists in the columns of a plan, standardized."""
        lists = self.given
        if not plan.is_plain:
            lists.refuse_sparse_curves()
            lists = lists.with_columns(plan.columns(self.rows), plan.weight_names)
        return InColumns(plan, lists.standardized(self.standardize))

    @cached_property
    def cuts_for_pairs(self) -> list[ColumnCut]:
        """The columns that may be in pairs, with their cells: those that need not rise or fall.

        After knots, from the same look at the values.
        """
        if self.positive or self.given.is_sparse:
            return []
        free = np.ones(self.plan.n_columns, dtype=bool)
        if self.signs is not None:
            free = self.signs == 0
        if not self._cuts_of_numbers:
            deque(self._value_counts(), maxlen=0)
        cuts = [cut for j, cut in self._cuts_of_numbers.items() if free[j]]
        for j, levels in self.plan.levels.items():
            cut = Cut(None, len(levels), tuple(levels))
            cuts.append(ColumnCut(j, cut, bool(self.plan.with_gaps[j])))
        varying = [cut for cut in cuts if cut.n_cells > 1]
        return sorted(varying, key=lambda cut: cut.column)

    def _knots(self, pieces: int) -> Knots:
        """Knots of the columns of numbers, between values that are there."""
        numbers = self.plan.numbers
        rising = np.full(self.plan.n_columns, self.positive)
        if self.signs is not None:
            rising |= self.signs != 0
        return knots_of(self._value_counts(), pieces, rising[numbers])

    def _value_counts(self) -> Iterator[ValueCounts]:
        """Those of the columns of numbers, which pairs cut by the way."""
        numbers = self.plan.numbers
        gaps = self.plan.with_gaps
        each = self.given.value_counts(columns=numbers)
        for j, counts in zip(numbers.tolist(), each, strict=True):
            if counts.values.size:  # or all are missing
                self._cuts_of_numbers[j] = cut_of_numbers(j, counts, bool(gaps[j]))
            yield counts
