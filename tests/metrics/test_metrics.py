import json
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from helpers import reference_metrics
from helpers.commands import run
from helpers.marks import slow, some_of
from helpers.reference_metrics import per_user
from helpers.values import values_of
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels
from structsvm_papk.metrics.conventions import PRESETS
from structsvm_papk.metrics.definitions import METRICS, Asked, Metric, cut_off, parse
from structsvm_papk.metrics.ranked_lists import build
from structsvm_papk.metrics.table import evaluate_lists

LIST_METRICS = (
    "pap@1", "pap@3", "pauc@2", "precision@1", "precision@4", "recall@2", "recall@9", "ap",
    "ndcg@2", "ndcg", "err@3", "rr", "auc@3", "auc@9", "hit@1", "hit@3",
)  # fmt: skip
NAMES = ("auc", *LIST_METRICS)
TIES = ("loss", "half", "win", "threshold")
GOLDEN = json.loads((Path(__file__).parent / "rectools_cases.json").read_text())["cases"]


def rows_of(case):
    scores, labels = np.concatenate(case["scores"]), np.concatenate(case["labels"])
    groups = np.repeat(np.arange(len(case["scores"])), [len(row) for row in case["scores"]])
    return scores, labels, groups


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['id']}-{case['kind']}")
@pytest.mark.parametrize("name", ["pap", "pauc"])
def test_recorded_rectools_case(case, name):
    metric, rows = f"{name}@{case['k']}", rows_of(case)
    options = {"preset": "rectools", "list_length": case["topn"]}
    for suffix, handling in (("", "ignore"), ("_exclude", "exclude")):
        table = metrics.evaluate(metric, *rows, insufficient_handling=handling, **options)
        for found, what in ((table[metric], ""), (table.mean(metric), "_mean")):
            expected = np.array(case[name + suffix + what], dtype=float)
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    short = pytest.raises(InputError, match="too short to decide")
    with short if case[f"{name}_raise"] else nullcontext():
        values_of(metric, *rows, insufficient_handling="raise", **options)


def test_scikit_learn_numbers_ties_and_grades_included():
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 12, (30, 25)).astype(float)
    labels = (rng.random((30, 25)) < 0.3).astype(int)
    labels[:, 0], labels[:, 1] = 1, 0
    rows = scores.ravel(), labels.ravel(), np.repeat(np.arange(30), 25)
    table = metrics.evaluate(["auc", "ap", "ndcg", "ndcg@5"], *rows, preset="sklearn")
    for own, y, s in zip(table.values, labels, scores, strict=True):
        expected = [roc_auc_score(y, s), average_precision_score(y, s)]
        expected += [ndcg_score(y[None], s[None], k=k) for k in (None, 5)]
        np.testing.assert_allclose(own, expected, rtol=0, atol=1e-12)
    grades = rng.integers(0, 4, (30, 25))
    grades[7] = 0  # a user without positives
    for k in (None, 3, 10, 40):
        name = "ndcg" if k is None else f"ndcg@{k}"
        table = metrics.evaluate([name], rows[0], grades.ravel(), rows[2], preset="sklearn")
        assert table[name][7] == 0.0 and table.summary(name).by_rule["no_positives"] == 1
        assert table.mean(name) == pytest.approx(ndcg_score(grades, scores, k=k), abs=1e-12)


def test_ndcg_over_all_places_divides_by_k_hits():
    scores, labels = -np.arange(6.0), np.array([0, 1, 0, 0, 1, 0])
    discount = 1 / np.log2(2 + np.arange(9))
    for k, hits in ((3, [1]), (5, [1, 4]), (9, [1, 4])):
        found = values_of(f"ndcg@{k}", scores, labels, ideal="all_places")[0]
        assert found == pytest.approx(discount[hits].sum() / discount[:k].sum(), abs=1e-14)
    whole = values_of("ndcg", scores, labels, preset="rectools")[0]
    assert whole == pytest.approx(discount[[1, 4]].sum() / discount[:6].sum(), abs=1e-14)
    with pytest.raises(InputError, match="binary relevance only"):
        values_of("ndcg", scores, 2 * labels, preset="rectools")


def example():
    """Users: ordinary; no positives; one negative only; all positive."""
    groups = np.repeat([10, 20, 30, 40], [4, 3, 3, 2])
    labels = np.array([1, 0, 0, 1, 0, 0, 0, 0, 1, 1, 1, 1])
    scores = -np.arange(12.0)
    return scores, labels, groups


