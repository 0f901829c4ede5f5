"""Kernels of the dual ascent: rows as vectors, a small quadratic problem, and sweeps over users.

A *block* is one user, with weight v in the risk; its dual variables ``theta >= 0`` weigh *atoms*
``(c, b)``, lower bounds ``c . s + b`` of the user's loss in its scores s. `step` is v / alpha, and

    w = -sum over users step sum over atoms theta M X' c

is kept in step with theta. M, the `metric`, is a diagonal, or None for the identity: of columns
that are divided by a scale it is the scale's inverse square, and w is in the units of X. The rows
of a block's atoms are its *active* rows.
"""

from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._rounding import EPS
from structsvm_papk._sorting import top_k
from structsvm_papk._types import Array

_SUMS = {"reassoc", "contract", "nsz"}
_FLAT = 1e-12  # curvature below this share of its terms is rounding
_STEPS = 20  # pairwise steps for each atom, at most


class Matrix(NamedTuple):
    """Rows: the three arrays of CSR."""

    values: Array
    columns: Array
    starts: Array


class Primal(NamedTuple):
    """The point w, the diagonal M or None, and `work`: n_features zeros."""

    w: Array
    metric: Array | None
    work: Array


class UserLists(NamedTuple):
    """Users' lists: rows of the matrix, bounds, positives, negatives that count, and v / alpha."""

    rows: Array
    bounds: Array
    n_pos: Array
    n_counted: Array
    steps: Array


class Active(NamedTuple):
    """The negatives that are active: `used` of the `room` slots from `first` on hold positions.

    ``slot[p]`` is the slot of a position within its user, or -1; `wanted` counts slots that were
    missing.
    """

    first: Array
    room: Array
    used: Array
    positions: Array
    slot: Array
    wanted: Array


class Weights(NamedTuple):
    """Weights of atoms and their Gram matrices: ``size ** 2`` entries from `square` on."""

    theta: Array
    square: Array
    gram: Array


class Visit(NamedTuple):
    """Users to visit, in this order; in a `full` visit all their negatives are scored.

    Of the ``n_candidates m`` highest those that are violated become active, m being the number that
    counts. Blocks are solved to `accuracy` of their gap.
    """

    order: Array
    full: bool
    n_candidates: int
    accuracy: float


# Entries are copied one by one: for a slice that is given another numba compiles a message about
# their shapes, too, which takes longer than the kernel.


@kernel(fastmath=_SUMS)
def row_dot(matrix: Matrix, row: int, w: Array) -> float:
    """``x . w`` for a row x of the matrix."""
    total = 0.0
    for e in range(matrix.starts[row], matrix.starts[row + 1]):
        total += matrix.values[e] * w[matrix.columns[e]]
    return total


@kernel(fastmath=_SUMS)
def add_row(matrix: Matrix, metric: Array | None, row: int, factor: float, out: Array) -> None:
    """Add ``factor * M x`` to `out` for a row x of the matrix."""
    for e in range(matrix.starts[row], matrix.starts[row + 1]):
        f = matrix.columns[e]
        out[f] += factor * _times(metric, f, matrix.values[e])


@kernel
def _times(metric: Array | None, f: int, value: float) -> float:
    if metric is None:
        return value
    return metric[f] * value


@kernel
def clear_row(matrix: Matrix, row: int, out: Array) -> None:
    """Write zeros where a row has entries."""
    for e in range(matrix.starts[row], matrix.starts[row + 1]):
        out[matrix.columns[e]] = 0.0


@kernel(fastmath=_SUMS)
def _shift(heights: Array, gram: Array, high: int, low: int, n: int, change: float) -> None:
    for i in range(n):
        heights[i] -= change * (gram[high, i] - gram[low, i])


@kernel(fastmath=_SUMS)
def _shift_one(heights: Array, gram: Array, i: int, n: int, change: float) -> None:
    for j in range(n):
        heights[j] -= change * gram[i, j]


