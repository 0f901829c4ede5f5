"""Ranking metrics by brute force, written from their formulas; for lists of up to eight rows."""

import math
from fractions import Fraction
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


def _precision(ordered, k, _, length):
    return Fraction(int(sum(ordered[: min(k, length)])), k)


def _hit(ordered, k, _, length):
    return Fraction(bool(sum(ordered[: min(k, length)])))


def _recall(ordered, k, _, length):
    return Fraction(int(sum(ordered[: min(k, length)])), int(sum(ordered)))


def _ap(ordered, _, __, length):
    terms = [
        Fraction(int(sum(ordered[: r + 1])), r + 1) for r, y in enumerate(ordered[:length]) if y
    ]
    return sum(terms) / Fraction(int(sum(ordered)))


def _rr(ordered, _, __, length):
    hits = [r for r, y in enumerate(ordered[:length]) if y]
    return Fraction(1, 1 + hits[0]) if hits else Fraction(0)


def _ndcg(ordered, k, discount, length):
    def dcg(ys):
        return math.fsum(y * discount(r + 1) for r, y in enumerate(ys))

    return dcg(ordered[: min(k, length)]) / dcg(sorted(ordered, reverse=True)[:k])


def _auc_at_k(ordered, k, _, length):
    top = list(ordered[: min(k, length)])
    pos = [r for r, y in enumerate(top) if y]
    neg = [r for r, y in enumerate(top) if not y]
    if not pos or not neg:
        return Fraction(bool(pos))
    return Fraction(sum(a < b for a in pos for b in neg), len(pos) * len(neg))


def _pap(ordered, k, few, length, all_positives=False):
    """Each counted positive that is shown wins k pairs less the negatives before it."""
    places = [r for r, y in enumerate(ordered) if y]
    counted = places if all_positives else places[:k]
    n_neg = len(ordered) - len(places)
    if n_neg < k and (few not in ("normalise", "as_wins") or (few == "normalise" and not n_neg)):
        return np.nan
    wide = min(k, n_neg) if few == "normalise" else k
    won = sum(wide - min(wide, r - i) for i, r in enumerate(counted) if r < length)
    return Fraction(won, len(counted) * wide)


def _pauc(ordered, k, few, length):
    return _pap(ordered, k, few, length, all_positives=True)


RANKED = {
    "precision": _precision,
    "recall": _recall,
    "hit": _hit,
    "ap": _ap,
    "rr": _rr,
    "ndcg": _ndcg,
    "auc_at_k": _auc_at_k,
    "pap": _pap,
    "pauc": _pauc,
}
_MEAN_OF_THE_EXTREMES = ("pap", "pauc")  # made of pairs: a tied one counts one half


def ranked(name, scores, gains, ties, k=None, option=None, length=None):
    """A metric of an order: gains last or first in tied blocks, or the mean over all orders.

    `option` is the discount of NDCG, or the rule of pAp and pAUC for few negatives. Only the first
    `length` places are shown; by default all are.
    """
    length = len(scores) if length is None else length
    if ties == "threshold" and name == "ap":
        return _threshold_ap(scores, gains, length)

    def value(order):
        return RANKED[name]([gains[row] for row in order], k, option, length)

    rows = range(len(scores))
    worst = value(sorted(rows, key=lambda r: (-scores[r], gains[r])))
    best = value(sorted(rows, key=lambda r: (-scores[r], -gains[r])))
    if ties in ("loss", "win"):
        return float(worst if ties == "loss" else best)
    if name in _MEAN_OF_THE_EXTREMES:
        return float((worst + best) / 2)
    values = [value(order) for order in orders(np.asarray(scores))]
    # discounts are floats: their sum is rounded once; everything else is exact
    return math.fsum(values) / len(values) if name == "ndcg" else float(sum(values) / len(values))


def cuts_a_tie(scores, gains, length):
    """Whether the places shown depend on the order of rows that tie but differ in gain."""
    in_order = sorted(scores, reverse=True)
    if not 0 < length < len(scores) or in_order[length - 1] != in_order[length]:
        return False
    block = np.asarray(scores) == in_order[length]
    return len(set(np.asarray(gains)[block].tolist())) > 1


def _threshold_ap(scores, relevant, length):
    """Of the list as shown: a block of equal scores is one threshold."""
    order = sorted(range(len(scores)), key=lambda r: -scores[r])[:length]
    total = Fraction(0)
    for s in {scores[r] for r in order}:
        block = [relevant[r] for r in order if scores[r] == s]
        called = [relevant[r] for r in order if scores[r] >= s]
        total += int(sum(block)) * Fraction(int(sum(called)), len(called))
    return float(total / int(sum(relevant)))


def per_user(metric, scores, labels, groups):
    """metric(scores, labels) of each sorted unique group that has a positive, else NaN."""
    values = []
    for user in sorted(set(groups)):
        rows = np.asarray(groups) == user
        has_positive = np.asarray(labels)[rows].any()
        values.append(metric(scores[rows], labels[rows]) if has_positive else np.nan)
    return np.array(values)
