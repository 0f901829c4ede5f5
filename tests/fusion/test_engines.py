"""Engines' rules by their definitions, weights learned in them, and the requests."""

import ast
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from helpers.runs import noisy_runs
from structsvm_papk import fusion
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.held_out import CrossValidation, InRule, Settings
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.requests import EngineWeights, load_weights

HOW = Settings(
    k=10, threshold=1, engine="langchain", n_folds=5, level=0.95, n_resamples=50, n_refits=2, seed=0
)


@pytest.fixture(scope="module")
def sample():
    return retrieval_runs()


def few(sample, n=2):
    """Two runs of the sample, as engines with limits join them."""
    return {name: sample.train.runs[name] for name in ("bm25", "tasb", "ada2")[:n]}


# --- rules, by the sentences of the documentation -------------------------------------------------


def minmax(scores, least=0.0, equal=0.0):
    low, high = min(scores.values()), max(scores.values())
    if low == high:
        return dict.fromkeys(scores, equal(high) if callable(equal) else equal)
    return {d: (s - low) / (high - low) or least for d, s in scores.items()}


def ranks(scores):
    """From 1; of equal scores the larger id is first."""
    order = sorted(scores, key=lambda document: (scores[document], document), reverse=True)
    return {document: rank for rank, document in enumerate(order, start=1)}


def z_scores(scores):
    values = list(scores.values())
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    return {d: max((s - mean) / deviation, 0.001) for d, s in scores.items()}


def reciprocal(scores):
    return {document: 1 / (60 + rank) for document, rank in ranks(scores).items()}


def plain(of_list):
    """The weighted sum of what is made of each list."""
    return lambda scores, w: {document: w * x for document, x in of_list(scores).items()}


def qdrant(scores, w):
    if w <= 0:
        return dict.fromkeys(scores, 0.0)
    return {document: 1 / (rank / w + 2 - 1) for document, rank in ranks(scores).items()}


SENTENCES = {
    "elasticsearch": plain(lambda scores: minmax(scores, equal=1.0)),
    "opensearch": plain(lambda scores: minmax(scores, least=0.001, equal=1.0)),
    "weaviate": plain(lambda scores: minmax(scores, equal=1.0)),
    "mongodb": plain(minmax),
    "vespa": plain(lambda scores: minmax(scores, equal=0.5)),
    "llamaindex": plain(lambda scores: minmax(scores, equal=lambda s: float(s > 0))),
    "milvus": plain(lambda scores: scores),
    "haystack": plain(minmax),
    "opensearch-zscore": plain(z_scores),
    "qdrant": qdrant,
    "langchain": plain(reciprocal),
    "azure": plain(reciprocal),
}
OF_RANKS = ("elasticsearch", "opensearch", "mongodb", "milvus", "haystack")
SENTENCES |= {f"{engine}-rrf": plain(reciprocal) for engine in OF_RANKS}


def by_sentence(engine, lists, weights):
    """{document: score} of one query's lists."""
    total = {}
    for name, scores in lists.items():
        for document, part in SENTENCES[engine](scores, weights[name]).items():
            total[document] = total.get(document, 0.0) + part
    return total


@pytest.mark.parametrize("engine", ENGINES)
def test_a_rule_is_what_the_documentation_says(engine):
    rng = np.random.default_rng(1)
    lists = {
        name: {
            f"q{q}": {
                f"d{d:02d}": float(s) for d, s in zip(rng.permutation(30)[:9], scores, strict=True)
            }
            for q, scores in enumerate(rng.normal(3, 2, (4, 9)))
        }
        for name in ("a", "b")
    }
    if engine != "opensearch-zscore":
        lists["b"]["q0"] = {"d01": 2.0, "d02": 2.0}  # equal scores, and a lone one
        lists["a"]["q1"] = {"d07": 5.0}
        lists["b"]["q2"] = {"d03": -2.0, "d05": -2.0}
    weights = {"a": 0.3, "b": 0.7}
    joined = join(lists)
    scores = EngineWeights(engine, weights, 9).scores(joined)
    frame = joined.frame.assign(score=scores)
    for query, rows in frame.groupby("query"):
        expected = by_sentence(engine, {n: lists[n][query] for n in lists}, weights)
        assert dict(zip(rows["document"], rows["score"], strict=True)) == pytest.approx(expected)


