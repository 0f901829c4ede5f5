"""Dask arrays and data frames in the estimator."""

import time
from datetime import date

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from sklearn.base import clone

from helpers.clusters import kill_a_worker
from helpers.marks import POSIX
from helpers.sources import N_FEATURES, lists
from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.surrogates.losses import CONVEX, SURROGATES

pytestmark = pytest.mark.portable

K, TOL = 4, 1e-8
ODD = np.arange(4000) // 40 % 2


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:  # the current one
        yield client


@pytest.fixture(scope="module")
def expected():
    X, y, groups = lists()
    return ranker().fit(X, y, groups=groups)


def ranker(**options):
    return PAPKRanker(**{"k": K, "surrogate": "ts", "tol": TOL, "curves": None, **options})


def arrays(kind):
    """The same lists in various collections; users straddle the blocks in all of them."""
    X, y, groups = lists()
    if kind == "shuffled":
        order = np.random.default_rng(0).permutation(len(y))
        X, y, groups = X[order], y[order], groups[order]
    if kind == "frame":
        frame = pd.DataFrame(X, columns=list("abcde")).assign(y=y, user=groups.astype(str))
        frame = dd.from_pandas(frame, npartitions=7)
        return frame[list("abcde")], frame["y"], frame["user"]
    if kind == "other chunks":
        return (
            da.from_array(X, chunks=(777, 2)),
            da.from_array(y, chunks=500),
            da.from_array(groups, chunks=2000),
        )
    if kind == "unknown chunks":
        X, y, groups = (da.from_array(values, chunks=(777, *values.shape[1:])) for values in
                        (X, y, groups))  # fmt: skip
        all_of_them = groups >= 0
        return X[all_of_them], y[all_of_them], groups[all_of_them]
    if kind == "one unknown":
        known = da.from_array(X, chunks=(777, -1))
        return known[da.from_array(groups, chunks=777) >= 0], y, da.from_array(groups, chunks=900)
    block = sparse.csr_array if kind == "sparse" else np.asarray
    return da.from_array(X, chunks=(777, -1)).map_blocks(block), y, groups


def test_without_a_client_the_fit_runs_in_this_process(expected):
    with pytest.raises(ValueError, match="No client"):
        Client.current()  # the first test: there is none yet
    found = ranker().fit(*arrays("arrays")[:2], groups=lists()[2])
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=2e-3)


def test_columns_of_categories_are_no_numbers():
    X, y, groups = lists()
    frame = pd.DataFrame(X).assign(stars=pd.Categorical(np.arange(len(y)) % 5))
    given = dd.from_pandas(frame.rename(columns=str), npartitions=3)
    with pytest.raises(InputError, match="column 'stars' holds some: give a sample of the users"):
        ranker().fit(given, y, groups=groups)
    as_numbers = ranker(categorical_features=None, alpha=0.1).fit(given, y, groups=groups)
    assert as_numbers.coef_.shape == (frame.shape[1],)
    with pytest.raises(InputError, match="categorical_features= needs the lists in memory"):
        ranker(categorical_features=[0]).fit(da.from_array(X, chunks=(777, -1)), y, groups=groups)


def test_frames_are_scored_in_memory(expected):
    frame = dd.from_pandas(pd.DataFrame(lists()[0]), npartitions=2)
    for score in (expected.predict, expected.to_model().predict):
        with pytest.raises(InputError, match=r"frame of Dask, .*: give X.compute\(\)"):
            score(frame)


def test_columns_that_vary_in_no_list_are_named_as_in_memory():
    _, y, groups = lists()
    X = pd.DataFrame({"age": groups / 10, "country": groups % 7.0})
    said = []
    for given in (X, dd.from_pandas(X, npartitions=3)):
        with pytest.warns(
            DegenerateOptimumWarning, match=r"every column \(age, country\)"
        ) as caught:
            ranker().fit(given, y, groups=groups)
        said.append(str(caught[0].message))
    assert said[0] == said[1]


@pytest.mark.scale
@pytest.mark.parametrize(
    "kind",
    ["arrays", "shuffled", "frame", "other chunks", "unknown chunks", "one unknown", "sparse"],
)
def test_the_fit_is_that_of_arrays_in_memory(client, expected, kind):
    X, y, groups = arrays(kind)
    found = ranker(standardize=True).fit(X, y, groups=groups)
    assert found.result_.converged
    assert found.result_.lower_bound <= expected.result_.objective
    assert expected.result_.lower_bound <= found.result_.objective
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=0, atol=2e-3)
    assert str(found.exclusions_) == str(expected.exclusions_)
    assert found.n_features_in_ == 5
    assert found.classes_.tolist() == [False, True]
    names = getattr(found, "feature_names_in_", None)
    assert (names is None) == (kind != "frame")
    rows = lists()[0]
    test = pd.DataFrame(rows, columns=names) if kind == "frame" else rows
    np.testing.assert_allclose(found.predict(test), rows @ found.coef_)


@pytest.mark.scale
@pytest.mark.parametrize("name", SURROGATES)
def test_every_surrogate_and_option_is_the_problem_in_memory(client, name):
    weighted = {"user_weight": "positives", "policy": "cap"}
    (X, y, groups), blocks = lists(), arrays("arrays")[0]
    every = ({"depth": 6, "standardize": False}, {"depth": 0.5, **weighted})
    for options in every if name in CONVEX else every[1:]:  # many solves, one inside the other
        how = ranker(surrogate=name, tol=1e-6, **options)
        expected, found = (clone(how).fit(each, y, groups=groups).result_ for each in (X, blocks))
        assert found.status == expected.status
        assert found.lower_bound <= expected.objective
        assert expected.lower_bound <= found.objective
        data = RankingData.from_groups(X, y, groups).weighted(how.user_weight)
        data = data.standardized(how.standardize)
        value, _ = EmpiricalRisk(how.make_surrogate(), data, how.policy)(found.w)
        value += found.alpha / 2 * (found.w @ found.w)
        assert found.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.recovery
