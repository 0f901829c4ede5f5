"""The recipes of the manual for other libraries run, on the sample's runs in their forms."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from structsvm_papk import PAPKRanker, fusion
from structsvm_papk.datasets import retrieval_runs

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "fuse-files.md"

if not PAGE.exists():
    pytest.skip("the documentation is not here", allow_module_level=True)


def run_recipe(word, **names):
    """Run the block of the page that holds a word; returns its names."""
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (code,) = [block for block in blocks if word in block]
    names["fusion"] = fusion
    names["ranker"] = PAPKRanker(k=10, missing="lowest", relevance_threshold=1)
    exec(compile(code, word, "exec"), names)
    return names


@pytest.fixture(scope="module")
def year():
    return retrieval_runs().train


def nested(frame, value):
    """{query: {document: value}}"""
    text = frame.astype({"query": str, "document": str})
    return {
        query: dict(zip(rows["document"], rows[value], strict=True))
        for query, rows in text.groupby("query")
    }


def test_frames_of_pyterrier(year):
    def retriever(name):
        frame = year.runs[name].astype({"query": str, "document": str})
        frame = frame.rename(columns={"query": "qid", "document": "docno"})
        return lambda topics: frame.assign(query="some words", docid=range(len(frame)), rank=0)

    class Dataset:
        def get_qrels(self):
            names = {"query": "qid", "document": "docno", "grade": "label"}
            return year.judgments.rename(columns=names).astype({"qid": str, "docno": str})

    names = run_recipe(
        "get_qrels", bm25=retriever("bm25"), dense=retriever("tasb"), topics=None, dataset=Dataset()
    )
    results = names["results"]
    assert {"qid", "docno", "score"} <= set(results) and results["qid"].nunique() == 43
    assert isinstance(results, pd.DataFrame) and results["score"].notna().all()


@pytest.mark.filterwarnings("ignore:.*unsafe cast")  # of ranx, when numba compiles it
def test_runs_of_ranx(year):
    ranx = pytest.importorskip("ranx")
    runs = {name: ranx.Run(nested(year.runs[name], "score")) for name in ("bm25", "tasb")}
    qrels = ranx.Qrels(nested(year.judgments, "grade"))
    fused = run_recipe("ranx", ranx=ranx, ranx_runs=runs, qrels=qrels)["fused"]
    better = ranx.evaluate(qrels, fused, "ndcg@10")
    assert better > ranx.evaluate(qrels, runs["bm25"], "ndcg@10")


@pytest.fixture(scope="module")
def beir(year):
    """The judgments, and the results of the recipe: both {query: {document: number}}."""
    qrels = nested(year.judgments, "grade")

    class GenericDataLoader:
        def __init__(self, folder):
            pass

        def load(self, split):
            return {}, {}, qrels

    names = run_recipe(
        "GenericDataLoader",
        GenericDataLoader=GenericDataLoader,
        folder=None,
        bm25_results=nested(year.runs["bm25"], "score"),
        dense_results=nested(year.runs["tasb"], "score"),
    )
    return qrels, names["results"]


def test_dictionaries_of_beir(beir):
    qrels, results = beir
    assert set(results) == set(qrels)
    assert all(type(score) is float for of_query in results.values() for score in of_query.values())


# --- answers of engines, as recorded --------------------------------------------------------------

ANSWER = """{"took": 3, "timed_out": false, "_shards": {"total": 1, "successful": 1}, "hits": {
 "total": {"value": 2, "relation": "eq"}, "max_score": 7.1, "hits": [
  {"_index": "docs", "_id": "%s", "_score": 7.1, "_source": {"title": "red kite"}},
  {"_index": "docs", "_id": "%s", "_score": 2.4, "_source": {"title": "blue tit"}}]}}"""
JUDGED = {f"q{q}": {f"d{q}": 1, f"d{q + 1}": 0, f"x{q}": q % 3} for q in range(12)}


def answers(first, second):
    return {
        f"q{q}": json.loads(ANSWER % (f"{first}{q}", f"{second}{q + (second == 'd')}"))
        for q in range(12)
    }


def test_hits_of_elasticsearch_and_opensearch():
    names = run_recipe(
        "run_of_hits", words=answers("d", "x"), vectors=answers("x", "d"), judgments=JUDGED
    )
    assert names["runs"]["words"]["q3"] == {"d3": 7.1, "x3": 2.4}
    retriever = json.loads(names["request"])["retriever"]
    assert set(retriever) <= {"linear", "rrf"}


def found_by_langchain(with_scores):
    """As `similarity_search_with_score`, or a retriever, returns chunks."""
    chunk = lambda source: SimpleNamespace(page_content="..", metadata={"source": source})  # noqa: E731
    found = {}
    for q in range(12):
        chunks = [(chunk(f"d{q}"), 0.1), (chunk(f"x{q}"), 0.4)]
        if with_scores:
            chunks.append((chunk(f"d{q}"), 0.5))
        found[f"q{q}"] = chunks if with_scores else [each for each, _ in chunks]
    return found


WORDS = {f"q{q}": {f"x{q}": 3.0, f"d{q}": 2.0, f"d{q + 1}": 1.0} for q in range(12)}


def test_distances_of_langchain():
    names = run_recipe(
        "lower_is_better", answers=found_by_langchain(True), words=WORDS, judgments=JUDGED
    )
    assert set(names["weights"]) == {"words", "dense"}


@pytest.mark.filterwarnings("ignore:run")
def test_ranks_of_langchain():
    names = run_recipe(
        "enumerate(found", answers=found_by_langchain(False), words=WORDS, judgments=JUDGED,
        pd=pd,
    )  # fmt: skip
    assert names["report"].engine_weights.engine == "langchain"
