import pickle

import numpy as np
import pytest

from helpers.values import values_of
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.integrations import hooks

pytestmark = pytest.mark.portable


def ranking(seed, n_users=50, n=14):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_users * n, 5))
    y = (X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + rng.normal(size=len(X)) > 1.2).astype(int)
    return X, y, np.repeat(np.arange(n_users), n), np.full(n_users, n)


TRAIN, VALID = ranking(0, n_users=60), ranking(1)
NAME = "pap@3"


def expected(scores, rows=VALID):
    return metrics.evaluate([NAME], scores, rows[1], rows[2]).mean(NAME)


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of scikit-learn to an old LightGBM
def test_lightgbm_ranker_stops_early_on_pap():
    lgb = pytest.importorskip("lightgbm")
    ranker = lgb.LGBMRanker(n_estimators=80, num_leaves=6, verbose=-1, metric="None", n_jobs=1)
    fit = {"group": TRAIN[3], "eval_group": [VALID[3]]}
    fit |= {"eval_metric": hooks.lightgbm_eval_metric(NAME)}
    fit |= {"callbacks": [lgb.early_stopping(8, verbose=False)]}
    try:
        ranker.fit(*TRAIN[:2], eval_X=(VALID[0],), eval_y=(VALID[1],), **fit)
    except TypeError:
        ranker.fit(*TRAIN[:2], eval_set=[VALID[:2]], **fit)
    history = next(iter(ranker.evals_result_.values()))[NAME]
    best = ranker.best_iteration_
    assert best < 80
    assert history[best - 1] == max(history)
    assert history[best - 1] == pytest.approx(expected(ranker.predict(VALID[0])))


def test_xgboost_train_stops_early_on_pap():
    xgb = pytest.importorskip("xgboost")
    train = xgb.DMatrix(TRAIN[0], TRAIN[1], qid=TRAIN[2])
    valid = xgb.DMatrix(VALID[0], VALID[1], qid=VALID[2])
    seen = {}
    booster = xgb.train(
        {"objective": "rank:ndcg", "disable_default_eval_metric": 1, "max_depth": 3, "nthread": 1},
        train, 80, evals=[(valid, "valid")], custom_metric=hooks.xgboost_custom_metric(NAME),
        callbacks=[xgb.callback.EarlyStopping(rounds=8, maximize=True, save_best=True)],
        evals_result=seen, verbose_eval=False,
    )  # fmt: skip
    assert len(seen["valid"][NAME]) < 80
    assert max(seen["valid"][NAME]) == pytest.approx(expected(booster.predict(valid)))


def test_catboost_ranker_stops_early_on_pap():
    catboost = pytest.importorskip("catboost")
    pools = [catboost.Pool(X, y, group_id=g) for X, y, g, _ in (TRAIN, VALID)]
    ranker = catboost.CatBoostRanker(
        iterations=80, loss_function="YetiRank", depth=3, verbose=False, thread_count=1,
        allow_writing_files=False, early_stopping_rounds=8, use_best_model=True,
        eval_metric=hooks.CatBoostMetric(NAME, [TRAIN[2], VALID[2]], [TRAIN[1], VALID[1]]),
    )  # fmt: skip
    ranker.fit(pools[0], eval_set=pools[1])
    history = ranker.get_evals_result()["validation"]["CatBoostMetric"]
    assert len(history) < 80
    assert max(history) == pytest.approx(expected(ranker.predict(pools[1])))


def test_catboost_pools_are_told_apart():
    scores, labels = np.array([3.0, 2, 1, 0]), [np.array([1, 0, 0, 1]), np.array([0, 0, 0.1, 1])]
    groups = [np.array([0, 0, 1, 1]), np.zeros(4, dtype=int)]
    metric = hooks.CatBoostMetric("auc", groups, labels, relevance_threshold=0.05)
    assert metric.evaluate([scores], np.float32(labels[0]), None) == (0.5, 1.0)
    assert metric.evaluate([scores], np.float32(labels[1]), None) == (0.0, 1.0)
    with pytest.raises(InputError, match="no groups were given for a pool of 2 rows"):
        metric.evaluate([scores[:2]], labels[0][:2], None)
    with pytest.raises(InputError, match="has_time=True keeps their order"):
        metric.evaluate([scores], labels[0][::-1] + labels[1], None)
    # rows of a user need not stand together
    apart = hooks.CatBoostMetric("auc", [[0, 1, 1, 0]], [[1, 0, 1, 0]])
    assert apart.evaluate([scores], np.array([1, 0, 1, 0]), None) == (0.5, 1.0)
    assert not hooks.CatBoostMetric("auc", groups, labels, gain=False).is_max_optimal()


def test_catboost_pools_that_no_metric_can_be_of_are_refused():
    with pytest.raises(InputError, match="same labels and other groups"):
        hooks.CatBoostMetric("auc", [[1, 1, 2], [1, 2, 2]], [[1, 0, 1]] * 2)
    with pytest.raises(InputError, match="one entry for each row"):
        hooks.CatBoostMetric("auc", [[1, 1, 2]], [[1, 0]])
    nobody = hooks.CatBoostMetric("auc", [[1, 1]], [[0, 0]])
    with pytest.raises(InputError, match="auc is defined for no user of the pool of 2 rows"):
        nobody.evaluate([np.zeros(2)], np.zeros(2), None)


def uneven(seed, n_users=40):
    """Lists of 1 to 15 rows."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), rng.integers(1, 16, n_users))
    X = rng.normal(size=(users.size, 3))
    return X, (X[:, 0] + rng.normal(size=users.size) > 0.8).astype(int), users


def mean_by_xgboost(metric, scores, labels, users):
    """What XGBRanker makes of the values of users: rows are the weights, single rows count 1."""
    places = [np.flatnonzero(users == user) for user in np.unique(users)]
    values = [metric(labels[at], scores[at]) if at.size > 1 else 1.0 for at in places]
    return np.average(values, weights=[at.size for at in places])


@pytest.mark.parametrize("name", ["pap@3", "ndcg@5", "recall@2"])
def test_xgboosts_mean_over_rows_becomes_one_over_users(name):
    X, y, users = uneven(0)
    scores, used = X[:, 0].round(1), np.bincount(users)[users] > 1
    values = values_of(name, scores[used], y[used], users[used])
    wanted = np.nan_to_num(values).sum() / 40
    metric = hooks.xgboost_eval_metric(name, users)
    assert mean_by_xgboost(metric, scores, y, users) == pytest.approx(wanted)
    plain = hooks.xgboost_eval_metric(name)
    assert abs(mean_by_xgboost(plain, scores, y, users) - wanted) > 0.02
    assert pickle.loads(pickle.dumps(metric)) == metric
    with pytest.raises(InputError, match="mean='pooled' is not available here"):
        hooks.xgboost_eval_metric("auc", mean="pooled")
