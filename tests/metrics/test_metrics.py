from fractions import Fraction
from math import comb

import numpy as np
import pytest

from helpers.reference_metrics import per_user
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels, discounts
from structsvm_papk.metrics import ranked_lists as lists

NAMES = (
    "pap@1", "pap@3", "pauc@2", "auc", "precision@1", "precision@4", "recall@3", "ap",
    "ndcg@3", "ndcg", "rr", "auc@3", "hit@1", "hit@3",
)  # fmt: skip
TIES = ("loss", "half", "win", "threshold")


def random_lists(rng, n_users=40):
    """Short lists, most with ties, one positive, all positive or none among them."""
    groups = np.repeat(np.arange(n_users), rng.integers(1, 7, n_users))
    scores = rng.integers(0, 4, groups.size).astype(float)
    labels = (rng.random(groups.size) < rng.choice([0.2, 0.5, 0.9], groups.size)).astype(int)
    order = rng.permutation(groups.size)
    return scores[order], labels[order], groups[order]


@pytest.mark.parametrize("ties", TIES)
def test_kernel_agrees_with_brute_force(ties):
    rng = np.random.default_rng(11)
    for _ in range(6):
        scores, labels, groups = random_lists(rng)
        table = metrics.evaluate(NAMES, scores, labels, groups, ties=ties)
        for name in NAMES:
            expected = per_user(name, scores, labels, groups, ties=ties)
            np.testing.assert_allclose(table[name], expected, atol=1e-13, err_msg=name)


@pytest.mark.parametrize(("n_pos", "n_neg"), [(300, 500), (2, 3000), (3000, 2)])
def test_auc_at_k_of_a_large_tied_block_is_its_hypergeometric_mean(n_pos, n_neg):
    labels = np.repeat([1, 0, 1, 0], [1, 2, n_pos, n_neg])
    scores = np.repeat([2.0, 3.0, 1.0, 1.0], [1, 2, n_pos, n_neg])  # two negatives, a positive
    inside, wanted = 40 - 3, Fraction(0)
    for x in range(max(0, inside - n_neg), min(n_pos, inside) + 1):
        chance = Fraction(comb(n_pos, x) * comb(n_neg, inside - x), comb(n_pos + n_neg, inside))
        lost = 2 + x * (2 + Fraction(inside - x, 2))
        wanted += chance * (1 - lost / ((1 + x) * (2 + inside - x)))
    found = metrics.per_user("auc@40", scores, labels, ties="half")[0]
    assert found == pytest.approx(float(wanted), rel=1e-13)


@pytest.mark.parametrize("discount", ["exp", "r^-1.1"])
def test_discounts_with_a_finite_sum_are_warned_of(discount):
    with pytest.warns(discounts.NoLimitWarning, match="NDCG has no limit"):
        metrics.per_user("ndcg@2", [2.0, 1.0], [0, 1], discount=discount)
    for quiet in ("log", "zipf", "r^-0.5", [1.0, 0.5], lambda r: 2.0**-r):
        metrics.per_user("ndcg@2", [2.0, 1.0], [0, 1], discount=quiet)


@pytest.mark.filterwarnings("ignore::structsvm_papk.metrics.discounts.NoLimitWarning")
@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("discount", ["log", "zipf", "r^-0.5", "exp"])
def test_graded_ndcg_agrees_with_brute_force(ties, discount):
    rng = np.random.default_rng(5)
    groups = np.repeat(np.arange(25), 5)
    scores = rng.integers(0, 3, groups.size).astype(float)
    labels = rng.choice([0, 0, 1, 2, 4], groups.size)
    weight = discounts.resolve(discount)
    for k in (2, 4, 9):
        found = metrics.per_user(f"ndcg@{k}", scores, labels, groups, ties=ties, discount=discount)
        expected = per_user(f"ndcg@{k}", scores, labels, groups, ties=ties, discount=weight)
        np.testing.assert_allclose(found, expected, atol=1e-13)


@pytest.mark.filterwarnings("ignore::structsvm_papk.metrics.discounts.NoLimitWarning")
def test_exponential_gains_and_custom_gain_and_discount():
    rng = np.random.default_rng(6)
    scores, labels = rng.permutation(8.0 * np.arange(6)), np.array([3, 0, 1, 2, 0, 4])
    expected = per_user("ndcg@4", scores, 2.0**labels - 1, discount=lambda r: 1 / r**2)
    for discount in (1 / np.arange(1, 7) ** 2, lambda r: r**-2.0, "r^-2"):
        for gains in ("exponential", lambda y: 2.0**y - 1):
            found = metrics.per_user("ndcg@4", scores, labels, discount=discount, gains=gains)
            assert found == pytest.approx(expected, abs=1e-14)


