"""Folds of lists, or of the rows of one list: what one leaves out judges what the rest learns."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.metrics.by_grade import evaluate_by_grade


class Fold(NamedTuple):
    """List positions to train and to score on, as masks."""

    train: Array
    test: Array


def folds_of_lists(n_folds: int, data: RankingData, usable: Array) -> list[Fold]:
    """Folds of the lists where a mask is true; the others are in none of them."""
    users = np.flatnonzero(usable)
    fold = np.full(data.n_users, -1)
    fold[np.random.default_rng(0).permutation(users)] = np.arange(users.size) % n_folds
    of_row = fold[data.user_of_position]
    folds = [
        Fold((of_row >= 0) & (of_row != number), of_row == number) for number in range(n_folds)
    ]
    return [part for part in folds if part.train.any() and part.test.any()]


def folds_by_content(n_folds: int, data: RankingData) -> list[Fold]:
    """Folds of the rows of one list that do not depend on their order; copies of a row together.

    Within each class the distinct rows are dealt out in the order of digests of their values. Of
    many copies of few rows a fold may have none of a class: it is left out.
    """
    digests = digests_of_rows(data)
    labels = data.labels
    fold = np.empty(data.rows.size, dtype=int)
    for label in (False, True):
        of_class = labels == label
        _, place = np.unique(digests[of_class], return_inverse=True)
        fold[of_class] = place % n_folds
    folds = [Fold(fold != number, fold == number) for number in range(n_folds)]
    return [
        part
        for part in folds
        if all(labels[mask].any() and not labels[mask].all() for mask in part)
    ]


def digests_of_rows(data: RankingData) -> Array:
    """A digest of the values of each row, at the list positions."""
    return np.array([_digest(data.X, row) for row in data.rows.tolist()])


def _digest(X: Any, row: int) -> bytes:
    """A digest of the values of a row, as text, whatever their type."""
    if sparse.issparse(X):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        parts = [X.indices[stored].astype(np.int64), X.data[stored].astype(np.float64)]
    else:
        parts = [X[row].astype(np.float64) + 0.0]  # -0 is 0
    content = hashlib.blake2b(digest_size=8)
    for part in parts:
        content.update(part.tobytes())
    return content.hexdigest().encode()


# --- scores on a fold -----------------------------------------------------------------------------


def values_of(metric: str, scores: Array, lists: RankingData) -> Array:
    """A metric of each list, of grades as mean over them; NaN where it is not defined."""
    rules = {"no_positives": "exclude", "few_negatives": "normalise"}
    return evaluate_by_grade(metric, scores, lists, **rules).values[:, 0]
