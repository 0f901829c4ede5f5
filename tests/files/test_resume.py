"""Runs that are resumed: cross-validation, comparisons, and the command line."""

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
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import locked_folder
from structsvm_papk.files.checkpoint import Checkpoint, CheckpointWarning
from structsvm_papk.rankers import search
from structsvm_papk.rankers.search import Training
from structsvm_papk.rankers.solver_race import compare

pytestmark = pytest.mark.recovery


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3)).round(4)
    y = X[:, 0] + 0.5 * rng.normal(size=240) > 0.8
    return X, y, np.repeat(np.arange(12), 20)


def stop_at_three(progress):
    if progress.iteration == 3:
        raise KeyboardInterrupt


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
    assert solved == ["all users"]  # from where it had ended
    files = sorted(tmp_path.glob("*.fits"))
    assert len(files) == 3
    files[0].write_bytes(files[0].read_bytes()[:-1] + b"x")
    again = PAPKRankerCV(**settings).fit(*rows)
    assert solved[1:] == ["fold", "fold", "all users"]  # two alphas of one fold
    assert again.result_.objective == pytest.approx(want.result_.objective, rel=1e-5)


def test_a_search_ends_though_the_fit_on_all_users_finds_its_folder_in_use_or_damaged(
    rows, tmp_path
):
    settings = {**CV, "alphas": (0.1,), "checkpoint": tmp_path}
    want = PAPKRankerCV(**settings).fit(*rows)
    (folder,) = tmp_path.glob("all-users-*")
    with locked_folder(folder):  # as by an equal search, which keeps the same
        fresh = PAPKRankerCV(**settings).fit(*rows)
    np.testing.assert_array_equal(fresh.coef_, want.coef_)
    (folder / "result.checkpoint").write_bytes(b"no checkpoint")
    with pytest.warns(CheckpointWarning, match=r"Delete the folder.*\. The run goes on"):
        again = PAPKRankerCV(**settings).fit(*rows)
    np.testing.assert_array_equal(again.coef_, want.coef_)


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
    with pytest.warns(CheckpointWarning, match="no space left"):
        PAPKRankerCV(**CV, alphas=(0.1,), checkpoint=tmp_path).fit(*rows)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        PAPKRankerCV(**CV, checkpoint=tmp_path / "file").fit(*rows)


def test_a_comparison_keeps_its_runs(rows, tmp_path):
    data = RankingData.from_groups(*rows)
    place = Checkpoint(tmp_path)
    settings = {"surrogates": ("ts", "avg"), "k": 3, "alpha": 1e-2, "etas": (0.1,)}
    broken = compare(data, **settings, checkpoint=place, watch=lambda *_: stop_at_three)
    assert len(broken) == 1
    whole = compare(data, **settings)
    resumed = compare(data, **settings, checkpoint=place)
    assert [run.result.status for run in resumed] == [run.result.status for run in whole]
    for run, again in zip(whole, resumed, strict=True):
        if run.result.converged:
            assert run.result.objective == pytest.approx(again.result.objective, rel=2e-6)
    assert resumed[0].result.history[:3] == broken[0].result.history[:3]


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def file(rows, tmp_path):
    return write_csv(tmp_path / "rows.csv", *rows)


def run(capsys, *arguments):
    status = cli.main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_fit_and_compare_resume_and_refuse_each_other(file, tmp_path, capsys):
    fit = ("fit", file, "-o", tmp_path / "m", "--k", 3, "--json", "--checkpoint")
    _, first, _ = run(capsys, *fit, tmp_path / "c", "--checkpoint-interval", 0, "--max-iter", 3)
    status, second, errors = run(capsys, *fit, tmp_path / "c")
    assert status == 0 and "resumed from" in errors
    assert json.loads(second)["n_iter"] > json.loads(first)["n_iter"] == 3
    _, third, _ = run(capsys, *fit, tmp_path / "c")
    assert json.loads(third)["objective"] <= json.loads(second)["objective"]
    status, _, errors = run(capsys, *fit, tmp_path / "c", "--alpha", 0.5)
    assert status == 2 and re.search(r"alpha was 0\.\d+, is 0\.5", errors)
    (tmp_path / "taken").touch()
    assert "taken is no folder" in run(capsys, *fit, tmp_path / "taken")[2]
    status, _, errors = run(capsys, *fit, tmp_path / "c", "--checkpoint-interval", "nan")
    assert status == 2 and "interval of a checkpoint must be a number of at least 0" in errors
    compare = ("compare", file, "--k", 3, "--surrogate", "avg", "--eta", 0.1)
    assert run(capsys, *compare, "--checkpoint", tmp_path / "d")[0] == 0
    status, _, errors = run(capsys, *compare, "--checkpoint", tmp_path / "d")
    assert status == 0 and errors.count("resumed from") == 2


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
