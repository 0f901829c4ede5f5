"""Where libraries disagree on the same ranking, and which rules reproduce each of them.

    python tests/stress/conformance.py [docs/conformance.md]

Writes the page from what the installed libraries return; a library that is missing is named as
such. Nothing in the page is typed in by hand except the sentences.
"""

import sys
import warnings
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np

from structsvm_papk import metrics
from structsvm_papk.metrics.frames import evaluate_recommendations

K = 5


class Row(NamedTuple):
    """One number of one library, and the rules that should give it."""

    library: str
    call: str
    value: object
    metric: str
    rules: object
    note: str = ""


@dataclass
class Data:
    """A ranking: 40 users x 20 items; two users without positives, one with a single negative."""

    scores: np.ndarray
    labels: np.ndarray
    users: np.ndarray
    n_users: int = 40
    n_items: int = 20

    @property
    def square(self):
        shape = (self.n_users, self.n_items)
        return self.scores.reshape(shape), self.labels.reshape(shape)


def ranking(ties):
    rng = np.random.default_rng(20)
    data = Data(np.empty(0), np.empty(0), np.repeat(np.arange(40), 20))
    labels = (rng.random(800) < 0.2).astype(int)
    labels[:40] = 0
    labels[40:60] = 1
    labels[47] = 0
    labels[60:780:20] = 1
    labels[61:800:20] = 0
    distinct = (rng.permutation(800) + 1) / 100.0
    data.labels = labels
    data.scores = np.ceil(distinct / 1.0) if ties else distinct
    return data


def ours(data, row):
    if callable(row.rules):
        return row.rules()
    table = metrics.evaluate(row.metric, data.scores, data.labels, data.users, **row.rules)
    return table.mean(row.metric)


# Each library gives rows without its name: call, value, our metric, rules and note


def scikit_learn(data):
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    scores, labels = data.square
    both = (labels.sum(1) > 0) & (labels.sum(1) < data.n_items)
    areas = [roc_auc_score(y, s) for y, s in zip(labels[both], scores[both], strict=True)]
    precision = [average_precision_score(y, s) for y, s in zip(labels, scores, strict=True)]
    pooled = roc_auc_score(data.labels, data.scores)
    sk, mean = {"preset": "sklearn"}, "mean over users with both classes"
    undefined = "ties half; undefined users must be left out by hand"
    tied = "a tied block is one threshold"
    yield f"ndcg_score(k={K})", ndcg_score(labels, scores, k=K), f"ndcg@{K}", sk, "ties averaged"
    yield f"roc_auc_score, {mean}", np.mean(areas), "auc", sk, undefined
    yield "roc_auc_score, all rows", pooled, "auc", sk | {"mean": "pooled"}
    yield "average_precision_score, mean over all users", np.mean(precision), "ap", sk, tied


def rectools(data):
    import pandas as pd
    from rectools.metrics import MAP, MRR, NDCG, PAP, HitRate, PartialAUC, Precision, Recall

    order = np.lexsort((-data.scores, data.users))
    frame = pd.DataFrame({
        "user_id": data.users[order],
        "item_id": np.tile(np.arange(data.n_items), data.n_users)[order],
        "rank": np.tile(np.arange(1, data.n_items + 1), data.n_users), "label": data.labels[order],
    })  # fmt: skip
    liked, cut = frame.loc[frame.label == 1, ["user_id", "item_id"]], frame[frame["rank"] <= 8]
    base = {"preset": "rectools"}
    for length, handling in ((None, "ignore"), (8, "ignore"), (8, "exclude")):
        shown, lists = (cut, "lists cut after 8") if length else (frame, "full lists")
        rules = base | {"list_length": length, "insufficient_handling": handling}
        for key, metric in (("pap", PAP), ("pauc", PartialAUC)):
            value = metric(k=K, insufficient_handling=handling).calc(shown, liked)
            yield f"{metric.__name__}(k={K}), {lists}", value, f"{key}@{K}", rules

    def from_frames():
        table = evaluate_recommendations(cut, liked, f"pap@{K}", unmatched="count")
        return table.mean(f"pap@{K}")

    value = PAP(k=K).calc(cut, liked)
    yield f"PAP(k={K}), lists cut after 8, from frames", value, f"pap@{K}", from_frames
    for metric, key in (
        (Precision(k=K), f"precision@{K}"), (Recall(k=K), f"recall@{K}"),
        (HitRate(k=K), f"hit@{K}"), (MAP(k=20), "ap"), (MRR(k=20), "rr"),
        (NDCG(k=K), f"ndcg@{K}"),
    ):  # fmt: skip
        note = "divides by k hits" if key.startswith("ndcg") else ""
        yield f"{type(metric).__name__}(k={metric.k})", metric.calc(frame, liked), key, base, note


