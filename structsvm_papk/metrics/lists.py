"""Scores and labels of many users as contiguous lists, checked once."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import _kernels

_SHOWN = 5


@dataclass(frozen=True)
class RankedLists:
    """Rows sorted by user.

    Attributes
    ----------
    users : ndarray
        Sorted unique group labels.
    indptr : ndarray of int64, shape (n_users + 1,)
        User u owns the rows indptr[u] .. indptr[u+1]-1.
    scores : ndarray of float64, shape (n_rows,)
    relevant : ndarray of uint8, shape (n_rows,)
    gains : ndarray of float64 or None
        Graded gains for NDCG; None where they equal `relevant`.
    lengths : ndarray of int64, shape (n_users,) or (0,)
        Places shown of each list; empty when lists are complete.
    """

    users: np.ndarray
    indptr: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    gains: np.ndarray | None
    lengths: np.ndarray

    @property
    def n_users(self):
        """Number of lists."""
        return self.indptr.size - 1

    def pooled(self):
        """All rows as one list."""
        if self.lengths.size:
            raise InputError("a pooled mean needs complete lists; list_length was given")
        whole = np.array([0, self.scores.size], dtype=np.int64)
        return RankedLists(
            np.zeros(1, dtype=int), whole, self.scores, self.relevant, self.gains, self.lengths
        )


def build(
    scores,
    labels,
    groups=None,
    *,
    indptr=None,
    list_length=None,
    relevance_threshold=None,
    gains=None,
    need_binary=True,
):
    """RankedLists of row arrays.

    Parameters
    ----------
    scores : array-like of float, shape (n_rows,)
        Infinite scores order as usual; NaN is refused.
    labels : array-like, shape (n_rows,)
        0/1, -1/1 or bool; graded labels need `relevance_threshold`.
    groups : array-like, shape (n_rows,), optional
        User of each row, any dtype and order. None with `indptr` None: one list.
    indptr : array-like of int, shape (n_users + 1,), optional
        Rows already sorted by user.
    list_length : int or array-like of int, shape (n_users,), optional
        How many top places of each list were shown.
    relevance_threshold : float, optional
        A row is relevant when its label is at least this.
    gains : {"linear", "exponential"} or callable, optional
        Graded gain of a label for NDCG. Default: linear on graded labels.
    need_binary : bool
        Whether graded labels without a threshold are an error.
    """
    scores = _checked_scores(scores)
    labels = _checked_labels(labels, scores.size)
    users, bounds, position = group_rows(groups, indptr, scores.size)
    relevant = _relevance(labels, relevance_threshold, need_binary)
    graded = _graded_gains(labels, relevant, gains)
    if position is not None:
        scores, relevant, graded = _sorted_rows(position, bounds, scores, relevant, graded)
    return RankedLists(users, bounds, scores, relevant, graded, _lengths(list_length, users))


def _checked_scores(scores):
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim != 1:
        raise InputError(f"scores must have one dimension, not shape {scores.shape}")
    if scores.size == 0:
        raise InputError("there are no rows: scores is empty")
    missing = np.isnan(scores)
    if missing.any():
        raise InputError(f"scores contain NaN in {_rows(missing)}; give every row a score")
    return scores


def _checked_labels(labels, n_rows):
    labels = np.asarray(labels)
    if labels.shape != (n_rows,):
        raise InputError(f"labels have shape {labels.shape}, but there are {n_rows} scores")
    if labels.dtype.kind == "b":
        return labels.view(np.uint8)
    if labels.dtype.kind not in "iuf":
        labels = labels.astype(np.float64)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"labels are NaN or infinite in {_rows(~np.isfinite(labels))}")
    return labels


def _rows(mask):
    """`row 3`, or `rows 3, 5, .. (12 rows)` for a message."""
    found = np.flatnonzero(mask)
    listed = ", ".join(map(str, found[:_SHOWN]))
    if found.size == 1:
        return f"row {listed}"
    return f"rows {listed}{', ..' if found.size > _SHOWN else ''} ({found.size} rows, from 0)"


def _relevance(labels, threshold, need_binary):
    if threshold is not None:
        return (labels >= threshold).astype(np.uint8)
    if labels.dtype == np.uint8 and labels.max() <= 1:
        return np.ascontiguousarray(labels)
    positive = labels > 0
    other = labels != 1
    other &= positive
    is_binary = not other.any() and not (labels < 0).any()
    if not is_binary:
        is_binary = bool(np.isin(labels, (-1, 1)).all())
    if need_binary and not is_binary:
        bad = ~np.isin(labels, (0, 1))
        raise InputError(
            f"labels are not binary: {labels[bad][0]} in {_rows(bad)}; "
            "give relevance_threshold (--relevance-threshold) to say from which label on a row is "
            "relevant"
        )
    return positive.astype(np.uint8)


def _graded_gains(labels, relevant, gains):
    if gains is None or gains == "linear":
        if labels.dtype == np.uint8 and labels is relevant:
            return None
        found = labels.astype(np.float64)
        if np.isin(labels, (-1, 1)).all():
            found = np.maximum(found, 0.0)
    elif gains == "exponential":
        found = np.exp2(labels.astype(np.float64)) - 1.0
    elif callable(gains):
        found = np.asarray(gains(labels), dtype=np.float64)
    else:
        raise InputError(f"gains={gains!r} is not known; choose linear, exponential or a function")
    if np.array_equal(found, relevant):
        return None
    bad = ~(np.isfinite(found) & (found >= 0))
    if found.shape != labels.shape or bad.any():
        raise InputError(f"NDCG gains must be finite and at least 0; they are not in {_rows(bad)}")
    return np.ascontiguousarray(found)


def group_rows(groups, indptr, n_rows):
    """Sorted unique users, their row bounds, and a code per row (None when rows are sorted)."""
    if groups is not None and indptr is not None:
        raise InputError("give either groups or indptr, not both")
    if indptr is not None:
        bounds = _checked_indptr(indptr, n_rows)
        return np.arange(bounds.size - 1), bounds, None
    if groups is None:
        return np.zeros(1, dtype=np.int64), np.array([0, n_rows], dtype=np.int64), None
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise InputError(f"groups have shape {groups.shape}, but there are {n_rows} rows")
    users, codes = _codes(groups)
    bounds = np.zeros(users.size + 1, dtype=np.int64)
    np.cumsum(np.bincount(codes, minlength=users.size), out=bounds[1:])
    sorted_already = bool((codes[1:] >= codes[:-1]).all())
    return users, bounds, None if sorted_already else codes


def _checked_indptr(indptr, n_rows):
    bounds = np.ascontiguousarray(indptr, dtype=np.int64)
    if bounds.ndim != 1 or bounds.size < 2 or bounds[0] != 0 or bounds[-1] != n_rows:
        raise InputError(f"indptr must start with 0 and end with the number of rows, {n_rows}")
    if (np.diff(bounds) < 0).any():
        raise InputError(f"indptr decreases after user {np.flatnonzero(np.diff(bounds) < 0)[0]}")
    return bounds


def _codes(groups):
    """Sorted unique labels and the index of each row's label."""
    if groups.dtype.kind in "iu":
        return _integer_codes(groups)
    missing = np.array([], dtype=bool)
    if groups.dtype.kind == "f":
        missing = np.isnan(groups)
    elif groups.dtype.kind == "O":
        missing = np.array([g is None or g != g for g in groups], dtype=bool)
    if missing.any():
        raise InputError(f"groups are missing in {_rows(missing)}; give every row its user")
    users, codes = np.unique(groups, return_inverse=True)
    return users, codes.astype(np.int64, copy=False)


