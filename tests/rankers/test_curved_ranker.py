"""Rankers of curves: what folds choose, what is fitted, and what the ranker says of it."""

import re
import sys
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import sem
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score

from helpers.columns import knots_at_quantiles
from helpers.interrupts import ctrl_c_after_call
from helpers.marks import slow
from helpers.problems import objective
from helpers.values import values_of
from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData, make_surrogate
from structsvm_papk.data.columns.knots import PIECES
from structsvm_papk.data.content import digests_of
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.rankers import candidates, choosing
from structsvm_papk.rankers.candidates import (
    average_precisions,
    folds_of_lists,
    folds_of_rows,
    weights_of_values,
)
from structsvm_papk.rankers.in_columns import TrainingColumns
from structsvm_papk.rankers.settings import STIFFNESS, Setting

N_LISTS, N_ROWS = 40, 15
GROUPS = np.repeat(np.arange(N_LISTS), N_ROWS)


def rows(shape="bent", seed=0):
    """Lists whose best third is near 0 in the first column, or high in it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(GROUPS.size, 3))
    X[:, 2] = rng.integers(0, 4, GROUPS.size)  # says nothing
    score = -2 * np.abs(X[:, 0]) if shape == "bent" else X[:, 0]
    score = score + 0.5 * X[:, 1] + 0.3 * rng.normal(size=GROUPS.size)
    of_list = score.reshape(N_LISTS, N_ROWS)
    return X, (of_list > np.quantile(of_list, 0.7, axis=1, keepdims=True)).ravel()


def ranker(curves=4, **settings):
    return PAPKRanker(3, **{"surrogate": "avg", "alpha": 0.05, "curves": curves, **settings})


# --- what folds choose ----------------------------------------------------------------------------


def test_a_curve_is_found_where_relevance_is_not_linear():
    X, y = rows()
    chosen = PAPKRanker(3, pairs=None).fit(X, y, GROUPS)
    (note,) = [note for note in chosen.result_.notes if note.startswith("Folds chose")]
    assert f"curves of {PIECES} pieces" in note
    assert chosen.result_.converged
    line = PAPKRanker(3, curves=None).fit(X, y, GROUPS)
    unseen, relevant = rows(seed=1)
    assert chosen.score(unseen, relevant, GROUPS) > line.score(unseen, relevant, GROUPS) + 0.3
    own = chosen.curves_[0]
    assert own(0.0) > own(-1.5) + 1 and own(0.0) > own(1.5) + 1
    assert own.deviation > chosen.curves_[1].deviation > 2 * chosen.curves_[2].deviation
    stiffness = chosen.to_model().stiffness
    assert f"stiffness {stiffness:g}" in note
    risk = problem(X, y, GROUPS, PIECES, stiffness=stiffness)
    value = objective(risk, chosen.alpha_, chosen.result_.w)
    assert value == pytest.approx(chosen.result_.objective, rel=1e-12)


def test_a_line_is_kept_where_relevance_is_linear():
    """In a column whose normal scores are not: else stiff curves are as good."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(GROUPS.size, 3))
    X[:, 0] = rng.uniform(-2, 2, GROUPS.size) ** 3
    score = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=GROUPS.size)
    of_list = score.reshape(N_LISTS, N_ROWS)
    y = (of_list > np.quantile(of_list, 0.7, axis=1, keepdims=True)).ravel()
    chosen = PAPKRanker(3).fit(X, y, GROUPS)
    (note,) = [note for note in chosen.result_.notes if note.startswith("Folds chose")]
    assert "curves" not in note
    line = PAPKRanker(3, curves=None, pairs=None).fit(X, y, GROUPS)
    np.testing.assert_array_equal(chosen.coef_, line.coef_)
    assert not any(note.startswith("Folds") for note in line.result_.notes)


def test_one_list_has_curves_as_well():
    X, y = rows()
    chosen = PAPKRanker(3, "avg", groups="one_list").fit(X, y)
    assert any(f"curves of {PIECES} pieces" in note for note in chosen.result_.notes)
    unseen, relevant = rows(seed=1)
    line = PAPKRanker(3, "avg", groups="one_list", curves=None).fit(X, y)
    ranks = [each.predict(unseen).argsort().argsort() for each in (chosen, line)]
    means = [np.mean(each[relevant]) for each in ranks]
    assert means[0] > means[1] + 50


