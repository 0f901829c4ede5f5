"""``python -m benchmarks``: an index of all that can be run, and one way to run it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.portable

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"python -m\s+benchmarks\s([a-z_0-9]+)")


def index(*words):
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_everything_that_runs_is_listed_and_every_page_names_what_is():
    listed = dict(line.split(maxsplit=1) for line in index().stdout.splitlines())
    scripts = {file.stem for file in (ROOT / "benchmarks").glob("*.py")}
    folders = {file.parent.name for file in (ROOT / "benchmarks").glob("*/__main__.py")}
    shared = {"__init__", "__main__", "cells", "console", "processes", "workers"}
    assert listed.keys() == scripts - shared | folders
    assert all(description.endswith(".") for description in listed.values())
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*")]
    for file in files:
        if file.suffix in (".md", ".py") and file.name != "CHANGELOG.md":
            named = set(NAMED.findall(file.read_text()))
            assert named <= listed.keys(), (file, named - listed.keys())


def test_a_name_is_run_with_its_options_and_a_wrong_one_refused():
    assert "Peak memory of a fit" in index("memory", "--help").stdout
    assert "table1" in index("paper", "--help").stdout
    wrong = index("nothing")
    assert wrong.returncode == 2 and "no benchmark 'nothing': paper" in wrong.stderr
