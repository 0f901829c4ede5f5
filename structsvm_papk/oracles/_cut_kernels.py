"""Kernels of the dual ascent for losses whose polytope has too many corners: cuts stand for it.

A user's atoms are cuts of its loss, made on its active rows: all its positives and some of its
negatives, at least as many as count. On fewer negatives a loss is nowhere larger, so a cut of the
restricted list is one of the whole list. `Cuts` holds them; weights add up to at most 1, as no loss
is negative.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from structsvm_papk._types import Array
from structsvm_papk.oracles._dual_kernels import (
    add_row,
    clear_row,
    inside,
    pairwise_ascent,
    row_dot,
)
from structsvm_papk.surrogates._kernels import segments, tight_structural, top_k
from structsvm_papk.surrogates._majorant_kernels import frozen_hinges, frozen_pairs

SEGMENTS, POOLED, HINGES, PAIRS = range(4)
_ROUNDS = 12  # cuts of a visit, at most
_FEW = 24  # roundings of one number, beside the sums


class Loss(NamedTuple):
    """Which kernel a loss is evaluated by, and what it holds; what it lacks is empty."""

    code: int
    k: int
    parts: Array
    mean_over_all: bool
    marked: Array
    rest_at_zero: bool
    linear: Array
    constants: Array
    order: Array
    n_free: Array
    terms: Array  # scores that a sum of each user's loss may have


class Cuts(NamedTuple):
    """The cuts of all users: `used` of the `room` of each.

    Coefficients of user u are a matrix of ``room[u]`` rows from ``at[u]`` on, of one column for each
    positive and each slot of an active negative; weights, intercepts and their errors begin at
    ``first[u]``, inner products ``(X' c_i) . (X' c_j)`` at ``square[u]``. `wanted` marks users that
    need more room, `merged` counts cuts that were merged.
    """

    room: Array
    used: Array
    first: Array
    at: Array
    square: Array
    theta: Array
    intercepts: Array
    errors: Array
    coef: Array
    gram: Array
    wanted: Array
    merged: Array


@njit(cache=True, nogil=True)
def evaluate(loss, u, m, first, n_pos, negatives, scores, coef):
    """The loss of user u on its positives and the given negatives; write its subgradient."""
    bounds = np.array([0, scores.size])
    counts = np.array([n_pos])
    value = np.empty(1)
    depth = np.float64(m)
    if loss.code == POOLED:
        tight_structural(scores, bounds, counts, loss.k, depth, 0, 1, value, coef)
    elif loss.code == SEGMENTS:
        mean = loss.mean_over_all
        segments(scores, bounds, counts, loss.k, depth, loss.parts, mean, 0, 1, value, coef)
    elif loss.code == HINGES:
        marked = np.zeros(scores.size, dtype=np.bool_)
        marked[:n_pos] = loss.marked[first : first + n_pos]
        linear = np.empty(scores.size)
        linear[:n_pos] = loss.linear[first : first + n_pos]
        linear[n_pos:] = loss.linear[negatives]
        frozen_hinges(
            scores, bounds, counts, loss.k, depth, marked, loss.rest_at_zero, linear,
            loss.constants[u : u + 1], 0, 1, value, coef,
        )  # fmt: skip
    else:
        order = loss.order[first : first + n_pos]
        n_free = np.zeros(scores.size, dtype=np.int64)
        n_free[n_pos:] = loss.n_free[negatives]
        frozen_pairs(scores, bounds, counts, loss.k, depth, order, n_free, 0, 1, value, coef)
    return value[0]


@njit(cache=True, nogil=True)
def cut_sweep(
    data, indices, indptr, lists, active, cuts, loss, order, full, more, share, work, gaps, gains, w
):
    """Visit users in this order: solve each block on its active rows, cut by cut.

    In a `full` visit all rows are scored; negatives become active that the subgradient has, or that
    are among the ``more m`` highest and may come to have a slope. Otherwise as `average_sweep`.
    """
    visited = 0
    for u in order:
        first, n_pos, m = lists.bounds[u], lists.n_pos[u], lists.counted[u]
        if full:
            negatives = np.arange(first + n_pos, lists.bounds[u + 1])
            scores = _scores(data, indices, indptr, lists.rows, first, n_pos, negatives, w)
            coef = np.empty(scores.size)
            value = evaluate(loss, u, m, first, n_pos, negatives, scores, coef)
            wanted = _wanted(m, first, n_pos, more, scores, coef)
            _activate(u, n_pos, wanted, active, cuts, loss)
            visited += scores.size
        own = active.positions[active.at[u] : active.at[u] + active.used[u]]
        scores = _scores(data, indices, indptr, lists.rows, first, n_pos, own, w)
        visited += scores.size
        if full:
            gaps[u] = max(value - _held(u, cuts, scores, n_pos + active.room[u]), 0.0)
        gains[u], scored = _solve_block(
            data, indices, indptr, lists, u, own, scores, active, cuts, loss, share * gaps[u], work, w
        )  # fmt: skip
        visited += scored
    return visited


@njit(cache=True, nogil=True)
def _scores(data, indices, indptr, rows, first, n_pos, negatives, w):
    out = np.empty(n_pos + negatives.size)
    for i in range(n_pos):
        out[i] = row_dot(data, indices, indptr, rows[first + i], w)
    for i in range(negatives.size):
        out[n_pos + i] = row_dot(data, indices, indptr, rows[negatives[i]], w)
    return out


@njit(cache=True, nogil=True)
def _wanted(m, first, n_pos, more, scores, coef):
    """Positions of negatives that should be active, the m highest first."""
    negatives = scores[n_pos:]
    counts = np.zeros(negatives.size, dtype=np.bool_)
    highest = top_k(negatives, m)
    counts[highest] = True
    lowest = scores[:n_pos].min() - 1.0
    rest = np.zeros(negatives.size, dtype=np.bool_)
    for j in top_k(negatives, min(more * m, negatives.size)):
        rest[j] = negatives[j] > lowest
    middle = first + n_pos
    for j in range(negatives.size):
        rest[j] = (rest[j] or coef[n_pos + j] != 0.0) and not counts[j]
    return middle + np.concatenate((highest, np.flatnonzero(rest)))


@njit(cache=True, nogil=True)
def _held(u, cuts, scores, width):
    """The sum of the cuts at these scores, by their weights."""
    held = 0.0
    for i in range(cuts.used[u]):
        theta = cuts.theta[cuts.first[u] + i]
        if theta > 0.0:
            at = cuts.at[u] + i * width
            height = cuts.intercepts[cuts.first[u] + i]
            for j in range(scores.size):
                height += cuts.coef[at + j] * scores[j]
            held += theta * height
    return held


@njit(cache=True, nogil=True)
def _activate(u, n_pos, wanted, active, cuts, loss):
    """Give slots to the wanted negatives; where there are too few, first drop what is idle."""
    new = wanted[active.slot[wanted] < 0]
    room, n = active.room[u], active.used[u]
    if n + new.size > room:
        n = _drop_idle(u, n_pos, active, cuts, loss)
        new = wanted[active.slot[wanted] < 0]
        active.wanted[u] = max(0, n + new.size - room)
        new = new[: room - n]
    for p in new:
        active.positions[active.at[u] + n] = p
        active.slot[p] = n
        n += 1
    active.used[u] = n


@njit(cache=True, nogil=True)
def _is_linear(loss, p):
    """Whether a position has a linear term: it must stay active."""
    return loss.linear.size > 0 and loss.linear[p] != 0.0


@njit(cache=True, nogil=True)
def _drop_idle(u, n_pos, active, cuts, loss):
    """Drop cuts without weight, then the negatives that no cut has; return those that are left."""
    drop_cuts(u, n_pos + active.room[u], cuts)
    width, n = n_pos + active.room[u], active.used[u]
    own = active.positions[active.at[u] : active.at[u] + n]
    kept = 0
    for j in range(n):
        needed = _is_linear(loss, own[j])
        for i in range(cuts.used[u]):
            needed = needed or cuts.coef[cuts.at[u] + i * width + n_pos + j] != 0.0
        if not needed:
            active.slot[own[j]] = -1
            continue
        if kept < j:
            own[kept] = own[j]
            for i in range(cuts.used[u]):
                at = cuts.at[u] + i * width + n_pos
                cuts.coef[at + kept] = cuts.coef[at + j]
        active.slot[own[kept]] = kept
        kept += 1
    for i in range(cuts.used[u]):
        at = cuts.at[u] + i * width + n_pos
        cuts.coef[at + kept : at + n] = 0.0
    active.used[u] = kept
    return kept


@njit(cache=True, nogil=True)
def drop_cuts(u, width, cuts):
    """Drop the cuts of a user that have no weight."""
    base, room, kept = cuts.first[u], cuts.room[u], 0
    n = cuts.used[u]
    gram = cuts.gram[cuts.square[u] : cuts.square[u] + room * room].reshape(room, room)
    for i in range(n):
        if cuts.theta[base + i] == 0.0:
            continue
        if kept < i:
            _take_place(u, width, cuts, kept, i)
            gram[kept, :n] = gram[i, :n]
            gram[:n, kept] = gram[:n, i]
        kept += 1
    cuts.used[u] = kept


@njit(cache=True, nogil=True)
def _take_place(u, width, cuts, place, i):
    base, at = cuts.first[u], cuts.at[u]
    for array in (cuts.theta, cuts.intercepts, cuts.errors):
        array[base + place] = array[base + i]
    cuts.coef[at + place * width : at + (place + 1) * width] = cuts.coef[
        at + i * width : at + (i + 1) * width
    ]


@njit(cache=True, nogil=True)
def _make_room(u, width, cuts, most):
    """Have a free place for a cut: drop those without weight, or merge the two of least weight."""
    if cuts.used[u] < cuts.room[u]:
        return
    drop_cuts(u, width, cuts)
    if cuts.used[u] < cuts.room[u]:
        return
    cuts.wanted[u] = True
    n, base, at, room = cuts.used[u], cuts.first[u], cuts.at[u], cuts.room[u]
    gram = cuts.gram[cuts.square[u] : cuts.square[u] + room * room].reshape(room, room)
    least = np.argsort(cuts.theta[base : base + n])
    i, j = min(least[0], least[1]), max(least[0], least[1])
    total = cuts.theta[base + i] + cuts.theta[base + j]
    a, b = cuts.theta[base + i] / total, cuts.theta[base + j] / total
    one, other = at + i * width, at + j * width
    cuts.coef[one : one + width] = (
        a * cuts.coef[one : one + width] + b * cuts.coef[other : other + width]
    )
    size = a * abs(cuts.intercepts[base + i]) + b * abs(cuts.intercepts[base + j])
    cuts.errors[base + i] = a * cuts.errors[base + i] + b * cuts.errors[base + j] + most * size
    cuts.intercepts[base + i] = a * cuts.intercepts[base + i] + b * cuts.intercepts[base + j]
    cuts.theta[base + i], cuts.theta[base + j] = total, 0.0
    gram[i, :n] = a * gram[i, :n] + b * gram[j, :n]
    gram[:n, i] = a * gram[:n, i] + b * gram[:n, j]
    cuts.merged[u] += 1
    drop_cuts(u, width, cuts)


@njit(cache=True, nogil=True)
def add_cut(data, indices, indptr, lists, u, own, active, cuts, intercept, error, coef, work):
    """Add a cut with weight 0, and its inner products with the others."""
    first, n_pos = lists.bounds[u], lists.n_pos[u]
    width, n, room = n_pos + active.room[u], cuts.used[u], cuts.room[u]
    at, base = cuts.at[u], cuts.first[u]
    cuts.coef[at + n * width : at + (n + 1) * width] = 0.0
    cuts.coef[at + n * width : at + n * width + coef.size] = coef
    cuts.theta[base + n], cuts.intercepts[base + n], cuts.errors[base + n] = 0.0, intercept, error
    for i in range(coef.size):
        if coef[i] != 0.0:
            row = lists.rows[first + i] if i < n_pos else lists.rows[own[i - n_pos]]
            add_row(data, indices, indptr, row, coef[i], work)
    products = _scores(data, indices, indptr, lists.rows, first, n_pos, own, work)
    for i in range(coef.size):
        if coef[i] != 0.0:
            row = lists.rows[first + i] if i < n_pos else lists.rows[own[i - n_pos]]
            clear_row(indices, indptr, row, work)
    gram = cuts.gram[cuts.square[u] : cuts.square[u] + room * room].reshape(room, room)
    for i in range(n + 1):
        other = cuts.coef[at + i * width : at + i * width + coef.size]
        gram[i, n] = gram[n, i] = (other * products).sum()
    cuts.used[u] = n + 1


@njit(cache=True, nogil=True)
def _solve_block(
    data, indices, indptr, lists, u, own, scores, active, cuts, loss, tol, work, w
):
    """Maximise the dual over one block, cut after cut; return the gain and the rows scored."""
    first, n_pos, m, step = lists.bounds[u], lists.n_pos[u], lists.counted[u], lists.steps[u]
    width, room, base, at = n_pos + active.room[u], cuts.room[u], cuts.first[u], cuts.at[u]
    eps = np.finfo(np.float64).eps
    gain, visited = 0.0, 0
    coef = np.empty(scores.size)
    for _ in range(_ROUNDS):
        value = evaluate(loss, u, m, first, n_pos, own, scores, coef)
        if value - _held(u, cuts, scores, width) <= tol:
            break
        _make_room(u, width, cuts, 4.0 * eps)
        product = (coef * scores).sum()
        size = abs(value) + np.abs(coef * scores).sum() + np.abs(coef).sum()
        error = (loss.terms[u] + _FEW) * eps * size
        add_cut(
            data, indices, indptr, lists, u, own, active, cuts, value - product, error, coef, work
        )
        n = cuts.used[u]
        theta = cuts.theta[base : base + n]
        heights = np.empty(n)
        for i in range(n):
            row = cuts.coef[at + i * width : at + i * width + scores.size]
            heights[i] = cuts.intercepts[base + i] + (row * scores).sum()
        before = theta.copy()
        gram = cuts.gram[cuts.square[u] : cuts.square[u] + room * room].reshape(room, room)
        slack = max(1.0 - before.sum(), 0.0)
        rise = pairwise_ascent(theta, heights, gram, n, step, 1.0, slack, 0.1 * tol)
        gain += rise
        coef[:] = 0.0
        for i in range(n):
            if theta[i] != before[i]:
                coef += (theta[i] - before[i]) * cuts.coef[
                    at + i * width : at + i * width + scores.size
                ]
        for i in range(coef.size):
            if coef[i] != 0.0:
                row = lists.rows[first + i] if i < n_pos else lists.rows[own[i - n_pos]]
                add_row(data, indices, indptr, row, -step * coef[i], w)
        scores = _scores(data, indices, indptr, lists.rows, first, n_pos, own, w)
        visited += scores.size
        if rise <= 0.0:
            break
    return gain, visited


@njit(cache=True, nogil=True)
def cut_duals(lists, active, cuts, coef, intercepts, errors):
    """Write c, b and the error of b of every user; the most cuts of a user."""
    eps = np.finfo(np.float64).eps
    for u in range(intercepts.size):
        first, n_pos, n = lists.bounds[u], lists.n_pos[u], cuts.used[u]
        width, base = n_pos + active.room[u], cuts.first[u]
        theta = inside(cuts.theta[base : base + n], 1.0)
        own = active.positions[active.at[u] : active.at[u] + active.used[u]]
        intercepts[u] = errors[u] = 0.0
        for i in range(n):
            at, b = cuts.at[u] + i * width, cuts.intercepts[base + i]
            intercepts[u] += theta[i] * b
            errors[u] += theta[i] * (cuts.errors[base + i] + (n + _FEW) * eps * abs(b))
            for j in range(n_pos):
                coef[first + j] += theta[i] * cuts.coef[at + j]
            for j in range(own.size):
                coef[own[j]] += theta[i] * cuts.coef[at + n_pos + j]
    return cuts.used.max()


@njit(cache=True, nogil=True)
def load_cuts(
    data, indices, indptr, lists, active, cuts, loss, coef, intercepts, errors, work
):
    """Make the point of each user its only cut, of weight 1; active are the rows that it has.

    So are those of a linear term, without which no cut could be made, and other negatives until
    there are as many as count.
    """
    for u in range(intercepts.size):
        first, last = lists.bounds[u], lists.bounds[u + 1]
        middle, n = first + lists.n_pos[u], 0
        own = active.positions[active.at[u] : active.at[u] + active.room[u]]
        for p in range(middle, last):
            if coef[p] != 0.0 or _is_linear(loss, p):
                own[n], active.slot[p] = p, n
                n += 1
        for p in range(middle, last):
            if n >= lists.counted[u]:
                break
            if active.slot[p] < 0:
                own[n], active.slot[p] = p, n
                n += 1
        active.used[u] = n
        row = np.concatenate((coef[first:middle], coef[own[:n]]))
        add_cut(
            data, indices, indptr, lists, u, own[:n], active, cuts, intercepts[u], errors[u], row,
            work,
        )  # fmt: skip
        cuts.theta[cuts.first[u]] = 1.0
