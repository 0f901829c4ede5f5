"""The call that ``tune`` prints gives the model that it wrote, whatever its options were."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

from helpers.commands import run, run_json
from helpers.sources import write_csv
from structsvm_papk.cli._shared.declared import Use, declared
from structsvm_papk.cli.fit import fit
from structsvm_papk.cli.program import _PANELS, Commands
from structsvm_papk.cli.tune import tune
from structsvm_papk.files.model import load_model
from structsvm_papk.rankers import PAPKRanker

pytestmark = pytest.mark.portable

USUAL = {
    "--k": "2", "--cv": "2", "--surrogate": "ts", "--alpha": "0.1", "--depth": "0.9",
    "--user-weight": "equal", "--tol": "1e-7", "--model": "one",
}  # fmt: skip

# By the name of each option in code: how tune is called, and which of it the call of fit has to
# say. Each makes another model, or the file cannot be read without it.
SPACED = ["my rows.csv", "--label", "my label", "--group", "my user"]
CASES = {
    "data": (["my rows.csv", *SPACED[1:]], "'my rows.csv'"),
    "k": (["rows.csv", "--k", "3"], "--k 3"),
    "surrogate": (["rows.csv", "--surrogate", "avg"], "--surrogate avg"),
    "depth": (["rows.csv", "--depth", "k"], "--depth k"),
    "user_weight": (["rows.csv", "--user-weight", "positives"], "--user-weight positives"),
    "alpha": (["rows.csv", "--alpha", "0.5"], "--alpha 0.5"),
    "standardize": (["rows.csv", "--standardize", "no"], "--standardize no"),
    "positive": (["rows.csv", "--positive"], "--positive"),
    "missing": (["holes.csv", "--missing", "lowest"], "--missing lowest"),
    "user_scaling": (["rows.csv", "--user-scaling", "rank"], "--user-scaling rank"),
    "cv": (["rows.csv", "--cv", "3"], ""),
    "scoring": (["rows.csv", "--scoring", "auc"], ""),
    "selection": (["rows.csv", "--selection", "best"], ""),
    "n_jobs": (["rows.csv", "--jobs", "2"], ""),
    "label": (SPACED, "--label 'my label'"),
    "group": (SPACED, "--group 'my user'"),
    "ignore": (["rows.csv", "--ignore", "b", "--ignore", "c"], "--ignore b --ignore c"),
    "format": (["rows.data", "--format", "csv"], "--format csv"),
    "first_index": (["rows.svm", "--query", "n", "--first-index", "0"], "--first-index 0"),
    "relevance_threshold": (
        ["graded.csv", "--relevance-threshold", "2"],
        "--relevance-threshold 2.0",
    ),
    "query": (["rows.svm", "--query", "n"], "--query n"),
    "one_list": (["rows.csv", "--one-list"], "--one-list"),
    "tol": (["rows.csv", "--tol", "1e-5"], "--tol 1e-05"),
    "time_limit": (["rows.csv", "--time-limit", "100"], "--time-limit 100.0"),
    "cv_tol": (["rows.csv", "--cv-tol", "0.1"], ""),
    "checkpoint": (["rows.csv", "--checkpoint", "kept"], ""),
    "checkpoint_interval": (["rows.csv", "--checkpoint-interval", "5"], ""),
    "model_file": (["rows.csv", "--model", "one"], "--model MODEL"),
    "plot": (["rows.csv", "--plot", "depths.svg"], ""),
    "policy": (["rows.csv", "--policy", "exclude"], ""),
    "show_all": (["rows.csv", "--all"], ""),
    "as_json": (["rows.csv"], ""),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One problem in many files; the first two users have fewer than k negatives."""
    place = tmp_path_factory.mktemp("repeat")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(4)
    grades = np.clip(np.round(X @ [1, -1, 0.5] + 0.5 * rng.normal(size=300)), 0, 3).astype(int)
    users = np.repeat(np.arange(15), 20)
    grades[:40] = np.where(np.arange(40) % 20 == 0, 0, 2)
    relevant = (grades >= 1).astype(int)
    rows = write_csv(place / "rows.csv", X, relevant, users, group="user")
    (place / "rows.data").write_text(rows.read_text())
    holed = np.where(np.abs(X) > 1.5, np.nan, X)
    holes = write_csv(place / "holes.csv", holed, relevant, users, group="user")
    holes.write_text(holes.read_text().replace("nan", ""))
    write_csv(place / "graded.csv", X, grades, users, group="user")
    write_csv(place / "my rows.csv", X, relevant, users, "my label", "my user")
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{value}" for j, value in enumerate(row))
        for label, row in zip(relevant, X.tolist(), strict=True)
    ]
    (place / "rows.svm").write_text("\n".join(lines) + "\n")
    (place / "n").write_text("20\n" * 15)
    return place


