"""dlib's svm_rank_trainer: the AUC hinge of one user."""

from importlib.util import find_spec

import numpy as np
from benchmark_utils.peers import dlib_pairs, dlib_weights, is_auc_hinge
from benchmark_utils.stopping import GapBelow
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Optimised cutting planes with a dual SMO solver, in C++."""

    name = "dlib"
    sampling_strategy = "tolerance"
    stopping_criterion = GapBelow(1e-9)
    requirements = ["pip::dlib"]
    references = ["http://dlib.net/python/index.html#dlib_pybind11.svm_rank_trainer"]

    def skip(self, risk, alpha):
        if find_spec("dlib") is None:
            return True, "dlib is not installed"
        if not is_auc_hinge(risk):
            return True, "dlib ranks all pairs of one user: pauc with k = n_neg only"
        return False, None

    def set_objective(self, risk, alpha):
        self.n_features, self.alpha = risk.n_features, alpha
        self.pair = dlib_pairs(risk.data)

    @staticmethod
    def get_next(tol):
        return min(1e-1, tol / 4)

    def run(self, tol):
        self.w = np.zeros(self.n_features)
        if tol <= 1.0:
            self.w = dlib_weights(self.pair, self.alpha, tol)

    def get_result(self):
        return {"w": self.w}