@pytest.mark.parametrize("score", [0.1, 0.7])  # of which the mean is rounded
@pytest.mark.parametrize("n", [3, 8, 10])
def test_equal_scores_keep_theirs_as_z_scores(score, n):
    joined = join({"a": {"q": {f"d{place}": score for place in range(n)}}})
    fused = EngineWeights("opensearch-zscore", {"a": 1.0}, n).scores(joined)
    assert fused == pytest.approx(np.full(n, score))


def test_elasticsearch_takes_nearly_equal_scores_as_equal():
    joined = join({"a": {"q": {"x": 0.5, "y": 0.5 + 4e-7}}})
    assert EngineWeights("elasticsearch", {"a": 1.0}, 9).scores(joined).tolist() == [1.0, 1.0]


def test_a_zero_weight_counts_nothing_in_any_rule():
    joined = join({"a": {"q": {"x": 2.0, "y": 1.0}}, "b": {"q": {"y": 3.0, "z": 1.0}}})
    for engine in ENGINES:
        scores = EngineWeights(engine, {"a": 1.0, "b": 0.0}, 2).scores(joined)
        assert scores[joined.frame["document"] == "z"] == 0


# --- learning -----------------------------------------------------------------------------------


def test_two_folds_leave_nothing_to_decide_by(sample):
    report = fusion.for_engine("qdrant", few(sample), sample.train.judgments, cv=2, n_resamples=20)
    assert report.n_folds == 2 and not report.remarks


def test_a_query_is_ranked_by_weights_that_have_not_seen_its_judgments(sample):
    joined = join(sample.train.runs, sample.train.judgments)
    names = joined.names[2:4]
    problem = CrossValidation.of(joined, replace(HOW, n_folds=4))
    before = InRule(problem, ENGINES["langchain"], names).held_out()
    fold = problem.fold[joined.query] == 2
    frame = joined.frame.copy()
    rng = np.random.default_rng(0)
    frame.loc[fold, "grade"] = rng.permutation(frame.loc[fold, "grade"])
    folds = replace(problem, joined=replace(joined, frame=frame))
    after = InRule(folds, ENGINES["langchain"], names).held_out()
    assert np.array_equal(before[fold], after[fold])


# --- the report -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ranked():
    return noisy_runs({"bm25": 0.7, "ada": 0.5, "lsa": 2.0}, 24, 25)


def test_the_constant_of_ranks_is_set_where_the_engine_has_one(tmp_path, ranked):
    runs, judged = ranked
    how = {"n_resamples": 20, "cv": 3}
    report = fusion.for_engine("elasticsearch-rrf", runs, judged, rank_constant=5, **how)
    weights = report.engine_weights
    assert find(json.loads(weights.request()), "rank_constant") == [5]
    weights.save(tmp_path / "w.json")
    assert load_weights(tmp_path / "w.json") == weights
    scores = weights.scores(join({"bm25": {"q": {"x": 1.0}}, "ada": {}, "lsa": {}} | {
        "ada": {"q": {"y": 1.0}}, "lsa": {"q": {"z": 1.0}}}))  # fmt: skip
    assert scores == pytest.approx(np.array([*weights.weights.values()]) / 6)
    with pytest.raises(InputError, match="mongodb-rrf has no constant of ranks that can be set"):
        fusion.for_engine("mongodb-rrf", runs, judged, rank_constant=5)


