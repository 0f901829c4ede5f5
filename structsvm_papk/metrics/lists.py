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
    n_threads=None,
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
    n_threads : int, optional
        Default: one per processor.
    """
    scores = _checked_scores(scores, groups)
    labels = _checked_labels(labels, scores.size, groups)
    users, bounds, sorter = group_rows(groups, indptr, scores.size, n_threads)
    relevant = _relevance(labels, relevance_threshold, need_binary)
    graded = _graded_gains(labels, relevant, gains)
    if sorter is not None:
        scores, relevant = sorter.place(scores, relevant)
        graded = None if graded is None else graded[sorter.order()]
    return RankedLists(users, bounds, scores, relevant, graded, _lengths(list_length, users))


def _checked_scores(scores, groups):
    scores = np.ascontiguousarray(scores, dtype=np.float64)
    if scores.ndim != 1:
        raise InputError(f"scores must have one dimension, not shape {scores.shape}")
    if scores.size == 0:
        raise InputError("there are no rows: scores is empty")
    missing = np.isnan(scores)
    if missing.any():
        raise InputError(f"scores contain NaN in {_rows(missing, groups)}; give every row a score")
    return scores


def _checked_labels(labels, n_rows, groups):
    labels = np.asarray(labels)
    if labels.shape != (n_rows,):
        raise InputError(f"labels have shape {labels.shape}, but there are {n_rows} scores")
    if labels.dtype.kind == "b":
        return labels.view(np.uint8)
    if labels.dtype.kind not in "iuf":
        labels = labels.astype(np.float64)
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise InputError(f"labels are NaN or infinite in {_rows(~np.isfinite(labels), groups)}")
    return labels


def _rows(mask, groups=None):
    """`row 3`, or `rows 3, 5, .. (12 rows)` for a message, with the users of the shown rows."""
    found = np.flatnonzero(mask)
    listed = ", ".join(map(str, found[:_SHOWN]))
    whose = ""
    if groups is not None and np.shape(groups) == np.shape(mask):
        users = dict.fromkeys(map(str, np.asarray(groups)[found[:_SHOWN]].tolist()))
        whose = f" of user{'s' if len(users) > 1 else ''} {', '.join(users)}"
    if found.size == 1:
        return f"row {listed}{whose}"
    more = ", .." if found.size > _SHOWN else ""
    return f"rows {listed}{more}{whose} ({found.size} rows, from 0)"


def _is_zero_one(labels):
    """Whether all labels are 0 or 1; whole numbers need only their range."""
    if labels.min() < 0 or labels.max() > 1:
        return False
    return labels.dtype.kind in "iu" or bool(((labels == 0) | (labels == 1)).all())


def _relevance(labels, threshold, need_binary):
    if threshold is not None:
        return (labels >= threshold).view(np.uint8)
    if _is_zero_one(labels):
        return np.ascontiguousarray(labels, dtype=np.uint8)
    is_binary = bool(np.isin(labels, (-1, 1)).all())
    if need_binary and not is_binary:
        bad = ~np.isin(labels, (0, 1))
        raise InputError(
            f"labels are not binary: {labels[bad][0]} in {_rows(bad)}; "
            "give relevance_threshold (--relevance-threshold) to say from which label on a row is "
            "relevant"
        )
    return (labels > 0).view(np.uint8)


def _graded_gains(labels, relevant, gains):
    if gains is None or gains == "linear":
        if _is_zero_one(labels) and np.count_nonzero(labels) == np.count_nonzero(relevant):
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


def group_rows(groups, indptr, n_rows, n_threads=None):
    """Sorted unique users, their row bounds, and a Sorter (None when rows are sorted)."""
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
    users, sorter, in_order = grouped(groups, n_threads or os.cpu_count() or 1)
    return users, sorter.bounds, None if in_order else sorter


@dataclass(frozen=True)
class Sorter:
    """A stable counting sort of the rows by user, in parts that threads can place at once.

    Attributes
    ----------
    codes : ndarray of int64, shape (n_rows,)
        User index of each row.
    counts : ndarray of int64, shape (n_parts, n_users)
        Rows of each user in each part.
    cuts : ndarray of int64, shape (n_parts + 1,)
        The parts of the rows.
    """

    codes: np.ndarray
    counts: np.ndarray
    cuts: np.ndarray

    @property
    def bounds(self):
        """Row bounds of the users after sorting."""
        return np.concatenate([[0], np.cumsum(self.counts.sum(axis=0))])

    def _starts(self):
        """Where each part's first row of each user goes."""
        before = np.cumsum(self.counts, axis=0) - self.counts
        return before + self.bounds[:-1]

    def place(self, scores, relevant):
        """Both arrays in sorted order."""
        out = np.empty_like(scores), np.empty_like(relevant)
        starts = self._starts()

        def one(part):
            rows = slice(self.cuts[part], self.cuts[part + 1])
            _kernels.scatter_rows(
                self.codes[rows], starts[part], scores[rows], relevant[rows], *out
            )

        _in_threads(one, self.counts.shape[0])
        return out

    def order(self):
        """The permutation that sorts."""
        order = np.empty(self.codes.size, dtype=np.int64)
        _kernels.stable_order(self.codes, self.bounds[:-1].copy(), order)
        return order


