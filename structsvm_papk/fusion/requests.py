"""Weights of an engine as a file, as scores, and as the request that they are pasted into."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.errors import InputError, check_number, check_type, whole_number
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.fusion.engines import Engine, engine_of

if TYPE_CHECKING:
    from structsvm_papk.fusion.joining import Joined
from collections.abc import Hashable, Sequence

from structsvm_papk.data import validation
from structsvm_papk.data.validation import single
from structsvm_papk.errors import as_floats
from structsvm_papk.files.model import Model

_SHOWN = 10  # documents that a request asks for
_DIGITS = 6
_MOST_BYTES = 1 << 20  # of a file of weights: one that is longer holds something else


@dataclass(frozen=True)
class EngineWeights:
    """What an engine needs: weights of runs, and the window of their lists.

    Attributes
    ----------
    engine : str
        A name of `engines.ENGINES`.
    weights : dict of str to float
        By run, at least 0; with the sum 1 where their scale does not matter.
    window : int
        Documents of each list that the weights were learned on: the engine has to join as many.
    rank_constant : float, optional
        Of the engine's rule of ranks; None: the engine's own.

    Raises
    ------
    InputError
        Values that no engine takes.
    """

    engine: str
    weights: dict[str, float]
    window: int
    rank_constant: float | None = None

    def __post_init__(self) -> None:
        engine_of(self.engine)
        if not isinstance(self.weights, Mapping) or not self.weights:
            raise InputError(f"weights must be a dict {{run: weight}}, got {self.weights!r:.100}")
        for name, weight in self.weights.items():
            check_type("the name of a run", name, str, "text")
            check_number(f"the weight of run {name!r}", weight, least=0.0)
        weights = {name: float(weight) for name, weight in self.weights.items()}
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "window", whole_number("window", self.window))
        check_number("rank_constant", self.rank_constant, above=0.0, optional=True)
        own = engine_of(self.engine).rule.rank_constant
        if self.rank_constant == own:
            object.__setattr__(self, "rank_constant", None)
        elif self.rank_constant is not None and not engine_of(self.engine).takes_constant:
            raise InputError(
                f"rank_constant is {self.rank_constant}, and {self.engine} has {own}, which cannot "
                "be changed"
            )

    @property
    def record(self) -> Engine:
        """The engine with its rule."""
        return engine_of(self.engine).with_constant(self.rank_constant)

    @property
    def values(self) -> Array:
        """The weights in the order of the runs."""
        return np.array(list(self.weights.values()))

    def scores(self, joined: Joined) -> Array:
        """Fused score of each row of joined lists, whose runs are these in this order."""
        return self.of_matrix(joined.scores.to_numpy(), joined.query, joined.place)

    def of_matrix(self, scores: Array, query: Array, document: Array) -> Array:
        """Fused score of each row of a column for each run, NaN where it has no document."""
        rule = self.record.rule
        return rule.fused(rule.columns(scores, query, document), self.values)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as the file has them."""
        return {
            "engine": self.engine,
            "rule": self.record.rule.name,
            "weights": self.weights,
            "rank_constant": self.record.rule.rank_constant,
            "window": self.window,
        }

    def save(self, path: PathLike) -> None:
        """Write a JSON file."""
        write_atomically(Path(path), (json.dumps(self.as_dict(), indent=2) + "\n").encode())

    def request(self) -> str:
        """What is pasted: a body of JSON, or a line of code."""
        weights = {name: round(w, _DIGITS) for name, w in self.weights.items()}
        constant = self.record.rule.rank_constant
        if constant is not None and constant == int(constant):
            constant = int(constant)
        made = _REQUESTS[self.engine](weights, self.window, constant)
        return made if isinstance(made, str) else json.dumps(made, indent=2)


def load_weights(path: PathLike) -> EngineWeights:
    """The weights that ``fuse --for-engine NAME --weights FILE`` or `EngineWeights.save` wrote.

    Raises
    ------
    InputError
        A file that has none.
    """
    check_type("path", path, str | os.PathLike, "the path of a file")
    weights = read_weights(Path(path))
    if weights is None:
        raise InputError(f"{path}: not the weights of an engine, as --weights writes them")
    return weights


