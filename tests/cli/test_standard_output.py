"""Standard output: all of it or an error, whatever its buffer, its encoding and the memory."""

import io
import json
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run
from helpers.marks import POSIX, slow
from structsvm_papk.cli import program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows with users called ü0, ü1, .., and a model of them; another one is called with a ä."""
    folder = tmp_path_factory.mktemp("rows")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["a", "b"])
    frame["user"] = [f"ü{row // 20}" for row in range(1200)]
    frame["label"] = (frame["a"] + rng.normal(size=1200) > 1).astype(int)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows ä.csv", index=False)
    fit = ["fit", folder / "rows.csv", "--k", 3, "--curves", "none", "--model", folder / "model"]
    assert run(*fit) == 0
    return folder


def written_to(monkeypatch, stream, *arguments):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stream)
        status = run(*arguments)
        assert sys.stdout is stream and stream.errors == "strict"
    return status


@POSIX
@pytest.mark.parametrize(
    ("unbuffered", "options"), [("1", ""), slow("", ""), slow("1", "--json"), slow("1", "--top 9")]
)
def test_scores_on_a_full_disk_are_an_error(folder, tmp_path, unbuffered, options):
    predict = f"predict {folder}/model {folder}/rows.csv {options} > {tmp_path}/out"
    command = f"trap '' XFSZ; ulimit -f 8; {sys.executable} -m structsvm_papk {predict}"
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, env=environment)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert done.stderr.endswith("Error: cannot write the output: File too large\n")


@pytest.mark.parametrize("as_json", [False, True])
def test_an_unbuffered_output_gets_all_and_stays_open(folder, tmp_path, monkeypatch, as_json):
    predict = ["predict", folder / "model", folder / "rows.csv", *["--json"] * as_json]
    with open(tmp_path / "out", "wb", buffering=0) as raw:
        stream = io.TextIOWrapper(raw, "utf-8", write_through=True)
        assert written_to(monkeypatch, stream, *predict) == 0
        stream.write("end")
        stream.detach()
    whole = (tmp_path / "out").read_text(encoding="utf-8").removesuffix("end")
    if as_json:
        assert len(json.loads(whole)["scores"]) == 1200
    else:
        assert whole.count("\n") == 1201


def test_data_that_an_encoding_lacks_are_refused_and_titles_are_shown(
    folder, tmp_path, monkeypatch, capsys
):
    def ascii_only():
        return io.TextIOWrapper(io.BytesIO(), "ascii")

    stream = ascii_only()
    assert written_to(monkeypatch, stream, "predict", folder / "model", folder / "rows.csv") == 2
    assert not stream.buffer.getvalue()
    said = capsys.readouterr().err
    assert r"Error: '\xfc' cannot be written in ascii: set PYTHONIOENCODING=utf-8" in said
    output = ["--output", tmp_path / "o.csv"]
    predict = ["predict", folder / "model", folder / "rows.csv", *output]
    assert written_to(monkeypatch, ascii_only(), *predict) == 0
    assert "ü7" in (tmp_path / "o.csv").read_text(encoding="utf-8")
    stream = ascii_only()
    fit = ["fit", folder / "rows ä.csv", "--k", 3, "--curves", "none", "--model", tmp_path / "m"]
    assert written_to(monkeypatch, stream, *fit) == 0
    assert rb"rows \xe4.csv" in stream.buffer.getvalue()


@POSIX
@pytest.mark.slow
def test_notes_that_cannot_be_written_cost_no_result(folder, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    predict = [sys.executable, "-m", "structsvm_papk", "predict", folder / "model"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*predict, folder / "rows.csv"], stdout=subprocess.PIPE, stderr=full, text=True
        )
    assert done.returncode == 0 and done.stdout.count("\n") == 1201


def test_too_little_memory_is_said_before_libraries_are_loaded(monkeypatch, capsys):
    def no_room(*_):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(program.mmap, "mmap", no_room)
    said = refused(capsys, "demo")
    assert re.search(r"not enough memory: a command needs \d+ MB .* \(ulimit -v\)", said)
    assert run("--version") == 0  # which loads none


@pytest.mark.parametrize("error", [MemoryError(), OSError(12, "Cannot allocate memory")])
def test_memory_that_runs_out_later_is_said(error, folder, tmp_path, monkeypatch, capsys):
    def no_room(*_, **__):
        raise error

    fit = ["fit", folder / "rows.csv", "--k", 3, "--model", tmp_path / "m"]
    with monkeypatch.context() as patch:
        patch.setattr("structsvm_papk.cli.fit.PAPKRanker", no_room)
        assert "not enough memory: take fewer rows" in refused(capsys, *fit)
    monkeypatch.setattr(program, "_run", no_room)
    if isinstance(error, MemoryError):  # as it is being reported
        assert run("fit", "--json") == 2


@POSIX
@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [50, 120, 200, 400, 700])
def test_a_limit_of_memory_ends_a_command_with_a_message(folder, tmp_path, megabytes):
    fit = f"fit {folder}/rows.csv --k 3 --model {tmp_path}/m --json"
    command = f"ulimit -v {megabytes}000; exec {sys.executable} -m structsvm_papk {fit}"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith("Error: not enough memory")
    assert "not enough memory" in json.loads(done.stdout)["error"]
