"""standardize solves the problem of columns divided by their deviations, without the copy.

'auto' divides the columns of a sparse X by one number.
"""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from helpers.marks import slow
from helpers.sources import npy_source
from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.files.partitions import open_source
from structsvm_papk.oracles import StreamedRisk
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.solvers.branch_and_bound import GlobalRamp

Linear = partial(PAPKRanker, curves=None)

FORMS = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "sparse": sparse.csr_array,
    "float32": lambda X: X.astype(np.float32),
}


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


def assert_same_problem(own, by_hand, scale, rtol=1e-5):
    """Two certified solutions of one problem, of which one had its columns divided beforehand."""
    for one, other in ((own, by_hand), (by_hand, own)):
        assert one.result_.lower_bound <= other.result_.objective * (1 + 1e-12)
    np.testing.assert_allclose(own.scale_, scale, rtol=1e-6)
    np.testing.assert_allclose(own.coef_ * scale, by_hand.coef_, rtol=rtol, atol=rtol)


@pytest.mark.parametrize(
    ("form", "settings"),
    [
        ("rows", {}),
        ("columns", {"surrogate": "ts", "user_weight": "positives", "n_threads": 2}),
        ("float32", {"surrogate": "max", "depth": 5, "alpha": 0.1}),
        ("sparse", {"solver": "dual_ascent"}),
        ("sparse", {"surrogate": "pauc", "alpha": 0.1}),
    ],
)
def test_it_is_the_fit_on_divided_columns(form, settings):
    X, y, users = lists()
    X = FORMS[form](X)
    scale = deviation(X, users)
    divided = FORMS["sparse"](X / scale) if form == "sparse" else X / scale
    own = Linear(2, tol=1e-9, standardize=True, **settings).fit(X, y, groups=users)
    by_hand = Linear(2, tol=1e-9, standardize=False, **settings).fit(divided, y, groups=users)
    assert own.result_.converged
    assert_same_problem(own, by_hand, scale)
    scores = own.decision_function(X)
    np.testing.assert_allclose(scores, by_hand.decision_function(divided), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "settings", [{"solver": "subgradient"}, {"surrogate": "clipped_ramp"}, {"alpha": 0.05}]
)
def test_objective_weights_and_model_file_are_of_the_problem_that_was_solved(settings, tmp_path):
    X, y, users = lists()
    scale = deviation(X, users)
    own = Linear(2, max_iter=20, **settings).fit(X, y, groups=users)
    np.testing.assert_allclose(own.result_.w, own.coef_ * scale, rtol=1e-12)
    data, w = RankingData.from_groups(X / scale, y, users), own.coef_ * scale
    value = EmpiricalRisk(own.make_surrogate(), data)(w)[0] + own.alpha_ / 2 * w @ w
    assert own.result_.objective == pytest.approx(value, rel=1e-9)
    assert "standard deviations" in own.result_.message
    own.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.scale_rule == "each" and own.export_weights()["standardized"]
    np.testing.assert_array_equal(model.function.slopes, own.coef_)


