"""The average surrogate of precision@k of Kar, Narasimhan and Jain (2015)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numba import njit

from structsvm_papk.surrogates import Surrogate


@dataclass(frozen=True)
class PrecAtKAvg(Surrogate):
    """``1/k max_{0<=h<=m} [ k - h + sum_{j<=k-h} q_(j) - (beta-h)/(n_pos-h) sum_{i>h} p_(i) ]``.

    h is the number of positives among the k items that are put on top: the best h positives and
    the best k - h negatives, against the mean of the positives left out. A maximum of functions
    that are convex in the scores, so convex. ``m = k`` where n_pos >= k, with the term h = k equal
    to 0, and ``m = n_pos - 1`` otherwise.

    Kar et al. require ``n_pos >= k``, where ``beta = k`` and this is their definition divided by
    k. For ``n_pos < k`` it is the extension in the code of the pAp@k paper: the weight of the
    positives is ``beta - h``, so the value then changes by ``(k - beta) c / k`` when a constant c
    is added to all scores. With `balanced` the weight is ``k - h`` there, as in the original
    formula, and nothing changes.

    Kar, Narasimhan, Jain, "Surrogate functions for maximizing precision at the top", ICML 2015.
    """

    balanced: bool = False
    name: ClassVar[str] = "prec_avg"
    top_negatives_only: ClassVar[bool] = True

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        _prec_avg(scores, indptr, n_pos, self.k, self.balanced, first, last, values, coef)


@njit(cache=True, nogil=True)
def _prec_avg(scores, indptr, n_pos, k, balanced, first, last, values, coef):
    for u in range(first, last):
        middle = indptr[u] + n_pos[u]
        positives = scores[indptr[u] : middle]
        order = np.argsort(-positives, kind="mergesort")
        negatives = scores[middle : indptr[u + 1]]
        chosen = np.argsort(-negatives, kind="mergesort")[:k]
        weight = k if balanced else min(n_pos[u], k)
        below = positives.sum()
        above = negatives[chosen].sum()
        # n_pos = k, all of them on top: nothing is missed, and no mean of others exists
        best = 0.0 if n_pos[u] == k else -np.inf
        best_h = k if n_pos[u] == k else -1
        for h in range(min(n_pos[u], k + 1)):
            value = k - h + above - (weight - h) / (n_pos[u] - h) * below
            if value > best:
                best = value
                best_h = h
            below -= positives[order[h]]
            if h < k:
                above -= negatives[chosen[k - h - 1]]
        values[u] = best / k
        coef[indptr[u] : indptr[u + 1]] = 0.0
        for j in range(k - best_h):
            coef[middle + chosen[j]] = 1.0 / k
        for i in range(best_h, n_pos[u]):
            coef[indptr[u] + order[i]] = -(weight - best_h) / ((n_pos[u] - best_h) * k)
