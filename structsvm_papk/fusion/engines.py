"""What search engines and libraries compute from the lists of a query and weights, in one table.

A rule makes one number ``x >= 0`` of each score (or rank) in a run's list, 0 for what the run did
not retrieve, and a document scores

    sum over runs of  w x / (1 + bend w x),

a weighted sum where `bend` is 0, as everywhere but in Qdrant. Weights are at least 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.validation import places_of
from structsvm_papk.errors import InputError, as_names, check_number
from structsvm_papk.fusion.entries import places
from structsvm_papk.fusion.joining import RUNS

if TYPE_CHECKING:
    import pandas as pd


class Rule(ABC):
    """What is made of the lists of one run; `of_scores` where scores count, and not only ranks."""

    name: str
    bend: float = 0.0
    rank_constant: float | None = None
    of_scores: bool = True

    @property
    def learned_from(self) -> Rule:
        """The rule from whose numbers weights are learned."""
        return self

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

    `least` is what the lowest gets in place of 0, `equal` what a list of equal scores gets, where
    they are not above 0 `equal_not_positive`. Scores that differ by less than `resolution` are
    equal.
    """

    least: float = 0.0
    equal: float = 0.0
    equal_not_positive: float | None = None
    resolution: float = 0.0
    name = "minmax"

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        lowest, highest = _ends(score, query)
        width = highest - lowest
        differ = (width > 0) & (width >= self.resolution)
        constant = np.full(score.size, self.equal)
        if self.equal_not_positive is not None:
            constant[highest <= 0] = self.equal_not_positive
        scaled = np.divide(score - lowest, width, out=constant, where=differ)
        scaled[(scaled == 0) & differ] = self.least
        return scaled


@dataclass(frozen=True)
class Raw(Rule):
    """The score as it is."""

    name = "raw"

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        return score


@dataclass(frozen=True)
class ReciprocalRank(Rule):
    """``1 / (constant + rank)``, ranks from 1: weighted reciprocal rank fusion."""

    rank_constant: float = 60.0
    name = "rrf"
    of_scores = False

    @property
    def learned_from(self) -> Rule:
        """``1 / rank``: a constant of 60 hardly tells first places from others."""
        return ReciprocalRank(0.0)

    def of_lists(self, score: Array, query: Array, place: Array) -> Array:
        """As `Rule` says."""
        return 1.0 / (self.rank_constant + 1.0 + place)


@dataclass(frozen=True)
class StretchedRank(Rule):
    """Qdrant's: ``1 / ((position + 1) / w + k - 1)``, positions from 0; the scale of w matters.

    That is ``w x / (1 + (k - 1) w x)`` of ``x = 1 / (position + 1)``: a weight is the constant of
    its run as well.
    """

    rank_constant: float = 2.0
    name = "qdrant-rrf"
    of_scores = False

    @property
    def bend(self) -> float:  # type: ignore[override]
        """k - 1."""
        return self.rank_constant - 1.0

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
    lowest = np.full(int(query.max()) + 1, np.inf)
    np.minimum.at(lowest, query, score)
    highest = np.full(lowest.size, -np.inf)
    np.maximum.at(highest, query, score)
    return lowest[query], highest[query]


@dataclass(frozen=True)
class Engine:
    """A rule of an engine, and its limits.

    Attributes
    ----------
    rule : Rule
    form : str
        What the engine calls this one.
    most_runs : int, optional
        More lists than these it does not join.
    is_weighted : bool
        Whether it takes weights.
    takes_constant : bool
        Whether the constant of ranks can be set.
    """

    rule: Rule
    form: str
    most_runs: int | None = None
    is_weighted: bool = True
    takes_constant: bool = False

    def with_constant(self, constant: float | None) -> Engine:
        """The rule with another constant of ranks, where one is given."""
        rule: Any = self.rule
        if constant is None or rule.rank_constant is None:
            return self
        return replace(self, rule=replace(rule, rank_constant=constant))


