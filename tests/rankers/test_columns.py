"""Every kind of ranker on every kind of columns: the fit, its terms, its file, a start from it."""

import json
import pickle
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone

from helpers.columns import knots_at_quantiles
from helpers.functions import added_by_hand
from helpers.marks import slow
from helpers.problems import objective
from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.data.columns.terms import Curve
from structsvm_papk.files.model import load_model, save_model
from structsvm_papk.rankers.settings import STIFFNESS

N_LISTS, N_ROWS = 20, 15
GROUPS = np.repeat(np.arange(N_LISTS), N_ROWS)
NAMES = ["distance", "clicks", "hour"]
HOURS = np.array(["dawn", "noon", "evening", "night"], dtype=object)
SIGNS = [0, 1, -1]
UNITS = np.array([1e-30, 1e9, 1e30])


def rows(seed=0):
    """Lists whose best rows are near 0 in the first column and high in the second; grades."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(GROUPS.size, 3)), 6)
    X[:, 2] = rng.integers(0, 4, GROUPS.size)  # says nothing
    score = -2 * np.abs(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=GROUPS.size)
    return X, np.digitize(score, np.quantile(score, [0.6, 0.8, 0.95]))


RANKERS = {  # settings, of two labels unless they are of grades
    "lines": {"curves": None},
    "curves": {"curves": 4},
    "curves of one piece": {"curves": 1},
    "curves of 254 pieces": {"curves": 254},
    "one list": {"curves": 4, "groups": "one_list"},
    "one list, monotonic": {"curves": None, "groups": "one_list", "monotonic_cst": SIGNS},
    "grades": {"curves": 4, "label_gain": "exponential"},
    "grades, gains given": {"curves": None, "label_gain": (0.0, 1.0, 2.0, 9.0)},
    "lines, positive": {"curves": None, "positive": True, "depth": 0.9},
    "curves, monotonic": {"curves": 4, "monotonic_cst": SIGNS},
    "ramp, monotonic": {"curves": 3, "surrogate": "ramp", "monotonic_cst": SIGNS},
    "clipped ramp, monotonic": {"curves": 3, "surrogate": "clipped_ramp", "monotonic_cst": SIGNS},
    "lines, each divided": {"curves": None, "standardize": True},
    "pairs": {"curves": None, "pairs": 2},
    "curves and pairs": {"curves": 4, "pairs": 2},
    "default": {"curves": "auto"},
    "default, monotonic": {"curves": "auto", "monotonic_cst": SIGNS},
    "default, one list of grades": {
        "curves": "auto", "groups": "one_list", "label_gain": "linear", "alpha": "auto",
        "surrogate": "auto",
    },
}  # fmt: skip


def _with(places, values):
    """Rows with other values in some places; these and the values may be functions of them."""

    def of(X):
        X, own = X.copy(), X
        X[places(own) if callable(places) else places] = values(own) if callable(values) else values
        return X

    return of


_THIRD = np.s_[:, 2]
_missing = _with(lambda X: np.random.default_rng(2).random(X.shape) < 0.2, np.nan)


def _text(X):
    """The hours are called by their names, or missing."""
    there = np.isfinite(X[:, 2])
    hour = np.where(there, HOURS[np.where(there, X[:, 2], 0).astype(int) % 4], None)
    return pd.DataFrame(X, columns=NAMES).assign(hour=hour)


COLUMNS = {
    "numbers": lambda X: X,
    "columns in memory": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "far": lambda X: X + np.array([1e5, -1e8, 0.0]),
    "other units": lambda X: X * UNITS,
    "constant": _with(_THIRD, 7.0),
    "constant in each list": _with(_THIRD, GROUPS * 0.5),
    "two values": _with(_THIRD, lambda X: X[_THIRD] > 1.5),
    "a list of copies": _with(GROUPS == 4, [0.25, 1.0, 2.0]),
    "a huge value": _with((3, 2), 1e300),
    "missing values": _missing,
    "gaps": _missing,
    "text": _text,
    "text and missing values": lambda X: _text(_missing(X)),
    "text and gaps": lambda X: _text(_missing(X)),
    "sparse": lambda X: sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)),
    "sparse, other units": lambda X: sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0) * UNITS),
}
MISSING = {
    "missing values": "lowest",
    "text and missing values": "lowest",
    "gaps": "separate",
    "text and gaps": "separate",
}
SAME = {"columns in memory", "float32", "pandas", "polars", "far", "other units"}  # as the numbers


def _suits(settings, columns):
    """Text neither rises nor falls; curves and pairs are of dense columns."""
    if columns == "sparse, other units":  # one number for all of them would see the largest only
        return settings.get("standardize") is True
    if columns == "sparse":
        return settings["curves"] in (None, "auto") and "pairs" not in settings
    return not (columns.startswith("text") and "monotonic_cst" in settings)


def _cases():
    """Every day curves on every kind of columns, and every kind of ranker on some."""
    usual = {"numbers", "missing values"}
    other = {
        "default": {"numbers", "far", "a huge value", "text and gaps"},
        "default, one list of grades": set(),
        "pairs": {"numbers", "gaps", "text and missing values"},
        "curves and pairs": {"text and gaps"},
    }
    for name, settings in RANKERS.items():
        for columns in COLUMNS:
            if _suits(settings, columns):
                everyday = name in ("lines", "curves") or columns in other.get(name, usual)
                yield (name, columns) if everyday else slow(name, columns)


def fitted_to(name, columns, X=None, order=None, weight=None, **more):
    """The ranker of that name, and the rows, labels and lists that it was fitted to."""
    X = COLUMNS[columns](rows()[0]) if X is None else X
    settings = {"surrogate": "avg", "alpha": 0.05, "tol": 1e-7, "pairs": None} | RANKERS[name]
    settings |= {"missing": MISSING[columns]} if columns in MISSING else {}
    y = rows()[1]
    if "label_gain" not in settings:
        y = y > 1
    groups = None if "groups" in settings else GROUPS
    ranker = PAPKRanker(3, **settings | more)
    if order is not None:  # lists from the last on, too
        lists = groups if groups is None else -groups[order]
        X = X.iloc[order] if isinstance(X, pd.DataFrame) else X[order]
        return ranker.fit(X, y[order], lists), X, y[order], lists
    return ranker.fit(X, y, groups, sample_weight=weight), X, y, groups


def values_of_columns(X):
    """An array for each column."""
    if isinstance(X, (pd.DataFrame, pl.DataFrame)):
        return [np.asarray(X[name]) for name in X.columns]
    return [*(X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)).T]


def filled_by_hand(values, groups, falls):
    """Numbers with the lowest of the list where they are missing, the highest if it falls."""
    lists = 0 * GROUPS if groups is None else groups
    filled = []
    for column, highest in zip(values, falls, strict=True):
        if column.dtype == object:
            filled.append(column)
            continue
        ends = pd.Series(column).groupby(lists).transform("max" if highest else "min")
        filled.append(np.where(np.isnan(column), ends.fillna(0.0), column))
    return filled


@pytest.mark.parametrize(("name", "columns"), [*_cases()])
def test_terms_and_file_are_those_of_the_fit(name, columns, tmp_path):
    ranker, X, y, groups = fitted_to(name, columns)
    assert ranker.result_.converged
    scores = ranker.predict(X, groups)
    assert np.isfinite(scores).all() and np.ptp(scores) > 0
    added = ranker.contributions(X, groups)
    size = np.abs(added).max()
    np.testing.assert_allclose(added.sum(axis=1), scores, rtol=0, atol=1e-9 * size)
    # what each term adds, by its definition
    values = values_of_columns(X)
    falls = np.equal(RANKERS[name].get("monotonic_cst", [0, 0, 0]), -1)
    lowest = MISSING.get(columns) == "lowest"
    filled = filled_by_hand(values, groups, falls) if lowest else None
    by_hand = [added_by_hand(term, values, filled) for term in ranker.terms_]
    np.testing.assert_allclose(added, np.column_stack(by_hand), rtol=0, atol=1e-9 * size)
    if not lowest or groups is None:  # then a row has its score whatever else is asked for
        alone = [ranker.predict(X[i : i + 1])[0] for i in range(5)]
        np.testing.assert_array_equal(alone, scores[:5])
    if columns in ("numbers", "gaps"):  # outside of training, too
        far = added_by_hand(ranker.terms_[0], [3.0 * x for x in values])
        np.testing.assert_allclose(ranker.contributions(3.0 * X)[:, 0], far, atol=1e-9 * size)
    if columns == "numbers":
        np.testing.assert_array_equal(ranker.contributions(sparse.csr_array(X)), added)
    # the objective is of these scores
    data = RankingData.from_groups(scores[:, None], y, groups, label_gain=ranker.label_gain_)
    surrogate = clone(ranker).set_params(surrogate=ranker.surrogate_).make_surrogate()
    w = ranker.result_.w
    value = ranker.alpha_ / 2 * w @ w + EmpiricalRisk(surrogate, data, "cap")(np.ones(1))[0]
    rounding = np.spacing(size)  # of the scores, of columns far from 0
    assert ranker.result_.objective == pytest.approx(value, rel=1e-9, abs=rounding)
    for term, own in zip(ranker.terms_, added.T, strict=True):
        if columns == "a huge value":
            continue
        within = own.reshape(N_LISTS if groups is not None else 1, -1).var(axis=1)
        assert term.deviation == pytest.approx(np.sqrt(within.mean()), rel=1e-6, abs=1e-9)
    has_names = hasattr(X, "columns")
    names = [term.name for term in ranker.terms_ if len(term.columns) == 1]
    assert names == (NAMES if has_names else ["0", "1", "2"])
    _check_file(ranker, X, groups, scores, added, tmp_path / "m")
    exported = json.loads(json.dumps(ranker.export_weights(), allow_nan=False))
    assert exported["alpha"] == ranker.alpha_
    assert ranker.label_gain_ == RANKERS[name].get("label_gain")
    assert exported["label_gain"] == json.loads(json.dumps(ranker.label_gain_))
    assert exported["certificate"]["status"] in ("converged", "critical")
    gaps = [term.gap or 0.0 if isinstance(term, Curve) else 0.0 for term in ranker.terms_[:3]]
    assert gaps == ranker.missing_coef_.tolist()
    if "positive" not in RANKERS[name]:  # there a missing value may not count for a row
        assert any(gaps) == (columns in MISSING)
    _check_signs(name, ranker)


def _check_file(ranker, X, groups, scores, added, path):
    """Model and pickle score the same bits, and say the same of the fit."""
    ranker.save(path)
    model = load_model(path)
    save_model(path.with_name("again"), model)
    assert path.with_name("again").read_bytes() == path.read_bytes()
    for same in (model, pickle.loads(pickle.dumps(ranker))):
        np.testing.assert_array_equal(same.predict(X, groups), scores)
        np.testing.assert_array_equal(same.contributions(X, groups), added)
    assert model.needs_lists == (groups is not None and ranker.missing == "lowest")
    own = ranker.to_model()
    unnamed = {"column": "", "columns": []}  # in a file columns without names are x0, x1, ..
    for term, its in zip(model.function.terms, own.function.terms, strict=True):
        assert term.description() | unnamed == its.description() | unnamed
        assert term.deviation == its.deviation
    for key in ("k", "alpha", "label_gain", "positive", "feature_names", "scale_rule", "missing"):
        assert getattr(model, key) == getattr(own, key)
    assert model.certificate == own.certificate
    assert model.certificate["gap"] == ranker.result_.gap or ranker.result_.status == "critical"


def _check_signs(name, ranker):
    """Weights and functions have the signs that the settings ask for."""
    settings = RANKERS[name]
    if settings.get("positive"):
        assert all(term.slope >= 0 for term in ranker.terms_ if isinstance(term, Curve))
    for sign, curve in zip(settings.get("monotonic_cst", ()), ranker.terms_, strict=False):
        steps = np.append(np.diff(curve.values), curve.slope)
        assert (sign * steps >= 0).all()


LITTLE = ("constant", "constant in each list", "two values", "a huge value")


@pytest.mark.parametrize("columns", LITTLE)
def test_what_varies_too_little_or_in_one_row_leaves_the_others_their_curves(columns):
    ranker, *_ = fitted_to("curves", columns)
    curve = ranker.curves_[2]
    assert (curve.knots.size == 1) == (columns != "constant in each list")
    if columns == "two values":
        assert curve(1.0) - curve(0.0) == pytest.approx(curve.slope)
    elif columns != "a huge value":
        np.testing.assert_allclose(curve.values, 0.0, atol=1e-9)
        assert curve.slope == 0.0 and curve.deviation == pytest.approx(0.0, abs=1e-9)
    own = ranker.curves_[0]
    assert own(0.0) > own(-1.5) + 0.5 and own(0.0) > own(1.5) + 0.5


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        *zip(["lines", "curves", "grades"] * 2, sorted(SAME), strict=True),
        *(
            slow(*case)
            for case in product(["lines", "curves", "one list", "default"], sorted(SAME))
        ),
        ("lines, each divided", "sparse, other units"),
    ],
)
def test_storage_units_and_offsets_change_nothing(name, columns):
    plain, X, _, groups = fitted_to(name, "numbers" if columns in SAME else "sparse")
    ranker, other, *_ = fitted_to(name, columns)
    assert ranker.result_.objective == pytest.approx(plain.result_.objective, rel=3e-7)
    scores = plain.predict(X, groups)
    moved = ranker.predict(other, groups) - scores
    assert np.ptp(moved) < 2e-2 * np.ptp(scores)


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("lines", "numbers"),
        ("curves", "missing values"),
        ("curves and pairs", "text and gaps"),
        *(slow(name, "numbers") for name in ("curves", "grades", "default")),
        *(slow(name, "text and missing values") for name in ("lines", "pairs", "default")),
    ],
)
def test_order_of_rows_lists_and_columns_and_threads_change_nothing(name, columns):
    plain, X, _, groups = fitted_to(name, columns)
    scores = plain.predict(X, groups)
    order = np.random.default_rng(0).permutation(GROUPS.size)
    shuffled, its_rows, _, lists = fitted_to(name, columns, order=order)
    turned_rows = X[NAMES[::-1]] if hasattr(X, "columns") else X[:, ::-1]
    turned, *_ = fitted_to(name, columns, turned_rows)
    threads, *_ = fitted_to(name, columns, n_threads=2)
    np.testing.assert_array_equal(threads.predict(X, groups), scores)
    close = {"rtol": 0, "atol": 2e-2 * np.ptp(scores)}
    np.testing.assert_allclose(shuffled.predict(its_rows, lists), scores[order], **close)
    np.testing.assert_allclose(turned.predict(turned_rows, groups), scores, **close)
    for ranker in (shuffled, turned):
        assert ranker.result_.objective == pytest.approx(plain.result_.objective, rel=3e-7)
        names = {frozenset(getattr(term, "names", [term.name])) for term in ranker.terms_}
        if hasattr(X, "columns"):
            own = {frozenset(getattr(term, "names", [term.name])) for term in plain.terms_}
            assert names == own
    for one, other in zip(shuffled.terms_, plain.terms_, strict=True):
        if isinstance(one, Curve):
            np.testing.assert_array_equal(one.knots, other.knots)


@pytest.mark.parametrize("name", ["lines", "curves", "grades", slow("one list")])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_the_problem_by_hand(name, weighted):
    if weighted and name == "one list":
        pytest.skip("there is one")
    weight = np.random.default_rng(0).uniform(0.2, 3.0, N_LISTS) if weighted else None
    of_rows = None if weight is None else weight[GROUPS]
    ranker, X, y, groups = fitted_to(name, "numbers", weight=of_rows)
    gain = RANKERS[name].get("label_gain")
    data = RankingData.from_groups(X, y, groups, weight, label_gain=gain)
    if RANKERS[name]["curves"] is not None:
        data = data.with_curves(knots_at_quantiles(data.X, data.rows, 4))
    data = data.standardized("auto").stiffened(STIFFNESS)
    risk = EmpiricalRisk(ranker.make_surrogate(), data, "cap")
    value = objective(risk, 0.05, ranker.result_.w)
    assert ranker.result_.objective == pytest.approx(value, rel=1e-12)
    assert ranker.to_model().user_weight == ("given" if weighted else "equal")


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("lines", "numbers"),
        ("lines", "missing values"),
        ("curves", "text and gaps"),
        ("curves and pairs", "text and missing values"),
        slow("grades", "numbers"),
        slow("curves, monotonic", "missing values"),
    ],
)
def test_a_warm_start_begins_where_the_last_fit_has_ended(name, columns):
    ranker, X, y, groups = fitted_to(name, columns, warm_start=True)
    last = ranker.result_
    again = ranker.fit(X, y, groups).result_
    assert again.history[0].objective <= last.objective * (1 + 1e-6)
    assert again.n_iter < last.n_iter
    some = GROUPS < 15  # of other lists units and knots are others
    ranker.fit(X[some], y[some], groups[some])
    cold = clone(ranker).set_params(warm_start=False).fit(X[some], y[some], groups[some])
    assert ranker.alpha_ == cold.alpha_
    assert ranker.result_.objective == pytest.approx(cold.result_.objective, rel=3e-7)
