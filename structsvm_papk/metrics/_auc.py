"""The pooled AUC: each row's share of correct pairs, and its bootstrap over users."""

import numpy as np
from numba import njit

from structsvm_papk.data.validation import too_few_to_resample
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists


def shares(scores, relevant):
    """Per positive the share of negatives below it, per negative the share of positives above."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    n_pos, n_neg = relevant.sum(), (~relevant).sum()
    v10 = (ranks[relevant] - rankdata(scores[relevant])) / n_neg
    v01 = 1.0 - (ranks[~relevant] - rankdata(scores[~relevant])) / n_pos
    return v10, v01


@njit(cache=True, nogil=True)
def weighted_area(blocks, relevant, weights):
    """AUC with row weights; `blocks` numbers equal scores, rows sorted by decreasing score."""
    won = 0.0
    pos_above = 0.0
    neg_total = 0.0
    i = 0
    while i < blocks.size:
        pos = 0.0
        neg = 0.0
        j = i
        while j < blocks.size and blocks[j] == blocks[i]:
            if relevant[j]:
                pos += weights[j]
            else:
                neg += weights[j]
            j += 1
        won += neg * (pos_above + 0.5 * pos)
        pos_above += pos
        neg_total += neg
        i = j
    if pos_above == 0.0 or neg_total == 0.0:
        return np.nan
    return won / (pos_above * neg_total)


def cluster_bootstrap(scores, labels, groups, level, n_resamples, seed):
    """Value, lower, upper, level and standard error of the pooled AUC."""
    rows = lists.build(scores, labels, groups)
    order = np.argsort(-rows.scores, kind="stable")
    ordered = rows.scores[order]
    blocks = np.append(0, np.cumsum(ordered[1:] != ordered[:-1]))
    relevant = rows.relevant[order]
    owner = np.repeat(np.arange(rows.n_users), np.diff(rows.indptr))[order]
    reason = too_few_to_resample(rows.n_users)
    if reason is not None:
        raise InputError(reason)
    value = weighted_area(blocks, relevant, np.ones(order.size))
    if np.isnan(value):
        raise InputError("the pooled AUC needs positives and negatives; one class is missing")
    rng = np.random.default_rng(seed)
    draws = np.empty(n_resamples)
    for i in range(n_resamples):
        times = np.bincount(rng.integers(0, rows.n_users, rows.n_users), minlength=rows.n_users)
        draws[i] = weighted_area(blocks, relevant, times[owner].astype(float))
    draws = draws[~np.isnan(draws)]
    low, high = np.quantile(draws, [0.5 - level / 2, 0.5 + level / 2])
    return float(value), float(low), float(high), level, float(draws.std(ddof=1))
