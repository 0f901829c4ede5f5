"""What terms add, and their sums: formulas, monotone to the last bit, the same bits everywhere."""

import numpy as np
import pytest
from scipy import sparse

from helpers.functions import lines, of_every_kind
from helpers.marks import some_of
from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.data.columns.knots import ColumnKnots, Knots
from structsvm_papk.data.columns.terms import AdditiveFunction, Curve, Cut, FilledRows, Levels, Pair
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import Model


def added_one_by_one(contributions):
    total = np.zeros(len(contributions))
    for column in contributions.T:
        total = total + column
    return total


def neighbours(values, n=3):
    """Values with some that are next to them, below and above."""
    grid = [values]
    for towards in (-np.inf, np.inf):
        near = values
        for _ in range(n):
            near = np.nextafter(near, towards)
            grid.append(near)
    return np.concatenate(grid)


def test_a_curve_is_linear_between_its_knots_and_flat_beyond():
    curve = Curve("a", 0, np.array([-1.0, 0.0, 4.0]), np.array([0.0, 2.0, -1.0]), 0.0, 1.0, 0.7)
    x = np.linspace(-9, 9, 301)
    np.testing.assert_allclose(curve(x), np.interp(x, curve.knots, curve.values), atol=1e-15)
    assert curve(-1e300) == 0.0 and curve(1e300) == -1.0
    assert np.isnan(curve(np.nan)) and curve(x.reshape(7, 43)).shape == (7, 43)
    assert curve.of([np.array([np.nan, 0.0])]).tolist() == [0.7, 2.0]
    assert curve.course == "both" and not curve.is_line and not curve.is_zero
    assert curve.heights.tolist() == [0.0, 2.0, -1.0]


def test_a_line_goes_on():
    line = Curve("a", 0, np.array([2.0]), np.zeros(1), -3.0, 1.0)
    assert line([-1.0, 2.0, 1e6]).tolist() == [9.0, 0.0, -3e6 + 6]
    assert line.course == "falls" and line.is_line and not line.heights.size
    assert Curve("a", 0, np.zeros(1), np.zeros(1), 0.0, 0.0).is_zero
    assert not Curve("a", 0, np.zeros(1), np.zeros(1), 0.0, 0.0, gap=0.5).is_zero
    assert Curve("a", 0, np.zeros(1), np.zeros(1), 0.0, 0.0).course == "-"


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("seed", range(30))
def test_what_rises_rises_to_the_last_bit(seed, sign):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    knots = np.unique(rng.normal(size=n) * 10.0 ** rng.integers(-8, 9) + rng.normal() * 1e3)
    if seed % 3 == 0:  # hardly apart
        knots = 0.1 + np.arange(n) * 17 * np.spacing(0.1)
    rises = rng.exponential(size=knots.size - 1) * 10.0 ** rng.integers(-18, 3, knots.size - 1)
    rises[rng.random(rises.size) < 0.3] = 0.0
    own = Knots.of(
        [ColumnKnots(knots, np.arange(knots.size) * 1.0, np.arange(knots.size - 1))],
        np.array([True]),
    )
    w = sign * rises
    curve = Curve("a", 0, knots, own.values(w) if knots.size > 2 else np.append(0, w), 0.0, 1.0)
    inside = rng.uniform(knots[0], knots[-1], 2000)
    middle = (knots[1:] + knots[:-1]) / 2
    grid = np.concatenate([neighbours(knots), neighbours(middle), inside, [-1e300, 1e300]])
    grid.sort()
    steps = sign * np.diff(curve(grid))
    assert (steps >= 0.0).all()
    assert curve.course in ({1.0: "rises", -1.0: "falls"}[sign], "-")


