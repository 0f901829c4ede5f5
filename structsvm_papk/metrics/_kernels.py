"""One pass over a user's list gives every ranking metric.

A metric of a binary list is a function of its sorted positives alone: how many negatives score
higher (`above`), how many score at least as high (`reach`), and how many positives score higher
(`first`) or at least as high (`last`). Negatives are therefore counted, not sorted, unless a list
holds so many positives that sorting is cheaper. Nothing here knows about conventions beyond
integer codes, and each user writes its own row of the result, so threads cannot change a number.

The kernels of metrics take `ranks`, (4, rows of these users), as `rank_users` writes it, the
`bounds` of the users' rows, of which the first may be any number, `counts`, (n_users, N_COUNTS),
the rule for `ties`, and what the metric asks for; they write a number for each user into `out`.
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


class GradedLists(NamedTuple):
    """Scores and gains of users' rows, bounds of the users, and places shown of each.

    `lengths` is empty where every list is complete.
    """

    scores: Array
    gains: Array
    bounds: Array
    lengths: Array


class Discounts(NamedTuple):
    """What a gain counts at each place, and the sums of the first 0, 1, .. of them."""

    at_place: Array
    sums: Array


@kernel
def count_above(pos, neg, spare, ranks):
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
def place_ties(pos, ranks, length, ties, count):
    """Positives above and not below each positive; how many are inside a list of `length` places.

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
        ranks[FIRST, i] = start
        ranks[LAST, i] = stop
        if reach > above:
            count[TIED] = 1
            if start + above < length < stop + reach:
                count[CUT_TIED] = 1
        listed += i + (above if ties == WIN else reach) < length
    for i in range(listed):
        ranks[LAST, i] = min(ranks[LAST, i], listed)
    return listed


@kernel
def rank_users(scores, relevant, bounds, lengths, ties, ranks, counts):
    """Rank the positives of users, and count what is in their lists.

    ranks : (4, rows of these users), `ABOVE`, .. of a user's positives, in decreasing order of
    their scores, from its first row on; counts : (n_users, N_COUNTS);
    lengths : places shown per user, or empty when every list is complete.
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
        length = n_pos + n_neg
        if lengths.size:
            length = min(length, lengths[u])
        ranks_of_user = ranks[:, bounds[u] - bounds[0] :]
        sort(pos[:n_pos], spare)
        count_above(pos[:n_pos], neg[:n_neg], spare, ranks_of_user)
        listed = place_ties(pos[:n_pos], ranks_of_user, length, ties, counts[u])
        counts[u, N_POS] = n_pos
        counts[u, N_NEG] = n_neg
        counts[u, LISTED_POS] = listed
        counts[u, LISTED_NEG] = length - listed


@kernel
def pairs_won(ranks, bounds, counts, ties, most, k, capped, out):
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
            if ties == LOSS:
                won += wide - high
            elif ties == WIN:
                won += wide - low
            else:
                won += wide - 0.5 * (low + high)
        out[u] = won


@kernel
def hits(ranks, bounds, counts, ties, k, out):
    """Positives among the first k places; the expected number where ties are averaged."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        total = 0.0
        for i in range(counts[u, LISTED_POS]):
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            if ties == LOSS:
                total += i + reach < k
            elif ties == WIN:
                total += i + above < k
            else:
                first = ranks[FIRST, first_row + i] + above
                size = ranks[LAST, first_row + i] + reach - first
                total += min(max(k - first, 0), size) / size
        out[u] = total


