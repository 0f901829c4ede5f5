"""Settings chosen on held-out lists with scikit-learn's searches; what a fit says on its way."""

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn import config_context
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from helpers.values import values_of
from structsvm_papk import PAPKRanker, metrics

Linear = partial(PAPKRanker, curves=None)  # no folds are asked

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(24), 20)
X = RNG.normal(size=(480, 5))
Y = X[:, 0] + 0.3 * RNG.normal(size=480) > 0.8
GRID = {"surrogate": ["avg", "ts"], "depth": [0.5, 0.9]}
FOLDS = GroupKFold(3)


@pytest.fixture
def routing():
    """Metadata routing, by which searches hand groups to `fit` and `score`."""
    with config_context(enable_metadata_routing=True):
        yield


def by_hand(metric, setting, weights=None):
    """The score of a setting on each fold, of fits without scikit-learn's tools."""
    values = []
    for train, test in FOLDS.split(X, Y, GROUPS):
        more = {} if weights is None else {"sample_weight": weights[train]}
        fitted = Linear(k=2, **setting).fit(X[train], Y[train], GROUPS[train], **more)
        scores = fitted.predict(X[test])
        values.append(metrics.evaluate(metric, scores, Y[test], GROUPS[test]).mean(metric))
    return values


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("metric", ["pap@2", "ndcg@5"])
def test_a_grid_search_scores_each_setting_on_lists_that_it_held_out(metric):
    scoring = None if metric == "pap@2" else metrics.scorer(metric)
    search = GridSearchCV(Linear(k=2), GRID, cv=FOLDS, scoring=scoring, error_score="raise")
    search.fit(X, Y, groups=GROUPS)
    results = search.cv_results_
    assert len(results["params"]) == 4
    for i, setting in enumerate(results["params"]):
        folds = [results[f"split{fold}_test_score"][i] for fold in range(3)]
        np.testing.assert_allclose(folds, by_hand(metric, setting), rtol=1e-12)
    whole = Linear(k=2, **search.best_params_).fit(X, Y, GROUPS)
    np.testing.assert_array_equal(search.predict(X), whole.predict(X))
    expected = metrics.evaluate(metric, whole.predict(X), Y, GROUPS).mean(metric)
    assert search.score(X, Y, groups=GROUPS) == pytest.approx(expected, rel=1e-12)


@pytest.mark.usefixtures("routing")
def test_weights_of_lists_are_routed_to_fit_where_they_are_requested():
    weights = 1.0 + 9.0 * (GROUPS % 2)
    ranker = Linear(k=2, tol=1e-8).set_fit_request(sample_weight=True)
    ranker.set_score_request(sample_weight=False)
    search = GridSearchCV(ranker, {"depth": [0.9]}, cv=FOLDS, error_score="raise")
    search.fit(X, Y, groups=GROUPS, sample_weight=weights)
    folds = [search.cv_results_[f"split{fold}_test_score"][0] for fold in range(3)]
    np.testing.assert_allclose(folds, by_hand("pap@2", {"depth": 0.9, "tol": 1e-8}, weights))
    weighted = Linear(k=2, tol=1e-8).fit(X, Y, GROUPS, sample_weight=weights)
    equal = Linear(k=2, tol=1e-8).fit(X, Y, GROUPS)
    np.testing.assert_array_equal(search.best_estimator_.coef_, weighted.coef_)
    assert np.abs(weighted.coef_ - equal.coef_).max() > 1e-3


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("piped", [False, True])
def test_a_scorer_hands_groups_to_a_ranker_with_missing_values(piped):
    holes = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    holes[:, 0] = X[:, 0]
    ranker = Linear(k=2, missing="lowest")
    steps = make_pipeline(StandardScaler(), ranker) if piped else ranker
    name = "papkranker__depth" if piped else "depth"
    search = GridSearchCV(
        steps, {name: [0.5, 0.9]}, cv=FOLDS, error_score="raise", scoring=metrics.scorer("ndcg@5")
    )
    search.fit(holes, Y, groups=GROUPS)
    train, test = next(FOLDS.split(X, Y, GROUPS))
    values = StandardScaler().fit(holes[train]).transform(holes) if piped else holes
    own = Linear(k=2, missing="lowest", depth=0.5).fit(values[train], Y[train], GROUPS[train])
    scores = own.predict(values[test], GROUPS[test])
    expected = metrics.evaluate("ndcg@5", scores, Y[test], GROUPS[test]).mean("ndcg@5")
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(expected, rel=1e-12)


def test_verbose_and_the_log_say_how_far_a_fit_is(capsys, caplog, monkeypatch):
    seconds = SimpleNamespace(monotonic=itertools.count().__next__)  # one at each look
    monkeypatch.setattr("structsvm_papk.rankers.solver_choice.time", seconds)
    ranker = Linear(k=2, verbose=1).fit(X, Y, GROUPS)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == ranker.n_iter_ + 1 and ranker.result_.status.sentence in lines[-1]
    assert lines[0].startswith("iteration 1, ") and ", gap " in lines[0]
    with caplog.at_level("INFO", "structsvm_papk"):
        Linear(k=2).fit(X, Y, GROUPS)
    assert capsys.readouterr().out == ""
    assert "iteration 2, " in caplog.text


@pytest.mark.parametrize("k", [3.0, np.int32(3)])
def test_a_whole_number_of_any_type_is_that_number(k):
    ranker = Linear(k=k).fit(X, Y, GROUPS)
    assert type(ranker.to_model().k) is int and ranker.to_model().k == 3
    np.testing.assert_array_equal(
        values_of(f"pap@{k}", X[:, 0], Y, GROUPS), values_of("pap@3", X[:, 0], Y, GROUPS)
    )
