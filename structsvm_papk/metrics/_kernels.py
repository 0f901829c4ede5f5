"""One pass over a user's list gives every ranking metric.

A metric of a binary list is a function of its sorted positives alone: how many negatives score
higher (`above`), how many score at least as high (`reach`), and how many positives score higher
(`first`) or at least as high (`last`). Negatives are therefore counted, not sorted, unless a list
holds so many positives that sorting is cheaper. Nothing here knows about conventions beyond
integer codes, and each user writes its own row of the result, so threads cannot change a number.
"""

import numpy as np
from numba import njit

from structsvm_papk._sorting import SHORT, increasing, increasing_order

PAP, PAUC, AUC, PRECISION, RECALL, AP, NDCG, RR, AUC_AT_K, HIT = range(10)
LOSS, HALF, WIN, THRESHOLD = range(4)
EXCLUDE, NORMALISE, AS_WINS = range(3)
ACHIEVABLE, ALL_PLACES = range(2)
WHOLE_LIST = 2**62
N_POS, N_NEG, LISTED_POS, LISTED_NEG, TIED, CUT_TIED = range(6)
N_COUNTS = 6

_COUNTING_FACTOR = 10


@njit(cache=True, nogil=True)
def sort_descending(values):
    """Sort in place, largest first."""
    if values.size > SHORT:
        ordered = increasing(values)
        for i in range(values.size):
            values[i] = ordered[values.size - 1 - i]
        return
    for i in range(1, values.size):
        value = values[i]
        j = i
        while j > 0 and values[j - 1] < value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(inline="always")
def split(scores, relevant, pos, neg):
    """Copy the scores of positives and negatives apart; branch-free, so both buffers hold n+1."""
    n_pos = 0
    n_neg = 0
    for j in range(scores.size):
        pos[n_pos] = scores[j]
        neg[n_neg] = scores[j]
        n_pos += relevant[j]
        n_neg += 1 - relevant[j]
    return n_pos, n_neg


@njit(inline="always")
def count_above(pos, neg, above, reach):
    """above[i] = #{neg > pos[i]}, reach[i] = #{neg >= pos[i]} for positives sorted decreasingly."""
    if pos.size > _COUNTING_FACTOR * np.log2(neg.size + 2.0):
        merge_above(pos, increasing(neg), above, reach)
        return
    for i in range(pos.size):
        p = pos[i]
        higher = 0
        at_least = 0
        for j in range(neg.size):
            higher += neg[j] > p
            at_least += neg[j] >= p
        above[i] = higher
        reach[i] = at_least


@njit(inline="always")
def merge_above(pos, ascending, above, reach):
    """The same counts from negatives sorted increasingly, by one merge."""
    n = ascending.size
    higher = 0
    at_least = 0
    for i in range(pos.size):
        while higher < n and ascending[n - 1 - higher] > pos[i]:
            higher += 1
        at_least = max(at_least, higher)
        while at_least < n and ascending[n - 1 - at_least] >= pos[i]:
            at_least += 1
        above[i] = higher
        reach[i] = at_least


@njit(inline="always")
def tie_blocks(pos, first, last):
    """first[i] = #{pos > pos[i]}, last[i] = #{pos >= pos[i]} for decreasing positives."""
    i = 0
    while i < pos.size:
        j = i + 1
        while j < pos.size and pos[j] == pos[i]:
            j += 1
        for m in range(i, j):
            first[m] = i
            last[m] = j
        i = j


@njit(cache=True, nogil=True)
def partial_area(above, reach, listed, n_counted, k, pairs, ties):
    """Share of `pairs` won by the counted positives over the k best negatives."""
    won = 0.0
    for i in range(min(listed, n_counted)):
        lost_low = min(k, above[i])
        lost_high = min(k, reach[i])
        if ties == LOSS:
            won += k - lost_high
        elif ties == WIN:
            won += k - lost_low
        else:
            won += k - 0.5 * (lost_low + lost_high)
    return won / pairs


