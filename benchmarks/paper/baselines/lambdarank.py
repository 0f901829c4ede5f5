"""LightGBM's boosted trees for ranking, where LightGBM is installed."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structsvm_papk import SolverResult
from structsvm_papk.errors import InputError

_QUIET = {"verbosity": -1, "num_threads": 1}


@dataclass(frozen=True)
class LambdaRankResult(SolverResult):
    """Outcome of `LambdaRank`: trees instead of weights, so `w` is empty."""

    booster: Any = field(default=None, repr=False)
    n_trees: int | None = None

    def scores(self, data):
        """Scores at the list positions of `RankingData`, by the first `n_trees` or all."""
        X = data.X[data.rows]
        return self.booster.predict(X, num_iteration=self.n_trees, num_threads=1)


@dataclass(frozen=True)
class LambdaRank:
    """Gradient boosted trees, with the lambdarank loss and its NDCG truncated at k by default.

    `objective` is LightGBM's name of the loss: 'lambdarank', 'rank_xendcg' or 'binary', the
    log-loss of single rows. LightGBM accepts lists of at most 10,000 rows.

    Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82 (2010). Bruch, "An
    alternative cross entropy loss for learning-to-rank", WWW 2021 (rank_xendcg).
    """

    n_trees: int = 100
    n_leaves: int = 31
    learning_rate: float = 0.1
    min_rows: int = 20
    seed: int = 0
    objective: str = "lambdarank"

    def solve(self, data, k):
        """Fit on `RankingData`; the result has no objective."""
        try:
            import lightgbm
        except ImportError:
            raise InputError("LambdaRank needs LightGBM: pip install lightgbm") from None
        data = data.usable(k)
        X, labels, sizes = data.X[data.rows], data.labels, data.sizes
        rows = lightgbm.Dataset(X, labels.astype(int), group=sizes, params=_QUIET)
        booster = lightgbm.train(self._parameters(k), rows, self.n_trees)
        return LambdaRankResult(np.empty(0), np.nan, -np.inf, "finished", booster=booster)

    def _parameters(self, k):
        own = {"lambdarank_truncation_level": k} if self.objective == "lambdarank" else {}
        return {
            **_QUIET,
            **own,
            "objective": self.objective,
            "num_leaves": self.n_leaves,
            "learning_rate": self.learning_rate,
            "min_data_in_leaf": self.min_rows,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
        }