def test_of_one_list_pauc_is_chosen_where_it_finds_more():
    X, y = rows()
    unseen, relevant = rows(seed=1)
    found = []
    for surrogate in ("auto", "avg"):
        fitted = PAPKRanker(3, surrogate, groups="one_list").fit(X, y)
        found.append(average_precision_score(relevant, fitted.predict(unseen)))
        assert fitted.surrogate_ == ("pauc" if surrogate == "auto" else "avg")
    assert found[0] > found[1] + 0.03


@pytest.mark.parametrize("n_lists", [1, 4, 5])
def test_too_few_lists_or_rows_are_not_asked(n_lists):
    X, y = rows()
    some = n_lists > GROUPS
    if n_lists == 1:
        y &= np.cumsum(y) <= 4
    few = PAPKRanker(3).fit(X[some], y[some], GROUPS[some])
    asked = any(note.startswith("Folds") for note in few.result_.notes)
    assert asked == (n_lists == 5)


def test_what_is_chosen_is_ahead_on_the_folds():
    """By hand, with fits of their own."""
    X, y = rows(seed=2)
    data = RankingData.from_groups(X, y, GROUPS)
    leads = []
    for fold in folds_of_lists(5, data, digests_of(data)):
        train, test = data.rows[fold.train], data.rows[fold.test]
        values = []
        for curves in (None, PIECES):
            own = PAPKRanker(3, curves=curves).fit(X[train], y[train], GROUPS[train])
            values.append(values_of("ap", own.predict(X[test]), y[test], GROUPS[test]))
        leads.append(values[1] - values[0])
    lead = np.concatenate(leads)
    assert lead.size == N_LISTS
    assert lead.mean() > 2e-3  # the fits of the choice are not these to the last digit
    assert PAPKRanker(3).fit(X, y, GROUPS).curves_[0].knots.size > 1


def choice_of_lists(**values):
    """What two folds of eight lists say of candidates by their names, each with the same scores."""
    paired = [name for name in ("paired", "many") if name in values]
    choice = choosing.ChoiceOfLists("lines", "curves", "stiff", paired)
    weights = np.ones(8)
    for _ in range(2):
        choice.add([np.broadcast_to(values[name], 8) for name in choice.candidates], weights)
    return choice


SPREAD = np.tile([-0.1, 0.1], 4)  # the standard error of sixteen such numbers is .1 / sqrt(15)
ERROR = 0.1 / np.sqrt(15)
AHEAD = ERROR + SPREAD


@pytest.mark.parametrize(
    ("lines", "stiff", "curves", "paired", "best"),
    [
        (0.5, 0.0, 0.5 + SPREAD, 0.49 + SPREAD, "lines"),  # curves with pairs are behind
        (0.5, 0.0, 0.5 + SPREAD, 0.5 + 0.2 * ERROR + SPREAD, "lines"),
        (0.5, 0.0, 0.5 + SPREAD, 0.5 + 0.3 * ERROR + SPREAD, "paired"),
        (0.5, 0.0, 0.51, 0.51 + 1.6 * ERROR + SPREAD, "paired"),
        (0.5, 0.0, 0.5 + 1.9 * ERROR + SPREAD, 0.49, "lines"),
        (0.5, 0.0, 0.5 + 2.1 * ERROR + SPREAD, 0.49, "curves"),
        (0.5, 0.0, 0.51, 0.51 + 1.4 * ERROR + SPREAD, "curves"),
        (0.5, 0.51 + 1.4 * ERROR + SPREAD, 0.51, 0.51, "curves"),
        (0.5, 0.51 + 1.6 * ERROR + SPREAD, 0.51, 0.51, "stiff"),
        (0.5, 0.5 + 1.6 * ERROR + SPREAD, 0.5, 0.49 + SPREAD, "stiff"),
    ],
)
def test_lines_or_curves_by_what_they_gain(lines, stiff, curves, paired, best):
    choice = choice_of_lists(lines=lines, stiff=stiff, curves=curves, paired=paired)
    assert choice.best == best


