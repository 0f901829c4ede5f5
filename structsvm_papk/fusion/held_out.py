"""Queries ranked by weights that were learned from the others, and what the rankings are worth.

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
from structsvm_papk.fusion.engines import engine_of
from structsvm_papk.fusion.entries import places
from structsvm_papk.fusion.joining import Joined
from structsvm_papk.fusion.report import RunWeight
from structsvm_papk.fusion.yardsticks import combsum, from_lowest, minmax, rrf
from structsvm_papk.metrics.table import MetricTable

if TYPE_CHECKING:
    import pandas as pd

    from structsvm_papk.rankers import PAPKRanker

YARDSTICKS: dict[str, Callable[..., Array]] = {"RRF": rrf, "CombSUM": combsum}
ANY_GRADE = 1.0
_NOTHING = 1e-9  # of all weights: as much as rounding leaves of weights that are 0
FOLD_TOL = 1e-3  # relative gap of the fits on folds: far below what queries differ by


@dataclass(frozen=True)
class Settings:
    """What is trained and how it is judged; as the arguments of `cross_validate`."""

    k: int
    threshold: float | None  # None: grades train as they are
    engine: str | None  # in whose rule is learned; None: scores as they are
    n_folds: int
    level: float
    n_resamples: int
    n_refits: int
    seed: int

    def __post_init__(self) -> None:
        check_number("k", self.k, least=1)
        check_number("relevance_threshold", self.threshold, optional=True)
        if self.engine is not None:
            check_type("engine", self.engine, str, "the name of an engine")
            engine_of(self.engine)
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
            positive=self.engine is not None,
            curves=None,
            **more,
        )


@dataclass(frozen=True)
class CrossValidation:
    """Joined rows to train on and to judge, and the fold of each query."""

    joined: Joined
    settings: Settings
    columns: pd.DataFrame  # of the runs, as they are trained on: for an engine by min-max
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
        columns = joined.scores
        if settings.engine is not None:  # 0 where a run did not retrieve the document
            columns = columns.copy()
            columns[:] = minmax(joined.frame, joined.names)
        return cls(
            joined=joined,
            settings=settings,
            columns=columns,
            relevant=relevant,
            fold=_folds(usable, settings),
        )

    @property
    def n_folds(self) -> int:
        """Number of folds."""
        return int(self.fold.max()) + 1

    def fit(self, ranker: Any, **more: Any) -> None:
        """Train a ranker on all queries."""
        everything = np.ones(self.relevant.size, dtype=bool)
        self.fit_rows(ranker, list(self.joined.names), everything, **more)

    def fit_rows(self, ranker: Any, names: list[str], rows: Array, **more: Any) -> None:
        """Train a ranker on some runs and rows; no list can be wrong in more places than it has."""
        query = self.joined.query[rows]
        n_negatives = np.bincount(query[~self.relevant[rows]])
        ranker.k = min(int(self.settings.k), int(n_negatives.max(initial=1)))
        grades = np.maximum(self.joined.grades[rows], 0)
        ranker.fit(self.columns[names][rows], grades, groups=query, **more)

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
        retrieved = self.joined.scores[names].notna().to_numpy().any(axis=1)
        scores = np.full(retrieved.size, -np.inf)
        for fold in range(self.n_folds):
            in_fold = (self.fold == fold)[query]
            test = retrieved & in_fold
            train = retrieved & ~in_fold
            if not (test.any() and self.is_trainable(train)):  # nothing learned or ranked
                scores[test] = 0.0
                continue
            ranker = self.settings.ranker(tol=FOLD_TOL)
            self.fit_rows(ranker, names, train)
            predicted = ranker.predict(self.columns[names][test], groups=query[test])
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

    def alone(self) -> dict[str, MetricTable]:
        """Each run."""
        frame = self.joined.frame
        return {
            name: self.table(frame[name].fillna(-np.inf).to_numpy()) for name in self.joined.names
        }

    def yardsticks(self) -> dict[str, MetricTable]:
        """What joins runs without judgments."""
        return {name: self.table(joins(self.joined.frame)) for name, joins in YARDSTICKS.items()}

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
        share = shares(ranker, of_minmax=False)
        not_there = ranker.missing_coef_ / _total(ranker, of_minmax=False)
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


def shares(ranker: Any, of_minmax: bool) -> Array:
    """Weights of the runs that can be held beside each other; their sizes have the sum 1."""
    share = _comparable(ranker, of_minmax) / _total(ranker, of_minmax)
    return np.where(np.abs(share) > _NOTHING, share, 0.0)


def _total(ranker: Any, of_minmax: bool) -> float:
    """What a share is a share of: all scores, or "not there", where scores count nothing."""
    of_scores = float(np.abs(_comparable(ranker, of_minmax)).sum())
    of_holes = 0.0
    if ranker.missing_coef_ is not None:
        of_holes = float(np.abs(ranker.missing_coef_).sum())
    if of_scores > _NOTHING * of_holes:
        return of_scores
    return of_holes or 1.0


def _comparable(ranker: Any, of_minmax: bool) -> Array:
    """Weights in a unit that all runs share."""
    weight: Array = ranker.coef_ if of_minmax else ranker.coef_ * ranker.scale_
    return weight


def _folds(usable: Array, settings: Settings) -> Array:
    """Fold of each query: as many queries that can be trained on in each as in the others."""
    n_folds = min(int(settings.n_folds), int(np.count_nonzero(usable)))
    order = np.random.default_rng(settings.seed).permutation(usable.size)
    # dealt like cards, those that can be trained on first
    order = np.concatenate([order[usable[order]], order[~usable[order]]])
    fold = np.empty(usable.size, dtype=np.int64)
    fold[order] = np.arange(usable.size) % n_folds
    return fold
