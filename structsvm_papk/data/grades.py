"""Grades: labels of more than two whole values, and the lists that they stand for.

A grade g has a gain, ``gain(g) = sum_{t <= g} v_t``, to which every grade t adds its ``v_t >= 0``.
List u with the labels ``[grade >= t]`` is the list (u, t); it counts ``v_t``, times what u counts,
and is there for every t at which u has a positive and a negative. Rows stand by decreasing gain, so
that the positives of every t come first and all lists (u, t) have their rows in common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.validation import check_grades
from structsvm_papk.errors import InputError, as_floats

LABEL_GAINS = ("linear", "exponential")
MOST_GRADES = 31  # as LightGBM has it: 0 to 30


def are_grades(labels: Array) -> bool:
    """Whether checked labels are grades: more than two values, all of them whole numbers."""
    values = np.unique(labels)
    return values.size > 2 and bool((values == np.floor(values)).all())


def check_label_gain(label_gain: Any) -> str | tuple[float, ...]:
    """'linear', 'exponential', or a tuple of the gains of the grades 0, 1, .., which never fall."""
    if isinstance(label_gain, str):
        if label_gain in LABEL_GAINS:
            return label_gain
    else:
        gains = as_floats("label_gain", label_gain)
        if gains.ndim == 1 and gains.size > 1 and (np.diff(gains) >= 0.0).all():
            return tuple(gains.tolist())
    raise InputError(
        "label_gain must be 'linear', 'exponential' or the gains of the grades 0, 1, 2, .., none "
        f"smaller than the one before, got {label_gain!r}"
    )


def gains_of(grades: Any, label_gain: str | Sequence[float] = "linear") -> Array:
    """The gain of every grade: of those below 0 that of 0, as in trec_eval."""
    grades = check_grades(grades, len(grades), name="labels y")
    values = np.unique(grades)
    if (values != np.floor(values)).any():
        raise InputError(f"grades are whole numbers, but y holds {values[values % 1 != 0][0]:g}")
    if max(values[-1], values.size) >= MOST_GRADES:
        raise InputError(
            f"y holds values from {values[0]:g} to {values[-1]:g}: grades go from 0 to "
            f"{MOST_GRADES - 1}; give relevance_threshold, from which value on a row is relevant, "
            "or cut y into grades"
        )
    label_gain = check_label_gain(label_gain)
    if label_gain not in LABEL_GAINS and values[-1] >= len(label_gain):
        raise InputError(
            f"label_gain has {len(label_gain)} gains, for the grades 0 to {len(label_gain) - 1}, "
            f"but y holds {values[-1]:g}"
        )
    return gains_of_checked(grades, label_gain)


def gains_of_checked(grades: Array, label_gain: str | Sequence[float]) -> Array:
    """`gains_of` grades and gains that it has taken before: nothing is checked again."""
    place = np.maximum(grades, 0).astype(np.int64)
    if label_gain == "linear":
        return place.astype(np.float64)
    if label_gain == "exponential":
        return 2.0**place - 1.0
    return np.array(label_gain)[place]


def remark_of_grades(grades: Array, label_gain: Any) -> str:
    """What was made of graded labels, in a sentence."""
    how = "given" if np.ndim(label_gain) else label_gain
    return (
        f"Labels from {grades.min():g} to {grades.max():g} are grades ({how} gains): each list "
        "counts once for every grade, with what the grade adds; relevance_threshold makes them "
        "binary."
    )


@dataclass(frozen=True)
class SharedRows:
    """Lists that have rows in common: each has those of one of `lists`, in the same order.

    `source` is the index of that one, increasing; a risk needs each of `lists` at least once. The
    rows are multiplied in another `order`: of positions of `lists`, list after list, each as its
    rows lie in memory, which is several times as fast as by grade.
    """

    lists: Any  # `RankingData`, which holds this
    source: Array
    order: Array

    @property
    def most(self) -> int:
        """Lists that have the same rows, at most."""
        return int(np.bincount(self.source).max())

    def handed_out(self, values: Array) -> Array:
        """Values of the rows in their order, at the positions of all lists."""
        bounds = self.lists.indptr
        out = np.empty(np.diff(bounds)[self.source].sum(), dtype=values.dtype)
        _hand_out(values, self._place, bounds, self.source, out)
        return out

    def added_up(self, values: Array, weight: Array) -> Array:
        """Sums of the lists' values, times their weights, for the rows in their order."""
        out = np.zeros(self.order.size)
        _add_up(values, weight, self._place, self.lists.indptr, self.source, out)
        return out

    @cached_property
    def _place(self) -> Array:
        """Where each position of `lists` is in the order."""
        place = np.empty_like(self.order)
        place[self.order] = np.arange(place.size)
        return place


@kernel
def _hand_out(values, place, bounds, source, out):
    at = 0
    last = -1
    for u in source:
        size = bounds[u + 1] - bounds[u]
        if u == last:  # the rows of the list before
            out[at : at + size] = out[at - size : at]
        else:
            for i in range(size):
                out[at + i] = values[place[bounds[u] + i]]
        at += size
        last = u


@kernel
def _add_up(values, weight, place, bounds, source, out):
    at = 0
    each = 0
    while each < source.size:
        u = source[each]
        total = np.zeros(bounds[u + 1] - bounds[u])
        while each < source.size and source[each] == u:
            for i in range(total.size):
                total[i] += weight[each] * values[at + i]
            at += total.size
            each += 1
        for i in range(total.size):
            out[place[bounds[u] + i]] = total[i]