def test_every_option_has_a_case():
    missing = declared(tune).keys() - CASES.keys()
    assert not missing, f"tune has {missing}: a case each in which it changes the model"
    assert CASES.keys() <= declared(tune).keys()


@pytest.mark.parametrize("name", CASES)
def test_the_printed_command_gives_the_model(folder, monkeypatch, capsys, name):
    if name == "plot":
        pytest.importorskip("matplotlib")
    (file, *given), said = CASES[name]
    monkeypatch.chdir(folder)
    usual = [word for item in USUAL.items() if item[0] not in given for word in item]
    status, told = run_json(capsys, "tune", file, *usual, *given)
    command = told["command"]
    assert status == 0 and said in command, command
    program, *words = shlex.split(command.replace("MODEL", "two"))
    assert program == "structsvm-papk" and run(*words) == 0, capsys.readouterr().err
    assert_same_model(load_model(Path("one")), load_model(Path("two")))


def assert_same_model(one, two):
    for name in ("k", "surrogate", "depth", "alpha", "user_weight", "user_scaling", "standardized",
                 "feature_names", "first_index", "relevance_threshold"):  # fmt: skip
        assert getattr(one, name) == getattr(two, name), name
    np.testing.assert_allclose(one.coef, two.coef, atol=0.02 * np.abs(one.coef).max())


def test_the_printed_ranker_has_what_the_search_was_told(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    usual = [word for item in USUAL.items() for word in item]
    given = ["--one-list", "--relevance-threshold", "2", "--standardize", "no"]
    _, told = run_json(capsys, "tune", "graded.csv", *usual, *given)
    ranker = eval(told["python"], {"PAPKRanker": PAPKRanker})
    expected = {
        "k": 2, "surrogate": "ts", "depth": 0.9, "alpha": 0.1, "tol": 1e-7,
        "standardize": False, "one_list": True, "relevance_threshold": 2.0, "policy": "cap",
    }  # fmt: skip
    assert {name: getattr(ranker, name) for name in expected} == expected


@pytest.mark.parametrize("flag", ["--model", "--output", "-o"])
def test_both_commands_take_all_spellings_of_the_model_file(folder, monkeypatch, flag):
    monkeypatch.chdir(folder)
    usual = [word for item in USUAL.items() for word in item if item[0] != "--model"]
    for command, given in {"fit": ["--k", "2"], "tune": usual}.items():
        place = Path(f"{command}{flag}.model")
        assert run(command, "rows.csv", *given, flag, place) == 0
        assert load_model(place).k == 2


def test_words_that_begin_with_a_dash_are_values(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    text = Path("rows.csv").read_text()
    Path("-rows.csv").write_text(text.replace("label", "-label", 1))
    usual = [word for item in USUAL.items() for word in item]
    given = ["--label", "-label", "--", "-rows.csv"]
    assert run("tune", *usual, "--json", *given) == 0
    command = json.loads(capsys.readouterr().out)["command"]
    assert run(*shlex.split(command.replace("MODEL", "two"))[1:]) == 0
    assert_same_model(load_model(Path("one")), load_model(Path("two")))


def test_every_path_under_output_is_declared_as_one():
    """Else a command could write over what it reads."""
    for name in (name for commands in _PANELS.values() for name in commands):
        for option in declared(Commands.function(name)).values():
            if option.takes_path and option.info.rich_help_panel == "Output":
                assert option.use is not Use.READS, (name, option.name)
    assert declared(fit)["model_file"].use is Use.WRITES
