"""Greedy-pAp@k: weak linear rankers, added one after the other with the best mixing weight."""

from dataclasses import dataclass

import numpy as np

from benchmarks.paper.baselines.common import mean_pap_at_k, uncertified
from benchmarks.paper.baselines.cross_entropy import CrossEntropy


@dataclass(frozen=True)
class GreedyPAPK:
    """Sort weak rankers by their pAp@k gain; ``w <- argmax gain(w + a v, a w + v), 0 <= a <= 1``.

    The weak rankers v are logistic regressions (ridge `alpha`) on disjoint random parts of the
    rows; gains are those of users kept for merging only (`merge_share`; all users where there is
    one, or the share is 0), at every a of `grid`.

    Ricamato and Tortorella, "Partial AUC maximization in a linear combination of dichotomizers",
    Pattern Recognition 44 (2011), with pAp@k for their partial AUC.
    """

    alpha: float = 1e-4
    n_rankers: int = 5
    grid: int = 20
    merge_share: float = 0.2
    steps: int = 60
    seed: int = 0

    def solve(self, data, k):
        """Fit on `RankingData`; the objective of the result is its pAp@k risk in merging."""
        rng = np.random.default_rng(self.seed)
        train, merging = self._split(data.usable(k), rng)
        return self.merge(self._weak_rankers(train, rng), merging, k)

    def merge(self, rankers, data, k):
        """Combine given weight vectors on the lists of `data`."""
        gains = [mean_pap_at_k(w, data, k) for w in rankers]
        first, *others = np.argsort(-np.array(gains), kind="stable")
        combined, gain = rankers[first], gains[first]
        for i in others:
            combined, gain = self._combine(combined, rankers[i], data, k)
        return uncertified(combined, 1.0 - gain, self.alpha)

    def _combine(self, first, second, data, k):
        """The best combination; a = 0 leaves the first alone, and wins where nothing is better."""
        best, best_gain = first, -np.inf
        for a in np.linspace(0.0, 1.0, self.grid):
            for w in (first + a * second, a * first + second):
                gain = mean_pap_at_k(w, data, k)
                if gain > best_gain:
                    best, best_gain = w, gain
        return best, best_gain

    def _split(self, data, rng):
        n_merge = round(self.merge_share * data.n_users)
        if n_merge == 0 or n_merge == data.n_users:
            return data, data
        merging = np.zeros(data.n_users, dtype=bool)
        merging[rng.choice(data.n_users, n_merge, replace=False)] = True
        return data.subset(~merging), data.subset(merging)

    def _weak_rankers(self, data, rng):
        """One logistic regression a part; positives and negatives are spread over all parts."""
        X, labels = data.X[data.rows], data.labels
        part = np.empty(labels.size, dtype=np.int64)
        for side in (labels, ~labels):
            part[side] = rng.permutation(side.sum()) % self.n_rankers
        rankers = []
        for i in range(self.n_rankers):
            mine = part == i
            if mine.any():
                point, _ = CrossEntropy(X[mine], labels[mine], self.alpha).fit(max_iter=self.steps)
                rankers.append(point[:-1])
        return rankers