def ranx(data):
    import ranx as library

    users = [(f"u{u}", s, y) for u, (s, y) in enumerate(zip(*data.square, strict=True)) if y.any()]
    qrels = {user: {f"i{i}": 1 for i in np.flatnonzero(y)} for user, _, y in users}
    run = {user: {f"i{i}": float(v) for i, v in enumerate(s)} for user, s, _ in users}
    pair = library.Qrels(qrels), library.Run(run)
    same = {name: name for name in (f"ndcg@{K}", f"precision@{K}", f"recall@{K}")}
    for name, key in ({"map": "ap"} | same | {"mrr": "rr"}).items():
        yield name, float(library.evaluate(*pair, name)), key, {}, "no users without positives"


def torchmetrics(data):
    import torch
    from torchmetrics import retrieval

    arrays = (torch.from_numpy(data.scores), torch.from_numpy(data.labels).bool())
    indexes = torch.from_numpy(data.users)
    for metric, key in (
        (retrieval.RetrievalMAP(), "ap"), (retrieval.RetrievalNormalizedDCG(top_k=K), f"ndcg@{K}"),
        (retrieval.RetrievalPrecision(top_k=K), f"precision@{K}"),
        (retrieval.RetrievalRecall(top_k=K), f"recall@{K}"), (retrieval.RetrievalMRR(), "rr"),
        (retrieval.RetrievalAUROC(), "auc"),
    ):  # fmt: skip
        value = float(metric(*arrays, indexes=indexes))
        rules = {"no_positives": "zero"}
        rules |= {"ties": "half"} if key in ("auc", f"ndcg@{K}") else {}
        yield type(metric).__name__, value, key, rules, "single precision"


def xgboost(data):
    import xgboost as library

    wanted = [f"ndcg@{K}", "map", "auc", f"pre@{K}", f"ndcg@{K}-", "map-"]

    def values(order):
        matrix = library.DMatrix(
            np.zeros((data.labels.size, 1)), data.labels[order], qid=data.users[order],
            base_margin=data.scores[order],
        )  # fmt: skip
        booster = library.train({"objective": "rank:ndcg", "eval_metric": wanted}, matrix, 0)
        parts = (part.rsplit(":", 1) for part in booster.eval(matrix).split("\t")[1:])
        return {name.removeprefix("eval-"): float(value) for name, value in parts}

    rows = np.arange(data.labels.size)
    found, turned = values(rows), values(rows.reshape(data.n_users, -1)[:, ::-1].ravel())
    for name, key, rule in (
        (f"ndcg@{K}", f"ndcg@{K}", "one"), (f"ndcg@{K}-", f"ndcg@{K}", "zero"),
        ("map", "ap", "one"), ("map-", "ap", "zero"), (f"pre@{K}", f"precision@{K}", "zero"),
    ):  # fmt: skip
        yield name, found[name], key, {"no_positives": rule}, "single precision scores"
    half, note = {"ties": "half"}, "differs from any pair count, and with the order of the rows"
    yield "auc (ranking)", found["auc"], "auc", half, note
    yield "auc (ranking), rows of each user reversed", turned["auc"], "auc", half, note


def lightgbm(data):
    import lightgbm as library

    train = library.Dataset(
        np.random.default_rng(0).normal(size=(data.labels.size, 1)), data.labels,
        group=np.full(data.n_users, data.n_items), init_score=data.scores,
    )  # fmt: skip
    seen = {}
    settings = {"objective": "lambdarank", "metric": ["ndcg", "map", "auc"], "eval_at": [K]}
    settings |= {"learning_rate": 1e-30, "verbose": -1, "num_threads": 1}
    library.train(settings, train, 1, valid_sets=[train], valid_names=["v"],
                  callbacks=[library.record_evaluation(seen)])  # fmt: skip
    found = {name: float(values[-1]) for name, values in seen["v"].items()}
    pooled, note = {"ties": "half", "mean": "pooled"}, "one list of all rows, users ignored"
    yield f"ndcg@{K}", found[f"ndcg@{K}"], f"ndcg@{K}", {"no_positives": "one"}
    yield "auc", found["auc"], "auc", pooled, note


