"""Columns scaled inside each user's list: in training and in prediction, everywhere the same."""

import json

import numpy as np
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from structsvm_papk import (
    EmpiricalRisk,
    PAPKRanker,
    PAPKRankerCV,
    RankingData,
    make_surrogate,
    metrics,
)
from structsvm_papk.data.user_scaling import scaled_lists, scaled_rows
from structsvm_papk.datasets import recommender_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files import load_model
from structsvm_papk.files.model import Model
from structsvm_papk.files.tensors import TensorFile
from structsvm_papk.rankers import UserScaler, ranker_cv

HOW = ["standardise", "rank"]
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
    scaled = scaled_rows(values, [1, 1, 1, 1], "standardise")
    assert np.isfinite(scaled).all() and not scaled[:, 1].any()
    np.testing.assert_allclose(scaled[:, 0], np.sqrt([2, 2, 0, 0]) * [1, -1, 0, 0], atol=1e-12)
    alone = scaled_rows(values, [1, 2, 3, 4], "rank")
    assert not alone.any()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("standardize", [True, False])
def test_the_problem_is_that_of_columns_scaled_beforehand(how, standardize):
    settings = {"k": 2, "alpha": 0.1, "tol": 1e-9, "standardize": standardize}
    scaled = scaled_rows(X, USERS, how)
    plain = PAPKRanker(**settings).fit(scaled, Y, groups=USERS)
    ranker = PAPKRanker(**settings, user_scaling=how).fit(X, Y, groups=USERS)
    np.testing.assert_array_equal(ranker.coef_, plain.coef_)
    np.testing.assert_array_equal(ranker.predict(X, USERS), plain.predict(scaled))
    assert ranker.score(X, Y, groups=USERS) == plain.score(scaled, Y, groups=USERS)
    lists = RankingData.from_groups(X, Y, USERS)
    listed = PAPKRanker(**settings, user_scaling=how).fit_lists(lists)
    np.testing.assert_array_equal(listed.coef_, plain.coef_)
    if not standardize:
        risk = EmpiricalRisk(
            make_surrogate("avg", 2, 0.9), RankingData.from_groups(scaled, Y, USERS)
        )
        value = risk(ranker.coef_)[0] + 0.05 * ranker.coef_ @ ranker.coef_
        assert value == pytest.approx(ranker.result_.objective, rel=1e-9)


def test_lists_keep_their_users_and_weights_and_share_nothing():
    lists = RankingData.from_groups(X, Y, USERS, user_weight="positives").subset(
        np.array([True, False, True, True])
    )
    scaled = scaled_lists(lists, "rank")
    np.testing.assert_array_equal(scaled.users, lists.users)
    np.testing.assert_array_equal(scaled.user_weight, lists.user_weight)
    expected = by_hand(X, USERS, "rank")[lists.rows]
    np.testing.assert_allclose(scaled.X[scaled.rows], expected, atol=1e-12)
    assert scaled_lists(lists, None) is lists


@pytest.mark.parametrize("how", HOW)
def test_model_files_scale_as_the_ranker_does(how, tmp_path):
    ranker = PAPKRanker(k=2, alpha=0.1, user_scaling=how).fit(X, Y, groups=USERS)
    ranker.save(tmp_path / "m")
    model = load_model(tmp_path / "m")
    assert model.user_scaling == how == ranker.export_weights()["user_scaling"]
    np.testing.assert_array_equal(model.predict(X, USERS), ranker.predict(X, USERS))
    with pytest.raises(InputError, match=f"user_scaling='{how}' scales X inside each user's list"):
        model.predict(X)
    with pytest.raises(InputError, match="format 2, this version reads format 1"):
        TensorFile("model", version=1).read(tmp_path / "m")  # an older version of the package
    ranker.set_params(user_scaling=None)  # without a fit: the fitted weights are as they were
    np.testing.assert_array_equal(model.predict(X, USERS), ranker.predict(X, USERS))


