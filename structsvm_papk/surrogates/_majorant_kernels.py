"""Score-space kernels of the convex majorants of Ramp and ClippedRamp; notation as in `_kernels`.

What they froze at a point is stored with one entry for every row, each user's positives first.
"""

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import SHORT, increasing_order, top_k
from structsvm_papk._types import Array
from structsvm_papk.surrogates._kernels import add_counts, counted_negatives, taken_less

ORDER, RANK, N_FREE = range(3)  # rows of what is frozen, see `losses.frozen_at`


@kernel
def freeze(scores: Array, indptr: Array, n_pos: Array, k: int, frozen: Array) -> None:
    """Write what is frozen at these scores, see `structsvm_papk.surrogates.losses.frozen_at`.

    The pairs of a negative that are not clipped are the first ones in `order`.
    """
    order = frozen[ORDER]
    rank = frozen[RANK]
    n_free = frozen[N_FREE]
    for u in range(n_pos.size):
        start = indptr[u]
        middle = indptr[u] + n_pos[u]
        stop = indptr[u + 1]
        best = increasing_order(-scores[start:middle])
        for r in range(best.size):  # an assignment of slices compiles for seconds
            order[start + r] = best[r]
            rank[start + best[r]] = min(r, k)
        for j in range(middle, stop):
            rank[j] = k
            low = 0
            high = min(best.size, k)
            while low < high:  # the first of the best positives that scores less
                half = (low + high) >> 1
                if scores[start + best[half]] >= scores[j]:
                    low = half + 1
                else:
                    high = half
            n_free[j] = low


@kernel
def frozen_pairs(
    k: int,
    depth: float,
    frozen: Array,
    scores: Array,
    indptr: Array,
    n_pos: Array,
    values: Array,
    coef: Array,
) -> None:
    """Values and subgradients of `structsvm_papk.surrogates.losses.FrozenPairs`.

    ``1/(beta m) max_J sum_{j in J} [beta - f_j + sum_{i<=f_j} (1 - p_i + q_j)_+]`` over m-subsets J
    of the negatives, with p_1, p_2, .. the positives in the frozen order and ``f_j = n_free[j]``.
    Both are rows of `frozen`.
    """
    order = frozen[ORDER]
    n_free = frozen[N_FREE]
    for u in range(n_pos.size):
        start = indptr[u]
        middle = indptr[u] + n_pos[u]
        stop = indptr[u + 1]
        beta = min(n_pos[u], k)
        best = order[start : start + beta]
        m = counted_negatives(depth, k, stop - middle)
        scale = 1.0 / (beta * m)
        thresholds = taken_less(scores, start, best, 1.0)
        counts, losses = hinges_of_prefix(thresholds, scores[middle:stop], n_free[middle:stop])
        for j in range(losses.size):
            losses[j] += beta - n_free[middle + j]
        worst = top_k(losses, m)
        negatives = taken_less(scores, middle, worst, 0.0)
        prefix = np.empty(m, dtype=np.int64)
        total = 0.0
        coef[start:stop] = 0.0
        for j in range(m):
            prefix[j] = n_free[middle + worst[j]]
            total += losses[worst[j]]
            coef[middle + worst[j]] = scale * counts[worst[j]]
        values[u] = scale * total
        add_counts(coef, start, best, active_of_prefix(thresholds, negatives, prefix), -scale)


@kernel
def hinges_of_prefix(thresholds: Array, values: Array, prefix: Array) -> tuple[Array, Array]:
    """``sum_{i < prefix[j]} (values[j] - thresholds[i])_+`` and the number of its positive terms.

    Thresholds enter a Fenwick tree in increasing order, values are asked in increasing order: the
    time is ``n log n``. Few thresholds are simply looked at.
    """
    counts = np.zeros(values.size, dtype=np.int64)
    hinges = np.zeros(values.size)
    if thresholds.size <= SHORT:
        for j in range(values.size):
            for i in range(prefix[j]):
                if thresholds[i] < values[j]:
                    counts[j] += 1
                    hinges[j] += values[j] - thresholds[i]
        return counts, hinges
    # a node of a tree stands for the places from node - (node & -node) to node - 1: what enters at
    # a place is added to the entries that hold it, a prefix is the sum of those that make it up
    tree_counts = np.zeros(thresholds.size + 1, dtype=np.int64)
    tree_sums = np.zeros(thresholds.size + 1)
    entering = increasing_order(thresholds)
    n = 0
    for j in increasing_order(values):
        while n < entering.size and thresholds[entering[n]] < values[j]:
            node = entering[n] + 1
            while node < tree_counts.size:
                tree_counts[node] += 1
                tree_sums[node] += thresholds[entering[n]]
                node += node & -node
            n += 1
        node = prefix[j]
        total = 0.0
        while node > 0:
            counts[j] += tree_counts[node]
            total += tree_sums[node]
            node -= node & -node
        hinges[j] = counts[j] * values[j] - total
    return counts, hinges


@kernel
def active_of_prefix(thresholds: Array, values: Array, prefix: Array) -> Array:
    """For each threshold i the number of ``values[j] > thresholds[i]`` with ``prefix[j] > i``."""
    counts = np.zeros(thresholds.size, dtype=np.int64)
    if thresholds.size <= SHORT:
        for j in range(values.size):
            for i in range(prefix[j]):
                counts[i] += thresholds[i] < values[j]
        return counts
    # the tree of `hinges_of_prefix` the other way round: a value enters all of its prefix, and a
    # place asks the entries that hold it
    tree = np.zeros(thresholds.size + 1, dtype=np.int64)
    entering = increasing_order(-values)
    n = 0
    for i in increasing_order(-thresholds):
        while n < entering.size and values[entering[n]] > thresholds[i]:
            node = prefix[entering[n]]
            while node > 0:
                tree[node] += 1
                node -= node & -node
            n += 1
        node = i + 1
        while node < tree.size:
            counts[i] += tree[node]
            node += node & -node
    return counts
