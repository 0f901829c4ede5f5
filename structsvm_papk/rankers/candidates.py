"""Candidates for what a fit minimises, fitted on folds, and what folds say of them.

A fold leaves out lists, or rows of one list: they judge what the rest learns.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.pairs import ColumnPair, PairCuts, best_pairs
from structsvm_papk.data.content import Digests
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import AUTO, is_auto
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.in_columns import InColumns, TrainingColumns
from structsvm_papk.rankers.settings import (
    SURROGATE_OF_LISTS,
    Evidence,
    Setting,
    automatic_alpha,
)
from structsvm_papk.rankers.solver_choice import make_solver
from structsvm_papk.solvers.solver import Progress, SolverResult, Status

TOL = 1e-2
SMALL = 0.03  # a smaller objective, of nearly separable rows, is solved to this times `TOL`
FAR = 2.0  # standard errors behind another candidate of one list, and one will hardly win


class Fold(NamedTuple):
    """List positions to train and to score on, as masks."""

    train: Array
    test: Array


def folds_of_lists(n_folds: int, data: RankingData, digests: Digests) -> list[Fold]:
    """Folds of the lists in the order of their content; copies of a list stand in one of them."""
    _, place = np.unique(digests.lists, return_inverse=True)
    of_row = (place % n_folds)[data.user_of_position]
    folds = [Fold(of_row != number, of_row == number) for number in range(n_folds)]
    return [part for part in folds if part.train.any() and part.test.any()]


def folds_of_rows(n_folds: int, data: RankingData, digests: Digests) -> list[Fold]:
    """Folds of the rows of one list in the order of their content; copies of a row together.

    The distinct rows of each class are dealt out. Of many copies of few rows a fold may have none
    of a class: it is left out.
    """
    labels = data.labels
    fold = np.empty(data.rows.size, dtype=int)
    for label in (False, True):
        of_class = labels == label
        _, place = np.unique(digests.rows[of_class], return_inverse=True)
        fold[of_class] = place % n_folds
    folds = [Fold(fold != number, fold == number) for number in range(n_folds)]
    return [
        part
        for part in folds
        if all(labels[mask].any() and not labels[mask].all() for mask in part)
    ]


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

    def of_pairs(self, found: Sequence[ColumnPair], columns: TrainingColumns) -> Candidate:
        """The same in columns with the first of some pairs, where there are any."""
        if not found:
            return self
        pairs = PairCuts.of_pairs(found[: self.setting.n_pairs])
        return replace(self, columns=columns.of(self.setting, pairs))

    @property
    def for_pairs(self) -> Candidate:
        """The one without pairs whose fit says which pairs there are.

        Of one list at the same alpha on all of a path, so that its fits are of the same columns.
        """
        alone = self.without_pairs
        if self.lists.n_users > 1:
            return alone
        alpha = Evidence.of(self.lists, self.lists).mean_variance
        return replace(alone, setting=replace(alone.setting, alpha=alpha))

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
        span = candidate.columns.span
        all_lists = candidate.lists if span is None else span.lists
        if before is not None and candidate.minimises_like(before.candidate):
            risk = before.risk
            start = {"warm_start": before.result} if risk.convex else {"w_init": before.result.w}
        else:
            surrogate = candidate.setting.surrogate
            if not surrogate.convex:
                surrogate = candidate.setting.with_surrogate(SURROGATE_OF_LISTS).surrogate
            lists = all_lists if positions is None else all_lists.at_positions(positions)
            risk = EmpiricalRisk(surrogate, lists, "cap", n_threads=self.n_threads)
        alpha: Any = candidate.setting.alpha
        if is_auto(alpha):
            alpha = automatic_alpha(Evidence.of(candidate.columns.for_alpha, risk.of_users))
        if before is not None and not start:
            w = before.weights_for(candidate)
            if w is not None:
                start = {"w_init": w}
        solver = make_solver(
            "auto", risk.surrogate, alpha, risk, tol=TOL, max_iter=self.max_iter,
            n_blocks=self.n_blocks, positive=candidate.columns.constrained,
            time_limit=self._seconds_left(),
        )  # fmt: skip
        result: SolverResult = solver.solve(risk, **start, callback=_close)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if result.status is Status.TIME_LIMIT:
            raise TimeIsOverError
        return CandidateFit(candidate, all_lists, risk, result)

    def _seconds_left(self) -> float | None:
        """Until the deadline."""
        if self.deadline is None:
            return None
        seconds = self.deadline - time.perf_counter()
        if seconds <= 0.0:
            raise TimeIsOverError
        return seconds


def _close(progress: Progress) -> bool:
    """Whether folds need no better solution."""
    return progress.objective - progress.lower_bound <= TOL * max(progress.objective, SMALL)


class CandidateFit(NamedTuple):
    """A candidate, the risk that was minimised, and the solution."""

    candidate: Candidate
    lists: RankingData  # in columns whose weights are the solution
    risk: EmpiricalRisk
    result: SolverResult

    def scores(self, positions: Array | None = None) -> Array:
        """At all positions of the lists, or some."""
        lists = self.lists if positions is None else self.lists.at_positions(positions)
        return lists.scores(self.result.w)

    def weights_for(self, candidate: Candidate) -> Array | None:
        """Weights with which another candidate scores the lists alike, where they are known."""
        span = candidate.columns.span
        if span is not None:
            return span.weights(self.scores())
        if self.candidate.columns.span is not None:
            return None
        return candidate.columns.weights(self.candidate.columns.function(self.result.w))

    def pairs_left(self, columns: TrainingColumns, n_pairs: int) -> tuple[ColumnPair, ...]:
        """The pairs of columns that the solution leaves to be found, the best first."""
        residuals = self.risk.slopes_of_rows(self.result.w)
        rows = columns.rows.take(residuals.rows)
        return best_pairs(columns.cuts_for_pairs, rows, residuals.slopes, n_pairs)


class FoldValues(NamedTuple):
    """What `average_precisions` says of each candidate that was tried, and the lists' weights."""

    of_candidates: list[Array | None]
    weights: Array