# of each what its documentation or source says, and from which version on; an engine that has
# several rules is the beginning of their names
ENGINES = {
    # retriever `linear` (8.18, 9.0) with normalizer `minmax`: a sum of weight times (score - min) /
    # (max - min), 1 for a lone hit and for equal scores (elastic/elasticsearch #128689, June 2025,
    # backported to 8.18 and 8.19)
    "elasticsearch": Engine(MinMax(equal=1.0, resolution=1e-6), "linear"),
    # retriever `rrf`, from 9.2 on with weights: a sum of weight / (rank_constant + rank),
    # rank_constant 60 by default
    "elasticsearch-rrf": Engine(ReciprocalRank(), "rrf", takes_constant=True),
    # `normalization-processor` (2.10), min_max without bounds, and arithmetic_mean: weights in [0,
    # 1] with the sum 1; the lowest of a list counts .001, a lone or equal score 1; `hybrid` takes
    # five queries
    "opensearch": Engine(MinMax(least=0.001, equal=1.0), "min_max", most_runs=5),
    # `normalization-processor`, z_score (3.0) and arithmetic_mean: what is not above the mean of
    # its list counts .001 (ZScoreNormalizationTechnique); `hybrid` takes five queries
    "opensearch-zscore": Engine(ZScore(), "z_score", most_runs=5),
    # `score-ranker-processor` (2.19), from 3.1 on with weights in [0, 1] with the sum 1: a sum of
    # weight / (rank_constant + rank), rank_constant 60 by default; `hybrid` takes five queries
    "opensearch-rrf": Engine(ReciprocalRank(), "rrf", most_runs=5, takes_constant=True),
    # hybrid search, relativeScoreFusion: (1 - alpha) times the scaled keyword score and alpha times
    # the vector's; a list of equal scores counts 1 (FusionRelativeScore)
    "weaviate": Engine(MinMax(equal=1.0), "relativeScoreFusion", most_runs=2),
    # `$scoreFusion` with minMaxScaler and avg: the mean over pipelines of weight times scaled
    # score, 0 where a pipeline has no document, and for a list of equal scores
    "mongodb": Engine(MinMax(equal=0.0), "$scoreFusion"),
    # `$rankFusion`: a sum of weight / (60 + rank); the constant cannot be changed
    "mongodb-rrf": Engine(ReciprocalRank(), "$rankFusion"),
    # `WeightedRanker(.., norm_score=False)` of hybrid_search (2.6): a sum of weight times score,
    # weights in [0, 1], 0 where a search has no entity; of COSINE, IP and BM25, where larger is
    # better
    "milvus": Engine(Raw(), "WeightedRanker"),
    # `RRFRanker(k)` of hybrid_search (2.6): a sum of 1 / (k + rank), k 60 by default; it takes no
    # weights
    "milvus-rrf": Engine(ReciprocalRank(), "RRFRanker", is_weighted=False, takes_constant=True),
    # `normalize_linear` in a global-phase expression: (x - min) / (max - min) over the hits, .5
    # where all are equal (LinearNormalizer); every hit has every score there
    "vespa": Engine(MinMax(equal=0.5), "normalize_linear"),
    # QueryFusionRetriever, mode `relative_score` (llama-index-core 0.14): a sum of
    # retriever_weights times (score - min) / (max - min); a list of equal scores counts 1, or 0
    # where they are not above 0
    "llamaindex": Engine(MinMax(equal=1.0, equal_not_positive=0.0), "relative_score"),
    # DocumentJoiner, mode `merge`: a sum of weight times score, of scores that were scaled before
    "haystack": Engine(MinMax(equal=0.0), "merge"),
    # DocumentJoiner, mode `reciprocal_rank_fusion`: a sum of weight / (60 + rank)
    "haystack-rrf": Engine(ReciprocalRank(), "reciprocal_rank_fusion"),
    # EnsembleRetriever: a sum of weight / (c + rank), c = 60 by default
    "langchain": Engine(ReciprocalRank(), "EnsembleRetriever", takes_constant=True),
    # hybrid queries: a sum of weight / (60 + rank); vector queries have a weight above 0, the text
    # query counts 1
    "azure": Engine(ReciprocalRank(), "hybrid"),
    # fusion `rrf` with weights (1.17): a sum of 1 / ((position + 1) / weight + k - 1), k = 2 by
    # default, 0 where the weight is 0 (reciprocal_rank_fusion.rs)
    "qdrant": Engine(StretchedRank(), "rrf", takes_constant=True),
}
_FIRST_OF_FAMILY = {  # names of one rule where the engine's name stands for all of them
    "elasticsearch-linear": "elasticsearch",
    "opensearch-minmax": "opensearch",
    "mongodb-score": "mongodb",
    "milvus-weighted": "milvus",
    "haystack-merge": "haystack",
}
NAMES = (*ENGINES, *_FIRST_OF_FAMILY)


