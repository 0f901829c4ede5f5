"""Ranking metrics of one list from their definitions, in fractions; nothing from the package.

Scores are Python numbers, which compare exactly whatever their types. Where a convention is a mean
over the orders of tied rows, every order is gone through.
"""

import math
from fractions import Fraction
from itertools import groupby, product

HALF = Fraction(1, 2)
EXCLUDED = None


def per_user(name, scores, labels, groups=None, lengths=None, gains=None, **rules):
    """A metric of every user as floats, NaN where it is left out; only `lengths` are shown.

    Labels above zero are relevant; `gains` are the labels unless given.
    """
    lists, users = {}, [0] * len(scores) if groups is None else plain(groups)
    gains = labels if gains is None else gains
    for user, score, label, gain in zip(*map(plain, (users, scores, labels, gains)), strict=True):
        lists.setdefault(user, []).append((score, label > 0, gain))
    lengths = [None] * len(lists) if lengths is None else lengths
    rules = {"ties": "loss", "few_negatives": "exclude", "no_positives": "exclude"} | rules
    pairs = zip(sorted(lists), lengths, strict=True)
    values = [metric(name, lists[user], rules, length) for user, length in pairs]
    return [math.nan if value is EXCLUDED else float(value) for value in values]


def plain(column):
    """As a list of Python values."""
    return column.tolist() if hasattr(column, "tolist") else list(column)


def metric(name, rows, rules, length=None):
    """Value of one metric of one list; `EXCLUDED` where a rule leaves the list out.

    Parameters
    ----------
    name : str
        As the package names them, such as ``pap@2``.
    rows : list of (score, relevant, gain)
    rules : dict
        ties, few_negatives, no_positives; discount of NDCG if not the usual one.
    length : int, optional
        Places that were shown.
    """
    kind, _, k = name.partition("@")
    k = int(k) if k else None
    place = 2 if kind in ("ndcg", "err") else 1
    if not any(row[place] > 0 for row in rows):
        values = {"zero": Fraction(0), "one": Fraction(1), "nan": math.nan}
        return values.get(rules["no_positives"], EXCLUDED)
    if kind in ("pap", "pauc") or name == "auc":
        return _pairs(kind, k, rows, rules, length)
    if kind == "auc" and rules["ties"] in ("half", "threshold"):
        return _area_of_shares(k, rows, length)
    if kind == "ap" and rules["ties"] == "threshold":
        return _threshold_ap(rows, length)
    values = [_of_order(kind, k, order, rules, length) for order in orders(rows, rules["ties"])]
    # discounts are floats: their sum is rounded once; everything else is exact
    return (math.fsum(values) if kind == "ndcg" else sum(values)) / len(values)


def _pairs(kind, k, rows, rules, length):
    """Share of correct pairs of the best positives and the best negatives."""
    p = sorted((score for score, relevant, _ in rows if relevant), reverse=True)
    q = sorted((score for score, relevant, _ in rows if not relevant), reverse=True)
    wide = len(q) if kind == "auc" else k
    if len(q) < wide and rules["few_negatives"] == "normalise":
        wide = len(q)
    if not wide or (len(q) < wide and rules["few_negatives"] == "exclude"):
        return EXCLUDED
    counted = min(len(p), k) if kind == "pap" else len(p)
    shown = next(orders(rows, rules["ties"]))[:length]
    won = Fraction(0)
    for positive in p[: min(counted, sum(row[1] for row in shown))]:
        won += wide - sum(_lost(positive, other, rules["ties"]) for other in q[:wide])
    return won / (counted * wide)


def _lost(p, q, ties):
    if p == q:
        return {"loss": 1, "win": 0}.get(ties, HALF)
    return int(q > p)


