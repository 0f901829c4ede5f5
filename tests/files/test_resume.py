"""Runs that are resumed by the command line."""

import json
import signal
from contextlib import nullcontext

import numpy as np
import pytest

from helpers.sources import write_csv
from structsvm_papk import cli
from structsvm_papk.cli._shared import console

pytestmark = pytest.mark.recovery


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3)).round(4)
    y = X[:, 0] + 0.5 * rng.normal(size=240) > 0.8
    return X, y, np.repeat(np.arange(12), 20)


# --- the command line -------------------------------------------------------------------------


@pytest.fixture
def file(rows, tmp_path):
    return write_csv(tmp_path / "rows.csv", *rows)


def run(capsys, *arguments):
    status = cli.main([str(argument) for argument in arguments])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


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