@kernel
def pairwise_ascent(
    theta: Array,
    heights: Array,
    gram: Array,
    n: int,
    step: float,
    cap: float,
    slack: float,
    tol: float,
) -> float:
    """Maximise ``heights . t - step/2 t' gram t`` over moves t of theta; return the increase.

    The first n weights stay between 0 and `cap`, and add up with `slack` to the same number. Every
    step moves weight from one to another and is as long as it should be (sequential minimal
    optimisation with the second-order choice of Fan, Chen and Lin, 2005); it ends when no move
    promises more than `tol` a unit. `heights` are those of the new weights at the end.
    """
    gain = 0.0
    for _ in range(_STEPS * (n + 1)):
        # 1. the highest that may take weight; -1 is the slack, an atom of height 0 and no vector
        high: Any = np.int64(-1)  # typed as indices are: an untyped one is compiled twice
        top = -np.inf
        if slack >= 0.0:
            top = 0.0
        for i in range(n):
            if theta[i] < cap and heights[i] > top:
                high = i
                top = heights[i]
        # 2. of those that can give weight, the one whose best step gains most: rise^2 over twice
        # step times the squared distance of the two vectors. -2 is none
        low = -2
        fall = 0.0
        worst = 0.0
        if slack > 0.0 and high >= 0 and top > 0.0:
            worst = top
            low = -1
            fall = top * top / max(step * gram[high, high], 1e-300)
        for i in range(n):
            if theta[i] > 0.0 and heights[i] < top:
                rise = top - heights[i]
                if rise > worst:
                    worst = rise
                size = gram[i, i]
                if high >= 0:
                    size += gram[high, high]
                    size = max(size - 2.0 * gram[high, i], _FLAT * size)
                gained = rise * rise / max(step * size, 1e-300)
                if gained > fall:
                    low = i
                    fall = gained
        # 3. enough? All weights add up to 1, and none of it gains more than `worst` a unit
        if low == -2 or worst <= tol:
            break
        # 4. how far: to the top of the parabola, or until one of the two is at its bound
        if low == -1:
            rise = top
            size = gram[high, high]
            most = min(slack, cap - theta[high])
        elif high == -1:
            rise = -heights[low]
            size = gram[low, low]
            most = theta[low]
        else:
            rise = top - heights[low]
            size = gram[low, low] + gram[high, high]
            size = max(size - 2.0 * gram[high, low], _FLAT * size)
            most = min(theta[low], cap - theta[high])
        move = most
        if step * size * most > rise:
            move = rise / (step * size)
        gain += move * (rise - 0.5 * step * size * move)
        # 5. the weights, which are exactly at a bound that they reach, and the heights there
        full_high = high >= 0 and move >= cap - theta[high]
        if high >= 0:
            theta[high] = cap if full_high else theta[high] + move
        else:
            slack += move
        if low >= 0:
            theta[low] = 0.0 if move >= theta[low] else theta[low] - move
        else:
            slack = max(slack - move, 0.0)
        if high >= 0 and low >= 0:
            _shift(heights, gram, high, low, n, step * move)
        elif high >= 0:
            _shift_one(heights, gram, high, n, step * move)
        else:
            _shift_one(heights, gram, low, n, -step * move)
    return gain


