"""Naive definitions for margins and bounds, written from the formulas."""

from fractions import Fraction
from itertools import combinations
from math import comb, e, log, sqrt

import numpy as np
from scipy import optimize, special


def margins_by_subsets(p, q, k):
    """Largest delta of each condition by enumerating the sets of beta positives, exactly."""
    p, q = [Fraction(float(v)) for v in p], [Fraction(float(v)) for v in q]
    beta, top = min(len(p), k), max(q)
    sets = list(combinations(p, beta))
    weak = max(min(chosen) for chosen in sets) - top
    return {
        "weak": weak,
        "beta": min(sum(chosen) / beta for chosen in sets) - top,
        "moderate": weak if all(v >= top for v in p) else None,
        "strong": min(p) - top,
    }


def separable(pos, neg, strictly=None):
    """Whether some w puts all of pos at or above all of neg, those of `strictly` (all) above."""
    strict = np.isin(np.arange(len(pos)), np.arange(len(pos)) if strictly is None else strictly)
    differences = np.array([a - b for a in pos for b in neg])
    d = differences.shape[1]
    result = optimize.linprog(
        np.r_[np.zeros(d), -1.0],
        A_ub=np.c_[-differences, np.repeat(strict, len(neg)).astype(float)],
        b_ub=np.zeros(len(differences)),
        bounds=[(-1, 1)] * d + [(None, None)],
    )
    return -result.fun > 1e-7


def exists_by_subsets(X_pos, X_neg, k):
    """Which conditions some linear w realises, by enumerating subsets."""
    n, beta = len(X_pos), min(len(X_pos), k)
    sets = list(combinations(range(n), beta))
    means = [X_pos[list(s)].mean(axis=0) for s in sets]
    return {
        "weak": any(separable(X_pos[list(s)], X_neg) for s in sets),
        "beta": separable(np.array(means), X_neg),
        "moderate": any(separable(X_pos, X_neg, s) for s in sets),
        "strong": separable(X_pos, X_neg),
    }


def cover_count(n, p):
    return 2 * sum(comb(n - 1, i) for i in range(p + 1))


def sauer(n, d):
    return (e * n / d) ** d if n >= d else 2.0**n


def absolute_deviation(n, delta, growth, sizes):
    return min(
        1 / m + sqrt((n + m) * (m + 1) / (2 * n * m * m) * (log(growth(n + m)) + log(2 / delta)))
        for m in sizes
    )


def relative_deviation(n, b, delta, growth, sizes):
    return min(
        1 / m + b * (n + m) / m * sqrt(2 * (log(growth(n + m)) + log(2 / delta)) / (b * n))
        for m in sizes
    )


def binomial_cdf(j, n, p):
    return sum(comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(min(j, n) + 1))


def kl(p, q):
    return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def kl_up(p, level):
    low, high = p, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if middle < 1 and kl(p, middle) <= level else (low, middle)
    return high


def top_risk(p, q, n_pos, n_neg):
    p, q = sorted(p, reverse=True)[:n_pos], sorted(q, reverse=True)[:n_neg]
    return np.mean([a <= b for a in p for b in q])


def shift(p, q, k, rho):
    """The order-statistic interval, step by step."""
    n_pos, n_neg, beta = len(p), len(q), min(len(p), k)
    a, b = beta / n_pos, k / n_neg
    r_pos, r_neg = rho / 8 * (a < 1), rho / 8 * (b < 1)
    level = log(1 / (rho / 2 - r_pos - r_neg))

    def above(n, share, r):
        reached = (j for j in range(n + 1) if binomial_cdf(j, n, share) >= 1 - r)
        return n if share == 1 else next(reached)

    def below(n, share, r):
        rare = (j for j in range(n + 1) if binomial_cdf(j, n, share) <= r)
        return n if share == 1 else max(rare, default=-1)

    upper, lower = 1.0, 0.0
    i, j = above(n_pos, a, r_pos), below(n_neg, b, r_neg)
    if j >= 1:
        upper = kl_up(top_risk(p, q, i, j), level / min(i, j))
    i, j = below(n_pos, a, r_pos), above(n_neg, b, r_neg)
    if i >= 1:
        lower = 1 - kl_up(1 - top_risk(p, q, i, j), level / min(i, j))
    return lower, upper
