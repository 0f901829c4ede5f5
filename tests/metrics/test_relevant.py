"""Lists beside all relevant pairs: definitions written out, and the numbers of trec_eval."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from helpers.marks import slow
from helpers.reference_metrics import metric
from structsvm_papk import metrics
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.relevant import in_trec_eval_order

NAMES = ["ndcg@5", "ndcg", "recall@5", "precision@5", "hit@5", "ap", "rr", "pap@3", "pauc@3"]


def drawn(seed=0, n_users=30, n_items=40, text=False):
    """Lists of a catalogue without ties, and graded pairs, some in no list and some of nobody."""
    rng = np.random.default_rng(seed)
    rows = []
    pairs = []
    for user in range(n_users):
        listed = rng.permutation(n_items)[: rng.integers(1, 15)]
        scores = rng.permutation(listed.size) + 0.0
        if user % 10 != 3:  # some users are judged only
            rows += [(user, item, score) for item, score in zip(listed, scores, strict=True)]
        judged = rng.permutation(n_items)[: rng.integers(0, 12)]
        if user % 10 != 4:  # of some, nothing is known
            pairs += [(user, item, grade) for item, grade in
                      zip(judged, rng.integers(-1, 4, judged.size), strict=True)]  # fmt: skip
    lists = pd.DataFrame(rows, columns=["user", "item", "score"])
    relevant = pd.DataFrame(pairs, columns=["user", "item", "grade"])
    order = rng.permutation(len(lists))
    lists = lists.iloc[order].reset_index(drop=True)
    if text:
        lists = lists.astype({"user": str, "item": str})
        relevant = relevant.astype({"user": str, "item": str})
    return lists, relevant


def by_definition(name, ranked, grades):
    """One user's value: `ranked` are the items of the list, best first, `grades` all known ones.

    What the list misses stands behind it, where nothing is shown, and so do negatives.
    """
    missed = [item for item in grades if item not in ranked]
    rows = [
        (-place, grades.get(item, 0) > 0, max(grades.get(item, 0), 0))
        for place, item in enumerate([*ranked, *missed, *range(-9, 0)])
    ]
    rules = {"ties": "loss", "few_negatives": "exclude", "no_positives": "nan"}
    return float(metric(name, rows, rules, length=len(ranked)))


def expected(name, lists, relevant, users):
    values = []
    for user in users:
        own = lists[lists.user == user].sort_values("score", ascending=False)
        known = relevant[relevant.user == user]
        values.append(
            by_definition(name, list(own.item), dict(zip(known.item, known.grade, strict=True)))
        )
    return np.array(values)


@pytest.mark.parametrize("seed", [0, *map(slow, (1, 2, 3))])
@pytest.mark.parametrize("text", [False, True])
def test_every_function_gives_the_number_of_the_definition(seed, text):
    lists, relevant = drawn(seed, text=text)
    users = sorted({*lists.user, *relevant.user})
    arrays = metrics.evaluate(
        NAMES, lists.score, groups=lists.user, items=lists.item, relevant=relevant,
        population="either",
    )  # fmt: skip
    framed = metrics.evaluate_frame(
        lists, NAMES, user="user", item="item", relevant=relevant, population="either"
    )
    ranks = lists.groupby("user").score.rank(ascending=False).astype(int)
    recommended = metrics.evaluate_frame(
        lists.assign(rank=ranks), NAMES, user="user", item="item", rank="rank", relevant=relevant,
        population="either",
    )  # fmt: skip
    assert list(arrays.users) == users
    for name in NAMES:
        truth = expected(name, lists, relevant, users)
        for table in (arrays, framed, recommended):
            np.testing.assert_allclose(table[name], truth, rtol=1e-13, atol=1e-15, err_msg=name)
            assert table.mean(name) == pytest.approx(np.nanmean(truth), rel=1e-13)


def test_what_no_list_holds_counts_and_the_table_says_so():
    lists, relevant = drawn(1)
    lists = lists[lists.user.isin(relevant.user)]
    grade = relevant.set_index(["user", "item"]).grade
    labels = [max(grade.get(pair, 0), 0) for pair in zip(lists.user, lists.item, strict=True)]
    rows = (lists.score, labels, lists.user)
    candidates = metrics.evaluate(["ndcg@5", "recall@5"], *rows, relevance_threshold=1)
    whole = metrics.evaluate(
        ["ndcg@5", "recall@5"], *rows, items=lists.item, relevant=relevant, population="listed"
    )
    assert candidates.mean("recall@5") > whole.mean("recall@5") + 0.2
    assert candidates.mean("ndcg@5") > whole.mean("ndcg@5") + 0.1
    assert "relevant items: of the candidates" in str(candidates)
    n_pairs = whole.relevance.n_pairs
    counted = relevant[relevant.user.isin(lists.user) & (relevant.grade > 0)]
    held = pd.MultiIndex.from_frame(lists[["user", "item"]])
    missed = (~pd.MultiIndex.from_frame(counted[["user", "item"]]).isin(held)).sum()
    assert n_pairs == len(counted)
    assert whole.relevance.n_missed == missed
    assert f"all {n_pairs} known, {missed} of them in no list" in str(whole)


@pytest.mark.parametrize("population", ["listed", "judged", "both", "either"])
def test_who_counts(population):
    lists, relevant = drawn(2)
    listed = {*lists.user}
    judged = {*relevant.user}
    users = {"listed": listed, "judged": judged, "both": listed & judged, "either": listed | judged}
    table = metrics.evaluate_frame(
        lists, "rr", user="user", item="item", relevant=relevant, population=population,
        no_positives="zero",
    )  # fmt: skip
    assert list(table.users) == sorted(users[population])
    truth = np.nan_to_num(expected("rr", lists, relevant, table.users))
    np.testing.assert_allclose(table["rr"], truth)


def test_minus_infinity_in_a_list_is_above_what_the_list_misses():
    table = metrics.evaluate(
        ["ndcg", "hit@3"], [-np.inf, 1.0], groups=[1, 1], items=[5, 6],
        relevant={"user": [1, 1], "item": [5, 7], "grade": [1, 1]}, ties="half",
    )  # fmt: skip
    assert table.mean("ndcg") == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"items": None}, "need items="),
        ({"groups": None}, "need groups="),
        ({"groups": "one_list"}, "need groups="),
        ({"relevant": {"user": [1], "item": ["a"]}}, "numbers in one table and text"),
        ({"relevant": {"user": [1], "grade": [1]}}, "no column 'item'"),
        ({"relevant": {"user": [1, 1], "item": [5, 5]}}, "occurs in row 0 and in row 1 of the rel"),
        ({"items": [5, 5, 6]}, "item 5 of user 1 occurs in row 0 and in row 1"),
        ({"relevant": [1, 2]}, "a pandas or polars frame"),
        ({"indptr": [0, 2, 3]}, "need groups=, not indptr="),
        ({"list_length": [2]}, "list_length has shape"),
        ({"metrics": "auc"}, "auc needs complete lists"),
        ({"relevant": {"user": [9], "item": [5]}, "population": "both"}, "no user counts"),
        ({"relevant": {"user": [9], "item": [5]}, "population": "either"}, "no user counts"),
        ({"relevant": {"user": [9], "item": [5]}}, "no user counts"),
        ({"population": "some"}, "population='some' is not known"),
        ({"ties": "trec_eval", "relevant": None, "items": None, "labels": [1, 0, 0]}, "items="),
        ({"relevant": None}, "labels are missing"),
    ],
)  # fmt: skip
def test_what_is_refused(change, message):
    given = {
        "metrics": "rr", "scores": [3.0, 2.0, 1.0], "groups": [1, 1, 2], "items": [5, 6, 5],
        "relevant": {"user": [1], "item": [5]},
    }  # fmt: skip
    error = TypeError if change.get("relevant") == [1, 2] else InputError
    with pytest.raises(error, match=message):
        metrics.evaluate(**given | change)


# --- trec_eval ------------------------------------------------------------------------------------

RECORDED = json.loads((Path(__file__).parent / "trec_eval_means.json").read_text())
TREC = RECORDED["metrics"]  # by pytrec_eval


def with_ties(seed=0, n_queries=25):
    """Scores that tie exactly and in single precision only, and judgments of some queries."""
    rng = np.random.default_rng(seed)
    rows = []
    judged = []
    for query in range(n_queries):
        documents = rng.permutation(200)[:30]
        scores = rng.integers(0, 6, documents.size) + rng.integers(-1, 2, documents.size) * 1e-10
        rows += [(f"q{query}", f"d{d}", s) for d, s in zip(documents, scores, strict=True)]
        if query % 8 == 5:
            continue
        known = rng.permutation(200)[:60]
        grades = rng.choice([-1, 0, 1, 2, 3], known.size, p=[0.1, 0.5, 0.2, 0.1, 0.1])
        judged += [(f"q{query}", f"d{d}", g if query % 8 != 6 else 0)
                   for d, g in zip(known, grades, strict=True)]  # fmt: skip
    judged += [("only judged", "d1", 1), ("judged in vain", "d1", 0)]
    run = pd.DataFrame(rows, columns=["query", "document", "score"])
    return run, pd.DataFrame(judged, columns=["query", "document", "grade"])


def ours(run, judgments, **how):
    return metrics.evaluate_frame(
        run, TREC, user="query", item="document", relevant=judgments, preset="trec_eval", **how
    )


def nested(frame):
    queries = {}
    for query, document, value in frame.itertuples(index=False):
        queries.setdefault(query, {})[document] = value
    return queries


@pytest.mark.parametrize("seed", range(3))
def test_the_numbers_of_trec_eval_recorded(seed):
    run, judgments = with_ties(seed)
    table = ours(run, judgments)
    complete = ours(run, judgments, population="judged")
    for found, population in ((table, "listed"), (complete, "judged")):
        means = [found.mean(name) for name in TREC]
        assert means == pytest.approx(RECORDED["drawn"][seed][population], abs=1e-9)
    assert table.relevance.n_without_list == 1
    assert table.relevance.n_unjudged == 3
    assert table.summary("ap").by_rule["ties"] > 15


def test_equal_in_single_precision_is_ordered_by_the_text_of_the_item():
    order = in_trec_eval_order(np.array([1.0, 1.0 + 1e-10, 1.0, 2.0]), np.array([9, 10, 8, 1]))
    assert order.tolist() == [2.0, 0.0, 1.0, 3.0]
    text = in_trec_eval_order(np.zeros(4), np.array(["Z", "a", "\u00fc", "z"]))
    assert text.tolist() == [0.0, 1.0, 3.0, 2.0]


def test_ties_by_item_without_pairs():
    table = metrics.evaluate(
        "rr", [1.0, 1.0, 1.0], [0, 1, 0], [7, 7, 7], items=["a", "b", "c"], preset="trec_eval"
    )
    assert table.mean("rr") == 0.5
    assert table.summary("rr").by_rule["ties"] == 1


def rounded(run):
    """The run with many ties."""
    return run.assign(score=run["score"].round(0))


@pytest.mark.parametrize("name", ["bm25", slow("repllama"), slow("splade")])
@pytest.mark.parametrize("change", ["as it is", "rounded"])
def test_real_runs_have_the_numbers_of_trec_eval(name, change):
    sample = retrieval_runs().test
    run = sample.runs[name] if change == "as it is" else rounded(sample.runs[name])
    table = ours(run, sample.judgments)
    means = [table.mean(metric) for metric in TREC]
    assert means == pytest.approx(RECORDED["runs"][f"{name}, {change}"], abs=1e-9)


# --- judgments of other columns ------------------------------------------------------------------

SHOWN = pd.DataFrame({"user": 1, "item": [7, 8, 9], "rank": [1, 2, 3], "score": [0.3, 0.2, 0.1]})


def values_beside(pairs, **how):
    """Reciprocal rank beside pairs, by every road; item 8, in place 2, is the first relevant."""
    framed = metrics.evaluate_frame(SHOWN, "rr", user="user", item="item", relevant=pairs, **how)
    values = [framed.mean("rr")]
    if not how:
        rows = (SHOWN.score, None, SHOWN.user)
        whole = metrics.evaluate("rr", *rows, items=SHOWN.item, relevant=pairs)
        values.append(whole.mean("rr"))
    return values


@pytest.mark.parametrize(
    "name", ["grade", "relevance", "rel", "label", "rating", "judgment", "score", "Relevance_Grade"]
)
def test_a_grade_is_read_by_its_usual_names(name):
    pairs = pd.DataFrame({"user": 1, "item": [7, 8], name: [0, 1]})
    assert values_beside(pairs) == [0.5] * 2


@pytest.mark.parametrize("name", ["stars", "gain", "weight", "value", "relevance_score"])
def test_a_column_that_may_be_the_grade_is_refused_unless_it_is_named(name):
    pairs = pd.DataFrame({"user": 1, "item": [7, 8], name: [0, 1]})
    for call in (
        lambda: metrics.evaluate_frame(SHOWN, "rr", user="user", item="item", relevant=pairs),
        lambda: metrics.evaluate(
            "rr", SHOWN.score, None, SHOWN.user, items=SHOWN.item, relevant=pairs
        ),
    ):
        with pytest.raises(InputError, match=f"which column is the grade.*there are '{name}'"):
            call()
    assert values_beside(pairs, grade=name) == [0.5]


def test_pairs_with_ids_and_times_beside_them_are_all_relevant():
    pairs = pd.DataFrame({"user": 1, "item": [8], "timestamp": [5], "session_id": [3]})
    assert values_beside(pairs) == [0.5] * 2


def test_items_that_never_meet_are_warned_of():
    pairs = pd.DataFrame({"user": 1, "item": ["7 ", "8 "]})
    shown = SHOWN.astype({"item": str})
    with pytest.warns(
        UserWarning, match=r"none of the 3 items.*have '7', '8', '9', the pairs '7 '"
    ):
        metrics.evaluate_frame(shown, "rr", user="user", item="item", relevant=pairs)
    pairs = pd.DataFrame({"user": 1, "item": [999]})
    with pytest.warns(UserWarning, match="none of the 3 items"):
        metrics.evaluate_frame(SHOWN, "rr", user="user", item="item", rank="rank", relevant=pairs)


def test_many_lists_without_a_hit_are_warned_of_and_a_few_are_not():
    def value(n_users):
        shown = pd.DataFrame({"user": range(n_users), "item": 1, "score": 1.0})
        liked = pd.DataFrame({"user": range(n_users), "item": 2})
        liked = pd.concat([liked, pd.DataFrame({"user": [n_users], "item": [1]})])
        table = metrics.evaluate_frame(
            shown, "rr", user="user", item="item", relevant=liked, population="listed"
        )
        return table.mean("rr")

    assert value(3) == 0.0
    with pytest.warns(UserWarning, match="none of the 30 items"):
        assert value(30) == 0.0


# --- metrics of what was judged, at a cut, against their definitions ------------------------------

MORE = ["map@10", "mrr@3", "rprec", "bpref", "judged@10", "judged@50"]


def trec_order(rows):
    """Documents of (document, score) as trec_eval sorts them."""
    return [d for d, s in sorted(rows, key=lambda row: (np.float32(row[1]), row[0]), reverse=True)]


def by_trec_eval(name, ranked, grades):
    """One query: `ranked` documents, best first, `grades` of all that are in the judgments."""
    kind, _, k = name.partition("@")
    k = int(k) if k else len(ranked)
    relevant = {d for d, g in grades.items() if g >= 1}
    n_not = sum(g == 0 for g in grades.values())
    if kind == "judged":
        return sum(d in grades for d in ranked[:k]) / min(k, len(ranked))
    if not relevant:
        return 0.0
    if kind == "map":
        total = 0.0
        for place, document in enumerate(ranked[:k], start=1):
            if document in relevant:
                total += sum(d in relevant for d in ranked[:place]) / place
        return total / len(relevant)
    if kind == "mrr":
        places = (p for p, d in enumerate(ranked[:k], start=1) if d in relevant)
        return 1 / next(places, math.inf)
    if kind == "rprec":
        return sum(d in relevant for d in ranked[: len(relevant)]) / len(relevant)
    above = 0
    total = 0.0
    for document in ranked:
        if document in relevant:
            total += 1
            if above:
                total -= min(above, len(relevant)) / min(n_not, len(relevant))
        above += grades.get(document, -1) == 0
    return total / len(relevant)


@pytest.mark.parametrize("seed", range(6))
def test_metrics_of_what_was_judged_are_their_definitions(seed):
    run, judgments = with_ties(seed)
    table = metrics.evaluate_frame(
        run, MORE, user="query", item="document", relevant=judgments, preset="trec_eval"
    )
    grades = nested(judgments)
    lists = nested(run)
    for name in MORE:
        truth = [by_trec_eval(name, trec_order(lists[q].items()), grades[q]) for q in table.users]
        np.testing.assert_allclose(table[name], truth, rtol=0, atol=1e-12, err_msg=name)
    together = metrics.evaluate_frame(
        run, ["ap", *MORE], user="query", item="document", relevant=judgments, preset="trec_eval"
    )
    np.testing.assert_array_equal(together.values[:, 1:], table.values)


@pytest.mark.parametrize("population", ["listed", "judged", "either"])
def test_lists_without_judgments_have_no_judged_item_and_no_preferences(population):
    lists, relevant = drawn(5)
    table = metrics.evaluate_frame(
        lists, ["judged@5", "bpref", "rr"], user="user", item="item", relevant=relevant,
        population=population,
    )  # fmt: skip
    known = nested(relevant)
    for user, value, preference in zip(table.users, table["judged@5"], table["bpref"], strict=True):
        own = lists[lists.user == user].sort_values("score", ascending=False).item
        expected = np.mean([item in known.get(user, {}) for item in own[:5]]) if len(own) else 0.0
        assert value == pytest.approx(expected)
        assert np.isnan(preference) == (max(known.get(user, {}).values(), default=0) <= 0)


def test_only_the_first_places_count_beside_pairs():
    """A cut of the lists is a cut of the frame."""
    lists, relevant = drawn(6)
    names = ["ndcg", "ap", "rr", "recall@5", "pap@3", "rprec", "bpref", "judged@5"]
    place = lists.groupby("user").score.rank(ascending=False)
    how = {"user": "user", "item": "item", "relevant": relevant, "population": "listed"}
    cut = metrics.evaluate_frame(lists[place <= 4], names, **how)
    shown = metrics.evaluate_frame(lists, names, list_length=4, **how)
    np.testing.assert_allclose(shown.values, cut.values, rtol=1e-13)
    each = metrics.evaluate_frame(lists, names, list_length=np.full(cut.users.size, 4), **how)
    np.testing.assert_array_equal(each.values, shown.values)


@pytest.mark.parametrize("ties", ["loss", "win", "half"])
def test_new_metrics_of_tied_lists_are_means_over_orders(ties):
    """Of two tied blocks, all orders gone through; without pairs everything was judged."""
    scores = np.array([2.0, 2.0, 2.0, 1.0, 1.0, 0.5])
    labels = np.array([1, 0, 0, 1, 0, 1])
    names = ["ap@2", "rr@1", "rprec", "bpref", "judged@4", "ap@4", "rr@4"]
    table = metrics.evaluate(names, scores, labels, ties=ties, groups="one_list")
    values = {name: [] for name in names}
    for first in itertools.permutations(range(3)):
        for second in itertools.permutations([3, 4]):
            order = [*first, *second, 5]
            grades = dict(enumerate(labels))
            for name in names:
                alias = name.replace("ap", "map").replace("rr", "mrr")
                values[name].append(by_trec_eval(alias, order, grades))
    pick = {"loss": min, "win": max, "half": np.mean}[ties]
    for name in names:
        assert table.mean(name) == pytest.approx(pick(values[name]), abs=1e-12), name