def test_search_scales_and_its_parameters_repeat_the_model():
    train, new = recommender_lists(n_users=60, n_items=200, n_candidates=40)
    columns = ["ease", "neighbours", "content", "popularity"]
    settings = {"k": 5, "surrogates": ["avg"], "depths": [0.9], "alphas": [1e-2], "tol": 1e-6}
    values = []
    for how in (None, "standardise"):
        search = PAPKRankerCV(**settings, cv=3, user_scaling=how)
        search.fit(train[columns], train["relevant"], groups=train["user"])
        again = PAPKRanker(5, **search.best_params_, policy="cap", tol=1e-6)
        again.fit(train[columns], train["relevant"], groups=train["user"])
        assert again.result_.objective == pytest.approx(search.result_.objective, rel=2e-6)
        values.append(search.score(new[columns], new["relevant"], groups=new["user"]))
        assert search.to_model().user_scaling == how
    assert values[1] > values[0]


GRID = {
    "k": 2, "surrogates": ["avg", "ts"], "depths": [None, 0.9], "alphas": [1.0, 0.1],
    "user_weights": ["equal", "positives"], "cv": 2, "cv_tol": 1e-4, "tol": 1e-3,
}  # fmt: skip


@pytest.mark.parametrize("standardize", [True, False])
def test_a_search_over_scalings_is_a_search_on_each_scaled_matrix(standardize, monkeypatch):
    made = []
    monkeypatch.setattr(
        ranker_cv, "scaled_lists", lambda lists, how: made.append(how) or scaled_lists(lists, how)
    )
    tried, scale = ["rank", None, "standardise", "rank"], [1e30, 1e-9, 2e-30]
    settings = {**GRID, "standardize": standardize, "alphas": "auto"}
    search = PAPKRankerCV(**settings, user_scaling=tried).fit(X * scale, Y, groups=USERS)
    assert made == ["rank", None, "standardise"]
    results = search.cv_results_
    scaling = results["param_user_scaling"]
    for how in tuple(made):
        alone = PAPKRankerCV(**settings).fit(scaled_rows(X * scale, USERS, how), Y, groups=USERS)
        for name in ("split0_test_score", "split1_test_score", "param_alpha", "param_depth"):
            np.testing.assert_array_equal(results[name][scaling == how], alone.cv_results_[name])
    best = search.best_params_["user_scaling"]
    assert search.to_model().user_scaling == search.user_scaling_ == best
    assert search.choice_.setting.user_scaling == best
    assert search.choice_.default.user_scaling is None


def test_a_search_takes_the_scaling_that_is_better():
    """In each list another unit and offset: as they are the columns say nothing across users."""
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(60), 20)
    score = rng.normal(size=1200)
    relevant = score + 0.3 * rng.normal(size=1200) > 1.0
    noise = rng.normal(size=1200) * 10.0 ** rng.integers(0, 6, 60)[users]
    x = np.column_stack([score * 10.0 ** rng.integers(-5, 6, 60)[users], noise])
    options = {**GRID, "scoring": "auc"}
    search = PAPKRankerCV(**options, user_scaling=[None, "rank"]).fit(x, relevant, groups=users)
    assert search.best_params_["user_scaling"] == "rank" and search.choice_.lead > 0.05
    assert ", user scaling rank: auc" in str(search.choice_)
    plain = PAPKRankerCV(**options, user_scaling=(None,)).fit(x, relevant, groups=users)
    assert plain.best_score_ < search.best_score_ - 0.05


def test_a_search_over_scalings_with_a_scorer_and_threads():
    def scorer(ranker, rows, y, groups):
        return metrics.evaluate("auc", ranker.predict(rows), y, groups).mean("auc")

    options = {**GRID, "user_scaling": ["rank", "standardise"], "selection": "best"}
    named = PAPKRankerCV(**options, scoring="auc").fit(X, Y, groups=USERS)
    called = PAPKRankerCV(**options, scoring=scorer, n_jobs=2).fit(X, Y, groups=USERS)
    scores = [search.cv_results_["split0_test_score"] for search in (named, called)]
    np.testing.assert_allclose(*scores)


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


