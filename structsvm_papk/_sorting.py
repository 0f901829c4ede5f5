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
    """Return the indices that sort the values."""
    n = values.size
    order = np.arange(n)
    for start in range(0, n, SHORT):
        for i in range(start + 1, min(start + SHORT, n)):
            index = order[i]
            hole = i
            while hole > start and values[order[hole - 1]] > values[index]:
                order[hole] = order[hole - 1]
                hole -= 1
            order[hole] = index
    if n <= SHORT:
        return order
    spare = np.empty_like(order)
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            sorted_already = middle == stop or values[order[middle - 1]] <= values[order[middle]]
            for at in range(start, stop):
                if sorted_already:
                    spare[at] = order[at]
                elif j == stop or (i < middle and values[order[i]] <= values[order[j]]):
                    spare[at] = order[i]
                    i += 1
                else:
                    spare[at] = order[j]
                    j += 1
        order, spare = spare, order
        width *= 2
    return order


@njit(cache=True, nogil=True)
def insertion_sort(values: Array, start: int, stop: int) -> None:
    """Sort a few values in place, smallest first."""
    for i in range(start + 1, stop):
        value = values[i]
        hole = i
        while hole > start and values[hole - 1] > value:
            values[hole] = values[hole - 1]
            hole -= 1
        values[hole] = value


@njit(cache=True, nogil=True)
def increasing(values: Array) -> Array:
    """Return the values sorted, smallest first: insertion for runs of `SHORT`, then merges."""
    n = values.size
    values = values.copy()
    for start in range(0, n, SHORT):
        insertion_sort(values, start, min(start + SHORT, n))
    if n <= SHORT:
        return values
    spare = np.empty_like(values)
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j = start, middle
            sorted_already = middle == stop or values[middle - 1] <= values[middle]
            for at in range(start, stop):
                if sorted_already:
                    spare[at] = values[at]
                elif j == stop or (i < middle and values[i] <= values[j]):
                    spare[at] = values[i]
                    i += 1
                else:
                    spare[at] = values[j]
                    j += 1
        values, spare = spare, values
        width *= 2
    return values
