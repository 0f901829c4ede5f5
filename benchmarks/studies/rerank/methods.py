"""The re-rankers of the study, each tuned on the same users of the inner split."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

import numpy as np

from benchmarks.paper.baselines import LambdaRank, Logistic, PairwiseLogistic, scores_of
from benchmarks.studies.rerank.lists import Lists
from structsvm_papk import PAPKRanker, PAPKRankerCV

OURS = "PAPKRankerCV"
_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)
_VALIDATION = 5  # one user in so many validates the settings of a rival


@dataclass(frozen=True)
class Fit:
    """A re-ranker that scores the list positions of `RankingData`, its setting and certificate."""

    scores: Callable
    setting: dict
    certificate: dict | None = None


@dataclass(frozen=True)
class Tuned:
    """A baseline with the setting that is best for a fifth of the users, trained on all."""

    make: Callable
    settings: tuple

    def fit(self, lists: Lists, k: int, seed: int) -> Fit:
        """Choose by NDCG@k on the users left out."""
        held = np.random.default_rng(seed).permutation(lists.users.size) % _VALIDATION == 0
        train, validation = lists.subset(~held).ranking_data(), lists.subset(held)
        data = validation.ranking_data()
        gains = []
        for setting in self.settings:
            scores = in_rows(data, scores_of(self.make(**setting).solve(train, k), data))
            gains.append(np.mean(validation.values(scores, k)[f"ndcg@{k}"]))
        best = self.settings[int(np.argmax(gains))]
        result = self.make(**best).solve(lists.ranking_data(), k)
        return Fit(lambda data: scores_of(result, data), best)


@dataclass(frozen=True)
class Ranker:
    """One of ours: `make` gives a `PAPKRanker` from k and a seed."""

    make: Callable

    def fit(self, lists: Lists, k: int, seed: int) -> Fit:
        """Train on all users; a ranker that chooses its settings does so by itself."""
        users = np.repeat(np.arange(lists.users.size), np.diff(lists.indptr))
        ranker = self.make(k, seed).fit(lists.X, lists.labels, groups=users)
        model = ranker.to_model()
        setting = {name: getattr(model, name) for name in ("surrogate", "depth", "user_weight")}
        setting["alpha"] = float(model.alpha)
        return Fit(lambda data: data.scores(ranker.coef_), setting, model.certificate)


def _grid(**values: Any) -> tuple:
    return tuple(dict(zip(values, row, strict=True)) for row in product(*values.values()))


def _trees(objective: str) -> Tuned:
    return Tuned(
        lambda **setting: LambdaRank(100, objective=objective, **setting),
        _grid(learning_rate=(0.05, 0.1), n_leaves=(7, 31)),
    )


METHODS: dict[str, Tuned | Ranker] = {
    "logistic regression": Tuned(lambda alpha: Logistic(alpha), _grid(alpha=_ALPHAS)),
    "logistic regression on pairs": Tuned(
        lambda alpha: PairwiseLogistic(alpha), _grid(alpha=_ALPHAS)
    ),
    "trees, log-loss": _trees("binary"),
    "trees, lambdarank": _trees("lambdarank"),
    "trees, xendcg": _trees("rank_xendcg"),
    "PAPKRanker": Ranker(lambda k, seed: PAPKRanker(k=k)),
    OURS: Ranker(lambda k, seed: PAPKRankerCV(k=k, scoring=f"ndcg@{k}", random_state=seed)),
}


def available() -> tuple[str, ...]:
    """Names of the methods that can run here: trees need LightGBM."""
    here = find_spec("lightgbm") is not None
    return tuple(name for name in METHODS if here or not name.startswith("trees"))


def in_rows(data, at_positions):
    """Scores at list positions, brought into the order of the rows."""
    out = np.empty(at_positions.size)
    out[data.rows] = at_positions
    return out


def outcome(name: str, train: Lists, test: Lists, k: int, seed: int) -> dict[str, Any]:
    """Fit on the inner lists and measure on the test lists; seconds are of the processor."""
    began = time.process_time()
    fit = METHODS[name].fit(train, k, seed)
    fitted = time.process_time()
    data = test.ranking_data()
    values = test.values(in_rows(data, fit.scores(data)), k)
    return {
        "values": values,
        "fit_seconds": fitted - began,
        "score_seconds": time.process_time() - fitted,
        "setting": fit.setting,
        "certificate": fit.certificate,
    }
