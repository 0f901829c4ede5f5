"""SGD@k-avg: (stochastic) subgradient descent on the average surrogate of precision@k."""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.prec_at_k import PrecAtKAvg
from structsvm_papk import EmpiricalRisk, RankingData, SubgradientDescent


@dataclass(frozen=True)
class SGDAtKAvg:
    """``w <- w - eta/sqrt(t+1) (alpha w + g_t)`` on ``alpha/2 ||w||^2 + mean_u PrecAtKAvg``.

    g_t is a subgradient of the whole mean, or of a mini-batch: `batch_users` random users, and of
    each of them a random share `batch_share` of the positives and of the negatives, with k scaled
    by the same share (Algorithm 3 of Kar et al., whose lists are a single user).

    Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top", ICML 2015.
    """

    alpha: float
    eta: float = 0.1
    max_iter: int = 200
    batch_users: int | None = None
    batch_share: float = 1.0
    start_scale: float = 1.0
    seed: int = 0

    def solve(self, data, k):
        """Descend; mini-batches give the average of the second half of the iterates."""
        risk = EmpiricalRisk(PrecAtKAvg(k), data, "exclude")
        if self.batch_users is None and self.batch_share == 1:
            return self._descent("best").solve(risk)
        return self._descent("average").solve(_Batches(self, risk))

    def _descent(self, keep):
        return SubgradientDescent(
            self.alpha,
            self.eta,
            self.max_iter,
            keep=keep,
            start_scale=self.start_scale,
            seed=self.seed,
        )


class _Batches:
    """An oracle that answers from a new mini-batch each time, and from all data at the end."""

    def __init__(self, config, risk):
        self.config, self.risk, self.n_features = config, risk, risk.n_features
        self.rng = np.random.default_rng([config.seed, 1])
        self.calls = 0

    def __call__(self, w):
        self.calls += 1
        if self.calls > self.config.max_iter:  # the average of the iterates is judged on all
            return self.risk(w)
        return self._draw()(w)

    def _draw(self):
        data, k, config = self.risk.data, self.risk.surrogate.k, self.config
        if config.batch_users is not None and config.batch_users < data.n_users:
            keep = np.zeros(data.n_users, dtype=bool)
            keep[self.rng.choice(data.n_users, config.batch_users, replace=False)] = True
            data = data.subset(keep)
        if config.batch_share < 1:
            data, k = part_of_lists(data, k, config.batch_share, self.rng)
        return EmpiricalRisk(PrecAtKAvg(k), data, "raise")


def part_of_lists(data, k, share, rng):
    """Draw a random share of each user's positives and negatives; k scaled by the same share.

    Returns data: at least one positive and the new k negatives of each user that has k.
    """
    small = max(1, round(share * k))
    n_pos = np.maximum(1, np.rint(share * data.n_pos).astype(np.int64))
    n_neg = np.maximum(small, np.rint(share * data.n_neg).astype(np.int64))
    kinds = 2 * data.user_of_position + ~data.labels
    shuffled = np.lexsort((rng.random(kinds.size), kinds))
    bounds = np.column_stack([data.indptr[:-1], data.indptr[:-1] + data.n_pos]).ravel()
    rank = np.arange(kinds.size) - bounds[kinds[shuffled]]
    wanted = np.column_stack([n_pos, n_neg]).ravel()
    return at_positions(data, np.sort(shuffled[rank < wanted[kinds[shuffled]]])), small


def at_positions(data, positions):
    """Only the given list positions, increasing, as `RankingData` with a matrix of their rows."""
    sizes = np.bincount(data.user_of_position[positions], minlength=data.n_users)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return RankingData(data.X[data.rows[positions]], data.labels[positions], bounds, data.users)