def read_weights(path: Path) -> EngineWeights | None:
    """The weights of a file; None where it is something else."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES)
        content = json.loads(text, object_pairs_hook=_each_key_once)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(content, dict) or "engine" not in content:
        return None
    try:
        constant = content.get("rank_constant")
        read = EngineWeights(content["engine"], content["weights"], content["window"], constant)
    except KeyError as error:
        raise InputError(f"{path}: not the weights of an engine: {error} is missing") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    for name, value in read.as_dict().items():
        if name not in ("weights", "window") and content.get(name, value) != value:
            raise InputError(
                f"{path}: {name} is {content[name]!r:.100}, but {value!r} in {read.engine}: learn "
                "weights for an engine as it is set"
            )
    return read


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise InputError(f"{repeated!r} is there twice; give it once")
    return content


# --- requests -------------------------------------------------------------------------------------

Weights: TypeAlias = dict[str, float]
Request: TypeAlias = Callable[[Weights, int, float | None], Any]  # of weights, window, constant


def _here(what: str) -> dict[str, str]:
    """Where the user's own part stands in the request."""
    return {"PUT HERE": what}


def _plain(names: Iterable[str]) -> list[str]:
    """Names of variables, functions and pipelines, each once."""
    plain: list[str] = []
    for name in names:
        made = re.sub(r"\W", "_", name, flags=re.ASCII)
        if made[0].isdigit():
            made = f"_{made}"
        while made in plain:
            made += "_"
        plain.append(made)
    return plain


def _retrievers(weights: Weights, window: int, **more: str) -> list[dict[str, Any]]:
    """Elasticsearch's, with their weights."""
    return [
        {
            "retriever": _here(f"the retriever of {name}: standard, or knn with k {window}"),
            "weight": w,
            **more,
        }
        for name, w in weights.items()
    ]


def _elasticsearch(weights: Weights, window: int, constant: float | None) -> dict[str, Any]:
    retrievers = _retrievers(weights, window, normalizer="minmax")
    linear = {"retrievers": retrievers, "rank_window_size": window}
    return {"retriever": {"linear": linear}, "size": min(_SHOWN, window)}


def _elasticsearch_rrf(weights: Weights, window: int, constant: float | None) -> dict[str, Any]:
    retrievers = _retrievers(weights, window)
    rrf = {"retrievers": retrievers, "rank_constant": constant, "rank_window_size": window}
    return {"retriever": {"rrf": rrf}, "size": min(_SHOWN, window)}


def _opensearch(
    processor: dict[str, Any],
) -> Callable[[Weights, int, float | None], dict[str, Any]]:
    """A search with its pipeline in the request; the pipeline can be stored as well."""

    def request(weights: Weights, window: int, constant: float | None) -> dict[str, Any]:
        (name,) = processor
        combination = processor[name]["combination"] | {
            "parameters": {"weights": list(weights.values())}
        }
        if constant is not None:
            combination["rank_constant"] = constant
        filled = {name: processor[name] | {"combination": combination}}
        queries = [_here(f"the query of {run}: match, or knn with k {window}") for run in weights]
        hybrid = {"pagination_depth": window, "queries": queries}
        return {
            "size": _SHOWN,
            "query": {"hybrid": hybrid},
            "search_pipeline": {"phase_results_processors": [filled]},
        }

    return request


def _normalization(technique: str) -> dict[str, Any]:
    return {
        "normalization-processor": {
            "normalization": {"technique": technique},
            "combination": {"technique": "arithmetic_mean"},
        }
    }


def _pipelines(weights: Weights, window: int) -> tuple[dict[str, Any], Weights]:
    """Pipelines and their weights; a name of theirs has no dot and no dollar."""
    names = _plain(weights)
    stages = [
        [_here(f"the stage of {name}: $search or $vectorSearch"), {"$limit": window}]
        for name in weights
    ]
    return (
        dict(zip(names, stages, strict=True)),
        dict(zip(names, weights.values(), strict=True)),
    )


def _mongodb(weights: Weights, window: int, constant: float | None) -> list[dict[str, Any]]:
    pipelines, weights = _pipelines(weights, window)
    fusion = {
        "input": {"pipelines": pipelines, "normalization": "minMaxScaler"},
        "combination": {"weights": weights, "method": "avg"},
    }
    return [{"$scoreFusion": fusion}, {"$limit": _SHOWN}]


def _mongodb_rrf(weights: Weights, window: int, constant: float | None) -> list[dict[str, Any]]:
    pipelines, weights = _pipelines(weights, window)
    fusion = {"input": {"pipelines": pipelines}, "combination": {"weights": weights}}
    return [{"$rankFusion": fusion}, {"$limit": _SHOWN}]


