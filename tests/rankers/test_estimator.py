import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, SkipTestWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_score
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from helpers.commands import run
from helpers.reference_metrics import per_user
from structsvm_papk import PAPKRanker, RankingData, metrics
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files import load_model
from structsvm_papk.metrics import scorer

Linear = partial(PAPKRanker, curves=None)  # no folds are asked

pytestmark = pytest.mark.portable


def refused(estimator):
    """Checks that weigh rows of one user differently, or call the labels 1 and 2."""
    weights = ("s_not_overwritten", "_equivalence_on_dense_data", "_equivalence_on_sparse_data")
    labels = (
        "estimators_dtypes", "sample_weights_pandas_series", "sample_weights_not_an_array",
        "sample_weights_shape", "fit2d_1feature",
    )  # fmt: skip
    return {
        **{f"check_sample_weight{name}": "sample_weight weighs users" for name in weights},
        **{f"check_{name}": "of the labels 1 and 2 none is relevant" for name in labels},
    }


@pytest.mark.filterwarnings("ignore::structsvm_papk.errors.DegenerateOptimumWarning")
@parametrize_with_checks(
    [Linear(groups="one_list", alpha=0.1, surrogate="avg")], expected_failed_checks=refused
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::structsvm_papk.errors.DegenerateOptimumWarning")
@parametrize_with_checks(
    [
        Linear(groups="one_list"),  # what it fits is the best of some on folds
        Linear(groups="one_list", surrogate="ts", solver="subgradient"),
    ],
    expected_failed_checks=refused,
)
def test_scikit_learn_contract_of_a_choice_and_of_a_descent(estimator, check):
    check(estimator)


def test_scikit_learn_checks_have_no_groups_and_are_skipped():
    with pytest.warns(SkipTestWarning, match="Explicit SKIP"):
        results = check_estimator(Linear())
    assert {result["status"] for result in results} <= {"passed"}


@pytest.fixture(scope="module")
def task():
    """Twelve users whose relevance depends on two of four features, rows in random order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(360, 4))
    y = (X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=360) > 1).astype(int)
    groups = rng.permutation(np.repeat(np.arange(12), 30))
    return X, y, groups


def gain_by_definition(scores, y, groups, k):
    return np.nanmean(per_user(f"pap@{k}", scores, y, groups))


@pytest.mark.parametrize("surrogate", ["avg", "max", "ts", "pauc"])
def test_fit_is_certified_and_score_is_the_metric(task, surrogate):
    X, y, groups = task
    ranker = Linear(k=3, surrogate=surrogate).fit(X, y, groups)
    result = ranker.result_
    assert result.converged and 0 <= result.gap <= 1e-6
    assert ranker.coef_.shape == (4,) and ranker.n_iter_ == result.n_iter
    scores = ranker.decision_function(X)
    np.testing.assert_allclose(scores, X @ ranker.coef_)
    np.testing.assert_array_equal(scores, ranker.predict(X))
    expected = gain_by_definition(scores, y, groups, 3)
    assert ranker.score(X, y, groups) == pytest.approx(expected) and expected > 0.7
    assert ranker.score(X, y, qid=groups) == ranker.score(X, y, groups=groups)


def test_row_order_container_and_labels_do_not_matter(task):
    X, y, groups = task
    reference = Linear(k=3).fit(X, y, groups)
    names = np.array([f"user {g}" for g in groups])
    order = np.random.default_rng(1).permutation(y.size)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for variant in (
        Linear(k=3).fit(X[order], y[order], groups[order]),
        Linear(k=3).fit(np.asfortranarray(X), 2 * y - 1, qid=names),
        Linear(k=3, standardize=True).fit(sparse.csr_array(X), y == 1, groups),
        Linear(k=3).fit(frame, pd.Series(y), pd.Series(names)),
        Linear(k=3).fit(pl.DataFrame(frame.to_dict("list")), pl.Series(y), pl.Series(names)),
        Linear(k=3, relevance_threshold=5).fit(X, 2 + 3 * y, groups),
    ):
        # optima of one strongly convex problem: ||w - w*||^2 <= 2 gap / alpha
        np.testing.assert_allclose(variant.coef_, reference.coef_, atol=2e-2)
        assert variant.result_.objective == pytest.approx(reference.result_.objective, rel=2e-6)


def test_one_list_where_it_is_said(task):
    X, y, groups = task
    how = {"k": 5, "surrogate": "avg", "alpha": 0.1}
    ranker = Linear(**how).fit(X, y, groups="one_list")
    assert ranker.exclusions_.n_users == 1
    expected = gain_by_definition(ranker.predict(X), y, np.zeros(y.size), 5)
    assert ranker.score(X, y, qid="one_list") == pytest.approx(expected)
    setting = Linear(**how, groups="one_list").fit(X, y)
    assert setting.score(X, y) == pytest.approx(expected)
    assert setting.fit(X, y, groups).exclusions_.n_users == 12
    assert (cross_val_score(setting, X, y, cv=3) > 0.6).all()


LINES = (
    r"groups= is missing.*\n.*sklearn\.set_config\(enable_metadata_routing=True\)\n.*"
    r"params=\{'groups': users\}"
)


def test_forgotten_groups_and_forgotten_routing_are_refused(task):
    X, y, groups = task
    ranker, folds = Linear(k=3).fit(X, y, groups), GroupKFold(3)
    for call in (Linear(k=3).fit, ranker.score):
        with pytest.raises(InputError, match=LINES):
            call(X, y)
        with pytest.raises(InputError, match="groups='user': give an array"):
            call(X, y, groups="user")
    with pytest.raises(ValueError, match=LINES):
        cross_val_score(Linear(k=3), X, y, groups=groups, cv=folds)
    with pytest.warns(UserWarning, match=LINES):  # only fit has them: scikit-learn scores NaN
        scores = cross_val_score(Linear(k=3), X, y, params={"groups": groups}, cv=3)
    assert np.isnan(scores).all()
    lines = (
        r"set_config\(enable_metadata_routing=True\)\n.*scorer\.set_score_request\(groups=True\)"
    )
    options = {"scoring": scorer("pap@3"), "groups": groups, "cv": folds, "error_score": "raise"}
    with pytest.raises(InputError, match=lines):
        cross_val_score(LogisticRegression(), X, y, **options)
    first = SimpleNamespace(predict=lambda X: X[:, 0])
    assert metrics.scorer("pap@3")(first, X, y, groups="one_list") == pytest.approx(
        gain_by_definition(X[:, 0], y, np.zeros(y.size), 3)
    )


def test_what_is_warned_of_and_a_callback_that_stops(task):
    X, y, groups = task
    with pytest.warns(DegenerateOptimumWarning, match="w = 0 is the optimum"):
        ranker = Linear(k=3, depth=None)
        ranker.fit(X, (X[:, 0] * X[:, 1] > 1.2).astype(int), groups)
    assert ranker.result_.status == "degenerate" and ranker.result_.converged
    np.testing.assert_allclose(ranker.coef_, 0, atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="iteration limit"):
        ranker = Linear(k=3, max_iter=1).fit(X, y, groups)
    assert not ranker.result_.converged and ranker.n_iter_ == 1
    with pytest.warns(ConvergenceWarning, match="callback"):
        ranker.set_params(max_iter=None, callback=lambda at: at.iteration == 3).fit(X, y, groups)
    assert ranker.n_iter_ == 3


def test_users_left_out_are_counted_or_refused(task):
    X, y, groups = task
    y = np.where(groups == 4, 0, y)
    ranker = Linear(k=3).fit(X, y, groups)
    assert ranker.exclusions_.no_positive.tolist() == [4]
    assert ranker.score(X, y, groups) == pytest.approx(
        gain_by_definition(ranker.predict(X), y, groups, 3)
    )
    with pytest.raises(InputError, match="user 4 has no positive"):
        Linear(k=3, policy="raise").fit(X, y, groups)
    with pytest.raises(InputError):
        ranker.set_params(policy="raise").score(X, y, groups)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"k": 0}, "k must be a whole number of at least 1"),
        ({"k": 1.5}, "k must be a whole number of at least 1"),
        (
            {"k": 30, "policy": "exclude"},
            "k=30 is larger than the number of negatives of every user",
        ),
        *(({"alpha": alpha}, "alpha") for alpha in ("large", 0, -1.0, None, float("nan"))),
        ({"tol": -1e-3}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"surrogate": "tss"}, "unknown surrogate 'tss'.*did you mean 'ts'"),
        ({"solver": "simplex"}, "solver='simplex' is not known"),
        ({"surrogate": "ts_alg2", "solver": "cutting_plane"}, "is not convex"),
        ({"surrogate": "ts", "solver": "cccp"}, "CCCP solves ramp and clipped_ramp, not 'ts'"),
        ({"policy": "ignore"}, "policy='ignore' is not known"),
        ({"n_threads": 0}, "n_threads"),
        *(({"curves": n}, "curves must be a whole number of at least 1") for n in (0, 2.5, True)),
        ({"curves": 255}, "curves=255: a column has at most 254 pieces"),
        ({"curves": "many"}, "curves='many' must be 'auto', None, or a number of pieces"),
        *(({"pairs": n}, "pairs must be a whole number of at least 1") for n in (0, 1.5, True)),
        ({"pairs": "many"}, "pairs='many' must be 'auto', None, or a number of pairs"),
        ({"pairs": 3, "positive": True}, "give pairs or positive=True"),
        ({"standardize": "yes"}, "standardize must be 'auto', True or False"),
    ],
)
def test_settings_that_cannot_be_used(task, settings, reason):
    with pytest.raises(InputError, match=reason):
        Linear(**{"k": 3} | settings).fit(*task)


def test_data_that_cannot_be_used(task):
    X, y, groups = task
    ranker = Linear(k=3, missing=None)
    hole = X.copy()
    hole[7, 2] = np.nan
    for arguments, reason in [
        ((hole, y, groups), "row 7, column 2"),
        ((X, y + (groups == 1) * 0.5, groups), "4 values, and grades are whole numbers"),
        ((X, np.ones(y.size), groups), "one class only"),
        ((X, y - 1, groups), "-1 and 0 only, which do not say what is relevant"),
        ((X, y + 1, groups), "1 and 2 only, which do not say what is relevant"),
        ((X, np.where(y, 7, -3.5), groups), "-3.5 and 7.0 only, which do not say"),
        ((X, 0.5 * y, groups), "0.0 and 0.5 only, which do not say"),
        ((X, np.where(y, "yes", "no"), groups), 'labels y are text: give y == "yes"'),
        (
            (X, np.where(np.arange(y.size) == 7, np.nan, y), groups),
            "y contains NaN. See row 7: leave",
        ),
        ((X, y, groups[:-1]), "groups has shape"),
        ((X, y, np.bincount(groups)), r"of sizes of lists, np.repeat\(np.arange"),
        ((X, y[:-1], groups), "inconsistent numbers of samples"),
    ]:
        with pytest.raises(ValueError, match=reason):
            ranker.fit(*arguments)
    with pytest.raises(InputError, match="give groups or qid, not both"):
        ranker.fit(X, y, groups, qid=groups)
    ranker.fit(X, y, groups)
    with pytest.raises(ValueError, match="X has 3 features, but PAPKRanker is expecting 4"):
        ranker.predict(X[:, :3])
    with pytest.raises(InputError, match="label 2 in y was not there in training"):
        ranker.score(X, y + 1, groups)
    with pytest.raises(InputError, match="y has shape"):
        ranker.score(X, y[:-1], groups)
    with pytest.raises(InputError, match="no user has a positive and k=3 negatives"):
        ranker.score(X, np.zeros(y.size), groups)


def test_columns_in_another_order_are_refused_with_what_to_do(task):
    pandas = pytest.importorskip("pandas")
    X, y, groups = task
    frame = pandas.DataFrame(X, columns=list("abcd"))
    ranker = Linear(k=3).fit(frame, y, groups)
    for other in (frame[list("dcba")], frame.assign(e=1.0)):
        with pytest.raises(InputError, match=r"X\[ranker.feature_names_in_\]$"):
            ranker.predict(other)
        np.testing.assert_array_equal(
            ranker.predict(other[ranker.feature_names_in_]), ranker.predict(frame)
        )
    with pytest.raises(InputError, match=r"now missing:\n- a\n$"):
        ranker.predict(frame.drop(columns="a"))


def test_a_k_that_no_list_has_negatives_for_is_noted(task):
    X, y, groups = task
    most = int(np.bincount(groups[y == 0]).max())
    for k, is_noted in ((most, False), (most + 1, True)):
        notes = " ".join(Linear(k=k).fit(X, y, groups).result_.notes)
        assert (f"k={k} is above the negatives of every list (at most {most})" in notes) == is_noted


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("groups", "False"), ("groups", np.array([1, 2])), ("label_gain", "yes"), ("tol", 1),
        ("tol", 2.0), ("tol", None), ("k", 2**63), ("depth", 2**63), ("max_iter", 2**63),
        ("n_threads", 2**63), ("relevance_threshold", np.nan),
    ],
)  # fmt: skip
def test_a_setting_that_would_be_dropped_or_overflow_is_refused(task, setting, value):
    with pytest.raises((InputError, TypeError), match=setting):
        Linear(**({"k": 3} | {setting: value})).fit(*task)


def test_a_tolerance_is_refused_by_solvers_without_one(task):
    with pytest.raises(InputError, match="AveragedSubgradient has no setting 'tol'"):
        Linear(k=3, solver="averaged", tol=1e-3).fit(*task)
    limited = Linear(k=3, solver="averaged", time_limit=600.0, max_iter=100).fit(*task)
    assert limited.n_iter_ == 101  # with the start


@pytest.mark.parametrize("kind", [np.int64, np.float32])
def test_a_threshold_of_numpy_is_saved(task, tmp_path, kind):
    X, y, groups = task
    ranker = Linear(k=3, relevance_threshold=kind(1)).fit(X, y, groups)
    ranker.save(tmp_path / "m")
    assert load_model(tmp_path / "m").relevance_threshold == 1
    json.dumps(ranker.export_weights())


def test_zero_and_one_grade_are_grades(task):
    X, y, groups = task
    one = Linear(k=3, tol=1e-9).fit(X, 3 * y, groups)
    np.testing.assert_allclose(one.coef_, Linear(k=3, tol=1e-9).fit(X, y, groups).coef_)
    with pytest.raises(InputError, match="0 and 3 only"):
        Linear(k=3, label_gain=None).fit(X, 3 * y, groups)


@pytest.mark.parametrize(
    ("surrogate", "solver"),
    [
        ("ramp", "cccp"),
        ("clipped_ramp", "cccp"),
        ("ts_alg2", "subgradient"),
        ("max", "cutting_plane"),
    ],
)
def test_the_solver_that_auto_takes(task, surrogate, solver):
    ranker = Linear(k=3, surrogate=surrogate, tol=1e-4, alpha=0.1)
    if solver == "subgradient":  # which has no certificate
        with pytest.raises(InputError, match="SubgradientDescent has no setting 'tol'"):
            ranker.fit(*task)
        ranker.set_params(tol=1e-6)
    ranker.fit(*task)
    assert ranker.to_model().solver == solver
    assert ranker.result_.status in ("critical", "converged", "finished")
    assert ranker.result_.objective < 1 and ranker.score(*task) > 0.7


# --- weights of users -----------------------------------------------------------------------------


RNG = np.random.default_rng(0)
GROUPS = np.repeat(np.arange(30), 20)
X = RNG.normal(size=(600, 3))
Y = X[:, 0] + RNG.normal(size=600) > 1
WEIGHTS = 1.0 + GROUPS % 3


@pytest.mark.parametrize("wrong", [1e-320, 1e-200, 0.0, -1.0, 1e200])
def test_weights_whose_shares_would_lose_digits_are_refused(wrong):
    weights = np.where(GROUPS == 4, wrong, 1.0)
    with pytest.raises(InputError, match="sample_weight of user 4 is"):
        PAPKRanker(k=2).fit(X, Y, GROUPS, sample_weight=weights)
    with pytest.raises(InputError, match="the weight of user 4 is"):
        RankingData.from_groups(X, Y, GROUPS).weighted(weights[::20])


@pytest.mark.parametrize("low_high", [(1e-100, 1e-100), (1e100, 1e100), (1e-100, 1e100)])
def test_the_largest_and_smallest_weights_that_are_taken_give_a_certificate(low_high):
    ranker = PAPKRanker(k=2, policy="cap")
    ranker.fit(X, Y, GROUPS, sample_weight=np.where(GROUPS % 2, *low_high))
    assert ranker.result_.status == "converged"
    assert ranker.result_.gap <= 1e-6


def test_a_model_says_that_its_weights_were_given(tmp_path, capsys):
    ranker = PAPKRanker(k=2, surrogate="avg", alpha=0.1, curves=None, policy="cap")
    ranker.fit(X, Y, GROUPS, sample_weight=WEIGHTS)
    path = tmp_path / "given.model"
    ranker.save(path)
    assert load_model(path).user_weight == "given"
    assert ranker.export_weights()["user_weight"] == "given"
    (tmp_path / "rows.csv").write_text("user,label,a,b,c\n1,1,1,2,3\n1,0,0,1,2\n")
    assert run("bound", "new-users", path, tmp_path / "rows.csv") == 2
    assert "weights of users that the file does not hold" in capsys.readouterr().err
    ranker.fit(X, Y, GROUPS)
    assert ranker.to_model().user_weight == "equal"
