"""Score-space kernels: values and subgradients of the surrogates, one user's list at a time.

Every surrogate is a sum of hinges ``(q_j - t_i)_+`` over a user's m largest negatives q and a few
thresholds t made from the positives. So each kernel selects the top negatives, makes its
thresholds, and calls one sweep, which needs O(m log n) for n thresholds and never forms the pairs.

``m = counted_negatives(depth, k, n_neg)`` is the training depth, k the number of items shown, which
decides how many positives count: ``beta = min(n_pos, k)``.
"""

import math
from typing import NamedTuple

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import SHORT, increasing_order, top_k
from structsvm_papk._types import Array

BEST, WORST, EVERY = range(3)  # which of the sorted positives a surrogate adds, see `HingePairs`
NO_CHOICE = np.empty(0, dtype=np.bool_)  # among the positives
_FEW = 128  # thresholds that are compared with every negative rather than searched


@kernel
def _cell(value: float, lowest: float, per_cell: float, n_cells: int) -> int:
    cell = (value - lowest) * per_cell
    return int(cell) if cell < n_cells - 1 else n_cells - 1  # also where the range overflows


@kernel
def cell_starts(thresholds: Array) -> tuple[Array, float]:
    """Cut the range of the decreasing thresholds into equal cells, for `first_at_most`.

    Cell c holds the thresholds ``starts[c] <= i < starts[c - 1]``. Searching one cell replaces a
    bisection of them all, which would cost more than everything else for long lists.
    """
    m = thresholds.size
    lowest = thresholds[m - 1]
    n_cells = 2 * m if m > SHORT else 1
    per_cell = n_cells / (thresholds[0] - lowest) if thresholds[0] > lowest else 0.0
    starts = np.zeros(n_cells, dtype=np.int64)
    c = n_cells - 1
    for i in range(m):
        cell = _cell(thresholds[i], lowest, per_cell, n_cells)
        while c > cell:
            c -= 1
            starts[c] = i
    return starts, per_cell


@kernel
def first_at_most(q: float, thresholds: Array, starts: Array, per_cell: float) -> int:
    """Return the first index i with ``thresholds[i] <= q``, or their number."""
    m = thresholds.size
    if q < thresholds[m - 1]:
        return m
    if q >= thresholds[0]:
        return 0
    c = _cell(q, thresholds[m - 1], per_cell, starts.size)
    first = starts[c]
    last = starts[c - 1] if c > 0 else m - 1
    while first < last:
        middle = (first + last) >> 1
        if thresholds[middle] <= q:
            last = middle
        else:
            first = middle + 1
    return first


@kernel
def _count_pairs(
    thresholds: Array, negatives: Array, row_counts: Array, column_counts: Array
) -> None:
    """Count the pairs with ``thresholds[i] <= negatives[j]`` one by one, without branches."""
    for j in range(negatives.size):
        column_counts[j] = 0
    for i in range(thresholds.size):
        threshold = thresholds[i]
        count = 0
        for j in range(negatives.size):
            active = threshold <= negatives[j]
            column_counts[j] += active
            count += active
        row_counts[i] = count


@kernel
def _sums_from(thresholds: Array) -> Array:
    """Sums of the thresholds from each one on."""
    sums = np.zeros(thresholds.size + 1)
    for i in range(thresholds.size - 1, -1, -1):
        sums[i] = sums[i + 1] + thresholds[i]
    return sums


@kernel
def hinge_sweep(
    thresholds: Array, negatives: Array, row_counts: Array, column_counts: Array
) -> float:
    """Return ``sum_i sum_j (negatives[j] - thresholds[i])_+``; count the active pairs.

    `thresholds` must not increase. ``row_counts[i]`` and ``column_counts[j]`` are overwritten with
    the number of pairs of row i and column j with ``thresholds[i] <= negatives[j]``.
    """
    m = thresholds.size
    tail = _sums_from(thresholds)
    if m <= _FEW:
        total = 0.0
        _count_pairs(thresholds, negatives, row_counts, column_counts)
        for j in range(negatives.size):
            total += column_counts[j] * negatives[j] - tail[m - column_counts[j]]
        return total
    starts, per_cell = cell_starts(thresholds)
    return _searched_sweep(thresholds, tail, starts, per_cell, negatives, row_counts, column_counts)


