"""Logistic regression on sampled pairs: the strongest simple rival of rankers trained on lists."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from benchmarks.paper.baselines.common import uncertified
from benchmarks.paper.baselines.cross_entropy import logistic_loss
from structsvm_papk.errors import InputError


@dataclass(frozen=True)
class PairwiseLogistic:
    """``alpha/2 ||w||^2 + mean_{(i,j)} log(1 + exp(-(x_i - x_j) . w))`` over sampled pairs.

    Every positive i is paired with `n_negatives` random negatives j of the same user, so users
    count by their positives.

    Rendle, Freudenthaler, Gantner, Schmidt-Thieme, "BPR: Bayesian personalized ranking from
    implicit feedback", UAI 2009 (the loss; here on given features, to the optimum).
    """

    alpha: float = 1e-4
    n_negatives: int = 20
    max_iter: int = 200
    seed: int = 0

    def solve(self, data, k=None):
        """Fit on `RankingData`; k is not used."""
        positives, negatives = self._pairs(data)
        weight = np.full(positives.size, 1.0 / positives.size)

        def loss(w):
            scores = data.scores(w)
            value, slope = logistic_loss(scores[positives] - scores[negatives], weight)
            coef = np.bincount(positives, slope, scores.size)
            coef -= np.bincount(negatives, slope, scores.size)
            return value + self.alpha / 2 * (w @ w), data.rmatvec(coef) + self.alpha * w

        start, options = np.zeros(data.n_features), {"maxiter": self.max_iter}
        best = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
        return uncertified(best.x, best.fun, self.alpha)

    def _pairs(self, data):
        """List positions of the positives and negatives of the pairs."""
        users = np.flatnonzero((data.n_pos > 0) & (data.n_neg > 0))
        if not users.size:
            raise InputError("no user has both a positive and a negative: there is no pair")
        first, n_pos = data.indptr[users], data.n_pos[users]
        n_pairs = n_pos * self.n_negatives
        user = np.repeat(np.arange(users.size), n_pairs)
        place = np.arange(user.size) - np.repeat(np.cumsum(n_pairs) - n_pairs, n_pairs)
        positives = first[user] + place // self.n_negatives
        drawn = np.random.default_rng(self.seed).random(user.size) * data.n_neg[users][user]
        return positives, first[user] + n_pos[user] + drawn.astype(np.int64)