@kernel
def precision_sums(ranks, bounds, counts, ties, out):
    """Sum over positives of the precision at their place.

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
            if ties == LOSS:
                total += (i + 1) / (i + 1 + reach)
            elif ties == WIN:
                total += (i + 1) / (i + 1 + above)
            elif ties == THRESHOLD:
                total += last / (last + reach)
            elif i == ranks[FIRST, first_row + i]:
                size = last - i + reach - above
                slope = (last - i - 1) / (size - 1) if size > 1 else 0.0
                block = 0.0
                for j in range(size):
                    block += (i + 1 + j * slope) / (i + above + j + 1)
                total += block * (last - i) / size
        out[u] = total


@kernel
def discounted_gains(ranks, bounds, counts, ties, k, discounts, out):
    """DCG of unit gains over the first k places: sum of the discounts of the positives."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        shown = min(k, counts[u, LISTED_POS] + counts[u, LISTED_NEG])
        total = 0.0
        for i in range(counts[u, LISTED_POS]):
            above = ranks[ABOVE, first_row + i]
            reach = ranks[REACH, first_row + i]
            if ties in (LOSS, WIN):
                place = i + (above if ties == WIN else reach)
                if place < shown:
                    total += discounts.at_place[place]
                continue
            first = ranks[FIRST, first_row + i] + above
            last = ranks[LAST, first_row + i] + reach
            end = min(last, shown)
            if end > first and last - first == 1:
                total += discounts.at_place[first]
            elif end > first:
                total += (discounts.sums[end] - discounts.sums[first]) / (last - first)
        out[u] = total


