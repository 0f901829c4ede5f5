"""Runs that are resumed by the command line."""

import json
import signal
from contextlib import nullcontext

import pytest

from helpers.commands import run
from helpers.sources import lists, write_csv
from structsvm_papk.cli._shared import console


@pytest.mark.recovery
@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit_keeps_its_best_model_and_goes_on(how, tmp_path, capsys, monkeypatch):
    def at_the_third(progress):
        if progress.iteration == 3:
            signal.raise_signal(how)

    def fit():
        status = run(*command)
        shown = capsys.readouterr()
        return status, json.loads(shown.out), shown.err

    before = signal.getsignal(how)
    file = write_csv(tmp_path / "rows.csv", *lists())
    command = ["fit", file, "-o", tmp_path / "m", "--k", 3, "--json"]
    command += ["--checkpoint", tmp_path / "c"]
    with monkeypatch.context() as patch:
        patch.setattr(console, "live", lambda: signal.raise_signal(how))
        status, told, errors = fit()  # there is no result yet
        assert status == 130 and told == {"error": "interrupted"}
        assert "Error: interrupted" in errors and not (tmp_path / "m").exists()
        patch.setattr(console, "live", lambda: nullcontext(lambda *_: at_the_third))
        status, first, errors = fit()
    assert status == 1 and first["status"] == "interrupted" and "best point so far" in errors
    assert signal.getsignal(how) == before and (tmp_path / "m").is_file()
    status, second, _ = fit()
    assert status == 0 and second["converged"] and second["objective"] < first["objective"]
