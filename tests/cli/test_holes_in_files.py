"""``--missing lowest`` through the commands: the same model and scores as in Python."""

import numpy as np
import pandas as pd
import pytest

from helpers.commands import run, run_json
from helpers.marks import slow
from structsvm_papk import PAPKRanker
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model
from structsvm_papk.files.readers import read_table


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(8), 50)
    relevance = rng.normal(size=groups.size)
    X = relevance[:, None] + rng.normal(size=(groups.size, 3))
    X[X[:, 0] < 0.3, 0] = np.nan
    X[X[:, 1] < 0.0, 1] = np.nan
    frame = pd.DataFrame(X, columns=["bm 25", "dense", "full"])
    return frame.assign(user=groups, item=np.arange(groups.size), label=(relevance > 1).astype(int))


@pytest.fixture
def paths(frame, tmp_path):
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.convert_dtypes().to_parquet(tmp_path / "a.parquet")
    return tmp_path


@pytest.mark.parametrize("file", ["a.csv", slow("a.parquet")])
def test_fit_predict_evaluate_and_bound(paths, frame, file, capsys):
    data, model_file = paths / file, paths / "m.model"
    fit = ("fit", data, "--k", 3, "-o", model_file)
    assert run(*fit, "--missing", "none") == 2
    said = capsys.readouterr().err
    assert "--missing lowest" in said
    assert "bm 25" in said
    assert run(*fit, "--missing", "mean") == 2
    assert "--missing mean is not known" in capsys.readouterr().err
    _, told = run_json(capsys, *fit, "--missing", "lowest")
    assert told["missing"] == "lowest"
    X, y, groups = frame[["bm 25", "dense", "full"]], frame["label"], frame["user"]
    ranker = PAPKRanker(k=3, missing="lowest").fit(X, y, groups)
    model = load_model(model_file)
    gaps = np.nan_to_num(model.function.gaps)
    np.testing.assert_allclose(gaps, ranker.missing_coef_, rtol=1e-2, atol=1e-3)
    np.testing.assert_allclose(
        model.contributions(X, groups), ranker.contributions(X, groups), rtol=0, atol=1e-2
    )
    np.testing.assert_allclose(told["pap_at_k"]["train"], ranker.score(X, y, groups), atol=1e-3)
    _, told = run_json(capsys, "predict", model_file, data)
    assert told["scores"] == model.predict(X, groups).tolist()
    _, told = run_json(capsys, "evaluate", data, "--model", model_file, "--metrics", "pap@3")
    assert told["metrics"][0]["value"] == pytest.approx(ranker.score(X, y, groups), abs=1e-3)
    assert run("bound", "new-users", model_file, data) == 0
    frame.drop(columns="user").to_csv(paths / "nobody.csv", index=False)
    assert run("predict", model_file, paths / "nobody.csv") == 2
    assert "no column names the list" in capsys.readouterr().err


def test_compare_and_diagnose(paths, capsys):
    data = paths / "a.csv"
    told = {}
    for command, more in {
        "compare": ("--surrogate", "avg", "--passes", 10, "--test", data),
        "diagnose": ("--surrogate", "avg", "--users", 0),
    }.items():
        _, told[command] = run_json(capsys, command, data, "--k", 3, "--missing", "lowest", *more)
    gains = told["compare"]["runs"][0]["pap_at_k"]
    assert gains["train"] == gains["test"]
    curves = (data, "--k", 3, "--missing", "lowest", "--curves", 4)
    alone = ("--surrogate", "avg", "--solver", "cutting_plane", "--test", data)
    (compared,) = run_json(capsys, "compare", *curves, *alone)[1]["runs"]
    _, fitted = run_json(capsys, "fit", *curves, "-o", paths / "m.model")
    assert compared["objective"] == pytest.approx(fitted["objective"], rel=1e-5)
    assert compared["pap_at_k"]["test"] == compared["pap_at_k"]["train"]


@pytest.mark.parametrize("depth", [None, slow(0.9), slow("k")])
def test_the_depth_of_holes_where_none_is_given(paths, capsys, depth):
    data, model_file = paths / "a.csv", paths / "m.model"
    given = ("--k", 3, *(() if depth is None else ("--depth", depth)))
    right = {None: 0.5, 0.9: 0.9, "k": None}[depth]
    for command, more in {
        "fit": ("-o", model_file),
        "compare": ("--surrogate", "avg", "--passes", 10),
        "diagnose": ("--surrogate", "avg", "--users", 0),
    }.items():
        _, told = run_json(capsys, command, data, *given, "--missing", "lowest", *more)
        assert told["depth"] == right, command
    assert load_model(model_file).depth == right


def test_what_reads_in_pieces_refuses(paths, capsys):
    more = ("--k", 3, "--missing", "lowest", "-o", paths / "m", "--memory-budget", "1GB")
    assert run("fit", paths / "a.parquet", *more) == 2
    assert "--missing lowest needs the lists in memory" in capsys.readouterr().err
    (paths / "a.svm").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    assert run("fit", paths / "a.svm", *more[:-2]) == 2
    assert "svmlight" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_whole_numbers_beside_holes_that_floats_would_round_are_refused(tmp_path, ending):
    whole = pd.array([2**53 + 1, None, 7, 8] * 5, dtype="Int64")
    frame = pd.DataFrame({"label": [1, 0, 0, 1] * 5, "user": np.repeat(range(5), 4), "big": whole})
    path = tmp_path / f"rows.{ending}"
    write = frame.to_csv if ending == "csv" else frame.to_parquet
    write(path, index=False)
    where = "line 2: column 'big'" if ending == "csv" else "column 'big' holds .* at row 0"
    with pytest.raises(InputError, match=rf"{where}.*lose digits"):
        read_table(path, missing="lowest")
    frame["big"] = whole - 2**53 + 5
    frame["big"] = frame["big"].where(frame["big"] > 0)
    write(path, index=False)
    expected = frame["big"].to_numpy(dtype=float, na_value=np.nan)
    np.testing.assert_array_equal(read_table(path, missing="lowest").X[:, 0], expected)
