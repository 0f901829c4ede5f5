"""Weights for an engine, learned and judged in the engine's own rule.

    maximise over w >= 0    mean over queries of nDCG@k of the documents by rule(lists, w)

Candidates are equal weights and certified ones: of min-max scores, at the alpha of the rule, ten
times less and ten times more. From the best of them weights are changed one at a time, each to the
best that it can have beside the others (exact: nDCG is piecewise constant along a weight, and its
breaks are the crossings of two scores). Such a search fits noise as well: its weights are kept
where queries that it has not seen say so, by folds within the queries that are learned from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.fusion import _kernels
from structsvm_papk.fusion.engines import Engine
from structsvm_papk.fusion.held_out import FOLD_TOL, CrossValidation, shares

_FACTORS = (0.1, 10.0)  # of the alpha of the rule, beside it
_SCALES = (0.25, 1.0, 4.0, 16.0, 64.0)  # times a mean weight of 1, where scale matters
_SWEEPS = 10
_LEAST_GAIN = 1e-9
_WIDEST = 1e6  # a weight is neither smaller nor larger than the others together by more


class Learned(NamedTuple):
    """The best candidate, the search that began there, and the certified fit that it is of.

    Where equal weights were the best candidate, the fit is the one at the alpha of the rule.
    """

    start: Array
    searched: Array
    ranker: Any
    starts_equal: bool


@dataclass(frozen=True)
class RuleSearch:
    """Learning in an engine's rule from the queries of some folds, of some runs."""

    folds: CrossValidation
    engine: Engine
    names: Sequence[str]
    known: dict[frozenset[int], Learned] = field(default_factory=dict)  # by the folds left out

    @cached_property
    def columns(self) -> Array:
        """What the rule makes of each run's lists."""
        all_names = list(self.folds.joined.names)
        chosen = [all_names.index(name) for name in self.names]
        return np.ascontiguousarray(self.engine.rule.columns(self.folds.joined)[:, chosen])

    @cached_property
    def _retrieved(self) -> Array:
        """Whether one of the runs has the document of a row."""
        scores = self.folds.joined.scores[list(self.names)]
        retrieved: Array = scores.notna().to_numpy().any(axis=1)
        return retrieved

    @cached_property
    def _starts(self) -> Array:
        """The first row of each query, and the end."""
        return np.append(0, np.cumsum(np.bincount(self.folds.joined.query)))

    @cached_property
    def _gains(self) -> Array:
        """What each row adds to nDCG at the first place: its grade, as a share of the ideal DCG."""
        joined = self.folds.joined
        grades = np.maximum(joined.grades, 0).astype(float)
        missed = np.maximum(joined.missed_grade, 0)
        ideal = np.empty(joined.n_queries)
        for query in range(joined.n_queries):
            rows = slice(self._starts[query], self._starts[query + 1])
            judged = np.append(grades[rows], missed[joined.missed_query == query])
            best = -np.sort(-judged)[: self._discounts.size]
            ideal[query] = best @ self._discounts[: best.size]
        return grades / np.where(ideal > 0, ideal, 1.0)[joined.query]

    @cached_property
    def _discounts(self) -> Array:
        return 1.0 / np.log2(np.arange(2.0, 2.0 + int(self.folds.settings.k)))

    @property
    def equal(self) -> Array:
        """The engine's weights where none are given."""
        return np.ones(len(self.names))

    # --- values -----------------------------------------------------------------------------------

    def scores(self, weights: Array) -> Array:
        """Fused score of each row, minus infinity where no run retrieved the document."""
        fused = self.engine.rule.fused(self.columns, weights)
        return np.where(self._retrieved, fused, -np.inf)

    def values(self, weights: Array) -> Array:
        """nDCG@k of each query."""
        values = np.empty(self.folds.joined.n_queries)
        place = self.folds.joined.place
        scores = self.scores(weights).astype(np.float32).astype(float)  # as they are compared
        _kernels.dcg(scores, place, self._gains, self._starts, self._discounts, values)
        return values

    def held_out(self) -> Array:
        """Score of each row, its query ranked by weights of the other folds."""
        query = self.folds.joined.query
        scores = np.full(query.size, -np.inf)
        for fold in range(self.folds.n_folds):
            rows = (self.folds.fold == fold)[query]
            scores[rows] = self.scores(self.chosen(frozenset([fold])))[rows]
        return scores

    # --- learning ---------------------------------------------------------------------------------

    def chosen(self, left_out: frozenset[int] = frozenset()) -> Array:
        """Weights learned from all folds but some: the search's where other queries say so."""
        learned = self.learned(left_out)
        return learned.searched if self.keeps_search(left_out) else learned.start

    def keeps_search(self, left_out: frozenset[int] = frozenset()) -> bool:
        """Whether the search gains on folds that it has not seen."""
        gains = []
        for fold in set(range(self.folds.n_folds)) - left_out:
            learned = self.learned(left_out | {fold})
            gained = self.values(learned.searched) - self.values(learned.start)
            gains.append(gained[self.folds.fold == fold])
        return bool(gains) and float(np.concatenate(gains).mean()) > 0

    def learned(self, left_out: frozenset[int] = frozenset()) -> Learned:
        """The best candidate, and the search from it, on all folds but some."""
        if left_out not in self.known:
            self.known[left_out] = self._learned(~np.isin(self.folds.fold, list(left_out)))
        return self.known[left_out]

    def _learned(self, queries: Array) -> Learned:
        rows = queries[self.folds.joined.query] & self._retrieved
        if not self.folds.is_trainable(rows):
            return Learned(self.equal, self.equal, None, starts_equal=True)
        rankers = self._certified(rows, exact=bool(queries.all()))
        best = Learned(self.equal, self.equal, rankers[0], starts_equal=True)
        highest = self.values(self.equal)[queries].mean()
        for ranker in rankers:
            if not ranker.coef_.any():  # weights of 0 rank nothing
                continue
            for weights in self._scaled(shares(ranker, of_minmax=True)):
                value = self.values(weights)[queries].mean()
                if value > highest:
                    highest = value
                    best = Learned(weights, weights, ranker, starts_equal=False)
        return best._replace(searched=self._searched(best.start, queries))

    def _certified(self, rows: Array, exact: bool) -> list[Any]:
        """Rankers with certified weights of min-max scores, at three strengths."""
        tol = {} if exact else {"tol": FOLD_TOL}
        rankers = [self.folds.settings.ranker(**tol)]
        self.folds.fit_rows(rankers[0], list(self.names), rows)
        alpha = float(rankers[0].result_.alpha)
        for factor in _FACTORS:
            rankers.append(self.folds.settings.ranker(alpha=factor * alpha, **tol))
            self.folds.fit_rows(rankers[-1], list(self.names), rows)
        return rankers

    def _scaled(self, share: Array) -> list[Array]:
        if self.engine.rule.bend == 0:
            return [share]
        return [scale * share.size * share for scale in _SCALES]

    def _searched(self, weights: Array, queries: Array) -> Array:
        """The weights after changing one at a time, as long as that gains."""
        weights = weights.copy()
        value = float(self.values(weights)[queries].mean())
        for _ in range(_SWEEPS):
            before = value
            for column in range(weights.size):
                changed = weights.copy()
                changed[column] = self._best_along(weights, column, queries)
                reached = float(self.values(changed)[queries].mean())
                if reached > value + _LEAST_GAIN:
                    value = reached
                    weights = normalised(changed, self.engine)
            if value <= before:
                break
        return weights

    def _best_along(self, weights: Array, column: int, queries: Array) -> float:
        """The middle of the interval of a weight in which the mean of nDCG is the highest."""
        others = weights.copy()
        others[column] = 0.0
        fixed = self.engine.rule.fused(self.columns, others)
        x = np.ascontiguousarray(self.columns[:, column])
        at = []
        change = []
        for query in np.flatnonzero(queries):
            rows = np.arange(self._starts[query], self._starts[query + 1])
            rows = rows[self._retrieved[rows]]
            breaks, values = _kernels.walk(
                fixed[rows],
                x[rows],
                self._gains[rows],
                self.folds.joined.place[rows],
                self.engine.rule.bend,
                self._discounts,
            )
            at.append(breaks)
            change.append(np.diff(values))
        ends = np.concatenate(at)
        if not ends.size or not others.any():
            return float(weights[column])
        order = np.argsort(ends, kind="stable")
        unit = others.sum()
        ends = np.clip(ends[order], unit / _WIDEST, unit * _WIDEST)
        total = np.append(0.0, np.cumsum(np.concatenate(change)[order]))
        # the first interval begins at 0 and the last has no end: a factor of two from their breaks
        ends = np.concatenate([[0.5 * ends[0]], ends, [2.0 * ends[-1]]])
        factor = ends[1:] / ends[:-1]
        total[factor <= 1.0] = -np.inf  # breaks of several queries at one place
        best = np.flatnonzero(total > total.max() - _LEAST_GAIN)
        widest = best[np.argmax(factor[best])]
        return float(np.sqrt(ends[widest] * ends[widest + 1]))


def normalised(weights: Array, engine: Engine) -> Array:
    """Weights with the sum 1 where their scale does not matter."""
    return weights if engine.rule.bend else weights / weights.sum()
