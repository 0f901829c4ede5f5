"""Libraries that fuse lists themselves give the order of our rules, on the sample's runs.

They are the extra `engines`; each test skips where its library is not installed.
"""

import json

import numpy as np
import pytest

from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.joining import join
from structsvm_papk.fusion.requests import EngineWeights

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, by each version others

N_QUERIES = 15
TOLERANCE = 1e-9  # sums in another order


@pytest.fixture(scope="module")
def joined():
    year = retrieval_runs().test
    queries = year.judgments["query"].unique()[:N_QUERIES]
    return join({name: run[run["query"].isin(queries)] for name, run in year.runs.items()})


def weights_for(engine, joined):
    """Weights of six runs, of which one is 0; Qdrant's have no sum."""
    given = np.array([0.31, 0.0, 0.17, 0.08, 0.29, 0.15])
    if ENGINES[engine].rule.bend:
        given *= 9
    return EngineWeights(engine, dict(zip(joined.names, given.tolist(), strict=True)), 100)


def lists_of(joined):
    """Of each query a list of (document, score) for each run, by score, then document."""
    frame = joined.frame.astype({"document": str})
    for number in range(joined.n_queries):
        rows = frame[joined.query == number]
        lists = []
        for name in joined.names:
            retrieved = rows[["document", name]].dropna()
            order = sorted(zip(retrieved[name], retrieved["document"], strict=True), reverse=True)
            lists.append([(document, float(score)) for score, document in order])
        yield number, lists


def check_order(engine, joined, fused):
    """The order of a client, `fused(weights, lists)`, is ours: by our scores it falls nowhere."""
    weights = weights_for(engine, joined)
    ours = weights.scores(joined)
    documents = joined.frame["document"].astype(str).to_numpy()
    for number, lists in lists_of(joined):
        rows = joined.query == number
        score = dict(zip(documents[rows], ours[rows], strict=True))
        theirs = fused(weights, lists)
        assert sorted(theirs) == sorted(score)
        ordered = np.array([score[document] for document in theirs])
        assert (np.diff(ordered) <= TOLERANCE * ordered.max()).all()


def scaled(lists):
    """Each list between 0 and 1, as Haystack's `merge` wants them."""
    made = []
    for ranked in lists:
        values = [score for _, score in ranked]
        width = max(values, default=0) - min(values, default=0)
        made.append([(d, (s - min(values)) / width if width else 0.0) for d, s in ranked])
    return made


def test_langchain(joined):
    retrievers = pytest.importorskip("langchain_classic.retrievers")
    core = pytest.importorskip("langchain_core")
    documents = pytest.importorskip("langchain_core.documents")
    base = pytest.importorskip("langchain_core.retrievers")
    assert core

    class Given(base.BaseRetriever):
        found: list

        def _get_relevant_documents(self, query, *, run_manager):
            return self.found

    def fused(weights, lists):
        given = [
            Given(found=[documents.Document(page_content=document) for document, _ in ranked])
            for ranked in lists
        ]
        made = retrievers.EnsembleRetriever(retrievers=given, weights=weights.values.tolist())
        return [document.page_content for document in made.invoke("query")]

    check_order("langchain", joined, fused)


def test_llamaindex(joined):
    core = pytest.importorskip("llama_index.core.retrievers")
    schema = pytest.importorskip("llama_index.core.schema")
    llms = pytest.importorskip("llama_index.core.llms")

    class Given(core.BaseRetriever):
        def __init__(self, found):
            self.found = found
            super().__init__()

        def _retrieve(self, query_bundle):
            return self.found

    def fused(weights, lists):
        given = [
            Given([
                schema.NodeWithScore(node=schema.TextNode(text=document), score=score)
                for document, score in ranked
            ])
            for ranked in lists
        ]  # fmt: skip
        made = core.QueryFusionRetriever(
            given, retriever_weights=weights.values.tolist(), mode="relative_score",
            num_queries=1, similarity_top_k=10_000, use_async=False, llm=llms.MockLLM(),
        )  # fmt: skip
        return [found.node.text for found in made.retrieve("query")]

    check_order("llamaindex", joined, fused)


@pytest.mark.parametrize(
    ("engine", "mode", "prepare"),
    [
        ("haystack", "merge", scaled),
        ("haystack-rrf", "reciprocal_rank_fusion", lambda lists: lists),
    ],
)
def test_haystack(joined, engine, mode, prepare):
    joiners = pytest.importorskip("haystack.components.joiners")
    haystack = pytest.importorskip("haystack")

    def fused(weights, lists):
        made = joiners.DocumentJoiner(join_mode=mode, weights=weights.values.tolist())
        given = [
            [haystack.Document(id=document, content=document, score=s) for document, s in ranked]
            for ranked in prepare(lists)
        ]
        return [document.id for document in made.run(given)["documents"]]

    check_order(engine, joined, fused)


def test_qdrant(joined):
    """The client's own collection answers the request that is printed, with vectors in place."""
    qdrant = pytest.importorskip("qdrant_client")
    models = qdrant.models

    def fused(weights, lists):
        ids = sorted({document for ranked in lists for document, _ in ranked})
        number = {document: at for at, document in enumerate(ids)}
        names = list(weights.weights)
        client = qdrant.QdrantClient(":memory:")
        one = models.VectorParams(size=1, distance=models.Distance.DOT)
        client.create_collection("lists", vectors_config=dict.fromkeys(names, one))
        vectors = {at: {} for at in number.values()}
        for name, ranked in zip(names, lists, strict=True):
            for place, (document, _) in enumerate(ranked):
                vectors[number[document]][name] = [float(len(ids) - place)]
        points = [models.PointStruct(id=at, vector=each) for at, each in vectors.items()]
        client.upsert("lists", points)
        request = json.loads(weights.request())
        prefetch = [each | {"query": [1.0]} for each in request["prefetch"]]
        answer = client.query_points(
            "lists",
            prefetch=[models.Prefetch(**each) for each in prefetch],
            query=models.RrfQuery(**request["query"]),
            limit=len(ids),
        )
        return [ids[point.id] for point in answer.points]

    check_order("qdrant", joined, fused)
