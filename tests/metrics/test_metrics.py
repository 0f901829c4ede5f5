from fractions import Fraction
from math import comb

import numpy as np
import pytest

from helpers.reference_metrics import per_user
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import discounts, ndcg_limit

NAMES = (
    "pap@3",
    "pauc@2",
    "auc",
    "precision@4",
    "recall@3",
    "ap",
    "ndcg@3",
    "rr",
    "auc@3",
    "hit@3",
)
TIES = ("loss", "half", "win", "threshold")


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


@pytest.mark.filterwarnings("ignore::structsvm_papk.metrics.discounts.NoLimitWarning")
def test_gains_and_discounts_in_several_forms_and_a_warning_where_the_sum_is_finite():
    rng = np.random.default_rng(6)
    scores, labels = rng.permutation(8.0 * np.arange(6)), np.array([3, 0, 1, 2, 0, 4])
    expected = per_user("ndcg@4", scores, 2.0**labels - 1, discount=lambda r: 1 / r**2)
    for discount in (1 / np.arange(1, 7) ** 2, lambda r: r**-2.0, "r^-2"):
        for gains in ("exponential", lambda y: 2.0**y - 1):
            found = metrics.per_user("ndcg@4", scores, labels, discount=discount, gains=gains)
            assert found == pytest.approx(expected, abs=1e-14)
    for discount in ("exp", "r^-1.1"):
        with pytest.warns(discounts.NoLimitWarning, match="NDCG has no limit"):
            metrics.per_user("ndcg@2", [2.0, 1.0], [0, 1], discount=discount)


def test_threads_orders_of_rows_and_kinds_of_ids_do_not_change_a_number():
    rng = np.random.default_rng(9)
    groups = rng.integers(0, 350, 30_000) * 2
    scores, labels = rng.integers(0, 90, groups.size).astype(float), rng.random(groups.size) < 0.2
    base = metrics.evaluate(NAMES, scores, labels, groups, n_threads=1).values
    order = np.argsort(groups, kind="stable")  # in which nothing is sorted
    for ids, rows in (
        *((groups, order[rng.permutation(order.size)]) for _ in range(2)),
        (groups, order),
        (np.array([f"u{g:06d}" for g in groups]), order),
        (groups * 10**12, slice(None)),
        (groups.astype(float), slice(None)),
        ((groups - 350).astype(np.int16), slice(None)),
        (groups.astype(np.uint64) + np.uint64(2**63), slice(None)),
    ):
        again = metrics.evaluate(NAMES, scores[rows], labels[rows], ids[rows], n_threads=3)
        np.testing.assert_array_equal(again.values, base)
        np.testing.assert_array_equal(again.users, np.unique(ids))
    graded = [
        metrics.per_user("ndcg", scores[r], 2 * labels[r], groups[r]) for r in (order, order[::-1])
    ]
    np.testing.assert_array_equal(*graded)


def test_lists_by_bounds_thresholds_and_scores_without_end():
    values = metrics.evaluate(["auc", "ndcg"], [3.0, 2, 1], [1, 0, 1], indptr=[0, 0, 3, 3]).values
    np.testing.assert_array_equal(values[[0, 2]], np.nan)
    assert values[1, 0] == 0.5
    graded = metrics.per_user("ndcg", [3.0, 2.0, 1.0], [0, 0, 2], indptr=[0, 0, 3, 3])
    np.testing.assert_allclose(graded, [np.nan, 0.5, np.nan])
    scores = [5.0, 4, 3, 2]
    table = metrics.evaluate(["auc", "ap", "ndcg"], scores, [1, 5, 2, 4], relevance_threshold=4)
    assert (table["auc"][0], table["ap"][0]) == (0.25, 0.5)
    assert table["ndcg"] == pytest.approx(per_user("ndcg", scores, [1, 5, 2, 4]))
    for ties in TIES:
        for other in ([np.inf, 1.0, -np.inf, -np.inf], [20.0, 0.1, -3, -3]):
            np.testing.assert_array_equal(
                metrics.evaluate(NAMES, other, [0, 1, 1, 0], ties=ties).values,
                metrics.evaluate(NAMES, [3.0, 2, 1, 1], [0, 1, 1, 0], ties=ties).values,
            )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"scores": [np.nan, 1.0, np.nan], "groups": ["b", "a", "c"]}, "rows 0, 2 of users b, c"),
        ({"labels": [0, np.inf, 1], "groups": [7, 7, 7]}, "row 1 of user 7"),
        ({"labels": [0, 2, 1]}, "not binary: 2 in row 1"),
        ({"groups": [1, 2]}, "3 rows"),
        ({"groups": "one list"}, "an array with the user of each row, or 'one_list'"),
        ({"groups": [1, 1, 1], "indptr": [0, 3]}, "either groups or indptr"),
        ({"indptr": [0, 2]}, "number of rows"),
        ({"scores": []}, "no rows"),
        ({"metrics": []}, "at least one"),
        ({"metrics": ["ap", "ap"]}, "twice: ap"),
        ({"list_length": 0.5}, "whole numbers"),
        ({"list_length": -1}, "negative for user"),
        ({"ties": "lose"}, "loss, half, win"),
        ({"preset": "rectool"}, "icml2020"),
        ({"metrics": "map"}, "did you mean 'ap'"),
        ({"metrics": "pap"}, "needs a cut-off"),
        ({"metrics": "ap@3"}, "no cut-off"),
        ({"metrics": "pap@0"}, "1 or more"),
        ({"metrics": "pap@2.5"}, "whole number of 1 or more"),
        ({"metrics": "precision@4611686018427387904"}, "above 1000000000"),
        ({"metrics": ""}, "there is no metric"),
        ({"metrics": "ndcg", "discount": [1.0, -0.5, 0]}, "-0.5 at rank 2"),
        ({"metrics": "ndcg", "discount": [1.0]}, "append zeros"),
        ({"metrics": "ndcg", "discount": [0.0, 1.0, 0]}, "0 at rank 1"),
        ({"metrics": "ndcg", "discount": "cubic"}, "does not exist"),
        ({"metrics": "ndcg", "discount": lambda r: 1.0}, "one each"),
    ],
)  # fmt: skip
def test_bad_input_is_named(change, told):
    arguments = {"metrics": ["ap"], "scores": [1.0, 0.0, 0.5], "labels": [0, 1, 1]} | change
    with pytest.raises(InputError, match=told):
        metrics.evaluate(**arguments)


