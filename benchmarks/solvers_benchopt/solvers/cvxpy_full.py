"""The whole problem written in cvxpy and given to Clarabel; small tasks only."""

import cvxpy as cp
import numpy as np
from benchmark_utils.full_problem import full_problem, n_hinges
from benchmark_utils.stopping import GapBelow
from benchopt import BaseSolver

MOST_HINGES = 20_000


class Solver(BaseSolver):
    """No cuts: every pair of a positive and a negative is in the problem."""

    name = "cvxpy_full"
    sampling_strategy = "tolerance"
    stopping_criterion = GapBelow(1e-9)
    requirements = ["pip::cvxpy"]

    def skip(self, risk, alpha):
        hinges = n_hinges(risk)
        if hinges > MOST_HINGES:
            return True, f"{hinges} pairs, more than {MOST_HINGES}"
        return False, None

    def set_objective(self, risk, alpha):
        self.n_features = risk.n_features
        self.problem, self.variable = full_problem(risk, alpha)

    def warm_up(self):
        self.run(1e-1)

    @staticmethod
    def get_next(tol):
        return min(1e-1, tol / 10)

    def run(self, tol):
        self.w = np.zeros(self.n_features)
        if tol <= 1.0:
            self.problem.solve(cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
            self.w = self.variable.value

    def get_result(self):
        return {"w": self.w}
