"""The risk of graded lists: the mean over lists and grades, held against copies of the lists."""

import numpy as np
import pytest
from scipy import sparse

from helpers import problems, sources
from helpers.catalogue import SURROGATES
from helpers.marks import slow
from structsvm_papk import CCCP, EmpiricalRisk, GlobalRamp, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.files.partitions import array_partitions, file_partitions, open_source
from structsvm_papk.oracles.dask_risk import DaskRisk
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.rankers.settings import Evidence, automatic_alpha
from structsvm_papk.rankers.solver_race import mean_pap_at_k

GAINS = {"linear": [0, 1, 2, 3, 4], "exponential": [0, 1, 3, 7, 15], (0, 0, 2, 2, 9): None}


def rows(n_users=12, n_features=4, seed=0):
    """Lists of 3 to 20 rows with grades 0 to 4; some lack grades, some have one only."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), rng.integers(3, 21, n_users))
    X = rng.normal(size=(groups.size, n_features))
    score = X[:, 0] + rng.normal(size=groups.size)
    y = np.digitize(score, [0.0, 0.8, 1.2, 2.0])
    y[groups == 0] = 2
    y[groups == 1] = np.minimum(y[groups == 1], 1)
    shuffled = rng.permutation(groups.size)
    return X[shuffled], y[shuffled], groups[shuffled]


def copies(X, y, groups, gains, weight=None):
    """Binary lists: a copy of every list for each grade at which it has both labels."""
    gains = np.asarray(gains)
    parts, labels, lists, weights = [], [], [], []
    for u in np.unique(groups):
        mine = groups == u
        for t in range(1, gains.size):
            relevant = y[mine] >= t
            added = gains[t] - gains[t - 1]
            if added and 0 < relevant.sum() < relevant.size:
                parts.append(X[mine])
                labels.append(relevant)
                lists.append(np.full(relevant.size, len(weights)))
                weights.append(added * (1.0 if weight is None else weight[u]))
    stack = sparse.vstack if sparse.issparse(X) else np.concatenate
    return RankingData.from_groups(
        stack(parts), np.concatenate(labels), np.concatenate(lists), user_weight=weights
    )


STORAGES = (np.asarray, np.asfortranarray, sparse.csr_array)


@pytest.mark.parametrize(
    ("depth", "label_gain"), [(None, "linear"), (0.7, "exponential"), (0.7, (0, 0, 2, 2, 9))]
)
@pytest.mark.parametrize("name", SURROGATES)
def test_values_and_slopes_are_those_of_copies(name, depth, label_gain):
    """For any storage, number of blocks and number of threads."""
    X, y, groups = rows()
    weight = np.linspace(0.5, 2.0, 12)
    gains = GAINS[label_gain] or label_gain
    surrogate = make_surrogate(name, 3, depth)
    expected = EmpiricalRisk(surrogate, copies(X, y, groups, gains, weight))
    points = np.random.default_rng(1).normal(size=(2, 4))
    wanted = [expected(w) for w in points]
    for as_stored, n_blocks, n_threads in zip(STORAGES, (1, 4, 100), (1, 2, 3), strict=True):
        lists = RankingData.from_groups(as_stored(X), y, groups, weight, label_gain=label_gain)
        risk = EmpiricalRisk(surrogate, lists, n_blocks=n_blocks, n_threads=n_threads)
        for w, (wanted_value, wanted_slope) in zip(points, wanted, strict=True):
            value, slope = risk(w)
            assert value == pytest.approx(wanted_value, rel=1e-12)
            np.testing.assert_allclose(slope, wanted_slope, rtol=0, atol=1e-12)
            cuts = risk.cuts(w)
            assert cuts.value == pytest.approx(wanted_value, rel=1e-12)
            np.testing.assert_allclose(cuts.slopes.sum(axis=0), wanted_slope, rtol=0, atol=1e-12)
            assert cuts.slopes.shape[0] == min(n_blocks, lists.usable(1).n_users)
            np.testing.assert_allclose(cuts.slopes @ w + cuts.intercepts, cuts.values, atol=1e-12)


@pytest.mark.parametrize("name", [slow("ramp"), "clipped_ramp"])
def test_majorants_and_boxes_are_those_of_copies(name):
    X, y, groups = rows(n_users=6, n_features=2, seed=5)
    surrogate = make_surrogate(name, 2)
    risk = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups, label_gain="linear"))
    expected = EmpiricalRisk(surrogate, copies(X, y, groups, GAINS["linear"]))
    w = np.array([0.5, -0.3])
    at = np.array([0.2, 0.4])
    assert risk.majorant(w)(at)[0] == pytest.approx(expected.majorant(w)(at)[0], rel=1e-12)
    found = GlobalRamp(0.1, tol=1e-3).solve(risk)
    wanted = GlobalRamp(0.1, tol=1e-3).solve(expected)
    assert found.objective == pytest.approx(wanted.objective, rel=2e-3)
    assert found.lower_bound <= wanted.objective
    assert CCCP(0.1).solve(risk).objective >= found.lower_bound


def test_lists_with_too_few_negatives_at_a_grade_leave_that_grade_out():
    X = np.arange(12.0)[:, None]
    y = np.array([2, 1, 0, 0, 2, 2, 1, 1, 1, 1, 1, 0])
    lists = RankingData.from_groups(X, y, np.repeat([0, 1], [4, 8]), label_gain="linear")
    risk = EmpiricalRisk(make_surrogate("avg", 3), lists, "exclude")
    assert risk.data.users.tolist() == [0, 1]  # at grade 2 both have three negatives or more
    assert risk.data.n_pos.tolist() == [1, 2]
    with pytest.raises(InputError, match="at most 3"):
        lists.subset(np.array([True, False])).usable(9)


def test_folds_of_rows_keep_grades():
    X, y, groups = rows()
    lists = RankingData.from_groups(X, y, groups, label_gain="linear")
    keep = np.random.default_rng(0).random(y.size) < 0.6
    part = lists.at_positions(keep)
    again = RankingData.from_groups(
        X[lists.rows[keep]], y[lists.rows[keep]], groups[lists.rows[keep]], label_gain="linear"
    )
    np.testing.assert_array_equal(part.n_pos, again.n_pos)
    np.testing.assert_array_equal(part.grades, again.grades)
    np.testing.assert_array_equal(X[part.rows], again.X[again.rows])


@pytest.mark.parametrize(
    ("y", "label_gain", "said"),
    [
        ([0, 1, 2.5], "linear", "whole numbers"),
        ([0, 1, 31], "linear", "relevance_threshold"),
        ([0, 1, 3], (0.0, 1.0, 2.0), "label_gain has 3 gains"),
        ([0, 1, 2], (0.0, 2.0, 1.0), "none smaller"),
        ([0, 1, 2], "log", "exponential"),
    ],
)
def test_labels_that_are_no_grades_are_refused(y, label_gain, said):
    with pytest.raises(InputError, match=said):
        RankingData.from_groups(np.zeros((3, 1)), y, [0, 0, 0], label_gain=label_gain)


def test_grades_below_zero_count_as_zero():
    lists = RankingData.from_groups(np.eye(3), [-2, 0, 1], [0, 0, 0], label_gain="linear")
    assert lists.gains.tolist() == [1.0, 0.0, 0.0]


# --- in partitions --------------------------------------------------------------------------------

PLACES = ["in parts", "npy", "parquet", "blocks on dask", "files on dask"]


def in_place(place, surrogate, directory, client, weight=None, label_gain="linear", policy="cap"):
    """The risk of the graded rows in partitions, somewhere."""
    X, y, groups = sorted_rows()
    if place == "in parts":
        lists = RankingData.from_groups(X, y, groups, weight, label_gain=label_gain)
        return problems.partitioned(surrogate, lists, 5, policy=policy)
    if place == "blocks on dask":
        lists = RankingData.from_groups(X, y, groups, weight, label_gain=label_gain)
        return DaskRisk(surrogate, array_partitions(lists, 5), client, policy)
    write = sources.parquet_source if place == "parquet" else sources.npy_source
    source = write(directory, X, y, groups)
    if place == "files on dask":
        parts = file_partitions(source, X.nbytes // 5, label_gain=label_gain)
        return DaskRisk(surrogate, parts, client, policy, user_weight=weight)
    how = {"user_weight": "equal" if weight is None else weight, "policy": policy}
    return StreamedRisk(surrogate, source, 30 * y.size + X.nbytes, label_gain=label_gain, **how)


def sorted_rows():
    X, y, groups = rows(n_users=60)
    order = np.argsort(groups, kind="stable")
    return X[order], y[order], groups[order]


@pytest.mark.scale
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("weight", [None, "positives"])
def test_the_risk_in_partitions_is_that_of_copies(place, weight, tmp_path, client):
    X, y, groups = sorted_rows()
    for name, depth in (("avg", 0.9), ("ts", None), ("clipped_ramp", 0.5)):
        surrogate = make_surrogate(name, 3, depth)
        for label_gain, gains in (("exponential", GAINS["exponential"]), ((0, 0, 2, 2, 9),) * 2):
            lists = RankingData.from_groups(X, y, groups, weight, label_gain=label_gain)
            of_users = lists.user_weight
            expected = EmpiricalRisk(surrogate, copies(X, y, groups, gains, of_users))
            in_memory = EmpiricalRisk(surrogate, lists)
            found = in_place(place, surrogate, tmp_path, client, weight, label_gain)
            assert len(found.partitions.summaries) > 2
            assert str(found.exclusions) == str(in_memory.exclusions)
            assert found.partitions.remarks == lists.remarks
            assert found.partitions.classes.tolist() == [0, 1, 2, 3, 4]
            for n_blocks in (1, 7):
                blocks = found.with_blocks(n_blocks)
                for w in np.random.default_rng(1).normal(size=(3, 4)):
                    value, slope = blocks(w)
                    wanted, wanted_slope = expected(w)
                    assert value == pytest.approx(wanted, rel=1e-12)
                    np.testing.assert_allclose(slope, wanted_slope, rtol=0, atol=1e-12)
            assert found.gain(w) == pytest.approx(
                mean_pap_at_k(in_memory.of_users.scores(w), in_memory.of_users, 3), rel=1e-12
            )
            evidence = (
                Evidence.of(found.partitions, found.partitions),
                Evidence.of(lists, in_memory.of_users),
            )
            assert automatic_alpha(evidence[0]) == pytest.approx(
                automatic_alpha(evidence[1]), rel=1e-12
            )


def test_rows_of_files_keep_to_the_budget_however_many_grades(tmp_path):
    """A partition is smaller where a row stands in several lists."""
    X, y, groups = sorted_rows()
    surrogate = make_surrogate("avg", 2)
    sources.npy_source(tmp_path, X, y, groups)
    budget = 9_000
    with pytest.raises(InputError, match="memory budget"):
        StreamedRisk(surrogate, open_source(tmp_path), budget, label_gain="linear")
    StreamedRisk(surrogate, open_source(tmp_path), budget, relevance_threshold=2)


@pytest.mark.parametrize(
    ("change", "label_gain", "said"),
    [
        (lambda y: y + 0.5 * (y == 2), "linear", "not 0/1 or -1/1"),
        (lambda y: 20 * y, "linear", "grades go from 0 to 30"),
        (lambda y: y, (0, 1), "label_gain has 2 gains"),
        (lambda y: y, None, "relevance_threshold="),
        (lambda y: np.zeros_like(y) - (y > 2) - (y > 1), "linear", "no user can be used"),
    ],
)
def test_files_whose_labels_are_no_grades_are_refused(change, label_gain, said, tmp_path):
    X, y, groups = sorted_rows()
    source = sources.npy_source(tmp_path, X, change(y), groups)
    with pytest.raises(InputError, match=said):
        StreamedRisk(make_surrogate("avg", 2), source, 1 << 20, label_gain=label_gain)


def test_grades_below_zero_in_files_count_as_zero(tmp_path):
    X, y, groups = sorted_rows()
    y = np.where(y == 0, -2, y)
    source = sources.npy_source(tmp_path, X, y, groups)
    surrogate = make_surrogate("avg", 2)
    found = StreamedRisk(surrogate, source, 1 << 20, label_gain="linear")
    expected = EmpiricalRisk(surrogate, RankingData.from_groups(X, y, groups, label_gain="linear"))
    assert found(np.ones(4))[0] == pytest.approx(expected(np.ones(4))[0], rel=1e-12)
    assert found.partitions.classes.tolist() == [-2, 1, 2, 3, 4]
