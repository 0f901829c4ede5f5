"""Lists without holes, of which everything relevant is known: images of digits, files of rows."""

import numpy as np
from sklearn.datasets import load_digits, load_svmlight_file, load_svmlight_files

from benchmarks.quality.fusing.lists import JoinedLists

FEATURES_OF_CLUEWEB = 42


def digits_as_queries(half, n_rows=60):
    """A list: how 60 images differ from one, pixel by pixel, and which are of its digit."""
    images = load_digits()
    rng = np.random.default_rng(half)
    pool = np.random.default_rng(0).permutation(images.target.size)[half::2]
    X = []
    grades = []
    for _ in range((1000, 400)[half]):
        query, *others = rng.choice(pool, n_rows + 1, replace=False)
        X.append(-np.abs(images.data[others] - images.data[query]))
        grades.append(images.target[others] == images.target[query])
    return plain_lists(np.concatenate(X), np.concatenate(grades), np.full(len(X), n_rows), 10)


def svmlight_lists(file):
    """A file of rows, and one of the number of rows of each query."""
    X, grades = load_svmlight_file(str(file), n_features=300)
    sizes = np.loadtxt(f"{file}.query", dtype=int)
    return plain_lists(X.toarray(), grades.astype(int), sizes, 5, level=2)


def letor_lists(folder):
    """Five files of rows with the id of their query."""
    files = [str(folder / f"Fold{fold}" / "test.txt") for fold in range(1, 6)]
    read = load_svmlight_files(files, n_features=FEATURES_OF_CLUEWEB, query_id=True)
    X, grades, queries = (read[part::3] for part in range(3))
    queries = np.concatenate(queries)
    order = np.argsort(queries, kind="stable")
    sizes = np.unique(queries, return_counts=True)[1]
    X = np.concatenate([part.toarray() for part in X])[order]
    grades = np.concatenate(grades)[order].astype(int)
    return plain_lists(X, np.maximum(grades, 0), sizes, 10)


def plain_lists(X, grades, sizes, k, level=1):
    """Lists without holes of which everything relevant is known."""
    names = np.array([f"column {j}" for j in range(X.shape[1])])
    none = np.zeros(0, dtype=int)
    return JoinedLists(
        names, X, grades.astype(int), sizes, none, np.zeros(sizes.size, int), k, level
    )
