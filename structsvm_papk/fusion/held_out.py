"""Queries ranked by weights that were learned from the others, and what the rankings are worth.

Weights for an engine are learned in what its rule makes of the lists (`InRule`): certified weights
at least 0 of these numbers as columns, `Rule.learned_from` for rules of ranks.

nDCG@k is trec_eval's: gains are grades, the ideal list is of all judgments, and of equal scores the
larger document id is first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk import metrics
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_number, check_type
from structsvm_papk.fusion.engines import combsum, from_lowest, rrf, rules_of
from structsvm_papk.fusion.entries import places
from structsvm_papk.fusion.joining import Joined
from structsvm_papk.fusion.report import RunWeight
from structsvm_papk.metrics.table import MetricTable

if TYPE_CHECKING:
    import pandas as pd

    from structsvm_papk.rankers import PAPKRanker
from functools import cached_property

from structsvm_papk.fusion.engines import Engine, Rule

YARDSTICKS: dict[str, Callable[..., Array]] = {"RRF": rrf, "CombSUM": combsum}
ANY_GRADE = 1.0
_NOTHING = 1e-9  # of all weights: as much as rounding leaves of weights that are 0
FOLD_TOL = 1e-3  # relative gap of the fits on folds: far below what queries differ by


@dataclass(frozen=True)
class Settings:
    """What is trained and how it is judged; as the arguments of `cross_validate`."""

    k: int
    threshold: float | None = None  # None: grades train as they are
    engine: str | None = None  # in whose rule is learned; None: scores as they are
    n_folds: int = 5
    level: float = 0.95
    n_resamples: int = 2000
    n_refits: int = 200
    seed: int = 0
    rank_constant: float | None = None  # of the engine's rule of ranks; None: its own

    def __post_init__(self) -> None:
        check_number("k", self.k, least=1)
        check_number("rank_constant", self.rank_constant, above=0, optional=True)
        check_number("relevance_threshold", self.threshold, optional=True)
        if self.engine is not None:
            check_type("engine", self.engine, str, "the name of an engine")
            rules_of(self.engine)
        check_number("cv", self.n_folds, least=2)
        check_number("level", self.level, above=0, below=1)
        check_number("n_resamples", self.n_resamples, least=10)
        check_number("n_refits", self.n_refits, least=2)
        check_number("random_state", self.seed, least=0)

    @property
    def relevant_from(self) -> float:
        """From which grade on a document is relevant, where that is asked."""
        return ANY_GRADE if self.threshold is None else self.threshold

    def ranker(self, **more: Any) -> PAPKRanker:
        """The estimator that learns weights."""
        from structsvm_papk.rankers import PAPKRanker

        return PAPKRanker(
            int(self.k),
            relevance_threshold=self.threshold,
            policy="cap",
            missing="lowest",
            curves=None,
            **more,
        )


@dataclass(frozen=True)
class CrossValidation:
    """Joined rows to train on and to judge, and the fold of each query."""

    joined: Joined
    settings: Settings
    relevant: Array
    fold: Array

    @classmethod
    def of(cls, joined: Joined, settings: Settings) -> CrossValidation:
        """That of two or more runs and judgments, with at least two queries to train on."""
        if len(joined.names) < 2:
            raise InputError(
                f"one run ({joined.names[0]}) has no weights to learn: give two or more; evaluate "
                "says what one is worth"
            )
        relevant = joined.grades >= settings.relevant_from
        n_relevant = np.bincount(joined.query[relevant], minlength=joined.n_queries)
        usable = (n_relevant > 0) & (n_relevant < np.bincount(joined.query))
        if np.count_nonzero(usable) < 2:
            raise InputError(
                f"{np.count_nonzero(usable)} of {joined.n_queries} judged {joined.nouns[0]} have "
                f"relevant (grade >= {settings.relevant_from:g}) and other {joined.nouns[1]} that "
                "some run retrieved; weights and their test need at least two"
            )
        return cls(
            joined=joined,
            settings=settings,
            relevant=relevant,
            fold=_folds(usable, joined.place_of_query, settings),
        )

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def fit(self, ranker: Any, weight: Array | None = None) -> None:
        """Train a ranker on the scores of all queries."""
        everything = np.ones(self.relevant.size, dtype=bool)
        self.fit_rows(ranker, self.joined.scores, everything, weight)

    def fit_rows(
        self, ranker: Any, columns: pd.DataFrame, mask: Array, weight: Array | None = None
    ) -> None:
        """Train a ranker on some rows of the columns of runs, of which each may have a weight.

        Rows are in the order of their ids, whatever the order of the inputs was. No list can be
        wrong in more places than it has.
        """
        joined = self.joined
        order = np.lexsort((joined.place, joined.query_place))
        rows = order[mask[order]]
        query = joined.query_place[rows]
        n_negatives = np.bincount(query[~self.relevant[rows]])
        ranker.k = min(int(self.settings.k), int(n_negatives.max(initial=1)))
        grades = np.maximum(joined.grades[rows], 0)
        sample_weight = None if weight is None else weight[rows]
        ranker.fit(columns.iloc[rows], grades, groups=query, sample_weight=sample_weight)

    def is_trainable(self, rows: Array) -> bool:
        """Whether some query has both a relevant and another document among some rows."""
        query = self.joined.query[rows]
        relevant = self.relevant[rows]
        return bool(np.isin(query[relevant], query[~relevant]).any())

    def held_out(self, names: Sequence[str]) -> Array:
        """Score of each row by these runs, with weights of the other folds.

        Minus infinity where none of the runs retrieved the document.
        """
        names = list(names)
        query = self.joined.query
        columns = self.joined.scores[names]
        retrieved = columns.notna().to_numpy().any(axis=1)
        scores = np.full(retrieved.size, -np.inf)
        for fold in range(self.n_folds):
            in_fold = (self.fold == fold)[query]
            test = retrieved & in_fold
            train = retrieved & ~in_fold
            if not (test.any() and self.is_trainable(train)):  # nothing learned or ranked
                scores[test] = 0.0
                continue
            ranker = self.settings.ranker(tol=FOLD_TOL)
            self.fit_rows(ranker, columns, train)
            predicted = ranker.predict(columns[test], groups=query[test])
            scores[test] = from_lowest(predicted, query[test])
        return scores

    def table(self, scores: Array) -> MetricTable:
        """nDCG@k of each query, with the ideal of all judgments; minus infinity: not retrieved."""
        joined = self.joined
        place = places(joined.query, scores, joined.place)
        n_shown = np.bincount(joined.query[scores > -np.inf], minlength=joined.n_queries)
        # documents that no run retrieved count in the ideal lists: behind all that is shown
        no_place = np.full(joined.missed_query.size, np.inf)
        grades = np.concatenate([joined.grades, joined.missed_grade])
        return metrics.evaluate(
            f"ndcg@{int(self.settings.k)}",
            scores=-np.concatenate([place, no_place]),
            labels=np.maximum(grades, 0),
            groups=np.concatenate([joined.query, joined.missed_query]),
            list_length=n_shown,
            no_positives="zero",
        )

    def judged_share(self, scores: Array) -> float:
        """Mean share of the first k documents that were judged, over queries that have some.

        Minus infinity: not retrieved. NaN where nothing was.
        """
        joined = self.joined
        place = places(joined.query, scores, joined.place)
        shown = (place < int(self.settings.k)) & (scores > -np.inf)
        n_shown = np.bincount(joined.query[shown], minlength=joined.n_queries)
        n_judged = np.bincount(joined.query[shown & joined.judged], minlength=joined.n_queries)
        if not shown.any():
            return float("nan")
        return float((n_judged[n_shown > 0] / n_shown[n_shown > 0]).mean())

    @property
    def n_without_relevant(self) -> int:
        """Judged queries without a document of a grade above 0."""
        joined = self.joined
        has_one = np.zeros(joined.n_queries, dtype=bool)
        has_one[joined.query[joined.grades > 0]] = True
        has_one[joined.missed_query[joined.missed_grade > 0]] = True
        return int((~has_one).sum())

    def alone(self) -> dict[str, Array]:
        """Scores of the rows by each run."""
        frame = self.joined.frame
        return {name: frame[name].fillna(-np.inf).to_numpy() for name in self.joined.names}

    def yardsticks(self) -> dict[str, Array]:
        """Scores of the rows by what joins runs without judgments."""
        return {name: joins(self.joined.frame) for name, joins in YARDSTICKS.items()}

    def best_of(self, tables: Mapping[str, MetricTable]) -> MetricTable:
        """In each fold the ranking that is the best on the other folds."""
        values = np.stack([table.values[:, 0] for table in tables.values()])
        chosen = np.empty(self.fold.size)
        for fold in range(self.n_folds):
            test = self.fold == fold
            best = int(np.argmax(values[:, ~test].mean(axis=1)))
            chosen[test] = values[best, test]
        return replace(next(iter(tables.values())), values=chosen[:, None])

    def weights(self, ranker: Any) -> list[RunWeight]:
        """What each run counts, by a ranker that was trained on all columns."""
        share = shares(ranker)
        not_there = ranker.missing_coef_ / _total(ranker)
        return self.described(ranker.coef_, share, not_there)

    def described(self, weights: Array, share: Array, not_there: Array) -> list[RunWeight]:
        """Weights with what each run did not retrieve."""
        missed = self.joined.scores.isna().to_numpy()
        return [
            RunWeight(
                name=name,
                weight=float(weights[column]),
                share=float(share[column]),
                not_there=float(not_there[column]),
                n_missed=int(missed[:, column].sum()),
                n_relevant_missed=int((missed[:, column] & self.relevant).sum()),
            )
            for column, name in enumerate(self.joined.names)
        ]


def shares(ranker: Any) -> Array:
    """Weights of the runs in a unit that all share, a deviation of scores; sizes have the sum 1."""
    share = ranker.coef_ * ranker.scale_ / _total(ranker)
    return np.where(np.abs(share) > _NOTHING, share, 0.0)


def _total(ranker: Any) -> float:
    """What a share is a share of: all scores, or "not there", where scores count nothing."""
    of_scores = float(np.abs(ranker.coef_ * ranker.scale_).sum())
    of_holes = 0.0
    if ranker.missing_coef_ is not None:
        of_holes = float(np.abs(ranker.missing_coef_).sum())
    if of_scores > _NOTHING * of_holes:
        return of_scores
    return of_holes or 1.0


def _folds(usable: Array, place: Array, settings: Settings) -> Array:
    """Fold of each query: as many queries that can be trained on in each as in the others.

    `place` is that of a query among all, by its id, so that the order of the input does not count.
    """
    n_folds = min(int(settings.n_folds), int(np.count_nonzero(usable)))
    order = np.argsort(place)[np.random.default_rng(settings.seed).permutation(usable.size)]
    # dealt like cards, those that can be trained on first
    order = np.concatenate([order[usable[order]], order[~usable[order]]])
    fold = np.empty(usable.size, dtype=np.int64)
    fold[order] = np.arange(usable.size) % n_folds
    return fold


# --- weights for an engine ------------------------------------------------------------------------


@dataclass(frozen=True)
class InRule:
    """Learning in an engine's rule, of some runs."""

    folds: CrossValidation
    engine: Engine
    names: Sequence[str]

    @cached_property
    def columns(self) -> Array:
        """What the rule makes of each run's lists."""
        return self._columns_of(self.engine.rule)

    def _columns_of(self, rule: Rule) -> Array:
        joined = self.folds.joined
        scores = joined.scores[list(self.names)].to_numpy()
        return rule.columns(scores, joined.query, joined.place)

    @cached_property
    def _retrieved(self) -> Array:
        """Whether one of the runs has the document of a row."""
        scores = self.folds.joined.scores[list(self.names)]
        retrieved: Array = scores.notna().to_numpy().any(axis=1)
        return retrieved

    @property
    def equal(self) -> Array:
        """The engine's weights where none are given."""
        return np.ones(len(self.names))

    def scores(self, weights: Array) -> Array:
        """Fused score of each row, minus infinity where no run retrieved the document."""
        fused = self.engine.rule.fused(self.columns, weights)
        return np.where(self._retrieved, fused, -np.inf)

    def held_out(self) -> Array:
        """Score of each row, its query ranked by weights of the other folds."""
        query = self.folds.joined.query
        scores = np.full(query.size, -np.inf)
        for fold in range(self.folds.n_folds):
            in_fold = (self.folds.fold == fold)[query]
            weights = self.equal
            if self.folds.is_trainable(self._retrieved & ~in_fold):
                weights = self.weights(self.fitted(~in_fold, tol=FOLD_TOL))
            scores[in_fold] = self.scores(weights)[in_fold]
        return scores

    def fitted(self, rows: Array | None = None, **settings: Any) -> Any:
        """A ranker of the columns, trained on some rows, or on all."""
        import pandas as pd

        columns = self._columns_of(self.engine.rule.learned_from)
        ranker = self.folds.settings.ranker(positive=True, **settings)
        some = self._retrieved if rows is None else self._retrieved & rows
        self.folds.fit_rows(ranker, pd.DataFrame(columns, columns=list(self.names)), some)
        return ranker

    def weights(self, ranker: Any) -> Array:
        """The weights of a ranker, with the mean 1 where their scale matters."""
        weights: Array = ranker.coef_ if ranker.coef_.any() else self.equal  # 0 would rank nothing
        return self.normalised(weights / weights.mean())

    def normalised(self, weights: Array) -> Array:
        """Weights with the sum 1 where their scale does not matter."""
        return weights if self.engine.rule.bend else weights / weights.sum()
