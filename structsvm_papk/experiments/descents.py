"""Many descents on one risk, side by side: grids of step sizes and regularisations.

Descents that run one after the other each read all of X twice a step, and where it does not fit
into the processor's cache that is most of their time. Here a block of rows serves all descents
before the next one is read.
"""

import time

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk.data import _products
from structsvm_papk.solvers.result import Progress, SolverResult, Status
from structsvm_papk.solvers.subgradient import SubgradientDescent

_BLOCK_BYTES = 1 << 15  # rows of X that stay in the fastest cache
_NUMBERS = 1 << 23  # scores and coefficients that are held at a time


def descend(risk, settings, steps, start):
    """What ``SubgradientDescent(alpha, eta, steps).solve(risk, start)`` gives for each setting.

    The history holds the last step only, and each has an equal share of the seconds.
    """
    X = risk.data.X
    if sparse.issparse(X) or not X.flags.c_contiguous:
        return [SubgradientDescent(a, eta, steps).solve(risk, start) for eta, a in settings]
    size = max(1, _NUMBERS // (2 * risk.data.rows.size))
    parts = [settings[i : i + size] for i in range(0, len(settings), size)]
    return [result for part in parts for result in _side_by_side(risk, part, steps, start)]


def _side_by_side(risk, settings, steps, start):
    started = time.perf_counter()
    etas, alphas = np.array(settings).T
    W = np.tile(start, (len(settings), 1))
    best_W, best = W.copy(), np.full(len(settings), np.inf)
    for t in range(steps):
        values, gradients = _evaluate(risk, W)
        objectives = alphas / 2 * np.array([w @ w for w in W]) + values
        better = objectives < best
        best_W[better], best[better] = W[better], objectives[better]
        W = W - (etas / np.sqrt(t + 1))[:, None] * (alphas[:, None] * W + gradients)
    seconds = (time.perf_counter() - started) / len(settings)
    return [
        SolverResult(
            w, float(value), -np.inf, Status.FINISHED, (_last(steps, seconds, value),), alpha
        )
        for w, value, alpha in zip(best_W, best, alphas.tolist(), strict=True)
    ]


def _last(steps, seconds, objective):
    return Progress(steps, seconds, steps, float(objective), -np.inf, 0)


def _evaluate(risk, W):
    """Values and subgradients of the risk at every row of W."""
    X, rows = risk.data.X, risk.data.rows
    block = max(1, _BLOCK_BYTES // (X.itemsize * X.shape[1]))
    scores, gradients = np.empty((len(W), rows.size)), np.zeros_like(W)
    _scores(X, rows, W, block, scores)
    values, coef = zip(*(risk.user_values(own) for own in scores), strict=True)
    _add_rows(X, rows, np.array(coef), block, gradients)
    return np.array([own.mean() for own in values]), gradients / risk.n_users


@kernel
def _scores(X, rows, W, block, out):
    for lo in range(0, rows.size, block):
        for s in range(W.shape[0]):
            _products._row_scores(X, rows, None, W[s], lo, min(lo + block, rows.size), out[s])


@kernel
def _add_rows(X, rows, coef, block, out):
    bounds = np.zeros(2, dtype=np.int64)
    for lo in range(0, rows.size, block):
        for s in range(coef.shape[0]):
            active = lo + np.flatnonzero(coef[s, lo : lo + block])
            bounds[1] = active.size
            _products._row_add(X, rows, None, coef[s], active, bounds, out[s : s + 1])