@njit(cache=True, nogil=True)
def hits(above, reach, first, last, listed, k, ties):
    """Positives among the first k places; the expected number where ties are averaged."""
    total = 0.0
    for i in range(listed):
        if ties == LOSS:
            total += i + reach[i] < k
        elif ties == WIN:
            total += i + above[i] < k
        else:
            start = first[i] + above[i]
            size = last[i] + reach[i] - start
            total += min(max(k - start, 0), size) / size
    return total


@njit(inline="always")
def precision_sum(above, reach, first, last, listed, ties):
    """Sum over positives of the precision at their place."""
    total = 0.0
    for i in range(listed):
        if ties == LOSS:
            total += (i + 1) / (i + 1 + reach[i])
        elif ties == WIN:
            total += (i + 1) / (i + 1 + above[i])
        elif ties == THRESHOLD:
            total += last[i] / (last[i] + reach[i])
        elif i == first[i]:
            total += expected_block_precision(
                first[i], above[i], last[i] - first[i], reach[i] - above[i]
            )
    return total


@njit(inline="always")
def expected_block_precision(pos_before, neg_before, n_pos, n_neg):
    """Expected sum of precisions of one tied block over random orders (McSherry & Najork 2008)."""
    size = n_pos + n_neg
    slope = (n_pos - 1) / (size - 1) if size > 1 else 0.0
    total = 0.0
    for j in range(size):
        total += (pos_before + 1 + j * slope) / (pos_before + neg_before + j + 1)
    return total * n_pos / size


@njit(inline="always")
def discounted_gain(above, reach, first, last, listed, discount, cumulative, k, ties):
    """DCG of unit gains over the first k places: sum of the discounts of the positives."""
    total = 0.0
    for i in range(listed):
        if ties == LOSS:
            place = i + reach[i]
            if place < k:
                total += discount[place]
        elif ties == WIN:
            place = i + above[i]
            if place < k:
                total += discount[place]
        else:
            start = first[i] + above[i]
            stop = last[i] + reach[i]
            total += block_discount(discount, cumulative, start, stop, k)
    return total


@njit(inline="always")
def block_discount(discount, cumulative, start, stop, k):
    """Mean discount of the places start..stop-1, those from k on counting 0."""
    end = min(stop, k)
    if end <= start:
        return 0.0
    if stop - start == 1:
        return discount[start]
    return (cumulative[end] - cumulative[start]) / (stop - start)


@njit(inline="always")
def first_hit(above, reach, last, ties):
    """1 / place of the first positive; its expectation where ties are averaged."""
    if ties == LOSS:
        return 1.0 / (1 + reach[0])
    if ties == WIN:
        return 1.0 / (1 + above[0])
    n_pos = last[0]
    left = n_pos + reach[0] - above[0]
    none_yet = 1.0
    total = 0.0
    place = above[0] + 1
    while none_yet > 0.0 and left >= n_pos:
        hit = n_pos / left
        total += none_yet * hit / place
        none_yet *= 1.0 - hit
        left -= 1
        place += 1
    return total


@njit(cache=True, nogil=True)
def any_hit(above, reach, last, k, ties):
    """Whether a positive is among the first k places; its probability where ties are averaged."""
    if ties == LOSS:
        return 1.0 if reach[0] < k else 0.0
    if ties == WIN:
        return 1.0 if above[0] < k else 0.0
    n_pos = last[0]
    size = n_pos + reach[0] - above[0]
    none_yet = 1.0
    for i in range(min(max(k - above[0], 0), size)):
        none_yet *= max(size - n_pos - i, 0) / (size - i)
    return 1.0 - none_yet


@njit(cache=True, nogil=True)
def area_at_k(ahead, listed, n, k):
    """AUC inside the first k places; 1 if they hold positives only, 0 if negatives only."""
    n_pos = 0
    while n_pos < listed and n_pos + ahead[n_pos] < k:
        n_pos += 1
    n_neg = min(k, n) - n_pos
    if n_pos == 0:
        return 0.0
    if n_neg == 0:
        return 1.0
    won = 0.0
    for i in range(n_pos):
        won += n_neg - ahead[i]
    return won / (n_pos * n_neg)


