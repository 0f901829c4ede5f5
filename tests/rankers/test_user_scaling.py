"""Columns scaled inside each user's list: in training and in prediction, everywhere the same."""

import numpy as np
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from helpers.marks import slow
from structsvm_papk import (
    EmpiricalRisk,
    PAPKRanker,
    PAPKRankerCV,
    RankingData,
    make_surrogate,
    metrics,
)
from structsvm_papk.data.user_scaling import scaled_lists, scaled_rows
from structsvm_papk.datasets.generators import recommender_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model
from structsvm_papk.files.tensors import TensorFile
from structsvm_papk.rankers import UserScaler, ranker_cv

HOW = ["standardize", "rank"]
RNG = np.random.default_rng(3)
USERS = RNG.permutation(np.repeat(list("dbca"), [20, 15, 25, 12]))
X = RNG.normal(size=(72, 3)) * [1e-30, 1.0, 1e30] + [0, 1e9, 0]
Y = (RNG.random(72) < 0.3).astype(int)
X[USERS == "a", 1] = 0.1 + 0.2  # constant in one list


def by_hand(X, users, how):
    out = np.empty(X.shape)
    for user in np.unique(users):
        rows = users == user
        for f in range(X.shape[1]):
            x, n = X[rows, f].astype(np.longdouble), rows.sum()
            if how == "rank":
                out[rows, f] = (stats.rankdata(x) - (n + 1) / 2) / n
            else:
                out[rows, f] = (x - x.mean()) / x.std() if np.ptp(x) else 0.0
    return out


@pytest.mark.parametrize("how", HOW)
def test_scaled_as_by_hand_whatever_the_units_and_the_order_of_rows(how):
    expected = by_hand(X, USERS, how)
    np.testing.assert_allclose(scaled_rows(X, USERS, how), expected, atol=2e-6)
    order = RNG.permutation(72)
    np.testing.assert_allclose(
        scaled_rows(X[order], USERS[order], how), scaled_rows(X, USERS, how)[order], atol=1e-12
    )
    whole = scaled_rows(X, "one_list", how)
    np.testing.assert_allclose(whole, by_hand(X, np.zeros(72), how), atol=2e-6)
    narrow = (X * [1, 1e-9, 1e-3]).astype(np.float32)
    assert scaled_rows(narrow, USERS, how).dtype == np.float32
    np.testing.assert_allclose(
        scaled_rows(narrow, USERS, how), by_hand(narrow, USERS, how), atol=1e-5
    )


def test_largest_and_nearly_constant_values_stay_finite():
    values = np.array([[1.7e308, 0.1], [-1.7e308, 0.1], [0.0, 0.3 - 0.2], [5e-324, 0.1]])
    scaled = scaled_rows(values, [1, 1, 1, 1], "standardize")
    assert np.isfinite(scaled).all() and not scaled[:, 1].any()
    np.testing.assert_allclose(scaled[:, 0], np.sqrt([2, 2, 0, 0]) * [1, -1, 0, 0], atol=1e-12)
    assert not scaled_rows(values, [1, 2, 3, 4], "rank").any()


@pytest.mark.parametrize(("how", "standardize"), [("standardize", True), ("rank", False)])
def test_the_problem_is_that_of_columns_scaled_beforehand_in_model_files_too(
    how, standardize, tmp_path
):
    settings = {"k": 2, "alpha": 0.1, "tol": 1e-9, "standardize": standardize}
    settings["user_weight"] = "positives"
    scaled = scaled_rows(X, USERS, how)
    plain = PAPKRanker(**settings).fit(scaled, Y, groups=USERS)
    ranker = PAPKRanker(**settings, user_scaling=how).fit(X, Y, groups=USERS)
    users = np.append(USERS, np.repeat("z", 72))  # whose rows are in none of the lists
    lists = RankingData.from_groups(np.tile(X, (2, 1)), np.tile(Y, 2), users)
    lists = lists.subset(lists.users != "z")
    listed = PAPKRanker(**settings, user_scaling=how).fit_lists(lists)
    for same in (ranker, listed):
        np.testing.assert_array_equal(same.coef_, plain.coef_)
    expected = plain.predict(scaled)
    np.testing.assert_array_equal(ranker.predict(X, USERS), expected)
    assert ranker.score(X, Y, groups=USERS) == plain.score(scaled, Y, groups=USERS)
    ranker.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.user_scaling == how == ranker.export_weights()["user_scaling"]
    np.testing.assert_array_equal(model.predict(X, USERS), expected)
    with pytest.raises(InputError, match=f"user_scaling='{how}' scales X inside each user's list"):
        model.predict(X)
    with pytest.raises(InputError, match=r"format \d, this version reads format 1"):
        TensorFile("model", version=1).read(tmp_path / "m")  # an older version of the package
    ranker.set_params(user_scaling=None)  # without a fit: the fitted weights are as they were
    np.testing.assert_array_equal(ranker.predict(X, USERS), expected)


