"""The hooks of LightGBM, XGBoost and CatBoost: their history against `metrics.evaluate`.

    python tests/stress/search_libraries.py --problems 150

Lists have 1 to 14 rows. A model is trained with the hook, and its predictions after the last
iteration are evaluated by the table. Libraries that are not installed are left out.
"""

import pickle
import sys
import warnings
from importlib.util import find_spec

import numpy as np
from searching import main

from helpers.values import values_of
from structsvm_papk import metrics
from structsvm_papk.errors import InputError
from structsvm_papk.integrations import hooks

_METRICS = ("pap@3", "ndcg@5", "auc", "ap", "precision@3", "recall@3", "rr", "hit@2", "pauc@3")
_RULES = ({}, {"ties": "half"}, {"no_positives": "zero"}, {"no_positives": "one"}, {"gain": False})


def check(seed, report, only=None):
    library = only or tuple(KINDS)[seed % len(KINDS)]
    if find_spec(library) is None:
        report.counts[f"{library} is not installed"] += 1
        return
    rng = np.random.default_rng(seed)
    name, rules = str(rng.choice(_METRICS)), _RULES[rng.integers(len(_RULES))]
    train, valid = _lists(rng, 30), _lists(rng, 20)
    report.problem = f"{name} {rules}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for what, found, wanted in KINDS[library](rng, name, rules, train, valid):
            report.counts[what] += 1
            if not abs(found - wanted) <= 2e-6:  # XGBoost writes six digits
                report.add("another number", what, f"{found}, by the table {wanted}")


def _lists(rng, n_users):
    users = np.repeat(np.arange(n_users), rng.integers(1, 15, n_users))
    X = rng.normal(size=(users.size, 3)).round(1)
    y = (X[:, 0] + rng.normal(size=users.size) > rng.uniform(0, 1.5)).astype(int)
    return X, y, users


def _by_table(name, rules, scores, lists):
    rows = {"scores": scores, "labels": lists[1], "groups": lists[2]}
    return metrics.evaluate(name, **rows, **rules).mean(name)


def _lightgbm(rng, name, rules, train, valid):
    import lightgbm as library

    (X, y, users), small = train, {"num_leaves": 4, "verbose": -1, "n_jobs": 1}
    ranker = library.LGBMRanker(n_estimators=3, metric="None", **small)
    ranker.fit(
        X, y, group=np.bincount(users), eval_set=[valid[:2]], eval_group=[np.bincount(valid[2])],
        eval_metric=hooks.lightgbm_eval_metric(name, **rules),
    )  # fmt: skip
    history = next(iter(ranker.evals_result_.values()))[name]
    yield "LGBMRanker", history[-1], _by_table(name, rules, ranker.predict(valid[0]), valid)
    data, seen = library.Dataset(X, y, group=np.bincount(users)), {}
    settings = {"objective": "lambdarank", "metric": "None", "num_threads": 1, "verbose": -1}
    booster = library.train(
        settings, data, 3, valid_sets=[data], feval=hooks.lightgbm_feval(name, **rules),
        callbacks=[library.record_evaluation(seen)],
    )  # fmt: skip
    wanted = _by_table(name, rules, booster.predict(X), train)
    yield "lightgbm.train, training set", seen["training"][name][-1], wanted


def _xgboost(rng, name, rules, train, valid):
    import xgboost as library

    matrices = [library.DMatrix(X, y, qid=users) for X, y, users in (train, valid)]
    seen = {}
    settings = {"objective": "rank:pairwise", "disable_default_eval_metric": 1, "max_depth": 2}
    booster = library.train(
        settings | {"nthread": 1}, matrices[0], 3, evals=[(matrices[0], "t"), (matrices[1], "v")],
        custom_metric=hooks.xgboost_custom_metric(name, **rules), evals_result=seen,
        verbose_eval=False,
    )  # fmt: skip
    for which, matrix, lists in (("t", matrices[0], train), ("v", matrices[1], valid)):
        wanted = _by_table(name, rules, booster.predict(matrix), lists)
        yield "xgboost.train", seen[which][name][-1], wanted
    X, y, users = valid
    metric = hooks.xgboost_eval_metric(name, users, **rules)
    ranker = library.XGBRanker(n_estimators=2, max_depth=2, n_jobs=1, eval_metric=metric)
    ranker.fit(X, y, qid=users, eval_set=[(X, y)], eval_qid=[users], verbose=False)
    pickle.dumps(ranker)
    several = np.bincount(users)[users] > 1
    rows = {"scores": ranker.predict(X)[several], "labels": y[several], "groups": users[several]}
    values = values_of(name, **rows, **rules)
    wanted = np.nan_to_num(values).sum() / (users[-1] + 1)  # the others count 0
    yield "XGBRanker", ranker.evals_result()["validation_0"][name][-1], wanted


def _catboost(rng, name, rules, train, valid):
    import catboost as library

    pools = [library.Pool(X, y, group_id=users) for X, y, users in (train, valid)]
    ordered = bool(rng.random() < 0.5)
    metric = hooks.CatBoostMetric(name, [train[2], valid[2]], [train[1], valid[1]], **rules)
    settings = {
        "iterations": 3, "loss_function": str(rng.choice(["QueryRMSE", "YetiRank", "PairLogit"])),
        "depth": 2, "verbose": False, "thread_count": 1, "allow_writing_files": False,
        "boosting_type": "Ordered" if ordered else "Plain", "use_best_model": False,
        "eval_metric": metric,
    }  # fmt: skip
    ranker = library.CatBoostRanker(**settings)
    try:
        ranker.fit(pools[0], eval_set=pools[1])
        yield "CatBoost took shuffled rows", float(ordered), 0.0
    except library.CatBoostError as error:
        if not ordered or InputError.__name__ not in str(error):
            raise
        ranker = library.CatBoostRanker(**settings, has_time=True)
        ranker.fit(pools[0], eval_set=pools[1])
    history = ranker.get_evals_result()
    for which, pool, lists in (("learn", pools[0], train), ("validation", pools[1], valid)):
        wanted = _by_table(name, rules, ranker.predict(pool), lists)
        yield f"CatBoost, {which}", history[which]["CatBoostMetric"][-1], wanted


KINDS = {"lightgbm": _lightgbm, "xgboost": _xgboost, "catboost": _catboost}

if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 150))
