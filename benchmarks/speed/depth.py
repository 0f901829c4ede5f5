"""Few columns and many users: seconds beside scikit-learn and LightGBM, and of the diagnosis.

    python -m benchmarks depth speed
    python -m benchmarks depth diagnose

One thread, processor seconds, on generated lists.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from time import process_time as clock

import numpy as np
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from benchmarks.speed.measuring import warm_path
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    EmpiricalRisk,
    PAPKRanker,
    RankingData,
    make_surrogate,
)
from structsvm_papk.datasets import digit_queries
from structsvm_papk.diagnosis import critical_depth, diagnose

SHAPE = (1974, 200, 9)  # users, items of each, features
K = 20
GAP = 1e-4
TREES = {"n_estimators": 150, "learning_rate": 0.1, "num_leaves": 31, "min_child_samples": 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("speed", "diagnose"))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(limits=1):
        if options.what == "speed":
            speed()
        else:
            speed_of_diagnoses()


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
    """One certified fit, and paths, beside what they are measured by."""
    data = re_ranking_lists()
    X, y, users = rows_of(data)
    risk = EmpiricalRisk(make_surrogate("ts", K, 170), data, "cap")
    CuttingPlane(1e-2, tol=1e-2, max_iter=2).solve(risk)  # load compiled code
    print(f"{X.shape[0]} rows x {X.shape[1]}, {data.n_users} users, k = {K}")
    _, logistic = timed("logistic regression", LogisticRegression().fit, X, y)
    fit, one = timed("TS, depth 170, gap 1e-4", CuttingPlane(1e-2, tol=GAP).solve, risk)
    _, default = timed("PAPKRanker(k=20)", PAPKRanker(k=K, tol=GAP).fit, X, y, users)
    timed("lambdarank, 150 trees", lambdarank, data, K)
    print(
        f"TS / logistic {one / logistic:.1f} ({fit.data_passes} passes), default / logistic "
        f"{default / logistic:.1f}"
    )
    alphas = np.logspace(-1, -4, 10)
    for name in ("avg", "ts"):
        deep = EmpiricalRisk(make_surrogate(name, K, 170), data, "cap")
        solver = CuttingPlane(1.0, tol=GAP)
        _, path = timed(f"{name}: path of 10 alphas", warm_path, deep, alphas, solver)
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


def lambdarank(data, k):
    """A fit of LightGBM's."""
    import lightgbm

    model = lightgbm.LGBMRanker(
        n_jobs=1, verbose=-1, random_state=0, lambdarank_truncation_level=k, **TREES
    )
    X, y, _ = rows_of(data)
    return model.fit(X, y.astype(int), group=data.sizes)


if __name__ == "__main__":
    sys.exit(main())
