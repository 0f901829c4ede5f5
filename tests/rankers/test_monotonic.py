"""Columns that have to rise or to fall, with a certificate of that problem."""

from itertools import product, starmap

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest

from helpers.marks import slow
from helpers.problems import full_problem
from structsvm_papk import CuttingPlane, EmpiricalRisk, PAPKRanker, RankingData
from structsvm_papk.data.columns.knots import knots_of
from structsvm_papk.data.columns.monotonic import signs_of_columns
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.rankers.settings import STIFFNESS

SIGNS = np.array([1, -1, 0])
ALPHA = 0.05


def rows(seed=0, n_lists=8):
    """Lists where no column is all that SIGNS say of it."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_lists), 10)
    X = rng.normal(size=(groups.size, 3))
    score = np.sin(2 * X[:, 0]) - np.abs(X[:, 1]) + 0.5 * X[:, 2] ** 2
    score = (score + 0.3 * rng.normal(size=groups.size)).reshape(n_lists, 10)
    y = score > np.quantile(score, 0.6, axis=1, keepdims=True)
    return X, y.ravel(), groups


def ranker(curves=3, surrogate="avg", **settings):
    return PAPKRanker(2, surrogate, **{"alpha": ALPHA, "curves": curves, **settings})


OTHER_PROBLEMS = [("avg", 3), ("ts", None), *product(["max", "pauc"], [None, 3])]


@pytest.mark.parametrize(
    ("surrogate", "curves"), [("avg", None), ("ts", 3), *starmap(slow, OTHER_PROBLEMS)]
)
@pytest.mark.parametrize("signs", [np.array([-1, 1, 0]), np.array([-1, 0, 1])])
def test_the_certificate_is_of_the_problem_with_signs(surrogate, curves, signs):
    """Written out for cvxpy, with columns that are not turned."""
    X, y, groups = rows(1)
    X[:, 0] *= -1.0
    fitted = ranker(curves, surrogate, monotonic_cst=signs, tol=1e-8).fit(X, y, groups)
    data = RankingData.from_groups(X, y, groups)
    sign_of_weights = signs
    if curves is not None:
        data = data.with_curves(knots_of(data.value_counts(), curves, signs != 0))
        sign_of_weights = signs[data.knots.column_of_weight]
    data = data.standardized("auto").stiffened(STIFFNESS)
    divided = RankingData.from_groups(data.columns.toarray() / data.units.scale, y, groups)
    risk = EmpiricalRisk(fitted.make_surrogate(), divided)
    free = full_problem(risk, ALPHA)[0]
    written, w = full_problem(risk, ALPHA)
    signed = np.flatnonzero(sign_of_weights)
    keeps = cp.multiply(sign_of_weights[signed], w[signed]) >= 0
    problem = cp.Problem(written.objective, [*written.constraints, keeps])
    for each in (free, problem):
        each.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    result = fitted.result_
    assert result.converged
    assert result.objective == pytest.approx(problem.value, rel=1e-6)
    assert result.lower_bound <= problem.value * (1 + 1e-8)
    assert free.value < problem.value * (1 - 1e-3)
    assert np.nanmin(fitted.scale_) > 0.0  # also of columns that are turned


def test_ones_everywhere_are_the_setting_positive():
    X, y, groups = rows()
    X = np.hstack([X, -X[:, :1]])
    ones = ranker(None, monotonic_cst=np.ones(4), tol=1e-9).fit(X, y, groups)
    positive = ranker(None, positive=True, tol=1e-9).fit(X, y, groups)
    np.testing.assert_allclose(ones.coef_, positive.coef_, rtol=0, atol=1e-9)
    assert ones.result_.objective == pytest.approx(positive.result_.objective, rel=1e-9)
    curves = [
        ranker(3, **how, tol=1e-9).fit(X, y, groups)
        for how in ({"monotonic_cst": [1] * 4}, {"positive": True})
    ]
    assert curves[0].result_.objective == pytest.approx(curves[1].result_.objective, rel=1e-9)


def test_zeros_and_none_are_no_constraint():
    X, y, groups = rows()
    plain = ranker().fit(X, y, groups)
    for nothing in ([0, 0, 0], np.zeros(3), None):
        fitted = ranker(monotonic_cst=nothing).fit(X, y, groups)
        np.testing.assert_array_equal(fitted.predict(X), plain.predict(X))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1, 0], r"monotonic_cst has shape \(2,\), but X has 3 columns"),
        ([[1, 0, 0]], r"monotonic_cst has shape \(1, 3\)"),
        (1, r"monotonic_cst has shape \(\), but X has 3 columns"),
        ([1, 2, 0], r"monotonic_cst of column 1 is 2: it must be 1 \(rising\), -1 \(falling\)"),
        ([True, 0, 0], "monotonic_cst of column 0 is True"),
        ([0, 0, 0.5], "monotonic_cst of column 2 is 0.5"),
        (["1", 0, 0], "monotonic_cst of column 0 is '1'"),
        ({"a": 1}, "monotonic_cst names columns, but X has no names: give a data frame"),
    ],
)
def test_what_cannot_be(given, said):
    with pytest.raises(InputError, match=said):
        ranker(monotonic_cst=given).fit(*rows())


def test_what_cannot_be_of_names_and_together_with_positive():
    X, y, groups = rows()
    frame = pd.DataFrame(X, columns=["price", "age", "size"])
    with pytest.raises(InputError, match="names column 'weight', which X does not have: it"):
        ranker(monotonic_cst={"weight": 1}).fit(frame, y, groups)
    with pytest.raises(InputError, match="monotonic_cst of column 'age' is 3"):
        ranker(monotonic_cst={"age": 3}).fit(frame, y, groups)
    with pytest.raises(InputError, match="give monotonic_cst or positive=True"):
        ranker(monotonic_cst=[1, 0, 0], positive=True).fit(X, y, groups)
    with pytest.raises(InputError, match="cannot keep weights from being negative"):
        ranker(monotonic_cst=[1, 0, 0], solver="dual_ascent").fit(X, y, groups)


def test_a_series_of_names_is_a_dict():
    names = ["age", "price", "rest"]
    signs = pd.Series([-1, 1], index=["rest", "age"])
    np.testing.assert_array_equal(signs_of_columns(signs, 3, names), [1, 0, -1])
    unnamed = pd.Series([1, 0, -1])
    np.testing.assert_array_equal(signs_of_columns(unnamed, 3, None), [1, 0, -1])
    with pytest.raises(InputError, match="names columns, but X has no names"):
        signs_of_columns(signs, 3, None)
    with pytest.raises(InputError, match="names a column twice"):
        signs_of_columns(pd.Series([1, -1], index=["age", "age"]), 3, names)


@pytest.mark.parametrize("curves", [None, 4])
def test_a_solver_that_is_an_object_does_not_take_signs(curves):
    for solver in (CuttingPlane(ALPHA), lambda risk, alpha: np.zeros(risk.n_features)):
        given = PAPKRanker(2, "avg", curves=curves, solver=solver, monotonic_cst=SIGNS)
        with pytest.raises(InputError, match="give solver by its name"):
            given.fit(*rows())


def test_a_ranker_says_that_the_signs_leave_nothing():
    """Positives are lower in every column: only weights < 0 would help."""
    X, y, groups = rows()
    X = -np.abs(X)
    X[y] -= 3.0
    with pytest.raises(InputError, match=r"DualAscent cannot keep weights .* cutting_plane, cccp"):
        PAPKRanker(2, solver="dual_ascent", positive=True).check_settings()
    fitted = ranker(None, positive=True)
    with pytest.warns(DegenerateOptimumWarning, match="among weights >= 0") as raised:
        fitted.fit(X, y, groups)
    settings = raised[0].message.settings
    assert settings == {"positive": False}
    assert fitted.set_params(**settings).fit(X, y, groups).coef_.any()