def values_on(
    fold: Fold, candidates: Sequence[Candidate], columns: TrainingColumns, training: Training
) -> FoldValues:
    """The scores of the lists that a fold leaves out, for each candidate.

    Neighbours should be close to each other: each fit starts at the one before, with pairs at the
    one without. Weaker penalties are not tried behind one that is far worse than the one before.
    Raises `TimeIsOverError`.
    """
    values: dict[Candidate, Array] = {}
    tested = columns.given.at_positions(fold.test)
    one_list = columns.given.n_users == 1  # a fold may leave out one of several
    weights = weights_of_values(tested, one_list)
    most = max((each.setting.n_pairs or 0 for each in candidates), default=0)
    alone: dict[Setting, CandidateFit] = {}  # fits without pairs
    found: dict[Setting, tuple[ColumnPair, ...]] = {}  # the pairs that some of them leave
    before: CandidateFit | None = None
    for _, path in groupby(candidates, key=lambda each: replace(each.setting, alpha=AUTO)):
        own, *_ = on_path = list(path)
        if own.setting.n_pairs is None:
            before = next(reversed(alone.values()), None)
        else:
            asked = own.for_pairs
            if asked.setting not in alone:
                alone[asked.setting] = training.solved(asked, fold.train, before)
            before = alone[asked.setting]
            if asked.setting not in found:
                found[asked.setting] = before.pairs_left(columns, most)
            own = own.of_pairs(found[asked.setting], columns)
        last = None
        for candidate in on_path:
            setting = candidate.setting
            before = training.solved(replace(own, setting=setting), fold.train, before)
            if setting.n_pairs is None:
                alone[setting] = before
            of_lists = average_precisions(before.scores(fold.test), tested, one_list)
            values[candidate] = of_lists
            if last is not None and mean_gain(last - of_lists, weights).exceeds(FAR):
                break
            last = of_lists
    return FoldValues([values.get(each) for each in candidates], weights)


# --- what the lists of a fold say -----------------------------------------------------------------


class Gain(NamedTuple):
    """A mean difference of scores, and its standard error."""

    mean: float
    error: float

    def exceeds(self, errors: float) -> bool:
        """Whether it is larger than so many of its standard errors, and than 0."""
        return self.mean > max(errors * self.error, 0.0)


def mean_gain(gains: Array, weights: Array) -> Gain:
    """The mean over lists whose gain is known; its error is infinite where none can be told.

    Lists of unequal weights say as much as ``(sum w)^2 / sum w^2`` of equal ones. Sums that differ
    by their rounding only are the same.
    """
    known = ~np.isnan(gains) & (weights > 0.0)
    if not known.any():
        return Gain(0.0, np.inf)
    gains = gains[known]
    weights = weights[known]
    mean = round(float(np.average(gains, weights=weights)), 12)
    n_lists = weights.sum() ** 2 / np.square(weights).sum()
    if n_lists <= 1.0:
        return Gain(mean, np.inf)
    variance = np.average(np.square(gains - mean), weights=weights)
    return Gain(mean, float(np.sqrt(variance / (n_lists - 1.0))))


def average_precisions(scores: Array, lists: RankingData, one_list: bool) -> Array:
    """Average precision of each list, of grades as mean over them; NaN where it is not defined.

    Where one list trains, the precision at each of its positives, whose mean it is: so that the
    gain of one ranker over another has a standard error. Of grades a row is a positive of each that
    it reaches.
    """
    parts = lists.weighted("equal").by_grade()
    source = np.arange(lists.n_users)  # of each part
    if parts.shared is not None:
        source = parts.shared.source
        scores = parts.shared.handed_out(scores[parts.shared.order])
    precisions = _precisions(scores, parts)
    if one_list:
        return precisions
    list_of_positive = source.repeat(parts.n_pos)
    weight = np.repeat(parts.weight_of_user / np.maximum(parts.n_pos, 1), parts.n_pos)
    total = np.bincount(list_of_positive, weight, lists.n_users)
    values = np.bincount(list_of_positive, weight * precisions, lists.n_users)
    return np.divide(values, total, where=total > 0.0, out=np.full(lists.n_users, np.nan))


def _precisions(scores: Array, lists: RankingData) -> Array:
    """The precision at each positive, of equal scores at the last of them."""
    import pandas as pd  # commands begin without it

    user = lists.user_of_position
    positive = lists.labels
    place = pd.Series(-scores).groupby(user).rank("max").to_numpy()[positive]
    hits = pd.Series(-scores[positive]).groupby(user[positive]).rank("max").to_numpy()
    return np.asarray(hits / place)


def weights_of_values(lists: RankingData, one_list: bool) -> Array:
    """What each of `average_precisions` counts: lists by weight, grades of one list equally."""
    if not one_list:
        return lists.weight_of_user
    n_pos = lists.by_grade().n_pos
    return np.repeat(1.0 / n_pos, n_pos)