@kernel
def average_sweep(
    matrix: Matrix,
    point: Primal,
    lists: UserLists,
    active: Active,
    atoms: Weights,
    visit: Visit,
    gaps: Array,
    gains: Array,
) -> int:
    """Visit users of Avg: solve each block exactly on its active rows.

    The atoms are single negatives j, ``c = e_j - mean of the positives``, ``b = 1``, with weights
    of at most 1/m that add up to at most 1. In a full visit ``gaps[u]`` becomes the block's gap;
    else the active rows alone are looked at. `gains` are the increases of the dual. Returns the
    number of rows scored.
    """
    rows = lists.rows
    w = point.w
    visited = 0
    for u in visit.order:
        # 1. heights of the active negatives: 1 less the margin of the mean positive over them
        first = lists.bounds[u]
        last = lists.bounds[u + 1]
        middle = first + lists.n_pos[u]
        m = lists.n_counted[u]
        step = lists.steps[u]
        room = active.room[u]
        n = active.used[u]
        positions = active.positions[active.first[u] : active.first[u] + room]
        theta = atoms.theta[active.first[u] : active.first[u] + room]
        gram = atoms.gram[atoms.square[u] : atoms.square[u] + room * room].reshape(room, room)
        mean = 0.0
        for p in range(first, middle):
            mean += row_dot(matrix, rows[p], w)
        mean /= middle - first
        heights = np.empty(room)
        for i in range(n):
            heights[i] = 1.0 - mean + row_dot(matrix, rows[positions[i]], w)
        visited += middle - first + n
        # 2. the gap, of a loss that is the mean of the m highest, at least 0 each; new negatives
        if visit.full:
            scores = np.empty(last - middle)
            for p in range(middle, last):
                i = active.slot[p]
                scores[p - middle] = (
                    heights[i] if i >= 0 else 1.0 - mean + row_dot(matrix, rows[p], w)
                )
            visited += last - middle - n
            gaps[u] = -(theta[:n] * heights[:n]).sum()
            for j in top_k(scores, m):
                gaps[u] += max(scores[j], 0.0) / m
            best = middle + top_k(scores, min(visit.n_candidates * m, scores.size))
            best = best[(scores[best - middle] > 0.0) & (active.slot[best] < 0)]
            if n + best.size > room:  # the rest at a later visit, which has more room
                n = drop_idle(positions, theta, heights, gram, n, active.slot)
                active.wanted[u] = max(0, n + best.size - room)
                best = best[: room - n]
            extend_gram(matrix, point, rows[first:middle], rows[positions[:n]], rows[best], gram)
            for p in best:
                positions[n] = p
                theta[n] = 0.0
                heights[n] = scores[p - middle]
                active.slot[p] = n
                n += 1
            active.used[u] = n
        # 3. the best weights
        before = theta[:n].copy()
        slack = max(1.0 - before.sum(), 0.0)
        tol = visit.accuracy * gaps[u]
        gains[u] = pairwise_ascent(theta, heights, gram, n, step, 1.0 / m, slack, tol)
        # 4. the w that belongs to them; the mean of the positives moves once for all negatives
        moved = 0.0
        for i in range(n):
            change = theta[i] - before[i]
            if change != 0.0:
                add_row(matrix, point.metric, rows[positions[i]], -step * change, w)
                moved += change
        if moved != 0.0:
            for p in range(first, middle):
                add_row(matrix, point.metric, rows[p], step * moved / (middle - first), w)
    return visited


@kernel
def drop_idle(
    positions: Array, theta: Array, heights: Array, gram: Array, n: int, slot: Array
) -> int:
    """Keep the atoms with weight only; return their number."""
    n_kept = 0
    for i in range(n):
        if theta[i] == 0.0:
            slot[positions[i]] = -1
            continue
        if n_kept < i:
            positions[n_kept] = positions[i]
            theta[n_kept] = theta[i]
            heights[n_kept] = heights[i]
            for j in range(n):
                gram[n_kept, j] = gram[i, j]
            for j in range(n):
                gram[j, n_kept] = gram[j, i]
        slot[positions[n_kept]] = n_kept
        n_kept += 1
    return n_kept


@kernel
def extend_gram(
    matrix: Matrix, point: Primal, positives: Array, active: Array, new: Array, gram: Array
) -> None:
    """Inner products of rows less the mean of the positives: of active negatives and new ones."""
    if new.size == 0:
        return
    # with a the mean positive and x_i the rows, (x_i - a) M (x_j - a): `work` holds M (x_j - a)
    work = point.work
    n = active.size
    share = 1.0 / positives.size
    for row in positives:
        add_row(matrix, point.metric, row, -share, work)
    for j in range(new.size):
        add_row(matrix, point.metric, new[j], 1.0, work)
        mean = 0.0
        for row in positives:
            mean += share * row_dot(matrix, row, work)
        for i in range(n + j + 1):
            row = active[i] if i < n else new[i - n]
            gram[i, n + j] = row_dot(matrix, row, work) - mean
            gram[n + j, i] = gram[i, n + j]
        add_row(matrix, point.metric, new[j], -1.0, work)
    for row in positives:
        clear_row(matrix, row, work)
    for row in new:
        clear_row(matrix, row, work)