def test_a_list_with_many_positives_takes_the_sorted_path():
    rng = np.random.default_rng(8)
    pos, neg = rng.integers(0, 50, 400).astype(float), rng.integers(0, 50, 300).astype(float)
    pos[::-1].sort()
    ranks = np.empty((4, 400), dtype=np.int64)
    _kernels.count_above(-pos, -neg, np.empty(300), ranks)
    np.testing.assert_array_equal(ranks[_kernels.ABOVE], (neg[None] > pos[:, None]).sum(1))
    np.testing.assert_array_equal(ranks[_kernels.REACH], (neg[None] >= pos[:, None]).sum(1))


def test_threads_rows_and_group_labels_do_not_change_a_number():
    rng = np.random.default_rng(9)
    groups = rng.integers(0, 700, 30_000)
    scores, labels = rng.integers(0, 90, groups.size).astype(float), rng.random(groups.size) < 0.2
    base = metrics.evaluate(NAMES, scores, labels, groups, n_threads=1).values
    order = rng.permutation(groups.size)
    for n_threads in (2, 5):
        again = metrics.evaluate(
            NAMES, scores[order], labels[order], groups[order], n_threads=n_threads
        )
        np.testing.assert_array_equal(again.values, base)
    words = np.array([f"u{g:06d}" for g in groups])
    np.testing.assert_array_equal(metrics.evaluate(NAMES, scores, labels, words).values, base)
    sparse_labels = metrics.evaluate(NAMES, scores, labels, groups.astype(np.int64) * 10**12)
    np.testing.assert_array_equal(sparse_labels.values, base)
    np.testing.assert_array_equal(sparse_labels.users, np.unique(groups) * 10**12)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, np.uint8, np.uint64, np.float64])
def test_counting_sort_in_parts_is_stable(dtype):
    rng = np.random.default_rng(10)
    low = {"i": -100, "u": 3, "f": -5}[np.dtype(dtype).kind]
    groups = (rng.integers(0, 90, 70_001) * 2).astype(dtype) + np.dtype(dtype).type(low)
    rows, relevant = np.arange(70_001.0), rng.integers(0, 2, 70_001).astype(np.uint8)
    users, bounds, sorter = lists.group_rows(groups, None, groups.size, n_threads=3)
    assert sorter.counts.shape == (3, 90)
    order = np.argsort(groups, kind="stable")
    np.testing.assert_array_equal(users, np.unique(groups))
    np.testing.assert_array_equal(bounds, np.searchsorted(groups[order], [*users, np.inf]))
    placed, labels = sorter.place(rows, relevant)
    np.testing.assert_array_equal(placed, rows[order])
    np.testing.assert_array_equal(labels, relevant[order])
    np.testing.assert_array_equal(sorter.order(), order)
    assert lists.group_rows(groups[order], None, groups.size, n_threads=3)[2] is None


def test_indptr_with_empty_users():
    values = metrics.per_user("auc", [3.0, 2.0, 1.0], [1, 0, 1], indptr=[0, 0, 3, 3])
    np.testing.assert_array_equal(values, [np.nan, 0.5, np.nan])
    graded = metrics.per_user("ndcg", [3.0, 2.0, 1.0], [0, 0, 2], indptr=[0, 0, 3, 3])
    np.testing.assert_allclose(graded, [np.nan, 0.5, np.nan])


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32, object])
def test_labels_of_any_type(dtype):
    labels = np.array([0, 1, 1, 0, 1]).astype(dtype)
    found = metrics.evaluate(["auc", "ndcg"], [5.0, 4, 3, 2, 1], labels)
    expected = metrics.evaluate(["auc", "ndcg"], [5.0, 4, 3, 2, 1], [0, 1, 1, 0, 1])
    np.testing.assert_array_equal(found.values, expected.values)