def cv_of(user_scaling, features=X):
    return PAPKRankerCV(**GRID, user_scaling=user_scaling).fit(features, Y, groups=USERS)


def wrong():
    fitted = PAPKRanker(k=2, user_scaling="rank", alpha=0.1).fit(X, Y, groups=USERS)
    scale = UserScaler("rank")
    risk = EmpiricalRisk(make_surrogate("avg", 2), RankingData.from_groups(X, Y, USERS))
    with_nan, text = X.copy(), X.astype(object)
    with_nan[3, 1], text[3, 1] = np.nan, "much"
    ranker, cv = PAPKRanker(k=2, user_scaling="ranks"), PAPKRankerCV(k=2, user_scaling="z")
    return {
        "no groups": (lambda: fitted.predict(X), "give groups="),
        "decision_function": (lambda: fitted.decision_function(X), "give groups="),
        "other text": (lambda: fitted.predict(X, "all"), "'one_list'"),
        "short": (lambda: fitted.predict(X, USERS[1:]), "one label per row"),
        "missing": (lambda: fitted.predict(X, np.where(USERS == "a", None, USERS)), "is missing"),
        "mixed": (lambda: fitted.predict(X, [1, "a"] * 36), "mix types"),
        "unknown": (lambda: ranker.fit(X, Y, groups=USERS), "user_scaling='ranks' is not known"),
        "unknown, cv": (lambda: cv.fit(X, Y, groups=USERS), "choose one of standardise, rank"),
        "none, cv": (lambda: cv_of([]), "something in it"),
        "one is unknown": (lambda: cv_of([None, "none"]), "user_scaling='none' is not known"),
        "a list in it": (lambda: cv_of([["rank"]]), "one is needed"),
        "number, cv": (lambda: cv_of(3), "user_scaling=3 is not known"),
        "several": (lambda: PAPKRanker(user_scaling=[None]).fit(X, Y, USERS), "PAPKRankerCV"),
        "sparse, cv": (lambda: cv_of([None, "rank"], sparse.csr_array(X)), "needs a dense X"),
        "a number": (lambda: UserScaler(1).fit(X), "user_scaling=1 is not known"),
        "sparse": (lambda: fitted.fit(sparse.csr_array(X), Y, USERS), "needs a dense X"),
        "sparse rows": (lambda: scale.fit_transform(sparse.csr_array(X), Y, USERS), "dense"),
        "a risk": (lambda: fitted.fit_risk(risk), "in memory"),
        "NaN": (lambda: scale.fit_transform(with_nan, Y, USERS), "nan at row 3, column 1"),
        "text": (lambda: scale.fit_transform(text, Y, USERS), "'much'"),
        "columns": (lambda: UserScaler().fit(X).transform(X[:, :2], USERS), "2 features"),
        "a row": (lambda: scale.fit_transform(X[0], Y, USERS), "1D array"),
    }  # fmt: skip


@pytest.mark.parametrize("case", wrong())
def test_wrong_input(case):
    call, message = wrong()[case]
    with pytest.raises(InputError, match=message):
        call()


def test_a_damaged_scaling_in_a_model_file(tmp_path):
    ranker = PAPKRanker(k=2, user_scaling="rank", alpha=0.1).fit(X, Y, groups=USERS)
    file = TensorFile("model", version=2)
    ranker.save(tmp_path / "m")
    description, arrays = file.read(tmp_path / "m")
    for value in ("z", 1, []):
        (tmp_path / "bad").write_bytes(file.encoded(description | {"user_scaling": value}, arrays))
        with pytest.raises(InputError, match="damaged: bad or missing entry"):
            load_model(tmp_path / "bad")
    assert isinstance(load_model(tmp_path / "m"), Model)
    assert json.dumps(ranker.export_weights())