@kernel
def move_blocks(
    old: Array,
    old_at: Array,
    old_width: Array,
    new: Array,
    new_at: Array,
    new_width: Array,
    n_rows: Array,
    n_columns: Array,
) -> None:
    """Copy a matrix of every user from one flat array to another, which has more room."""
    for u in range(n_rows.size):
        for i in range(n_rows[u]):
            a = old_at[u] + i * old_width[u]
            b = new_at[u] + i * new_width[u]
            for j in range(n_columns[u]):
                new[b + j] = old[a + j]


@kernel
def load_average(
    matrix: Matrix,
    point: Primal,
    lists: UserLists,
    active: Active,
    atoms: Weights,
    negative: Array,
    coef: Array,
    counts: Array,
) -> None:
    """Give the `negative` positions, `counts` of each user, the weights that `coef` has there."""
    n_done = 0
    for u in range(counts.size):
        first = lists.bounds[u]
        room = active.room[u]
        n = counts[u]
        new = negative[n_done : n_done + n]
        n_done += n
        gram = atoms.gram[atoms.square[u] : atoms.square[u] + room * room].reshape(room, room)
        positions = active.positions[active.first[u] : active.first[u] + room]
        positives = lists.rows[first : first + lists.n_pos[u]]
        extend_gram(matrix, point, positives, lists.rows[:0], lists.rows[new], gram)
        for i in range(n):
            positions[i] = new[i]
            active.slot[new[i]] = i
            atoms.theta[active.first[u] + i] = min(coef[new[i]], 1.0 / lists.n_counted[u])
        active.used[u] = n


@kernel
def average_duals(
    lists: UserLists, active: Active, atoms: Weights, coef: Array, sums: Array
) -> int:
    """Write c of every user, and b into `sums`, inside the polytope; the most atoms of a user."""
    for u in range(sums.size):
        n = active.used[u]
        slots = slice(active.first[u], active.first[u] + n)
        theta = inside(atoms.theta[slots], 1.0 / lists.n_counted[u])
        for i in range(n):
            coef[active.positions[active.first[u] + i]] = theta[i]
        sums[u] = theta.sum()
        first = lists.bounds[u]
        n_pos = lists.n_pos[u]
        coef[first : first + n_pos] = -sums[u] / n_pos
    return active.used.max()


@kernel
def inside(theta: Array, cap: float) -> Array:
    """Weights of at most `cap` that add up to at most 1, as real numbers: rounded towards zero."""
    theta = np.minimum(theta, cap)
    return theta * ((1.0 - (theta.size + 8) * EPS) / max(theta.sum(), 1.0))


@kernel
def column_sizes(matrix: Matrix, rows: Array, coef: Array, sizes: Array, counts: Array) -> None:
    """Add ``sum_p |coef_p x_pf|`` to `sizes`, and the number of its terms to `counts`."""
    for p in range(rows.size):
        if coef[p] == 0.0:
            continue
        for e in range(matrix.starts[rows[p]], matrix.starts[rows[p] + 1]):
            sizes[matrix.columns[e]] += abs(coef[p] * matrix.values[e])
            counts[matrix.columns[e]] += 1


@kernel
def score_sizes(matrix: Matrix, rows: Array, bounds: Array, w: Array) -> Array:
    """The largest ``sum_f |x_f w_f|`` over the rows x of each user."""
    out = np.zeros(bounds.size - 1)
    for u in range(out.size):
        for row in rows[bounds[u] : bounds[u + 1]]:
            size = 0.0
            for e in range(matrix.starts[row], matrix.starts[row + 1]):
                size += abs(matrix.values[e] * w[matrix.columns[e]])
            out[u] = max(out[u], size)
    return out
