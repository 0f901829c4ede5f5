"""Runs that are resumed: cross-validation and the command line."""

import json
import re
import signal
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest

from helpers.sources import write_csv
from structsvm_papk import PAPKRankerCV, cli
from structsvm_papk.cli._shared import console
from structsvm_papk.errors import InputError
from structsvm_papk.rankers import search
from structsvm_papk.rankers.search import Training

pytestmark = pytest.mark.recovery


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3)).round(4)
    y = X[:, 0] + 0.5 * rng.normal(size=240) > 0.8
    return X, y, np.repeat(np.arange(12), 20)


CV = {"k": 3, "surrogates": ("ts",), "depths": (None,), "user_weights": ("equal",), "cv": 3,
      "user_scaling": None}  # fmt: skip
OTHERWISE = [
    {"cv_tol": 1e-7},
    {"max_iter": 40},
    {"policy": "exclude"},
    {"alphas": (1.0, 0.3, 0.1, 0.01, 0.001)},
    {"alphas": (1.0, 0.1, 0.0100001)},
    {"user_scaling": "rank"},
    {"user_scaling": ("standardize", None)},
    {"k": 2},
    {"solver_options": {"n_blocks": 1}},
    {"scoring": "auc"},
    {"random_state": 1},
]


@pytest.mark.parametrize("changed", OTHERWISE, ids=str)
def test_a_kept_search_that_is_changed_is_that_of_a_fresh_run(changed, rows, tmp_path):
    first = {
        **CV, "alphas": (1.0, 0.1, 0.01), "surrogates": ("avg", "clipped_ramp"), "max_iter": 2,
        "depths": (None, 15), "checkpoint": tmp_path,
    }  # fmt: skip
    X, y, users = rows
    rows = X, y | (np.arange(y.size) < 8), users  # the first user has few negatives
    with warnings.catch_warnings(action="ignore"):
        PAPKRankerCV(**first).fit(*rows)
        again = PAPKRankerCV(**{**first, **changed}).fit(*rows)
        fresh = PAPKRankerCV(**{**first, **changed, "checkpoint": None}).fit(*rows)
        PAPKRankerCV(**first).fit(-X, *rows[1:])  # other data are another search
    for name in fresh.cv_results_.keys() - {"mean_fit_time"}:
        np.testing.assert_array_equal(fresh.cv_results_[name], again.cv_results_[name], name)
    assert again.best_params_ == fresh.best_params_
    np.testing.assert_array_equal(again.coef_, fresh.coef_)


def test_kept_fits_are_not_computed_again_and_damaged_ones_are(rows, tmp_path, monkeypatch):
    settings = {**CV, "alphas": (1.0, 0.1), "checkpoint": tmp_path}
    want = PAPKRankerCV(**settings).fit(*rows)
    n_users = np.unique(rows[2]).size
    solved = []
    solve = Training.solve

    def recorded(training, setting, risk, *arguments, **options):
        solved.append("fold" if risk.data.n_users < n_users else "all users")
        return solve(training, setting, risk, *arguments, **options)

    monkeypatch.setattr(Training, "solve", recorded)
    PAPKRankerCV(**settings).fit(*rows)
    assert solved == ["all users"]
    files = sorted(tmp_path.glob("*.fits"))
    assert len(files) == 3
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"x")
    again = PAPKRankerCV(**settings).fit(*rows)
    assert solved[1:] == ["fold", "fold", "all users"]  # two alphas of one fold
    assert again.result_.objective == pytest.approx(want.result_.objective, rel=1e-5)


def test_equal_searches_at_once_share_a_folder(rows, tmp_path):
    settings = {**CV, "alphas": (0.1, 0.01), "checkpoint": tmp_path}
    fresh = PAPKRankerCV(**{**settings, "checkpoint": None}).fit(*rows)
    with ThreadPoolExecutor(4) as pool:
        searches = [pool.submit(PAPKRankerCV(**settings).fit, *rows) for _ in range(4)]
        for search in searches:
            fitted = search.result()
            assert fitted.best_params_ == fresh.best_params_
            np.testing.assert_allclose(fitted.coef_, fresh.coef_, rtol=1e-3)


def test_a_search_whose_folder_fills_up_goes_on_and_says_so(rows, tmp_path, monkeypatch):
    def full(path, content):
        raise InputError(f"cannot write {path}: no space left on device")

    monkeypatch.setattr(search, "write_atomically", full)
    with pytest.warns(UserWarning, match="no space left"):
        PAPKRankerCV(**CV, alphas=(0.1,), checkpoint=tmp_path).fit(*rows)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        PAPKRankerCV(**CV, checkpoint=tmp_path / "file").fit(*rows)


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def file(rows, tmp_path):
    return write_csv(tmp_path / "rows.csv", *rows)


def run(capsys, *arguments):
    status = cli.main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_a_fit_goes_on_and_refuses_what_is_of_another(file, tmp_path, capsys):
    fit = ("fit", file, "-o", tmp_path / "m", "--k", 3, "--json", "--checkpoint")
    _, first, _ = run(capsys, *fit, tmp_path / "c", "--checkpoint-interval", 0, "--max-iter", 3)
    status, second, _ = run(capsys, *fit, tmp_path / "c")
    assert status == 0 and f"went on from {tmp_path / 'c'}" in json.loads(second)["message"]
    assert json.loads(first)["objective"] > json.loads(second)["objective"]
    _, third, _ = run(capsys, *fit, tmp_path / "c")
    assert json.loads(third)["n_iter"] < json.loads(second)["n_iter"]
    status, _, errors = run(capsys, *fit, tmp_path / "c", "--alpha", 0.5)
    assert status == 2 and re.search(r"alpha was 0\.\d+, is 0\.5", errors)
    status, _, errors = run(capsys, *fit, tmp_path / "c", "--checkpoint-interval", "nan")
    assert status == 2 and "interval of a checkpoint must be a number of at least 0" in errors


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit_keeps_its_best_model_and_goes_on(
    how, file, tmp_path, capsys, monkeypatch
):
    def at_the_third(progress):
        if progress.iteration == 3:
            signal.raise_signal(how)

    before = signal.getsignal(how)
    fit = ("fit", file, "-o", tmp_path / "m", "--k", 3, "--json", "--checkpoint", tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(console, "live", lambda: signal.raise_signal(how))
        status, out, errors = run(capsys, *fit)  # there is no result yet
        assert status == 130 and json.loads(out) == {"error": "interrupted"}
        assert "Error: interrupted" in errors and not (tmp_path / "m").exists()
        patch.setattr(console, "live", lambda: nullcontext(lambda *_: at_the_third))
        status, out, errors = run(capsys, *fit)
    first = json.loads(out)
    assert status == 1 and first["status"] == "interrupted" and "best point so far" in errors
    assert signal.getsignal(how) == before and (tmp_path / "m").is_file()
    status, out, _ = run(capsys, *fit)
    second = json.loads(out)
    assert status == 0 and second["converged"] and second["objective"] < first["objective"]
