"""Weights on held-out queries: nDCG by its definition, nothing leaks, and what is advised."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from helpers.runs import noisy_runs
from structsvm_papk import PAPKRanker, fusion, metrics
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.fusion import deciding, held_out
from structsvm_papk.fusion.comparing import cross_validate
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.report import CHOSEN, FUSED

K = 10
HOW = held_out.Settings(
    k=K, threshold=1, engine=None, n_folds=5, level=0.95, n_resamples=200, n_refits=20, seed=0
)


@pytest.fixture(scope="module")
def sample():
    return retrieval_runs()


@pytest.fixture(scope="module")
def report(sample):
    return cross_validate(sample.train.runs, sample.train.judgments, k=K)


def ndcg(ranked, grades):
    """nDCG@K of documents in order, with the ideal of all judgments."""
    ideal = sorted((max(grade, 0) for grade in grades.values()), reverse=True)
    dcg, best = (
        sum(gain / math.log2(place + 2) for place, gain in enumerate(gains[:K]))
        for gains in ([max(grades.get(document, 0), 0) for document in ranked], ideal)
    )
    return dcg / best if best > 0 else 0.0


def mean_ndcg(frame, judgments):
    """By the definition: by score, then by document id, both descending."""
    grades = {q: dict(zip(g["document"], g["grade"], strict=True))
              for q, g in judgments.groupby("query")}  # fmt: skip
    values = []
    for query, rows in frame.groupby("query"):
        pairs = sorted(zip(rows["score"], rows["document"], strict=True), reverse=True)
        values.append(ndcg([document for _, document in pairs], grades[query]))
    return np.mean(values)


def test_a_report_is_shown_in_ten_short_lines(report):
    shown = repr(report).splitlines()
    assert len(shown) <= 10 and max(map(len, shown)) <= 79
    assert FUSED in shown[1] and shown[-1] == f"recommended: {report.recommended.name}"
    assert report.advice in str(report)


def test_runs_alone_have_the_ndcg_of_the_definition(sample, report):
    means = {each.name: each.mean for each in report.rankings}
    for name, run in sample.train.runs.items():
        assert means[name] == pytest.approx(mean_ndcg(run, sample.train.judgments), abs=1e-12)
    assert means["bm25"] == pytest.approx(0.5058, abs=5e-5)  # as published for Anserini's BM25
    joined = fusion.join_lists(sample.train.runs, sample.train.judgments)
    for name, score in (("RRF", fusion.rrf(joined)), ("CombSUM", fusion.combsum(joined))):
        scored = joined[["query", "document"]].astype(str).assign(score=score)
        assert means[name] == pytest.approx(mean_ndcg(scored, sample.train.judgments), abs=1e-12)


def test_the_fused_ranking_is_ahead_on_the_sample_and_holds_on_the_other_year(sample, report):
    by_name = {each.name: each for each in report.rankings}
    assert by_name[FUSED].mean > max(each.mean for each in report.rankings[1:])
    assert by_name[CHOSEN].ahead_lower > 0
    assert report.advice.startswith("Use the fused") == (report.recommended.kind == "learned")
    assert report.ranker.result_.converged
    joined = fusion.join_lists(sample.test.runs, sample.test.judgments)
    names = list(sample.test.runs)
    score = report.ranker.predict(joined[names], groups=joined["query"])
    rows = joined[["query", "document"]].astype(str)
    fused = mean_ndcg(rows.assign(score=score), sample.test.judgments)
    equal = mean_ndcg(rows.assign(score=fusion.combsum(joined)), sample.test.judgments)
    assert fused > equal > 0.7


def test_a_query_is_ranked_by_weights_that_have_not_seen_its_judgments(sample):
    joined = join(sample.train.runs, sample.train.judgments)
    problem = held_out.CrossValidation.of(joined, HOW)
    before = problem.held_out(joined.names)
    fold = problem.fold[joined.query] == 2
    frame = joined.frame.copy()
    rng = np.random.default_rng(0)
    frame.loc[fold, "grade"] = rng.permutation(frame.loc[fold, "grade"])
    mixed = replace(problem, joined=replace(joined, frame=frame))
    after = mixed.held_out(joined.names)
    assert np.array_equal(before[fold], after[fold])
    assert not np.array_equal(before[~fold], after[~fold])


def test_the_best_of_the_others_is_chosen_on_the_other_folds(sample):
    joined = join(sample.train.runs, sample.train.judgments)
    problem = held_out.CrossValidation.of(joined, HOW)
    tables = {name: problem.table(scores) for name, scores in problem.alone().items()}
    values = pd.DataFrame({name: table.values[:, 0] for name, table in tables.items()})
    chosen = problem.best_of(tables).values[:, 0]
    for fold in range(5):
        test = problem.fold == fold
        best = values[~test].mean().idxmax()
        assert np.array_equal(chosen[test], values.loc[test, best])


def test_every_fold_has_queries_to_train_on():
    usable = np.arange(23) % 3 == 0
    place = np.random.default_rng(0).permutation(23)
    fold = held_out._folds(usable, place, HOW)
    moved = held_out._folds(usable[::-1], place[::-1], HOW)
    assert np.array_equal(moved[::-1], fold)
    assert set(fold) == set(range(5))
    assert np.ptp(np.bincount(fold[usable], minlength=5)) <= 1
    assert held_out._folds(np.ones(3, dtype=bool), np.arange(3), HOW).max() == 2


@pytest.fixture(scope="module")
def noisy():
    """A good run, a weaker one, and one of noise, for 60 queries."""
    spreads = {"good": 0.7, "weak": 1.5, "noise": 100}
    return noisy_runs(spreads, 60, 40, lambda r: int(r > 1), n_found=25, seed=7)


def test_ablation_keeps_a_good_run_and_not_noise(noisy):
    report = cross_validate(*noisy, k=5, ablate=True, n_refits=20)
    by_name = {each.name: each for each in report.weights}
    assert by_name["good"].verdict == "keep" and by_name["good"].gain_lower > 0
    assert by_name["noise"].verdict in ("no difference", "harms")
    for each in report.weights:
        assert each.share_lower <= each.share_upper
        assert each.without + each.gain == pytest.approx(report.rankings[0].mean)
    noise = by_name["noise"]
    assert noise.share_lower < 0.1 and noise.share_upper > -0.1
    assert by_name["good"].share_lower > 0.3


def test_missed_documents_are_counted(noisy):
    runs, judgments = noisy
    report = cross_validate(runs, judgments, k=5)
    joined = fusion.join_lists(runs, judgments)
    for each in report.weights:
        missed = joined[each.name].isna()
        assert each.n_missed == missed.sum()
        assert each.n_relevant_missed == (missed & (joined["grade"] >= 1)).sum()
    judged = sum(sum(grades.values()) for grades in judgments.values())
    assert report.n_relevant + report.n_relevant_missed == judged


class Folds:
    """Made-up values of queries in place of scores."""

    joined = SimpleNamespace(names=("bm25", "dense"))
    n_folds = 5

    def __init__(self, settings, judged=1.0):
        self.settings = settings
        self.judged = judged
        users = np.repeat(range(40), 2)
        self.plain = metrics.evaluate("ndcg@1", [1.0, 0.0] * 40, [1, 0] * 40, users)

    def table(self, values):
        return replace(self.plain, values=np.asarray(values)[:, None])

    def judged_share(self, values):
        return self.judged

    def best_of(self, tables):
        return next(iter(tables.values()))


def choice_of(learned, equal, run, spread=0.1, judged=1.0, other=None):
    """What is chosen of means, each query being off by noise that only learned weights have."""
    folds = Folds(replace(HOW, n_resamples=500), judged)
    noise = np.random.default_rng(0).normal(size=40)
    noise = spread * (noise - noise.mean()) / noise.std()

    def candidate(name, mean):
        return deciding.Contender(name, name, folds, np.full(40, mean))

    def rule(label, own, weights):
        even = candidate("equal weights", own)
        even = replace(even, title=deciding.titled(label, "equal weights"))
        return deciding.LearnableRule(label, folds, [even], weights, lambda: None)

    rules = [rule("linear", equal, lambda names: learned + noise)]
    if other is not None:
        rules.append(rule("rrf", other, None))
    alone = [candidate("bm25", run), candidate("dense", run - 0.1)]
    choice = deciding.choose(rules, alone, folds.settings)
    return choice, choice.advice(("queries", "documents"), folds.settings)


def test_learned_weights_are_used_where_both_gains_are_shown():
    choice, advice = choice_of(0.75, equal=0.7, run=0.69)
    assert choice.kind == "learned"
    assert advice.startswith("Use the fused ranking, by linear with learned weights: 0.0500 ahead")
    assert "ahead of linear with equal weights (at worst 0.0" in advice
    assert "0.0600 ahead of bm25 (at worst" in advice and advice.endswith("the best run.")


@pytest.mark.parametrize(
    ("means", "kind", "begins"),
    [
        ((0.75, 0.74, 0.6), "equal", "Take linear with equal weights: 0.1400 ahead of bm25"),
        ((0.75, 0.6, 0.74), "alone", "Search with bm25 alone: 0.1400 ahead of linear with equal"),
        ((0.65, 0.7, 0.6), "equal", "Take linear with equal weights"),
        ((0.65, 0.6, 0.7), "alone", "Search with bm25 alone"),
    ],
)
def test_without_both_gains_something_else_is_said(means, kind, begins):
    choice, advice = choice_of(*means)
    assert choice.kind == kind and advice.startswith(begins)
    assert "The fused ranking, by linear with learned weights, is " in advice
    side = "0.0500 behind" if means[0] < 0.7 else "0.0100 ahead of"
    assert side in advice and "by -" not in advice


def test_a_chance_lead_of_a_run_does_not_count():
    rng = np.random.default_rng(1)
    noise = rng.normal(size=40)
    folds = Folds(replace(HOW, n_resamples=500))

    def candidate(name, values):
        return deciding.Contender(name, name, folds, values)

    equal = candidate("equal weights", np.full(40, 0.7))
    rules = [
        deciding.LearnableRule("", folds, [equal], lambda names: np.full(40, 0.69), lambda: None)
    ]
    for lead, kind in ((0.01, "equal"), (0.2, "alone")):
        run = candidate("bm25", 0.7 + lead + 0.1 * (noise - noise.mean()))
        choice = deciding.choose(rules, [run, candidate("dense", np.zeros(40))], folds.settings)
        assert choice.kind == kind
        advice = choice.advice(("queries", "documents"), folds.settings)
        assert ("bm25 (at" in advice and "best run, whose lead may be chance." in advice) == (
            kind == "equal"
        )


def test_a_rule_that_is_better_without_learning_is_switched_to():
    choice, advice = choice_of(0.75, equal=0.7, run=0.6, other=0.76)
    assert choice.kind == "equal" and choice.best.title == "rrf with equal weights"
    assert advice.startswith("Switch to rrf with equal weights: 0.1600 ahead of bm25")
    assert choice.rule.label == "linear"  # the report is about the rule that can learn


def test_advice_says_how_many_more_queries_would_tell():
    _, advice = choice_of(0.71, equal=0.7, run=0.6)
    more = int(advice.split(" or more further judged queries would tell")[0].split()[-1])
    # as many as make the interval half as wide as the difference is: (1.96 * 0.1 / 0.01)^2 - 40
    assert abs(more - ((1.96 * 0.1 / 0.01) ** 2 - 40)) < 15
    assert "at worst 0.0" in advice and "behind, at best 0.0" in advice


def test_what_was_not_judged_keeps_the_verdict_back():
    choice, advice = choice_of(0.75, equal=0.7, run=0.69, judged=0.7)
    assert choice.kind == "equal" and advice.startswith("Judge more before you decide")
    assert "70% were judged" in advice and "Until then take linear with equal weights" in advice
    assert "not shown" not in advice  # of learned weights both gains are shown


def test_the_advice_names_what_learned_weights_are_not_shown_to_beat():
    _, advice = choice_of(0.75, equal=0.6, run=0.74, judged=0.7)
    assert "ahead of linear with equal weights" in advice
    assert advice.endswith(", but not shown to be ahead of bm25.")


def test_judged_documents_and_queries_without_a_relevant_one_are_counted():
    runs = {"a": {}, "b": {}}
    judged = {}
    for q in range(12):
        documents = [f"d{i}" for i in range(10)]
        runs["a"][f"q{q}"] = {d: 10.0 - i for i, d in enumerate(documents)}
        runs["b"][f"q{q}"] = {f"x{i}": 10.0 - i for i in range(5)} | {"d0": 1.0, "d1": 0.5}
        judged[f"q{q}"] = {d: int(i % 3 == 0 and q > 1) for i, d in enumerate(documents)}
    report = cross_validate(runs, judged, k=5)
    by_name = {each.name: each for each in report.rankings}
    assert by_name["a"].judged == 1.0 and by_name["b"].judged == 0.0
    assert "2 of 12 judged queries are without a relevant document" in report.remarks[0]
    assert "b: 0% of its first 5 documents were judged" in report.remarks[1]
    assert report.as_dict()["rankings"][2]["judged"] == 0.0


def test_few_queries_have_no_interval_and_the_advice_says_so(sample):
    judgments = sample.train.judgments
    few = judgments[judgments["query"].isin(judgments["query"].unique()[:6])]
    with pytest.warns(UserWarning, match="no judgments"):
        fusion.join_lists(sample.train.runs, few)
    report = cross_validate(sample.train.runs, few, k=K)
    assert report.n_queries == 6 and "37 of 43 queries have no judgments" in report.remarks[0]
    assert math.isnan(report.rankings[0].lower) and math.isnan(report.rankings[1].ahead_lower)
    assert report.advice.startswith("6 judged queries are too few")


def test_weights_of_zero_are_called_so():
    backwards = noisy_runs({"a": 0.5, "b": 0.5}, 20, 15, lambda r: int(r < -0.8))
    report = fusion.for_engine("elasticsearch", *backwards, k=5)
    assert not report.ranker.coef_.any()
    assert all("the wrong way round?" in remark for remark in report.remarks)
    assert len(report.remarks) == 2
    assert all(each.share > 0 for each in report.weights)  # weights of 0 would rank nothing


def test_where_only_being_there_counts_shares_are_of_that():
    """Lists of one document: no score varies, and rounding is all that weights of scores are."""
    judgments = {str(q): {f"a{q}": 1, f"b{q}": 0} for q in range(30)}
    runs = {"good": {str(q): {f"a{q}": 1.0 + q} for q in range(30)},
            "bad": {str(q): {f"b{q}": 9.0 - q} for q in range(30)}}  # fmt: skip
    for weight in cross_validate(runs, judgments, k=1).weights:
        assert abs(weight.share) < 1e-6
        assert abs(weight.not_there) == pytest.approx(0.5, abs=1e-3)


def test_a_fold_without_anything_to_learn_from_ranks_nothing(noisy):
    runs, judgments = noisy
    part = {"most": {q: runs["good"][q] for q in list(judgments)[:58]},
            "few": {q: runs["good"][q] for q in list(judgments)[58:]}}  # fmt: skip
    report = cross_validate(part, judgments, k=5, ablate=True, n_refits=3)
    most, few = report.weights
    assert most.without < 0.1 and most.verdict == "keep" and few.gain < 0.1


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"k": 0}, "k must be a whole number"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"relevance_threshold": "high"}, "relevance_threshold must be a number"),
        ({"relevance_threshold": 9}, "0 of 2 judged queries have relevant"),
        ({"ablate": "yes"}, "ablate must be True or False"),
        ({"level": 2}, "level must be a number"),
        ({"judgments": {"q1": {"a": 1}}}, "1 of 1 judged queries have relevant"),
        ({"runs": {"a": {"q1": {"a": 1.0, "b": 0.5}, "q2": {"a": 1.0, "b": 2.0}}}},
         "one run .a. has no weights to learn"),
    ],
)  # fmt: skip
def test_wrong_settings_end_in_a_sentence(change, sentence):
    runs = {"a": {"q1": {"a": 1.0, "b": 0.5}, "q2": {"a": 1.0, "b": 2.0}}, "b": {"q1": {"a": 1.0}}}
    given = {"runs": runs, "judgments": {"q1": {"a": 1}, "q2": {"b": 2}}}
    with pytest.raises((InputError, TypeError), match=sentence):
        cross_validate(**given | change)


def test_grades_train_as_they_are_unless_a_threshold_is_given(sample):
    sample = sample.train
    few = dict(list(sample.runs.items())[:3])
    joined = fusion.join_lists(few, sample.judgments)
    graded = cross_validate(few, sample.judgments, cv=2)
    by_hand = PAPKRanker(k=10, missing="lowest").fit(
        joined[list(few)], np.maximum(joined["grade"], 0), groups=joined["query"]
    )
    same, other = graded.ranker.result_.objective, by_hand.result_.objective
    assert same == pytest.approx(other, rel=2e-6)
    cut = cross_validate(few, sample.judgments, cv=2, relevance_threshold=1)
    assert cut.ranker.result_.objective != pytest.approx(other, rel=1e-2)
