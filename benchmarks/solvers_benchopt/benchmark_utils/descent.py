"""The common part of the subgradient methods in the benchmark."""

import numpy as np
from benchopt import BaseSolver


class DescentSolver(BaseSolver):
    """Subgradient descent, run again for every number of steps; no certificate."""

    sampling_strategy = "iteration"

    def set_objective(self, risk, alpha):
        self.risk, self.alpha = risk, alpha

    def warm_up(self):
        self.pre_run_hook(3)
        self.run(3)

    def run(self, n_iter):
        self.w, self.passes = np.zeros(self.risk.n_features), 0
        if n_iter > 0:
            result = self.solver(n_iter).solve(self.risk)
            self.w, self.passes = result.w, result.data_passes

    def get_result(self):
        return {"w": self.w, "data_passes": self.passes}
