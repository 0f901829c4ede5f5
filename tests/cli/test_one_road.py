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

DEFAULTS = {}, []
CURVED = {"depth": 0.8, "curves": 4}, ["--depth", "0.8", "--curves", "4"]


def lists(n_users=24, size=15, n_features=4, density=1.0, noise=1.0):
    rng = np.random.default_rng(0)
    n = n_users * size
    X = sparse.random(n, n_features, density, "csr", rng=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=n_features) + noise * rng.normal(size=n) > 1.0
    return X, y.astype(int), np.repeat(10 + np.arange(n_users), size)  # as text, in the same order


def assert_same(told, path, ranker):
    model, own = load_model(path), ranker.to_model()
    for term, its in zip(model.function.terms, own.function.terms, strict=True):
        assert term.description() | {"column": ""} == its.description() | {"column": ""}
    for name in ("k", "alpha", "surrogate", "solver", "depth", "user_weight"):
        assert getattr(model, name) == getattr(own, name)
    assert model.certificate == own.certificate
    assert told["objective"] == ranker.result_.objective


@pytest.mark.parametrize(
    ("surrogate", "settings", "flags"),
    [
        ("avg", *DEFAULTS),
        ("avg", *CURVED),
        ("clipped_ramp", *CURVED),
        slow("clipped_ramp", *DEFAULTS),
        slow("ts", *DEFAULTS),
        slow("ts", *CURVED),
    ],
)
def test_fit_of_dense_rows(tmp_path, capsys, surrogate, settings, flags):
    X, y, users = lists()
    write_csv(tmp_path / "rows.csv", X.toarray(), y, users)
    options = ["--k", "2", "--surrogate", surrogate, "--alpha", "0.03"]
    fit = ["fit", tmp_path / "rows.csv", *options, *flags]
    _, told = run_json(capsys, *fit, "-o", tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = PAPKRanker(2, surrogate, alpha=0.03, **settings).fit(X.toarray(), y, users)
    assert_same(told, tmp_path / "m", ranker)


@pytest.mark.slow
def test_fit_of_sparse_rows_takes_the_same_solver(tmp_path, capsys):
    X, y, users = lists(30, 20, 1500, 0.01, 0.2)
    dump_svmlight_file(X, y, str(tmp_path / "rows.txt"), query_id=users, zero_based=False)
    table = read_table(tmp_path / "rows.txt")
    X, y, users = table.X, table.labels, table.groups
    fit = ["fit", tmp_path / "rows.txt", "--k", "2", "--alpha", "1", "-o", tmp_path / "m"]
    _, told = run_json(capsys, *fit)
    assert told["solver"] == "dual_ascent"
    assert_same(told, tmp_path / "m", PAPKRanker(2, alpha=1.0).fit(X, y, groups=users))
    _, told = run_json(capsys, *fit, "--solver", "cutting_plane")
    by_bundle = PAPKRanker(2, alpha=1.0, solver="cutting_plane").fit(X, y, groups=users)
    assert_same(told, tmp_path / "m", by_bundle)


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
    _, told = run_json(capsys, "compare", rows, *once, "--passes", 10, "--test", rows)
    gains = told["runs"][0]["pap_at_k"]
    assert gains["test"] == pytest.approx(gains["train"])
    _, fitted = run_json(capsys, "fit", rows, "--k", "2", "-o", model)
    assert told["runs"][0]["objective"] == pytest.approx(fitted["objective"], rel=1e-5)
    assert run("fit", rows, "--k", "2", "-o", model) == 0
    assert f"k = 2, alpha = {fitted['alpha']:g}, {title}" in " ".join(
        capsys.readouterr().out.split()
    )
