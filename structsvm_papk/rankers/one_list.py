"""The strength that ``alpha="auto"`` takes; for one list it is chosen by folds of its rows.

How many columns and positives there are says what several lists need (`penalty`). For one list how
clean its labels are decides, which nothing but trying shows: every strength of a path is fitted on
five folds, and the one with the largest mean average precision on the rows left out is taken. That
is .1% behind the best in hindsight in the mean (seven kinds of lists, six draws), any fixed rule 1%
to 24% for some of them.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.penalty import Evidence, automatic_alpha
from structsvm_papk.rankers.settings import make_solver
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.surrogates import Surrogate, make_surrogate

STRENGTHS = 10.0 ** np.arange(3.0, -3.5, -0.75)  # times the mean variance of the columns
TOL = 1e-6  # a looser one leaves which of two near strengths is taken to rounding
MAX_ITER = 250
_FOLDS = 5
_FEWEST = 5  # positives or negatives, one for each fold
_MOST_VALUES = 5_000_000  # with more the strength hardly matters, and 45 fits take a while


class Strength(NamedTuple):
    """What ``alpha="auto"`` stands for, and whether the time ended the choice by folds."""

    alpha: float
    out_of_time: bool = False

    @property
    def note(self) -> str:
        """What has to be said of it; an empty text where nothing has."""
        if not self.out_of_time:
            return ""
        return (
            f"time_limit ended the choice of alpha by folds: it is {self.alpha:g}, the usual one, "
            "and with more time may be another; no checkpoint is written."
        )


def automatic_alpha_of(
    given: Any,
    risk: Any,
    positive: bool = False,
    time_limit: float | None = None,
    most_values: int = _MOST_VALUES,
) -> Strength:
    """What ``alpha="auto"`` stands for.

    Parameters
    ----------
    given : RankingData or PartitionedRisk
        All that `fit` was given; the lists, where they are in memory.
    risk : EmpiricalRisk or PartitionedRisk
        What is minimised beside the penalty.
    positive : bool
        Whether it is minimised over weights >= 0.
    time_limit : float, optional
        Seconds of the whole fit: folds get half of them, and without enough the rule decides.
    most_values : int
        Values of X beyond which the rule decides for one list, too.
    """
    in_memory = isinstance(given, RankingData)
    evidence = Evidence.of(given, risk.of_users if in_memory else risk)
    usual = automatic_alpha(evidence)
    if not in_memory or not _can_be_cut(risk.of_users, most_values):
        return Strength(usual)
    deadline = None if time_limit is None else time.perf_counter() + time_limit / 2
    chosen = _best_on_folds(risk, evidence.mean_variance * STRENGTHS, positive, deadline)
    return Strength(usual, out_of_time=True) if chosen is None else Strength(chosen)


def _can_be_cut(data: RankingData, most_values: int) -> bool:
    """Whether there is one list, with rows enough for folds and not too many to try."""
    if data.n_users != 1 or min(int(data.n_pos[0]), int(data.n_neg[0])) < _FEWEST:
        return False
    n_values = data.X.nnz if data.is_sparse else data.rows.size * data.n_features
    return bool(n_values <= most_values)


def _best_on_folds(
    risk: EmpiricalRisk, alphas: Array, positive: bool, deadline: float | None
) -> float | None:
    """The alpha with the largest mean score, of equal ones the strongest; None if out of time."""
    from structsvm_papk.rankers.folds import (
        ByMetric,
        folds_by_content,
    )  # scikit-learn costs a second

    data = risk.of_users
    surrogate = _convex(risk.surrogate)
    scores = np.zeros(alphas.size)
    for fold in folds_by_content(_FOLDS, data):
        train = data.at_positions(fold.train)
        test = data.at_positions(fold.test)
        part = EmpiricalRisk(surrogate, train, "cap", n_threads=risk.n_threads)
        score = ByMetric("ap").on(test)
        last: SolverResult | None = None
        for place, alpha in enumerate(alphas):
            if deadline is not None and time.perf_counter() > deadline:
                return None
            settings = {"tol": TOL, "max_iter": MAX_ITER, "positive": positive}
            solver = make_solver("auto", surrogate, float(alpha), **settings)
            last = solver.suited_to(part).solve(part, warm_start=last)
            if last.status is Status.INTERRUPTED:
                raise KeyboardInterrupt
            scores[place] += score(last.w)[0]
    return float(alphas[int(np.argmax(scores))])


def _convex(surrogate: Surrogate) -> Surrogate:
    """The surrogate itself, or Avg in place of one that is not convex."""
    if surrogate.convex:
        return surrogate
    return make_surrogate("avg", surrogate.k, surrogate.depth)
