"""The command fit gives what the estimator gives: same data, same bits."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from helpers.commands import run, run_json
from helpers.marks import slow
from helpers.sources import npy_source, write_csv
from structsvm_papk.files.model import load_model
from structsvm_papk.files.partitions import open_source
from structsvm_papk.files.readers import read_table
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.rankers import PAPKRanker

SIGNED = ("positive", "monotonic_cst")
SIGNS = ["--monotonic", "{0}=1", "--monotonic", "{1}=-1"]
SETTINGS = {  # those of the estimator -> of the command; columns by their names
    "defaults": ({}, []),
    "curves": ({"depth": 0.8, "curves": 4}, ["--depth", "0.8", "--curves", "4"]),
    "curves with signs": ({"curves": 4, "monotonic_cst": [1, -1, 0, 0]}, ["--curves", "4", *SIGNS]),
    "lines with signs": (
        {"curves": None, "monotonic_cst": [1, -1, 0, 0]},
        ["--curves", "none", *SIGNS],
    ),
    "weights of at least 0": (
        {"curves": None, "positive": True},
        ["--curves", "none", "--positive"],
    ),
    "pairs": ({"curves": 4, "pairs": 2}, ["--curves", "4", "--pairs", "2"]),
}


def lists(n_users=24, size=15, n_features=4, density=1.0, noise=1.0):
    rng = np.random.default_rng(0)
    n = n_users * size
    X = sparse.random(n, n_features, density, "csr", rng=rng, data_rvs=rng.standard_normal)
    X.data = X.data.round(6)
    truth = np.sort(rng.normal(size=n_features))[::-1]  # columns that raise it come first
    y = X @ truth + noise * rng.normal(size=n) > 1.0
    return X, y.astype(int), np.repeat(10 + np.arange(n_users), size)  # as text, in the same order


def assert_same(told, path, ranker):
    model, own = load_model(path), ranker.to_model()
    unnamed = {"column": "", "columns": []}
    for term, its in zip(model.function.terms, own.function.terms, strict=True):
        assert term.description() | unnamed == its.description() | unnamed
    for name in ("k", "alpha", "surrogate", "solver", "depth", "user_weight", *SIGNED):
        assert getattr(model, name) == getattr(own, name)
    assert model.certificate == own.certificate
    assert told["objective"] == ranker.result_.objective


@pytest.mark.parametrize(
    ("surrogate", "name"),
    [
        *(("avg", name) for name in SETTINGS),
        ("clipped_ramp", "curves"),
        slow("clipped_ramp", "defaults"),
        *(slow("ts", name) for name in SETTINGS),
    ],
)
def test_fit_of_rows_and_what_its_model_gives(tmp_path, capsys, surrogate, name):
    settings, flags = SETTINGS[name]
    X, y, users = lists()
    write_csv(tmp_path / "rows.csv", X.toarray(), y, users)
    dump_svmlight_file(X, y, str(tmp_path / "rows.txt"), query_id=users, zero_based=False)
    for file, columns in (("rows.csv", "abcd"), ("rows.txt", "1234")):
        if file == "rows.txt":  # lines are of the rows as they are
            X = X.toarray() if settings.get("curves") else read_table(tmp_path / file).X
        data, model = tmp_path / file, tmp_path / f"{file}.model"
        fit = ["fit", data, "--k", "2", "--surrogate", surrogate, "--alpha", "0.03"]
        _, told = run_json(capsys, *fit, *(flag.format(*columns) for flag in flags), "-o", model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = PAPKRanker(2, surrogate, alpha=0.03, **settings)
            ranker.fit(X.toarray() if file == "rows.csv" else X, y, users)
        assert_same(told, model, ranker)
        assert told["curves"] == settings.get("curves", told["curves"])
        assert told["positive"] == settings.get("positive", False)
        if "monotonic_cst" in settings:
            assert told["monotonic"] == {columns[0]: 1, columns[1]: -1}
        scores = ranker.predict(X)
        np.testing.assert_allclose(run_json(capsys, "predict", model, data)[1]["scores"], scores)
        judged = run_json(capsys, "evaluate", model, data, "-m", "pap@2")[1]
        gain = ranker.score(X, y, users)
        assert judged["metrics"][0]["value"] == pytest.approx(gain)


@pytest.mark.parametrize(
    ("surrogate", "gain"), [("avg", None), ("avg", "exponential"), slow("ramp", None)]
)
def test_fit_of_files(tmp_path, capsys, surrogate, gain):
    X, y, users = lists(20)
    y = y + y * (X[:, [0]].toarray().ravel() > 0) * (gain is not None)
    npy_source(tmp_path, X.toarray(), y, users)
    fit = ["fit", tmp_path, "--k", "2", "--surrogate", surrogate, "-o", tmp_path / "m"]
    fit += [] if gain is None else ["--label-gain", gain]
    _, told = run_json(capsys, *fit, "--memory-budget", "100kB")
    how = {} if gain is None else {"label_gain": gain}
    ranker = PAPKRanker(2, surrogate, **how)
    risk = StreamedRisk(ranker.make_surrogate(), open_source(tmp_path), 100_000, **how)
    assert load_model(tmp_path / "m").label_gain == gain
    assert_same(told, tmp_path / "m", ranker.fit_risk(risk))


def test_other_commands_weigh_as_fit_does_and_say_it(tmp_path, capsys):
    X, y, users = lists(noise=2.0)
    rows, model = write_csv(tmp_path / "rows.csv", X.toarray(), y, users), tmp_path / "m"
    once = ["--k", "2", "--surrogate", "avg"]
    title = "depth 0.9, standardized columns"
    for command, *few in (["compare", "--passes", "10"], ["diagnose"]):
        assert run(command, rows, *once, *few) == 0
        assert title in " ".join(capsys.readouterr().out.split())
    _, fitted = run_json(capsys, "fit", rows, "--k", "2", "-o", model)
    assert run("fit", rows, "--k", "2", "-o", model) == 0
    assert f"k = 2, alpha = {fitted['alpha']:g}, {title}" in " ".join(
        capsys.readouterr().out.split()
    )
