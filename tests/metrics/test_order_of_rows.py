"""Scores and labels that were swapped do not pass without a word."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score

from structsvm_papk import metrics, plots
from structsvm_papk.errors import InputError

RNG = np.random.default_rng(0)
SCORES = RNG.normal(size=200)
LABELS = (SCORES + RNG.normal(size=200) > 1).astype(int)
USERS = np.repeat(np.arange(10), 20)
ROWS = {"y_true": LABELS, "y_score": SCORES, "groups": USERS}


@pytest.mark.parametrize("name", ["ndcg@5", "ndcg", "ap", "pap@5"])
@pytest.mark.parametrize("threshold", [None, 0.5])
def test_scores_in_the_place_of_labels_are_refused(name, threshold):
    for scores in (SCORES, SCORES.round(2), SCORES[:20]):
        users = USERS[: scores.size]
        with pytest.raises(InputError, match=r"are scores and labels swapped\?|not binary"):
            metrics.evaluate(
                name, LABELS[: scores.size], scores - scores.min(), users,
                relevance_threshold=threshold,
            )  # fmt: skip


def test_ratings_and_gains_that_are_meant_are_taken():
    ratings = RNG.integers(2, 11, 200) / 2
    table = metrics.evaluate("ndcg@5", SCORES, ratings, USERS)
    assert 0 < table.mean("ndcg@5") < 1
    gains = np.abs(SCORES)
    with pytest.raises(InputError, match="gains='linear'"):
        metrics.evaluate("ndcg@5", SCORES, gains, USERS)
    assert metrics.evaluate("ndcg@5", gains, gains, USERS, gains="linear").mean("ndcg@5") == 1


@pytest.mark.parametrize(
    ("function", "more"),
    [
        (metrics.table.mean_score, {"metric": "ap"}),
        (plots.PAPDisplay.from_predictions, {"ks": [1], "n_resamples": 20}),
        (plots.RankStripDisplay.from_predictions, {"k": 3}),
    ],
)
def test_rows_are_taken_by_keyword(function, more):
    if function is not metrics.table.mean_score:
        pytest.importorskip("matplotlib").use("Agg")
    function(**ROWS, **more)
    with pytest.raises(TypeError, match="positional"):
        function(LABELS, SCORES, groups=USERS, **more)


def test_a_scorer_of_scikit_learn_passes_groups_on():
    X = np.column_stack([SCORES, RNG.normal(size=200)])
    with config_context(enable_metadata_routing=True):
        scoring = metrics.scorer("ndcg@5", preset="sklearn")
        values = cross_val_score(
            LogisticRegression(), X, LABELS, scoring=scoring, params={"groups": USERS},
            cv=GroupKFold(5),
        )  # fmt: skip
    expected = []
    for train, test in GroupKFold(5).split(X, LABELS, USERS):
        scores = LogisticRegression().fit(X[train], LABELS[train]).decision_function(X[test])
        table = metrics.evaluate("ndcg@5", scores, LABELS[test], USERS[test], preset="sklearn")
        expected.append(table.mean("ndcg@5"))
    np.testing.assert_allclose(values, expected)
    with pytest.raises(InputError, match="there is no metric 'mapp'"):
        metrics.scorer("mapp")
