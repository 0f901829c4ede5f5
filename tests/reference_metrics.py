"""Ranking metrics by brute force, written from their formulas; for lists of up to eight rows."""

from itertools import permutations, product

import numpy as np


def orders(scores):
    """Every order of the rows by decreasing score, tied rows in every order."""
    blocks = [np.flatnonzero(scores == s) for s in sorted(set(scores), reverse=True)]
    for choice in product(*(permutations(block) for block in blocks)):
        yield [row for block in choice for row in block]


def _pair_gain(scores, relevant, ties, n_counted, k, denominator):
    p = sorted((s for s, r in zip(scores, relevant, strict=True) if r), reverse=True)
    q = sorted((s for s, r in zip(scores, relevant, strict=True) if not r), reverse=True)
    tie = {"loss": 1.0, "half": 0.5, "threshold": 0.5, "win": 0.0}[ties]
    wrong = 0.0
    for i in range(n_counted):
        for j in range(min(k, len(q))):
            wrong += 1.0 if q[j] > p[i] else tie * (q[j] == p[i])
    missing = denominator / n_counted - min(k, len(q))
    assert missing >= 0
    return 1.0 - wrong / denominator


def pap(scores, relevant, k, ties, few="exclude", all_positives=False):
    n_pos = int(np.sum(relevant))
    n_neg = len(relevant) - n_pos
    beta = n_pos if all_positives else min(n_pos, k)
    wide = k
    if n_neg < k:
        if few == "exclude" or (few == "normalise" and n_neg == 0):
            return np.nan
        wide = n_neg if few == "normalise" else k
    return _pair_gain(scores, relevant, ties, beta, wide, beta * wide)


def auc(scores, relevant, ties):
    n_pos = int(np.sum(relevant))
    n_neg = len(relevant) - n_pos
    if n_neg == 0:
        return np.nan
    return _pair_gain(scores, relevant, ties, n_pos, n_neg, n_pos * n_neg)


def _precision(ordered, k, _):
    return sum(ordered[:k]) / k


def _recall(ordered, k, _):
    return sum(ordered[:k]) / sum(ordered)


def _ap(ordered, _, __):
    found = [sum(ordered[: r + 1]) / (r + 1) for r, y in enumerate(ordered) if y]
    return sum(found) / len(found)


def _rr(ordered, _, __):
    return 1.0 / (1 + list(ordered).index(1))


def _ndcg(ordered, k, discount):
    def dcg(ys):
        return sum(y * discount(r + 1) for r, y in enumerate(ys[:k]))

    return dcg(list(ordered)) / dcg(sorted(ordered, reverse=True))


def _auc_at_k(ordered, k, _):
    top = list(ordered[:k])
    pos = [r for r, y in enumerate(top) if y]
    neg = [r for r, y in enumerate(top) if not y]
    if not pos or not neg:
        return float(bool(pos))
    return np.mean([a < b for a in pos for b in neg])


RANKED = {
    "precision": _precision,
    "recall": _recall,
    "ap": _ap,
    "rr": _rr,
    "ndcg": _ndcg,
    "auc_at_k": _auc_at_k,
}


def ranked(name, scores, gains, ties, k=None, discount=None):
    """A metric of an order: gains last or first in tied blocks, or the mean over all orders."""
    if ties == "threshold" and name == "ap":
        return _threshold_ap(scores, gains)

    def value(order):
        return RANKED[name]([gains[row] for row in order], k, discount)

    rows = range(len(scores))
    worst = value(sorted(rows, key=lambda r: (-scores[r], gains[r])))
    best = value(sorted(rows, key=lambda r: (-scores[r], -gains[r])))
    if ties in ("loss", "win"):
        return worst if ties == "loss" else best
    if name == "auc_at_k":
        return 0.5 * (worst + best)
    return float(np.mean([value(order) for order in orders(np.asarray(scores))]))


def _threshold_ap(scores, relevant):
    scores, relevant = np.asarray(scores), np.asarray(relevant)
    total = 0.0
    for s in sorted(set(scores)):
        total += relevant[scores == s].sum() * relevant[scores >= s].mean()
    return total / relevant.sum()


def per_user(metric, scores, labels, groups):
    """metric(scores, labels) of each sorted unique group that has a positive, else NaN."""
    values = []
    for user in sorted(set(groups)):
        rows = np.asarray(groups) == user
        has_positive = np.asarray(labels)[rows].any()
        values.append(metric(scores[rows], labels[rows]) if has_positive else np.nan)
    return np.array(values)
