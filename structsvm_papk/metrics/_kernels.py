"""One pass over a user's list gives every ranking metric.

A metric of a binary list is a function of its sorted positives alone: how many negatives score
higher (`above`), how many score at least as high (`reach`), and how many positives score higher
(`first`) or at least as high (`last`). Negatives are therefore counted, not sorted, unless a list
holds so many positives that sorting is cheaper. Nothing here knows about conventions beyond
integer codes, and each user writes its own row of the result, so threads cannot change a number.

The kernels of metrics take `ranks`, (4, rows of these users), as `rank_users` writes it, the
`bounds` of the users' rows, of which the first may be any number, `counts`, (n_users, N_COUNTS),
and what the metric asks for; they write a number for each user into `out`. A rule that gives tied
rows an order has placed them in `ranks`: there each positive is a block of its own.
"""

import math
from typing import NamedTuple

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._sorting import increasing_order, sort
from structsvm_papk._types import Array

LOSS, HALF, WIN, THRESHOLD = range(4)
EXCLUDE, NORMALISE, AS_WINS = range(3)
WHOLE_LIST = 2**62
N_POS, N_NEG, LISTED_POS, LISTED_NEG, TIED, CUT_TIED = range(6)
N_COUNTS = 6
ABOVE, REACH, FIRST, LAST = range(4)  # of a positive

_COUNTING_FACTOR = 10


class InOrder(NamedTuple):
    """Gains of users' rows in the order of their scores.

    `bounds` are those of the users, of which the first may be any number. `stops` says of each
    place where its block of tied rows ends, counted from the user's first place; empty: nothing is
    tied. `shown` has the places that were shown of each list.
    """

    gains: Array
    stops: Array
    bounds: Array
    shown: Array


class Discounts(NamedTuple):
    """What a gain counts at each place, and the sums of the first 0, 1, .. of them."""

    at_place: Array
    sums: Array


@kernel
def count_above(pos: Array, neg: Array, spare: Array, ranks: Array) -> None:
    """Negatives above and not below each positive, both negated, the positives in order."""
    n = neg.size
    higher = 0
    at_least = 0
    if pos.size > _COUNTING_FACTOR * math.log2(n + 2.0):
        sort(neg, spare)
        for i in range(pos.size):
            while higher < n and neg[higher] < pos[i]:
                higher += 1
            at_least = max(at_least, higher)
            while at_least < n and neg[at_least] <= pos[i]:
                at_least += 1
            ranks[ABOVE, i] = higher
            ranks[REACH, i] = at_least
        return
    for i in range(pos.size):
        p = pos[i]
        higher = 0
        at_least = 0
        for j in range(n):
            higher += neg[j] < p
            at_least += neg[j] <= p
        ranks[ABOVE, i] = higher
        ranks[REACH, i] = at_least


@kernel
def place_ties(pos: Array, ranks: Array, length: int, ties: int, count: Array) -> int:
    """Positives above and not below each positive; how many are inside a list of `length` places.

    Under a rule that gives tied rows an order no negatives are left beside a positive, and no other
    positives.

    A block of tied positives that the cut goes through ends at the cut: what is not shown takes no
    place. Whether the cut separates tied positives and negatives, and whether a positive and a
    negative share a score, goes into `count`.
    """
    listed = 0
    stop = 0
    for i in range(pos.size):
        if i == stop:
            start = i
            while stop < pos.size and pos[stop] == pos[i]:
                stop += 1
        above = ranks[ABOVE, i]
        reach = ranks[REACH, i]
        if reach > above:
            count[TIED] = 1
            if start + above < length < stop + reach:
                count[CUT_TIED] = 1
        place = above if ties == WIN else reach
        listed += i + place < length
        ranks[FIRST, i] = start
        ranks[LAST, i] = stop
        if ties in (LOSS, WIN):
            ranks[ABOVE, i] = place
            ranks[REACH, i] = place
            ranks[FIRST, i] = i
            ranks[LAST, i] = i + 1
    for i in range(listed):
        ranks[LAST, i] = min(ranks[LAST, i], listed)
    return listed


