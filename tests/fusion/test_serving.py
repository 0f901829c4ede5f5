"""One query from dictionaries has the order and scores of the join."""

import numpy as np
import pytest

from helpers.marks import some_of
from structsvm_papk import PAPKRanker, fusion
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.requests import EngineWeights


@pytest.fixture(scope="module")
def year():
    return retrieval_runs().train


def queries(year, n=5):
    """{run: {document: score}} of the first queries, by query."""
    for query in year.judgments["query"].unique()[:n]:
        yield (
            str(query),
            {
                name: {
                    str(d): float(s)
                    for d, s in run.loc[run["query"] == query, ["document", "score"]].to_numpy()
                }
                for name, run in year.runs.items()
            },
        )


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_serves_what_it_ranks(year, engine):
    values = np.linspace(0.1, 1, len(year.runs)).tolist()
    weights = EngineWeights(engine, dict(zip(year.runs, values, strict=True)), 100)
    for query, lists in queries(year, some_of(2)):
        joined = join({name: {query: scores} for name, scores in lists.items()})
        rows = joined.frame.assign(score=weights.scores(joined))
        rows = rows.sort_values(["score", "document"], ascending=False)
        fused = fusion.fuse(weights, lists)
        assert [*fused] == rows["document"].tolist()
        assert [*fused.values()] == pytest.approx(rows["score"].tolist(), rel=1e-12)


def test_a_model_serves_what_it_predicts(year):
    names = list(year.runs)
    joined = fusion.join_lists(year.runs, year.judgments)
    ranker = PAPKRanker(k=10, missing="lowest", relevance_threshold=1, tol=1e-3)
    ranker.fit(joined[names], joined["grade"], groups=joined["query"])
    model = ranker.to_model()
    joined["score"] = ranker.predict(joined[names], groups=joined["query"])
    for query, lists in queries(year):
        rows = joined[joined["query"].astype(str) == query].astype({"document": str})
        fused = fusion.fuse(model, lists)
        expected = dict(zip(rows["document"], rows["score"], strict=True))
        assert fused == pytest.approx(expected, rel=1e-9)
        assert [*fused.values()] == sorted(fused.values(), reverse=True)


def test_runs_that_are_left_out_retrieved_nothing():
    weights = EngineWeights("langchain", {"a": 0.5, "b": 0.5}, 9)
    lists = {"a": {"x": 3.0, "y": 1.0}}
    assert fusion.fuse(weights, lists) == fusion.fuse(weights, lists | {"b": {}})
    assert fusion.fuse(weights, {}) == {}
    with pytest.raises(InputError, match="no weight is for run 'c'"):
        fusion.fuse(weights, {"c": {"x": 1.0}})
    with pytest.raises(InputError, match="not a finite number"):
        fusion.fuse(weights, {"a": {"x": np.nan}})
    for score in ("1_0", None, 10**400, [1.0]):
        with pytest.raises(InputError, match=r"scores of run 'a' must be numbers|finite number"):
            fusion.fuse(weights, {"a": {"x": score}})
    with pytest.raises(InputError, match="give one kind"):
        fusion.fuse(weights, {"a": {"x": 1.0, 1: 2.0}})


def test_an_engine_joins_what_is_within_its_window():
    weights = EngineWeights("elasticsearch", {"a": 0.5, "b": 0.5}, 2)
    lists = {"a": {"x": 9.0, "y": 8.0, "z": 1.0}, "b": {"w": 3.0, "z": 3.0, "y": 3.0, "x": 0.0}}
    cut = {"a": {"x": 9.0, "y": 8.0}, "b": {"z": 3.0, "y": 3.0}}  # the larger ids of equal scores
    assert fusion.fuse(weights, lists) == fusion.fuse(weights, cut)
    assert "w" not in fusion.fuse(weights, lists)


def test_equal_scores_are_in_the_order_of_the_text_of_ids():
    weights = EngineWeights("langchain", {"a": 1.0}, 2)
    assert list(fusion.fuse(weights, {"a": {9: 1.0, 10: 1.0, 100: 1.0}})) == [9, 100]
