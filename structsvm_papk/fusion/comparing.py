"""What learned weights are worth on queries that they were not learned from.

The fused ranking stands beside each run alone, RRF and CombSUM. The best of those is chosen on the
training folds too, so that the choice gives it no advantage.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import DegenerateOptimumWarning, InputError, check_type
from structsvm_papk.fusion.deciding import (
    ENOUGH_JUDGED,
    Contender,
    LearnableRule,
    Learned,
    choose,
    titled,
)
from structsvm_papk.fusion.engines import engine_of, rules_of, siblings_of
from structsvm_papk.fusion.held_out import FOLD_TOL, CrossValidation, InRule, Settings, shares
from structsvm_papk.fusion.joining import Joined, join
from structsvm_papk.fusion.report import NO_WEIGHTS, FusionReport, Ranking, RunWeight
from structsvm_papk.fusion.requests import EngineWeights

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
    **taking: Any,
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
    **taking
        `lower_is_better`, `duplicates`, `label_gain`, `ignore_identical` of `join_lists`.

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
        n_folds=cv,
        level=level,
        n_resamples=n_resamples,
        n_refits=n_refits,
        seed=random_state,
    )
    return validated(join(runs, judgments, on, **taking), settings, ablate)


def for_engine(
    engine: str,
    runs: Mapping[str, Any],
    judgments: Any,
    k: int = 10,
    *,
    depth: int | None = None,
    rank_constant: float | None = None,
    relevance_threshold: float | None = None,
    on: tuple[str, str] = ("query", "document"),
    ablate: bool = False,
    cv: int = 5,
    level: float = 0.95,
    n_resamples: int = 2000,
    random_state: int = 0,
    **taking: Any,
) -> FusionReport:
    """Weights for a search engine, learned and judged in the rules by which it joins lists.

    Of each rule, with equal and with learned weights, and of the runs alone one is recommended.
    Weights are learned in the numbers that the rule makes of the lists, those of ranks from
    ``1 / rank``.

    Parameters
    ----------
    engine : str
        elasticsearch, opensearch, mongodb, haystack, milvus: all rules of the engine. Or one rule:
        elasticsearch-linear, opensearch-minmax, mongodb-score, haystack-merge, weaviate, vespa,
        llamaindex: weighted sums of min-max scores. elasticsearch-rrf, opensearch-rrf, mongodb-rrf,
        haystack-rrf, langchain, azure: weighted reciprocal ranks. qdrant: its own.
        opensearch-zscore. milvus-weighted: weighted sums of scores.
    runs, judgments, on
        As for `join_lists`.
    k, relevance_threshold, ablate, cv, level, n_resamples, random_state
        As for `cross_validate`.
    depth : int, optional
        Only so many documents of each list, as many as the engine joins.
    rank_constant : float, optional
        Of the engine's rule of ranks, where it can be set; by default the engine's own.
    **taking
        As for `cross_validate`.

    Returns
    -------
    FusionReport
        Rankings are by the engine's rules: by learned weights, by each run, and by equal weights.
        ``recommended`` says which to use, and ``recommended.engine_weights.request()`` is what is
        pasted; ``engine_weights`` are the learned ones.

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
        seed=random_state,
        rank_constant=rank_constant,
    )
    if engine is None or judgments is None:
        raise TypeError("the name of an engine, and judgments, are needed: weights need some")
    return validated(join(runs, judgments, on, depth, **taking), settings, ablate)


def validated(
    joined: Joined, settings: Settings, ablate: bool = False, say: Progress = lambda text: None
) -> FusionReport:
    """The report on joined runs and judgments; `say` is told what is being done."""
    folds = CrossValidation.of(joined, settings)
    say("cross-validation")
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        rules = _rules_of_engine(folds) if settings.engine else [_as_scored(folds)]
        alone = [Contender(name, name, folds, scores) for name, scores in folds.alone().items()]
        choice = choose(rules, alone, settings)
        say("fit on all queries")
        learned = choice.rule.final()
        weights = learned.weights
        if ablate:
            weights = _ablated(folds, choice.rule, learned, say)
    of_fits = dict.fromkeys(  # each remark once
        str(warning.message)
        for warning in raised
        if not issubclass(warning.category, DegenerateOptimumWarning)  # the advice says so
    )
    advice = choice.advice(joined.nouns, settings)
    if not any(weight.weight for weight in weights):
        advice = f"{_NOTHING_LEARNED} {advice}"
    return FusionReport(
        k=int(settings.k),
        nouns=joined.nouns,
        n_queries=joined.n_queries,
        n_documents=len(joined.frame),
        n_relevant=int(folds.relevant.sum()),
        n_relevant_missed=int((joined.missed_grade >= settings.relevant_from).sum()),
        n_folds=folds.n_folds,
        level=settings.level,
        rankings=tuple(choice.rankings()),
        weights=tuple(weights),
        advice=advice,
        recommended=choice.recommended(joined, learned.engine_weights),
        ranker=learned.ranker,
        engine_weights=learned.engine_weights,
        basis=learned.basis,
        remarks=(*joined.remarks, *_remarks_of_judgments(folds, alone), *of_fits),
    )