@kernel
def rank_users(
    scores: Array,
    relevant: Array,
    bounds: Array,
    lengths: Array,
    ties: int,
    ranks: Array,
    counts: Array,
) -> None:
    """Rank the positives of users, and count what is in their lists.

    ranks : (4, rows of these users), `ABOVE`, .. of a user's positives, in decreasing order of
    their scores, from its first row on; counts : (n_users, N_COUNTS);
    lengths : places shown of each list.
    """
    longest = 0
    for u in range(counts.shape[0]):
        longest = max(longest, bounds[u + 1] - bounds[u])
    pos = np.empty(longest + 1)  # one more: both are written without asking which it is
    neg = np.empty(longest + 1)
    spare = np.empty(longest + 1)
    for u in range(counts.shape[0]):
        n_pos = 0
        n_neg = 0
        values = scores[bounds[u] : bounds[u + 1]]
        labels = relevant[bounds[u] : bounds[u + 1]]
        for j in range(values.size):
            pos[n_pos] = -values[j]  # the highest score is the smallest
            neg[n_neg] = -values[j]
            n_pos += labels[j]
            n_neg += 1 - labels[j]
        length = lengths[u]
        ranks_of_user = ranks[:, bounds[u] - bounds[0] :]
        sort(pos[:n_pos], spare)
        count_above(pos[:n_pos], neg[:n_neg], spare, ranks_of_user)
        listed = place_ties(pos[:n_pos], ranks_of_user, length, ties, counts[u])
        counts[u, N_POS] = n_pos
        counts[u, N_NEG] = n_neg
        counts[u, LISTED_POS] = listed
        counts[u, LISTED_NEG] = length - listed


@kernel
def pairs_won(
    ranks: Array,
    bounds: Array,
    counts: Array,
    most: int,
    k: int,
    capped: bool,
    out: Array,
) -> None:
    """Pairs that the best `most` positives win against the best k negatives.

    Users with fewer negatives win as many as are missing, unless k is `capped` to those there are.
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        wide = min(k, counts[u, N_NEG]) if capped else k
        won = 0.0
        for i in range(first_row, first_row + min(counts[u, LISTED_POS], most)):
            low = min(wide, ranks[ABOVE, i])
            high = min(wide, ranks[REACH, i])
            won += wide - 0.5 * (low + high)
        out[u] = won


@kernel
def hits_within(ranks: Array, first_row: int, n_listed: int, k: int) -> float:
    """Positives of one user among the first k places; the expected number of averaged ties."""
    total = 0.0
    for i in range(n_listed):
        above = ranks[ABOVE, first_row + i]
        reach = ranks[REACH, first_row + i]
        first = ranks[FIRST, first_row + i] + above
        size = ranks[LAST, first_row + i] + reach - first
        total += min(max(k - first, 0), size) / size
    return total


@kernel
def hits(ranks: Array, bounds: Array, counts: Array, k: int, out: Array) -> None:
    """Positives among the first k places."""
    for u in range(counts.shape[0]):
        out[u] = hits_within(ranks, bounds[u] - bounds[0], counts[u, LISTED_POS], k)


@kernel
def hits_among_as_many(ranks: Array, bounds: Array, counts: Array, out: Array) -> None:
    """Positives among as many first places as there are positives."""
    for u in range(counts.shape[0]):
        k = counts[u, N_POS]
        out[u] = hits_within(ranks, bounds[u] - bounds[0], counts[u, LISTED_POS], k)


@kernel
def preferences(ranks: Array, bounds: Array, counts: Array, out: Array) -> None:
    """Sum over listed positives of ``1 - min(n, R) / min(N, R)`` with n negatives above.

    Of R positives and N negatives; where ties are averaged, the mean over the negatives of a tied
    block that may stand above.
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        n_pos = counts[u, N_POS]
        most = min(n_pos, counts[u, N_NEG])
        total = 0.0
        for i in range(counts[u, LISTED_POS]):
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            lost = 0.0
            for n in range(max(above, 1), reach + 1):
                lost += min(n, n_pos) / most
            total += 1.0 - lost / (reach - above + 1)
        out[u] = total