def _in_threads(work, n_parts):
    if n_parts == 1:
        work(0)
        return
    with ThreadPoolExecutor(n_parts) as pool:
        list(pool.map(work, range(n_parts)))


def count_codes(codes, n_users, n_threads=1):
    """Sorter of the codes, and whether they increase already."""
    n_parts = n_threads if codes.size >= max(n_threads * n_users, 1 << 16) else 1
    cuts = np.linspace(0, codes.size, n_parts + 1).astype(np.int64)
    counts = np.zeros((n_parts, n_users), dtype=np.int64)
    in_order = np.zeros(n_parts, dtype=bool)

    def one(part):
        start = cuts[part] - (part > 0)
        in_order[part] = _kernels.count_rows(codes, start, cuts[part], cuts[part + 1], counts[part])

    _in_threads(one, n_parts)
    return Sorter(codes, counts, cuts), bool(in_order.all())


def grouped(groups, n_threads=1):
    """Users, Sorter and whether the rows are sorted already."""
    if groups.dtype.kind in "iu":
        low, high = int(groups.min()), int(groups.max())
        if high - low <= 4 * groups.size + 1024:
            return _grouped_by_counting(groups, low, high - low + 1, n_threads)
    users, codes = _codes(groups)
    return users, *count_codes(codes, users.size, n_threads)


def _grouped_by_counting(groups, low, n_values, n_threads):
    """Labels that span a range near the number of rows need no sorting."""
    shifted = _shifted(groups, low)
    sorter, in_order = count_codes(shifted, n_values, n_threads)
    present = sorter.counts.any(axis=0)
    users = np.array(np.flatnonzero(present) + low, dtype=groups.dtype)
    if users.size < n_values:
        rank = np.cumsum(present) - 1
        sorter = Sorter(rank[shifted], sorter.counts[:, present], sorter.cuts)
    return users, sorter, in_order


def _shifted(groups, low):
    """Labels minus the smallest, as int64."""
    if groups.dtype.kind == "u":
        return (groups - groups.dtype.type(low)).astype(np.int64)
    groups = groups.astype(np.int64, copy=False)
    return groups if low == 0 else groups - low


def _checked_indptr(indptr, n_rows):
    bounds = np.ascontiguousarray(indptr, dtype=np.int64)
    if bounds.ndim != 1 or bounds.size < 2 or bounds[0] != 0 or bounds[-1] != n_rows:
        raise InputError(f"indptr must start with 0 and end with the number of rows, {n_rows}")
    if (np.diff(bounds) < 0).any():
        raise InputError(f"indptr decreases after user {np.flatnonzero(np.diff(bounds) < 0)[0]}")
    return bounds


def _codes(groups):
    """Sorted unique labels and the index of each row's label."""
    missing = np.array([], dtype=bool)
    if groups.dtype.kind == "f":
        missing = np.isnan(groups)
    elif groups.dtype.kind == "O":
        missing = np.array([g is None or g != g for g in groups], dtype=bool)
    if missing.any():
        raise InputError(f"groups are missing in {_rows(missing)}; give every row its user")
    try:
        users, codes = np.unique(groups, return_inverse=True)
    except TypeError:
        kinds = ", ".join(sorted({type(g).__name__ for g in groups}))
        raise InputError(f"groups mix types that have no order: {kinds}; use one type") from None
    return users, codes.astype(np.int64, copy=False)


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
