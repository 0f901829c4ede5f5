"""Many descents on one risk, side by side: grids of step sizes and regularisations.

Descents that run one after the other each read all of X twice a step; here one product serves all.
"""

import numpy as np

from structsvm_papk import EmpiricalRisk, SolverResult

_NUMBERS = 1 << 23  # scores and coefficients that are held at a time


def descend(surrogate, data, settings, steps, start):
    """What ``SubgradientDescent(alpha, eta, steps).solve`` gives for each (eta, alpha)."""
    data = EmpiricalRisk(surrogate, data, "exclude").data  # the users that count
    X = data.X[data.rows]
    size = max(1, _NUMBERS // (2 * data.rows.size))
    parts = [settings[i : i + size] for i in range(0, len(settings), size)]
    return [r for part in parts for r in _side_by_side(surrogate, data, X, part, steps, start)]


def _side_by_side(surrogate, data, X, settings, steps, start):
    etas, alphas = np.array(settings).T
    W = np.tile(start, (len(settings), 1))
    best_W, best = W.copy(), np.full(len(settings), np.inf)
    for t in range(steps):
        found = [
            surrogate.value_and_subgradient(scores, data.indptr, data.n_pos)
            for scores in np.ascontiguousarray((X @ W.T).T)
        ]
        values = np.array([losses.mean() for losses, _ in found])
        gradients = np.array([coef for _, coef in found]) @ X / data.n_users
        objectives = alphas / 2 * np.square(W).sum(axis=1) + values
        better = objectives < best
        best_W[better], best[better] = W[better], objectives[better]
        W = W - (etas / np.sqrt(t + 1))[:, None] * (alphas[:, None] * W + gradients)
    return [
        SolverResult(w, float(value), -np.inf, "finished", alpha=alpha)
        for w, value, alpha in zip(best_W, best, alphas.tolist(), strict=True)
    ]
