"""Naive majorants, pair by pair, for one user's scores: (pt, qt) frozen at, (p, q) evaluated at."""

import numpy as np


def hinge(z):
    return max(z, 0.0)


def top(values, m):
    return set(np.argsort(-np.asarray(values), kind="stable")[:m].tolist())


def majorant(p, q, pt, qt, k, clipped):
    chosen = top(pt, min(len(pt), k))
    losses = [
        sum(1.0 if clipped and pt[i] < qt[j] else hinge(1 - p[i] + q[j]) for i in chosen)
        for j in range(len(q))
    ]
    return sum(sorted(losses, reverse=True)[:k]) / (len(chosen) * k)
