"""standardize solves the problem of columns divided by their deviations, without the copy.

'auto' divides the columns of a sparse X by one number.
"""

from functools import partial

import numpy as np
import pytest
from scipy import sparse

from structsvm_papk import RankingData
from structsvm_papk.files.model import load_model
from structsvm_papk.rankers import PAPKRanker

Linear = partial(PAPKRanker, curves=None)


def lists(n_users=20, size=14, n_features=5, density=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * size, n_features)) * (rng.random(n_features) + 0.1)
    X[rng.random(X.shape) > density] = 0.0
    users = np.repeat(np.arange(n_users), size)
    y = X @ rng.normal(size=n_features) + rng.normal(size=users.size) > 0.8
    return X, y, users


def deviation(X, users):
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=float)
    means = np.array([X[users == u].mean(axis=0) for u in np.unique(users)])
    found = np.sqrt(np.mean((X - means[np.searchsorted(np.unique(users), users)]) ** 2, axis=0))
    return np.where(found > 1e-12 * np.abs(X).max(axis=0), found, 1.0)


def test_a_sparse_matrix_is_divided_by_one_number(tmp_path):
    """The root of the mean variance of the columns that vary: in the file, the note, the bound."""
    X, y, users = lists(density=0.4)
    X = np.hstack([X, np.zeros((len(X), 2)), np.full((len(X), 1), 3.0)])
    spreads = deviation(X, users)[:5]
    factor = np.sqrt(np.mean(spreads**2))
    own = Linear(2, alpha=0.1, tol=1e-9).fit(sparse.csr_array(X), y, groups=users)
    np.testing.assert_allclose(own.scale_, factor, rtol=1e-12)
    by_hand = Linear(2, alpha=0.1, tol=1e-9, standardize=False)
    by_hand.fit(X / factor, y, groups=users)
    np.testing.assert_allclose(own.coef_ * factor, by_hand.coef_, atol=1e-5)
    assert own.result_.objective == pytest.approx(by_hand.result_.objective, rel=1e-8)
    # units do not matter, nor does how many rows or columns of zeros there are
    moved = Linear(2, alpha=0.1, tol=1e-9).fit(sparse.csr_array(1e-6 * X), y, groups=users)
    assert moved.result_.objective == pytest.approx(own.result_.objective, rel=1e-8)
    assert "divided by one number" in own.result_.message
    own.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.standardized and model.scale_rule == own.export_weights()["scale_rule"] == "common"
    dense = Linear(2, alpha=0.1).fit(X, y, groups=users)
    assert dense.to_model().scale_rule == "each"
    np.testing.assert_allclose(dense.scale_[:5], spreads, rtol=1e-12)


# --- columns of two values: "auto" divides them by half their difference --------------------------

N_NUMBERS = 2


def with_indicators(n_users=30, size=15, seed=0):
    """Two numbers, and indicators of 50%, 20% and 3%."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), size)
    numbers = rng.normal(size=(users.size, N_NUMBERS)) * [3.0, 0.1]
    X = np.hstack([numbers, rng.random((users.size, 3)) < [0.5, 0.2, 0.03]])
    y = X @ [0.3, 5.0, 1.0, -1.0, 2.0] + rng.normal(size=users.size) > 1.2
    return X, y, users


def scale_by_hand(X, users):
    means = np.array([X[users == u].mean(axis=0) for u in np.unique(users)])
    scale = np.sqrt(np.mean((X - means[users]) ** 2, axis=0))
    scale[N_NUMBERS:] = 0.5
    return scale


def test_it_is_the_fit_on_columns_divided_by_hand(tmp_path):
    X, y, users = with_indicators()
    scale = scale_by_hand(X, users)
    own = Linear(2, tol=1e-9).fit(X, y, groups=users)
    by_hand = Linear(2, tol=1e-9, standardize=False).fit(X / scale, y, groups=users)
    np.testing.assert_allclose(own.scale_, scale, rtol=1e-12)
    assert own.alpha_ == pytest.approx(by_hand.alpha_, rel=1e-12)
    assert own.result_.objective == pytest.approx(by_hand.result_.objective, rel=1e-8)
    np.testing.assert_allclose(own.coef_ * scale, by_hand.coef_, atol=1e-5)
    deviation = RankingData.from_groups(X, y, users).deviation()
    variances = (deviation / scale) ** 2
    d = variances.sum() ** 2 / (variances**2).sum()
    assert variances.mean() < 0.8  # so the rule has to see what the penalty sees
    expected = 12 * variances.mean() * (d / y.sum()) ** 1.5
    assert own.alpha_ == pytest.approx(expected, rel=1e-9)
    assert "those of two values by half the difference" in own.result_.message
    each = Linear(2, standardize=True).fit(X, y, groups=users)
    np.testing.assert_allclose(each.scale_, deviation, rtol=1e-12)
    assert "two values" not in each.result_.message
    own.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.scale_rule == own.export_weights()["scale_rule"] == "indicators"
    assert model.standardized and each.to_model().scale_rule == "each"
    assert by_hand.to_model().scale_rule is None and not by_hand.to_model().standardized