@kernel
def _searched_sweep(
    thresholds: Array,
    tail: Array,
    starts: Array,
    per_cell: float,
    negatives: Array,
    row_counts: Array,
    column_counts: Array,
) -> float:
    """`hinge_sweep`, with a search among the thresholds for each negative."""
    m = thresholds.size
    total = 0.0
    row_counts[:] = 0
    column_counts[:] = 0
    for j in range(negatives.size):
        first = first_at_most(negatives[j], thresholds, starts, per_cell)
        if first < m:
            column_counts[j] = m - first
            row_counts[first] += 1
            total += (m - first) * negatives[j] - tail[first]
    for i in range(1, m):
        row_counts[i] += row_counts[i - 1]
    return total


@kernel
def sweep_blocks(
    thresholds: Array,
    negatives: Array,
    bounds: Array,
    sums: Array,
    row_counts: Array,
    column_counts: Array,
) -> None:
    """`hinge_sweep` of the negatives between each two of the bounds, all with the same thresholds.

    The sum of block b goes to ``sums[b]``, and its counts of the thresholds to ``row_counts[b]``.
    """
    tail = _sums_from(thresholds)
    starts, per_cell = cell_starts(thresholds)
    for b in range(sums.size):
        block = slice(bounds[b], bounds[b + 1])
        sums[b] = _searched_sweep(
            thresholds,
            tail,
            starts,
            per_cell,
            negatives[block],
            row_counts[b],
            column_counts[block],
        )


@kernel
def _clip_pairs(
    positives: Array, negatives: Array, row_counts: Array, column_counts: Array
) -> float:
    """`clipped_sweep`, pair by pair and without branches."""
    sums = np.zeros(negatives.size)
    for j in range(negatives.size):
        column_counts[j] = 0
    for i in range(positives.size):
        positive = positives[i]
        threshold = positives[i] - 1.0
        count = 0
        for j in range(negatives.size):
            sloped = (threshold <= negatives[j]) & (negatives[j] < positive)
            loss = 1.0 - (positive - negatives[j])
            loss = loss if loss > 0.0 else 0.0
            sums[j] += loss if loss < 1.0 else 1.0
            column_counts[j] += sloped
            count += sloped
        row_counts[i] = count
    return sums.sum()


@kernel
def clipped_sweep(
    positives: Array, negatives: Array, row_counts: Array, column_counts: Array
) -> float:
    """Return ``sum_i sum_j min(1, (1 - positives[i] + negatives[j])_+)``; count the sloped pairs.

    `positives` must not increase. Sums over ranges of them are made of the parts that follow the
    same whole number: whatever the scores are, no large number enters that a pair does not hold.
    """
    m = positives.size
    if m <= _FEW:
        return _clip_pairs(positives, negatives, row_counts, column_counts)
    # inside[i]: how far the positives from i to the end of its part are above their whole number
    thresholds = positives - 1.0
    inside = np.zeros(m + 1)
    ends = np.empty(m, dtype=np.int64)
    for i in range(m - 1, -1, -1):
        whole = np.floor(positives[i])
        alone = i == m - 1 or np.floor(positives[i + 1]) != whole
        ends[i] = i + 1 if alone else ends[i + 1]
        inside[i] = positives[i] - whole + (0.0 if alone else inside[i + 1])
    starts, per_cell = cell_starts(thresholds)
    clip_starts, clip_per_cell = cell_starts(positives)
    row_counts[:] = 0
    total = 0.0
    for j in range(negatives.size):
        # a pair costs nothing before `first`, 1 from `clipped` on, and 1 - p + q between
        q = negatives[j]
        first = first_at_most(q, thresholds, starts, per_cell)
        clipped = first_at_most(q, positives, clip_starts, clip_per_cell)
        total += m - clipped
        column_counts[j] = clipped - first
        if first == clipped:
            continue
        row_counts[first] += 1  # of the range as its two ends: they are added up at the end
        if clipped < m:
            row_counts[clipped] -= 1
        while first < clipped:
            end = min(ends[first], clipped)
            part = inside[first] - (inside[end] if end < ends[first] else 0.0)
            total += (end - first) * (1.0 - (np.floor(positives[first]) - q)) - part
            first = end
    for i in range(1, m):
        row_counts[i] += row_counts[i - 1]
    return total


