"""Every kind of ranker on every kind of columns: the fit, its functions, its file."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from helpers.marks import slow
from helpers.problems import objective
from structsvm_papk import EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.files.model import load_model
from structsvm_papk.rankers.settings import STIFFNESS

N_LISTS, N_ROWS = 20, 15
GROUPS = np.repeat(np.arange(N_LISTS), N_ROWS)
NAMES = ["distance", "clicks", "hour"]
SIGNS = [0, 1, -1]


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
    "one list": {"curves": 4, "one_list": True},
    "grades": {"curves": 4, "label_gain": "exponential"},
    "grades, gains given": {"curves": None, "label_gain": (0.0, 1.0, 2.0, 9.0)},
    "lines, positive": {"curves": None, "positive": True, "depth": 0.9},
    "curves, monotonic": {"curves": 4, "monotonic_cst": SIGNS},
    "ramp, monotonic": {"curves": 3, "surrogate": "ramp", "monotonic_cst": SIGNS},
    "clipped ramp, monotonic": {"curves": 3, "surrogate": "clipped_ramp", "monotonic_cst": SIGNS},
    "lines, each divided": {"curves": None, "standardize": True},
    "default": {"curves": "auto"},
    "default, one list of grades": {
        "curves": "auto",
        "one_list": True,
        "label_gain": "linear",
        "alpha": "auto",
        "surrogate": "auto",
    },
}


def _changed(change):
    def of(X):
        X = X.copy()
        change(X)
        return X

    return of


def _constant(X):
    X[:, 2] = 7.0


def _constant_in_lists(X):
    X[:, 2] = GROUPS * 0.5


def _two_values(X):
    X[:, 2] = X[:, 2] > 1.5


def _copies(X):
    X[GROUPS == 4] = [0.25, 1.0, 2.0]


def _huge(X):
    X[3, 2] = 1e300


def _missing(X):
    X[np.random.default_rng(2).random(X.shape) < 0.2] = np.nan


COLUMNS = {
    "numbers": lambda X: X,
    "columns in memory": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(dict(zip(NAMES, X.T, strict=True))),
    "far": lambda X: X + np.array([1e5, -1e8, 0.0]),
    "other units": lambda X: X * np.array([1e-30, 1e9, 1e30]),
    "constant": _changed(_constant),
    "constant in each list": _changed(_constant_in_lists),
    "two values": _changed(_two_values),
    "a list of copies": _changed(_copies),
    "a huge value": _changed(_huge),
    "missing values": _changed(_missing),
    "sparse": lambda X: sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0)),
}
SAME = {"columns in memory", "float32", "pandas", "polars", "far", "other units"}  # as the numbers


def _cases():
    """Every day curves on every kind of columns, and every kind of ranker on some."""
    usual = {"numbers", "constant", "missing values"}
    of_folds = {"numbers", "far", "a huge value"}
    for name, settings in RANKERS.items():
        for columns in COLUMNS:
            if columns == "sparse" and isinstance(settings["curves"], int):
                continue
            some = of_folds if name == "default" else usual
            some = {"numbers"} if name == "default, one list of grades" else some
            everyday = name in ("lines", "curves") or columns in some
            yield (name, columns) if everyday else slow(name, columns)


def fitted_to(name, X, order=None):
    """The ranker of that name, and the labels and lists that it was fitted to."""
    settings = {"surrogate": "avg", "alpha": 0.05, "tol": 1e-7, "pairs": None} | RANKERS[name]
    y = rows()[1]
    if "label_gain" not in settings:
        y = y > 1
    if not sparse.issparse(X) and np.isnan(np.asarray(X)).any():
        settings["missing"] = "lowest"
    groups = None if "one_list" in settings else GROUPS
    if order is None:
        ranker = PAPKRanker(3, **settings).fit(X, y, groups)
    else:  # lists from the last on, too
        lists = groups if groups is None else -groups[order]
        ranker = PAPKRanker(3, **settings).fit(X[order], y[order], lists)
    return ranker, y, groups


def plain_array(X):
    return X.toarray() if sparse.issparse(X) else np.asarray(X, dtype=float)


@pytest.mark.parametrize(("name", "columns"), [*_cases()])
def test_functions_and_file_are_those_of_the_fit(name, columns, tmp_path):
    X = COLUMNS[columns](rows()[0])
    ranker, _, groups = fitted_to(name, X)
    assert ranker.result_.converged
    scores = ranker.predict(X, groups)
    assert np.isfinite(scores).all() and np.ptp(scores) > 0
    added = ranker.contributions(X, groups)
    size = np.abs(added).max()
    np.testing.assert_allclose(added.sum(axis=1), scores, rtol=0, atol=1e-9 * size)
    array = plain_array(X)
    holes = np.isnan(array)
    in_lists = pd.DataFrame(array).groupby(GROUPS if groups is not None else 0 * GROUPS)
    # the lowest of the list; of a column that has to fall the highest
    falls = np.equal(RANKERS[name].get("monotonic_cst", [0, 0, 0]), -1)
    ends = (in_lists.transform(end).fillna(0.0).to_numpy() for end in ("max", "min"))
    filled = np.where(holes, np.where(falls, *ends), array)
    by_hand = [curve(x) for curve, x in zip(ranker.curves_, filled.T, strict=True)]
    by_hand = np.column_stack(by_hand) + (holes * ranker.missing_coef_ if holes.any() else 0.0)
    np.testing.assert_allclose(added, by_hand, rtol=0, atol=1e-9 * size)
    if columns == "numbers":  # outside of training, too
        far = ranker.contributions(3.0 * X)
        at = [curve(3.0 * x) for curve, x in zip(ranker.curves_, X.T, strict=True)]
        np.testing.assert_allclose(far, np.column_stack(at), rtol=0, atol=1e-9 * size)
    if not holes.any() and columns != "a huge value":
        for curve, own in zip(ranker.curves_, added.T, strict=True):
            within = own.reshape(N_LISTS if groups is not None else 1, -1).var(axis=1)
            assert curve.deviation == pytest.approx(np.sqrt(within.mean()), rel=1e-6, abs=1e-9)
    has_names = hasattr(X, "columns")
    assert [curve.name for curve in ranker.curves_] == (NAMES if has_names else ["0", "1", "2"])
    ranker.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    np.testing.assert_array_equal(model.predict(X, groups), scores)
    np.testing.assert_array_equal(model.contributions(X, groups), added)
    for key in ("k", "alpha", "label_gain", "positive", "feature_names", "scale_rule"):
        assert getattr(model, key) == getattr(ranker.to_model(), key)
    exported = json.loads(json.dumps(ranker.export_weights(), allow_nan=False))
    assert exported["positive"] is model.positive and exported["alpha"] == model.alpha
    assert model.label_gain == RANKERS[name].get("label_gain") == ranker.label_gain_
    assert exported["label_gain"] == json.loads(json.dumps(model.label_gain))
    assert exported["certificate"]["status"] in ("converged", "critical")
    gaps = [term.gap or 0.0 for term in ranker.terms_]
    assert gaps == ranker.missing_coef_.tolist() and any(gaps) == holes.any()
    _check_signs(name, ranker)


def _check_signs(name, ranker):
    """Weights and functions have the signs that the settings ask for."""
    settings = RANKERS[name]
    if settings.get("positive"):
        assert (ranker.coef_ >= 0).all()
    for sign, curve in zip(settings.get("monotonic_cst", ()), ranker.curves_, strict=False):
        steps = np.append(np.diff(curve.values), curve.slope)
        assert (sign * steps >= 0).all()


LITTLE = ("constant", "constant in each list", "two values", "a huge value")


@pytest.mark.parametrize("columns", LITTLE)
def test_what_varies_too_little_or_in_one_row_leaves_the_others_their_curves(columns):
    ranker, *_ = fitted_to("curves", COLUMNS[columns](rows()[0]))
    curve = ranker.curves_[2]
    assert (curve.knots.size == 1) == (columns != "constant in each list")
    if columns == "two values":
        assert curve(1.0) - curve(0.0) == pytest.approx(curve.slope)
    elif columns != "a huge value":
        np.testing.assert_allclose(curve.values, 0.0, atol=1e-9)
        assert curve.slope == 0.0 and curve.deviation == pytest.approx(0.0, abs=1e-9)
    own = ranker.curves_[0]
    assert own(0.0) > own(-1.5) + 0.5 and own(0.0) > own(1.5) + 0.5


@pytest.mark.parametrize("name", ["lines", "curves", "grades", slow("one list"), slow("default")])
@pytest.mark.parametrize("columns", sorted(SAME))
def test_storage_units_and_offsets_change_nothing(name, columns):
    X = rows()[0]
    plain, _, groups = fitted_to(name, X)
    other = COLUMNS[columns](X)
    ranker, *_ = fitted_to(name, other)
    assert ranker.result_.objective == pytest.approx(plain.result_.objective, rel=3e-7)
    scores = plain.predict(X, groups)
    moved = ranker.predict(other, groups) - scores
    assert np.ptp(moved) < 2e-2 * np.ptp(scores)


@pytest.mark.parametrize("columns", ["numbers", "missing values"])
@pytest.mark.parametrize("name", ["lines", "curves", *map(slow, ("grades", "default"))])
def test_order_of_rows_and_lists_changes_nothing(name, columns):
    X = COLUMNS[columns](rows()[0])
    plain, *_ = fitted_to(name, X)
    shuffled, *_ = fitted_to(name, X, np.random.default_rng(0).permutation(GROUPS.size))
    assert shuffled.result_.objective == pytest.approx(plain.result_.objective, rel=3e-7)
    for one, other in zip(shuffled.curves_, plain.curves_, strict=True):
        np.testing.assert_array_equal(one.knots, other.knots)
        np.testing.assert_allclose(one.values, other.values, rtol=0, atol=2e-2)


@pytest.mark.parametrize("name", ["curves", "grades", slow("one list")])
def test_the_objective_is_that_of_the_problem_by_hand(name):
    X = rows()[0]
    ranker, y, groups = fitted_to(name, X)
    gain = RANKERS[name].get("label_gain")
    data = RankingData.from_groups(X, y, groups, label_gain=gain)
    data = data.with_curves(data.knots_at_quantiles(4)).standardized("auto").stiffened(STIFFNESS)
    risk = EmpiricalRisk(ranker.make_surrogate(), data, "cap")
    value = objective(risk, 0.05, ranker.result_.w)
    assert ranker.result_.objective == pytest.approx(value, rel=1e-12)
