"""Naive majorants, pair by pair, for one user's scores: (pt, qt) frozen at, (p, q) evaluated at."""

import numpy as np


def hinge(z):
    return max(z, 0.0)


def top(values, m):
    return set(np.argsort(-np.asarray(values), kind="stable")[:m].tolist())


def hinges(p_i, q, k, margin):
    """``h^m_i``: the positive against the k best negatives."""
    return sum(hinge(margin - p_i + b) for b in sorted(q, reverse=True)[:k])


def tangent(i, pt, qt, p, q, k, margin):
    """``lin h^m_i`` at (p, q): the active pairs at (pt, qt) as they stand now."""
    pairs = [j for j in top(qt, k) if margin - pt[i] + qt[j] > 0]
    return sum(margin - p[i] + q[j] for j in pairs)


def latent(p, q, pt, qt, k, clipped):
    chosen = top(pt, min(len(pt), k))
    losses = [
        sum(1.0 if clipped and pt[i] < qt[j] else hinge(1 - p[i] + q[j]) for i in chosen)
        for j in range(len(q))
    ]
    return sum(sorted(losses, reverse=True)[:k]) / (len(chosen) * k)


def mixed(p, q, pt, qt, k, clipped):
    chosen = top(pt, min(len(pt), k))
    value = sum(hinges(p[i], q, k, 1) for i in chosen)
    if clipped:
        value -= sum(tangent(i, pt, qt, p, q, k, 0) for i in chosen)
    return value / (len(chosen) * k)


def linearised(p, q, pt, qt, k, clipped):
    beta = min(len(pt), k)
    rest = set(range(len(pt))) - top(pt, beta)
    value = sum(hinges(a, q, k, 1) for a in p)
    value -= sum(tangent(i, pt, qt, p, q, k, 1) for i in rest)
    if clipped:
        value += sum(hinges(a, q, k, 0) for a in sorted(p)[: len(p) - beta])
        value -= sum(tangent(i, pt, qt, p, q, k, 0) for i in range(len(pt)))
    return value / (beta * k)


MAJORANTS = {"latent": latent, "mixed": mixed, "linearised": linearised}