def engine_of(name: str) -> Engine:
    """The rule of a name; a wrong one lists all."""
    if name not in list(ENGINES):
        raise InputError(f"no engine is called {name!r:.40}; known are {', '.join(NAMES)}")
    return ENGINES[name]


def rules_of(name: str) -> tuple[str, ...]:
    """Names in `ENGINES` of the rules to choose from: all of an engine, or one that is named."""
    if name in _FIRST_OF_FAMILY:
        return (_FIRST_OF_FAMILY[name],)
    engine_of(name)
    if name != _family(name):
        return (name,)
    return tuple(rule for rule in ENGINES if _family(rule) == name)


def siblings_of(name: str) -> tuple[str, ...]:
    """Names in `ENGINES` of all rules of the engine that has the rule of a name."""
    return rules_of(_family(name))


def _family(name: str) -> str:
    return name.partition("-")[0]


# --- what joins lists without judgments -----------------------------------------------------------


def rrf(joined: pd.DataFrame, k: float = 60, *, runs: Sequence[str] | None = None) -> Array:
    """Reciprocal rank fusion: ``sum over runs of 1 / (k + rank)``, 0 where not retrieved.

    Ranks count from 1 in each query's list of a run; of equal scores the larger document id is
    first, as trec_eval sorts. Cormack, Clarke and Buettcher, SIGIR 2009.

    Parameters
    ----------
    joined : pandas.DataFrame
        As `join_lists` makes it.
    k : float
        At least 0; the larger, the less the first places count.
    runs : sequence of str, optional
        Columns that are joined; by default the runs that were given to `join_lists`.

    Returns
    -------
    ndarray of shape (n_rows,)
    """
    check_number("k", k, least=0.0)
    return _summed(ReciprocalRank(k), joined, runs)


def combsum(joined: pd.DataFrame, *, runs: Sequence[str] | None = None) -> Array:
    """CombSUM: the sum of scores between 0 and 1; equal weights. Shape (n_rows,).

    0 is the lowest of a run's list, what the run did not retrieve, and where all of its scores are
    equal. `runs` as for `rrf`. Fox and Shaw, TREC-2, 1994.
    """
    return _summed(MinMax(), joined, runs)


def _summed(rule: Rule, joined: pd.DataFrame, runs: Sequence[str] | None) -> Array:
    """The sum of what a rule makes of the lists."""
    scores = joined[run_names(joined, runs)].to_numpy()
    query = joined.iloc[:, 0].factorize()[0]
    codes, ids = joined.iloc[:, 1].factorize()
    summed: Array = rule.columns(scores, query, places_of(ids)[codes]).sum(axis=1)
    return summed


def from_lowest(scores: Array, query: Array) -> Array:
    """Scores less the lowest of their list: what reads them in single precision keeps the order."""
    import pandas as pd

    shifted: Array = scores - pd.Series(scores).groupby(query).transform("min").to_numpy()
    return shifted


def run_names(joined: pd.DataFrame, runs: Sequence[str] | None = None) -> list[str]:
    """The columns of runs: those that are named, or those that `join_lists` made."""
    if not hasattr(joined, "iloc"):
        raise TypeError(f"a frame is needed, as join_lists makes it, not {type(joined).__name__}")
    names = as_names("runs", joined.attrs.get(RUNS, []) if runs is None else runs, str)
    if not names:
        raise InputError("which columns are runs? Name them: runs=['bm25', ..]")
    absent = [name for name in names if name not in joined]
    if absent:
        raise InputError(f"the frame has no column {absent[0]!r} of a run")
    return list(names)