@njit(inline="always")
def metric_value(code, k, n_pos, n_neg, listed, length, work, discount, cumulative, rules):
    """One metric of one user with at least one positive; NaN where it is not defined."""
    above, reach, first, last = work[0], work[1], work[2], work[3]
    ties, few, ideal_rule = rules
    if code in (PAP, PAUC):
        wide = k
        if n_neg < k:
            if few == EXCLUDE or (few == NORMALISE and n_neg == 0):
                return np.nan
            if few == NORMALISE:
                wide = n_neg
        counted = min(n_pos, k) if code == PAP else n_pos
        return partial_area(above, reach, listed, counted, wide, float(counted) * wide, ties)
    if code == AUC:
        if n_neg == 0:
            return np.nan
        return partial_area(above, reach, listed, n_pos, n_neg, float(n_pos) * n_neg, ties)
    if code == PRECISION:
        return hits(above, reach, first, last, listed, k, ties) / k
    if code == RECALL:
        return hits(above, reach, first, last, listed, k, ties) / n_pos
    if code == AP:
        return precision_sum(above, reach, first, last, listed, ties) / n_pos
    if code == NDCG:
        top = min(k, n_pos + n_neg)
        ideal = cumulative[min(top, n_pos)]
        if ideal_rule == ALL_PLACES:
            ideal = cumulative[min(k, cumulative.size - 1) if k < WHOLE_LIST else top]
        shown = min(top, length)
        return (
            discounted_gain(above, reach, first, last, listed, discount, cumulative, shown, ties)
            / ideal
        )
    if code == HIT:
        return any_hit(above, reach, last, k, ties) if listed > 0 else 0.0
    if code == RR:
        return first_hit(above, reach, last, ties) if listed > 0 else 0.0
    low = 0.0
    high = 0.0
    if ties != WIN:
        low = area_at_k(reach, listed, length, k)
        if ties == LOSS:
            return low
    high = area_at_k(above, listed, length, k)
    return high if ties == WIN else 0.5 * (low + high)


@njit(inline="always")
def listed_positives(work, n_pos, length, ties, count):
    """How many of the sorted positives are inside a list cut after `length` places.

    A block of tied positives that the cut goes through ends at the cut: what is not shown takes no
    place. Whether the cut separates tied positives and negatives goes into `count`.
    """
    above, reach, first, last = work[0], work[1], work[2], work[3]
    listed = 0
    for i in range(n_pos):
        ahead = above[i] if ties == WIN else reach[i]
        listed += i + ahead < length
        if first[i] + above[i] < length < last[i] + reach[i] and reach[i] > above[i]:
            count[CUT_TIED] = 1
    for i in range(listed):
        last[i] = min(last[i], listed)
    return listed


@njit(inline="always")
def has_tied_pair(work, n_pos):
    """Whether a positive and a negative share a score."""
    for i in range(n_pos):
        if work[1, i] > work[0, i]:
            return 1
    return 0


@njit(inline="always")
def rank_user(scores, relevant, pos, neg, work, length, ties, count):
    """Fill the work arrays and counts of one user; return the positives inside its list."""
    n_pos, n_neg = split(scores, relevant, pos, neg)
    sorted_pos = pos[:n_pos]
    sort_descending(sorted_pos)
    count_above(sorted_pos, neg[:n_neg], work[0], work[1])
    tie_blocks(sorted_pos, work[2], work[3])
    count[N_POS] = n_pos
    count[N_NEG] = n_neg
    count[TIED] = has_tied_pair(work, n_pos)
    listed = n_pos
    if length < scores.size:
        listed = listed_positives(work, n_pos, length, ties, count)
    count[LISTED_POS] = listed
    count[LISTED_NEG] = length - listed
    return listed


