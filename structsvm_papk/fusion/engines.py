"""What search engines and libraries compute from the lists of a query and weights, in one table.

A rule makes one number ``x >= 0`` of each score (or rank) in a run's list, 0 for what the run did
not retrieve, and a document scores

    sum over runs of  w x / (1 + bend w x),

a weighted sum where `bend` is 0, as everywhere but in Qdrant. Weights are at least 0.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.entries import places


class Rule(ABC):
    """What is made of the lists of one run; `of_scores` where scores count, and not only ranks."""

    name: str
    bend: float = 0.0
    rank_constant: float | None = None
    of_scores: bool = True

    @abstractmethod
    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """The number of each row of a run's lists; `place` counts from 0, queries are in order."""

    def columns(self, scores: Array, query: Array, document: Array) -> Array:
        """The number of every row and run, shape (n_rows, n_runs).

        `scores` have a column for each run, NaN where it did not retrieve the document; of equal
        scores the larger `document` is first.
        """
        columns = np.zeros(scores.shape)
        for column, score in enumerate(scores.T):
            rows = np.flatnonzero(~np.isnan(score))
            if not rows.size:
                continue
            place = places(query[rows], score[rows], document[rows])
            columns[rows, column] = self.of_lists(score[rows], query[rows], place)
        return columns

    def fused(self, columns: Array, weights: Array) -> Array:
        """The fused score of each row."""
        weighted = columns * weights
        scores: Array = (weighted / (1.0 + self.bend * weighted)).sum(axis=1)
        return scores


@dataclass(frozen=True)
class MinMax(Rule):
    """``(s - lowest) / (highest - lowest)`` of the list.

    `least` is what the lowest gets in place of 0; `equal` what a list of equal scores gets, None:
    the score itself.
    """

    least: float = 0.0
    equal: float | None = 0.0
    name = "minmax"

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        lowest, highest = _ends(score, query)
        width = highest - lowest
        constant = np.maximum(score, 0.0) if self.equal is None else np.full(score.size, self.equal)
        scaled = np.divide(score - lowest, width, out=constant, where=width > 0)
        scaled[(scaled == 0) & (width > 0)] = self.least
        return scaled


@dataclass(frozen=True)
class ReciprocalRank(Rule):
    """``1 / (constant + rank)``, ranks from 1: weighted reciprocal rank fusion."""

    constant: float = 60.0
    name = "rrf"
    of_scores = False

    @property
    def rank_constant(self) -> float:  # type: ignore[override]
        """The constant beside the rank."""
        return self.constant

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        return 1.0 / (self.constant + 1.0 + place)


@dataclass(frozen=True)
class StretchedRank(Rule):
    """Qdrant's: ``1 / ((position + 1) / w + k - 1)``, positions from 0; the scale of w matters.

    That is ``w x / (1 + (k - 1) w x)`` of ``x = 1 / (position + 1)``: a weight is the constant of
    its run as well.
    """

    constant: float = 2.0
    name = "qdrant-rrf"
    of_scores = False

    @property
    def rank_constant(self) -> float:  # type: ignore[override]
        """Qdrant's k."""
        return self.constant

    @property
    def bend(self) -> float:  # type: ignore[override]
        """k - 1."""
        return self.constant - 1.0

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        return 1.0 / (1.0 + place)


@dataclass(frozen=True)
class ZScore(Rule):
    """``(s - mean) / standard deviation`` of the list, and `least` where that is not above 0.

    The mean itself, and what stands in a list of equal scores, keeps the highest score.
    """

    least: float = 0.001
    name = "z_score"

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        n = np.bincount(query)[query]
        mean = np.bincount(query, score)[query] / n
        deviation = np.sqrt(np.bincount(query, (score - mean) ** 2)[query] / np.maximum(n - 1, 1))
        lowest, highest = _ends(score, query)
        scaled = np.divide(score - mean, deviation, out=np.zeros(score.size), where=deviation > 0)
        scaled = np.where(scaled > 0, scaled, self.least)
        keeps = (score == mean) | (lowest == highest)  # of which the mean may be rounded
        return np.where(keeps, np.maximum(highest, 0.0), scaled)


def _ends(score: Array, query: Array) -> tuple[Array, Array]:
    """The lowest and the highest score of each row's list."""
    lowest = np.full(int(query[-1]) + 1, np.inf)
    np.minimum.at(lowest, query, score)
    highest = np.full(lowest.size, -np.inf)
    np.maximum.at(highest, query, score)
    return lowest[query], highest[query]