@kernel
def precision_sums(
    ranks: Array, bounds: Array, counts: Array, k: int, ties: int, out: Array
) -> None:
    """Sum over positives among the first k places of the precision at their place.

    Where ties are averaged, the expected sum of a tied block over random orders (McSherry & Najork
    2008).
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        total = 0.0
        for i in range(counts[u, LISTED_POS]):
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            last = ranks[LAST, first_row + i]
            if ties == THRESHOLD:
                if last + reach <= k:
                    total += last / (last + reach)
            elif i == ranks[FIRST, first_row + i]:
                size = last - i + reach - above
                slope = (last - i - 1) / (size - 1) if size > 1 else 0.0
                block = 0.0
                for j in range(min(size, k - i - above)):
                    block += (i + 1 + j * slope) / (i + above + j + 1)
                total += block * (last - i) / size
        out[u] = total


@kernel
def discounted_gains(
    ranks: Array, bounds: Array, counts: Array, k: int, discounts: Discounts, out: Array
) -> None:
    """DCG of unit gains over the first k places: sum of the discounts of the positives."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        shown = min(k, counts[u, LISTED_POS] + counts[u, LISTED_NEG])
        total = 0.0
        for i in range(counts[u, LISTED_POS]):
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            first = ranks[FIRST, first_row + i] + above
            last = ranks[LAST, first_row + i] + reach
            end = min(last, shown)
            if end > first and last - first == 1:
                total += discounts.at_place[first]
            elif end > first:
                total += (discounts.sums[end] - discounts.sums[first]) / (last - first)
        out[u] = total


@kernel
def first_hits(ranks: Array, bounds: Array, counts: Array, k: int, out: Array) -> None:
    """1 / place of the first positive, 0 where it is not among the first k; the expectation where
    ties are averaged.
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        total = 0.0
        if counts[u, LISTED_POS] > 0:
            above = ranks[ABOVE, first_row]
            reach = ranks[REACH, first_row]
            n_pos = ranks[LAST, first_row]
            left = n_pos + reach - above
            none_yet = 1.0
            place = above + 1
            while none_yet > 0.0 and left >= n_pos and place <= k:
                hit = n_pos / left
                total += none_yet * hit / place
                none_yet *= 1.0 - hit
                left -= 1
                place += 1
        out[u] = total


@kernel
def any_hits(ranks: Array, bounds: Array, counts: Array, k: int, out: Array) -> None:
    """Whether a positive is among the first k places; its probability where ties are averaged."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        none_yet = 1.0
        if counts[u, LISTED_POS] > 0:
            above = ranks[ABOVE, first_row]
            reach = ranks[REACH, first_row]
            n_pos = ranks[LAST, first_row]
            size = n_pos + reach - above
            for i in range(min(max(k - above, 0), size)):
                none_yet *= max(size - n_pos - i, 0) / (size - i)
        out[u] = 1.0 - none_yet


