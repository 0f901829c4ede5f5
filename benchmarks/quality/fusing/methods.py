"""What learns, or does not, to put runs into one order: ``METHODS[name](train, seed)``.

Each gives a function from lists to scores of their rows. Whatever has a setting chooses it on five
folds of the training lists by NDCG@k.
"""

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.paper.baselines import PairwiseLogistic
from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.fusion import combsum, rrf

DEFAULT = "the default"
FOLDS = 5
_INVERSE_PENALTIES = np.logspace(-4, 3, 8)
_PENALTIES = np.logspace(-5, 1, 7)
_RIDGES = np.logspace(4, -2, 7)
_MOST_TREES = 100
_WIDE = 1000  # columns: their second derivatives are too many


def filled(lists, indicators=True):
    """Lowest score of the run in the list for a hole, and a column that says "not there"."""
    holes = np.isnan(lists.X)
    if not holes.any():
        return lists.X
    starts = np.cumsum(lists.sizes) - lists.sizes
    lowest = np.minimum.reduceat(np.where(holes, np.inf, lists.X), starts, axis=0)
    lowest[np.isinf(lowest)] = 0.0  # a run without anything for a list: any number does
    X = np.where(holes, np.repeat(lowest, lists.sizes, axis=0), lists.X)
    return np.hstack([X, holes]) if indicators else X


def best_run(train, seed):
    """The run with the best mean in training."""

    def scores(lists, run):
        return np.nan_to_num(lists.X[:, run], nan=-np.inf)

    best = max(range(train.runs.size), key=lambda run: train.ndcg(scores(train, run)).mean())
    return lambda test: scores(test, best)


def unsupervised(fuse):
    """A rule that needs no labels."""

    def fused(test):
        frame = test.frame()
        return fuse(frame, runs=list(frame.columns[2:]))  # behind query and document

    return lambda train, seed: fused


def equal_weights(train, seed):
    """Columns over their deviations in training, added."""
    scale = StandardScaler(with_mean=False).fit(filled(train, indicators=False)).scale_
    return lambda test: (filled(test, indicators=False) / scale).sum(axis=1)


@dataclass(frozen=True)
class Tuned:
    """``path(lists)`` yields scoring functions, one for each setting in turn."""

    path: object

    def __call__(self, train, seed):
        """Choose on the folds, then train on all lists."""
        return choose(train, seed, self.path)


def choose(train, seed, path):
    """The setting with the best mean over held-out lists, trained on all."""
    totals = 0.0
    n_folds = min(FOLDS, train.n_lists)
    folds = GroupKFold(n_folds, shuffle=True, random_state=seed)
    for rows, held_rows in folds.split(train.X, groups=train.groups):
        fit_on = train.subset(np.unique(train.groups[rows]))
        held = train.subset(np.unique(train.groups[held_rows]))
        if fit_on.learnable.any():
            totals = totals + np.array([held.ndcg(each(held)).sum() for each in path(fit_on)])
    best = int(np.argmax(totals))
    return next(each for place, each in enumerate(path(train)) if place == best)


def logistic(train):
    """From the strongest penalty on."""
    scaler = StandardScaler().fit(filled(train))
    rows = scaler.transform(filled(train))
    solver = "lbfgs" if rows.shape[1] > _WIDE else "newton-cholesky"
    for inverse in _INVERSE_PENALTIES:
        model = LogisticRegression(C=inverse, solver=solver, max_iter=200)
        model.fit(rows, train.relevant)
        yield lambda test, model=model: model.decision_function(scaler.transform(filled(test)))


def on_pairs(train):
    """Logistic regression on sampled pairs."""
    scaler = StandardScaler().fit(filled(train))
    bounds = np.concatenate([[0], np.cumsum(train.sizes)])
    data = RankingData(scaler.transform(filled(train)), train.relevant, bounds)
    for alpha in _PENALTIES[::-1]:
        w = PairwiseLogistic(alpha).solve(data).w
        yield lambda test, w=w: scaler.transform(filled(test)) @ w


def trees(n_leaves):
    """LightGBM's lambdarank on grades, holes as they are; the number of trees is chosen."""

    def path(train):
        import lightgbm

        quiet = {"verbosity": -1, "num_threads": 1}
        settings = quiet | {
            "objective": "lambdarank",
            "num_leaves": n_leaves,
            "min_data_in_leaf": 20,
            "lambdarank_truncation_level": train.k,
            "deterministic": True,
            "force_row_wise": True,
        }
        rows = lightgbm.Dataset(train.X, train.grades, group=train.sizes, params=quiet)
        booster = lightgbm.train(settings, rows, _MOST_TREES)
        for n_trees in (5, 10, 20, 40, 70, _MOST_TREES):
            yield lambda test, n=n_trees: booster.predict(test.X, num_iteration=n, num_threads=1)

    return Tuned(path)


def ridge(train):
    """Least squares of the grades, from the strongest penalty on."""
    scaler = StandardScaler().fit(filled(train))
    rows = scaler.transform(filled(train))
    for penalty in _RIDGES:
        model = Ridge(alpha=penalty).fit(rows, train.grades)
        yield lambda test, model=model: model.predict(scaler.transform(filled(test)))


def as_they_are(lists):
    """Columns with their holes."""
    return lists.X


def min_max(lists):
    """0 for the lowest of each list and for what was not retrieved, 1 for the highest."""
    frame = pd.DataFrame(lists.X)
    by_list = frame.groupby(lists.groups)
    lowest = by_list.transform("min")
    width = by_list.transform("max") - lowest
    return ((frame - lowest) / width.where(width > 0, np.inf)).fillna(0.0).to_numpy()


def ranker(columns=as_they_are, **settings):
    """`PAPKRanker` on the grades as they are."""

    def fit(train, seed):
        missing = "lowest" if np.isnan(train.X).any() else None
        made = PAPKRanker(k=train.k, missing=missing, **settings)
        made.fit(columns(train), train.grades, groups=train.groups)
        return lambda test: made.predict(columns(test), groups=test.groups)

    return fit


def combmnz(joined):
    """CombSUM times the number of runs that retrieved the document."""
    return combsum(joined) * joined[joined.attrs["runs"]].notna().to_numpy().sum(axis=1)


METHODS = {
    "best single run": best_run,
    "RRF": unsupervised(rrf),
    "CombSUM": unsupervised(combsum),
    "CombMNZ": unsupervised(combmnz),
    "equal weights": equal_weights,
    "logistic regression": Tuned(logistic),
    "logistic regression on pairs": Tuned(on_pairs),
    "ridge regression": Tuned(ridge),
    "LambdaRank, 7 leaves": trees(7),
    "LambdaRank, 31 leaves": trees(31),
    DEFAULT: ranker(),
    "threshold 1": ranker(relevance_threshold=1),
    "positive": ranker(positive=True),
    "minmax, positive": ranker(min_max, positive=True),
}
UNLEARNED = ("RRF", "CombSUM", "CombMNZ")
OF_GRADES = ("threshold 1",)  # as the default where labels are binary


def available():
    """Names of the methods that can run here."""
    here = find_spec("lightgbm") is not None
    return tuple(name for name in METHODS if here or not name.startswith("LambdaRank"))
