"""The rules on the page of conformance give each library's number; without ties, where all can."""

import numpy as np
import pytest

from structsvm_papk import metrics

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.stress]

K, N_USERS, N_ITEMS = 5, 40, 20
USERS = np.repeat(np.arange(N_USERS), N_ITEMS)


def ranking():
    """Scores and labels; two users without positives, one with a single negative."""
    rng = np.random.default_rng(20)
    labels = (rng.random(800) < 0.2).astype(int)
    labels[:40] = 0
    labels[40:60] = 1
    labels[47] = 0
    labels[60:780:20] = 1
    labels[61:800:20] = 0
    return (rng.permutation(800) + 1) / 100.0, labels


SCORES, LABELS = ranking()


# Each library gives a value, our metric, and the rules that should give it, or our own value


def rectools():
    import pandas as pd
    from rectools.metrics import MAP, MRR, NDCG, PAP, HitRate, PartialAUC, Precision, Recall

    order = np.lexsort((-SCORES, USERS))
    frame = pd.DataFrame({
        "user_id": USERS[order], "item_id": np.tile(np.arange(N_ITEMS), N_USERS)[order],
        "rank": np.tile(np.arange(1, N_ITEMS + 1), N_USERS), "label": LABELS[order],
    })  # fmt: skip
    liked, cut = frame.loc[frame.label == 1, ["user_id", "item_id"]], frame[frame["rank"] <= 8]
    base = {"preset": "rectools"}
    for length, handling in ((None, "ignore"), (8, "ignore"), (8, "exclude")):
        shown, rules = cut if length else frame, {"insufficient_handling": handling}
        for key, metric in (("pap", PAP), ("pauc", PartialAUC)):
            value = metric(k=K, insufficient_handling=handling).calc(shown, liked)
            yield value, f"{key}@{K}", base | rules | {"list_length": length}
    table = metrics.evaluate_frame(
        cut, f"pap@{K}", item="item_id", rank="rank", relevant=liked, population="either", **base
    )
    yield PAP(k=K).calc(cut, liked), f"pap@{K}", table.mean(f"pap@{K}")
    for metric, key in (
        (Precision(k=K), f"precision@{K}"), (Recall(k=K), f"recall@{K}"),
        (HitRate(k=K), f"hit@{K}"), (MAP(k=20), "ap"), (MRR(k=20), "rr"),
        (NDCG(k=K), f"ndcg@{K}"),
    ):  # fmt: skip
        yield metric.calc(frame, liked), key, base


def ranx():
    import ranx as library

    shape = N_USERS, N_ITEMS
    lists = zip(SCORES.reshape(shape), LABELS.reshape(shape), strict=True)
    users = [(f"u{u}", s, y) for u, (s, y) in enumerate(lists) if y.any()]
    qrels = {user: {f"i{i}": 1 for i in np.flatnonzero(y)} for user, _, y in users}
    run = {user: {f"i{i}": float(v) for i, v in enumerate(s)} for user, s, _ in users}
    pair = library.Qrels(qrels), library.Run(run)
    same = {name: name for name in (f"ndcg@{K}", f"precision@{K}", f"recall@{K}")}
    for name, key in ({"map": "ap", "mrr": "rr"} | same).items():
        yield float(library.evaluate(*pair, name)), key, {}


def torchmetrics():
    import torch
    from torchmetrics import retrieval

    arrays = (torch.from_numpy(SCORES), torch.from_numpy(LABELS).bool())
    for metric, key in (
        (retrieval.RetrievalMAP(), "ap"), (retrieval.RetrievalNormalizedDCG(top_k=K), f"ndcg@{K}"),
        (retrieval.RetrievalPrecision(top_k=K), f"precision@{K}"),
        (retrieval.RetrievalRecall(top_k=K), f"recall@{K}"), (retrieval.RetrievalMRR(), "rr"),
        (retrieval.RetrievalAUROC(), "auc"),
    ):  # fmt: skip
        value = float(metric(*arrays, indexes=torch.from_numpy(USERS)))
        yield pytest.approx(value, abs=1e-7), key, {"no_positives": "zero", "ties": "half"}


def xgboost():
    import xgboost as library

    wanted = [f"ndcg@{K}", "map", f"pre@{K}", f"ndcg@{K}-", "map-"]
    matrix = library.DMatrix(np.zeros((800, 1)), LABELS, qid=USERS, base_margin=SCORES)
    booster = library.train({"objective": "rank:ndcg", "eval_metric": wanted}, matrix, 0)
    parts = (part.rsplit(":", 1) for part in booster.eval(matrix).split("\t")[1:])
    found = {name.removeprefix("eval-"): float(value) for name, value in parts}
    for name, key, rule in (
        (f"ndcg@{K}", f"ndcg@{K}", "one"), (f"ndcg@{K}-", f"ndcg@{K}", "zero"),
        ("map", "ap", "one"), ("map-", "ap", "zero"), (f"pre@{K}", f"precision@{K}", "zero"),
    ):  # fmt: skip
        yield found[name], key, {"no_positives": rule}


def lightgbm():
    import lightgbm as library

    X, sizes = np.random.default_rng(0).normal(size=(800, 1)), np.full(N_USERS, N_ITEMS)
    train, seen = library.Dataset(X, LABELS, group=sizes, init_score=SCORES), {}
    settings = {"objective": "lambdarank", "metric": ["ndcg", "auc"], "eval_at": [K]}
    settings |= {"learning_rate": 1e-30, "verbose": -1, "num_threads": 1}
    library.train(settings, train, 1, valid_sets=[train], valid_names=["v"],
                  callbacks=[library.record_evaluation(seen)])  # fmt: skip
    found = {name: float(values[-1]) for name, values in seen["v"].items()}
    yield found[f"ndcg@{K}"], f"ndcg@{K}", {"no_positives": "one"}
    yield found["auc"], "auc", {"ties": "half", "mean": "pooled"}


def catboost():
    from catboost.utils import eval_metric

    zero, half = {"no_positives": "zero"}, {"ties": "half"}
    for name, key, rules in (
        (f"NDCG:top={K};type=Base", f"ndcg@{K}", {"no_positives": "one"}),
        (f"MAP:top={N_ITEMS}", "ap", zero),
        (f"PrecisionAt:top={K}", f"precision@{K}", zero),
        ("MRR", "rr", zero),
        ("QueryAUC", "auc", half | zero),
        ("AUC:type=Ranking", "auc", half | {"mean": "pooled"}),
    ):
        yield eval_metric(LABELS.astype(float), SCORES, name, group_id=USERS)[0], key, rules


@pytest.mark.parametrize("library", [rectools, ranx, torchmetrics, xgboost, lightgbm, catboost])
def test_the_named_rules_give_the_librarys_number(library):
    pytest.importorskip(library.__name__)
    for value, name, rules in library():
        if isinstance(rules, dict):
            rules = metrics.evaluate(name, SCORES, LABELS, USERS, **rules).mean(name)
        wanted = value if library is torchmetrics else pytest.approx(value, abs=1e-12)
        assert rules == wanted, name