def test_all_rules_of_an_engine_are_compared(ranked):
    runs, judged = ranked
    report = fusion.for_engine("elasticsearch", runs, judged, n_resamples=20)
    names = [each.name for each in report.rankings]
    other = "rrf" if report.engine_weights.engine == "elasticsearch" else "linear"
    assert names == [
        "fused", "bm25", "ada", "lsa", "equal weights", f"{other}, equal weights",
        f"{other}, learned weights", "best of these",
    ]  # fmt: skip
    means = {each.name: each.mean for each in report.rankings}
    alone = {
        name: {each.name: each.mean for each in fusion.for_engine(
            name, runs, judged, n_resamples=20).rankings}
        for name in ("elasticsearch-linear", "elasticsearch-rrf")
    }  # fmt: skip
    own = "elasticsearch-rrf" if other == "linear" else "elasticsearch-linear"
    (rest,) = set(alone) - {own}
    assert means["fused"] == alone[own]["fused"]
    assert means[f"{other}, learned weights"] == alone[rest]["fused"]
    assert means[f"{other}, equal weights"] == alone[own][f"{other}, equal weights"]
    recommended = report.recommended
    assert recommended.name in report.advice
    assert recommended.engine_weights.engine in ("elasticsearch", "elasticsearch-rrf")
    assert recommended.engine_weights.request()
    assert json.dumps(report.as_dict()["recommended"])


def test_a_rule_without_weights_is_compared_and_not_learned(ranked):
    runs, judged = ranked
    report = fusion.for_engine("milvus", runs, judged, n_resamples=20, cv=3)
    names = [each.name for each in report.rankings]
    assert "RRFRanker, equal weights" in names and "RRFRanker, learned weights" not in names
    with pytest.raises(InputError, match="milvus-rrf takes no weights"):
        fusion.for_engine("milvus-rrf", runs, judged)


def test_a_report_for_an_engine_is_by_its_rule(sample):
    report = fusion.for_engine("qdrant", few(sample), sample.train.judgments, cv=3, n_resamples=50)
    names = [each.name for each in report.rankings]
    assert names == ["fused", "bm25", "tasb", "equal weights", "best of these"]
    assert report.engine_weights.window == 100
    assert [*report.engine_weights.weights] == ["bm25", "tasb"]
    assert [each.share for each in report.weights] == [*report.engine_weights.weights.values()]
    joined = join(few(sample), sample.train.judgments)
    folds = CrossValidation.of(joined, replace(HOW, engine="qdrant"))
    in_rule = InRule(folds, ENGINES["qdrant"], joined.names)
    means = {each.name: each.mean for each in report.rankings}
    equal = folds.table(in_rule.scores(in_rule.equal))
    assert means["equal weights"] == pytest.approx(equal.mean("ndcg@10"))
    assert sum(report.engine_weights.weights.values()) == pytest.approx(2)  # scale matters there
    assert "certified" in report.basis and "qdrant" in report.basis
    assert report.recommended.engine_weights.engine == "qdrant"
    assert json.dumps(report.as_dict())


@pytest.mark.parametrize("engine", ["qdrant", "elasticsearch-rrf"])
def test_equal_weights_that_are_recommended_are_those_that_were_measured(sample, engine):
    judged = sample.train.judgments
    judged = judged[judged["query"].isin(judged["query"].unique()[:8])]  # too few to learn
    report = fusion.for_engine(engine, few(sample, 3), judged, cv=2)
    assert report.recommended.kind == "equal"
    joined = join(few(sample, 3), judged)
    folds = CrossValidation.of(joined, replace(HOW, engine=engine, n_folds=2))
    in_rule = InRule(folds, ENGINES[report.recommended.engine_weights.engine], joined.names)
    both = (report.recommended.engine_weights.values, in_rule.equal)
    recommended, equal = (folds.table(in_rule.scores(weights)).values for weights in both)
    np.testing.assert_array_equal(recommended, equal)


def test_the_window_cuts_lists_before_learning(sample):
    runs = few(sample)
    cut = {
        name: run.sort_values(["query", "score", "document"], ascending=[True, False, False])
        .groupby("query").head(7)
        for name, run in runs.items()
    }  # fmt: skip
    short = join(runs, sample.train.judgments, depth=7)
    expected = join(cut, sample.train.judgments)
    assert short.window == 7
    rows = [
        frame.frame.astype({"document": str, "query": str}).sort_values(["query", "document"])
        for frame in (short, expected)
    ]
    assert (rows[0].to_numpy(dtype=str) == rows[1].to_numpy(dtype=str)).all()
    assert short.missed_grade.sum() == expected.missed_grade.sum()