@kernel
def first_hits(ranks, bounds, counts, ties, out):
    """1 / place of the first positive; its expectation where ties are averaged."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        total = 0.0
        if counts[u, LISTED_POS] > 0:
            above = ranks[ABOVE, first_row]
            reach = ranks[REACH, first_row]
            n_pos = ranks[LAST, first_row]
            left = n_pos + reach - above
            if ties == LOSS:
                total = 1.0 / (1 + reach)
            elif ties == WIN:
                total = 1.0 / (1 + above)
            else:
                none_yet = 1.0
                place = above + 1
                while none_yet > 0.0 and left >= n_pos:
                    hit = n_pos / left
                    total += none_yet * hit / place
                    none_yet *= 1.0 - hit
                    left -= 1
                    place += 1
        out[u] = total


@kernel
def any_hits(ranks, bounds, counts, ties, k, out):
    """Whether a positive is among the first k places; its probability where ties are averaged."""
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        none_yet = 1.0
        if counts[u, LISTED_POS] > 0:
            above = ranks[ABOVE, first_row]
            reach = ranks[REACH, first_row]
            n_pos = ranks[LAST, first_row]
            if ties in (LOSS, WIN):
                none_yet = 0.0 if (above if ties == WIN else reach) < k else 1.0
            else:
                size = n_pos + reach - above
                for i in range(min(max(k - above, 0), size)):
                    none_yet *= max(size - n_pos - i, 0) / (size - i)
        out[u] = 1.0 - none_yet


@kernel
def areas_at_k(ranks, bounds, counts, ties, k, out):
    """AUC inside the first k places; 1 if they hold positives only, 0 if negatives only.

    Where ties are averaged, the mean over the orders of each tied block: how many positives of the
    block that place k goes through are inside is hypergeometric.
    """
    for u in range(counts.shape[0]):
        first_row = bounds[u] - bounds[0]
        listed = counts[u, LISTED_POS]
        shown = min(k, listed + counts[u, LISTED_NEG])
        n_pos = 0  # positives that are inside in every order, and the negatives ahead of them
        ahead = 0.0
        while n_pos < listed:
            above = ranks[ABOVE, first_row + n_pos]
            reach = ranks[REACH, first_row + n_pos]
            end = n_pos + 1 if ties in (LOSS, WIN) else ranks[LAST, first_row + n_pos]
            if end + (above if ties == WIN else reach) > shown:
                break
            ahead += above if ties == WIN else reach if ties == LOSS else 0.5 * (above + reach)
            n_pos += 1
        out[u] = area(n_pos, shown - n_pos, ahead)
        if n_pos < listed and ties not in (LOSS, WIN) and n_pos + above < shown:
            size = ranks[LAST, first_row + n_pos] - n_pos, reach - above
            out[u] = mean_area_of_cut(n_pos, ahead, above, size, shown - n_pos - above)


@kernel
def area(n_pos, n_neg, ahead):
    """AUC of so many positives and negatives, `ahead` pairs of which are in the wrong order."""
    if n_pos == 0 or n_neg == 0:
        return 1.0 if n_pos > 0 else 0.0
    return 1.0 - ahead / (n_pos * n_neg)


@kernel
def mean_area_of_cut(n_pos, ahead, above, size, places):
    """Mean AUC where a tied block of `size` (positives, negatives) has fewer `places` inside.

    Of its positives x are inside with probability ``C(P, x) C(N, places - x) / C(P + N, places)``;
    these weights are formed outwards from the largest, so that none of them overflows.
    """
    P, N = size
    low = max(0, places - N)
    high = min(P, places)
    mode = min(max((places + 1) * (P + 1) // (P + N + 2), low), high)
    weights = np.ones(high - low + 1)
    for x in range(mode, high):
        more = (P - x) * (places - x) / ((x + 1.0) * (N - places + x + 1.0))
        weights[x + 1 - low] = weights[x - low] * more
    for x in range(mode - 1, low - 1, -1):
        more = (P - x) * (places - x) / ((x + 1.0) * (N - places + x + 1.0))
        weights[x - low] = weights[x + 1 - low] / more
    total = 0.0
    for x in range(low, high + 1):
        wrong = ahead + x * (above + 0.5 * (places - x))
        total += weights[x - low] * area(n_pos + x, above + places - x, wrong)
    return total / weights.sum()


@kernel
def graded_ndcg(lists, ks, discounts, ties, out, counts):
    """NDCG with graded gains, (n_users, n_ks); NaN where no gain is positive."""
    for u in range(counts.shape[0]):
        scores = lists.scores[lists.bounds[u] : lists.bounds[u + 1]]
        gains = lists.gains[lists.bounds[u] : lists.bounds[u + 1]]
        n = scores.size
        order = increasing_order(-scores)
        values = scores[order]
        gained = gains[order]
        ideal = -gains
        sort(ideal, np.empty(n))
        length = min(n, lists.lengths[u]) if lists.lengths.size else n
        # whether rows of one score but different gains stand on both sides of the cut
        if 0 < length < n and values[length - 1] == values[length]:
            block = gained[values == values[length]]
            if block.min() < block.max():
                counts[u, CUT_TIED] = 1
        for m in range(ks.size):
            top = min(ks[m], n)
            best = 0.0
            for r in range(top):
                best -= ideal[r] * discounts.at_place[r]
            out[u, m] = np.nan
            if best > 0.0:
                k = min(top, length)
                out[u, m] = graded_gain(values, gained, discounts, k, ties) / best


@kernel
def graded_gain(scores, gains, discounts, k, ties):
    """DCG over the first k places of a sorted list; tied blocks follow the tie rule."""
    total = 0.0
    start = 0
    while start < k:
        stop = start + 1
        while stop < scores.size and scores[stop] == scores[start]:
            stop += 1
        if stop - start == 1:
            total += gains[start] * discounts.at_place[start]
        elif ties in (LOSS, WIN):
            block = gains[start:stop].copy()
            sort(block, np.empty(block.size))
            for r in range(start, min(stop, k)):
                place = stop - 1 - r if ties == WIN else r - start
                total += block[place] * discounts.at_place[r]
        else:
            mean = gains[start:stop].sum() / (stop - start)
            total += mean * (discounts.sums[min(stop, k)] - discounts.sums[start])
        start = stop
    return total


@kernel
def count_rows(codes, n_values):
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
def placed(codes, starts, scores, relevant):
    """Rows of one code together, in their order, from the code's start on."""
    position = starts.copy()
    out = np.empty_like(scores), np.empty_like(relevant)
    for i in range(codes.size):
        target = position[codes[i]]
        position[codes[i]] = target + 1
        out[0][target] = scores[i]
        out[1][target] = relevant[i]
    return out
