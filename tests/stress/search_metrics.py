"""Metrics against trec_eval's numbers.

    python tests/stress/search_metrics.py --problems 3000

Runs have ties, scores that are equal in single precision only, names of many bytes, judgments of
documents that nobody retrieved; pytrec_eval says what is right.
"""

import sys

import numpy as np
import pandas as pd
from searching import main

from structsvm_papk.metrics.frames import evaluate_frame

_NAMES = {
    "ndcg_cut_1": "ndcg@1", "ndcg_cut_10": "ndcg@10", "ndcg": "ndcg", "map": "ap",
    "recip_rank": "rr", "P_5": "precision@5", "P_100": "precision@100", "recall_10": "recall@10",
    "recall_1000": "recall@1000", "success_1": "hit@1", "success_10": "hit@10",
    "map_cut_5": "map@5", "bpref": "bpref", "Rprec": "rprec",
}  # fmt: skip
_ASKED = {"ndcg_cut.1,10", "ndcg", "map", "recip_rank", "P.5,100", "recall.10,1000", "success.1,10"}
_ASKED |= {"map_cut.5", "bpref", "Rprec"}


def check(seed, report, only=None):
    KINDS[only or "trec_eval"](np.random.default_rng(seed), report)


# ---- trec_eval


def _scores(rng, n):
    kind = rng.choice(["whole", "few", "equal in single precision", "huge", "infinite in it"])
    return {
        "whole": lambda: rng.integers(0, 4, n).astype(float),
        "few": lambda: rng.choice([0.1, 0.2, 0.3], n),
        "equal in single precision": lambda: 1 + rng.integers(0, 6, n) * 1e-9,
        "huge": lambda: rng.normal(size=n) * 1e30,
        "infinite in it": lambda: rng.choice([1e38, 1e39, 2e39, -1e39, 0.0], n),
    }[str(kind)]()


def _collection(rng):
    """A run and judgments as dictionaries."""
    n_documents = int(rng.integers(1, 40))
    form = str(rng.choice(["{}", "d{}", "dd{}é", "\U0001f600{}", "D-{}_Z"]))
    names = [form.format(i) + "x" * (i % 3) for i in range(n_documents)]
    run, judged = {}, {}
    for q in range(int(rng.integers(1, 8))):
        some = rng.permutation(n_documents)[: rng.integers(0, n_documents + 1)]
        if some.size:
            values = _scores(rng, some.size)
            run[f"q{q}"] = {names[i]: float(x) for i, x in zip(some, values, strict=True)}
        some = rng.permutation(n_documents)[: rng.integers(1, n_documents + 1)]
        grades = rng.integers(rng.choice([-2, 0]), rng.choice([1, 2, 4]), some.size)
        grades[0] = max(grades[0], 0)  # pytrec_eval crashes where all are negative
        judged[f"q{q}"] = {names[i]: int(x) for i, x in zip(some, grades, strict=True)}
        if rng.random() < 0.3:
            judged[f"q{q}"]["never retrieved"] = int(rng.integers(1, 3))
    return run, judged


def _frame(nested, column):
    rows = [(q, d, value) for q, inner in nested.items() for d, value in inner.items()]
    return pd.DataFrame(rows, columns=["user_id", "item_id", column])


def _trec_eval(rng, report):
    import pytrec_eval

    run, judged = _collection(rng)
    if not set(run) & set(judged):
        return
    right = pytrec_eval.RelevanceEvaluator(judged, _ASKED).evaluate(run)
    lists = _frame(run, "score").sample(frac=1, random_state=int(rng.integers(1000)))
    table = evaluate_frame(
        lists, list(_NAMES.values()), item="item_id", relevant=_frame(judged, "grade"),
        preset="trec_eval",
    )  # fmt: skip
    for theirs, ours in _NAMES.items():
        report.counts["values of trec_eval"] += 1
        wanted = np.mean([each[theirs] for each in right.values()])
        if not abs(table.mean(ours) - wanted) < 1e-9:
            report.add("another number", ours, f"{table.mean(ours)}, trec_eval {wanted}")


KINDS = {"trec_eval": _trec_eval}

if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 3000))
