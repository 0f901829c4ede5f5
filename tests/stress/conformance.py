"""Where libraries disagree on the same ranking, and which rules reproduce each of them.

    python tests/stress/conformance.py [docs/conformance.md]

Writes the page from what the installed libraries return; a library that is missing is named as
such. Nothing in the page is typed in by hand except the sentences.
"""

import sys
import warnings
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

import numpy as np

from structsvm_papk import metrics
from structsvm_papk.metrics.frames import evaluate_recommendations

K = 5


@dataclass
class Row:
    """One number of one library, and the rules that should give it."""

    library: str
    call: str
    value: object
    metric: str
    rules: dict = field(default_factory=dict)
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
    return metrics.evaluate([row.metric], data.scores, data.labels, data.users, **row.rules).mean(
        row.metric
    )


def scikit_learn(data):
    from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

    scores, labels = data.square
    both = (labels.sum(1) > 0) & (labels.sum(1) < data.n_items)
    mean = lambda f: np.mean([f(y, s) for y, s in zip(labels[both], scores[both], strict=True)])  # noqa: E731
    sk = {"preset": "sklearn"}
    yield Row(
        "scikit-learn",
        f"ndcg_score(k={K})",
        ndcg_score(labels, scores, k=K),
        f"ndcg@{K}",
        sk,
        "ties averaged",
    )
    yield Row(
        "scikit-learn",
        "roc_auc_score, mean over users with both classes",
        mean(roc_auc_score),
        "auc",
        sk,
        "ties half; undefined users must be left out by hand",
    )
    yield Row(
        "scikit-learn",
        "roc_auc_score, all rows",
        roc_auc_score(data.labels, data.scores),
        "auc",
        sk | {"mean": "pooled"},
    )
    yield Row("scikit-learn", "average_precision_score, mean over all users",
              np.mean([average_precision_score(y, s) for y, s in zip(labels, scores, strict=True)]),
              "ap", sk, "a tied block is one threshold")  # fmt: skip


def rectools(data):
    import pandas as pd
    from rectools.metrics import MAP, MRR, NDCG, PAP, HitRate, PartialAUC, Precision, Recall

    order = np.lexsort((-data.scores, data.users))
    frame = pd.DataFrame({
        "user_id": data.users[order],
        "item_id": np.tile(np.arange(data.n_items), data.n_users)[order],
        "rank": np.tile(np.arange(1, data.n_items + 1), data.n_users), "label": data.labels[order],
    })  # fmt: skip
    liked = frame.loc[frame.label == 1, ["user_id", "item_id"]]
    for length in (None, 8):
        shown = frame if length is None else frame[frame["rank"] <= length]
        lists = "full lists" if length is None else f"lists cut after {length}"
        for handling in ("ignore", "exclude") if length else ("ignore",):
            for name, metric in (("PAP", PAP), ("PartialAUC", PartialAUC)):
                value = metric(k=K, insufficient_handling=handling).calc(shown, liked)
                key = f"{'pap' if name == 'PAP' else 'pauc'}@{K}"
                rules = {"preset": "rectools", "list_length": length}
                rules |= {"insufficient_handling": handling}
                yield Row("RecTools", f"{name}(k={K}), {lists}", value, key, rules)
    value = PAP(k=K).calc(frame[frame["rank"] <= 8], liked)
    yield Row("RecTools", f"PAP(k={K}), lists cut after 8, from frames", value, f"pap@{K}",
              lambda: evaluate_recommendations(frame[frame["rank"] <= 8], liked, f"pap@{K}",
                                               unmatched="count").mean(f"pap@{K}"))  # fmt: skip
    base = {"preset": "rectools"}
    for metric, key in (
        (Precision(k=K), f"precision@{K}"),
        (Recall(k=K), f"recall@{K}"),
        (HitRate(k=K), f"hit@{K}"),
        (MAP(k=20), "ap"),
        (MRR(k=20), "rr"),
        (NDCG(k=K), f"ndcg@{K}"),
    ):
        note = {"ndcg": "divides by k hits"}.get(key[:4], "")
        call = f"{type(metric).__name__}(k={metric.k})"
        yield Row("RecTools", call, metric.calc(frame, liked), key, base, note)


def ranx(data):
    import ranx as library

    scores, labels = data.square
    qrels = {
        f"u{u}": {f"i{i}": 1 for i in np.flatnonzero(y)} for u, y in enumerate(labels) if y.any()
    }
    run = {
        f"u{u}": {f"i{i}": float(v) for i, v in enumerate(s)}
        for u, s in enumerate(scores) if f"u{u}" in qrels
    }  # fmt: skip
    pair = library.Qrels(qrels), library.Run(run)
    for name, key in (
        ("map", "ap"),
        (f"ndcg@{K}", f"ndcg@{K}"),
        (f"precision@{K}", f"precision@{K}"),
        (f"recall@{K}", f"recall@{K}"),
        ("mrr", "rr"),
    ):
        yield Row(
            "ranx",
            name,
            float(library.evaluate(*pair, name)),
            key,
            {},
            "no users without positives",
        )