def _qdrant(weights: Weights, window: int, constant: float | None) -> dict[str, Any]:
    prefetch = [
        {"query": _here(f"the vector of the query for {name}"), "using": name, "limit": window}
        for name in weights
    ]
    rrf = {"k": constant, "weights": list(weights.values())}
    return {"prefetch": prefetch, "query": {"rrf": rrf}, "limit": _SHOWN}


def _weaviate(weights: Weights, window: int, constant: float | None) -> str:
    *_, vector = weights
    alpha = round(weights[vector] / sum(weights.values()), _DIGITS)
    return (
        f'collection.query.hybrid(query="PUT HERE", alpha={alpha}, '
        f"fusion_type=HybridFusion.RELATIVE_SCORE, limit={window})"
        f"  # alpha is the weight of the vector, here {vector}"
    )


def _azure(weights: Weights, window: int, constant: float | None) -> dict[str, Any]:
    """Vector queries have weights above 0, the text query, the first run, counts 1."""
    text, *vectors = weights
    unit = weights[text] or 1.0
    queries = [
        {
            "kind": "vector",
            "vector": _here(f"the vector of the query for {name}"),
            "fields": name,
            "k": window,
            "weight": round(weights[name] / unit, _DIGITS),
        }
        for name in vectors
        if weights[name] > 0
    ]
    body = {"vectorQueries": queries, "top": _SHOWN}
    if weights[text] == 0:
        return body
    return {"search": f"PUT HERE the text query, which counts 1, here {text}"} | body


def _vespa(weights: Weights, window: int, constant: float | None) -> str:
    names = zip(_plain(weights), weights.values(), strict=True)
    terms = [f"{w} * normalize_linear({name})" for name, w in names]
    return f"global-phase {{\n    expression: {' + '.join(terms)}\n    rerank-count: {window}\n}}"


def _code(template: str) -> Request:
    """A line of code with names of lists, weights, constant, window and number of documents."""

    def request(weights: Weights, window: int, constant: float | None) -> str:
        values = list(weights.values())
        return template.format(
            names=f"[{', '.join(_plain(weights))}]",
            weights=values,
            separate=", ".join(map(str, values)),
            constant=constant,
            window=window,
            shown=_SHOWN,
        )

    return request


_MILVUS = _code(
    "collection.hybrid_search({names}, rerank=WeightedRanker({separate}, norm_score=False), "
    "limit={shown})  # requests AnnSearchRequest(.., limit={window}) of these fields, by COSINE, "
    "IP or BM25"
)
_MILVUS_RRF = _code(
    "collection.hybrid_search({names}, rerank=RRFRanker({constant}), limit={shown})"
    "  # requests AnnSearchRequest(.., limit={window}) of these fields"
)
_LANGCHAIN = _code(
    "EnsembleRetriever(retrievers={names}, weights={weights}, c={constant})  # each with k={window}"
)
_LLAMAINDEX = _code(
    "QueryFusionRetriever({names}, retriever_weights={weights}, "
    'mode="relative_score", num_queries=1, llm=MockLLM(), similarity_top_k={shown})'
    "  # each with similarity_top_k={window}; no language model is asked"
)
_HAYSTACK = _code(
    'DocumentJoiner(join_mode="merge", weights={weights}, top_k={shown})'
    "  # lists of {names}, each with top_k={window}, scaled to 0..1 before"
)
_HAYSTACK_RRF = _code(
    'DocumentJoiner(join_mode="reciprocal_rank_fusion", weights={weights}, top_k={shown})'
    "  # lists of {names}, each with top_k={window}"
)
_REQUESTS: dict[str, Request] = {
    "elasticsearch": _elasticsearch,
    "elasticsearch-rrf": _elasticsearch_rrf,
    "opensearch": _opensearch(_normalization("min_max")),
    "opensearch-rrf": _opensearch(
        {"score-ranker-processor": {"combination": {"technique": "rrf"}}}
    ),
    "opensearch-zscore": _opensearch(_normalization("z_score")),
    "weaviate": _weaviate,
    "mongodb": _mongodb,
    "mongodb-rrf": _mongodb_rrf,
    "milvus": _MILVUS,
    "milvus-rrf": _MILVUS_RRF,
    "vespa": _vespa,
    "llamaindex": _LLAMAINDEX,
    "haystack": _HAYSTACK,
    "haystack-rrf": _HAYSTACK_RRF,
    "langchain": _LANGCHAIN,
    "azure": _azure,
    "qdrant": _qdrant,
}