@dataclass(frozen=True)
class Engine:
    """An engine's rule, and its limits.

    Attributes
    ----------
    rule : Rule
    source : str
        What its documentation or source says, and where.
    most_runs : int, optional
        More lists than these it does not join.
    """

    rule: Rule
    source: str
    most_runs: int | None = None


ENGINES = {
    "elasticsearch": Engine(
        MinMax(equal=None),
        "retriever `linear` with normalizer `minmax`: a sum of weight times (score - min) / (max - "
        "min), each at least 0; a list of equal scores keeps them (MinMaxScoreNormalizer)",
    ),
    "elasticsearch-rrf": Engine(
        ReciprocalRank(),
        "retriever `rrf`, from 9.2 on with weights: a sum of weight / (rank_constant + rank), "
        "rank_constant 60 by default",
    ),
    "opensearch": Engine(
        MinMax(least=0.001, equal=1.0),
        "`normalization-processor`, min_max and arithmetic_mean: weights in [0, 1] with the sum 1; "
        "the lowest of a list counts .001, a lone or equal score 1; `hybrid` takes five queries",
        most_runs=5,
    ),
    "opensearch-rrf": Engine(
        ReciprocalRank(),
        "`score-ranker-processor`, from 3.1 on with weights in [0, 1] with the sum 1: a sum of "
        "weight / (rank_constant + rank), rank_constant 60 by default; `hybrid` takes five queries",
        most_runs=5,
    ),
    "opensearch-zscore": Engine(
        ZScore(),
        "`normalization-processor`, z_score and arithmetic_mean: what is not above the mean of "
        "its list counts .001 (ZScoreNormalizationTechnique); `hybrid` takes five queries",
        most_runs=5,
    ),
    "weaviate": Engine(
        MinMax(equal=1.0),
        "hybrid search, relativeScoreFusion: (1 - alpha) times the scaled keyword score and alpha "
        "times the vector's; a list of equal scores counts 1 (FusionRelativeScore)",
        most_runs=2,
    ),
    "mongodb": Engine(
        MinMax(equal=0.0),
        "`$scoreFusion` with minMaxScaler and avg: the mean over pipelines of weight times scaled "
        "score, 0 where a pipeline has no document, and for a list of equal scores",
    ),
    "mongodb-rrf": Engine(
        ReciprocalRank(),
        "`$rankFusion`: a sum of weight / (60 + rank); the constant cannot be changed",
    ),
    "vespa": Engine(
        MinMax(equal=0.5),
        "`normalize_linear` in a global-phase expression: (x - min) / (max - min) over the hits, "
        ".5 where all are equal (LinearNormalizer); every hit has every score there",
    ),
    "llamaindex": Engine(
        MinMax(equal=1.0),
        "QueryFusionRetriever, mode `relative_score`: a sum of retriever_weights times (score - "
        "min) / (max - min); a list of equal scores counts 1",
    ),
    "haystack": Engine(
        MinMax(equal=0.0),
        "DocumentJoiner, mode `merge`: a sum of weight times score, of scores that were scaled "
        "before",
    ),
    "haystack-rrf": Engine(
        ReciprocalRank(),
        "DocumentJoiner, mode `reciprocal_rank_fusion`: a sum of weight / (60 + rank)",
    ),
    "langchain": Engine(
        ReciprocalRank(),
        "EnsembleRetriever: a sum of weight / (c + rank), c = 60 by default",
    ),
    "azure": Engine(
        ReciprocalRank(),
        "hybrid queries: a sum of weight / (60 + rank); vector queries have a weight above 0, the "
        "text query counts 1",
    ),
    "qdrant": Engine(
        StretchedRank(),
        "fusion `rrf` with weights: a sum of 1 / ((position + 1) / weight + k - 1), k = 2 by "
        "default, 0 where the weight is 0 (reciprocal_rank_fusion.rs)",
    ),
}


def engine_of(name: str) -> Engine:
    """The engine of a name; a wrong one lists all."""
    if not isinstance(name, str) or name not in ENGINES:
        shown = reprlib.repr(name)
        raise InputError(f"no engine is called {shown}; known are {', '.join(ENGINES)}")
    return ENGINES[name]
