"""Scores and labels of many users as contiguous lists, checked once."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Frame
from structsvm_papk.data import validation as _validation
from structsvm_papk.data.validation import groups_or_none
from structsvm_papk.errors import InputError, as_floats, check_choice, check_number
from structsvm_papk.metrics import _kernels

Gains: TypeAlias = str | Callable[[Array], ArrayLike]
_SHOWN = 5  # users, in messages
_FEW_FRACTIONS = 10  # ratings with halves have fewer, scores more
_MANY_FRACTIONS = 100


@dataclass(frozen=True)
class RankedLists:
    """Rows sorted by user; user u owns the rows indptr[u] .. indptr[u+1]-1.

    `grades` are the labels of graded metrics, 0 for -1, None where they equal `relevant`, and
    `gains` says what they are worth; `lengths` has the places of each list that were shown, all of
    them unless lists may be cut, `may_be_cut`; `codes` says of
    the rows as they were given whose they are; None: they stay. `tied` marks users whose scores
    tied before a rule ordered them; None: scores are as they were given. `views` has the lists of
    metrics that look at other rows: "judged", without rows that were not judged, and "known", where
    what was judged is relevant; without them every row was judged.
    """

    users: np.ndarray
    indptr: np.ndarray
    scores: np.ndarray
    relevant: np.ndarray
    grades: np.ndarray | None
    lengths: np.ndarray
    may_be_cut: bool = False
    codes: np.ndarray | None = None
    tied: np.ndarray | None = None
    gains: Gains = "linear"
    views: Mapping[str, RankedLists] = field(default_factory=dict)

    def view(self, of: str) -> RankedLists:
        """The lists that metrics `of` some rows take."""
        if of == "all" or of in self.views:
            return self.views.get(of, self)
        if of == "known":
            return replace(self, relevant=np.ones_like(self.relevant), grades=None)
        return self

    @property
    def n_users(self) -> int:
        """Number of lists."""
        return self.indptr.size - 1

    @property
    def user_of_row(self) -> Array:
        """User of each row, counted from 0."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    def pooled(self) -> RankedLists:
        """All rows as one list."""
        if self.may_be_cut:
            raise InputError(
                "a pooled mean needs complete lists, but list_length or relevant pairs were given"
            )
        whole = np.array([0, self.scores.size])
        return replace(self, users=np.zeros(1, dtype=int), indptr=whole, lengths=whole[1:])


def build(
    scores: ArrayLike,
    labels: ArrayLike,
    groups: ArrayLike | None = None,
    *,
    indptr: ArrayLike | None = None,
    list_length: ArrayLike | None = None,
    relevance_threshold: float | None = None,
    gains: Gains | None = None,
    need_binary: bool = True,
    n_threads: int | None = None,
) -> RankedLists:
    """RankedLists of row arrays, with parameters as in `metrics.evaluate`.

    NaN is refused, and numbers that only more than double precision tells apart. With neither
    `groups` nor `indptr` there is one list; `need_binary`: graded labels without a threshold are an
    error.
    """
    check_number("n_threads", n_threads, least=1, optional=True)
    check_number("relevance_threshold", relevance_threshold, optional=True)
    values = _validation.check_scores(scores, groups)
    labels = _validation.check_grades(labels, values.size, groups=groups)
    users, bounds, codes = group_rows(groups, indptr, values.size)
    if gains is None:
        refuse_scores_as_labels(labels)
    binary = _validation.is_binary(labels)
    if need_binary or relevance_threshold is not None or binary:
        relevant = _validation.relevance(labels, relevance_threshold).view(np.uint8)
    else:
        relevant = (labels > 0).view(np.uint8)
    grades = _grades(labels, binary, relevant, gains)
    lengths = lengths_of(list_length, users, np.diff(bounds))
    if codes is not None:
        if grades is not None:
            grades = _kernels.placed(codes, bounds, grades, relevant)[0]
        values, relevant = _kernels.placed(codes, bounds, values, relevant)
    return RankedLists(
        users=users,
        indptr=bounds,
        scores=values,
        relevant=relevant,
        grades=grades,
        lengths=lengths,
        may_be_cut=list_length is not None,
        codes=codes,
        gains="linear" if gains is None else gains,
    )


def refuse_scores_as_labels(labels: Array) -> None:
    """Raise where checked labels hold so many different fractions that they must be scores."""
    if labels.dtype.kind != "f":
        return
    fractions = labels[labels != np.floor(labels)]
    if fractions.size <= _FEW_FRACTIONS:
        return
    n_values = np.unique(fractions).size
    if n_values > _MANY_FRACTIONS or (n_values > _FEW_FRACTIONS and 2 * n_values > labels.size):
        raise InputError(
            f"labels hold {n_values} different fractions, as scores do: are scores and labels "
            "swapped? Scores come first, or name them: scores=, labels=. If these are gains, say "
            "so: gains='linear'"
        )


def _grades(labels: Array, binary: bool, relevant: Array, gains: Gains | None) -> Array | None:
    """Labels of graded metrics; None where they are those of relevance and every gain is 1."""
    grades = labels > 0 if binary else labels
    if not callable(gains):
        check_choice(
            "gains", "linear" if gains is None else gains, ("linear", "exponential", "a function")
        )
        if np.array_equal(grades, relevant):
            return None
    return np.ascontiguousarray(grades, dtype=np.float64)