def test_rules_for_users_without_positives_and_with_few_negatives():
    for rule, value in (("exclude", np.nan), ("nan", np.nan), ("zero", 0.0), ("one", 1.0)):
        table = metrics.evaluate(["pap@1", "ap"], *example(), no_positives=rule)
        np.testing.assert_array_equal(table["ap"][1], value)
        summary = table.summary("ap")
        assert summary.by_rule["no_positives"] == 1
        assert summary.n_users == 4
        assert summary.n_used == (3 if rule == "exclude" else 4)
        assert np.isnan(summary.value) == (rule == "nan")
    table = metrics.evaluate(["auc", "ap"], *example(), preset="sklearn")
    np.testing.assert_array_equal(table.values[1], [np.nan, 0.0])  # the area has a rule of its own
    for name, rule, words in (
        ("ap", {"no_positives": "raise"}, "user 20 without positives"),
        ("pap@3", {"few_negatives": "raise"}, r"3 users \(10, 30, 40\) with fewer than 3"),
    ):
        with pytest.raises(InputError, match=words):
            metrics.evaluate(name, *example(), **rule)


def test_a_pooled_mean_is_that_of_one_list_and_follows_its_rules():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(30), rng.integers(2, 30, 30))
    scores, labels = rng.normal(size=groups.size), (rng.random(groups.size) < 0.4).astype(int)
    rows = scores, labels, groups
    table = metrics.evaluate(["auc"], *rows, mean="pooled")
    assert table.mean("auc") == pytest.approx(roc_auc_score(labels, scores), abs=1e-13)
    with pytest.raises(InputError, match="pooled mean is not made of users' values"):
        table.take(np.ones(30, dtype=bool))
    with pytest.raises(InputError, match="it has auc"):
        table.mean("ap")
    names, rows = ["ap", "pap@1", "auc", "ndcg"], ([3.0, 2, 1], [0, 0, 0], [1, 1, 2])
    for rule, value in (("exclude", np.nan), ("nan", np.nan), ("zero", 0.0), ("one", 1.0)):
        table = metrics.evaluate(names, *rows, mean="pooled", no_positives=rule)
        for name in names:
            np.testing.assert_array_equal(table.mean(name), value)
            assert table.summary(name).n_used == (0 if np.isnan(value) else 2)
    rows = [3.0, 2, 1], [0, 1, 1], [1, 1, 2]
    for few, value in (("exclude", np.nan), ("normalise", 0.0), ("as_wins", 2 / 3)):
        table = metrics.evaluate(["pap@3"], *rows, mean="pooled", few_negatives=few)
        np.testing.assert_allclose(table.mean("pap@3"), value)


def test_summaries_and_frames_of_a_table():
    scores, labels, groups = example()
    scores = np.maximum(scores, -0.5) - (scores < -1)
    table = metrics.evaluate(["pap@2", "auc"], scores, labels, groups)
    assert table.summary("pap@2").by_rule == {"no_positives": 1, "ties": 2, "few_negatives": 2}
    assert table.summary("auc").by_rule == {"no_positives": 1, "ties": 2, "no_negatives": 1}
    assert "2 with few_negatives" in str(table)
    assert table.summary("pap@2").as_dict()["conventions"]["ties"] == "loss"
    assert table.to_pandas()["user"].tolist() == [10, 20, 30, 40]


DISCOUNTS = {
    "log": lambda r: 1 / np.log2(1 + r), "zipf": lambda r: 1 / r, "r^-0.5": lambda r: r**-0.5,
    "exp": lambda r: 2.0**-r,
}  # fmt: skip


def test_truncation_refuses_what_it_cannot_know():
    with pytest.raises(InputError, match="complete lists"):
        values_of("auc", [2.0, 1.0], [1, 0], list_length=1)
    with pytest.raises(InputError, match="cuts through equal scores of user 0"):
        values_of("ap", [1.0, 1.0], [1, 0], list_length=1, ties="half")
    with pytest.raises(InputError, match="pooled mean needs complete lists"):
        metrics.evaluate(["ap"], [2.0, 1.0], [1, 0], list_length=1, mean="pooled")


def random_users(rng):
    """A few users in random order: scores, labels, groups, and the places shown of each."""
    sizes = rng.integers(1, 7, rng.integers(1, 6))
    groups = np.repeat(np.arange(sizes.size), sizes)[rng.permutation(sizes.sum())]
    scores = rng.integers(0, 3, groups.size) * rng.choice([1.0, -0.5, 1e300])
    relevant = rng.random(groups.size) < rng.choice([0.2, 0.5, 0.9])
    labels = relevant * rng.integers(1, rng.choice([2, 4]), groups.size)  # binary or graded
    return scores, labels, groups, rng.integers(0, 8, sizes.size).tolist()