def _remarks_of_judgments(folds: CrossValidation, alone: Sequence[Contender]) -> list[str]:
    """What of the runs was not judged, and queries that count 0 whatever is done."""
    lists, members = folds.joined.nouns
    k = int(folds.settings.k)
    remarks = []
    if folds.n_without_relevant:
        remarks.append(
            f"{folds.n_without_relevant} of {folds.joined.n_queries} judged {lists} are without a "
            f"relevant {folds.joined.frame.columns[1]} and count 0 in every mean"
        )
    for run in alone:
        if run.judged < ENOUGH_JUDGED:
            remarks.append(
                f"{run.name}: {run.judged:.0%} of its first {k} {members} were judged; the others "
                "count as not relevant, so that its value may be too low"
            )
    return remarks


# --- two ways to learn: scores as they are, and in an engine's rule -------------------------------


def _as_scored(folds: CrossValidation) -> LearnableRule:
    """Weights of scores as they are, with a weight of "not there"."""

    def final() -> Learned:
        ranker = folds.settings.ranker()
        folds.fit(ranker)
        return Learned(ranker, folds.weights(ranker), f"Weights {_certified(ranker)}.")

    equal = [Contender(name, name, folds, scores) for name, scores in folds.yardsticks().items()]
    return LearnableRule("", folds, equal, folds.held_out, final)


def _rules_of_engine(folds: CrossValidation) -> list[LearnableRule]:
    """The rules of an engine: those that are asked for, others with equal weights."""
    settings = folds.settings
    asked = rules_of(str(settings.engine))
    siblings = siblings_of(str(settings.engine))
    joined = folds.joined
    most = engine_of(asked[0]).most_runs
    if most is not None and len(joined.names) > most:
        raise InputError(
            f"{settings.engine} joins at most {most} runs, and here are {len(joined.names)} "
            f"({', '.join(joined.names)}): leave out what --ablate without --for-engine says adds "
            "least"
        )
    if settings.rank_constant is not None and not any(
        engine_of(name).takes_constant for name in asked
    ):
        raise InputError(f"{settings.engine} has no constant of ranks that can be set")
    usable = [name for name in siblings if joined.have_scores or not engine_of(name).rule.of_scores]
    if not any(name in usable for name in asked):
        raise InputError(
            f"a run has ranks and no scores, which {settings.engine} needs: give runs with scores, "
            "or name an engine that joins ranks"
        )
    return [_rule_of_engine(folds, name, len(siblings) > 1, name in asked) for name in usable]


def _rule_of_engine(
    folds: CrossValidation, name: str, has_siblings: bool, is_asked: bool
) -> LearnableRule:
    """Weights in one rule of an engine."""
    engine = engine_of(name)
    constant = folds.settings.rank_constant if engine.takes_constant else None
    engine = engine.with_constant(constant)
    joined = folds.joined
    in_rule = InRule(folds, engine, joined.names)

    def held_out(names: Sequence[str]) -> Array:
        return InRule(folds, engine, names).held_out()

    def weights(values: Array) -> EngineWeights:
        values = in_rule.normalised(values)
        return EngineWeights(
            engine=name,
            weights=dict(zip(joined.names, values.tolist(), strict=True)),
            window=joined.window,
            rank_constant=constant,
        )

    def final() -> Learned:
        ranker = in_rule.fitted()
        values = in_rule.weights(ranker)
        return Learned(
            ranker=ranker,
            weights=folds.described(values, values, np.zeros(values.size)),
            basis=(
                f"Learned weights: {_certified(ranker)}; that they are the ones for the rule of "
                f"{name} is by held-out queries, not certified."
            ),
            engine_weights=weights(values),
        )

    label = engine.form if has_siblings else ""
    scores = in_rule.scores(in_rule.equal)
    can_learn = is_asked and engine.is_weighted
    return LearnableRule(
        label=label,
        folds=folds,
        unlearned=[Contender(NO_WEIGHTS, titled(label, NO_WEIGHTS), folds, scores)],
        held_out=held_out if can_learn else None,
        final=final,
        weights=weights,
    )


def _certified(ranker: Any) -> str:
    result = ranker.result_
    return (
        f"certified to a relative gap of {result.gap:.1e} (alpha {result.alpha:.3g}, "
        f"{result.n_iter} iterations)"
    )


# --- which run earns its place --------------------------------------------------------------------


def _ablated(
    folds: CrossValidation, rule: LearnableRule, learned: Learned, say: Progress
) -> list[RunWeight]:
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
        others_only = Contender(weight.name, weight.name, folds, rule.scores_of(others))
        without = others_only.ranking(rule.learned)
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
        folds.fit(refitted, weight[folds.joined.query_place])
        resampled.append(shares(refitted))
    return np.array(resampled)