def test_one_list_and_few_positives():
    for n_users, settings in ((1, {"one_list": True}), (12, {})):
        X, y, users = lists(n_users, 2400 // n_users, 10)
        y &= np.random.default_rng(1).random(y.size) < 0.05
        X[y] += 2.0
        scale = deviation(X, users)
        given = None if n_users == 1 else users
        own = Linear(3, depth=3, alpha=0.1, **settings).fit(X, y, groups=given)
        by_hand = Linear(3, depth=3, alpha=0.1, standardize=False, **settings)
        assert_same_problem(own, by_hand.fit(X / scale, y, groups=given), scale, 1e-2)


def test_units_and_offsets_of_columns_change_nothing():
    X, y, users = lists()
    plain = Linear(2, tol=1e-9).fit(X, y, groups=users)
    units = 10.0 ** np.array([-30, -9, 0, 9, 30])
    offsets = 1e3 * np.random.default_rng(0).normal(size=(20, 5))
    moved = Linear(2, tol=1e-9).fit((X + offsets[users]) * units, y, groups=users)
    assert moved.result_.objective == pytest.approx(plain.result_.objective, rel=1e-8)
    np.testing.assert_allclose(moved.coef_ * units, plain.coef_, rtol=1e-4)
    sparse_X = sparse.csr_array(X * units)
    for solver in ("cutting_plane", "dual_ascent"):
        settings = {"solver": solver, "standardize": True}
        moved = Linear(2, tol=1e-9, **settings).fit(sparse_X, y, groups=users)
        np.testing.assert_allclose(moved.coef_ * units, plain.coef_, rtol=1e-4)
    moved = Linear(2, tol=1e-7).fit(X + 1e8, y, groups=users)
    assert moved.result_.converged
    assert moved.result_.objective == pytest.approx(plain.result_.objective, rel=1e-5)
    X[:, 1], X[:, 2] = users, 7.0  # constant within users
    ranker = Linear(2).fit(X, y, groups=users)
    np.testing.assert_array_equal(ranker.scale_[[1, 2]], 1.0)
    np.testing.assert_allclose(ranker.coef_[[1, 2]], 0.0, atol=1e-9)
    data = RankingData.from_groups(X, y, np.arange(y.size)).standardized()
    np.testing.assert_array_equal(data.units.scale, 1.0)  # users of one row


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
    with pytest.raises(InputError, match="standardize must be 'auto', True or False"):
        Linear(2, standardize="yes").fit(X, y, groups=users)


def test_without_it_the_paper_s_problem_is_solved_to_the_bit():
    X, y, users = lists()
    ranker = Linear(2, "ts", None, alpha=0.02, standardize=False).fit(X, y, groups=users)
    risk = EmpiricalRisk(make_surrogate("ts", 2), RankingData.from_groups(X, y, users))
    expected = CuttingPlane(0.02).solve(risk)
    np.testing.assert_array_equal(ranker.coef_, expected.w)
    assert ranker.result_.objective == expected.objective and ranker.scale_ is None


def test_boxes_see_the_divided_columns():
    X, y, users = lists(3, 5, 2)
    data = RankingData.from_groups(X, y, users).standardized()
    by_hand = RankingData.from_groups(X / data.units.scale, y, users)
    own, other = (
        GlobalRamp(0.1, tol=0.1).solve(EmpiricalRisk(make_surrogate("clipped_ramp", 1), each))
        for each in (data, by_hand)
    )
    assert own.lower_bound == pytest.approx(other.lower_bound, rel=1e-9)


@pytest.mark.parametrize(("surrogate", "tol"), [("avg", 1e-6), slow("clipped_ramp", 1e-3)])
def test_files(tmp_path, surrogate, tol):
    X, y, users = lists(8, 20, 9)
    X *= 10.0 ** np.arange(-4, 5)
    npy_source(tmp_path, X, y.astype(int), users)
    ranker = Linear(1, surrogate, None, alpha=0.3, tol=tol)
    risk = StreamedRisk(ranker.make_surrogate(), open_source(tmp_path), 8_000)
    on_file = clone(ranker).fit_risk(risk)
    ranker.fit(X, y, groups=users)
    np.testing.assert_allclose(on_file.scale_, ranker.scale_, rtol=1e-12)
    if surrogate != "clipped_ramp":  # whose starts differ
        assert on_file.result_.objective == pytest.approx(ranker.result_.objective, rel=1e-5)
        assert on_file.result_.lower_bound <= ranker.result_.objective
    data = RankingData.from_groups(X / ranker.scale_, y, users)
    value = EmpiricalRisk(make_surrogate(surrogate, 1), data)(on_file.result_.w)[0]
    value += 0.15 * on_file.result_.w @ on_file.result_.w
    assert on_file.result_.objective == pytest.approx(value, rel=1e-9)
    assert risk.units.scale is None  # the caller's risk stays as it was


def test_a_warm_start_is_the_last_weights_whatever_the_scale_was():
    X, y, users = lists()
    ranker = Linear(2, alpha=0.01, warm_start=True, solver="subgradient", max_iter=20)
    last = ranker.fit(X, y, groups=users).coef_
    assert last.any()
    more = np.concatenate([X, 3.0 * X[:140]])  # other users, and so another scale
    ranker.fit(more, np.append(y, y[:140]), groups=np.append(users, 20 + users[:140]))
    data = RankingData.from_groups(more, np.append(y, y[:140]), np.append(users, 20 + users[:140]))
    risk = EmpiricalRisk(make_surrogate("avg", 2, 0.9), data)
    w = last * ranker.scale_
    assert ranker.result_.history[0].objective == pytest.approx(0.005 * w @ w + risk(last)[0])
    with pytest.raises(InputError, match="warm_start: the last fit had 5 features, X has 3"):
        ranker.fit(X[:, :3], y, groups=users)