@pytest.mark.parametrize("seed", [0, *map(slow, (1, 2, 3))])
def test_random_rules_on_whole_and_truncated_lists_agree_with_their_definitions(seed):
    rng = np.random.default_rng(seed)
    checked = 0
    while checked < some_of(50):
        scores, labels, groups, lengths = random_users(rng)
        rules = {
            "ties": rng.choice(TIES),
            "few_negatives": rng.choice(["exclude", "normalise", "as_wins"]),
            "no_positives": rng.choice(["exclude", "zero", "one"]),
        }
        mean, discount = rng.choice(["user", "positives", "pairs"]), str(rng.choice([*DISCOUNTS]))
        names = LIST_METRICS
        if rng.random() < 0.4:  # whole lists
            names, lengths = NAMES, None
        rows = names, scores, labels, groups
        how = rules | {"list_length": lengths, "mean": mean, "relevance_threshold": 1}
        how, rules["discount"] = how | {"discount": DISCOUNTS[discount]}, DISCOUNTS[discount]
        users = [
            [(s, y > 0, y) for s, y in zip(scores[mine], labels[mine], strict=True)]
            for mine in groups == np.unique(groups)[:, None]
        ]
        cut = any(
            len({tuple(sorted(order[:n])) for order in reference_metrics.orders(user, "half")}) > 1
            for user, n in zip(users, lengths or [None] * len(users), strict=True)
        )
        if cut and rules["ties"] in ("half", "threshold"):
            with pytest.raises(InputError, match="cuts through equal scores"):
                metrics.evaluate(*rows, **how)
            continue
        checked += 1
        table = metrics.evaluate(*rows, **how)
        n_pos, sizes = np.array([(sum(row[1] for row in user), len(user)) for user in users]).T
        weights = {"user": n_pos**0, "positives": n_pos, "pairs": n_pos * (sizes - n_pos)}[mean]
        for name in names:
            values = np.array(per_user(name, scores, labels, groups, lengths, **rules))
            np.testing.assert_allclose(table[name], values, rtol=0, atol=2e-15)
            used = ~np.isnan(values)
            total = weights[used].sum()
            wanted = weights[used] @ values[used] / total if total else np.nan
            np.testing.assert_allclose(table.mean(name), wanted, atol=4e-15)


WEB = [4, 2, 2, 4, 0, 3, 1, 0, 1, 0, 2, 3, 1, 3, 4, 0, 4, 1, 0, 1, 3, 2, 1, 3, 1]


@pytest.mark.parametrize(
    ("grades", "k", "err", "ndcg"),
    [  # printed by gdeval.pl of TREC's web track
        ([4, 0, 0], 10, "0.93750", "1.00000"),
        ([0, 0, 0, 0, 0, 1], 20, "0.01042", "0.35621"),
        ([3, 2, 3, 0, 1, 2], 2, "0.49023", "0.77894"),
        ([3, 2, 3, 0, 1, 2], 20, "0.56763", "0.94881"),
        ([1] * 30, 10, "0.15886", "1.00000"),
        (WEB, 2, "0.94336", "0.69052"),
        (WEB, 10, "0.95641", "0.54712"),
        (WEB, 20, "0.95651", "0.73421"),
    ],
)
def test_err_and_exponential_ndcg_are_those_of_gdeval(grades, k, err, ndcg):
    scores = -np.arange(len(grades), dtype=float)
    names = [f"err@{k}", f"ndcg@{k}"]
    table = metrics.evaluate(names, scores, grades, gains="exponential")
    assert [f"{value:.5f}" for value in table.values[0]] == [err, ndcg]


def test_gains_and_discounts_of_functions():
    rng = np.random.default_rng(6)
    scores, labels = rng.permutation(8.0 * np.arange(6)), np.array([3, 0, 1, 2, 0, 4])
    expected = per_user("ndcg@4", scores, 2.0**labels - 1, discount=lambda r: 1 / r**2)
    for gains in ("exponential", lambda y: 2.0**y - 1):
        how = {"discount": lambda r: r**-2.0, "gains": gains}
        found = values_of("ndcg@4", scores, labels, **how)
        assert found == pytest.approx(expected, abs=1e-14)
    with pytest.raises(InputError, match="that of the label 1500 is inf"):  # and no warning
        metrics.evaluate("ndcg@4", scores, 500 * labels, gains="exponential")


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
    graded = [values_of("ndcg", scores[r], 2 * labels[r], groups[r]) for r in (order, order[::-1])]
    np.testing.assert_array_equal(*graded)