def torchmetrics(data):
    import torch
    from torchmetrics import retrieval

    arrays = (torch.from_numpy(data.scores), torch.from_numpy(data.labels).bool())
    indexes = torch.from_numpy(data.users)
    zero = {"no_positives": "zero"}
    for metric, key in (
        (retrieval.RetrievalMAP(), "ap"), (retrieval.RetrievalNormalizedDCG(top_k=K), f"ndcg@{K}"),
        (retrieval.RetrievalPrecision(top_k=K), f"precision@{K}"),
        (retrieval.RetrievalRecall(top_k=K), f"recall@{K}"), (retrieval.RetrievalMRR(), "rr"),
        (retrieval.RetrievalAUROC(), "auc"),
    ):  # fmt: skip
        value = float(metric(*arrays, indexes=indexes))
        rules = zero | ({"ties": "half"} if key in ("auc", f"ndcg@{K}") else {})
        yield Row("torchmetrics", type(metric).__name__, value, key, rules, "single precision")


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
    within = rows.reshape(data.n_users, -1)[:, ::-1].ravel()
    found, turned = values(rows), values(within)
    for name, key, rule in (
        (f"ndcg@{K}", f"ndcg@{K}", "one"), (f"ndcg@{K}-", f"ndcg@{K}", "zero"),
        ("map", "ap", "one"), ("map-", "ap", "zero"), (f"pre@{K}", f"precision@{K}", "zero"),
    ):  # fmt: skip
        yield Row(
            "XGBoost",
            name,
            found[name],
            key,
            {"no_positives": rule},
            "single precision scores",
        )
    note = "differs from any pair count, and with the order of the rows"
    yield Row("XGBoost", "auc (ranking)", found["auc"], "auc", {"ties": "half"}, note)
    yield Row(
        "XGBoost",
        "auc (ranking), rows of each user reversed",
        turned["auc"],
        "auc",
        {"ties": "half"},
        note,
    )


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
    yield Row(
        "LightGBM",
        f"ndcg@{K}",
        found[f"ndcg@{K}"],
        f"ndcg@{K}",
        {"no_positives": "one"},
    )
    yield Row(
        "LightGBM",
        "auc",
        found["auc"],
        "auc",
        {"ties": "half", "mean": "pooled"},
        "one list of all rows, users ignored",
    )


def catboost(data):
    from catboost.utils import eval_metric

    labels = data.labels.astype(float)
    for name, key, rules, note in (
        (f"NDCG:top={K};type=Base", f"ndcg@{K}", {"no_positives": "one"}, ""),
        (f"MAP:top={data.n_items}", "ap", {"no_positives": "zero"}, ""),
        (f"PrecisionAt:top={K}", f"precision@{K}", {"no_positives": "zero"}, ""),
        ("MRR", "rr", {"no_positives": "zero"}, ""),
        ("QueryAUC", "auc", {"ties": "half", "no_positives": "zero"}, ""),
        ("AUC:type=Ranking", "auc", {"ties": "half", "mean": "pooled"}, "one list of all rows"),
    ):
        value = eval_metric(labels, data.scores, name, group_id=data.users)[0]
        yield Row("CatBoost", name, value, key, rules, note)


LIBRARIES = {
    "scikit-learn": scikit_learn, "rectools": rectools, "ranx": ranx,
    "torchmetrics": torchmetrics, "xgboost": xgboost, "lightgbm": lightgbm, "catboost": catboost,
}  # fmt: skip


def collected(data, names):
    """Rows of every installed library, and the missing ones."""
    rows, missing = [], []
    for name in names:
        try:
            rows += list(LIBRARIES[name](data))
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


def conventions(data):
    yield "| rule | " + " | ".join(f"`{m}`" for m in CHOSEN) + " |"
    yield "|---|" + "---:|" * len(CHOSEN)
    for rules in (
        {"ties": "loss"}, {"ties": "half"}, {"ties": "win"}, {"few_negatives": "normalise"},
        {"few_negatives": "as_wins"}, {"no_positives": "zero"}, {"no_positives": "one"},
        {"mean": "positives"}, {"mean": "pairs"}, {"mean": "pooled"},
        {"preset": "icml2020"}, {"preset": "icml2020-code"}, {"preset": "rectools"},
        {"preset": "sklearn"},
    ):  # fmt: skip
        found = metrics.evaluate(CHOSEN, data.scores, data.labels, data.users, **rules)
        name = ", ".join(f"{key}={value!r}" for key, value in rules.items())
        yield f"| `{name}` | " + " | ".join(f"{found.mean(m):.4f}" for m in CHOSEN) + " |"


CHOSEN = (f"pap@{K}", f"pauc@{K}", "auc", "ap", f"ndcg@{K}")


def page():
    plain, tied = ranking(ties=False), ranking(ties=True)
    rows, missing = collected(plain, LIBRARIES)
    tied_rows, _ = collected(tied, ("scikit-learn", "torchmetrics", "xgboost", "catboost"))
    versions = ", ".join(f"{n} {version(n)}" for n in LIBRARIES if n not in missing)
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
    yield "## Which rules reproduce which library"
    yield ""
    yield from table(plain, rows, tied, tied_rows)
    yield ""
    yield "## What each rule does to the same tied ranking"
    yield ""
    yield from conventions(tied)


def main():
    warnings.simplefilter("ignore")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/conformance.md")
    path.write_text("\n".join(page()) + "\n", encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
