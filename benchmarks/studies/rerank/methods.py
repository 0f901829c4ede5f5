"""The re-rankers of the study, whose settings are chosen on the same folds of the same users."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np
from sklearn.model_selection import GroupKFold

from benchmarks.paper.baselines import LambdaRank, Logistic, PairwiseLogistic, scores_of
from structsvm_papk import PAPKRanker, metrics

OURS = "PAPKRanker"
_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)
_LEAVES, _TREES = (7, 31), (25, 50, 100)


@dataclass(frozen=True)
class Fit:
    """A re-ranker that scores the rows of lists, its setting and certificate."""

    scores: Callable
    setting: dict
    certificate: dict | None = None


@dataclass(frozen=True)
class Tuned:
    """A baseline at the setting with the best mean NDCG@k over held-out users of all folds.

    ``path(data, k)`` yields (setting, result) for each setting in turn.
    """

    path: Callable

    def fit(self, lists, k, folds, seed):
        """Choose on the folds, then train on all users."""
        gains = {}
        for train, held in folds.split(lists.X, lists.labels, lists.groups):
            train, held = (lists.subset(np.unique(lists.groups[rows])) for rows in (train, held))
            for setting, result in self.path(train.ranking_data(), k):
                scores = in_rows(held, result)
                table = metrics.evaluate(f"ndcg@{k}", scores, held.labels, held.groups)
                gains.setdefault(str(setting), []).append(table[f"ndcg@{k}"])
        means = {name: np.concatenate(values).mean() for name, values in gains.items()}
        best = max(means, key=means.get)
        results = self.path(lists.ranking_data(), k)
        setting, result = next(each for each in results if str(each[0]) == best)
        return Fit(lambda test: in_rows(test, result), setting)


@dataclass(frozen=True)
class Ranker:
    """One of ours: `make` gives a ranker from k."""

    make: Callable

    def fit(self, lists, k, folds, seed):
        """Train on all users; the folds are for others."""
        ranker = self.make(k).fit(lists.X, lists.labels, groups=lists.groups)
        model = ranker.to_model()
        names = ("surrogate", "depth", "user_weight")
        setting = {name: getattr(model, name) for name in names}
        setting["alpha"] = float(model.alpha)
        return Fit(lambda test: model.predict(test.X, test.groups), setting, model.certificate)


def in_rows(lists, result):
    """Scores of a baseline in the order of the rows."""
    data = lists.ranking_data()
    out = np.empty(data.rows.size)
    out[data.rows] = scores_of(result, data)
    return out


def _ridge(make):
    return Tuned(lambda data, k: (({"alpha": a}, make(a).solve(data, k)) for a in _ALPHAS))


def _trees(objective):
    def path(data, k):
        """All numbers of trees from one fit."""
        for n_leaves in _LEAVES:
            largest = LambdaRank(max(_TREES), n_leaves, 0.1, objective=objective).solve(data, k)
            for n_trees in _TREES:
                yield {"n_leaves": n_leaves, "n_trees": n_trees}, replace(largest, n_trees=n_trees)

    return Tuned(path)


METHODS = {
    "logistic regression": _ridge(Logistic),
    "logistic regression on pairs": _ridge(PairwiseLogistic),
    "trees, log-loss": _trees("binary"),
    "trees, lambdarank": _trees("lambdarank"),
    "trees, xendcg": _trees("rank_xendcg"),
    OURS: Ranker(lambda k: PAPKRanker(k=k)),
}


def available():
    """Names of the methods that can run here: trees need LightGBM."""
    here = find_spec("lightgbm") is not None
    return tuple(name for name in METHODS if here or not name.startswith("trees"))


def outcome(name, train, test, k, seed):
    """Fit on lists of the inner split, measure on those of the test; seconds of the processor."""
    folds = GroupKFold(5, shuffle=True, random_state=seed)
    began = time.process_time()
    fit = METHODS[name].fit(train, k, folds, seed)
    seconds = time.process_time() - began
    values = test.values(fit.scores(test), k)
    return {
        "ndcg": values[f"ndcg@{k}"],
        "recall": float(np.mean(values[f"recall@{k}"])),
        "pap": float(np.mean(values[f"pap@{k}"])),
        "seconds": seconds,
        "setting": fit.setting,
        "certificate": fit.certificate,
    }