@pytest.mark.parametrize(
    ("engine", "runs", "sentence"),
    [
        ("solr", 2, "no engine is called 'solr'; known are elasticsearch, .*qdrant"),
        ("weaviate", 3, "weaviate joins at most 2 runs, and here are 3"),
        (3, 2, "engine must be the name of an engine"),
        (None, 2, "the name of an engine"),
    ],
)
def test_wrong_engines_end_in_a_sentence(sample, engine, runs, sentence):
    with pytest.raises((InputError, TypeError), match=sentence):
        fusion.for_engine(engine, few(sample, runs), sample.train.judgments)


# --- files and requests ---------------------------------------------------------------------------

WEIGHTS = {"bm25": 0.25, "dense-1": 0.75}
PLAIN = {"bm25": 0.25, "dense_1": 0.75}


def find(content, key):
    """All values of a key, at any depth."""
    found = []
    if isinstance(content, dict):
        found = [value for name, value in content.items() if name == key]
        content = list(content.values())
    if isinstance(content, list):
        found += [value for part in content for value in find(part, key)]
    return found


WHERE = {  # keys of weights and of the window, and what stands there
    "elasticsearch": {"weight": [0.25, 0.75], "rank_window_size": [50]},
    "elasticsearch-rrf": {"weight": [0.25, 0.75], "rank_window_size": [50], "rank_constant": [60]},
    "opensearch": {"weights": [[0.25, 0.75]], "pagination_depth": [50], "technique":
                   ["min_max", "arithmetic_mean"]},
    "opensearch-zscore": {"weights": [[0.25, 0.75]], "technique": ["z_score", "arithmetic_mean"]},
    "opensearch-rrf": {"weights": [[0.25, 0.75]], "rank_constant": [60], "technique": ["rrf"]},
    "mongodb": {"weights": [PLAIN], "$limit": [10, 50, 50], "normalization": ["minMaxScaler"]},
    "mongodb-rrf": {"weights": [PLAIN], "$limit": [10, 50, 50]},
    "qdrant": {"weights": [[0.25, 0.75]], "limit": [10, 50, 50], "k": [2]},
    "azure": {"weight": [3.0], "k": [50]},
}  # fmt: skip
LINES = {
    "milvus": "rerank=WeightedRanker(0.25, 0.75, norm_score=False), limit=10)",
    "milvus-rrf": "[bm25, dense_1], rerank=RRFRanker(60), limit=10)",
    "langchain": "EnsembleRetriever(retrievers=[bm25, dense_1], weights=[0.25, 0.75], c=60)",
    "llamaindex": "retriever_weights=[0.25, 0.75]",
    "weaviate": "alpha=0.75, fusion_type=HybridFusion.RELATIVE_SCORE, limit=50)",
    "haystack": 'join_mode="merge", weights=[0.25, 0.75]',
    "haystack-rrf": 'join_mode="reciprocal_rank_fusion", weights=[0.25, 0.75]',
    "vespa": "0.25 * normalize_linear(bm25) + 0.75 * normalize_linear(dense_1)",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_request_has_weights_and_window(engine, tmp_path):
    weights = EngineWeights(engine, WEIGHTS, 50)
    request = weights.request()
    if engine in LINES:
        assert LINES[engine] in request and "50" in request
    else:
        body = json.loads(request)
        for key, values in WHERE[engine].items():
            assert sorted(map(str, find(body, key))) == sorted(map(str, values))
        asked = [text for text in find(body, "PUT HERE") if "dense-1" in text]
        assert len(asked) == 1
    weights.save(tmp_path / "w.json")
    assert load_weights(tmp_path / "w.json") == weights
    content = json.loads((tmp_path / "w.json").read_text())
    assert [*content] == ["engine", "rule", "weights", "rank_constant", "window"]


def test_a_query_of_azure_is_left_out_where_it_has_no_weight():
    body = json.loads(EngineWeights("azure", {"text": 0.0, "a": 0.4, "b": 0.6}, 9).request())
    assert "search" not in body and find(body, "weight") == [0.4, 0.6]
    body = json.loads(EngineWeights("azure", {"text": 0.4, "a": 0.0, "b": 0.6}, 9).request())
    assert "search" in body and find(body, "fields") == ["b"] and find(body, "weight") == [1.5]


@pytest.mark.parametrize("engine", ["weaviate", "langchain", "llamaindex", "haystack"])
def test_a_line_of_code_is_python(engine):
    weights = EngineWeights(engine, {"2nd.run": 0.5, "2nd-run": 0.5}, 9)
    (call,) = ast.parse(weights.request()).body
    names = {node.id for node in ast.walk(call) if isinstance(node, ast.Name)}
    assert engine in ("weaviate", "haystack") or {"_2nd_run", "_2nd_run_"} <= names


def test_pipelines_of_mongodb_have_names_that_it_takes():
    weights = {"$a.b": 0.25, "a.b": 0.5, "a_b": 0.25}
    (fusion, _) = json.loads(EngineWeights("mongodb-rrf", weights, 9).request())
    pipelines = fusion["$rankFusion"]["input"]["pipelines"]
    assert [*pipelines] == ["_a_b", "a_b", "a_b_"]
    assert fusion["$rankFusion"]["combination"]["weights"] == dict(
        zip(pipelines, weights.values(), strict=True)
    )


GOOD = '{"engine": "qdrant", "weights": {"a": 1, "b": 0.5}, "window": 50}'
REFUSED = {
    "no weights": ('{"engine": "qdrant"}', "not the weights of an engine: 'weights' is missing"),
    "no window": (
        '{"engine": "qdrant", "weights": {"a": 1}}',
        "not the weights of an engine: 'window' is missing",
    ),
    "below 0": (GOOD.replace("0.5", "-1"), "the weight of run 'b' must be a number of at least 0"),
    "no engine": (GOOD.replace("qdrant", "none"), "no engine is called 'none'; known are"),
    "a list": (GOOD.replace('"qdrant"', "[]"), r"no engine is called \[\]"),
    "no run": (GOOD.replace('{"a": 1, "b": 0.5}', "{}"), "weights must be a dict"),
    "weights as a list": (GOOD.replace('{"a": 1, "b": 0.5}', "[1, 2]"), "weights must be a dict"),
    "infinite": (GOOD.replace("0.5", "Infinity"), "the weight of run 'b' must be a number"),
    "a run twice": (GOOD.replace('"b"', '"a"'), "'a' is there twice"),
    "a key twice": (GOOD.replace("}", '}, "window": 9', 1), "'window' is there twice"),
    "another constant": (
        GOOD.replace("qdrant", "azure").replace("50", '50, "rank_constant": 7'),
        "rank_constant is 7",
    ),
    "another rule": (GOOD.replace("50", '50, "rule": "borda"'), "rule is 'borda', but"),
    "something else": ("[1]", "not the weights of an engine"),
    "deep": ('{"engine": ' + "[" * 200_000, "not the weights of an engine"),
    "no text": ("\0" * 9, "not the weights of an engine"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_files_are_refused(tmp_path, name):
    content, said = REFUSED[name]
    (tmp_path / "w.json").write_text(GOOD)
    assert load_weights(tmp_path / "w.json").weights == {"a": 1.0, "b": 0.5}
    (tmp_path / "w.json").write_text(content)
    with pytest.raises(InputError, match=f"w.json: {said}"):
        load_weights(tmp_path / "w.json")


@pytest.mark.parametrize("window", [0, 2.5, True, "9", None])
def test_values_that_no_engine_takes_are_refused(window):
    with pytest.raises(InputError, match="window must be a whole number"):
        EngineWeights("qdrant", {"a": 1.0}, window)
    for weights in ({}, {"a": "1_0"}, {"a": np.nan}, {"a": 10**400}, {"a": True}, {"a": None}, [1]):
        with pytest.raises(InputError, match=r"weights must be|the weight of run 'a' must be"):
            EngineWeights("qdrant", weights, 9)
