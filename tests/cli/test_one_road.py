"""The commands fit and tune give what the estimators give: same data, same bits."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from helpers.commands import run, run_json
from helpers.sources import npy_source, write_csv
from structsvm_papk.data.partitions import open_source
from structsvm_papk.data.readers import read_table
from structsvm_papk.data.user_scaling import scaled_rows
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.files.model import load_model
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.rankers import PAPKRanker


def lists(n_users=24, size=15, n_features=4, density=1.0, noise=1.0):
    rng = np.random.default_rng(0)
    n = n_users * size
    X = sparse.random(n, n_features, density, "csr", rng=rng, data_rvs=rng.standard_normal)
    y = X @ rng.normal(size=n_features) + noise * rng.normal(size=n) > 1.0
    return X, y.astype(int), np.repeat(10 + np.arange(n_users), size)  # as text, in the same order


def assert_same(told, path, ranker):
    model, own = load_model(path), ranker.to_model()
    np.testing.assert_array_equal(model.coef, ranker.coef_)
    for name in ("k", "alpha", "surrogate", "solver", "depth", "user_weight"):
        assert getattr(model, name) == getattr(own, name)
    assert model.certificate == own.certificate
    assert told["objective"] == ranker.result_.objective


@pytest.mark.parametrize("surrogate", ["avg", "ts", "clipped_ramp"])
def test_fit_of_dense_rows(tmp_path, capsys, surrogate):
    X, y, users = lists()
    write_csv(tmp_path / "rows.csv", X.toarray(), y, users)
    options = ["--k", "2", "--surrogate", surrogate, "--alpha", "0.03"]
    weighted = {"depth": 0.8, "user_weight": "positives", "policy": "cap"}
    flags = [part for name, value in weighted.items() for part in (f"--{name}", value)]
    flags = [str(flag).replace("_", "-") for flag in flags]
    for settings, more in (({}, []), (weighted, flags)):
        fit = ["fit", tmp_path / "rows.csv", *options, *more]
        _, told = run_json(capsys, *fit, "-o", tmp_path / "m")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker = PAPKRanker(2, surrogate, alpha=0.03, **settings).fit(X.toarray(), y, users)
        assert_same(told, tmp_path / "m", ranker)


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


def test_fit_of_files(tmp_path, capsys):
    X, y, users = lists(60)
    npy_source(tmp_path, X.toarray(), y, users)
    fit = ["fit", tmp_path, "--k", "2", "--memory-budget", "100kB", "-o", tmp_path / "m"]
    _, told = run_json(capsys, *fit)
    ranker = PAPKRanker(2)
    risk = StreamedRisk(ranker.make_surrogate(), open_source(tmp_path), 100_000)
    assert_same(told, tmp_path / "m", ranker.fit_risk(risk))


def test_the_advice_at_zero(tmp_path, capsys):
    X, y, users = lists(noise=50.0)
    write_csv(tmp_path / "rows.csv", X.toarray(), y, users)
    fit = ["fit", tmp_path / "rows.csv", "--k", "2", "--depth", "k", "-o", tmp_path / "m"]
    with pytest.warns(DegenerateOptimumWarning) as caught:
        PAPKRanker(2, depth=None).fit(X.toarray(), y, groups=users)
    warning = caught[0].message
    run(*fit)
    said = capsys.readouterr().err
    assert warning.what in said and warning.settings
    assert "".join(f"--{name} {value} " for name, value in warning.settings.items()).strip() in said


def test_tables_say_what_was_minimised(tmp_path, capsys):
    X, y, users = lists()
    write_csv(tmp_path / "rows.csv", X.toarray(), y, users)
    title = "k = 2, alpha = 0.01, depth 0.9, users' weight equal, standardized columns"
    run("fit", tmp_path / "rows.csv", "--k", "2", "-o", tmp_path / "m")
    assert title in capsys.readouterr().out
    run("compare", tmp_path / "rows.csv", "--k", "2", "--surrogate", "avg")
    assert title in capsys.readouterr().out
    _, compared = run_json(
        capsys, "compare", tmp_path / "rows.csv", "--k", "2", "--surrogate", "avg"
    )
    _, told = run_json(capsys, "fit", tmp_path / "rows.csv", "--k", "2", "-o", tmp_path / "m")
    assert compared["runs"][0]["objective"] == pytest.approx(told["objective"], rel=1e-5)
    run("diagnose", tmp_path / "rows.csv", "--k", "2", "--surrogate", "avg", "--users", "0")
    assert "depth 0.9, users' weight equal, standardized" in capsys.readouterr().out


def test_compare_and_diagnose_scale_inside_lists_as_fit_does(tmp_path, capsys):
    X, y, users = lists(noise=2.0)
    unit = 10.0 ** np.random.default_rng(1).integers(-3, 4, 24)[users - 10]
    X = X.toarray() * unit[:, None] + unit[:, None]
    write_csv(tmp_path / "rows.csv", X, y, users)
    write_csv(tmp_path / "scaled.csv", scaled_rows(X, users, "rank"), y, users)
    once, scaling = ["--k", "2", "--surrogate", "avg"], ["--user-scaling", "rank"]
    for command in ("compare", "diagnose"):
        told = [
            run_json(capsys, command, tmp_path / name, *once, *more)[1]
            for name, more in (("rows.csv", scaling), ("scaled.csv", ()), ("rows.csv", ()))
        ]
        assert [one.pop("user_scaling") for one in told] == ["rank", None, None]
        for one in told:
            one.pop("run", None)
            for each in one.get("runs", ()):
                each.pop("seconds")
        assert told[0] == told[1] != told[2]
        run(command, tmp_path / "rows.csv", *once, *scaling)
        assert "standardized columns, user scaling rank" in capsys.readouterr().out
    test = ["--test", tmp_path / "rows.csv"]
    _, told = run_json(capsys, "compare", tmp_path / "rows.csv", *once, *scaling, *test)
    gains = told["runs"][0]["pap_at_k"]
    assert gains["test"] == pytest.approx(gains["train"])
    run("fit", tmp_path / "rows.csv", "--k", "2", *scaling, "-o", tmp_path / "m")
    assert "standardized columns, user scaling rank" in capsys.readouterr().out
    for command in ("compare", "diagnose"):
        assert run(command, tmp_path / "rows.csv", *once, "--user-scaling", "z") != 0
        assert "--user-scaling 'z' must be none, standardise or rank" in capsys.readouterr().err