@POSIX
def test_blocks_leave_the_workers_and_are_made_again_where_one_is_killed(client):
    X, y, groups = arrays("arrays")
    grades = 2 * y + ODD
    expected = ranker().fit(X, y, groups=groups).result_.objective

    def blocks():
        return {key for keys in client.has_what().values() for key in keys if "block" in str(key)}

    def callback(progress):
        if progress.iteration == 2:
            for _ in range(1000):  # Dask takes a moment
                if blocks() <= before:
                    break
                time.sleep(0.01)
            left.extend(blocks() - before)
            kill_a_worker(client)

    before, left = blocks(), []
    graded = ranker(callback=callback, relevance_threshold=2)
    found = graded.fit(X, grades, groups=groups).result_
    assert left == []
    assert found.objective == expected


@pytest.mark.scale
@pytest.mark.parametrize("kind", ["shuffled", "sparse"])
def test_grades_are_the_problem_in_memory(client, kind):
    X, y, groups = arrays(kind)
    grades = 2 * y + np.asarray(groups) % 2
    how = ranker(label_gain="exponential", alpha="auto", tol=1e-10)
    found = clone(how).fit(X, grades, groups=groups)
    rows = X.compute() if hasattr(X, "compute") else X
    expected = clone(how).fit(rows, grades, groups=groups)
    assert found.label_gain_ == "exponential" and found.classes_.tolist() == [0, 1, 2, 3]
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-12)
    assert found.result_.objective == pytest.approx(expected.result_.objective, rel=1e-9)
    assert found.result_.notes == expected.result_.notes
    model = found.to_model()
    assert model.label_gain == "exponential" and model.relevance_threshold is None


def test_what_collections_are_not_for():
    X, y, groups = arrays("arrays")
    with pytest.raises(InputError, match="sample_weight is not available for Dask"):
        ranker().fit(X, y, groups=groups, sample_weight=np.ones(4000))


@pytest.mark.scale
@pytest.mark.parametrize(("depth", "policy"), [(41, "cap"), (41, "exclude")])
def test_a_depth_above_every_list_is_refused_as_in_memory(client, depth, policy):
    for data in (lists(), arrays("shuffled")):
        with pytest.raises(InputError, match=rf"depth={depth} is above every list.*at most 40"):
            ranker(depth=depth, policy=policy).fit(*data[:2], groups=data[2])


def one_hidden(y):
    """A collection whose chunks have lengths that are not known."""
    return da.from_array(y, chunks=777)[da.from_array(np.arange(4000) != 800, chunks=777)]


def of_two_types(groups):
    blocks = da.from_array(groups, chunks=777)
    return blocks.map_blocks(
        lambda b: b.astype(str) if b[0] > 50 else b, meta=np.empty(0, dtype=object)
    )


BROKEN = {
    "groups= is missing": ("groups", lambda groups: None),
    "need groups.*one list, which cannot be spread": ("groups", lambda groups: "one_list"),
    "y has 3999 entries, but X has 4000 rows": ("y", lambda y: y[:-1]),
    r"block 1: X has 777 rows, y 776 .*compute_chunk_sizes": ("y", one_hidden),
    "block 1: groups is missing in rows 423": ("groups", lambda g: np.where(g == 30, np.nan, g)),
    r"block \d: y must be numbers": ("y", lambda y: np.where(y, "yes", "no")),
    r"block \d: X holds NaN at row .*lists in memory": (
        "X",
        lambda X: da.where(X > 3.0, np.nan, X),
    ),
    r"block \d: X holds text \('a'\), .*lists are in memory": (
        "X",
        lambda X: X.map_blocks(lambda block: np.full(block.shape, "a", object), dtype=object),
    ),
    r"block \d: X holds NaN at row 0, column 0 .*lists in memory": (
        "X",
        lambda X: X.map_blocks(lambda block: np.full(block.shape, None), dtype=object),
    ),
    r"block \d: X holds 2026-05-01 at row 0, column 0 .*give days": (
        "X",
        lambda X: X.map_blocks(lambda b: np.full(b.shape, date(2026, 5, 1)), dtype=object),
    ),
    r"block \d: X holds inf at row \d+, column": ("X", lambda X: da.where(X > 3.0, np.inf, X)),
    "y must have one dimension": ("y", lambda y: np.column_stack([y, y])),
    "y and groups must have one dimension": ("y", lambda y: dd.from_pandas(
        pd.DataFrame({"y": y, "z": y}), npartitions=6)),
    "two dimensions": ("X", lambda X: X[:, 0]),
    "number of columns of X is not known": ("X", lambda X: X[:, da.ones(N_FEATURES) > 0]),
    "groups mix types that have no order: int, str": ("groups", lambda groups: np.array(
        [0, "a"] * 2000, dtype=object)),
    "grades go from 0 to 30": ("y", lambda y: 20 * y + 15 * ODD),
    "groups: labels of different types": ("groups", of_two_types),
}  # fmt: skip


@pytest.mark.scale
@pytest.mark.parametrize("message", BROKEN)
def test_collections_that_cannot_be_used(client, message):
    given = dict(zip(("X", "y", "groups"), arrays("arrays"), strict=True))
    name, broken = BROKEN[message]
    with pytest.raises(InputError, match=message):
        ranker().fit(**given | {name: broken(given[name])})
