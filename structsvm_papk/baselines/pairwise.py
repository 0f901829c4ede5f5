"""Logistic regression on sampled pairs: the strongest simple rival of rankers trained on lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from structsvm_papk._types import Array, Callback
from structsvm_papk.baselines.recording import Recorder
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.surrogates.logistic import logistic_loss

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData
    from structsvm_papk.solvers.result import SolverResult


@dataclass(frozen=True)
class PairwiseLogistic:
    """``alpha/2 ||w||^2 + mean_{(i,j)} log(1 + exp(-(x_i - x_j) . w))`` over sampled pairs.

    Every positive i is paired with `n_negatives` random negatives j of the same user, so users
    count by their positives; with `equal_users` they count the same.

    Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian personalized ranking from
    implicit feedback", UAI 2009 (the loss; here on given features, to the optimum).
    """

    alpha: float = 1e-4
    n_negatives: int = 20
    equal_users: bool = False
    max_iter: int = 200
    seed: int = 0

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, least=0.0)
        check_number("n_negatives", self.n_negatives, least=1)
        check_number("max_iter", self.max_iter, least=1)

    def solve(
        self, data: RankingData, k: int | None = None, callback: Callback | None = None
    ) -> SolverResult:
        """Fit on `RankingData`; k is not used."""
        positives, negatives, weight = self._pairs(data)
        record = Recorder(callback)

        def loss(w: Array) -> tuple[float, Array]:
            scores = data.scores(w)
            value, slope = logistic_loss(scores[positives] - scores[negatives], weight)
            coef = np.bincount(positives, slope, scores.size)
            coef -= np.bincount(negatives, slope, scores.size)
            return value + self.alpha / 2 * float(w @ w), data.pullback(coef) + self.alpha * w

        def step(intermediate_result):
            if record.add(intermediate_result.fun, len(record.history) + 1):
                raise StopIteration

        best = minimize(
            loss,
            np.zeros(data.n_features),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": self.max_iter},
            callback=step,
        )
        return record.result(best.x, float(best.fun), self.alpha)

    def _pairs(self, data):
        """List positions of the positives and negatives of the pairs, and the pairs' weights."""
        users = np.flatnonzero((data.n_pos > 0) & (data.n_neg > 0))
        if not users.size:
            raise InputError("no user has both a positive and a negative: there is no pair")
        first, n_pos = data.indptr[users], data.n_pos[users]
        n_pairs = n_pos * self.n_negatives
        user = np.repeat(np.arange(users.size), n_pairs)
        place = np.arange(user.size) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
        positives = first[user] + place // self.n_negatives
        drawn = np.random.default_rng(self.seed).random(user.size) * data.n_neg[users][user]
        negatives = first[user] + n_pos[user] + drawn.astype(np.int64)
        weight = np.ones(user.size) if not self.equal_users else 1.0 / n_pairs[user]
        return positives, negatives, weight / weight.sum()
