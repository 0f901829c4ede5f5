"""Graded labels: what estimators, searches, models and commands make of them."""

from functools import partial

import numpy as np
import pandas as pd
import pytest

from helpers.commands import refused, run, run_json
from helpers.values import values_of
from structsvm_papk import PAPKRanker
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.metrics.table import evaluate_by_grade

Linear = partial(PAPKRanker, curves=None)  # no folds are asked


def rows(n_users=30, n_items=15, seed=0):
    """Queries with grades 0 to 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n_items, 4))
    score = X @ [1.0, -0.5, 0.2, 0.0] + 0.7 * rng.normal(size=len(X))
    return X, np.digitize(score, [0.3, 1.0, 1.8]), np.repeat(np.arange(n_users), n_items)


def test_fit_takes_grades_without_a_further_word():
    X, y, groups = rows()
    ranker = Linear(k=3).fit(X, y, groups=groups)
    assert ranker.result_.converged
    assert ranker.classes_.tolist() == [0, 1, 2, 3]
    assert any("grades (linear gains)" in note for note in ranker.result_.notes)
    as_floats = Linear(k=3).fit(X, y.astype(float), groups=groups)
    np.testing.assert_array_equal(as_floats.coef_, ranker.coef_)


def test_gains_and_threshold_choose_the_problem():
    X, y, groups = rows()
    gains = {
        "linear": {"label_gain": "linear"},
        "exponential": {"label_gain": "exponential"},
        "the same": {"label_gain": [0, 1, 3, 7]},
        "two": {"relevance_threshold": 2},
        "two by gains": {"label_gain": [0, 0, 1, 1]},
    }
    fits = {name: Linear(k=3, alpha=0.1, tol=1e-9, **gain) for name, gain in gains.items()}
    coef = {name: ranker.fit(X, y, groups=groups).coef_ for name, ranker in fits.items()}
    np.testing.assert_allclose(coef["exponential"], coef["the same"], rtol=1e-12)
    np.testing.assert_allclose(coef["two"], coef["two by gains"], atol=1e-5)
    assert np.abs(coef["linear"] - coef["exponential"]).max() > 1e-3
    assert np.abs(coef["linear"] - coef["two"]).max() > 1e-3


def test_score_is_the_mean_over_grades_by_what_they_add():
    X, y, groups = rows()
    ranker = Linear(k=3, label_gain="exponential").fit(X, y, groups=groups)
    order = np.random.default_rng(0).permutation(y.size)
    scores = ranker.decision_function(X)
    values = np.array([values_of("pap@3", scores, y >= t, groups) for t in (1, 2, 3)])
    weight = np.where(np.isnan(values), 0.0, np.array([1, 2, 4])[:, None])
    expected = np.nansum(weight * values, axis=0) / weight.sum(axis=0)
    found = ranker.score(X[order], y[order], groups=groups[order])
    assert found == pytest.approx(np.nanmean(expected), rel=1e-12)


@pytest.fixture
def table(tmp_path):
    X, y, groups = rows()
    path = tmp_path / "rows.csv"
    columns = np.column_stack([groups, y, X])
    np.savetxt(path, columns, delimiter=",", header="qid,label,a,b,c,d", comments="", fmt="%.9g")
    return path


def test_commands_take_grades(table, tmp_path, capsys):
    model = tmp_path / "a.model"
    assert run("fit", table, "--k", 3, "--model", model, "--label-gain", "exponential") == 0
    assert "grades (exponential gains)" in capsys.readouterr().err
    assert load_model(model).label_gain == "exponential"
    status, answer = run_json(capsys, "diagnose", table, "--k", 3, "--surrogate", "avg")
    assert status == 0 and answer["diagnoses"]
    status, answer = run_json(
        capsys, "compare", table, "--k", 3, "--surrogate", "avg", "--passes", 10, "--test", table
    )
    assert status == 0 and 0.5 < answer["runs"][0]["pap_at_k"]["test"] <= 1.0
    assert "0,1,x" in refused(
        capsys, "fit", table, "--k", 3, "--model", model, "--label-gain", "0,1,x"
    )


def test_lists_of_grades_bring_their_gains_along():
    X, y, groups = rows()
    lists = RankingData.from_groups(X, y, groups, label_gain="exponential")
    ranker = Linear(k=3).fit_lists(lists)
    assert ranker.to_model().label_gain == "exponential"
    expected = Linear(k=3, label_gain="exponential").fit(X, y, groups=groups)
    np.testing.assert_allclose(ranker.coef_, expected.coef_, rtol=1e-9)


def test_a_model_of_grades_is_evaluated_by_grades(table, tmp_path, capsys):
    X, y, groups = rows()
    model = tmp_path / "graded.model"
    ranker = Linear(k=3, label_gain="exponential").fit(X, y, groups=groups)
    ranker.save(model)
    frame = pd.read_csv(table)
    X = frame[["a", "b", "c", "d"]].to_numpy()
    scores = ranker.decision_function(X)
    names = "pap@3,auc,ndcg@5,precision@3"
    status, answer = run_json(capsys, "evaluate", table, "--model", model, "-m", names)
    assert status == 0 and answer["label_gain"] == "exponential"
    found = {row["metric"]: row for row in answer["metrics"]}
    assert list(found) == names.split(",")
    assert found["pap@3"]["value"] == pytest.approx(ranker.score(X, y, groups=groups), rel=1e-12)
    ndcg = values_of("ndcg@5", scores, y, groups, gains="exponential")
    assert found["ndcg@5"]["value"] == pytest.approx(ndcg.mean(), rel=1e-12)
    weight = np.array([1, 2, 4])[:, None]
    for name in ("auc", "precision@3"):
        by_grade = np.array([values_of(name, scores, y >= t, groups) for t in (1, 2, 3)])
        weighs = np.where(np.isnan(by_grade), 0, weight)
        expected = np.nansum(weight * by_grade, axis=0) / weighs.sum(axis=0)
        assert found[name]["value"] == pytest.approx(expected.mean(), rel=1e-12)

    def value_of(*more):
        status, answer = run_json(capsys, "evaluate", table, "--model", model, *more)
        assert status == 0
        return answer["metrics"][0]["value"]

    linear = values_of("ndcg@5", scores, y, groups, gains="linear").mean()
    assert value_of("-m", "ndcg@5", "--gains", "linear") == pytest.approx(linear, rel=1e-12)
    two = values_of("auc", scores, y >= 2, groups)
    by_threshold = value_of("-m", "auc", "--relevance-threshold", 2)
    assert by_threshold == pytest.approx(np.nanmean(two), rel=1e-12)
    assert run("evaluate", table, "--model", model, "--compare", model) == 0
    shown = capsys.readouterr()
    assert "grades count with exponential gains" in " ".join(shown.out.split())


def test_users_of_one_grade_are_what_users_without_a_positive_are(tmp_path, capsys):
    X, y, groups = rows()
    y[groups == 4] = 2
    lists = RankingData.from_groups(X, y, groups, label_gain="linear")
    table = evaluate_by_grade(["auc", "ndcg@5", "pap@3"], X[lists.rows, 0], lists)
    assert table.users[~table.used("auc")].tolist() == [4]
    assert table.by_rule["auc"]["no_positives"].sum() == 1
    assert table.used("ndcg@5").all()
    zero = evaluate_by_grade("auc", X[lists.rows, 0], lists, no_positives="zero")
    assert zero.values[4, 0] == 0.0 and zero.used("auc").all()
    with pytest.raises(InputError, match="without positives"):
        evaluate_by_grade("auc", X[lists.rows, 0], lists, no_positives="raise")
    with pytest.raises(InputError, match="a mean over grades"):
        evaluate_by_grade("auc", X[lists.rows, 0], lists, mean="pooled")


def test_err_takes_grades_and_no_gains():
    X, y, groups = rows()
    lists = RankingData.from_groups(X, y, groups, label_gain="exponential")
    found = evaluate_by_grade("err@5", X[lists.rows, 0], lists).values[:, 0]
    np.testing.assert_allclose(found, values_of("err@5", X[:, 0], y, groups), rtol=1e-12)
