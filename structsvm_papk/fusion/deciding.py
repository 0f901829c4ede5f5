"""Which way to join lists is recommended: learned weights, equal ones, or one run alone.

Learned weights have to show by intervals that they are ahead of equal weights of the same rule and
of the best run. Else equal weights are recommended, or the best run if it, or learned weights, are
shown to be ahead of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.bounds import required_users
from structsvm_papk.errors import InputError
from structsvm_papk.fusion.held_out import CrossValidation, Settings
from structsvm_papk.fusion.joining import Joined
from structsvm_papk.fusion.report import CHOSEN, FUSED, Ranking, Recommendation, RunWeight
from structsvm_papk.fusion.requests import EngineWeights
from structsvm_papk.metrics.significance import ends_of, no_interval
from structsvm_papk.metrics.table import MetricTable

ENOUGH_JUDGED = 0.8  # of the first k documents
LEARNED = "learned weights"
_FEW_TIMES = 20  # more queries than this many times those at hand are not asked for


@dataclass(frozen=True)
class Contender:
    """A ranking of all judged queries: its name in tables, its title in sentences, its scores."""

    name: str
    title: str
    folds: CrossValidation
    scores: Array

    @cached_property
    def table(self) -> MetricTable:
        """nDCG@k of each query."""
        return self.folds.table(self.scores)

    @property
    def mean(self) -> float:
        """Mean nDCG@k."""
        return self.table.mean(self.table.metrics[0])

    @cached_property
    def judged(self) -> float:
        """Share of the first k documents that were judged."""
        return self.folds.judged_share(self.scores)

    def ranking(self, fused: Contender | None = None, name: str | None = None) -> Ranking:
        """The mean with its interval, and how far the fused ranking is ahead of it."""
        made = ranking_of(self.table, name or self.name, self.folds.settings)
        made = replace(made, judged=self.judged)
        if fused is None:
            return made
        return ahead_of(made, fused.table, self.table, self.folds.settings)


def ranking_of(table: MetricTable, name: str, settings: Settings) -> Ranking:
    """The mean of a table, and its interval where there is one."""
    metric = table.metrics[0]
    return Ranking(name, table.mean(metric), *ends_of(table, metric, **_resampling(settings)))


def ahead_of(made: Ranking, fused: MetricTable, table: MetricTable, settings: Settings) -> Ranking:
    """A ranking with how far the fused one is ahead of it, paired by query."""
    (paired,) = metrics.compare(fused, table, **_resampling(settings))
    return replace(
        made,
        ahead=paired.difference,
        ahead_lower=paired.lower,
        ahead_upper=paired.upper,
        p_value=paired.p_value,
    )


def _resampling(settings: Settings) -> dict[str, Any]:
    return {"level": settings.level, "n_resamples": settings.n_resamples, "seed": settings.seed}


@dataclass(frozen=True)
class Learned:
    """Weights that were learned from all queries."""

    ranker: Any
    weights: list[RunWeight]
    basis: str
    engine_weights: EngineWeights | None = None


@dataclass(frozen=True)
class LearnableRule:
    """A way to join lists, without and with learned weights.

    Attributes
    ----------
    label : str
        What the engine calls it; empty where there is one only.
    folds : CrossValidation
    unlearned : list of Contender
        What needs no judgments.
    held_out : function or None
        Scores of all rows by some runs, each query by weights of the other folds; None: no weights
        are learned.
    final : function
        Learns from all queries.
    weights : function or None
        What the engine needs, of an array of weights.
    """

    label: str
    folds: CrossValidation
    unlearned: Sequence[Contender]
    held_out: Callable[[Sequence[str]], Array] | None
    final: Callable[[], Learned]
    weights: Callable[[Array], EngineWeights] | None = None

    @cached_property
    def learned(self) -> Contender:
        """By weights of the other folds."""
        names = self.folds.joined.names
        return Contender(FUSED, titled(self.label, LEARNED), self.folds, self.scores_of(names))

    def scores_of(self, names: Sequence[str]) -> Array:
        """Scores of all rows by learned weights of some runs."""
        assert self.held_out is not None
        return self.held_out(names)

    @property
    def equal(self) -> Contender:
        """The best of what needs no judgments."""
        return max(self.unlearned, key=lambda each: each.mean)


def titled(label: str, weights: str) -> str:
    """A rule and its weights, in words."""
    return f"{label} with {weights}" if label else weights


@dataclass(frozen=True)
class Decision:
    """What is recommended, `best`, by the rule `of`, and the rule that the report is about.

    `kind` says which: learned weights of the rule, what needs no judgments, or a run alone. `why`
    is empty, "few" (queries have no interval) or "unjudged" (too little of the runs was judged).
    """

    rules: Sequence[LearnableRule]
    alone: Sequence[Contender]
    rule: LearnableRule
    kind: str
    best: Contender
    of: LearnableRule | None = None
    why: str = ""

    @property
    def best_run(self) -> Contender:
        """The run with the highest mean."""
        return max(self.alone, key=lambda each: each.mean)

    # --- what the report shows --------------------------------------------------------------------

    def rankings(self) -> list[Ranking]:
        """The fused ranking and all others, with how far it is ahead of them."""
        fused = self.rule.learned
        folds = self.rule.folds
        made = [fused.ranking()]
        made += [each.ranking(fused) for each in (*self.alone, *self.rule.unlearned)]
        for other in self.rules:
            if other is self.rule:
                continue
            made += [each.ranking(fused, f"{other.label}, {each.name}") for each in other.unlearned]
            if other.held_out is not None:
                made.append(other.learned.ranking(fused, f"{other.label}, {LEARNED}"))
        tables = {each.name: each.table for each in (*self.alone, *self.rule.unlearned)}
        chosen = folds.best_of(tables)
        by_folds = ranking_of(chosen, CHOSEN, folds.settings)
        return [*made, ahead_of(by_folds, fused.table, chosen, folds.settings)]

    def recommended(self, joined: Joined, learned: EngineWeights | None) -> Recommendation:
        """The recommendation, with what an engine needs for it."""
        weights = None
        weights_of = (self.of or self.rule).weights
        if weights_of is not None:
            of_kind = {
                "equal": np.ones(len(joined.names)),
                "alone": np.array([name == self.best.name for name in joined.names], dtype=float),
            }
            weights = learned if self.kind == "learned" else weights_of(of_kind[self.kind])
        over_equal = None
        over_best_run = None
        if self.kind == "learned":
            over_equal = self.rule.equal.ranking(self.best)
        if self.kind != "alone":
            over_best_run = self.best_run.ranking(self.best)
        return Recommendation(
            name=self.best.title,
            kind=self.kind,
            engine_weights=weights,
            over_equal=over_equal,
            over_best_run=over_best_run,
        )

    # --- in words ---------------------------------------------------------------------------------

    def advice(self, nouns: tuple[str, str], settings: Settings) -> str:
        """What to do, and what it rests on."""
        lists, members = nouns
        n_lists = self.best.table.users.size
        if self.why == "few":
            return (
                f"{n_lists} judged {lists} are too few to tell: with fewer than 10 there is no "
                f"interval. Take {self.best.title}, which needs no judgments."
            )
        if self.why == "unjudged":
            few = min(self.alone, key=lambda run: run.judged)
            return (
                f"Judge more before you decide: of the first {int(settings.k)} {members} of "
                f"{few.name}, {few.judged:.0%} were judged, and the rest counts as not relevant, "
                f"which favours other runs. Until then take {self.best.title}, which needs no "
                f"judgments. {self._of_learned(settings, lists)}"
            )
        run = f"{self.best_run.ranking(self.best).compared()}, the best run"
        if self.kind == "learned":
            equal = self.rule.equal.ranking(self.best, self.rule.equal.title)
            return f"Use the fused ranking, by {self.best.title}: {equal.compared()}, and {run}."
        if self.kind == "alone":
            equal = self._best_unlearned.ranking(self.best, self._best_unlearned.title)
            return (
                f"Search with {self.best.title} alone: {equal.compared()}. "
                f"{self._of_learned(settings, lists)}"
            )
        if self.best.mean < self.best_run.mean:
            run = f"{run}, whose lead may be chance"
        verb = "Take" if self.of is self.rule else "Switch to"
        return f"{verb} {self.best.title}: {run}. {self._of_learned(settings, lists)}"

    @property
    def _best_unlearned(self) -> Contender:
        return max((rule.equal for rule in self.rules), key=lambda each: each.mean)

    def _of_learned(self, settings: Settings, lists: str) -> str:
        """How far learned weights are ahead of what is recommended, and what would tell."""
        rule = _best_learned(self.rules)
        gain = self.best.ranking(rule.learned, self.best.title)
        text = f"The fused ranking, by {rule.learned.title}, is {gain.compared()}"
        differences = (rule.learned.table.values - self.best.table.values)[:, 0]
        more = _more_queries(differences, gain.ahead, settings.level)
        if gain.ahead_lower > 0:
            others = [
                other.title
                for other in (self.best_run, rule.equal)
                if not other.ranking(rule.learned).ahead_lower > 0
            ]
            if others:
                text += f", but not shown to be ahead of {' or of '.join(others)}"
            return f"{text}."
        if more is None:
            return f"{text}."
        return (
            f"{text}; {more} or more further judged {lists} would tell, if the difference is as "
            "measured."
        )


def choose(
    rules: Sequence[LearnableRule], alone: Sequence[Contender], settings: Settings
) -> Decision:
    """What is recommended, of rules of which one can learn weights and of runs alone."""
    learning = [rule for rule in rules if rule.held_out is not None]
    if not learning:
        raise InputError(f"{settings.engine} takes no weights, so that none can be learned")
    first = _best_learned(rules)
    unlearned = [(rule, each) for rule in rules for each in rule.unlearned]
    rule, equal = max(unlearned, key=lambda pair: pair[1].mean)
    best_run = max(alone, key=lambda each: each.mean)

    def choice(kind: str, best: Contender, of: LearnableRule, why: str = "") -> Decision:
        about = of if of in learning else first
        return Decision(rules, alone, rule=about, kind=kind, best=best, of=of, why=why)

    learned = first.learned
    if no_interval(learned.table, learned.table.metrics[0]) is not None:
        return choice("equal", equal, rule, "few")
    if min(run.judged for run in alone) < ENOUGH_JUDGED:
        return choice("equal", equal, rule, "unjudged")
    over_equal = first.equal.ranking(learned)
    over_run = best_run.ranking(learned)
    is_ahead = over_equal.ahead_lower > 0 and over_run.ahead_lower > 0
    if is_ahead and learned.mean >= equal.mean:
        return choice("learned", learned, first)
    # of equal weights a chance lead of one run says little: fusion rarely loses much
    run_over_equal = equal.ranking(best_run)
    is_needed = run_over_equal.ahead_lower > 0 or over_equal.ahead_lower > 0
    if best_run.mean > equal.mean and is_needed:
        return choice("alone", best_run, first)
    return choice("equal", equal, rule)


def _best_learned(rules: Sequence[LearnableRule]) -> LearnableRule:
    learning = [rule for rule in rules if rule.held_out is not None]
    return max(learning, key=lambda rule: rule.learned.mean)


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