@pytest.mark.parametrize(
    ("values", "left"),
    [
        ({"lines": 0.5, "stiff": 0.6, "curves": 0.6, "paired": 0.6}, ["curves"]),
        ({"lines": 0.5, "stiff": 0.6 + AHEAD, "curves": 0.6, "paired": 0.6}, ["stiff", "curves"]),
        ({"lines": 0.5, "stiff": 0.6, "curves": 0.6, "paired": 0.6 + AHEAD}, ["curves", "paired"]),
        ({"lines": 0.5, "stiff": 0.5 + AHEAD, "curves": 0.4, "paired": 0.4}, ["lines"]),
        ({"lines": 0.5, "stiff": 0.6, "curves": 0.6, "paired": 0.7}, ["paired"]),
        ({"lines": 0.5, "stiff": 0.6, "curves": 0.4, "paired": 0.4}, ["stiff"]),
        ({"lines": 0.5, "stiff": 0.6, "curves": 0.6, "paired": 0.4}, ["curves"]),
        (
            {"lines": 0.5, "stiff": 0.4, "curves": 0.4, "paired": 0.5 + 1.9 * ERROR + SPREAD},
            ["lines", "stiff", "curves", "paired"],
        ),
    ],
)
def test_those_that_will_hardly_win_are_left_out(values, left):
    choice = choice_of_lists(**values)
    assert choice.candidates == left


def test_of_one_list_those_far_behind_are_left_out_and_the_largest_mean_wins():
    choice = choosing.ChoiceOfOneList(["first", "second", "third"])
    assert choice.best is None
    error = 0.1 / np.sqrt(7)  # of eight positives
    values = [np.full(8, 0.5), 0.5 - 1.9 * error + SPREAD, 0.5 - 2.1 * error + SPREAD]
    choice.add(values, np.ones(8))
    assert choice.candidates == ["first", "second"] and choice.best == "first"
    choice.add([np.full(8, 0.1), np.full(8, 0.9)], np.ones(8))
    assert choice.best == "second"


def test_weaker_penalties_behind_one_that_is_far_worse_are_not_tried(monkeypatch):
    X, y = rows()
    data = RankingData.from_groups(X, y, np.zeros(len(y)))
    columns = TrainingColumns(data, None, "auto")
    lines = Setting(make_surrogate("avg", 3), "uniform", 0.1)
    curves = replace(lines, pieces=4)
    tried = [
        candidates.Candidate(replace(setting, alpha=alpha), columns.of(setting))
        for setting in (lines, curves)
        for alpha in (10.0, 1.0, 0.1, 0.01)
    ]
    n_positives = 30
    a_little_behind = 0.48 + np.resize(SPREAD, n_positives)
    scores = iter([0.2, 0.5, 0.4, 0.4, 0.5, a_little_behind, 0.4])
    monkeypatch.setattr(
        candidates,
        "average_precisions",
        lambda *_: np.broadcast_to(next(scores), n_positives),
    )
    monkeypatch.setattr(candidates, "weights_of_values", lambda *_: np.ones(n_positives))
    (fold, *_) = folds_of_rows(5, data, digests_of(data))
    found = candidates.values_on(fold, tried, columns, candidates.Training())
    assert [of is not None for of in found.of_candidates] == [
        *(True, True, True, False),  # .1 is far behind 1
        *(True, True, True, True),
    ]
    choice = choosing.ChoiceOfOneList(tried)
    choice.add(*found)
    assert choice.candidates == [tried[1], tried[5], tried[6]]


@pytest.mark.parametrize(("errors", "best"), [(1.4, "paired"), (1.6, "many")])
def test_of_lists_many_pairs_have_to_gain_over_few(errors, best):
    many = 0.6 + errors * ERROR + SPREAD
    choice = choice_of_lists(lines=0.5, stiff=0.5, curves=0.5, paired=0.6, many=many)
    assert choice.best == best


@pytest.mark.parametrize(("errors", "best"), [(0.9, "paired"), (1.1, "many")])
def test_of_one_list_many_pairs_have_to_gain_over_few(errors, best):
    choice = choosing.ChoiceOfOneList(["line", "paired", "many"], many=["many"])
    for _ in range(2):
        choice.add(
            [0.59 + 2.0 * SPREAD, np.full(8, 0.6), 0.6 + errors * ERROR + SPREAD], np.ones(8)
        )
    assert choice.best == best


def test_of_one_list_the_precisions_at_its_positives_are_the_average_precision():
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.2
    scores = rng.integers(0, 40, 200).astype(float)  # with ties
    lists = RankingData.from_groups(rng.normal(size=(200, 2)), y, np.zeros(200))
    found = average_precisions(scores[lists.rows], lists, one_list=True)
    assert found.shape == (y.sum(),)
    assert found.mean() == pytest.approx(average_precision_score(y, scores))
    np.testing.assert_array_equal(weights_of_values(lists, one_list=True), 1.0 / y.sum())


