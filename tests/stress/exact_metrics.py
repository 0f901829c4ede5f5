"""Ranking metrics of one list from their definitions, in fractions; nothing from the package.

Scores are Python numbers, which compare exactly whatever their types. Where a convention is a mean
over the orders of tied rows, every order is gone through.
"""

import math
from fractions import Fraction
from itertools import combinations, groupby, product

HALF = Fraction(1, 2)
EXCLUDED = None


def metric(name, rows, rules, length=None):
    """Value of one metric of one list; `EXCLUDED` where a rule leaves the list out.

    Parameters
    ----------
    name : str
        As the package names them, such as ``pap@2``.
    rows : list of (score, relevant, gain)
    rules : dict
        ties, few_negatives, no_positives, ideal.
    length : int, optional
        Places that were shown.
    """
    kind, _, k = name.partition("@")
    k = int(k) if k else None
    if kind == "ndcg" and not any(gain > 0 for _, _, gain in rows):
        return _without_positives(rules)
    if kind != "ndcg" and not any(relevant for _, relevant, _ in rows):
        return _without_positives(rules)
    if kind in ("pap", "pauc") or name == "auc":
        return _pairs(kind, k, rows, rules, length)
    if kind == "ap" and rules["ties"] == "threshold":
        return _threshold_ap(rows, length)
    return _ranked(kind, k, rows, rules, length)


def cuts_through_ties(rows, length, graded=False):
    """Whether rows of one score and different relevance (or gain) stand on both sides of a cut."""
    if length is None or length >= len(rows) or length == 0:
        return False
    ordered = sorted((score for score, _, _ in rows), reverse=True)
    if ordered[length - 1] != ordered[length]:
        return False
    what = 2 if graded else 1
    return len({row[what] for row in rows if row[0] == ordered[length]}) > 1


def _without_positives(rules):
    values = {"zero": Fraction(0), "one": Fraction(1), "nan": math.nan}
    return values.get(rules["no_positives"], EXCLUDED)


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
    listed = len(p) if length is None else _positives_listed(rows, length, rules["ties"])
    won = Fraction(0)
    for i in range(min(counted, listed)):
        lost = sum(_lost(p[i], other, rules["ties"]) for other in q[:wide])
        won += wide - lost
    return won / (counted * wide)


def _lost(p, q, ties):
    if p == q:
        return {"loss": 1, "win": 0}.get(ties, HALF)
    return int(q > p)


def _positives_listed(rows, length, ties):
    order = next(_orders(rows, ties))
    return sum(relevant for _, relevant, _ in order[:length])


def _orders(rows, ties):
    """Orders of the rows: one for 'loss' and 'win', every one that differs otherwise."""
    ordered = sorted(rows, key=lambda row: row[0], reverse=True)
    blocks = [list(block) for _, block in groupby(ordered, key=lambda row: row[0])]
    if ties in ("loss", "win"):
        sign = 1 if ties == "loss" else -1
        blocks = [sorted(block, key=lambda row: (sign * row[2], sign * row[1])) for block in blocks]
        yield [row for block in blocks for row in block]
        return
    for choice in product(*map(_arrangements, blocks)):
        yield [row for block in choice for row in block]


def n_orders(rows, ties):
    """How many orders the mean is over."""
    if ties in ("loss", "win"):
        return 1
    ordered = sorted(row[:2] for row in rows)
    blocks = [[row[1] for row in block] for _, block in groupby(ordered, key=lambda row: row[0])]
    return math.prod(math.comb(len(block), sum(block)) for block in blocks)


def _arrangements(block):
    """Orders of a block, equally likely: which places each kind of row takes."""
    kinds = sorted({(row[1], row[2]) for row in block})
    if len(kinds) == 1:
        return [block]
    if len(kinds) > 2:
        raise ValueError("at most two kinds of rows may tie here")
    score, ones = block[0][0], sum((row[1], row[2]) == kinds[1] for row in block)
    return [
        [(score, *kinds[int(place in chosen)]) for place in range(len(block))]
        for chosen in combinations(range(len(block)), ones)
    ]


def _ranked(kind, k, rows, rules, length):
    values = [_of_order(kind, k, o, rules, length) for o in _orders(rows, rules["ties"])]
    return sum(values) / len(values)


def _of_order(kind, k, order, rules, length):
    """A metric of one order of the rows."""
    shown = order if length is None else order[:length]
    relevant = [row[1] for row in shown]
    n_pos = sum(row[1] for row in order)
    if kind in ("precision", "recall"):
        return Fraction(sum(relevant[:k]), k if kind == "precision" else n_pos)
    if kind == "ap":
        hits = [place for place, one in enumerate(relevant, 1) if one]
        return sum((Fraction(i, place) for i, place in enumerate(hits, 1)), Fraction(0)) / n_pos
    if kind == "rr":
        return Fraction(1, relevant.index(True) + 1) if any(relevant) else Fraction(0)
    if kind == "auc":
        return _area(relevant[:k])
    return _ndcg(k, order, shown, rules)


def _area(top):
    if not any(top):
        return Fraction(0)
    if all(top):
        return Fraction(1)
    n_pos = sum(top)
    won = sum(not b for i, a in enumerate(top) if a for b in top[i + 1 :])
    return Fraction(won, n_pos * (len(top) - n_pos))


def _ndcg(k, order, shown, rules):
    k = len(order) if k is None else k
    gains = [row[2] for row in order]
    best = sorted(gains, reverse=True)[:k]
    if rules["ideal"] == "all_places":
        best = [1] * k
    return _dcg([row[2] for row in shown][:k]) / _dcg(best)


def _dcg(gains):
    return math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(gains, 1))


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


def mean(values, lists, rule):
    """Mean over users by a rule; ``EXCLUDED`` users do not enter; None where nobody does."""
    pairs = [
        (value, _weight(rows, rule))
        for value, rows in zip(values, lists, strict=True)
        if value is not EXCLUDED
    ]
    total = sum(weight for _, weight in pairs)
    if not total:
        return None
    return sum(value * weight for value, weight in pairs) / total


def _weight(rows, rule):
    n_pos = sum(relevant for _, relevant, _ in rows)
    return {"user": 1, "positives": n_pos, "pairs": n_pos * (len(rows) - n_pos)}[rule]
