"""What a command writes: refused before any work where it cannot be, or is read as well."""

import inspect
import re
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from helpers.commands import commands, refused
from helpers.marks import POSIX
from helpers.sources import write_csv

pytestmark = pytest.mark.portable

# A call of every command, without what it may write, and a file that it reads.
CALLS = {
    "demo": (["demo"], None),
    "example-data": (["example-data"], None),
    "fit": (["fit", "rows.csv", "--k", "2", "--model", "m"], "rows.csv"),
    "fuse": (["fuse", "a.run", "b.run", "--qrels", "judged"], "judged"),
    "predict": (["predict", "model", "rows.csv"], "model"),
    "evaluate": (["evaluate", "model", "rows.csv"], "model"),
    "compare": (["compare", "rows.csv", "--k", "2", "--test", "new.csv"], "new.csv"),
    "bound uniform": (
        ["bound", "uniform", "--n-pos", "9", "--n-neg", "9", "--k", "2", "--n-features", "1"],
        None,
    ),
    "bound held-out": (["bound", "held-out", "rows.csv", "--k", "2"], "rows.csv"),
    "bound sizes": (["bound", "sizes", "0.1"], None),
    "bound new-users": (["bound", "new-users", "model", "rows.csv"], "rows.csv"),
    "diagnose": (["diagnose", "rows.csv", "--k", "2"], "rows.csv"),
    "margins": (["margins", "rows.csv", "--k", "2"], "rows.csv"),
    "verify": (["verify", "--effort", "quick"], None),
}


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    for name in ("rows.csv", "new.csv"):
        write_csv(tmp_path / name, X, X[:, 0] > 0, np.repeat(np.arange(4), 10), group="user")
    for name in ("model", "judged", "a.run", "b.run"):  # nothing of them is read
        (tmp_path / name).write_text("not read\n")
    return tmp_path


@pytest.mark.parametrize(("name", "flag"), WRITTEN)
def test_no_output_is_written_over_an_input(folder, capsys, name, flag):
    call, path = CALLS[name]
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
    call, _ = CALLS[name]
    assert "cannot write" in refused(capsys, *call, flag, "no/such/folder/file.svg")
    assert not (folder / "no").exists()


@POSIX
@pytest.mark.parametrize(("name", "flag"), WRITTEN)
def test_links_that_lead_in_a_loop_are_refused(folder, capsys, name, flag):
    if flag == "--plot":
        pytest.importorskip("matplotlib")
    (folder / "loop.svg").symlink_to(folder / "back.svg")
    (folder / "back.svg").symlink_to(folder / "loop.svg")
    call, path = CALLS[name]
    said = refused(capsys, *call, flag, "loop.svg")
    assert re.search(r"loop.svg.*(links lead in a loop|File exists)", said)
    if path is not None:
        call = ["loop.svg" if word == path else word for word in call]
        assert re.search(r"loop.svg|a.run, line 1", refused(capsys, *call))


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
    call, _ = CALLS[name]
    call = call[: call.index("--model")] if flag in ("--model", "-o") and name == "fit" else call
    assert re.search(rf"{path}: .* is written, not ", refused(capsys, *call, flag, path))
    assert not (folder / path).exists()
