"""``fit`` on data in partitions: within a memory budget, and on the workers of a cluster."""

import contextlib
import json
import re
import signal
import sys

import pytest
from typer import BadParameter

from helpers.clusters import other_scheduler
from helpers.commands import refused, run, run_json
from helpers.marks import POSIX
from helpers.sources import lists, npy_source, parquet_source
from structsvm_papk.cli import scale
from structsvm_papk.cli._shared import console
from structsvm_papk.files.model import load_model

pytestmark = pytest.mark.portable

FIT = ["--k", "4", "--surrogate", "ts", "--tol", "1e-8"]
NOWHERE = "tcp://127.0.0.1:9"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The same lists as `.npy` files and as Parquet, and a small svmlight file."""
    place = tmp_path_factory.mktemp("data")
    npy_source(place, *lists())
    parquet_source(place, *lists(), rows=700)
    (place / "rows.txt").write_text(
        "".join(f"{i % 2} qid:{i // 10} 1:{i % 7}\n" for i in range(40))
    )
    return place


def test_the_model_of_a_fit_in_partitions_knows_its_features(place, tmp_path, capsys):
    data, model = place / "part0.parquet", tmp_path / "model"
    assert run("fit", data, *FIT, "--memory-budget", "200kB", "-o", model) == 0
    fitted = load_model(model)
    assert fitted.feature_names == tuple(f"f{c}" for c in range(5)) and fitted.surrogate == "ts"
    assert fitted.certificate["status"] == "converged" and fitted.certificate["gap"] <= 1e-8
    assert f"{data}: 5 features ('f0', 'f1', 'f2', 'f3', 'f4')" in capsys.readouterr().err


@pytest.mark.scale
@pytest.mark.parametrize("data", ["", "part0.parquet", "rows.txt"])
def test_a_cluster_gives_the_certificate_of_the_fit_in_memory(
    place, tmp_path, capsys, cluster, data
):
    like = place / (data or "part0.parquet")
    how = ["--k", "4", "--depth", "0.9", "--curves", "none"]
    _, expected = run_json(capsys, "fit", like, *how, "-o", tmp_path / "memory")
    wheres = [["--dask", cluster]]
    wheres += [["--memory-budget", "200kB"]] * (data != "rows.txt")
    for where in wheres:
        fit = ["fit", place / data, *how, *where, "-o", tmp_path / "model"]
        status, found = run_json(capsys, *fit)
        assert status == 0
        assert abs(found["objective"] - expected["objective"]) < 1e-6
        assert found["lower_bound"] <= expected["objective"] + 1e-12
        model = load_model(tmp_path / "model")
        assert model.depth == 0.9 and model.function.slopes is not None


BUDGET = ["--memory-budget", "1MB"]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ("", [*BUDGET, "--dask", NOWHERE], "for one machine, --dask for several: give one"),
        ("", [], "is a directory: give --memory-budget or --dask"),
        ("rows.txt", BUDGET, "cannot read .*rows.txt: it needs Parquet, or a directory"),
        ("", ["--memory-budget", "0"], "a size such as"),
        ("", ["--memory-budget", "12kB"], "too small: .* give at least .* MB"),
        ("", [*BUDGET, "--one-list"], "one list cannot be cut"),
        ("", [*BUDGET, "--monotonic", "f0=1"], "--monotonic needs the lists in memory"),
        ("", [*BUDGET, "--missing", "lowest"], "--missing lowest needs the lists in memory"),
        ("rows.txt", ["--missing", "lowest"], "svmlight"),
        ("", ["--dask", NOWHERE, "--threads", "2"], "--threads is for this machine"),
    ],
)
def test_wrong_input_is_one_line(place, tmp_path, capsys, data, options, message):
    output = ["-o", tmp_path / "model"]
    shown = refused(capsys, "fit", place / data, "--k", "4", *options, *output)
    assert re.search(message, shown), shown
    assert shown.count("\n") == 1
    assert not (tmp_path / "model").exists()


def test_dask_is_not_there(place, tmp_path, capsys, monkeypatch):
    fit = ["fit", place, "--k", "4", "--dask", NOWHERE, "-o", tmp_path / "m"]
    monkeypatch.setattr("structsvm_papk.oracles.dask_risk._TIMEOUT", 0.3)
    assert f"no Dask scheduler answers at '{NOWHERE}'" in refused(capsys, *fit)
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "clusters need Dask: pip install" in refused(capsys, *fit)


def test_sizes():
    for text, size in (("500MB", 500e6), ("2GiB", 2 * 2**30), (" 1.5 g ", 1.5e9), ("7", 7)):
        assert scale._size_in_bytes(text) == size
    for text in ("", "MB", "-1MB", "1e6", "1 XB", "nan", "0MB", "1B B"):
        with pytest.raises(BadParameter, match="must be a size"):
            scale._size_in_bytes(text)


@pytest.mark.recovery
@POSIX
def test_a_fit_goes_on_with_another_scheduler(place, tmp_path, capsys, cluster, monkeypatch):
    model, folder = tmp_path / "model", tmp_path / "state"
    fit = ["fit", place, *FIT, "-o", model, "--checkpoint", folder]

    with other_scheduler() as (process, address), monkeypatch.context() as patch:

        def watch(solver, surrogate):
            return lambda at: at.iteration == 4 and process.send_signal(signal.SIGKILL)

        patch.setattr(console, "live", lambda: contextlib.nullcontext(watch))
        assert run(*fit, "--dask", address, "--json") == 1
        shown = capsys.readouterr()
        told = json.loads(shown.out)
        assert told["status"] == "failed"
        assert "its scheduler is gone" in told["message"]
        assert f"the same command goes on from {folder}" in shown.err
        assert "Traceback" not in shown.err
    assert load_model(model).certificate["status"] == "failed"
    assert load_model(model).certificate["lower_bound"] <= told["objective"]
    assert run(*fit, "--dask", cluster) == 2  # its workers have other threads
    assert "the data (or how they are cut into partitions)" in capsys.readouterr().err
    with other_scheduler() as (_, address):
        status, told = run_json(capsys, *fit, "--dask", address)
    lines = [*FIT, "--curves", "none"]
    _, expected = run_json(capsys, *fit[:1], place / "part0.parquet", *lines, "-o", tmp_path / "m")
    assert status == 0 and "went on from" in told["message"]
    for one, other in ((told, expected), (expected, told)):
        assert one["lower_bound"] <= other["objective"] + 1e-12
        assert one["n_users_left_out"] == expected["n_users_left_out"] > 0
    assert told["pap_at_k"]["train"] == pytest.approx(expected["pap_at_k"]["train"], abs=2e-3)
