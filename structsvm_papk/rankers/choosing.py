"""What `PAPKRanker` decides by folds: lines or curves, pairs; of one list surrogate and alpha, too.

A candidate is a setting, and the training lists in its columns. Each is fitted to a gap of 1% on
the lists (or the rows of one list) that a fold leaves in, warm from the candidate before, and
scored on those that the fold leaves out: lists by NDCG, of all their rows and not of the first k,
which says more of few lists; one list by average precision. (The AUC chooses better of a few
hundred rows, and far worse at the top where positives are rare.) The largest mean wins, lists
weighted as in training. Then the winner is tried with pairs of columns, which each fold finds by
itself. Of lists these have to gain more than the standard error of the gain. One list, where five
numbers have no such error to speak of, takes them unless they lose a tenth of what average
precision lacks to 1 (`benchmarks/results/columns.md`). Two folds are enough to give them up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import columns_of
from structsvm_papk.data.columns.knots import PIECES
from structsvm_papk.data.columns.pairs import ColumnPair, PairCuts
from structsvm_papk.data.columns.units import ScaleRule
from structsvm_papk.data.content import Digests, digests_of, digests_of_lists
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import is_auto
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.folds import Fold, folds_of_lists, folds_of_rows, values_of
from structsvm_papk.rankers.in_columns import InColumns, TrainingColumns
from structsvm_papk.rankers.pairing import PAIRS, screened_pairs
from structsvm_papk.rankers.settings import (
    STIFF,
    STIFFNESS,
    SURROGATE_OF_LISTS,
    SURROGATES_OF_ONE_LIST,
    Evidence,
    Setting,
    automatic_alpha,
)
from structsvm_papk.rankers.solver_choice import make_solver
from structsvm_papk.solvers.solver import SolverResult, Status

TOL = 1e-2  # of the fits on folds
_FEWEST_LISTS = 5  # with a positive and a negative
_FOLDS = 5
_MOST_VALUES_OF_LISTS = 2_000_000  # of more some of the lists are looked at
# of one list
MULTIPLES = 10.0 ** np.arange(3.0, -3.5, -1.0)  # alphas, times the mean variance of the columns
_MAX_ITER = 250
_MOST_VALUES = 5_000_000  # with more alpha hardly matters, and the fits take a while
_BLOCKS = 32  # with more columns than half of them the usual number takes up to twice the time
_STEPS = 2.0**20  # of a unit of the penalty
_FEWEST = 5  # positives or negatives, one for each fold
_FIRST = 2  # folds that try everything, pairs too,
_ENOUGH = 10  # the others so many of what is best there
_LOST_BY_PAIRS = 0.1  # of what average precision lacks to 1: more, and pairs are not taken


@dataclass(frozen=True)
class Left:
    """What is left to folds."""

    curves: bool
    surrogate: bool = False
    alpha: bool = False
    pairs: bool = False

    @property
    def anything(self) -> bool:
        """Whether there is something to decide."""
        return self.curves or self.surrogate or self.alpha or self.pairs


@dataclass(frozen=True)
class Candidate:
    """A setting, and the lists in its columns."""

    setting: Setting
    columns: InColumns[RankingData]

    def with_pairs(
        self, columns: TrainingColumns, risk: EmpiricalRisk, w: Array, n_pairs: int
    ) -> Candidate | None:
        """The same with the pairs that the solution w of a risk leaves to be found."""
        pairs = screened_pairs(columns, risk.slopes_of_rows(w), n_pairs)
        if pairs is None:
            return None
        return Candidate(replace(self.setting, n_pairs=n_pairs), columns.of(self.setting, pairs))

    @property
    def lists(self) -> RankingData:
        """The lists that train."""
        return self.columns.lists

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
    """How candidates are fitted on folds, by what all of them share."""

    max_iter: int | None = None
    n_blocks: int | None = None
    n_threads: int = 1

    def risk(self, setting: Setting, lists: RankingData) -> EmpiricalRisk:
        """What a setting minimises on lists, beside the penalty; Avg where that is not convex."""
        if not setting.surrogate.convex:
            setting = setting.with_surrogate(SURROGATE_OF_LISTS)
        return EmpiricalRisk(setting.surrogate, lists, "cap", n_threads=self.n_threads)

    def solve(
        self,
        risk: EmpiricalRisk,
        alpha: float,
        constrained: Any,
        time_limit: float | None,
        **start: Any,
    ) -> SolverResult:
        """The solution with a penalty, and with some weights 0 or above."""
        solver = make_solver(
            "auto", risk.surrogate, alpha, risk, tol=TOL, max_iter=self.max_iter,
            n_blocks=self.n_blocks, positive=constrained, time_limit=time_limit,
        )  # fmt: skip
        result: SolverResult = solver.solve(risk, **start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result


class FoldFit(NamedTuple):
    """A candidate on a fold: the score of every list that it leaves out, and its weights."""

    values: Array
    w: Array


@dataclass
class Choice:
    """What folds say of candidates.

    Attributes
    ----------
    candidates : list of Candidate
    fits : list of list of FoldFit
        Of each candidate, those of the folds that tried it.
    weights : list of ndarray
        What each list of a finished fold counts, as in the risk.
    ended_by : str
        Why not all folds were tried: 'time_limit', 'Ctrl-C', or empty.
    paired : Candidate, optional
        The winner with pairs of columns, where these are worth it.
    """

    candidates: list[Candidate]
    fits: list[list[FoldFit]] = field(init=False)
    weights: list[Array] = field(default_factory=list)
    ended_by: str = ""
    paired: Candidate | None = None

    def __post_init__(self) -> None:
        self.fits = [[] for _ in self.candidates]

    def mean(self, i: int) -> float:
        """The mean score of a candidate, lists by their weights; 0 where it is known of no list."""
        return self.mean_of([fit.values for fit in self.fits[i]])

    def mean_of(self, scores: Sequence[Array]) -> float:
        """The mean of the scores of finished folds.

        Sums that differ by their rounding only are the same.
        """
        values, weights = self._known(scores)
        return round(float(np.average(values, weights=weights)), 12) if values.size else 0.0

    def error_of(self, scores: Sequence[Array]) -> float:
        """The standard error of this mean; infinite where it cannot be told.

        Lists of unequal weights say as much as ``(sum w)^2 / sum w^2`` of equal ones.
        """
        values, weights = self._known(scores)
        if values.size < 2:
            return np.inf
        variance = np.average(np.square(values - self.mean_of(scores)), weights=weights)
        n_lists = weights.sum() ** 2 / np.square(weights).sum()
        return float(np.sqrt(variance / (n_lists - 1.0))) if n_lists > 1.0 else np.inf

    def _known(self, scores: Sequence[Array]) -> tuple[Array, Array]:
        """The scores of lists that have one, and what these lists count."""
        values = np.concatenate(scores)
        weights = np.concatenate(self.weights[: len(scores)])
        known = ~np.isnan(values) & (weights > 0.0)
        return values[known], weights[known]

    @property
    def n_folds(self) -> int:
        """How many folds were finished."""
        return max(map(len, self.fits))

    @property
    def best(self) -> Candidate | None:
        """The candidate with the largest mean of those that all finished folds have tried.

        The first of equals; with pairs, where these are worth it; None where no fold was finished.
        """
        if self.n_folds == 0:
            return None
        if self.paired is not None:
            return self.paired
        tried = [i for i, fits in enumerate(self.fits) if len(fits) == self.n_folds]
        return self.candidates[max(tried, key=lambda i: (self.mean(i), -i))]

    @property
    def summary(self) -> str:
        """A sentence of what was chosen, and what ended the choice before all folds were tried."""
        chosen = "No fold was finished: the usual surrogate and alpha and lines were taken"
        if self.best is not None:
            chosen = f"Folds chose {self.best}"
        if not self.ended_by:
            return f"{chosen}."
        return f"{chosen}; {self.ended_by} ended them early, and with more time it may be another."


def choose(
    columns: TrainingColumns,
    given: Setting,
    left: Left,
    *,
    n_threads: int = 1,
    deadline: float | None = None,
) -> Choice | None:
    """What folds say of the candidates for what is left to them.

    Parameters
    ----------
    columns : TrainingColumns
    given : Setting
        With what is not left to the folds.
    left : Left
    n_threads : int
    deadline : float, optional
        By `time.perf_counter`, until when to try.

    Returns
    -------
    Choice or None
        None where there are too few lists, or rows of one list, or too many, and where all columns
        are binary.
    """
    lists = columns.given
    if lists.n_users > 1:
        some = _some_lists(lists)
        if some.sum() < _FEWEST_LISTS:  # before columns are cut into pieces that nobody asked for
            return None
        columns, digests = _as_folds_see(columns, some)
        folds = folds_of_lists(_FOLDS, columns.given, digests)
        training = Training(n_threads=n_threads)
        candidates = _lines_or_curves(columns, given)
        if not left.curves:
            candidates = [Candidate(given, columns.of(given))]
        elif candidates[0].lists.n_features == candidates[-1].lists.n_features:
            candidates = candidates[:1]  # binary columns are lines in any case
        if len(candidates) == 1 and not left.pairs:
            return None
        score = partial(values_of, "ndcg")
    elif _can_be_cut(lists):
        columns, digests = _as_folds_see(columns, np.ones(1, dtype=bool))
        folds = folds_of_rows(_FOLDS, columns.given, digests)
        n_blocks = None if columns.given.is_sparse else _BLOCKS
        training = Training(_MAX_ITER, n_blocks, n_threads)
        candidates = _of_one_list(columns, given, left)
        score = partial(values_of, "ap")
    else:
        return None
    if len(folds) < 2:
        return None
    choice = best_on_folds(candidates, folds, score, training, deadline)
    if left.pairs:
        try_pairs(choice, columns, folds, score, training, deadline)
    return choice


def pairs_left(columns: TrainingColumns, setting: Setting, training: Training) -> PairCuts | None:
    """The pairs that a fit without them leaves to be found; None where there are none.

    That fit is of the lists that folds see, in their order, so that it does not depend on the order
    of rows, lists and columns which pairs come last.
    """
    if setting.n_pairs is None or len(columns.cuts_for_pairs) < 2:
        return None
    cuts = {cut.column: cut for cut in columns.cuts_for_pairs}
    given = columns.given
    some = np.ones(1, dtype=bool) if given.n_users == 1 else _some_lists(given)
    if not some.any():
        return None
    seen, digests = _as_folds_see(columns, some)
    order = np.argsort(digests.columns, kind="stable")
    candidate = Candidate(setting, seen.of(setting))
    risk = training.risk(setting, candidate.lists)
    solved = _solved(candidate, risk, training, None, {})
    assert solved is not None
    found = screened_pairs(seen, risk.slopes_of_rows(solved.w), setting.n_pairs)
    if found is None:
        return None
    columns_of_pairs = sorted(sorted(order[list(pair.columns)].tolist()) for pair in found.pairs)
    return PairCuts(tuple(ColumnPair(cuts[i], cuts[j]) for i, j in columns_of_pairs))


def _some_lists(lists: RankingData) -> Array:
    """Lists with a positive and a negative, a mask; of many values some lists by their content."""
    every = -(-lists.n_entries // _MOST_VALUES_OF_LISTS)
    usable = (lists.n_pos > 0) & (lists.n_neg > 0)
    if every > 1:  # copies of a list stand together in this order, and so each counts as often
        in_order = np.argsort(digests_of_lists(lists), kind="stable")
        in_order = in_order[usable[in_order]]
        usable[:] = False
        usable[in_order[::every]] = True
    return usable


def _lines_or_curves(columns: TrainingColumns, given: Setting) -> list[Candidate]:
    """Lines, stiff curves, and curves that are less stiff: neighbours are close to each other."""
    settings = [
        replace(given, pieces=None),
        replace(given, pieces=PIECES, stiffness=STIFF),
        replace(given, pieces=PIECES, stiffness=STIFFNESS),
    ]
    return [Candidate(setting, columns.of(setting)) for setting in settings]


def _can_be_cut(lists: RankingData) -> bool:
    """Whether there is one list, with rows enough for folds and not too many to try."""
    if lists.n_users != 1 or min(int(lists.n_pos[0]), int(lists.n_neg[0])) < _FEWEST:
        return False
    return lists.n_entries <= _MOST_VALUES


def _of_one_list(columns: TrainingColumns, given: Setting, left: Left) -> list[Candidate]:
    """Surrogates with lines, the first of them with curves, each at a path of alphas.

    Of other surrogates than the first the smallest alpha is not tried: its fits take as long as all
    others together.
    """
    tried = [given]
    if left.surrogate:
        tried = [given.with_surrogate(name) for name in SURROGATES_OF_ONE_LIST]
    if left.curves:
        curved = replace(tried[0], pieces=PIECES)
        tried += [replace(curved, stiffness=STIFF), replace(curved, stiffness=STIFFNESS)]
    candidates = []
    for setting in tried:
        in_columns = columns.of(setting)
        lists = in_columns.lists
        alphas = [setting.alpha]
        if left.alpha:
            unit = Evidence.of(lists, lists).mean_variance
            multiples = MULTIPLES if setting.surrogate == tried[0].surrogate else MULTIPLES[:-1]
            alphas = [float(alpha) for alpha in unit * multiples]
        candidates += [Candidate(replace(setting, alpha=alpha), in_columns) for alpha in alphas]
    return candidates


def _as_folds_see(columns: TrainingColumns, keep: Array) -> tuple[TrainingColumns, Digests]:
    """The lists that folds look at, `keep`, made once; see `_in_own_order`."""
    if columns.as_folds_see is None:
        columns.as_folds_see = _in_own_order(columns, keep)
    return columns.as_folds_see


def _in_own_order(columns: TrainingColumns, keep: Array) -> tuple[TrainingColumns, Digests]:
    """Some of the lists, in numbers that do not depend on how they came.

    Fits on folds stop early, and where depends on the last bits. So rows, lists and columns are in
    an order that follows from their content, and the columns are dense, where there is room for
    that, and in the units of the penalty.
    """
    given = columns.given.subset(keep)
    digests = digests_of(given)
    users = np.argsort(digests.lists, kind="stable")
    positions = given.positions_of(users, digests.rows)
    digests = Digests(digests.rows[positions], digests.lists[users], digests.columns)
    given = given.rearranged(users, positions)
    units = columns.like(given).lines_in_units.lists.units
    order = np.argsort(digests.columns, kind="stable")
    seen = given.X[:, order]
    if not given.is_sparse or given.rows.size * given.n_columns <= _MOST_VALUES:
        seen = given.columns.toarray()
        numbers = columns.plan.numbers
        if units.scale is not None:
            of_numbers = seen[:, numbers]
            there = np.maximum((~np.isnan(of_numbers)).sum(axis=0), 1)
            centre = np.nansum(of_numbers, axis=0) / there
            scale = units.scale[: numbers.size]
            seen[:, numbers] = _rounded((of_numbers - centre) / scale)
        seen = np.ascontiguousarray(seen[:, order])
    lists = given.with_columns(columns_of(seen))
    place = {j: i for i, j in enumerate(order.tolist())}
    lists.levels = {place[j]: levels for j, levels in given.levels.items()}
    signs = None if columns.signs is None else columns.signs[order]
    standardize = columns.standardize if units.rule != ScaleRule.COMMON else False
    return TrainingColumns(lists, columns.missing, standardize, signs, columns.positive), digests


def _rounded(values: Array) -> Array:
    """To a millionth of a unit: what differs by its rounding only is the same."""
    return np.asarray(np.rint(values * _STEPS) / _STEPS)


def best_on_folds(
    candidates: Sequence[Candidate],
    folds: Sequence[Fold],
    score: Callable[[Array, RankingData], Array],
    training: Training,
    deadline: float | None = None,
) -> Choice:
    """Fit the candidates on folds and score them on what each fold leaves out.

    Parameters
    ----------
    candidates : sequence of Candidate
        Neighbours should be close to each other: each fit starts at the one before.
    folds : sequence of Fold
        Masks of list positions.
    score : callable
        Of scores at the list positions, and these lists: a number for each, larger is better.
    training : Training
    deadline : float, optional
        By `time.perf_counter`, until when to try.

    Returns
    -------
    Choice
        At the deadline and after Ctrl-C what the finished folds say.
    """
    choice = Choice(list(candidates))
    left = list(range(len(candidates)))
    try:
        for number, fold in enumerate(folds):
            if number == _FIRST and len(left) > _ENOUGH:
                left = sorted(sorted(left, key=lambda i: -choice.mean(i))[:_ENOUGH])
            some = [candidates[i] for i in left]
            fits = _fits_on(fold, some, score, training, deadline)
            if len(fits) < len(left):
                choice.ended_by = "time_limit"
                break
            choice.weights.append(_weights(candidates[0].lists.at_positions(fold.test)))
            for i, fit in zip(left, fits, strict=True):
                choice.fits[i].append(fit)
    except KeyboardInterrupt:
        choice.ended_by = "Ctrl-C"
    return choice


def try_pairs(
    choice: Choice,
    columns: TrainingColumns,
    folds: Sequence[Fold],
    score: Callable[[Array, RankingData], Array],
    training: Training,
    deadline: float | None = None,
) -> None:
    """Add the best candidate with pairs of columns, which each fold finds by itself."""
    best = choice.best
    if best is None or choice.ended_by or len(columns.cuts_for_pairs) < 2:
        return
    without = choice.fits[choice.candidates.index(best)]
    gains: list[Array] = []

    def worth_it() -> bool:
        if not any(gain.any() for gain in gains):
            return False
        least = choice.error_of(gains)
        if columns.given.n_users == 1:
            least = _LOST_BY_PAIRS * (choice.mean_of([fit.values for fit in without]) - 1.0)
        return choice.mean_of(gains) > least

    try:
        for fold, fit in zip(folds, without, strict=False):
            if len(gains) == _FIRST and not worth_it():
                return  # the other folds take as long, and will hardly say something else
            risk = training.risk(best.setting, best.lists.at_positions(fold.train))
            paired = best.with_pairs(columns, risk, fit.w, PAIRS)
            if paired is None:
                gains.append(np.zeros_like(fit.values))
                continue
            start = paired.columns.weights(best.columns.function(fit.w))
            paired_risk = training.risk(paired.setting, paired.lists.at_positions(fold.train))
            solved = _solved(paired, paired_risk, training, deadline, {"w_init": start})
            if solved is None:
                choice.ended_by = "time_limit"
                return
            tested = paired.lists.at_positions(fold.test)
            gains.append(score(tested.scores(solved.w), tested) - fit.values)
    except KeyboardInterrupt:
        choice.ended_by = "Ctrl-C"
        return
    if worth_it():
        choice.paired = replace(best, setting=replace(best.setting, n_pairs=PAIRS))


def _weights(lists: RankingData) -> Array:
    """What each list counts."""
    return np.ones(lists.n_users) if lists.user_weight is None else lists.user_weight


def _fits_on(
    fold: Fold,
    candidates: Sequence[Candidate],
    score: Callable[[Array, RankingData], Array],
    training: Training,
    deadline: float | None,
) -> list[FoldFit]:
    """The candidates on a fold; fewer where the time was short."""
    fits: list[FoldFit] = []
    before: tuple[Candidate, EmpiricalRisk, SolverResult] | None = None
    for candidate in candidates:
        start: dict[str, Any] = {}
        if before is not None and _minimise_alike(before[0], candidate):
            _, risk, last = before
            start = {"warm_start": last} if risk.convex else {"w_init": last.w}
        else:
            risk = training.risk(candidate.setting, candidate.lists.at_positions(fold.train))
            if before is not None:
                function = before[0].columns.function(before[2].w)
                start = {"w_init": candidate.columns.weights(function)}
        result = _solved(candidate, risk, training, deadline, start)
        if result is None:
            return fits
        before = candidate, risk, result
        tested = candidate.lists.at_positions(fold.test)
        fits.append(FoldFit(score(tested.scores(result.w), tested), result.w))
    return fits


def _solved(
    candidate: Candidate,
    risk: EmpiricalRisk,
    training: Training,
    deadline: float | None,
    start: dict[str, Any],
) -> SolverResult | None:
    """The solution of a candidate; None where the time is over."""
    alpha: Any = candidate.setting.alpha
    if is_auto(alpha):
        alpha = automatic_alpha(Evidence.of(candidate.columns.for_alpha, risk.of_users))
    seconds = None if deadline is None else deadline - time.perf_counter()
    if seconds is not None and seconds <= 0.0:
        return None
    result = training.solve(risk, alpha, candidate.columns.constrained, seconds, **start)
    return None if result.status is Status.TIME_LIMIT else result


def _minimise_alike(one: Candidate, other: Candidate) -> bool:
    """Whether the risks of two candidates are the same: they differ in alpha only."""
    return one.columns is other.columns and one.setting.surrogate == other.setting.surrogate
