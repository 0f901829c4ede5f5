"""Candidates for what a fit minimises, and their fits on folds, which stop at a gap of 1%."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from structsvm_papk._types import Array
from structsvm_papk.data.columns.pairs import ColumnPair, PairCuts
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import AUTO, is_auto
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.folds import (
    FAR,
    Fold,
    average_precisions,
    mean_gain,
    weights_of_values,
)
from structsvm_papk.rankers.in_columns import InColumns, TrainingColumns
from structsvm_papk.rankers.pairing import screened_pairs
from structsvm_papk.rankers.settings import (
    SURROGATE_OF_LISTS,
    Evidence,
    Setting,
    automatic_alpha,
)
from structsvm_papk.rankers.solver_choice import make_solver
from structsvm_papk.solvers.solver import SolverResult, Status

TOL = 1e-2


class TimeIsOverError(Exception):
    """The fits on folds may not go on."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A setting, and the lists in its columns but for pairs of them, which each fit finds."""

    setting: Setting
    columns: InColumns[RankingData]

    @property
    def without_pairs(self) -> Candidate:
        """The same columns alone."""
        return replace(self, setting=replace(self.setting, n_pairs=None))

    def with_pairs(self, n_pairs: int) -> Candidate:
        """The same with so many pairs of columns."""
        return replace(self, setting=replace(self.setting, n_pairs=n_pairs))

    @property
    def lists(self) -> RankingData:
        """The lists that train."""
        return self.columns.lists

    def minimises_like(self, other: Candidate) -> bool:
        """Whether the risks of both are the same: they differ in alpha only."""
        return self.columns is other.columns and self.setting.surrogate == other.setting.surrogate

    def __str__(self) -> str:
        """What folds decide: of lists no more than whether columns are curves."""
        pieces = self.setting.pieces
        columns = "lines"
        if pieces is not None:
            columns = f"curves of {pieces} pieces, stiffness {self.setting.stiffness:g}"
        if self.setting.n_pairs is not None:
            columns += f", {self.setting.n_pairs} pairs of columns"
        if self.lists.n_users > 1:
            return columns
        return f"{self.setting.name}, alpha {self.setting.known_alpha:.4g}, {columns}"


@dataclass(frozen=True)
class Training:
    """How candidates are fitted on folds, by what all of them share.

    Attributes
    ----------
    max_iter, n_blocks : int, optional
        Of the cutting plane.
    n_threads : int
    deadline : float, optional
        By `time.perf_counter`; fits raise `TimeIsOverError` after it.
    """

    max_iter: int | None = None
    n_blocks: int | None = None
    n_threads: int = 1
    deadline: float | None = None

    def solved(
        self,
        candidate: Candidate,
        positions: Array | None = None,
        before: CandidateFit | None = None,
    ) -> CandidateFit:
        """The solution of a candidate on its lists, or some positions, warm from another there."""
        start: dict[str, Any] = {}
        if before is not None and candidate.minimises_like(before.candidate):
            risk = before.risk
            start = {"warm_start": before.result} if risk.convex else {"w_init": before.result.w}
        else:
            surrogate = candidate.setting.surrogate
            if not surrogate.convex:
                surrogate = candidate.setting.with_surrogate(SURROGATE_OF_LISTS).surrogate
            lists = candidate.lists
            if positions is not None:
                lists = lists.at_positions(positions)
            risk = EmpiricalRisk(surrogate, lists, "cap", n_threads=self.n_threads)
            if before is not None:
                function = before.candidate.columns.function(before.result.w)
                start = {"w_init": candidate.columns.weights(function)}
        alpha: Any = candidate.setting.alpha
        if is_auto(alpha):
            alpha = automatic_alpha(Evidence.of(candidate.columns.for_alpha, risk.of_users))
        solver = make_solver(
            "auto", risk.surrogate, alpha, risk, tol=TOL, max_iter=self.max_iter,
            n_blocks=self.n_blocks, positive=candidate.columns.constrained,
            time_limit=self._seconds_left(),
        )  # fmt: skip
        result: SolverResult = solver.solve(risk, **start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if result.status is Status.TIME_LIMIT:
            raise TimeIsOverError
        return CandidateFit(candidate, risk, result)

    def _seconds_left(self) -> float | None:
        """Until the deadline."""
        if self.deadline is None:
            return None
        seconds = self.deadline - time.perf_counter()
        if seconds <= 0.0:
            raise TimeIsOverError
        return seconds


class CandidateFit(NamedTuple):
    """A candidate, the risk that was minimised, and the solution."""

    candidate: Candidate
    risk: EmpiricalRisk
    result: SolverResult

    def pairs_left(self, columns: TrainingColumns, n_pairs: int) -> tuple[ColumnPair, ...]:
        """The pairs of columns that the solution leaves to be found, the best first."""
        return screened_pairs(columns, self.risk.slopes_of_rows(self.result.w), n_pairs)


class FoldValues(NamedTuple):
    """What `average_precisions` says of each candidate that was tried, and the lists' weights."""

    of_candidates: list[Array | None]
    weights: Array


def values_on(
    fold: Fold, candidates: Sequence[Candidate], columns: TrainingColumns, training: Training
) -> FoldValues:
    """The scores of the lists that a fold leaves out, for each candidate.

    Neighbours should be close to each other: each fit starts at the one before. Weaker penalties
    are not tried behind one that is far worse than the one before. Raises `TimeIsOverError`.
    """
    values: list[Array | None] = []
    weights = weights_of_values(columns.given.at_positions(fold.test))
    last: dict[Setting, Array] = {}  # of each path of alphas
    ended: set[Setting] = set()
    before: CandidateFit | None = None
    found: tuple[ColumnPair, ...] | None = None  # of the fit before
    most = max((each.setting.n_pairs or 0 for each in candidates), default=0)
    for candidate in candidates:
        path = replace(candidate.setting, alpha=AUTO)
        if path in ended:
            values.append(None)
            continue
        alone = candidate.without_pairs
        if before is None or before.candidate.setting != alone.setting:
            before = training.solved(alone, fold.train, before)
            found = None
        solved = before
        n_pairs = candidate.setting.n_pairs
        if n_pairs is not None:
            if found is None:
                found = before.pairs_left(columns, most)
            if found:
                pairs = PairCuts.of_pairs(found[:n_pairs])
                paired = replace(candidate, columns=columns.of(candidate.setting, pairs))
                solved = training.solved(paired, fold.train, before)
        tested = solved.candidate.lists.at_positions(fold.test)
        of_lists = average_precisions(tested.scores(solved.result.w), tested)
        values.append(of_lists)
        if path in last and mean_gain(last[path] - of_lists, weights).exceeds(FAR):
            ended.add(path)
        last[path] = of_lists
    return FoldValues(values, weights)