def test_other_names_of_metrics():
    scores, labels = np.round(np.random.default_rng(0).random(60), 1), np.tile([1, 0, 0], 20)
    names = ["auroc", "auc", "AUPRC", "ap", "auroc@5", "auc@5"]
    table = metrics.evaluate(names, scores, labels, "one_list")
    np.testing.assert_array_equal(table.values[0, ::2], table.values[0, 1::2])


GRADED = {3: lambda s: 0.05 + 0.3 * s**2, 1: lambda s: 0.25}


def linear(s):
    return 0.1 + 0.5 * s


@pytest.mark.parametrize(
    ("discount", "cutoff", "relevance", "expected"),
    [
        ("log", None, linear, 1.0),
        ("log", None, GRADED, 1.0),
        ("r^-0.5", None, linear, 0.7325),
        ("zipf", None, linear, 0.6),
        ("log", "slow", linear, 0.6),
        ("log", 0.2, linear, 0.55),
        ("r^-0.5", 0.2, linear, 0.5667),
        ("r^-0.5", 1.0, GRADED, 0.6254),
        ("log", "slow", GRADED, 0.4333),
        ("log", 0.3, GRADED, 0.5285),
        ("exp", None, lambda s: s, 1.0),
        ("log", 10, lambda s: 1 - s, 0.0),
        ("r^-2", "slow", {2: lambda s: 0 * s, 1: lambda s: s}, 1.0),
    ],
)
def test_limits(discount, cutoff, relevance, expected):
    assert ndcg_limit(discount, cutoff, relevance) == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize(
    ("discount", "cutoff", "relevance"),
    [("log", None, linear), ("r^-0.5", 0.3, GRADED), ("zipf", 50, linear), ("log", 50, GRADED)],
)
def test_what_finite_lists_have_on_average(discount, cutoff, relevance):
    rng, n, n_lists = np.random.default_rng(0), 1000, 300
    s = rng.random(n * n_lists)
    u, y = rng.random(s.size), np.zeros(s.size)
    for level, chance in sorted(
        (relevance if isinstance(relevance, dict) else {1: relevance}).items()
    ):
        y[(u >= 0) & (u < chance(s))] = level
        u -= chance(s)
    k = cutoff if cutoff is None or cutoff >= 1 else round(cutoff * n)
    name, starts = "ndcg" if k is None else f"ndcg@{k}", np.arange(0, s.size + 1, n)
    values = metrics.per_user(name, s, y, indptr=starts, discount=discount)
    expected = ndcg_limit(discount, cutoff, relevance, n_items=n)
    assert values.mean() == pytest.approx(expected, abs=5 * values.std() / n_lists**0.5 + 2e-3)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("exp", None, linear), "no limit here: .* unless the relevance"),
        (("r^-1.5", 0.2, linear), "no limit here"),
        (("log", 10, linear), "no limit here"),
        (([1.0, 0.5], None, linear), "limits are known for the discounts"),
        (("log", 0.0, linear), "cutoff=0.0 must be a share"),
        (("log", True, linear), "cutoff=True must be"),
        (("log", "fast", linear), "cutoff='fast' must be"),
        (("log", None, 0.5), "must be a function"),
        (("log", None, {0: linear}), "level of relevance must be a number above 0"),
        (("log", None, {1: linear, 2: linear}), "in sum at most 1"),
        (("log", None, lambda s: s - 0.5), "must be probabilities"),
        (("log", None, lambda s: 0 * s), "not all 0"),
        (("log", "slow", linear, 100), "how many of n_items places"),
        (("log", None, linear, 0), "n_items must be a whole number"),
    ],
)
def test_what_has_no_limit_and_what_is_no_relevance(arguments, words):
    with pytest.raises(InputError, match=words):
        ndcg_limit(*arguments)
