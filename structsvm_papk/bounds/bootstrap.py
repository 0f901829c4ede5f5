"""The bootstrap over users: asymptotic, and for all who resample whole users the same."""

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.validation import FEWEST_RESAMPLED, too_few_to_resample
from structsvm_papk.errors import InputError, check_number

_BATCH_BYTES = 1 << 26


def weighted_mean_ends(
    values: Array, weights: Array, level: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Percentile interval for ``sum w_i v_i / sum w_i``; users of weight 0 are not drawn."""
    values, weights = values[weights > 0], weights[weights > 0]
    reason = too_few_to_resample(values.size)
    if reason is not None:
        raise InputError(reason)
    check_number("n_resamples", n_resamples, least=1)
    check_number("seed", seed, least=0)
    if np.ptp(values) == 0:  # without the rounding of the sums
        return float(values[0]), float(values[0])
    rng, weighted, means = np.random.default_rng(seed), values * weights, []
    batch = max(1, _BATCH_BYTES // (16 * values.size))
    for start in range(0, n_resamples, batch):
        drawn = rng.integers(0, values.size, (min(batch, n_resamples - start), values.size))
        means.append(weighted[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(low), float(high)


def rests_on(values: Array) -> str:
    """Why a bootstrap interval covers less than it says; empty where nothing speaks against it.

    Resampling learns how users differ from those with the most frequent value. Where nine of them
    or fewer do, and less than half, it is too short: for 20 users of whom each has a 1 with
    probability .05 and else a 0 it covers 62%, not 95%.
    """
    n_other = values.size - int(np.unique(values, return_counts=True)[1].max())
    if n_other >= min(FEWEST_RESAMPLED, values.size / 2):
        return ""
    return f"rests on {n_other} user{'s' * (n_other != 1)}"
