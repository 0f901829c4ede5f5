"""How do I score rows without this package?

With the functions below, which need Python's standard library alone: copy them. `export_weights`
gives what they read, and json.dump writes it to a file. They take the rows of one list. A row is a
dict of values by column, in which None or NaN is a missing value.
"""

import json
from bisect import bisect_right


def scores(plain, rows):
    """Scores by what `export_weights` returned; larger ranks higher."""
    if "weights" in plain:
        return [sum(w * row[name] for name, w in plain["weights"].items()) for row in rows]
    lowest = {}
    if plain["missing"] == "lowest":
        lowest = plain.get("lowest") or lowest_of(rows, plain["falling"])
    return [sum(added(term, row, lowest) for term in plain["terms"]) for row in rows]


def lowest_of(rows, falling):
    """What stands in for a missing value of each column in the list of these rows."""
    lowest = {}
    for name in rows[0]:
        there = [row[name] for row in rows if not is_missing(row[name])]
        lowest[name] = (max if name in falling else min)(there, default=0.0)
    return lowest


def is_missing(x):
    """Whether a value is None or NaN."""
    return x is None or x != x


def added(term, row, lowest):
    """What a term adds to the score of a row."""
    if term["kind"] == "pair":
        first, second = term["columns"]
        i = cell(term["cells"][0], row[first])
        j = cell(term["cells"][1], row[second])
        return 0.0 if None in (i, j) else term["weights"][i][j]
    x = row[term["column"]]
    if is_missing(x):
        gap = term["gap"] or 0.0
        if term["kind"] == "levels":
            return gap
        if lowest:
            return gap + added(term, lowest, {})
        if term["gap"] is None:
            raise ValueError(f"{term['column']!r} is missing, and never was in training")
        return gap
    if term["kind"] == "levels":
        known = x in term["levels"]
        return term["weights"][term["levels"].index(x)] if known else 0.0
    knots = term["knots"]
    if term["kind"] == "line":
        return term["slope"] * (x - knots[0])
    x = min(max(x, knots[0]), knots[-1])
    i = min(bisect_right(knots, x), len(knots) - 1) - 1
    share = (x - knots[i]) / (knots[i + 1] - knots[i])
    return (1 - share) * term["values"][i] + share * term["values"][i + 1]


def cell(cut, x):
    """The row or column of a pair's weights that a value is in; None for a new level."""
    if "edges" in cut:
        return len(cut["edges"]) + 1 if is_missing(x) else bisect_right(cut["edges"], x)
    if is_missing(x):
        return len(cut["levels"])
    return cut["levels"].index(x) if x in cut["levels"] else None


if __name__ == "__main__":
    from structsvm_papk import PAPKRanker
    from structsvm_papk.datasets import engagement_lists

    lists = engagement_lists(n_users=80, n_features=5, noise=1.0, seed=4)
    ranker = PAPKRanker(k=10, alpha=0.1, curves=8)
    ranker.fit(lists.X, lists.y, groups=lists.groups)
    plain = json.loads(json.dumps(ranker.export_weights()))
    rows = [{f"x{j}": value for j, value in enumerate(row)} for row in lists.X.tolist()]
    differences = abs(scores(plain, rows) - ranker.predict(lists.X))
    print(f"{len(rows)} rows, no score differs by 1e-12: {differences.max() < 1e-12}")