# --- the lists of one query, as a service has them ------------------------------------------------


@dataclass(frozen=True)
class Fusing:
    """What weights of an engine and a model of runs both are.

    Attributes
    ----------
    names : tuple of str
        The runs, in the order of the columns.
    window : int, optional
        Documents of each list that count; None: all.
    fused : function
        ``fused(scores, query, document)``, the score of each row of a column for each run, NaN
        where it has no document.
    """

    names: tuple[str, ...]
    window: int | None
    fused: Callable[[Array, Array, Array], Array]

    @classmethod
    def of(cls, weights: EngineWeights | Model) -> Fusing:
        """Of either."""
        check_type("weights", weights, EngineWeights | Model, "weights of an engine, or a model")
        if isinstance(weights, EngineWeights):
            return cls(tuple(weights.weights), weights.window, weights.of_matrix)

        def predicted(scores: Array, query: Array, document: Array) -> Array:
            return weights.predict(scores, query)

        return cls(weights.feature_names or (), None, predicted)


def fuse(
    weights: EngineWeights | Model, lists: Mapping[str, Mapping[Any, float]]
) -> dict[Any, float]:
    """Fuse the lists of one query.

    Parameters
    ----------
    weights : EngineWeights or Model
        As `load_weights` and `load_model` read them, or ``report.engine_weights`` and
        ``report.ranker.to_model()``.
    lists : dict of str to dict
        By run, the scores of its documents; a run that is left out retrieved nothing. An engine
        joins the best of each, as many as the window of its weights says.

    Returns
    -------
    dict
        The fused score of each document, the best first; of equal scores the id that is larger as
        text is first.

    Raises
    ------
    InputError
        A run that the weights do not know; a score that is not finite; ids of documents that are
        numbers and texts.

    Examples
    --------
    >>> from structsvm_papk import fusion
    >>> from structsvm_papk.fusion.requests import EngineWeights
    >>> weights = EngineWeights("langchain", {"keywords": 0.4, "dense": 0.6}, window=100)
    >>> fused = fusion.fuse(weights, {"keywords": {"a": 7.1, "b": 3.0}, "dense": {"b": 0.8}})
    >>> list(fused)
    ['b', 'a']
    """
    fusing = Fusing.of(weights)
    check_type("lists", lists, Mapping, "a dict {run: {document: score}}")
    names = fusing.names
    for name, scores_of_run in lists.items():
        check_type(f"lists[{name!r}]", scores_of_run, Mapping, "a dict {document: score}")
    unknown = [name for name in lists if name not in names]
    if unknown:
        raise InputError(f"no weight is for run {unknown[0]!r}: they are of {', '.join(names)}")
    ids = {each for scores in lists.values() for each in scores}
    if len({validation.family(type(each)) for each in ids}) > 1:
        raise InputError("ids of documents are numbers and texts: give one kind")
    documents = sorted(ids, key=str, reverse=True)
    scores = _matrix(documents, names, lists)
    if fusing.window is not None:
        scores = _within(scores, fusing.window)
        joined = np.flatnonzero(~np.isnan(scores).all(axis=1))
        documents = [documents[row] for row in joined]
        scores = scores[joined]
    if not documents:
        return {}
    query = np.zeros(len(documents), dtype=np.int64)
    fused = fusing.fused(scores, query, -np.arange(len(documents)))
    order = np.argsort(-fused, kind="stable")
    return {documents[place]: float(fused[place]) for place in order}


def _within(scores: Array, window: int) -> Array:
    """The first `window` of each column, NaN behind them; ties are in the order of the rows."""
    order = np.argsort(-single(scores), axis=0, kind="stable")  # NaN behind all numbers
    place = np.argsort(order, axis=0)
    return np.where(place < window, scores, np.nan)


def _matrix(
    documents: Sequence[Hashable], names: Sequence[str], lists: Mapping[str, Mapping[Any, float]]
) -> Array:
    """A row for each document and a column for each run, NaN where it did not retrieve it."""
    row = {document: number for number, document in enumerate(documents)}
    matrix = np.full((len(documents), len(names)), np.nan)
    for column, name in enumerate(names):
        of_run = lists.get(name, {})
        values = as_floats(f"scores of run {name!r}", list(of_run.values()))
        if values.ndim != 1 or not np.isfinite(values).all():
            raise InputError(f"run {name!r} has a score that is not a finite number")
        matrix[[row[document] for document in of_run], column] = values
    return matrix