@kernel
def counted_negatives(depth: float, k: int, n_neg: int) -> int:
    """Return how many of a user's negatives count: ``depth`` from 1 on, a share of them below.

    Never more than there are, and for a share never fewer than k where there are as many.
    """
    if depth >= 1.0:
        return n_neg if depth >= n_neg else int(depth)
    share = math.ceil(depth * n_neg * (1.0 - 1e-12))  # 0.1 * 30 is above 3 in floating point
    return max(share, min(k, n_neg))


class HingePairs(NamedTuple):
    """Which pairs a surrogate adds up: ``sum_i sum_j (1 - p_(i) + q_(j))_+``, and what divides it.

    Attributes
    ----------
    positives : BEST, WORST or EVERY
        Those that are added: the beta with the largest or the smallest scores, or all.
    others : bool
        Whether the positives behind the best beta add ``sum_i sum_j (q_(j) - p_(i))_+``, too.
    pooled : bool
        Whether the thresholds ``p_(i) - 1`` are replaced by those of TS, see `pool_thresholds`.
    mean_over_all : bool
        Whether the sum is divided by m times the number of positives, not by m times beta.
    """

    positives: int
    others: bool = False
    pooled: bool = False
    mean_over_all: bool = False

    @property
    def of_beta(self) -> bool:
        """Whether beta of a user's positives are added, the others not at all."""
        return self.positives != EVERY and not self.others


class HingeSum(NamedTuple):
    """What `hinges` computes: which pairs are added, for k items shown and a training depth."""

    k: int
    depth: float
    pairs: HingePairs


@kernel
def ranked(positives: Array, chosen: Array) -> Array:
    """Return the chosen ones, or all where nothing is chosen, by decreasing score."""
    order = increasing_order(-positives)
    if chosen.size == 0:
        return order
    n = 0
    for i in order:
        if chosen[i]:
            order[n] = i
            n += 1
    return order[:n]


@kernel
def taken_less(values: Array, offset: int, where: Array, less: float) -> Array:
    """Return the entries ``offset + where`` of the values, each reduced by `less`."""
    out = np.empty(where.size)
    for i in range(where.size):
        out[i] = values[offset + where[i]] - less
    return out


@kernel
def hinges(
    added: HingeSum,
    chosen: Array,
    scores: Array,
    indptr: Array,
    n_pos: Array,
    values: Array,
    coef: Array,
) -> None:
    """Surrogates that add hinges of sorted positives, or of the `chosen` ones; see `HingeSum`."""
    pairs = added.pairs
    for u in range(n_pos.size):
        start = indptr[u]
        middle = indptr[u] + n_pos[u]
        m = counted_negatives(added.depth, added.k, indptr[u + 1] - middle)
        top = top_k(scores[middle : indptr[u + 1]], m)
        negatives = taken_less(scores, middle, top, 0.0)
        beta = min(n_pos[u], added.k)
        scale = 1.0 / (m * (n_pos[u] if pairs.mean_over_all else beta))
        order = ranked(scores[start:middle], chosen[start:middle])
        low = order.size - beta if pairs.positives == WORST else 0
        high = beta if pairs.positives == BEST else order.size
        thresholds = taken_less(scores, start, order[low:high], 1.0)
        if pairs.pooled:
            pool_thresholds(thresholds, scores, start, order, beta)
        coef[start : indptr[u + 1]] = 0.0
        columns = np.empty(m, dtype=np.int64)
        rows = np.empty(thresholds.size, dtype=np.int64)
        values[u] = scale * hinge_sweep(thresholds, negatives, rows, columns)
        add_counts(coef, start, order[low:high], rows, -scale)
        add_counts(coef, middle, top, columns, scale)
        if pairs.others:
            thresholds = taken_less(scores, start, order[beta:], 0.0)
            rows = np.empty(thresholds.size, dtype=np.int64)
            values[u] += scale * hinge_sweep(thresholds, negatives, rows, columns)
            add_counts(coef, start, order[beta:], rows, -scale)
            add_counts(coef, middle, top, columns, scale)


