"""One function per metric, for code that computes a single one.

Each returns an array with one value per user, in the order of the sorted unique groups, NaN where
the user is left out. `options` are the arguments of `evaluate` (`indptr`, `ties`, `gain`, ..).
"""

from typing import Any

from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.metrics.table import per_user


def pap_at_k(
    scores: ArrayLike, labels: ArrayLike, k: int, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """PAp@k: share of correct pairs of the best min(n_pos, k) positives and k best negatives.

        1 - 1/(beta k) sum_{i<=beta} sum_{j<=k} 1[p_(i) <= q_(j)],  beta = min(n_pos, k)

    (Def. 1 of the paper; ties count as errors unless `ties` says otherwise.)
    """
    return per_user(f"pap@{k}", scores, labels, groups, **options)


def pauc_at_k(
    scores: ArrayLike, labels: ArrayLike, k: int, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """PAUC(0, k/n_neg]: share of correct pairs of all positives and the k best negatives."""
    return per_user(f"pauc@{k}", scores, labels, groups, **options)


def auc(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """AUC: share of correct pairs of all positives and all negatives."""
    return per_user("auc", scores, labels, groups, **options)


def precision_at_k(
    scores: ArrayLike, labels: ArrayLike, k: int, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """Positives among the k highest scores, divided by k."""
    return per_user(f"precision@{k}", scores, labels, groups, **options)


def recall_at_k(
    scores: ArrayLike, labels: ArrayLike, k: int, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """Positives among the k highest scores, divided by the number of positives."""
    return per_user(f"recall@{k}", scores, labels, groups, **options)


def average_precision(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """Mean over the positives of the precision at their place."""
    return per_user("ap", scores, labels, groups, **options)


def ndcg_at_k(
    scores: ArrayLike,
    labels: ArrayLike,
    k: int | None = None,
    groups: ArrayLike | None = None,
    **options: Any,
) -> Array:
    """sum_r gain_(r) D(r) over the first k places, divided by its largest possible value."""
    return per_user("ndcg" if k is None else f"ndcg@{k}", scores, labels, groups, **options)


def reciprocal_rank(
    scores: ArrayLike, labels: ArrayLike, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """1 / place of the first positive."""
    return per_user("rr", scores, labels, groups, **options)


def auc_at_k(
    scores: ArrayLike, labels: ArrayLike, k: int, groups: ArrayLike | None = None, **options: Any
) -> Array:
    """AUC inside the k highest scores (Table 2 of the paper).

    1 where they hold positives only, 0 where they hold negatives only, as in the authors' code.
    """
    return per_user(f"auc@{k}", scores, labels, groups, **options)