def catboost(data):
    from catboost.utils import eval_metric

    labels, zero = data.labels.astype(float), {"no_positives": "zero"}
    pooled = {"ties": "half", "mean": "pooled"}
    for name, key, rules, note in (
        (f"NDCG:top={K};type=Base", f"ndcg@{K}", {"no_positives": "one"}, ""),
        (f"MAP:top={data.n_items}", "ap", zero, ""),
        (f"PrecisionAt:top={K}", f"precision@{K}", zero, ""),
        ("MRR", "rr", zero, ""),
        ("QueryAUC", "auc", {"ties": "half"} | zero, ""),
        ("AUC:type=Ranking", "auc", pooled, "one list of all rows"),
    ):
        yield name, eval_metric(labels, data.scores, name, group_id=data.users)[0], key, rules, note


LIBRARIES = {
    "scikit-learn": scikit_learn, "RecTools": rectools, "ranx": ranx,
    "torchmetrics": torchmetrics, "XGBoost": xgboost, "LightGBM": lightgbm, "CatBoost": catboost,
}  # fmt: skip


def collected(data, names):
    """Rows of every installed library, and the missing ones."""
    rows, missing = [], []
    for name in names:
        try:
            rows += [Row(name, *row) for row in LIBRARIES[name](data)]
        except ImportError:
            missing.append(name)
    return rows, missing


def table(data, rows, tied, tied_rows):
    """Calls of one library under the same rules: largest distance, without and with ties."""
    with_ties = {(row.library, row.call): row for row in tied_rows}
    groups = {}
    for row in rows:
        groups.setdefault((row.library, written(row), row.note), []).append(row)
    yield "| library | rules here | its call and value, our metric | difference | with ties | |"
    yield "|---|---|---|---:|---:|---|"
    for (library, rules, note), own in groups.items():
        also = [with_ties[key] for r in own if (key := (r.library, r.call)) in with_ties]
        calls = ", ".join(f"`{r.call}` {float(r.value):.6f} `{r.metric}`" for r in own)
        yield (
            f"| {library} | {rules} | {calls} | {farthest(data, own)} | "
            f"{farthest(tied, also) if also else ''} | {note} |"
        )


def farthest(data, rows):
    return close(max(abs(float(row.value) - ours(data, row)) for row in rows))


def written(row):
    if callable(row.rules):
        return "`evaluate_recommendations`"
    given = ", ".join(f"{name}={value!r}" for name, value in row.rules.items() if value is not None)
    return f"`{given}`" if given else ""


def close(difference):
    if difference < 1e-12:
        return "< 1e-12"
    return f"{difference:.0e}" if difference < 1e-5 else f"**{difference:.4f}**"


def page():
    plain, tied = ranking(ties=False), ranking(ties=True)
    rows, missing = collected(plain, LIBRARIES)
    tied_rows, _ = collected(tied, ("scikit-learn", "torchmetrics", "XGBoost", "CatBoost"))
    versions = ", ".join(f"{n.lower()} {version(n)}" for n in LIBRARIES if n not in missing)
    yield "# Conformance: one ranking, many numbers"
    yield ""
    yield "Generated by `python tests/stress/conformance.py`; do not edit."
    yield f"Libraries: {versions}."
    if missing:
        yield f"Not installed, left out: {', '.join(missing)}."
    yield ""
    yield "The same rows go to every library: 40 users x 20 items, 20% positives, two users without"
    yield 'positives, one with a single negative. NDCG@5 alone has four values. "Difference" is the'
    yield "distance to this package's number under the rules named; bold where no rule gives the"
    yield "value. With ties, scores are rounded up to 8 whole numbers: libraries that break ties by"
    yield "the order of the rows are then reproduced by no rule, those that average are."
    yield ""
    yield "What each rule does to one ranking is an [example](examples/conventions.md)."
    yield ""
    yield from table(plain, rows, tied, tied_rows)


def main():
    warnings.simplefilter("ignore")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/conformance.md")
    path.write_text("\n".join(page()) + "\n", encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
