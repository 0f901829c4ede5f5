"""Sorting whose time is bounded by ``n log n`` whatever order the values come in.

numba's quicksorts, in `sort`, `argsort` by default and `partition`, take time proportional to
``n^2`` where all but a few values stand in order already, such as a sorted list with new items
behind it. So compiled code sorts by these functions alone; equal values keep their order.
"""

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

SHORT = 32  # values for which plain insertion is the quickest; a power of two


@kernel
def increasing_order(values: Array) -> Array:
    """Return the indices that sort the values."""
    return np.argsort(values, kind="mergesort")


@kernel
def sort(values: Array, spare: Array) -> None:
    """Sort in place, smallest first: insertion for runs of `SHORT`, then merges into `spare`.

    `spare` is room for as many values.
    """
    n = values.size
    for i in range(1, n):
        value = values[i]
        hole = i
        start = i & -SHORT  # where its run begins; "hole > 0" spares tests for negative indices
        while hole > 0 and hole > start and values[hole - 1] > value:
            values[hole] = values[hole - 1]
            hole -= 1
        values[hole] = value
    if n <= SHORT:
        return
    runs, merged, width = values, spare, SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            i, j, at = start, middle, start
            if middle < stop and runs[middle - 1] <= runs[middle]:
                j = stop  # in order already
            while i < middle and j < stop:
                if runs[i] <= runs[j]:
                    merged[at] = runs[i]
                    i += 1
                else:
                    merged[at] = runs[j]
                    j += 1
                at += 1
            i = i if i < middle else j  # the rest stands in order
            for rest in range(stop - at):
                merged[at + rest] = runs[i + rest]
        runs, merged = merged, runs
        width *= 2
    for i in range(n):
        values[i] = runs[i]
