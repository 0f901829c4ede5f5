"""The recipes of the manual for other libraries run, on the sample's runs in their forms."""

import re
from pathlib import Path

import pandas as pd
import pytest

from structsvm_papk import PAPKRanker, fusion
from structsvm_papk.datasets import retrieval_runs

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "fuse.md"

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


def test_beir_evaluates_its_results(beir):
    evaluation = pytest.importorskip("beir.retrieval.evaluation").EvaluateRetrieval
    ndcg = evaluation.evaluate(*beir, [10])[0]
    assert ndcg["NDCG@10"] > 0.5