def test_minus_one_labels_and_thresholds():
    scores = np.array([4.0, 3, 2, 1])
    minus, zero = (metrics.per_user("ndcg", scores, [low, 1, low, 1])[0] for low in (-1, 0))
    assert minus == zero
    area = metrics.per_user("auc", scores, [1, 5, 2, 4], relevance_threshold=4)[0]
    assert area == 0.5 * 0.5 + 0.25 * 0
    table = metrics.evaluate(["ap", "ndcg"], scores, [1, 5, 2, 4], relevance_threshold=4)
    assert table["ap"][0] == 0.5
    assert table["ndcg"] == pytest.approx(per_user("ndcg", scores, [1, 5, 2, 4]))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"scores": [1.0, np.nan, 0.5]}, "NaN in row 1"),
        ({"scores": [np.nan, 1.0, np.nan], "groups": ["b", "a", "c"]}, "rows 0, 2 of users b, c"),
        ({"labels": [0, np.inf, 1], "groups": [7, 7, 7]}, "row 1 of user 7"),
        ({"labels": [0, 1]}, "3 rows"),
        ({"labels": [0, 2, 1]}, "not binary: 2 in row 1"),
        ({"labels": [0, np.nan, 1]}, "row 1"),
        ({"groups": [1.0, np.nan, 1.0]}, "row 1"),
        ({"groups": [None, 1, 1]}, "row 0"),
        ({"groups": [1, 2]}, "3 rows"),
        ({"groups": np.array([1, "a", 2], dtype=object)}, "mix types that have no order: int, str"),
        ({"indptr": [0, 2]}, "number of rows"),
        ({"scores": []}, "no rows"),
        ({"metrics": []}, "at least one"),
        ({"metrics": ["ap", "ap"]}, "twice: ap"),
        ({"list_length": 0.5}, "whole numbers"),
        ({"list_length": -1}, "negative for user"),
        ({"ties": "lose"}, "loss, half, win"),
        ({"preset": "rectool"}, "icml2020"),
        ({"no_positives": "skip"}, "exclude"),
    ],
)
def test_bad_input_is_named(change, told):
    arguments = {"metrics": ["ap"], "scores": [1.0, 0.0, 0.5], "labels": [0, 1, 1]} | change
    with pytest.raises(InputError, match=told):
        metrics.evaluate(**arguments)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("papk@5", "did you mean 'pap@5'"),
        ("map", "did you mean 'ap'"),
        ("prec@3", "did you mean 'precision@3'"),
        ("mrr", "'rr'"),
        ("pap", "needs a cut-off"),
        ("ap@3", "no cut-off"),
        ("pap@0", "1 or more"),
        ("pap@-2", "1 or more"),
        ("pap@x", "1 or more"),
        ("pap@2.5", "whole number of 1 or more"),
        ("pap@99999999999999999999", "above 1000000000"),
        ("precision@4611686018427387904", "above 1000000000"),
        ("", "there is no metric"),
    ],
)
def test_bad_metric_names(name, told):
    with pytest.raises(InputError, match=told):
        metrics.per_user(name, [1.0, 0.0], [1, 0])


@pytest.mark.parametrize(
    ("discount", "told"),
    [
        ([1.0, -0.5], "-0.5 at rank 2"),
        ([1.0, np.nan], "nan at rank 2"),
        ([1.0], "append zeros"),
        ([0.0, 1.0], "0 at rank 1"),
        ("cubic", "does not exist"),
        (lambda r: 1.0, "one each"),
    ],
)
def test_bad_discounts(discount, told):
    with pytest.raises(InputError, match=told):
        metrics.per_user("ndcg", [1.0, 0.0], [1, 0], discount=discount)


def distinct_lists(seed=12, n_users=30):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_users), 12)
    scores = rng.permutation(groups.size).astype(float)
    labels = (rng.random(groups.size) < 0.4).astype(int)
    labels[::12], labels[1::12] = 1, 0
    return scores, labels, groups


def test_identities_between_metrics():
    scores, labels, groups = distinct_lists()
    n_pos, n_neg = np.bincount(groups, labels), np.bincount(groups, 1 - labels)
    table = metrics.evaluate(
        ["pap@4", "pauc@4", "auc", "precision@4", "recall@4"], scores, labels, groups
    )
    small = (n_pos <= 4) & (n_neg >= 4)
    assert small.sum() > 3
    np.testing.assert_allclose(table["pap@4"][small], table["pauc@4"][small], atol=1e-15)
    np.testing.assert_allclose(4 * table["precision@4"], n_pos * table["recall@4"], atol=1e-12)
    for u in range(5):
        mine = groups == u
        everything = metrics.per_user(f"pauc@{n_neg[u]}", scores[mine], labels[mine])
        np.testing.assert_allclose(everything, table["auc"][u], atol=1e-15)


def test_metrics_depend_on_order_only_and_loss_mirrors_win():
    rng = np.random.default_rng(13)
    scores, labels, groups = distinct_lists()
    base = metrics.evaluate(NAMES, scores, labels, groups).values
    again = metrics.evaluate(NAMES, np.exp(scores / 100) - 7, labels, groups).values
    np.testing.assert_array_equal(base, again)
    tied = rng.integers(0, 5, scores.size).astype(float)
    loss = metrics.per_user("auc", tied, labels, groups, ties="loss")
    mirrored = 1 - metrics.per_user("auc", -tied, labels, groups, ties="win")
    np.testing.assert_allclose(loss, mirrored, atol=1e-14)
    risk = metrics.per_user("auc", tied, labels, groups, gain=False)
    np.testing.assert_allclose(risk, 1 - loss, atol=1e-15)


def test_infinite_scores_order_as_usual():
    scores, labels = np.array([np.inf, 1.0, -np.inf, -np.inf]), [0, 1, 1, 0]
    finite = np.array([3.0, 2.0, 1.0, 1.0])
    for ties in TIES:
        np.testing.assert_array_equal(
            metrics.evaluate(NAMES, scores, labels, ties=ties).values,
            metrics.evaluate(NAMES, finite, labels, ties=ties).values,
        )
