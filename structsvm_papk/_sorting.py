"""Sorting whose time is bounded by ``n log n`` whatever order the values come in.

numba's own `sort`, `argsort` and `partition` take time proportional to ``n^2`` where all but a few
values stand in order already, such as a sorted list with new items behind it. So compiled code
sorts by these functions alone; equal values keep their order.
"""

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

SHORT = 32  # values for which plain insertion is the quickest


@kernel
def increasing_order(values: Array) -> Array:
    """Return the indices that sort the values: insertion for runs of `SHORT`, then merges."""
    n = values.size
    order, keys = np.arange(n), values.copy()
    for start in range(0, n, SHORT):
        for i in range(start + 1, min(start + SHORT, n)):
            key, hole = keys[i], i
            while hole > start and keys[hole - 1] > key:
                keys[hole], order[hole] = keys[hole - 1], order[hole - 1]
                hole -= 1
            keys[hole], order[hole] = key, i
    if n <= SHORT:
        return order
    spare, spare_keys = np.empty_like(order), np.empty_like(keys)
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j, at = start, middle, start
            if middle < stop and keys[middle - 1] <= keys[middle]:
                j = stop  # in order already
            while i < middle and j < stop:
                if keys[i] <= keys[j]:
                    spare_keys[at], spare[at] = keys[i], order[i]
                    i += 1
                else:
                    spare_keys[at], spare[at] = keys[j], order[j]
                    j += 1
                at += 1
            i = i if i < middle else j  # the rest stands in order
            for rest in range(stop - at):
                spare_keys[at + rest], spare[at + rest] = keys[i + rest], order[i + rest]
        order, spare, keys, spare_keys = spare, order, spare_keys, keys
        width *= 2
    return order


@kernel
def increasing(values: Array) -> Array:
    """Return the values sorted, smallest first: insertion for runs of `SHORT`, then merges."""
    n = values.size
    values = values.copy()
    for start in range(0, n, SHORT):
        for i in range(start + 1, min(start + SHORT, n)):
            value, hole = values[i], i
            while hole > start and values[hole - 1] > value:
                values[hole] = values[hole - 1]
                hole -= 1
            values[hole] = value
    if n <= SHORT:
        return values
    spare = np.empty_like(values)
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j, at = start, middle, start
            if middle < stop and values[middle - 1] <= values[middle]:
                j = stop  # in order already
            while i < middle and j < stop:
                if values[i] <= values[j]:
                    spare[at] = values[i]
                    i += 1
                else:
                    spare[at] = values[j]
                    j += 1
                at += 1
            i = i if i < middle else j  # the rest stands in order
            for rest in range(stop - at):
                spare[at + rest] = values[i + rest]
        values, spare = spare, values
        width *= 2
    return values