def test_of_several_lists_one_that_a_fold_leaves_out_counts_as_one_list():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    grades = np.resize([0, 1, 0, 2, 0, 0], 60)
    data = RankingData.from_groups(
        X, grades, np.repeat(np.arange(6), 10), label_gain="linear"
    )  # five folds: one has two lists
    columns = TrainingColumns(data, None, "auto")
    setting = Setting(make_surrogate("avg", 3), "uniform", 0.1)
    tried = [candidates.Candidate(setting, columns.of(setting))]
    shapes = []
    for fold in folds_of_lists(5, data, digests_of(data)):
        found = candidates.values_on(fold, tried, columns, candidates.Training())
        shapes.append((found.of_candidates[0].size, found.weights.tolist()))
    assert sorted(shapes) == [*[(1, [1.0])] * 4, (2, [1.0, 1.0])]


def test_of_grades_in_one_list_a_row_is_a_positive_of_each_that_it_reaches():
    rng = np.random.default_rng(0)
    grades = rng.choice([0, 1, 3], 200)
    scores = rng.normal(size=200)
    lists = RankingData.from_groups(
        rng.normal(size=(200, 2)), grades, np.zeros(200), label_gain="linear"
    )
    of_grades = [average_precision_score(grades >= grade, scores) for grade in (1, 3)]
    found = np.average(
        average_precisions(scores[lists.rows], lists, one_list=True),
        weights=weights_of_values(lists, one_list=True),
    )
    assert found == pytest.approx(np.mean(of_grades))


def test_lists_count_by_their_weights_and_those_without_a_score_do_not():
    choice = choosing.ChoiceOfOneList(["line", "curve"])
    choice.add([np.array([0.5, np.nan]), np.array([0.9, np.nan])], np.array([1.0, 3.0]))
    choice.add([np.array([0.7]), np.array([0.4])], np.array([0.5]))
    assert choice.mean("line") == pytest.approx((0.5 + 0.5 * 0.7) / 1.5)
    assert choice.gain("curve", "line").mean == pytest.approx((0.4 - 0.5 * 0.3) / 1.5)


@pytest.mark.parametrize(
    ("weights", "error"),
    [
        (([2.0, 2.0, 2.0], [2.0]), sem([0.1, 0.5, -0.2])),
        (([1.0, 1.0, 0.0], [1.0]), sem([0.1, -0.2])),
        (([1.0, 1.0, 0.0], [0.0]), np.inf),
        (([1.0, 1.0, 3.0], [2.0]), np.sqrt(0.1 / (36 / 14 - 1))),  # as of 36/14 equal ones
    ],
)
def test_the_error_of_a_gain_counts_lists_by_their_weights(weights, error):
    choice = choosing.ChoiceOfOneList(["line", "curve"])
    values = np.array([0.1, np.nan, 0.5]), np.array([-0.2])
    for of_fold, weight in zip(values, weights, strict=True):
        choice.add([np.zeros(of_fold.size), of_fold], np.array(weight))
    assert choice.gain("curve", "line").error == pytest.approx(error)


@pytest.mark.parametrize("seed", [slow(0), 2])
def test_lists_in_another_order_or_form_give_the_same_choice(seed):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(40), rng.integers(5, 25, 40))
    X = rng.normal(size=(groups.size, 3))
    score = X @ rng.normal(size=3) + 0.3 * X[:, 0] ** 2 + rng.normal(size=groups.size)
    y = score > np.quantile(score, 0.7)
    order = rng.permutation(groups.size)
    forms = [
        (X, y, groups),
        (X[order], y[order], groups[order]),
        (X[:, ::-1], y, 7 * groups % 41),
        (X * [3.0, 0.1, 1e3] - 5.7, y, groups),
    ]
    means = [choice_of(*form) for form in forms]
    assert means[1:] == means[:1] * 3


def choice_of(X, y, groups):
    """The mean scores of lines and of curves, stiff ones and others."""
    lists = RankingData.from_groups(X, y, groups)
    columns = TrainingColumns(lists, None, "auto")
    given = Setting(make_surrogate("avg", 3, 0.9), "equal", "auto")
    choice = choosing.choose(columns, given, choosing.Left(curves=True))
    return [choice.mean(candidate) for candidate in choice.candidates]


