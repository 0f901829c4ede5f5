"""A surrogate as a user would write it: in plain Python, with a setting of its own."""

from dataclasses import dataclass

import numpy as np

from structsvm_papk.surrogates import Surrogate


@dataclass(frozen=True)
class PowerPairs(Surrogate):
    """``mean over i and j <= m of ((1 - p_i + q_(j))_+)^exponent``; pAUC with exponent 1."""

    exponent: float = 2.0
    name = "power_pairs"
    top_negatives_only = shift_invariant = True

    def evaluate(self, scores, indptr, n_pos, first, last, values, coef):
        for u in range(first, last):
            start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
            order = middle + np.argsort(-scores[middle:stop], kind="stable")
            top = order[: self.depth_of_list(order.size)]
            hinge = np.maximum(1 - scores[start:middle, None] + scores[top], 0)
            slope = self.exponent * (hinge > 0) * hinge ** (self.exponent - 1) / hinge.size
            values[u] = (hinge**self.exponent).mean()
            coef[start:stop] = 0
            coef[start:middle] = -slope.sum(axis=1)
            coef[top] = slope.sum(axis=0)

    def l1_bound(self, n_pos):
        return np.full(n_pos.shape, self.exponent * 2**self.exponent)
