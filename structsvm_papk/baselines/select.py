"""Select-pAp@k: cross-entropy on the items that the metric looks at, selected again and again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.baselines.cross_entropy import CrossEntropy
from structsvm_papk.baselines.recording import Recorder
from structsvm_papk.errors import InputError
from structsvm_papk.rankers.solver_race import mean_pap_at_k
from structsvm_papk.solvers.subgradient import normal_start

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData
    from structsvm_papk.solvers.result import SolverResult


@dataclass(frozen=True)
class SelectPAPK:
    """Repeat: pool every user's top-beta positives and top-k negatives; fit cross-entropy to them.

    The scorer with the best mean pAp@k gain on the training users is returned; a run ends early
    where the same items are selected again. With `start_scale` 0 the first scorer is fitted to all
    rows.

    Budhiraja, Hiranandani, Yuan, Koyejo, Jain, "Rich-item recommendations for rich-users:
    exploiting dynamic and static side information" (2020), Algorithm 1.
    """

    alpha: float = 1e-4
    rounds: int = 20
    steps: int = 20
    start_scale: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.steps < 1:
            raise InputError("rounds and steps must be at least 1")
        if not self.alpha >= 0 or not np.isfinite(self.alpha):
            raise InputError(f"alpha must be a non-negative number, got {self.alpha!r}")

    def solve(self, data: RankingData, k: int, callback: Callback | None = None) -> SolverResult:
        """Fit on `RankingData`; the objective of the result is its pAp@k risk in training."""
        data = data.usable(k)
        X, record = data.X[data.rows], Recorder(callback)
        point, previous = self._start(X, data), None
        best, best_w = np.inf, point[:-1]
        for t in range(self.rounds):
            pool = selected(data, data.scores(point[:-1]), k)
            if previous is not None and np.array_equal(pool, previous):
                break
            loss = CrossEntropy(X[pool], data.labels[pool], self.alpha)
            point, _ = loss.fit(point, self.steps)
            risk = 1.0 - mean_pap_at_k(point[:-1], data, k)
            if risk < best:
                best, best_w = risk, point[:-1].copy()
            previous = pool
            if record.add(best, t + 1):
                break
        return record.result(best_w, best, self.alpha)

    def _start(self, X, data):
        if self.start_scale:
            return np.append(self.start_scale * normal_start(X.shape[1], self.seed), 0.0)
        return CrossEntropy(X, data.labels, self.alpha).fit(max_iter=self.steps)[0]


def selected(data: RankingData, scores: Array, k: int) -> Array:
    """List positions of every user's ``min(n_pos, k)`` best positives and k best negatives."""
    kinds = 2 * data.user_of_position + ~data.labels
    order = np.lexsort((-scores, kinds))
    bounds = np.column_stack([data.indptr[:-1], data.indptr[:-1] + data.n_pos]).ravel()
    rank = np.arange(order.size) - bounds[kinds[order]]
    return np.sort(order[rank < k])