def test_weights_of_lists_count_in_the_choice_as_copies_do():
    """Most lists are straight, but the heavy ones are bent."""
    straight, bent = rows("straight"), rows("bent", seed=1)
    n = 10 * (GROUPS[0] == GROUPS).sum()  # rows of ten lists
    X = np.concatenate([straight[0], bent[0][:n]])
    y = np.concatenate([straight[1], bent[1][:n]])
    groups = np.concatenate([GROUPS, GROUPS[:n] + N_LISTS])
    weights = np.where(groups < N_LISTS, 1.0, 50.0)
    light, heavy = (
        PAPKRanker(3).fit(X, y, groups, sample_weight=each) for each in (1.0 + 0 * weights, weights)
    )
    assert light.curves_[0].knots.size == 1
    assert heavy.curves_[0].knots.size > 1
    of_lists = weights[::N_ROWS]
    lists = RankingData.from_groups(X, y, groups, of_lists)
    np.testing.assert_array_equal(lists.weight_of_user, of_lists)


# --- what is fitted, and what is said of it -------------------------------------------------------


@pytest.mark.parametrize("missing", ["separate", "lowest"])
def test_folds_try_curves_beside_missing_values(missing):
    X, y = rows()
    X[np.random.default_rng(3).random(X.shape) < 0.1] = np.nan
    fitted = PAPKRanker(3, missing=missing).fit(X, y, GROUPS)
    (note,) = [note for note in fitted.result_.notes if note.startswith("Folds chose")]
    assert f"curves of {PIECES} pieces" in note
    assert fitted.result_.converged and fitted.missing_coef_.all()
    line = PAPKRanker(3, missing=missing, curves=None).fit(X, y, GROUPS)
    assert fitted.score(X, y, GROUPS) > line.score(X, y, GROUPS) + 0.2


def test_coef_of_curves_is_refused():
    X, y = rows()
    fitted = ranker().fit(X, y, GROUPS)
    with pytest.raises(AttributeError, match=r"terms_ and contributions\(X\).*curves=None"):
        _ = fitted.coef_
    assert not hasattr(fitted, "coef_")
    with pytest.raises(AttributeError, match="after fit"):
        _ = ranker().coef_
    assert fitted.set_params(curves=None).fit(X, y, GROUPS).coef_.shape == (3,)


def test_the_strength_counts_weights_as_the_penalty_sees_them():
    """alpha='auto' is 12 m (d / p)^1.5 over straight parts and pieces."""
    X, y = rows()
    X = X[:, :2]
    fitted = ranker(4, alpha="auto").fit(X, y, GROUPS)
    data = RankingData.from_groups(X, y, GROUPS)
    written = data.with_curves(knots_at_quantiles(data.X, data.rows, 4)).columns.toarray()
    within = np.mean([written[u == GROUPS].var(axis=0) for u in range(N_LISTS)], axis=0)
    np.testing.assert_allclose(fitted.scale_, np.sqrt(within[:2]), rtol=1e-9)
    variances = np.where(np.arange(within.size) < 2, 1.0, 1 / STIFFNESS)
    n_columns = variances.sum() ** 2 / np.sum(variances**2)
    expected = 12 * variances.mean() * (n_columns / y.sum()) ** 1.5
    assert fitted.alpha_ == pytest.approx(expected, rel=1e-9)


def problem(X, y, groups, pieces, weight=None, stiffness=STIFFNESS):
    """The risk that a ranker of curves minimises."""
    label_gain = "linear" if np.unique(y).size > 2 else None
    data = RankingData.from_groups(X, y, groups, weight, label_gain=label_gain)
    data = data.with_curves(knots_at_quantiles(data.X, data.rows, pieces))
    return EmpiricalRisk(
        ranker().make_surrogate(), data.standardized("auto").stiffened(stiffness), "cap"
    )


@pytest.mark.parametrize("curves", ["auto", 4])
def test_columns_that_say_nothing_at_all_are_told(curves):
    _, y = rows()
    for constant in (np.full((y.size, 2), 3.0), np.repeat(np.eye(N_LISTS)[:, :2], N_ROWS, axis=0)):
        with pytest.warns(DegenerateOptimumWarning, match="w = 0 is the optimum"):
            fitted = PAPKRanker(3, curves=curves).fit(constant, y, GROUPS)
        assert all(not curve.values.any() and curve.slope == 0 for curve in fitted.curves_)


# --- a start from the last functions --------------------------------------------------------------


class Start:
    """A solver that leaves the weights where they start."""

    alpha = 0.05

    def solve(self, risk, w_init, callback):
        return w_init


