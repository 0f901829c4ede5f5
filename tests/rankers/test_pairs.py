"""Pairs of columns: which are found, the optimum with them, and what they add."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import block_diag

from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.data.columns import pairs as pairs_of_columns
from structsvm_papk.data.columns.pairs import PairCuts, best_pairs
from structsvm_papk.data.columns.tables import in_numbers, levels_of
from structsvm_papk.rankers import choosing
from structsvm_papk.rankers.in_columns import TrainingColumns
from structsvm_papk.rankers.settings import Setting

N_LISTS, N_ROWS = 30, 16
GROUPS = np.repeat(np.arange(N_LISTS), N_ROWS)
ALPHA = 0.05


def table(seed=0, gaps=True):
    """Rows that are relevant where a and b have the same sign, and c by what the text is."""
    rng = np.random.default_rng(seed)
    n = GROUPS.size
    numbers = rng.normal(size=(n, 3))
    text = rng.choice(["x", "y", "z"], n)
    score = 2 * np.sign(numbers[:, 0] * numbers[:, 1]) + 0.5 * numbers[:, 2]
    score = score + 1.5 * np.where(text == "y", 1, -1) * np.sign(numbers[:, 2])
    score = score + 0.3 * rng.normal(size=n)
    y = score > np.quantile(score, 0.7)
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"]).assign(text=text)
    if gaps:
        frame.loc[rng.random(n) < 0.1, "a"] = np.nan
        frame.loc[rng.random(n) < 0.1, "text"] = None
    return frame, y


def ranker(pairs=2, curves=None, **settings):
    how = {"alpha": ALPHA, "tol": 1e-9, "curves": curves, "pairs": pairs, **settings}
    return PAPKRanker(3, "avg", **how)


def pairs_of(fitted):
    return [term for term in fitted.terms_ if len(term.columns) == 2]


def places(frame):
    """Text as the place of its level, NaN where it is missing."""
    levels = {"x": 0.0, "y": 1.0, "z": 2.0}
    return frame.assign(text=frame["text"].map(levels)).to_numpy(float)


def cells_by_hand(pair, X):
    """A column for each cell in which rows of training may be, row by row."""
    cells = []
    for column, cut in zip(pair.columns, pair.cuts, strict=True):
        x = X[:, column]
        gap = np.isnan(x)
        if cut.edges is None:
            own = [x == place for place in range(cut.n_cells)]
        else:
            ends = [-np.inf, *cut.edges, np.inf]
            own = [(x >= low) & (x < high) for low, high in pairwise(ends)]
        cells.append([*own, gap] if gap.any() else own)
    return np.column_stack([one & two for one in cells[0] for two in cells[1]]).astype(float)


@pytest.mark.parametrize("gaps", [True, False])
@pytest.mark.parametrize("curves", [None, 4])
def test_the_optimum_is_that_of_cells_written_out(curves, gaps):
    frame, y = table(gaps=gaps)
    fitted = ranker(curves=curves).fit(frame, y, GROUPS)
    pairs = pairs_of(fitted)
    assert [pair.columns for pair in pairs] == [(0, 1), (2, 3)]
    assert fitted.result_.converged
    X = places(frame)
    cells = np.hstack([cells_by_hand(pair, X) for pair in pairs])
    # the other columns are those of a fit without pairs
    given = RankingData.from_groups(X, y, GROUPS, missing="separate")
    given.levels = {3: ("x", "y", "z")}
    setting = Setting(make_surrogate("avg", 1, 0.9), "equal", ALPHA, curves)
    columns = TrainingColumns(given, "separate", "auto").of(setting)
    single = columns.lists.columns.toarray() / columns.lists.units.scale
    # half the difference of a cell's two values, a pattern's deviation, and their stiffness
    patterns = patterns_by_hand(pairs, X)
    scale = np.sqrt(2.0) * np.append(np.full(cells.shape[1], 0.5), patterns.deviations)
    own = fitted.result_.w[single.shape[1] :] / scale
    of_cells, of_patterns = np.split(own, [cells.shape[1]])
    weights = np.concatenate([weights_of(pair, X) for pair in pairs])
    varies = cells.any(axis=0)
    added = of_cells + patterns.of_cells @ of_patterns
    np.testing.assert_allclose(added[varies], weights[varies], atol=1e-9)
    assert of_patterns[0] > 0.05 and of_patterns[1] == 0.0  # a column of text has no order
    written = np.hstack([single, np.hstack([cells, cells @ patterns.of_cells]) / scale])
    by_hand = PAPKRanker(
        3, "avg", alpha=ALPHA, tol=1e-9, curves=None, pairs=None, standardize=False
    ).fit(written, y, GROUPS)
    assert fitted.result_.objective == pytest.approx(by_hand.result_.objective, rel=1e-8)
    assert fitted.result_.lower_bound <= by_hand.result_.objective * (1 + 1e-12)


@pytest.mark.parametrize("curves", [None, 4])
def test_a_function_has_the_weights_of_its_fit(curves):
    """What each cell adds is split between cells and patterns as the penalty splits it."""
    frame, y = table()
    fitted = ranker(curves=curves).fit(frame, y, GROUPS)
    given = RankingData.from_groups(places(frame), y, GROUPS, missing="separate")
    given.levels = {3: ("x", "y", "z")}
    columns = TrainingColumns(given, "separate", "auto")
    cuts = PairCuts.of(fitted.function_, columns.plan.with_gaps)
    setting = Setting(make_surrogate("avg", 1, 0.9), "equal", ALPHA, curves)
    in_columns = columns.of(setting, cuts)
    w = in_columns.weights(fitted.function_)
    np.testing.assert_allclose(w, fitted.result_.w, atol=2e-4)
    assert w @ w <= fitted.result_.w @ fitted.result_.w * (1 + 1e-12)
    again, trained = (function.pairs for function in (in_columns.function(w), fitted.function_))
    for one, other in zip(again, trained, strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-12)


class Patterns(NamedTuple):
    """Of some pairs: a column of their cells for each, and deviations within lists."""

    of_cells: np.ndarray
    deviations: np.ndarray


def patterns_by_hand(pairs, X):
    """A pattern is the product of the places of the cells, 0 where a column is text or missing."""
    parts = []
    deviations = []
    for pair in pairs:
        places = []
        for column, cut in zip(pair.columns, pair.cuts, strict=True):
            own = [
                0.0 if cut.edges is None else 2.0 * c / (cut.n_cells - 1) - 1.0
                for c in range(cut.n_cells)
            ]
            places.append([*own, 0.0] if np.isnan(X[:, column]).any() else own)
        parts.append([a * b for a in places[0] for b in places[1]])
        value = pd.Series(cells_by_hand(pair, X) @ parts[-1])
        within = value - value.groupby(GROUPS).transform("mean")
        deviations.append(np.sqrt(np.mean(within**2)) or 1.0)
    return Patterns(block_diag(*map(np.atleast_2d, parts)).T, np.array(deviations))


def weights_of(pair, X):
    shape = [
        cut.n_cells + bool(np.isnan(X[:, j]).any())
        for j, cut in zip(pair.columns, pair.cuts, strict=True)
    ]
    return pair.weights[: shape[0], : shape[1]].ravel()


def test_pairs_are_those_that_lower_the_risk_most():
    """By definition, cell by cell."""
    frame, y = table()
    X = places(frame)
    given = RankingData.from_groups(X, y, GROUPS, missing="separate")
    given.levels = {3: ("x", "y", "z")}
    setting = Setting(make_surrogate("avg", 3, 0.9), "equal", ALPHA)
    columns = TrainingColumns(given, "separate", "auto")
    lines = columns.of(setting)
    risk = EmpiricalRisk(setting.surrogate, lines.lists, "cap")
    w = np.random.default_rng(0).normal(size=lines.lists.n_features)
    residuals = risk.slopes_of_rows(w)
    slope = lines.lists.columns.combined_rows(residuals.rows, residuals.slopes[None])[0]
    np.testing.assert_allclose(
        lines.lists.units.of_columns(slope) / N_LISTS, risk(w)[1], atol=1e-12
    )

    by_chance = residuals._replace(slopes=np.random.default_rng(1).permutation(residuals.slopes))
    assert min(gains_by_hand(columns, by_chance).values()) < 0
    for slopes in (residuals, by_chance):
        gains = gains_by_hand(columns, slopes)
        order = sorted(gains, key=lambda pair: -gains[pair])
        for n_pairs in (1, 3, 20):
            found = best_of(columns, slopes, n_pairs)
            expected = [pair for pair in order[:n_pairs] if gains[pair] > 0]
            assert [pair.columns for pair in found] == expected


def best_of(columns, residuals, n_pairs):
    """The best pairs of columns by the residuals of rows."""
    rows = columns.rows.take(residuals.rows)
    return best_pairs(columns.cuts_for_pairs, rows, residuals.slopes, n_pairs)


def gains_by_hand(columns, residuals):
    """What each pair of columns gains above chance, cell by cell."""
    cuts = columns.cuts_for_pairs
    gains = {}
    rows = residuals.rows
    for i, one in enumerate(cuts):
        for two in cuts[i + 1 :]:
            of_one, of_two = (cut.cells(columns.rows)[rows] for cut in (one, two))
            single = np.column_stack(
                [of == c for of in (of_one, of_two) for c in np.unique(of)]
            ).astype(float)
            left = residuals.slopes - single @ np.linalg.lstsq(single, residuals.slopes)[0]
            gain = 0.0
            for a, b in np.unique(np.column_stack([of_one, of_two]), axis=0):
                own = left[(of_one == a) & (of_two == b)]
                n = own.size
                share = 1 - n / (of_one == a).sum() - n / (of_two == b).sum() + n / rows.size
                chance = share * n * np.mean(np.square(residuals.slopes))
                gain += (own.sum() ** 2 - chance) / (n + 5)
            gains[one.column, two.column] = gain
    return gains


def test_folds_see_the_same_in_another_order_of_columns():
    frame, y = table(gaps=False)
    rng = np.random.default_rng(0)
    frame = frame.assign(**{name: rng.choice(list("uvw"), GROUPS.size) for name in "de"})
    seen = []
    for columns in (list(frame), list(frame)[::-1]):
        levels = levels_of(frame[columns], "from_dtype")
        given = RankingData.from_groups(in_numbers(frame[columns], levels), y, GROUPS)
        given.levels = levels
        as_given = TrainingColumns(given, "separate", "auto")
        own, _ = choosing._in_own_order(as_given, np.ones(N_LISTS, dtype=bool))
        seen.append(own.lines_in_units.lists.columns.toarray())
    np.testing.assert_array_equal(*seen)


@pytest.mark.parametrize("seed", range(3))
def test_what_one_column_says_is_no_reason_for_a_pair(seed):
    """The penalty leaves much of the first column in the residuals."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(100), 25)
    X = rng.normal(size=(groups.size, 30))
    score = 1.5 * X[:, 0] + X[:, 5] * X[:, 7] + rng.normal(size=groups.size)
    fitted = PAPKRanker(5, "avg", curves=4, pairs=1, alpha=3.0).fit(X, score > 1.5, groups)
    assert [pair.columns for pair in pairs_of(fitted)] == [(5, 7)]