def test_lists_by_bounds_thresholds_and_scores_without_end():
    values = metrics.evaluate(["auc", "ndcg"], [3.0, 2, 1], [1, 0, 1], indptr=[0, 0, 3, 3]).values
    np.testing.assert_array_equal(values[[0, 2]], np.nan)
    assert values[1, 0] == 0.5
    graded = values_of("ndcg", [3.0, 2.0, 1.0], [0, 0, 2], indptr=[0, 0, 3, 3])
    np.testing.assert_allclose(graded, [np.nan, 0.5, np.nan])
    scores = [5.0, 4, 3, 2]
    table = metrics.evaluate(["auc", "ap", "ndcg"], scores, [1, 5, 2, 4], relevance_threshold=4)
    assert (table["auc"][0], table["ap"][0]) == (0.25, 0.5)
    assert table.conventions.relevance_threshold == table.relevance_threshold == 4
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
        ({"metrics": "app"}, "did you mean 'ap'"),
        ({"metrics": "pap"}, "needs a cut-off"),
        ({"metrics": "bpref@3"}, "no cut-off"),
        ({"metrics": "pap@0"}, "1 or more"),
        ({"metrics": "err@3", "labels": [5, 0, 1]}, "grades from 0 to 4, and a label is 5"),
        ({"metrics": "pap@2.5"}, "whole number of 1 or more"),
        ({"metrics": "precision@4611686018427387904"}, "above 1000000000"),
        ({"metrics": ""}, "there is no metric"),
        ({"metrics": "ndcg", "discount": lambda r: 2.5 - 1.5 * r}, "-0.5 at rank 2"),
        ({"metrics": "ndcg", "discount": lambda r: r - 1}, "0 at rank 1"),
        ({"metrics": "ndcg", "discount": lambda r: 1.0}, "one each"),
    ],
)  # fmt: skip
def test_bad_input_is_named(change, told):
    arguments = {"metrics": ["ap"], "scores": [1.0, 0.0, 0.5], "labels": [0, 1, 1]} | change
    with pytest.raises(InputError, match=told):
        metrics.evaluate(**arguments)


# --- the table of metrics -------------------------------------------------------------------------


def test_every_metric_is_held_against_a_definition():
    beside_pairs = {"ap@k", "rr@k", "rprec", "bpref", "judged@k"}  # in `test_relevant`
    here = {parse(name).metric.name for name in NAMES}
    assert here | beside_pairs == {metric.name for metric in METRICS}


def test_every_row_is_found_by_its_names_and_described(capsys):
    assert run("evaluate", "--help") == 0
    shown = "".join(capsys.readouterr().out.split())
    for metric in METRICS:
        assert metric.name in shown
        assert metric.meaning in metrics.__doc__
        assert metric.meaning.endswith(".")
        for name in (metric.name, *metric.also):
            asked = parse(name.replace("@k", "@7"))
            assert asked.metric is metric
            assert asked.k == (7 if metric.name.endswith("@k") else None)
    with pytest.raises(InputError, match=r"did you mean 'ndcg@3'\?.*auc@k \(auroc@k\)"):
        parse("ndgc@3")
    for name in ("ndcg@3;ap", "ndcg@3 ap", "ndcg@3 | ap"):
        with pytest.raises(InputError, match=r"with commas on the command line: ndcg@3,ap$"):
            parse(name)


def test_a_metric_is_a_kernel_and_a_row():
    """Reciprocal rank, as if it were new, and hit@2, by its kernel with another divisor."""
    first = Metric("first", "1 / place of the first hit.", _kernels.first_hits, cut_off)
    half = Metric("half@k", "Half of hit@k.", _kernels.any_hits, cut_off, lambda *_: 2.0)
    asked = [Asked("first", first, None), Asked("half@2", half, 2), parse("rr"), parse("hit@2")]
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(6), 10)
    rows = build(rng.normal(size=60), rng.integers(0, 2, 60), users)
    table = evaluate_lists(asked, rows, PRESETS["icml2020"])
    np.testing.assert_array_equal(table["first"], table["rr"])
    np.testing.assert_array_equal(table["half@2"], table["hit@2"] / 2)