def _integer_codes(groups):
    """Counting instead of sorting where the labels span a range near the number of rows."""
    low, high = int(groups.min()), int(groups.max())
    if high - low > 4 * groups.size + 1024:
        users, codes = np.unique(groups, return_inverse=True)
        return users, codes.astype(np.int64, copy=False)
    shifted = groups.astype(np.int64, copy=False) if low == 0 else groups.astype(np.int64) - low
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    users = np.flatnonzero(present) + low
    if users.size == present.size:
        return users.astype(groups.dtype), shifted
    rank = np.cumsum(present) - 1
    return users.astype(groups.dtype), rank[shifted]


def _sorted_rows(codes, bounds, scores, relevant, graded):
    out_scores, out_relevant = np.empty_like(scores), np.empty_like(relevant)
    _kernels.scatter_rows(codes, bounds[:-1].copy(), scores, relevant, out_scores, out_relevant)
    if graded is not None:
        graded = graded[row_order(codes, bounds)]
    return out_scores, out_relevant, graded


def row_order(codes, bounds):
    """Stable permutation of the rows that brings each user's rows together."""
    order = np.empty(codes.size, dtype=np.int64)
    _kernels.stable_order(codes, bounds[:-1].copy(), order)
    return order


def _lengths(list_length, users):
    if list_length is None:
        return np.empty(0, dtype=np.int64)
    lengths = np.asarray(list_length)
    if lengths.dtype.kind not in "iu":
        raise InputError(f"list_length must be whole numbers, not {lengths.dtype}")
    if lengths.ndim and lengths.shape != (users.size,):
        raise InputError(f"list_length has shape {lengths.shape}; give one per user, {users.size}")
    lengths = np.broadcast_to(lengths, users.shape).astype(np.int64)
    if (lengths < 0).any():
        raise InputError(f"list_length is negative for user {users[np.argmax(lengths < 0)]!r}")
    return lengths


def run_over_users(lists, kernel, n_threads=None):
    """Call `kernel(start, stop)` on disjoint ranges of users that hold about equally many rows."""
    n_threads = n_threads or os.cpu_count() or 1
    if n_threads == 1 or lists.n_users == 1 or lists.scores.size < 1 << 14:
        kernel(0, lists.n_users)
        return
    wanted = np.linspace(0, lists.scores.size, 4 * n_threads + 1)
    cuts = np.unique(np.searchsorted(lists.indptr, wanted))
    cuts[0], cuts[-1] = 0, lists.n_users
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(kernel, a, b) for a, b in pairwise(cuts)]:
            done.result()
