"""Training depth: speed beside scikit-learn and LightGBM, and quality on prepared lists.

    python -m benchmarks depth speed
    python -m benchmarks depth table LISTS.npz .. [--k 20] [--folds 3] [--train-users 1000]
    python -m benchmarks depth diagnose

`speed` and `diagnose` make their data themselves. A file of lists holds features `f` (users, items,
features) and labels `y` of the users to learn from, and `f2` and `y2` of those to be measured on;
or it is a folder of svmlight files ``fold*-test.txt`` with ``qid:``, of which each is measured on
after learning from the others. One thread, processor seconds. The baselines are tuned on the folds
of users and with the metric (pAp@k) of `PAPKRankerCV`; differences are paired over the users
measured on, with 95% bootstrap intervals.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from itertools import product
from pathlib import Path
from time import process_time as clock

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks.paper.baselines import Logistic, PairwiseLogistic
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    PAPKRankerCV,
    RankingData,
    make_surrogate,
    metrics,
)
from structsvm_papk.datasets import digit_queries
from structsvm_papk.diagnosis import critical_depth, diagnose
from structsvm_papk.solvers.cutting_plane import alpha_path

SHAPE = (1974, 200, 9)  # users, items of each, features
K = 20
GAP = 1e-4
TREES = [  # of lambdarank and xendcg
    {"n_estimators": 150, "learning_rate": 0.1, "num_leaves": 31, "min_child_samples": 20},
    {"n_estimators": 150, "learning_rate": 0.05, "num_leaves": 7, "min_child_samples": 100},
]
RIDGES = (1e-2, 1e-4)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "table", "diagnose"))
    parser.add_argument("lists", nargs="*", type=Path)
    parser.add_argument("--k", type=int, default=K)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--train-users", type=int, default=1000)
    parser.add_argument("--method", action="append", help="only this one; repeat")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        if options.what == "speed":
            speed()
        elif options.what == "diagnose":
            speed_of_diagnoses()
        else:
            for path in options.lists:
                table(path, options)


def re_ranking_lists(seed=0):
    """Candidates with standardised first-stage scores: noisy views of unequal quality of what a
    user likes, which share a part of their errors."""
    rng = np.random.default_rng(seed)
    n_users, n_items, n_features = SHAPE
    liking, shared = rng.normal(size=(2, n_users, n_items))
    noise = np.linspace(1.5, 5.0, n_features) * rng.standard_t(4, size=SHAPE)
    X = (liking + shared)[..., None] + noise
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    share = rng.gamma(1.5, 0.05, size=n_users).clip(0.01, 0.5)
    chosen = liking + 1.5 * rng.normal(size=liking.shape)
    border = [np.quantile(own, 1.0 - part) for own, part in zip(chosen, share, strict=True)]
    return as_data(X.astype(np.float32), chosen > np.array(border)[:, None])


def as_data(X, y):
    """RankingData of the users with a positive, from arrays (users, items, ..)."""
    keep = y.any(axis=1)
    X, y = X[keep], y[keep]
    indptr = np.arange(0, y.size + 1, y.shape[1])
    return RankingData(X.reshape(-1, X.shape[2]), y.ravel(), indptr)


def rows_of(data):
    """X, labels and users of the rows, as estimators take them."""
    return data.X[data.rows], data.labels, data.user_of_position


def timed(name, work, *arguments, **options):
    began = clock()
    out = work(*arguments, **options)
    seconds = clock() - began
    print(f"  {name:<46} {seconds:8.2f} s", flush=True)
    return out, seconds


def speed():
    """One certified fit, a search, and paths, beside what they are measured by."""
    data = re_ranking_lists()
    X, y, users = rows_of(data)
    risk = EmpiricalRisk(make_surrogate("ts", K, 170), data, "cap")
    CuttingPlane(1e-2, tol=1e-2, max_iter=2).solve(risk)  # load compiled code
    print(f"{X.shape[0]} rows x {X.shape[1]}, {data.n_users} users, k = {K}")
    _, logistic = timed("logistic regression", LogisticRegression().fit, X, y)
    fit, one = timed("TS, depth 170, gap 1e-4", CuttingPlane(1e-2, tol=GAP).solve, risk)
    _, default = timed("PAPKRanker(k=20)", PAPKRanker(k=K, tol=GAP).fit, X, y, users)
    _, tree = timed("lambdarank, 150 trees", trees, "lambdarank", TREES[0], data, K)
    search, whole = timed("PAPKRankerCV(k=20)", PAPKRankerCV(k=K).fit, X, y, users)
    print(
        f"TS / logistic {one / logistic:.1f} ({fit.data_passes} passes), default / logistic "
        f"{default / logistic:.1f}, search / six lambdarank fits {whole / (6 * tree):.2f}"
    )
    print(search.best_params_)
    alphas = np.logspace(-1, -4, 10)
    for name in ("avg", "ts"):
        deep = EmpiricalRisk(make_surrogate(name, K, 170), data, "cap")
        solver = CuttingPlane(1.0, tol=GAP)
        _, path = timed(f"{name}: path of 10 alphas", alpha_path, deep, alphas, solver)
        _, cold = timed(f"{name}: 10 cold solves", cold_solves, deep, alphas)
        print(f"  path / cold {path / cold:.2f}")


def cold_solves(risk, alphas):
    return [CuttingPlane(float(alpha), tol=GAP).solve(risk) for alpha in alphas]


def speed_of_diagnoses():
    """The critical depth of each surrogate beside a fit of it, on lists where Max is degenerate."""
    data = RankingData.from_groups(*digit_queries("train", n_queries=120, features="product"))
    for name in ("avg", "pauc", "ts", "max", "ramp", "clipped_ramp"):
        risk = EmpiricalRisk(make_surrogate(name, 5), data)
        solver = CuttingPlane(1e-2) if risk.convex else CCCP(1e-2)
        solver.solve(risk), critical_depth(risk)  # load compiled code
        timed(f"{name}: fit", solver.solve, risk)
        answer, _ = timed(f"{name}: critical depth", critical_depth, risk)
        timed(f"{name}: diagnose, all users jointly", diagnose, risk, per_user=False)
        print(f"  {answer}")


def trees(objective, settings, data, k):
    """A scorer of LightGBM's, trained."""
    import lightgbm

    model = lightgbm.LGBMRanker(
        objective=objective, n_jobs=1, verbose=-1, random_state=0,
        lambdarank_truncation_level=k, **settings,
    )  # fmt: skip
    X, y, _ = rows_of(data)
    return model.fit(X, y.astype(int), group=data.sizes).predict


