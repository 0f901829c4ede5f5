"""The pooled AUC: each row's share of correct pairs, and its values over resampled users."""

import numpy as np
from numba import njit

from structsvm_papk._types import Array
from structsvm_papk.bounds.bootstrap import resampled
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.ranked_lists import RankedLists


def shares(scores: Array, relevant: Array) -> tuple[Array, Array]:
    """Per positive the share of negatives below it, per negative the share of positives above."""
    from scipy.stats import rankdata

    ranks = rankdata(scores)
    n_pos, n_neg = relevant.sum(), (~relevant).sum()
    v10 = (ranks[relevant] - rankdata(scores[relevant])) / n_neg
    v01 = 1.0 - (ranks[~relevant] - rankdata(scores[~relevant])) / n_pos
    return v10, v01


@njit(cache=True, nogil=True)
def weighted_area(blocks: Array, relevant: Array, weights: Array) -> float:
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


def cluster_bootstrap(rows: RankedLists, n_resamples: int, seed: int) -> tuple[float, Array]:
    """The pooled AUC, and its values over resampled users."""
    order = np.argsort(-rows.scores, kind="stable")
    ordered = rows.scores[order]
    blocks = np.append(0, np.cumsum(ordered[1:] != ordered[:-1]))
    relevant = rows.relevant[order]
    owner = np.repeat(np.arange(rows.n_users), np.diff(rows.indptr))[order]

    value = float(weighted_area(blocks, relevant, np.ones(order.size)))
    if np.isnan(value):
        raise InputError("the pooled AUC needs positives and negatives; one class is missing")

    def areas(users: Array) -> Array:
        times = (np.bincount(row, minlength=rows.n_users) for row in users)
        return np.array([weighted_area(blocks, relevant, t[owner].astype(float)) for t in times])

    return value, resampled(areas, rows.n_users, n_resamples, seed)
