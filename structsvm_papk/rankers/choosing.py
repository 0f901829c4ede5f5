"""What `PAPKRanker` decides by folds: how curved the columns are; of one list surrogate and alpha.

A candidate is a setting, and the training lists in its columns. Each is fitted to a gap of 1% on
the lists (or the rows of one list) that a fold leaves in, warm from the candidate before, and
scored on those that the fold leaves out. The largest mean wins; of equal ones the earlier.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.folds import Fold
from structsvm_papk.rankers.settings import Evidence, Setting, automatic_alpha, is_auto, make_solver
from structsvm_papk.solvers.solver import SolverResult, Status

_ENOUGH = 10  # candidates that go on, where few folds have said which are far behind
_FIRST = 2  # these folds


@dataclass(frozen=True)
class Candidate:
    """A setting, and the lists that train in its columns."""

    setting: Setting
    lists: RankingData


@dataclass(frozen=True)
class Training:
    """How candidates are fitted on folds, by what all of them share."""

    k: int
    policy: str
    positive: Any
    tol: float
    max_iter: int | None = None
    n_blocks: int | None = None
    n_threads: int = 1

    def risk(self, setting: Setting, lists: RankingData) -> EmpiricalRisk:
        """What a setting minimises on lists, beside the penalty."""
        surrogate = setting.make(self.k)
        return EmpiricalRisk(surrogate, lists, self.policy, n_threads=self.n_threads)

    def solve(
        self, risk: EmpiricalRisk, alpha: float, time_limit: float | None, **start: Any
    ) -> SolverResult:
        """The solution with a penalty."""
        solver = make_solver(
            "auto", risk.surrogate, alpha, tol=self.tol, max_iter=self.max_iter,
            n_blocks=self.n_blocks, positive=self.positive, time_limit=time_limit,
        )  # fmt: skip
        result: SolverResult = solver.suited_to(risk).solve(risk, **start)
        if result.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return result


@dataclass
class Choice:
    """What folds say of candidates.

    Attributes
    ----------
    candidates : sequence of Candidate
    means : list of list of float
        For each candidate the mean score on each fold that tried it.
    ended_by : str
        Why not all folds were tried: 'time_limit', 'Ctrl-C', or empty.
    """

    candidates: Sequence[Candidate]
    means: list[list[float]] = field(init=False)
    ended_by: str = ""

    def __post_init__(self) -> None:
        self.means = [[] for _ in self.candidates]

    @property
    def in_race(self) -> list[int]:
        """The candidates that as many folds as any have tried, by number."""
        most = max(map(len, self.means))
        return [i for i, means in enumerate(self.means) if most and len(means) == most]

    @property
    def best(self) -> Candidate | None:
        """The candidate with the largest mean; None where no fold was finished."""
        if not self.in_race:
            return None
        return self.candidates[max(self.in_race, key=lambda i: (np.mean(self.means[i]), -i))]


def best_on_folds(
    candidates: Sequence[Candidate],
    folds: Sequence[Fold],
    score: Callable[[Array, RankingData], float],
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
        Of scores at the list positions, and these lists: a number, larger is better.
    training : Training
    deadline : float, optional
        By `time.perf_counter`, until when to try.

    Returns
    -------
    Choice
        At the deadline and after Ctrl-C what the finished folds say.
    """
    choice = Choice(candidates)
    left = list(range(len(candidates)))
    try:
        for number, fold in enumerate(folds):
            if number == _FIRST and len(left) > _ENOUGH:
                ahead = sorted(left, key=lambda i: -np.mean(choice.means[i]))[:_ENOUGH]
                left = sorted(ahead)
            some = [candidates[i] for i in left]
            values = _scores_on(fold, some, score, training, deadline)
            if len(values) < len(left):
                choice.ended_by = "time_limit"
                break
            for i, value in zip(left, values, strict=True):
                choice.means[i].append(value)
    except KeyboardInterrupt:
        choice.ended_by = "Ctrl-C"
    return choice


def _scores_on(
    fold: Fold,
    candidates: Sequence[Candidate],
    score: Callable[[Array, RankingData], float],
    training: Training,
    deadline: float | None,
) -> list[float]:
    """What the candidates score on what a fold leaves out; of fewer where the time was short."""
    values: list[float] = []
    before: tuple[Candidate, EmpiricalRisk, SolverResult] | None = None
    for candidate in candidates:
        setting = candidate.setting
        start: dict[str, Any] = {}
        if before is not None and _minimise_alike(before[0], candidate):
            _, risk, last = before
            start = {"warm_start": last} if risk.convex else {"w_init": last.w}
        else:
            risk = training.risk(setting, candidate.lists.at_positions(fold.train))
            if before is not None:
                start = {"w_init": _translated(before[2].w, before[1].data, risk.data)}
        alpha: Any = setting.alpha
        if is_auto(alpha):
            alpha = automatic_alpha(Evidence.of(candidate.lists, risk.of_users))
        seconds = None if deadline is None else deadline - time.perf_counter()
        if seconds is not None and seconds <= 0.0:
            return values
        result = training.solve(risk, alpha, seconds, **start)
        if result.status is Status.TIME_LIMIT:
            return values
        before = candidate, risk, result
        tested = candidate.lists.at_positions(fold.test)
        values.append(score(tested.scores(result.w), tested))
    return values


def _minimise_alike(one: Candidate, other: Candidate) -> bool:
    """Whether the risks of two candidates are the same: they differ in alpha only."""
    same = one.setting.surrogate == other.setting.surrogate
    return one.lists is other.lists and same and one.setting.depth == other.setting.depth


def _translated(w: Array, before: RankingData, now: RankingData) -> Array:
    """Weights in other columns; a line is a curve whose pieces have the weight 0."""
    n_columns = now.n_features if now.knots is None else now.knots.n_columns
    start = np.zeros(now.n_features)
    n_same = now.n_features if w.size == now.n_features else n_columns
    start[:n_same] = before.divided(w)[:n_same]
    return start if now.column_scale is None else start * now.column_scale
