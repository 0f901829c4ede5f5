import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from structsvm_papk import cli
from structsvm_papk.cli._shared import _record as run_record

pytestmark = pytest.mark.portable


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with data, which is the current one."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(240, 3)).round(4)
    relevant = X[:, 0] + 0.5 * rng.normal(size=240) > 0.8
    rows = [
        ",".join(map(repr, [int(y), i // 20, *x]))
        for i, (y, x) in enumerate(zip(relevant, X.tolist(), strict=True))
    ]
    (tmp_path / "rows.csv").write_text("label,group,a,b,c\n" + "\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = ("fit", "rows.csv", "-o", "m.model", "--k", "3", "--surrogate", "ts")


def made(capsys, *arguments):
    """The result of a command, kept in a file."""
    cli.main([*map(str, arguments), "--json"])
    content = json.loads(capsys.readouterr().out)
    with open("result.json", "w") as file:
        json.dump(content, file)
    return content


def rerun(capsys, *more):
    status = cli.main(["rerun", "result.json", *more])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_the_record_says_how_to_repeat_a_run(place, capsys):
    told = made(capsys, *FIT, "--threads", 2)["run"]
    assert told["command"] == ["structsvm-papk", *FIT, "--threads", "2", "--json"]
    assert told["directory"] == str(place) and told["threads"] == 2
    assert told["files"] == {"rows.csv": run_record.fingerprint_of_input("rows.csv")}
    assert told["versions"]["numpy"] == np.__version__
    assert {"date", "python", "platform"} <= set(told)


COMMANDS = {
    "fit": FIT,
    "fit by descent": (*FIT, "--solver", "subgradient", "--max-iter", 20),
    "tune": (
        *("tune", "rows.csv", "--k", 3, "--cv", 2, "--alpha", 0.1, "--surrogate", "ts"),
        *("--depth", "k", "--depth", 5, "--user-weight", "equal", "--model", "t.model"),
    ),
    "compare": ("compare", "rows.csv", "--k", 3, "--surrogate", "avg", "--eta", 0.1),
    "diagnose": ("diagnose", "rows.csv", "--k", 3),
    "evaluate": ("evaluate", "rows.csv", "--score", "a", "-m", "pap@3,auc", "--resamples", 50),
    "bound": ("bound", "--n-pos", 50, "--n-neg", 500, "--k", 20, "--n-features", 3),
    "margins": ("margins", "rows.csv", "--k", 3, "--condition", "weak"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_rerun_is_identical(name, place, capsys):
    content = made(capsys, *COMMANDS[name])
    assert content["run"]["command"][-1] == "--json"
    status, shown, _ = rerun(capsys)
    assert (status, shown) == (0, "identical: every number is the same to the bit\n")


def test_outputs_of_the_first_run_are_not_touched(place, capsys):
    made(capsys, *FIT, "--checkpoint", "kept")
    (place / "m.model").write_bytes(b"precious")
    shutil.rmtree("kept")
    before = sorted(place.rglob("*"))
    assert rerun(capsys)[0] == 0
    assert (place / "m.model").read_bytes() == b"precious"
    assert sorted(place.rglob("*")) == before


def test_predictions_in_a_file_are_compared_by_their_summary(place, capsys):
    made(capsys, *FIT)
    content = made(capsys, "predict", "m.model", "rows.csv", "-o", "scores.txt")
    assert set(content["run"]["files"]) == {"m.model", "rows.csv"}
    assert content["smallest"] < content["mean"] < content["largest"]
    (place / "scores.txt").unlink()
    assert rerun(capsys)[0] == 0
    assert not (place / "scores.txt").exists()


def change(**changes):
    content = json.loads(Path("result.json").read_text())
    with open("result.json", "w") as file:
        json.dump(content | changes, file)
    return content


def test_what_differs_is_shown_and_told_apart(place, capsys):
    content = made(capsys, *FIT)
    change(objective=content["objective"] + 1e-9, seconds=99.0, n_iter=1000)
    status, shown, _ = rerun(capsys)
    assert status == 0 and "the same within 1e-06" in shown
    assert "objective" in shown and "effort" in shown and "seconds" not in shown
    change(objective=content["objective"] + 1e-3)
    status, shown, _ = rerun(capsys)
    assert status == 1 and shown.endswith("different\n")
    status, shown, _ = rerun(capsys, "--tol", "0.01")
    assert status == 0
    change(objective=content["objective"], status="max_iter", n_iter=content["n_iter"])
    status, shown, _ = rerun(capsys, "--json")
    told = json.loads(shown)
    assert status == 1 and not told["same"]
    assert [d["place"] for d in told["differences"]] == ["status"]


def test_changed_and_missing_data_are_refused(place, capsys):
    made(capsys, *FIT)
    text = (place / "rows.csv").read_text()
    (place / "rows.csv").write_text(text.replace("0", "1", 1))
    status, _, told = rerun(capsys)
    assert status == 2 and "rows.csv has changed since the result was made" in told
    (place / "rows.csv").unlink()
    status, _, told = rerun(capsys)
    assert status == 2 and "rows.csv is missing" in told


def test_a_result_can_be_repeated_from_another_folder(place, capsys, monkeypatch, tmp_path_factory):
    made(capsys, *FIT)
    other = tmp_path_factory.mktemp("other")
    shutil.copy("result.json", other)
    monkeypatch.chdir(other)
    assert rerun(capsys)[0] == 0
    assert [path.name for path in other.iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    "content",
    [
        "no json",
        "[]",
        "{}",
        '{"run": {"command": ["rm", "-rf", "x"], "files": {}}}',
        '{"run": {"command": "structsvm-papk fit", "files": {}}}',
        '{"run": {"command": ["structsvm-papk"], "files": {}}}',
        '{"run": {"command": ["structsvm-papk", "demo"]}}',
        '{"run": {"command": ["structsvm-papk", "rerun", "result.json"], "files": {}}}',
        '{"run": {"command": ["structsvm-papk", "nothing"], "files": {}}}',
        '{"run": {"command": ["structsvm-papk", "--version"], "files": {}}}',
        "[" * 100_000,
    ],
)
def test_foreign_results_are_refused(content, place, capsys):
    (place / "result.json").write_text(content)
    status, out, told = rerun(capsys)
    assert status == 2 and out == "" and told.startswith("Error: ")
    assert cli.main(["rerun", "absent.json"]) == 2


def test_records_of_folders_change_with_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("1")
    first = run_record.fingerprint_of_input(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    second = run_record.fingerprint_of_input(tmp_path)
    (tmp_path / "b").write_text("2")
    assert len({first, second, run_record.fingerprint_of_input(tmp_path)}) == 3
