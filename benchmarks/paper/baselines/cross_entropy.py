"""Cross-entropy of a linear scorer on rows: what several baselines fit."""

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit


class CrossEntropy:
    """``ridge/2 ||w||^2 + mean_r log(1 + exp(-y_r (w.x_r + b)))``, y = +-1, and its gradient."""

    def __init__(self, X, positive, ridge):
        self.X, self.ridge = X, ridge
        self.sign = np.where(positive, 1.0, -1.0)
        self.weights = np.full(positive.size, 1.0 / positive.size)

    def __call__(self, point):
        """Value and gradient at (w, b)."""
        w, intercept = point[:-1], point[-1]
        margin = self.sign * (self.X @ w + intercept)
        loss, slope = logistic_loss(margin, self.weights)
        slope *= self.sign
        return loss + self.ridge / 2 * (w @ w), np.append(
            self.X.T @ slope + self.ridge * w, slope.sum()
        )

    def fit(self, start=None, max_iter=100):
        """Minimise by L-BFGS; returns the point (w, b) and the value there."""
        start = np.zeros(self.X.shape[1] + 1) if start is None else start
        best = minimize(self, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
        return best.x, float(best.fun)


def logistic_loss(margins, weights):
    """``sum_r v_r log(1 + exp(-m_r))`` and its derivatives in the margins m."""
    return float(weights @ np.logaddexp(0.0, -margins)), -weights * expit(-margins)
