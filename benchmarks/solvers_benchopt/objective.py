"""The problem that every solver gets, and how its answer is judged."""

import numpy as np
from benchmark_utils.stopping import GapBelow
from benchmark_utils.tasks import trivial
from benchopt import BaseObjective

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.solvers.solver import relative_gap

ROUNDING = 1e-12


class Objective(BaseObjective):
    """``alpha/2 ||w||^2 + R(w)``, R the mean over users of a convex surrogate."""

    name = "Regularised pAp@k surrogate"
    min_benchopt_version = "1.9"
    parameters = {
        "surrogate": ["avg", "max", "ts", "pauc"],
        "alpha": [1e-2, 1e-3, 1e-4],
    }
    test_config = {"surrogate": "ts", "alpha": 1e-2}
    test_dataset_name = "small"
    sampling_strategy = "iteration"
    stopping_criterion = GapBelow(1e-9)

    def skip(self, X, y, groups, k):
        """Reject tasks whose optimum lies within 5% of F(0)."""
        self.set_data(X, y, groups, k)
        reason = trivial(self.risk, self.alpha)
        return reason is not None, reason

    def set_data(self, X, y, groups, k):
        data = RankingData.from_groups(X, y, groups)
        self.risk = EmpiricalRisk(make_surrogate(self.surrogate, k), data)
        self._reference = None

    def get_objective(self):
        return {"risk": self.risk, "alpha": self.alpha}

    def evaluate_result(self, w, lower_bound=0.0, data_passes=0):
        """Return F(w), its gap to the best bound known, and the gap the solver certified.

        Solvers without a certificate are given the bound 0, those that do not count passes 0.
        """
        value = self.alpha / 2 * float(w @ w) + self.risk(w)[0]
        reference = self._certified()
        if lower_bound > reference.objective + ROUNDING:
            raise AssertionError(
                f"false certificate: bound {lower_bound} above F = {reference.objective}"
            )
        bound = max(reference.lower_bound, lower_bound)
        return {
            "value": value,
            "gap": max(relative_gap(value, bound), 1e-16),
            "certified_gap": relative_gap(value, lower_bound),
            "data_passes": float(data_passes),
        }

    def get_one_result(self):
        return {"w": np.zeros(self.risk.n_features)}

    def _certified(self):
        """A solution with a certificate, found once: the yardstick of every solver."""
        if self._reference is None:
            solver = CuttingPlane(self.alpha, tol=1e-10, max_iter=100_000, time_limit=60.0)
            self._reference = solver.solve(self.risk)
        return self._reference