def orders(rows, ties):
    """Orders of the rows: one for 'loss' and 'win', every one that differs otherwise."""
    ordered = sorted(rows, key=lambda row: row[0], reverse=True)
    blocks = [list(block) for _, block in groupby(ordered, key=lambda row: row[0])]
    if ties in ("loss", "win"):
        sign = 1 if ties == "loss" else -1
        blocks = [sorted(block, key=lambda row: (sign * row[2], sign * row[1])) for block in blocks]
        yield [row for block in blocks for row in block]
        return
    for choice in product(*(list(_arrangements(block)) for block in blocks)):
        yield [row for block in choice for row in block]


def _arrangements(block):
    """Orders of a block that differ, all of them equally likely."""
    if len(set(block)) <= 1:
        yield block
        return
    for first in set(block):
        rest = list(block)
        rest.remove(first)
        for order in _arrangements(rest):
            yield [first, *order]


def _of_order(kind, k, order, rules, length):
    """A metric of one order of the rows."""
    shown = order if length is None else order[:length]
    relevant = [row[1] for row in shown]
    n_pos = sum(row[1] for row in order)
    if kind in ("precision", "recall"):
        return Fraction(sum(relevant[:k]), k if kind == "precision" else n_pos)
    if kind == "hit":
        return Fraction(any(relevant[:k]))
    if kind == "ap":
        hits = [place for place, one in enumerate(relevant, 1) if one]
        return sum((Fraction(i, place) for i, place in enumerate(hits, 1)), Fraction(0)) / n_pos
    if kind == "rr":
        return Fraction(1, relevant.index(True) + 1) if any(relevant) else Fraction(0)
    if kind == "auc":
        return _area(relevant[:k])
    if kind == "err":
        return _err([row[2] for row in shown[:k]])
    return _ndcg(k, order, shown, rules)


def _err(grades):
    """Chapelle et al. 2009 with grades 0 to 4: a reader stops at the first item that contents."""
    going_on, total = Fraction(1), Fraction(0)
    for place, grade in enumerate(grades, 1):
        stops = Fraction(2 ** int(grade) - 1, 16)
        total += going_on * stops / place
        going_on *= 1 - stops
    return total


def _area_of_shares(k, rows, length):
    """AUC of the first k places; a tied block counts by its share inside, half of its pairs won."""
    left = min(k, len(rows) if length is None else length)
    n_pos, n_neg, won = Fraction(0), Fraction(0), Fraction(0)
    for score in sorted({row[0] for row in rows}, reverse=True):
        block = [row[1] for row in rows if row[0] == score]
        share = min(Fraction(left, len(block)), Fraction(1))
        positives, negatives = share * sum(block), share * (len(block) - sum(block))
        won += n_pos * negatives + positives * negatives / 2
        n_pos, n_neg = n_pos + positives, n_neg + negatives
        left -= min(left, len(block))
    if not n_pos or not n_neg:
        return Fraction(bool(n_pos))
    return won / (n_pos * n_neg)


def _area(top):
    if all(top) or not any(top):
        return Fraction(any(top))
    n_pos = sum(top)
    won = sum(not b for i, a in enumerate(top) if a for b in top[i + 1 :])
    return Fraction(won, n_pos * (len(top) - n_pos))


def _ndcg(k, order, shown, rules):
    k = len(order) if k is None else k
    best = sorted((row[2] for row in order), reverse=True)[:k]
    discount = rules.get("discount", lambda place: 1 / math.log2(place + 1))

    def dcg(gains):
        return math.fsum(gain * discount(place) for place, gain in enumerate(gains, 1))

    return dcg([row[2] for row in shown][:k]) / dcg(best)


def _threshold_ap(rows, length):
    """``sum over thresholds (R_n - R_{n-1}) P_n``, of the rows that were shown."""
    n_pos = sum(relevant for _, relevant, _ in rows)
    rows = sorted(rows, key=lambda row: row[0], reverse=True)[:length]
    total = Fraction(0)
    for score in {row[0] for row in rows}:
        above = [relevant for other, relevant, _ in rows if other >= score]
        own = sum(relevant for other, relevant, _ in rows if other == score)
        total += own * Fraction(sum(above), len(above))
    return total / n_pos
