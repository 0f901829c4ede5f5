"""The bootstrap over users: asymptotic, and for all who resample whole users the same."""

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.validation import too_few_to_resample
from structsvm_papk.errors import InputError

_BATCH_BYTES = 1 << 26


def weighted_mean_ends(
    values: Array, weights: Array, level: float, n_resamples: int, seed: int
) -> tuple[float, float]:
    """Percentile interval for ``sum w_i v_i / sum w_i``; users of weight 0 are not drawn."""
    values, weights = values[weights > 0], weights[weights > 0]
    reason = too_few_to_resample(values.size)
    if reason is not None:
        raise InputError(reason)
    if n_resamples < 1:
        raise InputError(f"n_resamples={n_resamples}: a bootstrap needs at least one draw")
    if np.ptp(values) == 0:  # without the rounding of the sums
        return float(values[0]), float(values[0])
    rng, weighted, means = np.random.default_rng(seed), values * weights, []
    batch = max(1, _BATCH_BYTES // (16 * values.size))
    for start in range(0, n_resamples, batch):
        drawn = rng.integers(0, values.size, (min(batch, n_resamples - start), values.size))
        means.append(weighted[drawn].sum(axis=1) / weights[drawn].sum(axis=1))
    low, high = np.quantile(np.concatenate(means), [(1 - level) / 2, 1 - (1 - level) / 2])
    return float(low), float(high)
