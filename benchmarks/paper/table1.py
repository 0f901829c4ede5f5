"""Table 1 of the paper: AUC, pAUC, prec@k and pAp@k on five fixed rankings.

The labels of eleven items, from rank 1 to rank 11, for five rankers. The first three show that
pAp@2 prefers the ranker with the best head where AUC and pAUC do not; the last two have the same
precision@6 and differ in pAp@6.
"""

import numpy as np

from structsvm_papk import metrics

LABELS = {
    "f1": "01101110000",
    "f2": "10111000001",
    "f3": "11000000111",
    "f4": "11011100000",
    "f5": "11101100000",
}
PUBLISHED = {  # correctly ordered pairs (or hits), of how many
    ("f1", "auc"): (22, 30),
    ("f1", "pauc@2"): (2, 10),
    ("f1", "pap@2"): (2, 4),
    ("f2", "auc"): (21, 30),
    ("f2", "pauc@2"): (5, 10),
    ("f2", "pap@2"): (3, 4),
    ("f3", "auc"): (12, 30),
    ("f3", "pauc@2"): (4, 10),
    ("f3", "pap@2"): (4, 4),
    ("f4", "precision@6"): (5, 6),
    ("f4", "pap@6"): (27, 30),
    ("f5", "precision@6"): (5, 6),
    ("f5", "pap@6"): (28, 30),
}


def run(labels=LABELS):
    """Recompute every value of the table, for these labels of the rankers."""
    rows = [_row(ranker, labels[ranker], metric) for ranker, metric in PUBLISHED]
    largest = max(abs(row["difference"]) for row in rows)
    return {"table": "table1", "rows": rows, "max_abs_difference": largest}


def _row(ranker, labels, metric):
    relevant = np.array([int(letter) for letter in labels])
    scores = -np.arange(relevant.size, dtype=float)
    measured = metrics.evaluate(metric, scores, relevant).mean(metric)
    hits, of = PUBLISHED[ranker, metric]
    return {
        "ranker": ranker,
        "labels": labels,
        "metric": metric,
        "published": hits / of,
        "published_as": f"{hits}/{of}",
        "measured": measured,
        "difference": measured - hits / of,
    }
