"""Weights for an engine, learned and judged in the engine's own rule.

    maximise over w >= 0    mean over queries of nDCG@k of the documents by rule(lists, w)

Candidates are certified weights of the columns that the rule makes of the lists, at the alpha of
the rule, ten times less and ten times more, and equal ones. From the best of them weights are
changed one at a time, each to the best that it can have beside the others (exact: nDCG is piecewise
constant along a weight, and its breaks are the crossings of two scores). Such a search fits noise
as well. Of scores, what is chosen, the search or a candidate, is decided by folds within the
queries that are learned from. Of ranks, where certified weights are further from the best, the
weights are the mean of those that searches find with one fold left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.validation import single
from structsvm_papk.fusion import _kernels
from structsvm_papk.fusion.engines import Engine
from structsvm_papk.fusion.held_out import FOLD_TOL, CrossValidation

if TYPE_CHECKING:
    import pandas as pd

_FACTORS = (0.1, 10.0)  # of the alpha of the rule, beside it
_SCALES = (1.0, 0.25, 4.0, 16.0, 64.0)  # times a mean weight of 1, where scale matters
_SWEEPS = 10
_LEAST_GAIN = 1e-9
_WIDEST = 1e6  # a weight is neither smaller nor larger than the others together by more


class Option(NamedTuple):
    """Weights that may be chosen; `ranker` is the certified fit that they are of, or began at.

    None: they are equal weights, or began there.
    """

    weights: Array
    ranker: Any = None
    is_searched: bool = False


@dataclass(frozen=True)
class RuleSearch:
    """Learning in an engine's rule from the queries of some folds, of some runs."""

    folds: CrossValidation
    engine: Engine
    names: Sequence[str]
    known: dict[frozenset[int], list[Option]] = field(default_factory=dict)  # by folds left out

    @cached_property
    def columns(self) -> Array:
        """What the rule makes of each run's lists."""
        joined = self.folds.joined
        scores = joined.scores[list(self.names)].to_numpy()
        return self.engine.rule.columns(scores, joined.query, joined.place)

    @cached_property
    def _frame(self) -> pd.DataFrame:
        import pandas as pd

        return pd.DataFrame(self.columns, columns=list(self.names))

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
        scores = single(self.scores(weights))  # as they are compared
        _kernels.dcg(scores, place, self._gains, self._starts, self._discounts, values)
        return values

    def held_out(self) -> Array:
        """Score of each row, its query ranked by weights of the other folds."""
        query = self.folds.joined.query
        scores = np.full(query.size, -np.inf)
        for fold in range(self.folds.n_folds):
            rows = (self.folds.fold == fold)[query]
            scores[rows] = self.scores(self.chosen(frozenset([fold])).weights)[rows]
        return scores

    # --- learning ---------------------------------------------------------------------------------

    def chosen(self, left_out: frozenset[int] = frozenset()) -> Option:
        """What is learned from all folds but some."""
        if self.engine.rule.of_scores:
            return self._best_held_out(left_out)
        return self._mean_of_searches(left_out)

    def _best_held_out(self, left_out: frozenset[int]) -> Option:
        """The option that ranks held-out queries best.

        The first option, certified weights at the alpha of the rule, is left only for a gain that
        is larger than its standard error.
        """
        options = self.options(left_out)
        gains = self._gains_held_out(left_out)
        if not gains.size:
            return options[0]
        mean = gains.mean(axis=1)
        best = int(np.argmax(mean))
        error = gains[best].std() / np.sqrt(gains.shape[1])
        return options[best if mean[best] > error else 0]

    def _mean_of_searches(self, left_out: frozenset[int]) -> Option:
        """The mean of the weights that searches find with one more fold left out."""
        folds = sorted(set(range(self.folds.n_folds)) - left_out)
        *_, searched = self.options(left_out)
        if len(folds) < 2:
            return searched
        found = [self.options(left_out | {fold})[-1].weights for fold in folds]
        scaled = [normalised(weights, self.engine) for weights in found]
        return searched._replace(weights=np.mean(scaled, axis=0))

    def _gains_held_out(self, left_out: frozenset[int]) -> Array:
        """How far each option is ahead of the first on queries of folds that it has not seen."""
        gains = []
        for fold in sorted(set(range(self.folds.n_folds)) - left_out):
            queries = self.folds.fold == fold
            values = np.array(
                [self.values(each.weights)[queries] for each in self.options(left_out | {fold})]
            )
            gains.append(values - values[0])
        return np.concatenate(gains, axis=1) if gains else np.empty((0, 0))

    def options(self, left_out: frozenset[int] = frozenset()) -> list[Option]:
        """What may be chosen, learned from all folds but some; always as many."""
        if left_out not in self.known:
            self.known[left_out] = self._learned(~np.isin(self.folds.fold, list(left_out)))
        return self.known[left_out]

    def _learned(self, queries: Array) -> list[Option]:
        rows = queries[self.folds.joined.query] & self._retrieved
        scales = _SCALES if self.engine.rule.bend else (1.0,)
        options = []
        for ranker in self._certified(rows, exact=bool(queries.all())):
            share = self.equal / self.equal.size
            if ranker is not None and ranker.coef_.any():  # weights of 0 would rank nothing
                share = ranker.coef_ / ranker.coef_.sum()
            options += [Option(scale * share.size * share, ranker) for scale in scales]
        options.append(Option(self.equal))
        if not self.folds.is_trainable(rows):  # all folds are left out, or have nothing to tell
            return [*options, Option(self.equal, is_searched=True)]
        best = max(options, key=lambda option: self.values(option.weights)[queries].mean())
        searched = self._searched(best.weights, queries)
        return [*options, Option(searched, best.ranker, is_searched=True)]

    def _certified(self, rows: Array, exact: bool) -> list[Any]:
        """Rankers with certified weights of the rule's columns, at three strengths; None: no fit.

        In Qdrant's rule, which is no sum of weight times column, they are of the columns all the
        same: where to begin.
        """
        if not self.folds.is_trainable(rows):
            return [None] * (1 + len(_FACTORS))
        tol: dict[str, Any] = {} if exact else {"tol": FOLD_TOL}
        rankers = [self.folds.settings.ranker(positive=True, **tol)]
        self.folds.fit_rows(rankers[0], self._frame, rows)
        alpha = float(rankers[0].result_.alpha)
        for factor in _FACTORS:
            ranker = self.folds.settings.ranker(positive=True, alpha=factor * alpha, **tol)
            self.folds.fit_rows(ranker, self._frame, rows)
            rankers.append(ranker)
        return rankers

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
