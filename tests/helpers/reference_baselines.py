"""Naive definitions of what the baselines minimise."""

from itertools import combinations


def prec_avg_by_subsets(p, q, k):
    """Kar et al. (2015), by enumeration of every set of k items put on top (n_pos >= k).

    1/k max over tops of [ false positives + their scores - (k - h)/(n_pos - h) * sum of the
    positives left out ], h the number of positives on top.
    """
    items = [(s, True) for s in p] + [(s, False) for s in q]
    best = -float("inf")
    for top in combinations(range(len(items)), k):
        h = sum(items[i][1] for i in top)
        value = k - h + sum(items[i][0] for i in top if not items[i][1])
        if h < k:
            missed = sum(s for i, (s, pos) in enumerate(items) if pos and i not in top)
            value -= (k - h) / (len(p) - h) * missed
        best = max(best, value)
    return best / k


def prec_avg_few_positives(p, q, k, weight=None):
    """The extension to n_pos < k, written from the formula; `weight` is n_pos, or k if balanced."""
    weight = weight or len(p)
    p, q = sorted(p, reverse=True), sorted(q, reverse=True)
    values = [
        k - h + sum(q[: k - h]) - (weight - h) / (len(p) - h) * sum(p[h:]) for h in range(len(p))
    ]
    return max(values) / k


def precision_risk(p, q, k):
    """1 - precision@k, ties against the positives."""
    merged = sorted(
        [(s, 0) for s in p] + [(s, 1) for s in q], key=lambda item: (-item[0], -item[1])
    )
    return sum(kind for _, kind in merged[:k]) / k
