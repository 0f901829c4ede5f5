"""The common part of this package's solvers in the benchmark."""

import numpy as np
from benchopt import BaseSolver

from structsvm_papk import CuttingPlane


class CuttingPlaneSolver(BaseSolver):
    """One method of `CuttingPlane`, run again for every number of iterations."""

    sampling_strategy = "iteration"
    references = [
        "Kiwiel, Mathematical Programming 46 (1990)",
        "Franc and Sonnenburg, JMLR 10 (2009)",
        "Joachims, Finley and Yu, Machine Learning 77 (2009)",
    ]
    method = "bundle"

    def set_objective(self, risk, alpha):
        self.risk, self.alpha = risk, alpha

    def warm_up(self):
        self.run(3)

    def run(self, n_iter):
        self.result = None
        if n_iter > 0:
            self.result = self.solver(n_iter).solve(self.risk)

    def solver(self, n_iter):
        """Return the configured solver."""
        return CuttingPlane(
            self.alpha,
            tol=1e-10,
            max_iter=n_iter,
            method=self.method,
            qp_solver=self.qp_solver,
            time_limit=120.0,
        )

    def get_result(self):
        if self.result is None:
            return {"w": np.zeros(self.risk.n_features), "data_passes": 0}
        return {
            "w": self.result.w,
            "lower_bound": max(self.result.lower_bound, 0.0),
            "data_passes": self.result.data_passes,
        }
