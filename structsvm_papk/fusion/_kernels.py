"""nDCG@k of a query along one weight: piecewise constant, and walked from break to break."""

import math

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array

_STEP = 1e-9  # breaks that are relatively closer than this are one


@kernel
def crossing(apart: float, x: float, y: float, bend: float, after: float) -> float:
    """The smallest ``t > after`` at which two documents have equal scores, inf where there is none.

    One is ahead by ``apart`` without the run of this weight; the run gives them ``t x / (1 + bend t
    x)`` and the same of y.
    """
    square = apart * bend * bend * x * y
    linear = apart * bend * (x + y) + x - y
    best = math.inf
    if square == 0.0:
        if linear != 0.0:
            root = -apart / linear
            if root > after:
                best = root
        return best
    under = linear * linear - 4.0 * square * apart
    if under < 0.0:
        return best
    # the larger root first, as a difference of equal numbers would lose digits
    half = -0.5 * (linear + math.copysign(math.sqrt(under), linear))
    root = half / square
    if root > after:
        best = root
    if half != 0.0:
        root = apart / half
        if after < root < best:
            best = root
    return best


@kernel
def is_ahead(i: int, j: int, score: Array, x: Array, tie: Array) -> bool:
    """Whether document i stands before j: by score, then by what comes next, then by `tie`."""
    if score[i] != score[j]:
        return score[i] > score[j]
    if x[i] != x[j]:
        return x[i] > x[j]
    return tie[i] > tie[j]


@kernel
def sort_top(score: Array, x: Array, tie: Array, top: Array) -> int:
    """The first documents, in order, into `top`; how many there are."""
    n_top = 0
    for i in range(score.size):
        if n_top == top.size and not is_ahead(i, top[n_top - 1], score, x, tie):
            continue
        place = n_top if n_top < top.size else n_top - 1
        n_top = place + 1
        while place > 0 and is_ahead(i, top[place - 1], score, x, tie):
            top[place] = top[place - 1]
            place -= 1
        top[place] = i
    return n_top


@kernel
def contenders(fixed: Array, x: Array, k: int) -> Array:
    """The documents that are among the first k for some weight: fewer than k are always ahead."""
    n = fixed.size
    kept = np.empty(n, dtype=np.int64)
    n_kept = 0
    for i in range(n):
        n_ahead = 0
        for j in range(n):
            if fixed[j] >= fixed[i] and x[j] >= x[i] and (fixed[j] > fixed[i] or x[j] > x[i]):
                n_ahead += 1
                if n_ahead == k:
                    break
        if n_ahead < k:
            kept[n_kept] = i
            n_kept += 1
    return kept[:n_kept]


@kernel
def walk(
    fixed: Array, x: Array, gains: Array, tie: Array, bend: float, discounts: Array
) -> tuple[Array, Array]:
    """Where a query's DCG changes along a weight from 0 to infinity, and its values between.

    `fixed` are the scores without the run, `x` what the run says of each document. Returns the
    breaks, ascending, and one more value than breaks.
    """
    kept = contenders(fixed, x, discounts.size)
    fixed = fixed[kept]
    x = x[kept]
    gains = gains[kept]
    tie = tie[kept]
    top = np.empty(min(discounts.size, kept.size), dtype=np.int64)
    score = np.empty(kept.size)
    breaks = np.empty(64)
    values = np.empty(65)
    n_breaks = 0
    at = 0.0  # the break that was met last
    while True:
        inside = at * (1.0 + _STEP) + 1e-300
        for i in range(kept.size):
            score[i] = fixed[i] + inside * x[i] / (1.0 + bend * inside * x[i])
        n_top = sort_top(score, x, tie, top)
        value = 0.0
        for place in range(n_top):
            value += gains[top[place]] * discounts[place]
        if at == 0.0:
            values[0] = value
        elif value != values[n_breaks]:
            if n_breaks == breaks.size:
                more = np.empty(2 * n_breaks)
                more[:n_breaks] = breaks
                breaks = more
                larger = np.empty(2 * n_breaks + 1)
                larger[: n_breaks + 1] = values
                values = larger
            breaks[n_breaks] = at
            n_breaks += 1
            values[n_breaks] = value
        # what changes first: neighbours among the first, or the last of them and any other
        upcoming = math.inf
        for place in range(n_top - 1):
            i = top[place]
            j = top[place + 1]
            upcoming = min(upcoming, crossing(fixed[i] - fixed[j], x[i], x[j], bend, inside))
        last = top[n_top - 1]
        for j in range(kept.size):
            if is_ahead(last, j, score, x, tie):
                change = crossing(fixed[last] - fixed[j], x[last], x[j], bend, inside)
                upcoming = min(upcoming, change)
        if upcoming == math.inf:
            return breaks[:n_breaks], values[: n_breaks + 1]
        at = upcoming


@kernel
def dcg(
    score: Array, tie: Array, gains: Array, starts: Array, discounts: Array, out: Array
) -> None:
    """DCG of each query's documents, in the order of their scores."""
    top = np.empty(discounts.size, dtype=np.int64)
    for query in range(out.size):
        rows = slice(starts[query], starts[query + 1])
        of_query = score[rows]
        n_top = sort_top(of_query, of_query, tie[rows], top)
        value = 0.0
        for place in range(n_top):
            value += gains[rows][top[place]] * discounts[place]
        out[query] = value
