"""Other defaults than `PAPKRanker`'s, one at a time, with the strength of the penalty by its rule.

    python -m benchmarks defaults [--lists NAME:K:FILE.npz ..] [--sizes 20 100 300 1000]
        [--draws 10] [--json FILE]

NDCG@k of lists that were not trained on, in the mean over draws of the training lists: a line for
each set and number of lists. A file holds X, y (relevant from the middle grade on, or
1) and group; NaN in X are holes. Without files: digits, as queries and as one list.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from structsvm_papk import PAPKRanker, metrics
from structsvm_papk.datasets import digit_queries

SETTINGS = {
    "default": {},
    "depth .5": {"depth": 0.5},
    "depth .75": {"depth": 0.75},
    "all negatives": {"depth": 0.999},
    "depth k": {"depth": None},
    "ts": {"surrogate": "ts"},
    "pauc": {"surrogate": "pauc"},
    "max": {"surrogate": "max"},
    "users by positives": {"user_weight": "positives"},
    "tol 1e-3": {"tol": 1e-3},
    "policy exclude": {"policy": "exclude"},
    "alpha 1e-2": {"alpha": 1e-2},
}
SIZES = (20, 100, 300, 1000)
MOST_TEST = 500


def parts(groups, n_lists, rng):
    """Masks of the rows to train and to score on: whole lists, or halves of a single one."""
    users = np.unique(groups)
    if users.size == 1:
        train = rng.permutation(groups.size) < groups.size // 2
        return train, ~train
    users = rng.permutation(users)
    rest = users[n_lists : n_lists + MOST_TEST]
    return np.isin(groups, users[:n_lists]), np.isin(groups, rest)


def score(X, y, groups, k, n_lists, draw, settings):
    """NDCG@k on what was not trained on, and seconds of the fit."""
    train, test = parts(groups, n_lists, np.random.default_rng(draw))
    missing = "lowest" if np.isnan(X).any() else None
    ranker = PAPKRanker(k=k, missing=missing, time_limit=30, **settings)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker.fit(X[train], y[train], groups[train])
        seconds = time.perf_counter() - start
        scores = ranker.predict(X[test], groups[test])
    table = metrics.evaluate(f"ndcg@{k}", scores=scores, labels=y[test], groups=groups[test])
    return table.mean(f"ndcg@{k}"), seconds


def sets(files):
    """Name, X, relevance, groups and k."""
    yield "digits", *digit_queries("train", 600), 10
    X, digit = load_digits(return_X_y=True)
    yield "digits, one list", X, digit == 8, np.zeros(digit.size, dtype=int), 50
    for text in files:
        name, k, file = text.split(":", 2)
        with np.load(file) as stored:
            X, grade, groups = (stored[key] for key in ("X", "y", "group"))
        y = grade >= max(1, int(np.median(np.unique(grade[grade > 0]))))
        yield name, X.astype(float), y, groups, int(k)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lists", nargs="*", default=[])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    results = {}
    for name, X, y, groups, k in sets(options.lists):
        n_users = np.unique(groups).size
        sizes = [n for n in options.sizes if n < 0.9 * n_users] or [n_users]
        for n_lists in sizes:
            column = results[f"{name}, {n_lists}"] = {}
            for setting, how in SETTINGS.items():
                runs = [score(X, y, groups, k, n_lists, d, how) for d in range(options.draws)]
                value, seconds = np.mean(runs, axis=0)
                column[setting] = {"ndcg": float(value), "seconds": float(seconds)}
            shown = "  ".join(
                f"{s} {v['ndcg']:.4f} ({v['seconds']:.2f} s)" for s, v in column.items()
            )
            print(f"{name}, {n_lists} lists: {shown}", flush=True)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
