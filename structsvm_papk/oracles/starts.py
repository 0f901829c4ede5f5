"""Starting points for the non-convex risks: cheap, deterministic, from the data alone."""

from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_choice
from structsvm_papk.oracles.convex_risk import ConvexRisk
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.losses import Avg

NAMES = ("zero", "avg", "deep_avg", "logistic", "centred_logistic")
_DEEP = 0.9  # share of the negatives that 'deep_avg' counts
_RIDGE = 1e-4
_STEPS = 100
_ROWS = 1 << 14  # a start needs no more, and no more than as many a feature as below
_ROWS_PER_FEATURE = 300


def warm_starts(
    surrogate: Surrogate,
    data: RankingData,
    alpha: float,
    names: Sequence[str] | None = None,
    n_threads: int = 1,
) -> dict[str, Array]:
    """Starting points by name, by default all, from lists that are `enough_for_starts`.

    ``zero``; ``avg``: the optimum of the convex Avg surrogate, to a gap of 1%; ``deep_avg``: the
    same with nine tenths of each user's negatives counted, which is seldom zero; ``logistic`` and
    ``centred_logistic``: see `logistic_regression`.
    """

    def optimum_of_avg(depth: float | None) -> Array:
        avg = Avg(surrogate.k, depth=depth)
        return _optimum_nearby(ConvexRisk(avg, data, "cap", n_threads=n_threads), alpha)

    makers = {
        "zero": lambda: np.zeros(data.n_features),
        "avg": lambda: optimum_of_avg(surrogate.depth),
        "deep_avg": lambda: optimum_of_avg(_DEEP),
        "logistic": lambda: logistic_regression(data),
        "centred_logistic": lambda: logistic_regression(data, centred=True),
    }
    names = NAMES if names is None else names
    for name in names:
        check_choice("starts", name, makers)
    return {name: makers[name]() for name in names}


def enough_for_starts(n_rows: int, n_features: int) -> int:
    """The n for which every n-th user is enough."""
    return max(1, n_rows // max(_ROWS, _ROWS_PER_FEATURE * n_features))


def _optimum_nearby(risk, alpha):
    """The optimum of a convex risk, to a gap of 1%.

    Interrupted, it is no start: a run resumed later would begin elsewhere.
    """
    result = CuttingPlane(alpha, tol=1e-2, max_iter=300).solve(risk)
    if result.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return result.w


def logistic_regression(
    data: RankingData, centred: bool = False, ridge: float = _RIDGE, max_iter: int = _STEPS
) -> Array:
    """Weights of a logistic regression of relevance on the features, users by their weights.

    ``min_{w,b} ridge/2 ||w||^2 + mean_u mean_{r of u} log(1 + exp(-y_r (w.x_r + b)))``, y = +-1.
    With `centred`, each user's scores enter less their mean, so that what all items of a user
    share does not count.
    """
    sign = np.where(data.labels, 1.0, -1.0)
    share = np.ones(data.n_users) if data.user_weight is None else data.user_weight
    weight = np.repeat(share / (share.sum() * data.sizes), data.sizes)

    def centre(values):
        """Less the user's mean: a symmetric projection, so its own transpose."""
        if not centred:
            return values
        sums = np.add.reduceat(values, data.indptr[:-1])
        return values - np.repeat(sums / data.sizes, data.sizes)

    def loss(point):
        w, intercept = point[:-1], point[-1]
        margin = sign * (centre(data.scores(w)) + intercept)
        value = float(weight @ np.logaddexp(0.0, -margin))
        slope = sign * (-weight * expit(-margin))
        gradient = data.rmatvec(centre(slope)) + ridge * w
        return value + ridge / 2 * (w @ w), np.append(gradient, slope.sum())

    start = np.zeros(data.n_features + 1)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x[:-1]