@kernel
def areas_at_k(ranks: Array, bounds: Array, counts: Array, k: int, out: Array) -> None:
    """AUC inside the first k places; 1 if they hold positives only, 0 if negatives only.

    Where ties are averaged, half of a tied pair is right, and the rows of a tied block that place k
    goes through count by the share of the block that is inside.
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        listed = counts[u, LISTED_POS]
        shown = min(k, listed + counts[u, LISTED_NEG])
        n_pos = 0.0  # inside, the others inside, and the pairs in the wrong order
        ahead = 0.0
        i = 0
        while i < listed:
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            end = ranks[LAST, first_row + i]
            size = end - i + reach - above
            inside = min(shown - i - above, size) / size
            if inside <= 0.0:
                break
            n_pos += inside * (end - i)
            ahead += inside * (end - i) * (above + 0.5 * inside * (reach - above))
            i = end
        n_neg = shown - n_pos
        out[u] = 1.0 if n_pos > 0.0 else 0.0
        if n_pos > 0.0 and n_neg > 0.0:
            out[u] = 1.0 - ahead / (n_pos * n_neg)


# --- gains in order: kernels take `InOrder`, what the metric asks for, and `out` ------------------


@kernel
def in_order(
    scores: Array, gains: Array, ties: int, ordered: InOrder, best: InOrder, counts: Array
) -> None:
    """Write gains of users in the order of their scores, and of their own, and ends of tied blocks.

    Rules that give tied rows an order, that of their gains, leave no ties and need no ends.
    """
    bounds = ordered.bounds
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        n = bounds[u + 1] - bounds[u]
        own = slice(first_row, first_row + n)
        order = increasing_order(-scores[bounds[u] : bounds[u + 1]])
        values = scores[bounds[u] : bounds[u + 1]][order]
        gained = ordered.gains[own]
        gained[:] = gains[bounds[u] : bounds[u + 1]][order]
        length = ordered.shown[u]
        spare = np.empty(n)
        start = 0
        while start < n:
            stop = start + 1
            while stop < n and values[stop] == values[start]:
                stop += 1
            if stop > start + 1:
                block = gained[start:stop]
                # whether rows of one score but different gains stand on both sides of the cut
                if start < length < stop and block.min() < block.max():
                    counts[u, CUT_TIED] = 1
                if ties == LOSS:
                    sort(block, spare)
                elif ties == WIN:
                    block *= -1.0
                    sort(block, spare)
                    block *= -1.0
            if ordered.stops.size:
                ordered.stops[first_row + start : first_row + stop] = stop
            start = stop
        falling = best[own]
        falling[:] = -gained
        sort(falling, spare)
        falling *= -1.0


@kernel
def graded_gains(lists: InOrder, k: int, discounts: Discounts, out: Array) -> None:
    """DCG: sum over the first k places of discount and gain; of a tied block the mean gain."""
    for u in range(lists.bounds.size - 1):
        first_row = lists.bounds[u] - lists.bounds[0]
        gains = lists.gains[first_row : lists.bounds[u + 1] - lists.bounds[0]]
        end = min(k, lists.shown[u])
        total = 0.0
        start = 0
        while start < end:
            stop = start + 1
            if lists.stops.size:
                stop = lists.stops[first_row + start]
            if stop == start + 1:
                total += gains[start] * discounts.at_place[start]
            else:
                mean = gains[start:stop].sum() / (stop - start)
                total += mean * (discounts.sums[min(stop, end)] - discounts.sums[start])
            start = stop
        out[u] = total


@kernel
def expected_reciprocal_ranks(lists: InOrder, k: int, out: Array) -> None:
    """ERR: ``sum_r R_r / r prod_{i<r} (1 - R_i)`` over the first k places, gains R.

    Of a tied block its mean over the orders: by linearity that of the products of 1 - R over the
    first 0, 1, .. of its rows.
    """
    for u in range(lists.bounds.size - 1):
        first_row = lists.bounds[u] - lists.bounds[0]
        gains = lists.gains[first_row : lists.bounds[u + 1] - lists.bounds[0]]
        end = min(k, lists.shown[u])
        total = 0.0
        going_on = 1.0
        start = 0
        while start < end and going_on > 0.0:
            stop = start + 1
            if lists.stops.size:
                stop = lists.stops[first_row + start]
            if stop == start + 1:
                total += going_on * gains[start] / stop
                going_on *= 1.0 - gains[start]
            else:
                products = mean_products(1.0 - gains[start:stop], min(stop, end) - start)
                for j in range(1, products.size):
                    total += going_on * (products[j - 1] - products[j]) / (start + j)
                going_on *= products[-1]
            start = stop
        out[u] = total


@kernel
def mean_products(factors: Array, most: int) -> Array:
    """Mean product of 0, 1, .. `most` of some factors, over all choices of so many."""
    means = np.zeros(most + 1)
    means[0] = 1.0
    for n in range(factors.size):
        for j in range(min(n + 1, most), 0, -1):  # of j of the first n + 1: with the last or not
            means[j] += (factors[n] * means[j - 1] - means[j]) * (j / (n + 1.0))
    return means


# --- rows -----------------------------------------------------------------------------------------


@kernel
def count_rows(codes: Array, n_values: int) -> tuple[Array, bool]:
    """How often each code below `n_values` occurs, and whether they never decrease."""
    counts = np.zeros(n_values, dtype=np.int64)
    in_order = True
    last = 0
    for code in codes:
        counts[code] += 1
        in_order &= code >= last
        last = code
    return counts, in_order


@kernel
def placed(codes: Array, starts: Array, scores: Array, relevant: Array) -> tuple[Array, ...]:
    """Rows of one code together, in their order, from the code's start on."""
    position = starts.copy()
    out = np.empty_like(scores), np.empty_like(relevant)
    for i in range(codes.size):
        target = position[codes[i]]
        position[codes[i]] = target + 1
        out[0][target] = scores[i]
        out[1][target] = relevant[i]
    return out
