"""What a command writes: one object of JSON; refused before any work where it cannot be written."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from helpers.commands import commands, refused, run
from helpers.marks import POSIX
from helpers.sources import write_csv

pytestmark = pytest.mark.portable

# A call of every command, without what it may write, and a file that it reads.
CALLS = {
    "demo": ("demo", None),
    "example-data": ("example-data", None),
    "fit": ("fit rows.csv --k 2 --model m", "rows.csv"),
    "fuse": ("fuse first.csv second.csv --qrels judged.csv --k 2 --cv 2", "judged.csv"),
    "predict": ("predict model rows.csv", "model"),
    "evaluate": ("evaluate model rows.csv", "model"),
    "compare": ("compare rows.csv --k 2 --test new.csv", "new.csv"),
    "bound uniform": ("bound uniform --n-pos 50 --n-neg 500 --k 20 --n-features 3", None),
    "bound held-out": ("bound held-out rows.csv --k 2 --model model", "rows.csv"),
    "bound sizes": ("bound sizes 0.1", None),
    "bound new-users": ("bound new-users model rows.csv", "rows.csv"),
    "diagnose": ("diagnose rows.csv --k 2", "rows.csv"),
    "margins": ("margins rows.csv --k 2", "rows.csv"),
    "verify": ("verify --check prop2 --check theorem1 --effort quick --jobs 2", None),
}
WITH_JSON = [name for name, each in commands() if any("--json" in p.opts for p in each.params)]


def _call(name):
    words, path = CALLS[name]
    return words.split(), path


def written():
    """The flag of every file or folder that a command writes, with its command."""
    for name, command in commands():
        for parameter in inspect.signature(command.callback).parameters.values():
            kind, *metadata = get_args(parameter.annotation) or (None,)
            if metadata and Path in (kind, *get_args(kind)):
                option = metadata[0]
                if option.rich_help_panel == "Output":
                    flags = [option.default, *(option.param_decls or ())]
                    given = [flag for flag in flags if isinstance(flag, str)]
                    yield name, (given or [f"--{parameter.name.replace('_', '-')}"])[0]


WRITTEN = sorted(written())


def test_every_command_has_a_call():
    assert {name for name, _ in commands()} == set(CALLS)
    assert ("fit", "--model") in WRITTEN and ("verify", "--report") in WRITTEN


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What the calls read."""
    place = tmp_path_factory.mktemp("calls")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(1)
    users = np.repeat(np.arange(6), 10)
    for name in ("rows.csv", "new.csv"):
        rows = write_csv(place / name, X, X[:, 0] > 0, users, group="user")
    assert run("fit", rows, "--k", "2", "--model", place / "model") == 0
    pairs = pd.DataFrame({"query": users, "document": np.arange(60)})
    for name, column in (("first", X[:, 0]), ("second", X[:, 1])):
        pairs.assign(score=column).to_csv(place / f"{name}.csv", index=False)
    pairs.assign(grade=(X[:, 0] > 0).astype(int)).to_csv(place / "judged.csv", index=False)
    return place


@pytest.fixture
def folder(made, tmp_path, monkeypatch):
    """The folder that commands run in."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_JSON)
def test_standard_output_is_one_object(folder, name):
    """``--json``: one object on standard output, whatever the libraries print."""
    words = [sys.executable, "-m", "structsvm_papk", *CALLS[name][0].split(), "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "run" in json.loads(done.stdout) and done.stdout.count("\n") == 1


@pytest.mark.parametrize(("name", "flag"), WRITTEN)
def test_no_output_is_written_over_an_input(folder, capsys, name, flag):
    call, path = _call(name)
    if path is None:
        pytest.skip("it reads no file")
    before = (folder / path).read_bytes()
    assert "is an input of this command" in refused(capsys, *call, flag, path)
    assert (folder / path).read_bytes() == before


@pytest.mark.parametrize(("name", "flag"), WRITTEN)
def test_an_output_that_cannot_be_written_is_refused_before_any_work(folder, capsys, name, flag):
    if flag == "--checkpoint":
        pytest.skip("the folder is made")
    if flag == "--plot":
        pytest.importorskip("matplotlib")
    call, _ = _call(name)
    assert "cannot write" in refused(capsys, *call, flag, "no/such/folder/file.svg")
    assert not (folder / "no").exists()


@POSIX
@pytest.mark.parametrize(("name", "flag"), WRITTEN)
def test_links_that_lead_in_a_loop_are_refused(folder, capsys, name, flag):
    if flag == "--plot":
        pytest.importorskip("matplotlib")
    (folder / "loop.svg").symlink_to(folder / "back.svg")
    (folder / "back.svg").symlink_to(folder / "loop.svg")
    call, path = _call(name)
    said = refused(capsys, *call, flag, "loop.svg")
    assert re.search(r"loop.svg.*(links lead in a loop|File exists)", said)
    if path is not None:
        call = ["loop.svg" if word == path else word for word in call]
        assert re.search(r"loop.svg", refused(capsys, *call))


@pytest.mark.parametrize(
    ("name", "flag", "path"),
    [
        ("fit", "--model", "m.json"),
        ("fit", "-o", "m.onnx"),
        ("fit", "--model", "m.pkl"),
        ("fuse", "--model", "m.json"),
        ("fuse", "--output", "o.json"),
        ("fuse", "--weights", "w.csv"),
        ("fuse", "--html", "page.csv"),
        ("evaluate", "--per-user", "v.parquet"),
        ("verify", "--report", "r.json"),
    ],
)
def test_a_name_that_says_another_format_is_refused(folder, capsys, name, flag, path):
    call, _ = _call(name)
    call = call[: call.index("--model")] if flag in ("--model", "-o") and name == "fit" else call
    assert re.search(rf"{path}: .* is written, not ", refused(capsys, *call, flag, path))
    assert not (folder / path).exists()
