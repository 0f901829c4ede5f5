"""The bootstrap over users: asymptotic, and for all who resample whole users the same."""

from collections.abc import Callable

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.validation import too_few_to_resample
from structsvm_papk.errors import InputError

_BATCH_BYTES = 1 << 26


def resampled(
    statistic: Callable[[Array], Array], n_users: int, n_resamples: int, seed: int
) -> Array:
    """Values of a statistic when as many users are drawn with replacement.

    Parameters
    ----------
    statistic : callable
        From the indices of the drawn users, shape (n_draws, n_users), to one value a draw; NaN
        where it is not defined.
    n_users, n_resamples, seed : int

    Returns
    -------
    ndarray, shape (n_resamples,) or shorter
        Without the draws in which the statistic is not defined.

    Raises
    ------
    InputError
        Fewer than 10 users; no draws; a statistic that is not defined in any draw.
    """
    reason = too_few_to_resample(n_users)
    if reason is not None:
        raise InputError(reason)
    if n_resamples < 1:
        raise InputError(f"n_resamples={n_resamples}: a bootstrap needs at least one draw")
    rng = np.random.default_rng(seed)
    batch = max(1, _BATCH_BYTES // (16 * n_users))
    sizes = [min(batch, n_resamples - start) for start in range(0, n_resamples, batch)]
    draws = np.concatenate([statistic(rng.integers(0, n_users, (n, n_users))) for n in sizes])
    draws = draws[~np.isnan(draws)]
    if not draws.size:
        raise InputError(f"the value is not defined in any of {n_resamples} bootstrap draws")
    return draws


def weighted_mean_ends(
    values: Array, weights: Array, level: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Percentile interval for ``sum w_i v_i / sum w_i``; users of weight 0 are not drawn."""
    values, weights = values[weights > 0], weights[weights > 0]
    weighted = values * weights

    def means(users: Array) -> Array:
        return weighted[users].sum(axis=1) / weights[users].sum(axis=1)

    draws = resampled(means, values.size, n_resamples, seed)
    if np.ptp(values) == 0:  # without the rounding of the sums
        return float(values[0]), float(values[0])
    return percentile_ends(draws, level)


def percentile_ends(draws: Array, level: float) -> tuple[float, float]:
    """Quantiles of the draws that leave ``(1 - level)/2`` out at each end."""
    low, high = np.quantile(draws, [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(low), float(high)
