"""Columns of text, missing values and pairs through the commands: as in Python, by both rules."""

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run, run_json
from helpers.marks import slow
from structsvm_papk import PAPKRanker, bounds
from structsvm_papk.files import load_model


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(2)
    n_rows = 600
    kind = rng.choice(["flat", "hotel", "tent"], n_rows).astype(object)
    price = rng.normal(size=n_rows)
    stars = rng.normal(size=n_rows)
    liked = np.where(kind == "tent", -price, price) + stars + 0.5 * rng.normal(size=n_rows)
    kind[rng.random(n_rows) < 0.1] = None
    stars[rng.random(n_rows) < 0.1] = np.nan
    frame = pd.DataFrame({"price": price, "kind": kind, "stars": stars})
    return frame.assign(user=np.repeat(np.arange(10, 30), 30), label=(liked > 1).astype(int))


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    place = tmp_path_factory.mktemp("text")
    frame.to_csv(place / "a.csv", index=False)
    frame.to_parquet(place / "a.parquet", index=False)
    return place


FEATURES = ["price", "kind", "stars"]


def test_bound_of_columns_that_rise_and_fall(folder, tmp_path, capsys, monkeypatch):
    """The problem is that with signs: of another one the certificate would be refused."""
    asked = []
    uniform = bounds.uniform
    monkeypatch.setattr(bounds, "uniform", lambda **how: asked.append(how) or uniform(**how))
    model = tmp_path / "m"
    fit = ["fit", folder / "a.csv", "--k", 3, "--alpha", 0.1, "--curves", 4, "--pairs", "none"]
    signs = ["--monotonic", "price=-1", "--monotonic", "stars=1"]
    for missing in ("separate", "lowest"):
        assert run(*fit, *signs, "--missing", missing, "--model", model) == 0
        capsys.readouterr()
        assert load_model(model).monotonic_cst == (-1, 0, 1)
        told = run_json(capsys, "bound", "new-users", model, folder / "a.csv")[1]
        assert 0 < told["bound"] <= 1
        assert asked[-1]["n_features"] > 8  # weights of three columns


def test_new_rows(frame, folder, tmp_path, capsys):
    model = tmp_path / "m"
    fit = ["fit", folder / "a.csv", "--k", 3, "--alpha", 0.1, "--curves", "none", "--pairs", "none"]
    assert run(*fit, "--model", model) == 0
    capsys.readouterr()
    new = frame[:3].assign(kind=["castle", "tent", None])
    new.to_csv(tmp_path / "new.csv", index=False)
    table = tmp_path / "scores.csv"
    assert run("predict", model, tmp_path / "new.csv", "--contributions", "-o", table) == 0
    capsys.readouterr()
    levels = load_model(model).function.terms[1]
    expected = [0.0, levels.weights[2], levels.gap]
    np.testing.assert_allclose(pd.read_csv(table)["from kind"], expected, rtol=0, atol=1e-12)


@pytest.mark.filterwarnings("default:column 'kind'")
@pytest.mark.parametrize(
    ("kind", "message"),
    [("Tent", "holds 'Tent', of which training knew none"), (None, "is missing in every row")],
)
def test_files_without_one_value_of_training_are_scored_with_a_warning(
    frame, tmp_path, capsys, kind, message
):
    PAPKRanker(k=3, alpha=0.1, curves=None).fit(
        frame.dropna()[FEATURES], frame.dropna()["label"], frame.dropna()["user"]
    ).save(tmp_path / "m")
    frame.dropna()[:3].assign(kind=kind).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", tmp_path / "m", tmp_path / "new.csv") == 0
    warned = " ".join(capsys.readouterr().err.split())
    assert f"warning: column 'kind' {message}" in warned and "--depth" not in warned


def test_what_is_refused_of_new_rows_names_their_file(frame, tmp_path, capsys):
    PAPKRanker(k=3, alpha=0.1, curves=None).fit(
        frame.dropna()[FEATURES], frame.dropna()["label"], frame.dropna()["user"]
    ).save(tmp_path / "m")
    frame.dropna()[:3].assign(price=[1.0, None, 2.0]).to_csv(tmp_path / "new.csv", index=False)
    assert run("predict", tmp_path / "m", tmp_path / "new.csv") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "new.csv: X has a missing value at row 1, column 'price'" in said


def test_margins_of_scores_alone_where_columns_are_no_numbers(frame, folder, tmp_path, capsys):
    PAPKRanker(k=3, alpha=0.1, curves=None, pairs=None).fit(
        frame[FEATURES], frame["label"], frame["user"]
    ).save(tmp_path / "m")
    command = ["margins", folder / "a.csv", "--k", 3]
    assert run(*command, "--ignore", "kind") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "linear scorers need numbers, and column 'stars' holds text or missing values" in said
    command += ["--model", tmp_path / "m"]
    assert run(*command) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "a.csv: linear scorers need numbers, and column 'kind', 'stars' holds text" in said
    assert "--no-search" in said
    _, told = run_json(capsys, *command, "--no-search")
    assert len(told["scores"]["users"]) == told["n_users"]


@pytest.mark.parametrize(
    ("missing", "depth", "right"),
    [
        ("separate", None, 0.9),
        ("lowest", None, 0.5),
        slow("lowest", 0.8, 0.8),
        slow("lowest", "k", None),
    ],
)
def test_commands_that_train_take_text_and_solve_one_problem(
    folder, tmp_path, capsys, missing, depth, right
):
    data = folder / "a.csv"
    how = ("--k", 3, "--missing", missing, *(() if depth is None else ("--depth", depth)))
    avg = ("--surrogate", "avg")
    told = {}
    for command, more in {
        "fit": ("--curves", 4, "--pairs", "none", "-o", tmp_path / "m"),
        "compare": ("--curves", 4, *avg, "--solver", "cutting_plane", "--test", data),
        "diagnose": (*avg, "--users", 2),
    }.items():
        _, told[command] = run_json(capsys, command, data, *how, *more)
        assert told[command]["depth"] == right, command
    assert load_model(tmp_path / "m").depth == right
    (compared,) = told["compare"]["runs"]
    assert compared["objective"] == pytest.approx(told["fit"]["objective"], rel=1e-5)
    assert compared["pap_at_k"]["test"] == compared["pap_at_k"]["train"]
