"""scikit-learn's LinearSVC on the differences of all pairs; tiny tasks only."""

import warnings

import numpy as np
from benchmark_utils.peers import pair_differences
from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

MOST_PAIRS = 200_000


class Solver(BaseSolver):
    """Dual coordinate descent on ``C sum of weight * hinge``, C the reciprocal of alpha."""

    name = "linear_svc_pairs"
    sampling_strategy = "iteration"
    requirements = ["pip::scikit-learn"]

    def skip(self, risk, alpha):
        data = risk.data
        if risk.surrogate.name != "pauc" or (data.n_neg != risk.surrogate.k).any():
            return True, "LinearSVC takes fixed pairs: pauc with k = n_neg only"
        n_pairs = int((data.n_pos * data.n_neg).sum())
        if n_pairs > MOST_PAIRS:
            return True, f"{n_pairs} pairs, more than {MOST_PAIRS}"
        return False, None

    def set_objective(self, risk, alpha):
        self.n_features, self.alpha = risk.n_features, alpha
        self.differences, self.signs, self.weights = pair_differences(risk.data)

    def run(self, n_iter):
        self.w = np.zeros(self.n_features)
        if n_iter > 0:
            svc = LinearSVC(
                loss="hinge", C=1.0 / self.alpha, fit_intercept=False, tol=1e-12, max_iter=n_iter
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                svc.fit(self.differences, self.signs, sample_weight=self.weights)
            self.w = svc.coef_[0]

    def get_result(self):
        return {"w": self.w}
