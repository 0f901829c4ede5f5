"""``--json``: one object on standard output and nothing else, whatever the libraries print."""

import json
import subprocess
import sys

import numpy as np
import pytest

from helpers.commands import commands, run
from helpers.marks import slow
from helpers.sources import write_csv

MAIN = "import sys; from structsvm_papk.cli import main; sys.exit(main())"

CASES = [
    slow("demo"),
    slow("fit rows.csv --k 2 --model model"),
    slow("predict model rows.csv --output scores.csv"),
    slow("evaluate model rows.csv"),
    slow("compare rows.csv --k 2"),
    slow("bound uniform --n-pos 50 --n-neg 500 --k 20 --n-features 3"),
    slow("bound held-out rows.csv --k 2 --model model"),
    slow("bound sizes 0.1"),
    slow("bound new-users model rows.csv"),
    slow("diagnose rows.csv --k 2"),
    slow("margins rows.csv --k 2 --per-user"),
    slow("verify --check prop2 --check theorem1 --effort quick --jobs 2"),
    slow("fuse first.csv second.csv --qrels judged.csv --k 2 --cv 2"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).round(1)
    users = np.repeat(np.arange(6), 10)
    rows = write_csv(place / "rows.csv", X, X[:, 0] > 0, users, group="user")
    assert run("fit", rows, "--k", "2", "--model", place / "model") == 0
    for name, column in (("first", X[:, 0]), ("second", X[:, 1])):
        lines = [f"{u},{i},{s}" for i, (u, s) in enumerate(zip(users, column, strict=True))]
        (place / f"{name}.csv").write_text("\n".join(["query,document,score", *lines]) + "\n")
    grades = [f"{u},{i},{int(x > 0)}" for i, (u, x) in enumerate(zip(users, X[:, 0], strict=True))]
    (place / "judged.csv").write_text("\n".join(["query,document,grade", *grades]) + "\n")
    return place


@pytest.mark.parametrize("call", CASES)
def test_standard_output_is_one_object(folder, call):
    words = [sys.executable, "-c", MAIN, *call.split(), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=folder)
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert "run" in told and done.stdout.count("\n") == 1


def test_every_command_has_a_case():
    calls = [case if isinstance(case, str) else case.values[0] for case in CASES]
    for name, command in commands():
        if any("--json" in parameter.opts for parameter in command.params):
            assert any(call.startswith(name) for call in calls), name