GRID = {
    "k": 2, "surrogates": ["avg", "ts"], "depths": [None, 0.9], "alphas": [1.0, 0.1],
    "user_weights": ["equal", "positives"], "cv": 2, "cv_tol": 1e-4, "tol": 1e-3,
}  # fmt: skip


def mean_auc(ranker, rows, y, groups):
    return metrics.evaluate("auc", ranker.predict(rows), y, groups).mean("auc")


@pytest.mark.parametrize(
    "settings",
    [{"standardize": True}, slow({"standardize": False, "scoring": mean_auc, "n_jobs": 2})],
)
def test_a_search_over_scalings_is_a_search_on_each_scaled_matrix(settings, monkeypatch):
    made = []
    monkeypatch.setattr(
        ranker_cv,
        "scaled_lists",
        lambda lists, how, missing: made.append(how) or scaled_lists(lists, how, missing),
    )
    tried, scale = ["rank", None, "standardize", "rank"], [1e30, 1e-9, 2e-30]
    settings = {**GRID, **settings, "alphas": "auto"}
    search = PAPKRankerCV(**settings, user_scaling=tried).fit(X * scale, Y, groups=USERS)
    assert made == ["rank", None, "standardize"]
    results = search.cv_results_
    scaling = results["param_user_scaling"]
    for how in tuple(made):
        matrix = scaled_rows(X * scale, USERS, how)
        alone = PAPKRankerCV(**settings, user_scaling=None).fit(matrix, Y, groups=USERS)
        for name in ("split0_test_score", "split1_test_score", "param_alpha", "param_depth"):
            np.testing.assert_array_equal(results[name][scaling == how], alone.cv_results_[name])
    best = search.best_params_["user_scaling"]
    assert search.to_model().user_scaling == search.user_scaling_ == best
    assert search.choice_.setting.user_scaling == best
    assert (f", user scaling {best}: " in str(search.choice_)) == (best is not None)
    assert search.choice_.default.user_scaling is None


def test_transformer_in_a_pipeline_gets_the_groups():
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(UserScaler("rank"), PAPKRanker(k=2, alpha=0.1))
        pipeline.fit(X, Y, groups=USERS)
        scores = pipeline.predict(X, groups=USERS)
        other = make_pipeline(UserScaler(), LogisticRegression()).fit(X, Y, groups=USERS)
        assert other.predict_proba(X, groups=USERS).shape == (72, 2)
        with pytest.raises(InputError, match="give groups="):
            other.predict(X)
    ranker = PAPKRanker(k=2, alpha=0.1, user_scaling="rank").fit(X, Y, groups=USERS)
    np.testing.assert_allclose(scores, ranker.predict(X, USERS), atol=1e-12)
    train = recommender_lists(n_users=3)[0][["ease", "content", "user"]]
    scaler = UserScaler(None).fit(train)
    assert list(scaler.get_feature_names_out()) == list(train)
    np.testing.assert_array_equal(scaler.transform(train), train)


def test_wrong_input():
    def cv_of(user_scaling, features=X):
        return PAPKRankerCV(**GRID, user_scaling=user_scaling).fit(features, Y, groups=USERS)

    fitted = PAPKRanker(k=2, user_scaling="rank", alpha=0.1).fit(X, Y, groups=USERS)
    scale = UserScaler("rank")
    risk = EmpiricalRisk(make_surrogate("avg", 2), RankingData.from_groups(X, Y, USERS))
    with_nan, text = X.copy(), X.astype(object)
    with_nan[3, 1], text[3, 1] = np.nan, "much"
    ranker = PAPKRanker(k=2, user_scaling="ranks")
    for call, message in [
        (lambda: fitted.predict(X), "give groups="),
        (lambda: fitted.predict(X, USERS[1:]), "one label per row"),
        (lambda: ranker.fit(X, Y, groups=USERS), "user_scaling='ranks' is not known"),
        (lambda: cv_of([]), "something in it"),
        (lambda: cv_of([None, "none"]), "user_scaling='none' is not known"),
        (lambda: cv_of([["rank"]]), "one is needed"),
        (lambda: cv_of(3), "user_scaling=3 is not known"),
        (lambda: PAPKRanker(user_scaling=[None]).fit(X, Y, USERS), "PAPKRankerCV"),
        (lambda: cv_of([None, "rank"], sparse.csr_array(X)), "needs a dense X"),
        (lambda: UserScaler(1).fit(X), "user_scaling=1 is not known"),
        (lambda: fitted.fit(sparse.csr_array(X), Y, USERS), "needs a dense X"),
        (lambda: scale.fit_transform(sparse.csr_array(X), Y, USERS), "dense"),
        (lambda: fitted.fit_risk(risk), "in memory"),
        (lambda: scale.fit_transform(with_nan, Y, USERS), "NaN at row 3, column 1"),
        (lambda: scale.fit_transform(text, Y, USERS), "'much'"),
        (lambda: UserScaler().fit(X).transform(X[:, :2], USERS), "2 features"),
    ]:
        with pytest.raises(InputError, match=message):
            call()