def test_levels_add_the_weight_of_the_value():
    levels = Levels("house", 1, ("flat", "tent"), np.array([0.5, -2.0]), 1.0, gap=0.25)
    places = np.array([0.0, 1.0, -1.0, np.nan])
    assert levels.of([places]).tolist() == [0.5, -2.0, 0.0, 0.25]
    without = Levels("house", 1, ("flat", "tent"), np.array([0.5, -2.0]), 1.0)
    assert without.of([places]).tolist() == [0.5, -2.0, 0.0, 0.0]
    assert levels.course == "-" and not levels.is_zero
    assert Levels("house", 1, ("flat",), np.zeros(1), 0.0).is_zero
    assert levels.description() == {
        "kind": "levels", "column": "house", "levels": ["flat", "tent"], "weights": [0.5, -2.0],
        "gap": 0.25,
    }  # fmt: skip


def test_pairs_add_the_weight_of_the_cell():
    weights = np.arange(12.0).reshape(4, 3)
    cuts = (Cut(np.array([0.0, 10.0]), 3), Cut(None, 2, ("flat", "tent")))
    pair = Pair(("price", "house"), (0, 1), cuts, weights, 1.0)
    price = np.array([-1.0, 0.0, 9.9, 10.0, np.nan, np.nan, 5.0, 5.0])
    house = np.array([0.0, 1.0, 0.0, 1.0, 1.0, np.nan, np.nan, -1.0])
    assert pair.of([price, house]).tolist() == [0, 4, 3, 7, 10, 11, 5, 0]
    cells = pair.description()["cells"]
    assert cells == [{"edges": [0.0, 10.0]}, {"levels": ["flat", "tent"]}]
    assert pair.name == "price x house" and pair.heights.size == 12


@pytest.mark.parametrize("with_gaps", [False, True])
def test_a_score_is_the_sum_of_its_contributions_to_the_last_bit(with_gaps):
    function, X = of_every_kind(with_gaps)
    added = function.contributions(FilledRows(X))
    assert added.shape == (len(X), len(function.terms))
    expected = added_one_by_one(added)
    np.testing.assert_array_equal(function.scores(FilledRows(X)), expected)
    for n_threads in (2, 3):
        np.testing.assert_array_equal(function.scores(FilledRows(X), n_threads), expected)
    for form in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X[::-1][::-1]):
        np.testing.assert_array_equal(function.scores(FilledRows(form)), expected)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(function.scores(FilledRows(X[order])), expected[order])
    assert function.scores(FilledRows(X[5:6]))[0] == expected[5]
    if not with_gaps:
        np.testing.assert_array_equal(function.scores(FilledRows(sparse.csr_matrix(X))), expected)
        stored = function.contributions(FilledRows(sparse.csr_matrix(X)))
        np.testing.assert_array_equal(stored, added)
    rounded = X.astype(np.float32)
    np.testing.assert_array_equal(
        function.scores(FilledRows(rounded)),
        function.scores(FilledRows(rounded.astype(np.float64))),
    )


def test_a_gap_that_training_did_not_have_is_refused_with_its_place():
    function = AdditiveFunction(
        (
            Curve("a", 0, np.zeros(1), np.zeros(1), 1.0, 0.0, gap=0.5),
            Curve("b", 1, np.zeros(1), np.zeros(1), 1.0, 0.0),
        ),
        (Levels("c", 2, ("x",), np.ones(1), 0.0),),
    )
    X = np.zeros((4, 3))
    X[1, 0] = X[2, 2] = np.nan
    function.refuse_new_gaps(X, None)
    assert function.scores(FilledRows(X)).tolist() == [1.0, 1.5, 0.0, 1.0]
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="row 3, column 1"):
        function.refuse_new_gaps(X, None)
    with pytest.raises(InputError, match="row 3, column 'b'"):
        function.refuse_new_gaps(X, ["a", "b", "c"])
    function.refuse_new_gaps(sparse.csr_matrix(np.zeros((2, 3))), None)
    assert function.levels == {2: ("x",)}
    np.testing.assert_array_equal(function.gaps, [0.5, np.nan, np.nan])


# --- scores that leave the package ----------------------------------------------------------------


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
    ranker = PAPKRanker(k=1, alpha=1.0, groups="one_list", **chosen)
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
