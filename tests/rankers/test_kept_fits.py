"""Finished fits of a search are kept, and taken where they are what it would compute."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from helpers.marks import slow
from structsvm_papk import PAPKRankerCV
from structsvm_papk.errors import InputError
from structsvm_papk.rankers.search import KeptFit, KeptFits, Training

RNG = np.random.default_rng(3)
X = RNG.normal(size=(240, 3)).round(4)
Y = X[:, 0] + 0.5 * RNG.normal(size=240) > 0.8
USERS = np.repeat(np.arange(12), 20)
CV = {"k": 3, "surrogates": ("ts",), "depths": (None,), "cv": 3, "user_scaling": None}


@pytest.fixture
def solved(monkeypatch):
    """The alphas of the fits on folds that are solved."""
    alphas = []
    solve = Training.solve

    def recorded(training, risk, alpha, **options):
        if risk.data.n_users < 12:
            alphas.append(alpha)
        return solve(training, risk, alpha, **options)

    monkeypatch.setattr(Training, "solve", recorded)
    return alphas


OTHERWISE = [
    {"cv_tol": 1e-7},
    {"policy": "exclude"},
    {"alphas": (1.0, 0.1, 0.0100001)},
    {"user_scaling": "rank"},
    {"k": 2},
    {"positive": True},
    slow({"alphas": (1.0, 0.3, 0.1, 0.01, 0.001)}),
    slow({"user_scaling": ("standardize", None)}),
    slow({"scoring": "auc"}),
]


@pytest.mark.parametrize("changed", OTHERWISE, ids=str)
def test_a_kept_search_that_is_changed_is_that_of_a_fresh_run(changed, tmp_path):
    first = {
        **CV, "alphas": (1.0, 0.1, 0.01), "depths": (None, 15), "cv_tol": 1e-8,
        "checkpoint": tmp_path,
    }  # fmt: skip
    y = Y | (np.arange(Y.size) < 8)  # the first user has few negatives
    with warnings.catch_warnings(action="ignore"):
        PAPKRankerCV(**first).fit(X, y, USERS)
        again = PAPKRankerCV(**{**first, **changed}).fit(X, y, USERS)
        fresh = PAPKRankerCV(**{**first, **changed, "checkpoint": None}).fit(X, y, USERS)
    for name in fresh.cv_results_.keys() - {"mean_fit_time", "params"}:
        if not name.startswith("param_"):
            np.testing.assert_allclose(fresh.cv_results_[name], again.cv_results_[name], 1e-6)
    assert again.best_params_ == fresh.best_params_
    np.testing.assert_allclose(again.coef_, fresh.coef_, rtol=1e-3)


def test_kept_fits_are_not_computed_again_and_damaged_ones_are(solved, tmp_path):
    settings = {**CV, "alphas": (1.0, 0.1), "checkpoint": tmp_path}
    want = PAPKRankerCV(**settings).fit(X, Y, USERS)
    assert solved == [1.0, 0.1] * 3
    again = PAPKRankerCV(**settings).fit(X, Y, USERS)
    assert len(solved) == 6
    np.testing.assert_array_equal(again.coef_, want.coef_)
    kept = tmp_path / "fits.jsonl"
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join([*lines[:-2], "no fit", lines[-1][:-20]]))  # as a kill leaves it
    again = PAPKRankerCV(**settings).fit(X, Y, USERS)
    assert solved[6:] == [1.0, 0.1]
    assert again.result_.objective == pytest.approx(want.result_.objective, rel=1e-5)
    PAPKRankerCV(**settings).fit(X, Y, USERS)
    assert len(solved) == 8


def test_a_fit_of_a_problem_that_is_not_convex_is_taken_only_with_its_start(solved, tmp_path):
    settings = {**CV, "surrogates": ("ts", "clipped_ramp"), "checkpoint": tmp_path}
    fresh = PAPKRankerCV(**settings, alphas=(0.1,)).fit(X, Y, USERS)
    assert len(solved) == 6
    again = PAPKRankerCV(**settings, alphas=(0.1,)).fit(X, Y, USERS)
    assert len(solved) == 6
    np.testing.assert_array_equal(again.coef_, fresh.coef_)
    PAPKRankerCV(**(settings | {"surrogates": ("clipped_ramp",)}), alphas=(0.1,)).fit(X, Y, USERS)
    assert len(solved) == 9


def test_other_data_are_another_search(solved, tmp_path):
    settings = {**CV, "alphas": (0.1,), "checkpoint": tmp_path}
    for sign, n_solved in ((1, 3), (-1, 6), (1, 6)):
        PAPKRankerCV(**settings).fit(sign * X, Y, USERS)
        assert len(solved) == n_solved


def test_equal_searches_at_once_share_a_folder(tmp_path):
    settings = {**CV, "alphas": (0.1, 0.01), "checkpoint": tmp_path}
    fresh = PAPKRankerCV(**{**settings, "checkpoint": None}).fit(X, Y, USERS)
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(PAPKRankerCV(**settings).fit, X, Y, USERS) for _ in range(4)]
        for search in searches:
            fitted = search.result()
            assert fitted.best_params_ == fresh.best_params_
            np.testing.assert_allclose(fitted.coef_, fresh.coef_, rtol=1e-3)
    assert len(KeptFits(tmp_path / "fits.jsonl")._fits) == 6


def test_a_folder_that_cannot_be_written_is_refused_and_one_that_fills_up_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        PAPKRankerCV(**CV, checkpoint=tmp_path / "file").fit(X, Y, USERS)
    kept = KeptFits(tmp_path / "kept" / "fits.jsonl")
    kept.path.unlink()
    kept.path.mkdir()
    with pytest.warns(UserWarning, match="is not kept in .*; the search goes on"):
        kept.add("key", KeptFit(np.zeros(2), 1.0))
