"""Additive functions that are known, for whoever scores with them."""

import numpy as np
import pandas as pd

from structsvm_papk.data.columns.terms import AdditiveFunction, Curve, Cut, Levels, Pair


def lines(slopes, names=None):
    """A line through 0 for each column."""
    slopes = np.asarray(slopes, dtype=float)
    names = tuple(map(str, range(slopes.size))) if names is None else names
    terms = [
        Curve(name, j, np.zeros(1), np.zeros(1), slope, 0.0)
        for j, (name, slope) in enumerate(zip(names, slopes.tolist(), strict=True))
    ]
    return AdditiveFunction(tuple(terms))


def of_every_kind(with_gaps):
    """A line, a curve, levels, a curve that rises, and two pairs; and rows in two blocks of them.

    Columns of levels are the places of the levels, -1 for one that training did not have.
    """
    rng = np.random.default_rng(7)
    gap = 0.3 if with_gaps else None
    house = ("flat", "house", "tent")
    price = Cut(np.array([-0.5, 0.1, 1.0]), 4)
    kind = Cut(None, 3, house)
    of_numbers = rng.normal(size=(5, 5))
    with_levels = rng.normal(size=(5, 4))
    if not with_gaps:
        of_numbers[-1:] = of_numbers[:, -1:] = 0.0
        with_levels[-1:] = with_levels[:, -1:] = 0.0
    curves = (
        Curve("stars", 0, np.zeros(1), np.zeros(1), 1 / 3, 0.5, gap),
        Curve(
            "price", 1, np.sort(rng.normal(size=17)), np.append(0, rng.normal(size=16)), 0.0, 1.0,
            gap,
        ),
    )  # fmt: skip
    levels = Levels("kind", 2, house, rng.normal(size=3), 0.7, gap)
    age = Curve("age", 3, np.arange(5.0), np.append(0, rng.random(4)).cumsum(), 0.0, 0.2)
    pairs = (
        Pair(("stars", "price"), (0, 1), (price, price), of_numbers, 0.1),
        Pair(("price", "kind"), (1, 2), (price, kind), with_levels, 0.2),
    )
    X = rng.normal(size=(9000, 4))
    X[:, 2] = rng.integers(-1, 3, 9000)
    X[:, 3] *= 4
    if with_gaps:
        X[:, :3][rng.random((9000, 3)) < 0.2] = np.nan
    return AdditiveFunction((*curves, age), (levels,), pairs), X


def added_by_hand(term, columns, filled=None):
    """What a term adds to each row, value by value.

    `columns` are the values of every column, missing ones among them; `filled` has numbers in
    their place, to which a term adds what it adds, and its gap on top.
    """
    own = [columns[j] for j in term.columns]
    missing = [pd.isna(values) for values in own]
    if isinstance(term, Pair):
        cells = [
            _cells_by_hand(cut, values, gap)
            for cut, values, gap in zip(term.cuts, own, missing, strict=True)
        ]
        weights = np.pad(term.weights, (0, 1))  # a value that training did not have adds nothing
        return weights[cells[0], cells[1]]
    if isinstance(term, Levels):
        weight = dict(zip(term.levels, term.weights, strict=True))
        added = np.array([weight.get(value, 0.0) for value in own[0]])
        return np.where(missing[0], term.gap or 0.0, added)
    x = columns[term.columns[0]] if filled is None else filled[term.columns[0]]
    x = np.where(np.isnan(x), term.knots[0], x)
    added = np.interp(x, term.knots, term.values) + term.slope * (x - term.knots[0])
    if not missing[0].any():
        return added
    return np.where(missing[0], term.gap if filled is None else added + term.gap, added)


def _cells_by_hand(cut, values, missing):
    """The cell of each value; missing ones have the last cell."""
    if cut.edges is not None:
        cells = [np.sum(cut.edges <= value) for value in values]
    else:
        cells = [cut.names.index(v) if v in cut.names else -1 for v in values]
    return np.where(missing, cut.n_cells, cells)
