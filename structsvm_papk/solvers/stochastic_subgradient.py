"""Stochastic subgradient descent: one user, or another term of the risk, at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from structsvm_papk.solvers.averaged_subgradient import AveragedRun, AveragedSubgradient
from structsvm_papk.solvers.oracle import FiniteSumOracle, Oracle, needed
from structsvm_papk.solvers.solver import SolverResult, Start

_NO_TERMS = (
    "stochastic steps need a risk whose terms can be evaluated alone, a `FiniteSumOracle`, such as "
    "one in memory"
)


@dataclass(frozen=True)
class StochasticSubgradient(AveragedSubgradient):
    """``w <- w - (alpha w + g_i) / (alpha t)``, g_i of one term alone, averaged with weights t.

    The terms of a risk in memory are the lists; they come in a new random order in every pass. On
    a convex risk the average is within O(1 / (alpha t)) of the optimum after t steps; there is no
    certificate, and the status at the end is 'finished'. The average is looked at after 1, 2, 3, 4,
    5, 7, 9, 12, .. passes and at the end; the best w that was looked at is returned. These looks,
    one evaluation each, do not count as passes, their seconds do.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0.
    max_iter : int
        Passes over the data.
    time_limit : float, optional
        Seconds; a pass that was begun is finished.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0, or over those w that are >= 0 where it is True: every step, and the
        start, is followed by ``w <- max(w, 0)`` there.
    seed : int
        Of the order.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter, "Pegasos: primal estimated sub-gradient solver for SVM",
    Mathematical Programming 127 (2011), for the steps. Lacoste-Julien, Schmidt, Bach, "A simpler
    approach to obtaining an O(1/t) convergence rate for the projected stochastic subgradient
    method", 2012 (arXiv:1212.2002), for the average.
    """

    seed: int = 0

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> _StochasticRun:
        risk = needed(oracle, FiniteSumOracle, _NO_TERMS)
        return _StochasticRun(self, risk, self._start(risk, w_init, warm_start))


class _StochasticRun(AveragedRun[StochasticSubgradient, FiniteSumOracle]):
    """A pass is a step on each term."""

    def take_pass(self) -> None:
        shares = self.oracle.shares
        order = np.random.default_rng([self.config.seed, self.passes]).permutation(shares.size)
        for i in order.tolist():
            if self.clock.interrupted():
                return
            _, subgradient = self.oracle.term(i, self.w)
            self.step(shares.size * shares[i] * subgradient)
