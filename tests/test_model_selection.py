"""Warm starts of the estimator, and alpha chosen along paths."""

import numpy as np
import pytest
from sklearn.base import clone

from structsvm_papk import PAPKRanker, PAPKRankerCV
from structsvm_papk.errors import InputError
from structsvm_papk.model_file import load_model

RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(24), 20)
X = RNG.normal(size=(480, 5))
Y = X[:, 0] + 0.3 * RNG.normal(size=480) > 0.8
ALPHAS = (0.3, 0.03, 0.003)


def test_chosen_alpha_has_the_best_mean_gain_and_the_model_is_a_cold_fit():
    ranker = PAPKRankerCV(k=2, surrogate="ts", alphas=ALPHAS, n_folds=4, tol=1e-7).fit(X, Y, GROUPS)
    assert ranker.cv_scores_.shape == (3, 4)
    best = ranker.cv_scores_.mean(axis=1)
    assert best[list(ALPHAS).index(ranker.alpha_)] == best.max()
    cold = PAPKRanker(k=2, surrogate="ts", alpha=ranker.alpha_, tol=1e-7).fit(X, Y, GROUPS)
    assert ranker.result_.objective == pytest.approx(cold.result_.objective, rel=3e-7)
    assert ranker.score(X, Y, GROUPS) == pytest.approx(cold.score(X, Y, GROUPS), abs=0.05)


def test_fold_scores_are_those_of_users_left_out():
    ranker = PAPKRankerCV(k=2, surrogate="avg", alphas=(0.03,), n_folds=24, tol=1e-8)
    ranker.fit(X, Y, GROUPS)
    rest = PAPKRanker(k=2, surrogate="avg", alpha=0.03, tol=1e-8)
    own = []
    for user in np.unique(GROUPS):
        left = user == GROUPS
        rest.fit(X[~left], Y[~left], GROUPS[~left])
        own.append(rest.score(X[left], Y[left], GROUPS[left]))
    assert sorted(ranker.cv_scores_[0]) == pytest.approx(sorted(own))


def test_saved_model_states_the_chosen_alpha(tmp_path):
    ranker = clone(PAPKRankerCV(k=2, alphas=ALPHAS, n_folds=3)).fit(X, Y, GROUPS)
    ranker.save(tmp_path / "model")
    assert load_model(tmp_path / "model").alpha == ranker.alpha_


def test_folds_need_users():
    with pytest.raises(InputError, match="groups= is missing"):
        PAPKRankerCV(k=2).fit(X, Y)
    with pytest.raises(InputError, match=r"\(1\): the folds are made of users"):
        PAPKRankerCV(k=2).fit(X, Y, groups="one_list")
    with pytest.raises(InputError, match="between 2"):
        PAPKRankerCV(k=2, n_folds=1).fit(X, Y, GROUPS)


def test_warm_start_continues_from_the_last_fit():
    ranker = PAPKRanker(k=2, surrogate="ts", warm_start=True).fit(X, Y, GROUPS)
    passes = ranker.result_.data_passes
    ranker.set_params(alpha=0.011).fit(X, Y, GROUPS)
    assert ranker.result_.data_passes < passes
    with pytest.raises(InputError, match="5 features"):
        ranker.fit(X[:, :3], Y, GROUPS)
