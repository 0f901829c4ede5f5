"""LightGBM's boosted trees for ranking, where LightGBM is installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array, Callback
from structsvm_papk.baselines.recording import Recorder
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.result import SolverResult, Status

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData

OBJECTIVES = ("lambdarank", "rank_xendcg", "binary")
_LONGEST = 10_000
_QUIET = {"verbosity": -1, "num_threads": 1}


@dataclass(frozen=True)
class LambdaRankResult(SolverResult):
    """Outcome of `LambdaRank`: trees instead of weights, so `w` is empty."""

    booster: Any = field(default=None, repr=False)

    def scores(self, data: RankingData) -> Array:
        """Scores at the list positions of `RankingData`."""
        return self.booster.predict(data.X[data.rows], num_threads=1)


@dataclass(frozen=True)
class LambdaRank:
    """Gradient boosted trees, with the lambdarank loss and its NDCG truncated at k by default.

    `objective` is LightGBM's name of the loss: 'lambdarank', 'rank_xendcg' or 'binary', the
    log-loss of single rows. Raises InputError: LightGBM is not installed, or a list is longer than
    it accepts (10,000 rows).

    Burges, "From RankNet to LambdaRank to LambdaMART", MSR-TR-2010-82 (2010). Bruch, "An
    alternative cross entropy loss for learning-to-rank", WWW 2021 (rank_xendcg).
    """

    n_trees: int = 100
    n_leaves: int = 31
    learning_rate: float = 0.1
    min_rows: int = 20
    seed: int = 0
    objective: str = "lambdarank"

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InputError(
                f"unknown objective {self.objective!r}; choose from {', '.join(OBJECTIVES)}"
            )

    def solve(self, data: RankingData, k: int, callback: Callback | None = None) -> SolverResult:
        """Fit on `RankingData`; the objective of the result is its pAp@k risk in training."""
        lightgbm = _lightgbm()
        data = data.usable(k)
        if data.sizes.max() > _LONGEST:
            raise InputError(
                f"LightGBM ranks at most {_LONGEST} rows of a user; the longest list has "
                f"{data.sizes.max()}"
            )
        record = Recorder(callback)
        rows = lightgbm.Dataset(
            data.X[data.rows], data.labels.astype(int), group=data.sizes, params=_QUIET
        )
        booster = lightgbm.Booster(self._parameters(k), rows)
        for t in range(self.n_trees):
            finished = booster.update()
            if record.add(np.nan, t + 1) or finished:
                break
        return self._result(booster, data, k, record)

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

    def _result(self, booster, data, k, record):
        name, scores = f"pap@{k}", booster.predict(data.X[data.rows], num_threads=1)
        gain = metrics.evaluate(name, scores, data.labels, indptr=data.indptr).mean(name)
        status = Status.STOPPED if record.stopped else Status.FINISHED
        history = tuple(record.history)
        return LambdaRankResult(np.empty(0), 1.0 - gain, -np.inf, status, history, booster=booster)


def _lightgbm():
    try:
        import lightgbm
    except ImportError:
        raise InputError(
            "LambdaRank needs LightGBM: pip install lightgbm (the extra 'trees')"
        ) from None
    return lightgbm