@njit(cache=True, nogil=True)
def fused_metrics(
    scores,
    relevant,
    indptr,
    lengths,
    codes,
    ks,
    discount,
    cumulative,
    rules,
    start,
    stop,
    out,
    counts,
):
    """Every requested metric of the users start..stop-1, one pass over their rows.

    out : (n_users, n_metrics), NaN where undefined; counts : (n_users, N_COUNTS);
    lengths : places shown per user, or empty when every list is complete;
    rules : codes of the rules for ties, few negatives and the ideal DCG.
    """
    ties = rules[0]
    longest = 0
    for u in range(start, stop):
        longest = max(longest, indptr[u + 1] - indptr[u])
    pos = np.empty(longest + 1)
    neg = np.empty(longest + 1)
    work = np.empty((4, longest + 1), dtype=np.int64)
    for u in range(start, stop):
        begin = indptr[u]
        end = indptr[u + 1]
        length = end - begin
        if lengths.size:
            length = min(length, lengths[u])
        listed = rank_user(
            scores[begin:end], relevant[begin:end], pos, neg, work, length, ties, counts[u]
        )
        n_pos = counts[u, N_POS]
        for m in range(codes.size):
            out[u, m] = np.nan
            if n_pos > 0:
                out[u, m] = metric_value(
                    codes[m],
                    ks[m],
                    n_pos,
                    counts[u, N_NEG],
                    listed,
                    length,
                    work,
                    discount,
                    cumulative,
                    rules,
                )


@njit(cache=True, nogil=True)
def graded_ndcg(
    scores, gains, indptr, lengths, ks, discount, cumulative, ties, start, stop, out, counts
):
    """NDCG@k with graded gains of the users start..stop-1; NaN where no gain is positive."""
    for u in range(start, stop):
        begin = indptr[u]
        end = indptr[u + 1]
        n = end - begin
        order = increasing_order(-scores[begin:end])
        sorted_scores = scores[begin:end][order]
        sorted_gains = gains[begin:end][order]
        ideal = gains[begin:end].copy()
        sort_descending(ideal)
        length = min(n, lengths[u]) if lengths.size else n
        if cuts_gains(sorted_scores, sorted_gains, length):
            counts[u, CUT_TIED] = 1
        for m in range(ks.size):
            top = min(ks[m], n)
            best = 0.0
            for r in range(top):
                best += ideal[r] * discount[r]
            out[u, m] = np.nan
            if best > 0.0:
                out[u, m] = (
                    graded_gain(
                        sorted_scores, sorted_gains, discount, cumulative, min(top, length), ties
                    )
                    / best
                )


@njit(cache=True, nogil=True)
def cuts_gains(scores, gains, length):
    """Whether rows of one score but different gains stand on both sides of place `length`."""
    if length == 0 or length == scores.size or scores[length - 1] != scores[length]:
        return False
    i = length
    while i > 0 and scores[i - 1] == scores[length]:
        i -= 1
    first = gains[i]
    while i < scores.size and scores[i] == scores[length]:
        if gains[i] != first:
            return True
        i += 1
    return False


@njit(cache=True, nogil=True)
def graded_gain(scores, gains, discount, cumulative, k, ties):
    """DCG over the first k places of a sorted list; tied blocks follow the tie rule."""
    total = 0.0
    start = 0
    while start < k:
        stop = start + 1
        while stop < scores.size and scores[stop] == scores[start]:
            stop += 1
        if stop - start == 1:
            total += gains[start] * discount[start]
        elif ties in (LOSS, WIN):
            block = gains[start:stop].copy()
            sort_descending(block)
            for r in range(start, min(stop, k)):
                best = block[r - start]
                total += (best if ties == WIN else block[stop - 1 - r]) * discount[r]
        else:
            mean = gains[start:stop].sum() / (stop - start)
            total += mean * (cumulative[min(stop, k)] - cumulative[start])
        start = stop
    return total


@njit(cache=True, nogil=True)
def count_rows(codes, previous, start, stop, counts):
    """Count the codes of the rows start..stop-1; whether they never decrease from `previous` on."""
    in_order = True
    last = codes[previous] if previous < codes.size else 0
    for i in range(start, stop):
        counts[codes[i]] += 1
        in_order &= codes[i] >= last
        last = codes[i]
    return in_order


@njit(cache=True, nogil=True)
def scatter_rows(codes, position, scores, relevant, out_scores, out_relevant):
    """Place each row behind the rows of its group placed so far; `position` is consumed."""
    for i in range(codes.size):
        target = position[codes[i]]
        position[codes[i]] = target + 1
        out_scores[target] = scores[i]
        out_relevant[target] = relevant[i]


@njit(cache=True, nogil=True)
def stable_order(codes, position, order):
    """Stable permutation that groups equal codes; `position` is consumed."""
    for i in range(codes.size):
        order[position[codes[i]]] = i
        position[codes[i]] += 1