def gains_of(grades: Array, how: Gains) -> Array:
    """What grades are worth: themselves, 2^grade - 1, or as a function says."""
    gains = grades
    if callable(how):
        gains = as_floats("gains", how(grades))
    elif how == "exponential":
        with np.errstate(over="ignore"):  # refused below
            gains = np.exp2(grades) - 1.0
    if gains.shape != grades.shape:
        raise InputError(f"gains gave shape {gains.shape} for {grades.size} labels; give one each")
    bad = ~(np.isfinite(gains) & (gains >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"NDCG gains must be finite and at least 0; that of the label {grades[row]:g} is "
            f"{gains[row]:g}"
        )
    return np.ascontiguousarray(gains, dtype=np.float64)


def group_rows(
    groups: ArrayLike | None, indptr: ArrayLike | None, n_rows: int
) -> tuple[Array, Array, Array | None]:
    """Sorted unique users, their row bounds, and the user of each row (None: rows are sorted)."""
    groups = groups_or_none(groups)
    if groups is not None and indptr is not None:
        raise InputError("give either groups or indptr, not both")
    if indptr is not None:
        bounds = _validation.check_indptr(indptr, n_rows)
        return np.arange(bounds.size - 1), bounds, None
    if groups is None:
        return np.zeros(1, dtype=np.int64), np.array([0, n_rows], dtype=np.int64), None
    groups = _validation.check_ids(groups, n_rows)
    users, codes, counts, in_order = grouped(groups)
    return users, np.concatenate([[0], np.cumsum(counts)]), None if in_order else codes


def grouped(groups: Array) -> tuple[Array, Array, Array, bool]:
    """Sorted distinct checked ids, each row's index, how often each occurs, are rows in order.

    Whole numbers that span a range near the number of rows are counted, not sorted.
    """
    if groups.dtype.kind in "iu":
        low = int(groups.min())
        n_values = int(groups.max()) - low + 1
        if n_values <= 4 * groups.size + 1025:
            wide = np.uint64 if groups.dtype.kind == "u" else np.int64
            codes = groups.astype(wide, copy=False)
            codes = (codes - wide(low) if low else codes).astype(np.int64, copy=False)
            counts, in_order = _kernels.count_rows(codes, n_values)
            present = counts > 0
            users = (np.flatnonzero(present).astype(wide) + wide(low)).astype(groups.dtype)
            if users.size < n_values:
                codes = (np.cumsum(present) - 1)[codes]
            return users, codes, counts[present], in_order
    users, codes = _validation.encode(groups)
    return users, codes, *_kernels.count_rows(codes, users.size)


def lengths_of(list_length: ArrayLike | None, users: Array, sizes: Array) -> Array:
    """How many places of each list were shown, of lists of these sizes."""
    if list_length is None:
        return sizes
    lengths = _validation.as_array(list_length, "list_length")
    if lengths.dtype.kind not in "iu":
        raise InputError(f"list_length must be whole numbers, not {lengths.dtype}")
    if lengths.ndim and lengths.shape != (users.size,):
        raise InputError(f"list_length has shape {lengths.shape}; give one per user, {users.size}")
    lengths = np.broadcast_to(lengths, users.shape).astype(np.int64)
    if (lengths < 0).any():
        raise InputError(f"list_length is negative for user {users[np.argmax(lengths < 0)]!r}")
    return np.minimum(lengths, sizes)


def run_over_users(
    lists: RankedLists, kernel: Callable[[int, int], None], n_threads: int | None = None
) -> None:
    """Call `kernel(start, stop)` on disjoint ranges of users that hold about equally many rows."""
    n_threads = n_threads or os.cpu_count() or 1
    if n_threads == 1 or lists.n_users == 1 or lists.scores.size < 1 << 14:
        kernel(0, lists.n_users)
        return
    wanted = np.linspace(0, lists.scores.size, 4 * n_threads + 1)
    cuts = np.unique(np.searchsorted(lists.indptr, wanted))
    cuts[0] = 0
    cuts[-1] = lists.n_users
    with ThreadPoolExecutor(n_threads) as pool:
        for done in [pool.submit(kernel, a, b) for a, b in pairwise(cuts)]:
            done.result()


def column_names(frame: Frame) -> list[Any]:
    """The names of the columns of a frame, or of a dict of columns."""
    names = getattr(frame, "columns", frame)
    if names is frame and not hasattr(frame, "keys"):
        raise TypeError(
            f"a pandas or polars frame, or a dict of columns, is needed, not {type(frame).__name__}"
        )
    return list(names)


def column(frame: Frame, name: str) -> Array:
    """One column of a frame, or of a dict of columns, as an array."""
    names = column_names(frame)
    if not isinstance(name, Hashable) or name not in names:
        shown = ", ".join(map(str, names))
        raise InputError(f"there is no column {name!r}; the frame has {shown}")
    return _validation.as_array(frame[name], f"column {name!r}")


def named(users: Array, mask: Array) -> str:
    """`user 5`, or `12 users (1, 2, 3, 4, 5, ..)`."""
    chosen = users[mask]
    shown = ", ".join(map(str, chosen[:_SHOWN]))
    if chosen.size == 1:
        return f"user {shown}"
    return f"{chosen.size} users ({shown}{', ..' if chosen.size > _SHOWN else ''})"
