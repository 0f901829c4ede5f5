"""Score-space kernels of the convex majorants of Ramp and ClippedRamp.

Arrays "at the list positions" hold one entry for every row, users one after the other and each
user's positives first. What a majorant froze at the point w_t is stored in such arrays.
"""

import numpy as np
from numba import njit

from structsvm_papk._kernels import add_counts, counted_negatives, hinge_sweep, top_k


@njit(cache=True, nogil=True)
def freeze(scores, indptr, n_pos, k, depth, chosen, order, rank, n_free):
    """Write what is frozen at these scores.

    ``chosen`` marks the beta best positives and the m best negatives of each user. ``order`` lists
    each user's positives by decreasing score (offsets within the user); ``rank`` is its inverse,
    at most k. ``n_free`` counts for each negative the chosen positives that score at least as much:
    its pairs that are not clipped, the first ones in `order`.
    """
    chosen[:] = False
    for u in range(n_pos.size):
        start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
        ranked = np.argsort(-scores[start:middle], kind="mergesort")
        order[start:middle] = ranked
        for r in range(ranked.size):
            rank[start + ranked[r]] = min(r, k)
        best = ranked[:k]
        chosen[start + best] = True
        m = counted_negatives(depth, k, stop - middle)
        chosen[middle + top_k(scores[middle:stop], m)] = True
        for j in range(middle, stop):
            free = 0
            while free < best.size and scores[start + best[free]] >= scores[j]:
                free += 1
            n_free[j] = free


@njit(cache=True, nogil=True)
def hinge_slopes(scores, indptr, n_pos, k, chosen, margin, rest, linear, constants, sign):
    """Add ``sign`` times a linear minorant of a sum of hinges, tight at these scores.

    The sum is ``sum_i sum_{j<=m} (margin - p_i + q_(j))_+ / (beta m)`` over the positives that are
    not chosen (`rest`) or over the chosen ones. A pair at the kink counts as inactive.
    """
    for u in range(n_pos.size):
        start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
        best = middle + np.flatnonzero(chosen[middle:stop])
        scale = sign / (best.size * min(n_pos[u], k))
        for i in range(start, middle):
            if chosen[i] == rest:
                continue
            for j in best:
                if margin - scores[i] + scores[j] > 0.0:
                    linear[i] -= scale
                    linear[j] += scale
                    constants[u] += scale * margin


@njit(cache=True, nogil=True)
def frozen_hinges(
    scores,
    indptr,
    n_pos,
    k,
    depth,
    rows,
    rest_at_zero,
    linear,
    constants,
    first,
    last,
    values,
    coef,
):
    """Hinges of the positives marked in `rows` against the top-m negatives, plus linear terms.

    ``1/(beta m) sum_{i in rows} sum_{j<=m} (1 - p_i + q_(j))_+ + linear . scores + constant``, and
    with `rest_at_zero` also ``1/(beta m) sum_{i>beta} sum_{j<=m} (q_(j) - p_(i))_+`` over the
    positives in their current order.
    """
    for u in range(first, last):
        start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
        m = counted_negatives(depth, k, stop - middle)
        best = top_k(scores[middle:stop], m)
        negatives = scores[middle:stop][best]
        columns = np.empty(m, dtype=np.int64)
        beta = min(n_pos[u], k)
        scale = 1.0 / (beta * m)
        ranked = np.argsort(-scores[start:middle])
        kept = ranked[rows[start:middle][ranked]]
        counts = np.empty(kept.size, dtype=np.int64)
        coef[start:stop] = linear[start:stop]
        values[u] = constants[u] + np.sum(linear[start:stop] * scores[start:stop])
        values[u] += scale * hinge_sweep(
            scores[start:middle][kept] - 1.0, negatives, counts, columns
        )
        add_counts(coef, start, kept, counts, -scale)
        add_counts(coef, middle, best, columns, scale)
        if rest_at_zero:
            low = ranked[beta:]
            counts = np.empty(low.size, dtype=np.int64)
            values[u] += scale * hinge_sweep(scores[start:middle][low], negatives, counts, columns)
            add_counts(coef, start, low, counts, -scale)
            add_counts(coef, middle, best, columns, scale)


@njit(cache=True, nogil=True)
def frozen_pairs(scores, indptr, n_pos, k, depth, order, n_free, first, last, values, coef):
    """Pairs clipped at w_t count 1 for good, the others by their hinge; the worst m negatives.

    ``1/(beta m) max_J sum_{j in J} [beta - f_j + sum_{i<=f_j} (1 - p_i + q_j)_+]`` over m-subsets J
    of the negatives, with p_1, p_2, .. the positives in the frozen order and ``f_j = n_free[j]``.
    """
    for u in range(first, last):
        start, middle, stop = indptr[u], indptr[u] + n_pos[u], indptr[u + 1]
        beta = min(n_pos[u], k)
        best = start + order[start : start + beta]
        m = counted_negatives(depth, k, stop - middle)
        scale = 1.0 / (beta * m)
        losses = np.empty(stop - middle)
        for j in range(middle, stop):
            total = float(beta - n_free[j])
            for i in best[: n_free[j]]:
                total += max(0.0, 1.0 - scores[i] + scores[j])
            losses[j - middle] = total
        coef[start:stop] = 0.0
        total = 0.0
        for j in middle + top_k(losses, m):
            total += losses[j - middle]
            for i in best[: n_free[j]]:
                if 1.0 - scores[i] + scores[j] > 0.0:
                    coef[i] -= scale
                    coef[j] += scale
        values[u] = scale * total