@kernel
def clipped_pairs(
    k: int, depth: float, scores: Array, indptr: Array, n_pos: Array, values: Array, coef: Array
) -> None:
    """ClippedRamp: hinges of the beta best positives, of which none costs more than 1.

    A kernel of its own: whoever fits ClippedRamp first would else wait for `hinges`, too.
    """
    for u in range(n_pos.size):
        start = indptr[u]
        middle = indptr[u] + n_pos[u]
        m = counted_negatives(depth, k, indptr[u + 1] - middle)
        top = top_k(scores[middle : indptr[u + 1]], m)
        negatives = taken_less(scores, middle, top, 0.0)
        beta = min(n_pos[u], k)
        scale = 1.0 / (m * beta)
        best = increasing_order(-scores[start:middle])[:beta]
        positives = taken_less(scores, start, best, 0.0)
        coef[start : indptr[u + 1]] = 0.0
        rows = np.empty(beta, dtype=np.int64)
        columns = np.empty(m, dtype=np.int64)
        values[u] = scale * clipped_sweep(positives, negatives, rows, columns)
        add_counts(coef, start, best, rows, -scale)
        add_counts(coef, middle, top, columns, scale)


@kernel
def add_counts(coef: Array, offset: int, where: Array, counts: Array, scale: float) -> None:
    """Add ``scale * counts`` to the entries ``offset + where`` of coef."""
    for i in range(where.size):
        coef[offset + where[i]] += scale * counts[i]


@kernel
def average(
    k: int, depth: float, scores: Array, indptr: Array, n_pos: Array, values: Array, coef: Array
) -> None:
    """Avg, equation (10): hinges of the top-m negatives against the mean positive."""
    for u in range(n_pos.size):
        middle = indptr[u] + n_pos[u]
        positives = scores[indptr[u] : middle]
        total = 0.0
        for i in range(positives.size):
            total += positives[i]
        threshold = total / n_pos[u] - 1.0
        m = counted_negatives(depth, k, indptr[u + 1] - middle)
        total = 0.0
        active = 0
        for j in range(middle, indptr[u + 1]):  # as a rule all that cost anything count
            excess = scores[j] - threshold
            costs = excess > 0.0
            active += costs
            total += excess / m if costs else 0.0
            coef[j] = 1.0 / m if costs else 0.0
        if active > m:
            total = 0.0
            active = m
            coef[middle : indptr[u + 1]] = 0.0
            for j in top_k(scores[middle : indptr[u + 1]], m):
                total += (scores[middle + j] - threshold) / m
                coef[middle + j] = 1.0 / m
        values[u] = total
        coef[indptr[u] : middle] = -active / (m * n_pos[u])


@kernel
def pool_thresholds(t: Array, scores: Array, start: int, order: Array, beta: int) -> None:
    """Thresholds of TS, in place: the antitonic regression of ``p_(i) - 1[i < beta]``.

    `t` holds ``p_(i) - 1``, the positives are the rows ``start + order``. What is regressed
    decreases but for one step up after position beta: pool adjacent violators, of which only the
    block that spans the step can pool.
    """
    for i in range(beta, t.size):
        t[i] = scores[start + order[i]]
    if beta >= t.size or t[beta - 1] >= t[beta]:
        return
    lo = beta - 1
    hi = beta + 1
    total = t[beta - 1] + t[beta]
    while True:
        mean = total / (hi - lo)
        if lo > 0 and t[lo - 1] < mean:
            lo -= 1
            total += t[lo]
        elif hi < t.size and t[hi] > mean:
            total += t[hi]
            hi += 1
        else:
            break
    t[lo:hi] = mean


@kernel
def tangent_intercepts(
    scores: Array, coef: Array, bounds: Array, values: Array
) -> tuple[Array, Array, Array]:
    """``values - coef . scores`` of each list, and what bounds the rounding in it.

    That is the sum of the absolute terms, margins of 1 included, and the one of the coefficients.
    """
    intercepts = np.empty_like(values)
    sizes = np.empty_like(values)
    steep = np.empty_like(values)
    for u in range(values.size):
        product = 0.0
        size = 0.0
        slope = 0.0
        for p in range(bounds[u], bounds[u + 1]):
            product += coef[p] * scores[p]
            size += abs(coef[p] * scores[p])
            slope += abs(coef[p])
        intercepts[u] = values[u] - product
        sizes[u] = abs(values[u]) + size + slope
        steep[u] = slope
    return intercepts, sizes, steep
