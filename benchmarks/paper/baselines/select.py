"""Select-pAp@k: cross-entropy on the items that the metric looks at, selected again and again."""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.common import mean_pap_at_k, uncertified
from benchmarks.paper.baselines.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class SelectPAPK:
    """Repeat: pool every user's top-beta positives and top-k negatives; fit cross-entropy to them.

    The first scorer is fitted to all rows. The scorer with the best mean pAp@k gain on the training
    users is returned; a run ends early where the same items are selected again.

    Budhiraja, Hiranandani, Yuan, Koyejo, Jain, "Rich-item recommendations for rich-users:
    exploiting dynamic and static side information" (2020), Algorithm 1.
    """

    alpha: float = 1e-4
    rounds: int = 20
    steps: int = 20

    def solve(self, data, k):
        """Fit on `RankingData`; the objective of the result is its pAp@k risk in training."""
        data = data.usable(k)
        X, labels = data.X[data.rows], data.labels
        point, previous = CrossEntropy(X, labels, self.alpha).fit(max_iter=self.steps)[0], None
        best, best_w = np.inf, point[:-1]
        for _ in range(self.rounds):
            pool = selected(data, data.scores(point[:-1]), k)
            if previous is not None and np.array_equal(pool, previous):
                break
            point, _ = CrossEntropy(X[pool], labels[pool], self.alpha).fit(point, self.steps)
            risk = 1.0 - mean_pap_at_k(point[:-1], data, k)
            if risk < best:
                best, best_w = risk, point[:-1].copy()
            previous = pool
        return uncertified(best_w, best, self.alpha)


def selected(data, scores, k):
    """List positions of every user's ``min(n_pos, k)`` best positives and k best negatives."""
    kinds = 2 * data.user_of_position + ~data.labels
    order = np.lexsort((-scores, kinds))
    bounds = np.column_stack([data.indptr[:-1], data.indptr[:-1] + data.n_pos]).ravel()
    rank = np.arange(order.size) - bounds[kinds[order]]
    return np.sort(order[rank < k])
