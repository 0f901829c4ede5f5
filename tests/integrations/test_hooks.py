import numpy as np
import pytest

from structsvm_papk import metrics
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
