"""``python -m benchmarks``: an index of all that can be run, and one way to run it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import GROUPS, ONE_THREAD, main, runnable

pytestmark = pytest.mark.study

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"python -m\s+benchmarks\s([a-z_0-9]+)")
LISTED = re.compile(r"^  ([a-z_0-9]+(?: [a-z_0-9-]+)?)  +(.*)$", re.MULTILINE)
SHARED = {  # by scripts, and not run
    "speed": {"data", "harness", "measuring", "tasks"},
    "quality": {"one_list"},
    "certificate": set(),
}


def index(*words):
    command = [sys.executable, "-m", "benchmarks", *words]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


@pytest.fixture(scope="module")
def listed():
    return dict(LISTED.findall(index().stdout))


def test_everything_that_runs_is_listed_with_a_sentence(listed):
    assert {file.stem for file in (ROOT / "benchmarks").glob("*.py")} == {"__init__", "__main__"}
    scripts = set()
    for group in SHARED:
        files = {file.stem for file in (ROOT / "benchmarks" / group).glob("*.py")}
        scripts |= files - SHARED[group] - {"__init__"}
    assert {name for name in listed if " " not in name} == scripts
    assert {"paper table1", "studies rerank", "studies synthetic-interactions"} <= set(listed)
    assert all(description.endswith(".") for description in listed.values())


def test_pages_and_scripts_name_what_is_listed(listed):
    known = {name.split()[0] for name in listed}
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*")]
    for file in files:
        if file.suffix in (".md", ".py") and file.name != "CHANGELOG.md":
            named = set(NAMED.findall(file.read_text()))
            assert named <= known, (file, named - known)


def test_every_file_of_results_is_named_by_a_script_or_a_page():
    folders = ("benchmarks", "docs", "structsvm_papk")
    files = [*ROOT.glob("*.md"), *(file for name in folders for file in (ROOT / name).rglob("*"))]
    texts = {file: file.read_text() for file in files if file.suffix in (".md", ".py")}
    for result in (ROOT / "benchmarks" / "results").iterdir():
        assert any(result.name in text for file, text in texts.items() if file != result), result


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")  # of other tests
@pytest.mark.parametrize("name", [name for group in GROUPS for name in runnable(group)])
def test_every_script_explains_its_options(name, monkeypatch, capsys):
    for variable in ONE_THREAD:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys, "argv", ["benchmarks", name, "--help"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    shown = " ".join(capsys.readouterr().out.split())
    assert f"sage: python -m benchmarks {name} " in shown and "--help" in shown


def test_a_wrong_name_is_refused():
    wrong = index("nothing")
    assert wrong.returncode == 2 and "no benchmark 'nothing': cluster" in wrong.stderr
