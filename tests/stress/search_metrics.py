"""Metrics against other definitions: trec_eval's numbers, and the limits of NDCG in closed form.

    python tests/stress/search_metrics.py --problems 3000

Runs have ties, scores that are equal in single precision only, names of many bytes, judgments of
documents that nobody retrieved; pytrec_eval says what is right. Relevance in the limits is
``a s^p + c (1 - s^p)``, whose integrals are beta functions.
"""

import sys

import numpy as np
import pandas as pd
from scipy.special import beta as beta_function
from scipy.special import betainc
from searching import main

from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ndcg_limit
from structsvm_papk.metrics.frames import evaluate_frame

_NAMES = {
    "ndcg_cut_1": "ndcg@1", "ndcg_cut_10": "ndcg@10", "ndcg": "ndcg", "map": "ap",
    "recip_rank": "rr", "P_5": "precision@5", "P_100": "precision@100", "recall_10": "recall@10",
    "recall_1000": "recall@1000", "success_1": "hit@1", "success_10": "hit@10",
}  # fmt: skip
_ASKED = {"ndcg_cut.1,10", "ndcg", "map", "recip_rank", "P.5,100", "recall.10,1000", "success.1,10"}


def check(seed, report, only=None):
    kind = only or ("trec_eval", "limit")[seed % 2]
    KINDS[kind](np.random.default_rng(seed), report)


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


# ---- limits of NDCG


def _limit(rng, report):
    levels = np.sort(rng.choice(np.arange(1.0, 9.0), rng.integers(1, 4), replace=False))[::-1]
    top = rng.dirichlet(np.ones(levels.size + 1))[:-1]
    low = rng.dirichlet(np.ones(levels.size + 1))[:-1]
    if rng.random() < 0.3:
        top = np.eye(levels.size + 1)[rng.integers(levels.size + 1)][:-1]
    power = float(rng.choice([0.3, 1, 2, 5, 40]))
    relevance = {
        level: lambda s, a=a, c=c: a * s**power + c * (1 - s**power)
        for level, a, c in zip(levels, top, low, strict=True)
    }
    b = float(rng.choice([0, 0.1, 0.5, 0.9, 0.999, 1.0, 1.5, 3.0]))
    places = int(rng.integers(1, 50))
    cutoff = [None, "slow", float(rng.choice([1e-3, 0.01, 0.2, 0.5, 1.0])), places]
    cutoff = cutoff[rng.integers(4)]
    report.problem = f"r^-{b:g}, cut-off {cutoff}, {levels=}, {top=}, {low=}, {power=}"
    wanted = _closed_form(b, cutoff, levels, top, low, power)
    report.counts["limits"] += 1
    try:
        found = ndcg_limit(f"r^-{b:g}", cutoff, relevance)
    except InputError as error:
        report.counts["without a limit"] += 1
        if wanted is not None:
            report.add("refused", "ndcg_limit", str(error)[:100])
        return
    if wanted is None or not abs(found - wanted) <= 1e-8 * max(wanted, 1e-6):
        report.add("another limit", "ndcg_limit", f"{found}, by formula {wanted}")


def _closed_form(b, cutoff, levels, top, low, power):
    """The limit; None where there is none."""
    share = 1.0 if cutoff is None else cutoff
    if b < 1 and isinstance(share, float):
        # of s^power and of 1 over (1-s)^-b, from 1 - share to 1
        risen = beta_function(1 - b, power + 1) * betainc(1 - b, power + 1, share)
        whole = share ** (1 - b) / (1 - b)
        gained = (1 - b) * levels @ (top * risen + low * (whole - risen))
        shares = np.cumsum([0.0, *(top / (power + 1) + low * power / (power + 1))])
        return gained / (levels @ np.diff(np.minimum(shares, share) ** (1 - b)))
    if (b > 1 or isinstance(share, int)) and ((top > 0) & (top < 1)).any():
        return None
    occurs = (top > 0) | (low > 0)
    return levels @ top / levels[occurs][0]


KINDS = {"trec_eval": _trec_eval, "limit": _limit}

if __name__ == "__main__":
    sys.exit(main(check, __doc__, list(KINDS), 3000))