@pytest.mark.parametrize(("first", "then"), [(None, 8), (8, None), (4, 8), (8, 4), (8, 8)])
def test_a_warm_start_has_the_values_of_the_last_functions(first, then):
    X, y = rows()
    warm = ranker(first, warm_start=True).fit(X, y, GROUPS)
    last = warm.curves_
    warm.set_params(curves=then, solver=Start()).fit(X, y, GROUPS)
    for j, (before, now) in enumerate(zip(last, warm.curves_, strict=True)):
        if then is None:
            rise = before(X[:, j].max()) - before(X[:, j].min())
            slope = before.slope if first is None else rise / np.ptp(X[:, j])
            assert now.slope == pytest.approx(slope, rel=1e-12)
            continue
        ends = ends_of_pieces(X, j, then)
        expected = before(ends) - before(ends[0])
        np.testing.assert_allclose(now(ends), expected, rtol=0, atol=1e-12)
        if first == then:
            np.testing.assert_allclose(now.values, before.values, rtol=0, atol=1e-12)


def ends_of_pieces(X, j, n):
    """The knots between which a piece lies; in the tails there are more."""
    knots = knots_at_quantiles(X[:, j : j + 1], np.arange(len(X)), n)
    return knots.positions[np.append(np.diff(knots.piece, prepend=-1) > 0, True)]


# --- when the choice is ended ---------------------------------------------------------------------


def test_a_choice_that_takes_too_long_is_noted_and_the_fit_goes_on(monkeypatch):
    X, y = rows()
    tried = []
    finished = choosing.values_on

    def counted(*arguments):
        values = finished(*arguments)
        tried.append(len(values.of_candidates))
        return values

    def now():  # after a fold it is much later
        return time.perf_counter() + (1e9 if tried else 0.0)

    monkeypatch.setattr(choosing, "values_on", counted)
    monkeypatch.setattr(candidates, "time", SimpleNamespace(perf_counter=now))
    with pytest.warns(ConvergenceWarning, match="time_limit ended them early"):
        fitted = PAPKRanker(3, time_limit=600.0).fit(X, y, GROUPS)
    assert tried == [4]
    assert fitted.result_.converged
    (note,) = [note for note in fitted.result_.notes if note.startswith("Folds chose")]
    assert re.search(rf"curves of {PIECES} pieces, .*; time_limit ended them early", note)


def test_without_time_the_usual_settings_are_taken():
    X, y = rows()
    with pytest.warns(ConvergenceWarning) as caught:
        fitted = PAPKRanker(3, time_limit=1e-9).fit(X, y, GROUPS)
    assert any("No fold was finished" in str(each.message) for each in caught)
    assert any("No fold was finished" in note for note in fitted.result_.notes)
    assert fitted.coef_.shape == (3,) and fitted.result_.status == "time_limit"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("one_list", [False, slow(True)])
def test_ctrl_c_ends_the_choice_and_the_fit_goes_on(one_list):
    X, y = rows()
    groups = "one_list" if one_list else GROUPS
    settings = {"surrogate": "avg", "alpha": 0.05}
    with ctrl_c_after_call(-1, "values_on") as callers:
        whole = PAPKRanker(3, **settings).fit(X, y, groups)
    assert whole.result_.converged
    n_calls = len(callers)
    said = []
    for n in (1, 3 * n_calls // 4, n_calls - 1):  # lists have two folds, and these are enough
        with (
            pytest.warns(ConvergenceWarning, match="Ctrl-C ended them early"),
            ctrl_c_after_call(n, "values_on"),
        ):
            fitted = PAPKRanker(3, **settings).fit(X, y, groups)
        assert fitted.result_.converged
        said += [note for note in fitted.result_.notes if "Ctrl-C" in note]
    assert len(said) == 3
    assert said[0].startswith("No fold was finished")
    assert all(re.search(rf"curves of {PIECES} pieces, .*; Ctrl-C", note) for note in said[1:])


# --- what is refused ------------------------------------------------------------------------------


def test_a_sparse_matrix_has_lines():
    X, y = rows()
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0.0
    with pytest.raises(InputError, match=r"curves need a dense X.*curves=None, or X\.toarray\(\)"):
        ranker(16).fit(sparse.csr_array(X), y, GROUPS)
    line = ranker("auto").fit(sparse.csr_array(X), y, GROUPS)
    assert line.coef_.shape == (3,)
    assert not any(note.startswith("Folds") for note in line.result_.notes)
    added = line.contributions(sparse.csr_array(X))
    np.testing.assert_allclose(added.sum(axis=1), line.predict(X), atol=1e-12)
