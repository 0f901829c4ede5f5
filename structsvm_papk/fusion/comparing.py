"""What learned weights are worth on queries that they were not learned from.

The fused ranking stands beside each run alone, RRF and CombSUM. The best of those is chosen on the
training folds too, so that the choice gives it no advantage.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.bounds import required_users
from structsvm_papk.errors import DegenerateOptimumWarning, InputError, check_type
from structsvm_papk.fusion.engines import engine_of
from structsvm_papk.fusion.held_out import FOLD_TOL, YARDSTICKS, CrossValidation, Settings, shares
from structsvm_papk.fusion.in_rule import Option, RuleSearch, normalised
from structsvm_papk.fusion.joining import Joined, join
from structsvm_papk.fusion.report import (
    CHOSEN,
    FUSED,
    NO_WEIGHTS,
    FusionReport,
    Ranking,
    RunWeight,
)
from structsvm_papk.fusion.requests import EngineWeights
from structsvm_papk.metrics.significance import no_interval
from structsvm_papk.metrics.table import MetricTable

_FEW_TIMES = 20  # more queries than this many times those at hand are not asked for
_WITHOUT_JUDGMENTS = (*YARDSTICKS, NO_WEIGHTS)
_NOTHING_LEARNED = (
    "Nothing was learned: all weights are 0, as by the judgments no run ranks relevant documents "
    "above others."
)
Progress: TypeAlias = Callable[[str], None]


def cross_validate(
    runs: Mapping[str, Any],
    judgments: Any,
    k: int = 10,
    *,
    relevance_threshold: float | None = None,
    on: tuple[str, str] = ("query", "document"),
    ablate: bool = False,
    cv: int = 5,
    level: float = 0.95,
    n_resamples: int = 2000,
    n_refits: int = 200,
    random_state: int = 0,
) -> FusionReport:
    """Learn weights of runs, and say what they are worth on queries they were not learned from.

    The judged queries are cut into `cv` folds; each is ranked by weights that `PAPKRanker` learned
    from the others. nDCG@k is that of trec_eval: gains are grades, the ideal list is of all
    judgments, whether a run retrieved them or not, and ties are broken by document id.

    Parameters
    ----------
    runs, judgments, on
        As for `join_lists`.
    k : int
        Places that count, in training and in nDCG@k.
    relevance_threshold : float, optional
        Documents with at least this grade are relevant in training. By default grades of more than
        two values train as they are, see `PAPKRanker`; of two the larger is relevant.
    ablate : bool
        Say of each run what it adds: cross-validation without it, and intervals of the weights
        over `n_refits` fits with random weights of the queries (Bayesian bootstrap).
    cv : int
        Folds; fewer where fewer queries can be used.
    level : float
        Coverage of the intervals, of which none is made of fewer than 10 queries.
    n_resamples, n_refits, random_state : int

    Returns
    -------
    FusionReport
        `rankings`, `weights`, `advice`, and `ranker`, trained on all queries: its `predict` scores
        the run columns of another frame of `join_lists`, with ``groups=frame["query"]``.

    Raises
    ------
    InputError
        As `join_lists`; one run; fewer than two queries with a relevant and another document.
    """
    check_type("ablate", ablate, bool | np.bool_, "True or False")
    if judgments is None:
        raise TypeError("judgments must be a file, a frame or a dictionary: weights need some")
    settings = Settings(
        k=k,
        threshold=relevance_threshold,
        engine=None,
        n_folds=cv,
        level=level,
        n_resamples=n_resamples,
        n_refits=n_refits,
        seed=random_state,
    )
    return validated(join(runs, judgments, on), settings, ablate)


def for_engine(
    engine: str,
    runs: Mapping[str, Any],
    judgments: Any,
    k: int = 10,
    *,
    depth: int | None = None,
    relevance_threshold: float | None = None,
    on: tuple[str, str] = ("query", "document"),
    ablate: bool = False,
    cv: int = 5,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
) -> FusionReport:
    """Weights for a search engine, learned and judged in the rule by which it joins lists.

    Candidates are certified weights of min-max scores, and a search of nDCG@k in the rule that
    begins at the best of them, which is kept where held-out queries say so.

    Parameters
    ----------
    engine : str
        elasticsearch, opensearch, weaviate, mongodb, vespa, llamaindex, haystack: weighted sums of
        min-max scores. elasticsearch-rrf, opensearch-rrf, mongodb-rrf, langchain, haystack-rrf,
        azure: weighted reciprocal ranks. qdrant: its own. opensearch-zscore.
    runs, judgments, on
        As for `join_lists`.
    k, relevance_threshold, ablate, cv, level, n_resamples, random_state
        As for `cross_validate`.
    depth : int, optional
        Only so many documents of each list, as many as the engine joins.

    Returns
    -------
    FusionReport
        Rankings are by the engine's rule: by these weights, by each run, and without weights.
        ``engine_weights`` has the weights, and ``engine_weights.request()`` what is pasted.

    Raises
    ------
    InputError
        An engine that is not known; more runs than it joins; as `cross_validate`.
    """
    check_type("ablate", ablate, bool | np.bool_, "True or False")
    settings = Settings(
        k=k,
        threshold=relevance_threshold,
        engine=engine,
        n_folds=cv,
        level=level,
        n_resamples=n_resamples,
        n_refits=2,
        seed=random_state,
    )
    if engine is None or judgments is None:
        raise TypeError("the name of an engine, and judgments, are needed: weights need some")
    return validated(join(runs, judgments, on, depth), settings, ablate)


def validated(
    joined: Joined, settings: Settings, ablate: bool = False, say: Progress = lambda text: None
) -> FusionReport:
    """The report on joined runs and judgments; `say` is told what is being done."""
    folds = CrossValidation.of(joined, settings)
    say("cross-validation")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        learning = _of_engine(folds) if settings.engine else _as_scored(folds)
        fused = folds.table(learning.held_out(joined.names))
        tables = folds.alone() | learning.without_judgments
        tables |= {CHOSEN: folds.best_of(tables)}
        say("fit on all queries")
        learned = learning.final()
        rankings = [_ranking(FUSED, fused, settings)]
        rankings += [_ranking(name, table, settings, fused) for name, table in tables.items()]
        weights = learned.weights
        if ablate:
            weights = _ablated(folds, learning, fused, learned, say)
    of_fits = dict.fromkeys(  # each remark once
        str(warning.message)
        for warning in raised
        if not issubclass(warning.category, DegenerateOptimumWarning)  # the advice says so
    )
    if not any(weight.weight for weight in weights):
        advice = _NOTHING_LEARNED
    else:
        advice = _advice(fused, tables, rankings, settings, joined.nouns[0])
    return FusionReport(
        k=int(settings.k),
        nouns=joined.nouns,
        n_queries=joined.n_queries,
        n_documents=len(joined.frame),
        n_relevant=int(folds.relevant.sum()),
        n_relevant_missed=int((joined.missed_grade >= settings.relevant_from).sum()),
        n_folds=folds.n_folds,
        level=settings.level,
        rankings=tuple(rankings),
        weights=tuple(weights),
        advice=advice,
        ranker=learned.ranker,
        engine_weights=learned.engine_weights,
        basis=learned.basis,
        remarks=(*joined.remarks, *of_fits),
    )


# --- two ways to learn: scores as they are, and in an engine's rule -------------------------------


@dataclass(frozen=True)
class _Learned:
    """Weights that were learned from all queries."""

    ranker: Any
    weights: list[RunWeight]
    basis: str
    engine_weights: EngineWeights | None = None


@dataclass(frozen=True)
class _Learning:
    """How weights are learned.

    `held_out` gives scores of all rows by some runs, each query by weights of the other folds.
    """

    held_out: Callable[[Sequence[str]], Array]
    without_judgments: dict[str, MetricTable]
    final: Callable[[], _Learned]


def _as_scored(folds: CrossValidation) -> _Learning:
    """Weights of scores as they are, with a weight of "not there"."""

    def final() -> _Learned:
        ranker = folds.settings.ranker()
        folds.fit(ranker)
        return _Learned(ranker, folds.weights(ranker), f"Weights {_certified(ranker)}.")

    return _Learning(folds.held_out, folds.yardsticks(), final)


def _of_engine(folds: CrossValidation) -> _Learning:
    """Weights in the rule of an engine."""
    name = str(folds.settings.engine)
    engine = engine_of(name)
    joined = folds.joined
    if engine.most_runs is not None and len(joined.names) > engine.most_runs:
        raise InputError(
            f"{name} joins at most {engine.most_runs} runs, and here are {len(joined.names)} "
            f"({', '.join(joined.names)}): leave out what --ablate without --for-engine says adds "
            "least"
        )
    search = RuleSearch(folds, engine, joined.names)

    def held_out(names: Sequence[str]) -> Array:
        if tuple(names) == tuple(joined.names):
            return search.held_out()
        return RuleSearch(folds, engine, names).held_out()

    def final() -> _Learned:
        option = search.chosen()
        first = search.options()[0].ranker
        found = normalised(option.weights, engine)
        return _Learned(
            ranker=option.ranker or first,
            weights=folds.described(found, found, np.zeros(found.size)),
            basis=_basis(option, name),
            engine_weights=EngineWeights(
                engine=name,
                weights=dict(zip(joined.names, found.tolist(), strict=True)),
                window=joined.window,
            ),
        )

    unweighted = folds.table(search.scores(search.equal))
    return _Learning(held_out, {NO_WEIGHTS: unweighted}, final)


def _basis(option: Option, name: str) -> str:
    """What is certified, and what is only the best that was found."""
    start = "equal weights"
    if option.ranker is not None:
        start = f"weights of min-max scores, {_certified(option.ranker)}"
    if option.is_searched:
        return (
            f"Found by a search in the rule of {name} that began at {start}: the best found, not "
            "certified."
        )
    return (
        f"These are {start}; that they are the ones for the rule of {name} is by held-out queries, "
        "not certified."
    )


def _certified(ranker: Any) -> str:
    result = ranker.result_
    return (
        f"certified to a relative gap of {result.gap:.1e} (alpha {result.alpha:.3g}, "
        f"{result.n_iter} iterations)"
    )


def _ranking(
    name: str, table: MetricTable, settings: Settings, fused: MetricTable | None = None
) -> Ranking:
    metric = table.metrics[0]
    resampling: dict[str, Any] = {
        "level": settings.level, "n_resamples": settings.n_resamples, "seed": settings.seed
    }  # fmt: skip
    ranking = Ranking(name=name, mean=table.mean(metric), lower=np.nan, upper=np.nan)
    if no_interval(table, metric) is None:
        interval = metrics.interval(table, metric, **resampling)
        ranking = replace(ranking, lower=interval.lower, upper=interval.upper)
    if fused is None:
        return ranking
    (paired,) = metrics.compare(fused, table, **resampling)
    return replace(
        ranking,
        ahead=paired.difference,
        ahead_lower=paired.lower,
        ahead_upper=paired.upper,
        p_value=paired.p_value,
    )


# --- which run earns its place --------------------------------------------------------------------


def _ablated(
    folds: CrossValidation, learning: _Learning, fused: MetricTable, learned: _Learned,
    say: Progress,
) -> list[RunWeight]:  # fmt: skip
    settings = folds.settings
    ends = np.full((2, len(learned.weights)), np.nan)
    if learned.engine_weights is None:
        say("weights of resampled queries")
        resampled = _resampled_shares(folds, learned.ranker)
        tails = [(1 - settings.level) / 2, (1 + settings.level) / 2]
        ends = np.quantile(resampled, tails, axis=0)
    ablated = []
    for column, weight in enumerate(learned.weights):
        say(f"without {weight.name}")
        others = [name for name in folds.joined.names if name != weight.name]
        table = folds.table(learning.held_out(others))
        without = _ranking(weight.name, table, settings, fused)
        ablated.append(
            replace(
                weight,
                share_lower=float(ends[0, column]),
                share_upper=float(ends[1, column]),
                without=without.mean,
                gain=without.ahead,
                gain_lower=without.ahead_lower,
                gain_upper=without.ahead_upper,
                verdict=_verdict(without),
            )
        )
    return ablated


def _verdict(without: Ranking) -> str:
    if without.ahead_lower > 0:
        return "keep"
    return "harms" if without.ahead_upper < 0 else "no difference"


def _resampled_shares(folds: CrossValidation, ranker: Any) -> Array:
    """Shares of the weights under random weights of the queries, each fit begun at the last."""
    settings = folds.settings
    rng = np.random.default_rng(settings.seed)
    refitted = settings.ranker(tol=FOLD_TOL, alpha=float(ranker.result_.alpha), warm_start=True)
    resampled = []
    for _ in range(settings.n_refits):
        weight = rng.exponential(size=folds.joined.n_queries)
        weight = np.maximum(weight, 1e-9)  # a query of weight 0 would be refused
        folds.fit(refitted, sample_weight=weight[folds.joined.query])
        resampled.append(shares(refitted, of_minmax=False))
    return np.array(resampled)


# --- what to do -----------------------------------------------------------------------------------


def _advice(
    fused: MetricTable,
    tables: Mapping[str, MetricTable],
    rankings: Sequence[Ranking],
    settings: Settings,
    lists: str,
) -> str:
    """What to do, and the differences that it rests on: to the choice, the best, RRF, CombSUM."""
    by_name = {ranking.name: ranking for ranking in rankings}
    chosen = by_name[CHOSEN]
    if np.isnan(chosen.ahead_lower):
        return (
            f"{fused.users.size} judged {lists} are too few to tell: with fewer than 10 there is "
            "no interval. RRF and equal weights need no judgments."
        )
    best = max((by_name[name] for name in tables if name != CHOSEN), key=lambda each: each.mean)
    differences = [f"Fused is ahead of what the other folds choose by {_difference(chosen)}"]
    unjudged = [name for name in _WITHOUT_JUDGMENTS if name in by_name]
    for name in dict.fromkeys((best.name, *unjudged)):
        which = f"{name}, the best in hindsight," if name == best.name else name
        differences.append(f"of {which} by {_difference(by_name[name])}")
    apart = (fused.values - tables[CHOSEN].values)[:, 0]
    verdict = _verdict_on_use(by_name[FUSED], chosen, best, apart, settings.level, lists)
    return f"{verdict} {'; '.join(differences)}."


def _difference(ranking: Ranking) -> str:
    return f"{ranking.ahead:+.4f} ({ranking.ahead_lower:+.4f} to {ranking.ahead_upper:+.4f})"


def _verdict_on_use(
    fused: Ranking, chosen: Ranking, best: Ranking, differences: Array, level: float, lists: str
) -> str:
    """Use it, another is as good or better, or how many more judged lists would tell."""
    cost = ", which needs no judgments," if best.name in _WITHOUT_JUDGMENTS else " alone"
    if chosen.ahead_upper < 0:
        return f"Do not use these weights: {best.name}{cost} is better; the runs may add nothing."
    if best.mean >= fused.mean:
        return f"{best.name}{cost} is as good here."
    if chosen.ahead_lower > 0:
        return "Use the fused ranking."
    more = _more_queries(differences, chosen.ahead, level)
    if more is None:
        return f"{best.name}{cost} is about as good here."
    return (
        f"No difference to the best of the others yet: at least {more} more judged {lists} would "
        "tell, if the difference is as measured."
    )


def _more_queries(differences: Array, mean: float, level: float) -> int | None:
    """How many further queries make an interval that excludes 0; None where too many."""
    if mean <= 0 or not differences.std() > 0:
        return None
    needed = required_users(
        min(mean, 1 - 1e-9),  # a half-width has to be below 1
        1 - level,
        method="bootstrap",
        std=float(differences.std(ddof=1)),
    )
    more = needed - differences.size
    if more > _FEW_TIMES * differences.size:
        return None
    return max(more, 1)
