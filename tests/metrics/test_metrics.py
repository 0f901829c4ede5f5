from fractions import Fraction
from math import comb

import numpy as np
import pytest

from helpers.reference_metrics import per_user
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import discounts

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
        ({"labels": [0, 1]}, "3 rows"),
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
        ({"no_positives": "skip"}, "exclude"),
        ({"metrics": "map"}, "did you mean 'ap'"),
        ({"metrics": "prec@3"}, "did you mean 'precision@3'"),
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