def candidates(k):
    """Settings of each baseline: functions from data to a scorer of rows."""

    def linear(solver):
        return lambda data: (lambda w: lambda X: X @ w)(solver.solve(data).w)

    def boosted(objective, settings):
        return lambda data: trees(objective, settings, data, k)

    return {
        "logistic, pooled": [linear(Logistic(ridge)) for ridge in RIDGES],
        "logistic on pairs": [linear(PairwiseLogistic(ridge)) for ridge in RIDGES],
        "lambdarank": [boosted("lambdarank", settings) for settings in TREES],
        "xendcg": [boosted("rank_xendcg", settings) for settings in TREES],
    }


def tuned(settings, data, k, folds):
    """The scorer of the setting with the best mean pAp@k over users left out."""
    gains = np.zeros(len(settings))
    parts = KFold(folds, shuffle=True, random_state=0).split(np.arange(data.n_users))
    for (i, fit), (train, _) in product(enumerate(settings), parts):
        keep = np.isin(np.arange(data.n_users), train)
        scorer, left = fit(data.subset(keep)), data.subset(~keep)
        X, y, users = rows_of(left)
        gains[i] += metrics.evaluate(f"pap@{k}", scorer(X), y, users).mean(f"pap@{k}")
    return settings[int(gains.argmax())](data)


def methods(data, k, folds, only):
    """Name, scorer of rows and seconds of every method."""
    X, y, users = rows_of(data)
    search = PAPKRankerCV(k=k, cv=folds)
    ours = {
        "PAPKRanker": lambda: PAPKRanker(k=k, tol=GAP).fit(X, y, users).predict,
        "PAPKRankerCV": lambda: search.fit(X, y, users).predict,
        "ClippedRamp, depth k": lambda: PAPKRanker(
            k=k, surrogate="clipped_ramp", depth=None, tol=1e-3, policy="cap"
        ).fit(X, y, users).predict,
    }  # fmt: skip
    for name, fit in ours.items():
        if only and name not in only:
            continue
        yield name, *timed(name, fit)
        if name == "PAPKRankerCV":
            print("   ", search.best_params_)
    for name, settings in candidates(k).items():
        if only and name not in only:
            continue
        yield name, *timed(name, tuned, settings, data, k, folds)
    for column in range(X.shape[1]):
        yield f"feature {column}", lambda X, column=column: X[:, column], 0.0


def splits(path, limit):
    """Data to learn from and to be measured on."""
    if path.is_dir():
        files = sorted(path.glob("fold*-test.txt"))
        parts = [load_svmlight_file(str(file), query_id=True) for file in files]
        for i in range(len(parts)):
            yield tuple(
                RankingData.from_groups(
                    np.vstack([p[0].toarray() for p in some]),
                    np.concatenate([p[1] for p in some]) >= 1,
                    np.concatenate([p[2] for p in some]),
                )
                for some in ([p for j, p in enumerate(parts) if j != i], [parts[i]])
            )
        return
    lists = np.load(path)
    train = as_data(lists["f"], lists["y"])
    yield train.subset(np.arange(train.n_users) < limit), as_data(lists["f2"], lists["y2"])


def table(path, options):
    """Means of every method, and differences to the default and to the search, with intervals."""
    k, names = options.k, [f"pap@{options.k}", f"ndcg@{options.k}"]
    values, seconds = {}, {}
    for train, test in splits(path, options.train_users):
        print(f"{path.name}: {train.n_users} users, {test.n_users} measured", flush=True)
        X, y, users = rows_of(test)
        for name, scorer, spent in methods(train, k, options.folds, options.method):
            one = metrics.evaluate(names, scorer(X), y, users)
            values.setdefault(name, []).append(np.column_stack([one[n] for n in names]))
            seconds[name] = seconds.get(name, 0.0) + spent
    values = {name: np.vstack(parts) for name, parts in values.items()}
    single = [name for name in values if name.startswith("feature")]
    best = max(single, key=lambda name: np.nanmean(values[name][:, 1]))
    rng = np.random.default_rng(0)
    n_users = next(iter(values.values())).shape[0]
    draws = rng.integers(n_users, size=(2000, n_users))
    for name in [*(n for n in values if n not in single), best]:
        row = {"data": path.name, "method": name, "seconds": round(seconds[name], 1)}
        for at, metric in enumerate(names):
            row[metric] = round(float(np.nanmean(values[name][:, at])), 4)
            for other in {"PAPKRanker", "PAPKRankerCV"} & set(values):
                gap = values[other][:, at] - values[name][:, at]
                gap = gap[np.isfinite(gap)]
                means = gap[draws % gap.size].mean(axis=1)
                ends = [round(float(end), 4) for end in np.quantile(means, [0.025, 0.975])]
                row[f"{other} ahead, {metric}"] = [round(float(gap.mean()), 4), *ends]
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
