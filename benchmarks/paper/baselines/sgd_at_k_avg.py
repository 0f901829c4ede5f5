"""SGD@k-avg: (stochastic) subgradient descent on the average surrogate of precision@k."""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.prec_at_k import PrecAtKAvg
from structsvm_papk import EmpiricalRisk, SubgradientDescent


@dataclass(frozen=True)
class SGDAtKAvg:
    """``w <- w - eta/sqrt(t+1) (alpha w + g_t)`` on ``alpha/2 ||w||^2 + mean_u PrecAtKAvg``.

    g_t is a subgradient of the whole mean, or of a mini-batch of `batch_users` random users.

    Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top", ICML 2015.
    """

    alpha: float
    eta: float = 0.1
    max_iter: int = 200
    batch_users: int | None = None
    start_scale: float = 1.0
    seed: int = 0

    def solve(self, data, k):
        """Descend; mini-batches give the average of the second half of the iterates."""
        risk = EmpiricalRisk(PrecAtKAvg(k), data, "exclude")
        if self.batch_users is None:
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
        data = self.risk.data
        if self.config.batch_users < data.n_users:
            keep = np.zeros(data.n_users, dtype=bool)
            keep[self.rng.choice(data.n_users, self.config.batch_users, replace=False)] = True
            data = data.subset(keep)
        return EmpiricalRisk(self.risk.surrogate, data, "raise")
