"""Folds of lists, or of the rows of one list: what one leaves out judges what the rest learns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.content import Digests
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.metrics.table import evaluate_by_grade

FAR = 3.0  # standard errors behind another candidate, and one will hardly win


class Fold(NamedTuple):
    """List positions to train and to score on, as masks."""

    train: Array
    test: Array


class Gain(NamedTuple):
    """A mean difference of scores, and its standard error."""

    mean: float
    error: float

    def exceeds(self, errors: float) -> bool:
        """Whether it is larger than so many of its standard errors, and than 0."""
        return self.mean > max(errors * self.error, 0.0)


def mean_gain(gains: Array, weights: Array) -> Gain:
    """The mean over lists whose gain is known; its error is infinite where none can be told.

    Lists of unequal weights say as much as ``(sum w)^2 / sum w^2`` of equal ones. Sums that differ
    by their rounding only are the same.
    """
    known = ~np.isnan(gains) & (weights > 0.0)
    if not known.any():
        return Gain(0.0, np.inf)
    gains = gains[known]
    weights = weights[known]
    mean = round(float(np.average(gains, weights=weights)), 12)
    n_lists = weights.sum() ** 2 / np.square(weights).sum()
    if n_lists <= 1.0:
        return Gain(mean, np.inf)
    variance = np.average(np.square(gains - mean), weights=weights)
    return Gain(mean, float(np.sqrt(variance / (n_lists - 1.0))))


def folds_of_lists(n_folds: int, data: RankingData, digests: Digests) -> list[Fold]:
    """Folds of the lists in the order of their content; copies of a list stand in one of them."""
    _, place = np.unique(digests.lists, return_inverse=True)
    of_row = (place % n_folds)[data.user_of_position]
    folds = [Fold(of_row != number, of_row == number) for number in range(n_folds)]
    return [part for part in folds if part.train.any() and part.test.any()]


def folds_of_rows(n_folds: int, data: RankingData, digests: Digests) -> list[Fold]:
    """Folds of the rows of one list in the order of their content; copies of a row together.

    The distinct rows of each class are dealt out. Of many copies of few rows a fold may have none
    of a class: it is left out.
    """
    labels = data.labels
    fold = np.empty(data.rows.size, dtype=int)
    for label in (False, True):
        of_class = labels == label
        _, place = np.unique(digests.rows[of_class], return_inverse=True)
        fold[of_class] = place % n_folds
    folds = [Fold(fold != number, fold == number) for number in range(n_folds)]
    return [
        part
        for part in folds
        if all(labels[mask].any() and not labels[mask].all() for mask in part)
    ]


# --- average precision on a fold ------------------------------------------------------------------


def average_precisions(scores: Array, lists: RankingData) -> Array:
    """Average precision of each list, of grades as mean over them; NaN where it is not defined.

    Of one list the precision at each of its positives, whose mean it is: so that the gain of one
    ranker over another has a standard error. Of grades a row is a positive of each that it reaches.
    """
    if lists.n_users > 1:
        rules = {"no_positives": "exclude", "few_negatives": "normalise"}
        return evaluate_by_grade("ap", scores, lists, **rules).values[:, 0]
    from scipy.stats import rankdata  # a third of a second, and not of every program

    place = rankdata(-scores, method="max")  # of equal scores the last
    of_positives = [
        rankdata(place[positive], method="max") / place[positive] for positive in _positives(lists)
    ]
    return np.concatenate(of_positives)


def weights_of_values(lists: RankingData) -> Array:
    """What each of `average_precisions` counts: lists by weight, grades of one list equally."""
    if lists.n_users > 1:
        return lists.weight_of_user
    return np.concatenate(
        [np.full(positive.sum(), 1.0 / positive.sum()) for positive in _positives(lists)]
    )


def _positives(lists: RankingData) -> list[Array]:
    """The positives of one list, of grades those of each that occurs and is not the lowest."""
    if lists.grades is None:
        return [lists.labels]
    return [lists.grades >= grade for grade in np.unique(lists.grades)[1:]]
