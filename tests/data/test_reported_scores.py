"""Scores that leave the package: the same bits for the same row values, wherever they stand."""

import numpy as np
import pytest
from scipy import sparse

from helpers.functions import lines
from helpers.marks import some_of
from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.files.model import Model

_WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 31, 50, 129)


def _one_after_the_other(X, w):
    """The definition: products and sums rounded one by one, from the first column to the last."""
    X = np.asarray(X, dtype=float)
    total = np.zeros(len(X))
    for column, weight in zip(X.T, w, strict=True):
        product = column * weight
        total = total + product
    return total


def _storages(X):
    """The same values in every storage that is taken."""
    wide = np.zeros((X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[:, ::2] = X
    shuffled = sparse.csr_matrix(X)
    for row in range(X.shape[0]):  # entries of a row from the last column on
        part = slice(*shuffled.indptr[row : row + 2])
        shuffled.indices[part] = shuffled.indices[part][::-1]
        shuffled.data[part] = shuffled.data[part][::-1]
    shuffled.has_sorted_indices = False
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "every other column": wide[:, ::2],
        "rows from the last on": np.ascontiguousarray(X[::-1])[::-1],
        "every other row": np.repeat(X, 2, axis=0)[::2],
        "CSR": sparse.csr_matrix(X),
        "CSC": sparse.csc_matrix(X),
        "CSR, out of order": shuffled,
    }


def _ranker(coef, **settings):
    """A fitted ranker with these weights."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, coef.size))
    chosen = {"surrogate": "avg", "curves": None} | settings  # nothing left to folds
    ranker = PAPKRanker(k=1, alpha=1.0, one_list=True, **chosen)
    ranker.fit(rows, np.arange(30) % 2)
    ranker.function_ = lines(coef)
    return ranker


def _model(coef, k=1, feature_names=None):
    """A model with these weights."""
    return Model(
        function=lines(coef, feature_names),
        k=k,
        surrogate="avg",
        alpha=1.0,
        solver="cutting_plane",
        certificate={},
        feature_names=feature_names,
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("width", _WIDTHS)
def test_same_bits_in_every_storage_and_by_every_road(width, dtype):
    rng = np.random.default_rng(width)
    X = (rng.normal(size=(37, width)) * (rng.random((37, width)) < 0.7)).astype(dtype)
    X[5] = 0.0
    w = rng.normal(size=width)
    right = _one_after_the_other(X, w)
    ranker = _ranker(w)
    model = _model(w)
    for name, stored in _storages(X).items():
        assert (ranker.decision_function(stored) == right).all(), name
        assert (ranker.predict(stored) == right).all(), name
        assert (model.predict(stored) == right).all(), name
    lists = RankingData.from_groups(X, np.arange(37) % 3 == 0, np.arange(37) % 4)
    assert (lists.scores(w) == right[lists.rows]).all()


@pytest.mark.parametrize("storage", ["C", "F", "CSR"])
def test_blocks_and_threads_change_no_bit(storage):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(50_001, 6))  # in three blocks
    w = rng.normal(size=6)
    right = _one_after_the_other(X, w)
    store = {"C": np.ascontiguousarray, "F": np.asfortranarray, "CSR": sparse.csr_matrix}[storage]
    stored = store(X)
    for n_threads in (1, 2, 5):
        assert (_ranker(w, n_threads=n_threads).decision_function(stored) == right).all()


def test_entries_that_a_matrix_stores_twice_count_once_added_up():
    w = np.array([0.1, 0.7])
    twice = sparse.csr_matrix(
        (np.array([0.1, 0.2, 0.5]), np.array([0, 0, 1]), np.array([0, 3])), shape=(1, 2)
    )
    right = _one_after_the_other([[0.1 + 0.2, 0.5]], w)
    assert _ranker(w).decision_function(twice)[0] == right[0]
    assert _model(w).predict(twice)[0] == right[0]


def test_dask_collections_score_as_memory_does():
    da = pytest.importorskip("dask.array")
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 11))
    w = rng.normal(size=11)
    scores = _ranker(w).decision_function(da.from_array(X, chunks=(7, 4)))
    assert (np.asarray(scores) == _one_after_the_other(X, w)).all()


def test_score_takes_duplicates_for_ties_and_top_the_earlier_row():
    rng = np.random.default_rng(5)
    for _ in range(some_of(40)):
        X = np.asfortranarray(np.tile(rng.random((1, 23)), (40, 1)))
        y = np.arange(40) % 2
        ranker = _ranker(rng.normal(size=23))
        assert ranker.score(X, y) == 0.0  # every positive is tied with every negative
        top = ranker.to_model().top(X, "one_list", n=7)
        assert top["row"].tolist() == list(range(7))
