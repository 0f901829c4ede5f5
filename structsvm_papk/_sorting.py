"""Sorting whose time is bounded by ``n log n`` whatever order the values come in.

numba's own `sort`, `argsort` and `partition` take time proportional to ``n^2`` where all but a few
values stand in order already, such as a sorted list with new items behind it. So compiled code
sorts by these functions alone; equal values keep their order.
"""

import numpy as np
from numba import njit

from structsvm_papk._types import Array

SHORT = 32  # values for which plain insertion is the quickest


@njit(cache=True, nogil=True)
def increasing_order(values: Array) -> Array:
    """Return the indices that sort the values; numba's argsort takes long to set up."""
    if values.size > SHORT:
        return np.argsort(values, kind="mergesort")
    order = np.arange(values.size)
    for i in range(1, values.size):
        hole = i
        while hole > 0 and values[order[hole - 1]] > values[i]:
            order[hole] = order[hole - 1]
            hole -= 1
        order[hole] = i
    return order


@njit(cache=True, nogil=True)
def insertion_sort(values: Array) -> None:
    """Sort a few values in place, smallest first."""
    for i in range(1, values.size):
        value = values[i]
        hole = i
        while hole > 0 and values[hole - 1] > value:
            values[hole] = values[hole - 1]
            hole -= 1
        values[hole] = value


@njit(cache=True, nogil=True)
def merge(left: Array, right: Array, out: Array) -> None:
    """Write two increasing arrays into one."""
    if left[-1] <= right[0]:
        out[: left.size] = left
        out[left.size :] = right
        return
    i = j = 0
    for at in range(out.size):
        if j == right.size or (i < left.size and left[i] <= right[j]):
            out[at] = left[i]
            i += 1
        else:
            out[at] = right[j]
            j += 1


@njit(cache=True, nogil=True)
def increasing(values: Array) -> Array:
    """Return the values sorted, smallest first: insertion for runs of `SHORT`, then merges."""
    n = values.size
    values = values.copy()
    for start in range(0, n, SHORT):
        insertion_sort(values[start : start + SHORT])
    if n <= SHORT:
        return values
    spare = np.empty_like(values)
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            if middle == stop:
                spare[start:stop] = values[start:stop]
            else:
                merge(values[start:middle], values[middle:stop], spare[start:stop])
        values, spare = spare, values
        width *= 2
    return values
