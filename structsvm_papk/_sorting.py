"""Sorting and selecting whose time is bounded by ``n log n`` whatever order the values come in.

numba's quicksorts, in `sort`, `argsort` by default and `partition`, take time proportional to
``n^2`` where all but a few values stand in order already, such as a sorted list with new items
behind it. So compiled code sorts by these functions alone; equal values keep their order.
"""

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

SHORT = 32  # values for which plain insertion is the quickest; a power of two
_CELLS = 64
_ROUNDS = 8  # each of which narrows the range by the number of cells
_HEAP_PAYS = 100  # values for each one that is wanted, from which few enter the heap


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
    runs = values
    merged = spare
    width = SHORT
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            stop = min(start + 2 * width, n)
            i = start
            j = middle
            at = start
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


@kernel
def _kth_largest(values: Array, n: int, k: int) -> float:
    """The k-th largest of the first n values: the root of a min-heap of the k largest so far."""
    heap = np.empty(k)
    for i in range(k):
        hole = i
        while hole > 0 and heap[(hole - 1) >> 1] > values[i]:
            heap[hole] = heap[(hole - 1) >> 1]
            hole = (hole - 1) >> 1
        heap[hole] = values[i]
    for i in range(k, n):
        value = values[i]
        if value > heap[0]:
            hole = 0
            child = 1
            while child < k:
                if child + 1 < k and heap[child + 1] < heap[child]:
                    child += 1
                if heap[child] >= value:
                    break
                heap[hole] = heap[child]
                hole = child
                child = 2 * hole + 1
            heap[hole] = value
    return heap[0]


@kernel
def _border(values: Array, k: int) -> float:
    """The k-th largest value, by cells of the range: only the one that holds it is looked into.

    Where k is small beside the list a heap is as quick; it also takes over where the values are so
    uneven that cells hardly divide them, so that the time stays bounded by ``n log n``.
    """
    n = values.size
    if n <= SHORT or k * _HEAP_PAYS < n:
        return _kth_largest(values, n, k)
    rest = np.empty(n)
    counts = np.empty(_CELLS, dtype=np.int64)
    for i in range(n):
        rest[i] = values[i]
    for _ in range(_ROUNDS):
        lowest = rest[0]
        highest = rest[0]
        total = 0.0
        for i in range(n):
            lowest = min(lowest, rest[i])
            highest = max(highest, rest[i])
            total += rest[i]
        per_cell = (_CELLS - 1) / (highest - lowest) if highest > lowest else 0.0
        if not (0.0 < per_cell < np.inf and abs(total) < np.inf):
            break  # equal values, a range that over- or underflows, or what has no cell
        for cell in range(_CELLS):
            counts[cell] = 0
        for i in range(n):
            counts[int((rest[i] - lowest) * per_cell)] += 1
        cell = _CELLS - 1
        while counts[cell] < k:
            k -= counts[cell]
            cell -= 1
        kept = 0
        for i in range(n):  # without a branch, which the processor would often guess wrong
            value = rest[i]
            rest[kept] = value
            kept += int((value - lowest) * per_cell) == cell
        n = kept
        if n <= SHORT or k * _HEAP_PAYS < n:
            break
    return _kth_largest(rest, n, k)


@kernel
def top_k(values: Array, k: int) -> Array:
    """Return the indices of the k largest values, increasing; ties at the border by position."""
    chosen = np.zeros(k, dtype=np.int64)
    if k == values.size:
        for i in range(k):
            chosen[i] = i
        return chosen
    border = _border(values, k)
    ties = k
    for i in range(values.size):
        ties -= values[i] > border
    n = 0
    for i in range(values.size):
        if n == k:
            break
        tie = (values[i] == border) & (ties > 0)
        ties -= tie
        chosen[n] = i
        n += (values[i] > border) | tie
    return chosen