def test_values_that_are_rounded_a_little_stay_in_their_cells():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(1, 6, GROUPS.size), rng.lognormal(4, 1, GROUPS.size)])
    X = X / 100  # not exact in single precision
    y = (X[:, 0] > 0.03) != (X[:, 1] > 0.6)
    fitted = ranker(pairs=1).fit(X, y, GROUPS)
    (pair,) = pairs_of(fitted)
    np.testing.assert_allclose(pair.cuts[0].edges, [0.015, 0.025, 0.035, 0.045])
    for X_new in (X.astype(np.float32), X * (1 - 1e-9), X * (1 + 1e-9)):
        new = fitted.contributions(X_new)[:, 2]
        np.testing.assert_array_equal(new, fitted.contributions(X)[:, 2])


def test_of_many_rows_some_are_looked_at_and_not_positives_only(monkeypatch):
    """Lists of two: every other row is a positive, and a third column has few cells."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8000, 3))
    X[:, 2] = X[:, 2] > 1.5
    bent = (X[:, 0] * X[:, 1]).reshape(-1, 2)
    y = bent == bent.max(axis=1, keepdims=True)
    lists = RankingData.from_groups(X, y.ravel(), np.repeat(np.arange(4000), 2))
    columns = TrainingColumns(lists, "separate", "auto")
    setting = Setting(make_surrogate("avg", 1, 0.9), "equal", 0.1)
    risk = EmpiricalRisk(setting.surrogate, columns.of(setting).lists, "cap")
    residuals = risk.slopes_of_rows(np.zeros(3))
    monkeypatch.setattr(pairs_of_columns, "_UPDATES", 12_000)  # half of the rows
    found = best_of(columns, residuals, 1)
    assert [pair.columns for pair in found] == [(0, 1)]


def test_folds_take_pairs_where_two_columns_act_together_and_none_where_not():
    frame, y = table(gaps=False)
    chosen = PAPKRanker(3).fit(frame, y, GROUPS)
    (note,) = [note for note in chosen.result_.notes if note.startswith("Folds chose")]
    assert "pairs of columns" in note and (0, 1) in [pair.columns for pair in pairs_of(chosen)]
    new, relevant = table(seed=1, gaps=False)
    single = PAPKRanker(3, pairs=None).fit(frame, y, GROUPS)
    assert not pairs_of(single)
    assert chosen.score(new, relevant, GROUPS) > single.score(new, relevant, GROUPS) + 0.15
    rng = np.random.default_rng(4)  # of ten seeds two have pairs that gain a standard error
    X = rng.normal(size=(GROUPS.size, 3))
    straight = X[:, 0] + 0.3 * rng.normal(size=GROUPS.size) > 0.5
    assert not pairs_of(PAPKRanker(3).fit(X, straight, GROUPS))


def test_a_column_that_is_nearly_always_zero_may_be_in_a_pair_of_the_fit_and_of_folds():
    """Of the lists with a positive a fifth of its values are others, of all a tenth."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(GROUPS.size, 2))
    half = GROUPS[-1] // 2 > GROUPS
    X[:, 1] = np.where(half & (rng.random(GROUPS.size) < 0.2), rng.random(GROUPS.size), 0.0)
    y = half & (np.where(X[:, 1] > 0, -X[:, 0], X[:, 0]) > 0.5)
    fitted = ranker(pairs=1).fit(X, y, GROUPS)
    (pair,) = pairs_of(fitted)
    assert pair.columns == (0, 1) and pair.cuts[1].n_cells == 2


def test_what_rises_is_in_no_pair():
    frame, y = table()
    fitted = ranker(pairs=20, curves=4, monotonic_cst={"a": 1}).fit(frame, y, GROUPS)
    assert pairs_of(fitted) and all(0 not in pair.columns for pair in pairs_of(fitted))
    moved = frame.iloc[[0] * 200].assign(a=np.linspace(-9, 9, 200))
    assert (np.diff(fitted.predict(moved)) >= 0.0).all()
    assert not pairs_of(PAPKRanker(3, "avg", alpha=ALPHA, positive=True).fit(frame, y, GROUPS))
