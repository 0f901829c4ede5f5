"""The calls that ``tune`` prints train the chosen setting."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from helpers.commands import run, run_json
from helpers.marks import slow
from helpers.sources import write_csv
from structsvm_papk.files.model import load_model
from structsvm_papk.rankers import PAPKRanker

pytestmark = pytest.mark.portable

USUAL = ["--k", "2", "--cv", "2", "--tol", "1e-7", "--model", "one"]
# What is tried, one of each, none of them the default of fit.
TRIED = {
    "--surrogate": "ts",
    "--alpha": "0.05",
    "--depth": "k",
    "--user-weight": "positives",
    "--user-scaling": "rank",
    "--standardize": "no",
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Lists with grades 0 to 3; the first two have fewer than k negatives at grade 1."""
    place = tmp_path_factory.mktemp("tune")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).round(4)
    grades = np.clip(np.round(X @ [1, -1, 0.5] + 0.5 * rng.normal(size=300)), 0, 3).astype(int)
    return write_csv(place / "rows.csv", X, grades, np.repeat(np.arange(15), 20), group="user")


@pytest.mark.parametrize("flags", [tuple(TRIED), *(slow((flag,)) for flag in TRIED)], ids=" ".join)
def test_the_printed_options_of_fit_give_the_model(rows, tmp_path, monkeypatch, capsys, flags):
    monkeypatch.chdir(tmp_path)
    usual = {"--surrogate": "avg", "--alpha": "0.1", "--depth": "0.9", "--user-scaling": "none"}
    chosen = {flag: TRIED[flag] for flag in flags}
    tried = [word for item in (usual | chosen).items() for word in item]
    reading = ["--relevance-threshold", "1"]
    status, told = run_json(capsys, "tune", rows, *USUAL, *reading, *tried)
    assert status == 0
    for flag, value in chosen.items():
        assert f"{flag} {value}" in told["command"]
    call = told["command"].replace("DATA", str(rows)).replace("MODEL", "two")
    program, *words = shlex.split(call)
    assert program == "structsvm-papk" and run(*words, *reading, "--tol", "1e-7") == 0
    one = load_model(Path("one"))
    two = load_model(Path("two"))
    for name in ("k", "surrogate", "depth", "alpha", "user_weight", "user_scaling", "standardized"):
        assert getattr(one, name) == getattr(two, name), name
    np.testing.assert_allclose(one.coef, two.coef, atol=0.02 * np.abs(one.coef).max())


def test_the_printed_ranker_has_what_the_search_was_told(rows, capsys):
    given = ["--one-list", "--relevance-threshold", "2", "--standardize", "no"]
    tried = ["--surrogate", "ts", "--alpha", "0.1", "--depth", "0.9", "--user-weight", "equal"]
    _, told = run_json(capsys, "tune", rows, "--k", "2", "--cv", "2", *tried, *given)
    ranker = eval(told["python"], {"PAPKRanker": PAPKRanker})
    expected = {
        "k": 2,
        "surrogate": "ts",
        "depth": 0.9,
        "alpha": 0.1,
        "standardize": False,
        "one_list": True,
        "relevance_threshold": 2.0,
        "policy": "cap",
    }
    assert {name: getattr(ranker, name) for name in expected} == expected


@pytest.mark.parametrize("flag", ["--model", "--output", "-o"])
@pytest.mark.parametrize("command", ["fit", "tune"])
def test_both_commands_take_all_spellings_of_the_model_file(rows, tmp_path, command, flag):
    given = ["--k", "2", "--relevance-threshold", "1"]
    if command == "tune":
        given += ["--cv", "2", "--surrogate", "ts", "--alpha", "0.1", "--user-scaling", "none"]
    place = tmp_path / "model"
    assert run(command, rows, *given, flag, place) == 0
    assert load_model(place).k == 2


def test_words_that_begin_with_a_dash_are_values(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("-rows.csv").write_text(rows.read_text().replace("label", "-label", 1))
    given = ["--k", "2", "--relevance-threshold", "1", "-o", "m", "--label", "-label"]
    assert run("fit", *given, "--", "-rows.csv") == 0
    assert load_model(Path("m")).k == 2
