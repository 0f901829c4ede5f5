"""Naive definitions, written from the formulas, for one user's positives p and negatives q.

``beta = min(n_pos, k)`` positives count and m negatives: the depth, k where it is not given.
"""

from itertools import combinations, permutations, product

import numpy as np

from helpers import exact_risk


def hinge(z):
    return max(z, 0)  # a fraction stays one


def _sorted(p, q, k, m=None):
    return sorted(p, reverse=True), sorted(q, reverse=True)[: m or k], min(len(p), k)


def risk(p, q, k):
    """Definition 1 by enumeration: ties count as errors."""
    p, q, beta = _sorted(p, q, k)
    return sum(a <= b for a in p[:beta] for b in q) / (beta * k)


def of_a_list(formula):
    """The formula at unsorted scores; fractions stay fractions."""

    def value(p, q, k, m=None):
        p, q = (np.array(sorted(scores, reverse=True))[:, None] for scores in (p, q))
        return formula(p, q[: m or k], k)[0]

    return value


def ts_alg2(p, q, k, m=None):
    p, q, beta = _sorted(p, q, k, m)
    top = sum(hinge(1 - a + b) for a in p[:beta] for b in q)
    return (top + sum(hinge(b - a) for a in p[beta:] for b in q)) / (beta * len(q))


def ts(p, q, k, m=None):
    """Equation (14): every subset of negatives, every row-sorted ordering matrix of it.

    An entry pi[i][j] = 1 says that negative j is put above positive i. Orderings are those of a
    merged list: all ways to place each positive at a level of some order of the negatives.
    """
    beta, m = min(len(p), k), m or k
    best = -np.inf
    for chosen in combinations(q, m):
        for order in permutations(chosen):
            for rows in product(range(m + 1), repeat=len(p)):
                loss = sum(sorted(rows)[:beta])
                gain = sum(sum(order[:r]) - r * a for r, a in zip(rows, p, strict=True))
                best = max(best, loss + gain)
    return best / (beta * m)


avg, maximum, pauc, ramp, clipped_ramp = map(
    of_a_list,
    (exact_risk.avg, exact_risk.maximum, exact_risk.pauc, exact_risk.ramp, exact_risk.clipped_ramp),
)


def majorant(p, q, pt, qt, k, clipped):
    """The majorant of a ramp that is frozen at (pt, qt), at the scores (p, q)."""
    chosen = np.argsort(-np.asarray(pt), kind="stable")[: min(len(pt), k)]
    losses = [
        sum(1.0 if clipped and pt[i] < qt[j] else hinge(1 - p[i] + q[j]) for i in chosen)
        for j in range(len(q))
    ]
    return sum(sorted(losses, reverse=True)[:k]) / (len(chosen) * k)