# --- one list: what its columns were in training ------------------------------------------------


def one_list(n_rows=600):
    rng = np.random.default_rng(1)
    values = rng.lognormal(sigma=2.0, size=(n_rows, 3))
    values[:, 1] = np.rint(values[:, 1])  # ties
    labels = np.log1p(values).sum(axis=1) + rng.normal(size=n_rows) > 4
    return values, labels


def test_one_list_is_trained_on_its_ranks():
    values, labels = one_list(200)  # every distinct value is a knot
    options = {"k": 20, "alpha": 0.1, "one_list": True, "tol": 1e-9, "surrogate": "avg"}
    ranker = PAPKRanker(**options, user_scaling="rank").fit(values, labels)
    ranks = by_hand(values, np.zeros(200), "rank")
    plain = PAPKRanker(**options).fit(ranks, labels)
    np.testing.assert_allclose(ranker.coef_, plain.coef_, rtol=1e-9)
    np.testing.assert_allclose(ranker.predict(values), plain.predict(ranks), rtol=1e-9)


@pytest.mark.parametrize("settings", [
    {"user_scaling": "rank"},
    {"missing": "lowest"},
    {"user_scaling": "rank", "missing": "lowest"},
])  # fmt: skip
def test_the_score_of_a_case_does_not_depend_on_which_are_asked_for_with_it(settings, tmp_path):
    values, labels = one_list()
    if "missing" in settings:
        values[::7, 0] = np.nan
    ranker = PAPKRanker(k=20, one_list=True, alpha=0.1, **settings).fit(values[:400], labels[:400])
    together = ranker.predict(values)
    alone = np.concatenate([ranker.predict(row[None]) for row in values])
    np.testing.assert_array_equal(alone, together)
    assert ranker.score(values[400:], labels[400:]) > 0.8
    ranker.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert not model.needs_lists
    np.testing.assert_array_equal(model.predict(values), together)
    if "rank" in settings.values():
        by_name = ranker.export_weights()
        scores = np.zeros(600)
        for column, (name, weight) in enumerate(by_name["weights"].items()):
            x = values[:, column]
            knots = np.array(by_name["ranks"][name])
            assert len(knots) <= 256
            ranks = np.interp(x, knots[:, 0], knots[:, 1])
            ranks[np.isnan(x)] = by_name["lowest"][name]
            scores += weight * ranks
            if "missing" in settings:
                scores += by_name["missing_weights"][name] * np.isnan(x)
        np.testing.assert_allclose(scores, together, rtol=1e-9)


def test_one_list_searches_ranks_and_refuses_what_shifts_all_its_rows_alike():
    values, labels = one_list()
    search = PAPKRankerCV(k=20, one_list=True, cv=3).fit(values, labels)
    assert set(search.cv_results_["param_user_scaling"]) == {None, "rank"}
    assert np.isfinite(search.predict(values[:1])).all()
    with pytest.raises(InputError, match="only divides and shifts its columns"):
        PAPKRanker(k=20, one_list=True, user_scaling="minmax").fit(values, labels)
    one_user = np.zeros(600)  # a list that others follow
    PAPKRanker(k=20, user_scaling="minmax").fit(values, labels, groups=one_user)


def test_a_search_says_by_its_setting_that_predict_needs_groups():
    kept = PAPKRankerCV(**GRID).fit(X, Y, groups=USERS)
    assert set(kept.cv_results_["param_user_scaling"]) == {None}
    asked = PAPKRankerCV(**GRID, user_scaling="auto").fit(X, Y, groups=USERS)
    assert set(asked.cv_results_["param_user_scaling"]) == {None, "rank"}
