"""standardize="auto" divides columns of two values by half their difference."""

from functools import partial

import numpy as np
import pytest

from helpers.sources import npy_source, parquet_source
from structsvm_papk import RankingData
from structsvm_papk.files.model import load_model
from structsvm_papk.files.partitions import open_source
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.rankers import PAPKRanker

Linear = partial(PAPKRanker, curves=None)

N_NUMBERS = 2


def lists(n_users=30, size=15, seed=0):
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
    X, y, users = lists()
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


@pytest.mark.parametrize("names", [(0, 100), (-1, 1), (1, 0), (7.5, 7.25)])
def test_what_the_two_values_are_called_does_not_matter(names):
    X, y, users = lists()
    plain = Linear(2, tol=1e-9).fit(X, y, groups=users)
    no, yes = names
    renamed = X.copy()
    renamed[:, N_NUMBERS:] = np.where(X[:, N_NUMBERS:] == 1.0, yes, no)
    other = Linear(2, tol=1e-9).fit(renamed, y, groups=users)
    assert other.alpha_ == pytest.approx(plain.alpha_, rel=1e-12)
    assert other.result_.objective == pytest.approx(plain.result_.objective, rel=1e-8)
    np.testing.assert_allclose(
        other.coef_[N_NUMBERS:] * (yes - no), plain.coef_[N_NUMBERS:], atol=1e-4
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_storage_has_the_same_divisors(tmp_path, dtype):
    X, y, users = lists(n_users=60)
    X[:, 4] = users % 2 + (X[:, 4] if dtype == np.float64 else 0)  # 0/1 and 1/2: three values
    X = X.astype(dtype)
    own = Linear(2, alpha=0.1).fit(X, y, groups=users)
    kept = Linear(2, alpha=0.1).fit(np.asfortranarray(X), y, groups=users)
    assert kept.scale_.tobytes() == own.scale_.tobytes()
    npy_source(tmp_path, X, y.astype(int), users)
    table = parquet_source(tmp_path, X, y.astype(int), users)
    for source in (open_source(tmp_path), table):
        ranker = Linear(2, alpha=0.1)
        risk = StreamedRisk(ranker.make_surrogate(), source, 60_000)
        assert len(risk.partitions.summaries) > 1
        ranker.fit_risk(risk)
        np.testing.assert_array_equal(ranker.scale_[[2, 3]], own.scale_[[2, 3]])
        np.testing.assert_allclose(ranker.scale_, own.scale_, rtol=1e-12)
        assert ranker.to_model().scale_rule == own.to_model().scale_rule == "indicators"
    np.testing.assert_array_equal(own.scale_[[2, 3]], 0.5)
    deviation = RankingData.from_groups(X, y, users).deviation()
    np.testing.assert_array_equal(own.scale_[[0, 1]], deviation[[0, 1]])
    assert own.scale_[4] == (1.0 if dtype == np.float32 else deviation[4])


def test_dask_has_them_too():
    da = pytest.importorskip("dask.array")
    X, y, users = lists()
    X[:, 4] += users >= 15  # 0/1 in some blocks, 1/2 in others
    own = Linear(2, alpha=0.1).fit(X, y, groups=users)
    found = Linear(2, alpha=0.1).fit(da.from_array(X, chunks=(45, -1)), y, groups=users)
    np.testing.assert_array_equal(found.scale_[[2, 3]], 0.5)
    np.testing.assert_allclose(found.scale_, own.scale_, rtol=1e-12)
    assert found.to_model().scale_rule == "indicators"


def test_columns_that_say_is_there_have_two_values():
    X, y, users = lists()
    X[:, 0][np.random.default_rng(1).random(y.size) < 0.4] = np.nan
    ranker = Linear(2, missing="lowest").fit(X[:, :2], y, groups=users)
    assert ranker.result_.w[2] == 0.5 * ranker.missing_coef_[0] != 0.0
    assert ranker.to_model().scale_rule == "indicators"
