"""Weights of runs from clicks in place of judgments: what the place of a click does to them.

    python -m benchmarks clicks [--sessions 50000]

Users are simulated on the queries of one year of the sample: of the first ten of RRF, or of these
in random order, place r is looked at with probability 1/r, and a document that is looked at is
clicked with probability .05, .3, .6, .9 by its grade; the first click ends the session, and is the
one relevant document of its list. Weights learned from such lists, equally weighted or by 1 / (the
probability that the place was looked at), rank the other year, whose judgments say nDCG@10 (of what
some run retrieved).
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from benchmarks.common.markdown import table
from structsvm_papk import PAPKRanker, fusion, metrics
from structsvm_papk.datasets import retrieval_runs

SHOWN = 10
ATTRACTIVE = np.array([0.05, 0.3, 0.6, 0.9])  # by grade
LOOKED_AT = 1.0 / np.arange(1, SHOWN + 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=50_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sample = retrieval_runs()
    years = (sample.train, sample.test)
    rows = []
    for learn, other, title in ((*years, "2019"), (*years[::-1], "2020")):
        values = measured(learn, other, options.sessions)
        rows.append([title, *(f"{value:.4f}" for value in values.values())])
    head = ["learned on", *values]
    print("\n".join(table(head, rows)))


def measured(learn, other, n_sessions):
    """nDCG@10 on the other year by way of learning."""
    joined = fusion.join_lists(learn.runs, learn.judgments)
    names = joined.attrs["runs"]
    rng = np.random.default_rng(0)
    shown = first_ten(joined)
    target = fusion.join_lists(other.runs, other.judgments)
    found = {"RRF, as shown": ndcg(target, fusion.rrf(target))}
    judged = ranker().fit(joined[names], joined["grade"], groups=joined["query"])
    found["judgments"] = ndcg(target, judged.predict(target[names], groups=target["query"]))
    for title, mixes in (("as shown", False), ("in random order", True)):
        clicks = simulated(joined, shown, n_sessions, mixes, rng)
        for way, weights in (("clicks", 1.0), ("clicks by place", 1.0 / LOOKED_AT)):
            fitted = from_clicks(joined, names, (clicks * weights).sum(axis=1))
            scores = fitted.predict(target[names], groups=target["query"])
            found[f"{way}, {title}"] = ndcg(target, scores)
    return found


def ranker():
    return PAPKRanker(k=SHOWN, missing="lowest", relevance_threshold=1)


def first_ten(joined):
    """Rows of the first ten of RRF of each query, shape (n_queries, ten)."""
    scored = joined.assign(score=fusion.rrf(joined), row=np.arange(len(joined)))
    ranked = scored.sort_values(["query", "score", "document"], ascending=[True, False, False])
    return ranked.groupby("query", sort=True)["row"].head(SHOWN).to_numpy().reshape(-1, SHOWN)


def simulated(joined, shown, n_sessions, mixes, rng):
    """How many sessions ended with a click on each row, at each place."""
    grade = joined["grade"].to_numpy()
    rows = shown[rng.integers(0, len(shown), n_sessions)]
    if mixes:
        rows = rng.permuted(rows, axis=1)
    clicked = rng.random(rows.shape) < LOOKED_AT * ATTRACTIVE[np.clip(grade[rows], 0, 3)]
    sessions = np.flatnonzero(clicked.any(axis=1))
    place = clicked[sessions].argmax(axis=1)
    counts = np.zeros((len(joined), SHOWN))
    np.add.at(counts, (rows[sessions, place], place), 1)
    return counts


def from_clicks(joined, names, counts):
    """A ranker of lists with one clicked document each, those of the same document as one."""
    query = joined["query"].to_numpy()
    lists = [(row, np.flatnonzero(query == query[row])) for row in np.flatnonzero(counts)]
    rows = np.concatenate([members for _, members in lists])
    sizes = [members.size for _, members in lists]
    clicked = np.repeat([row for row, _ in lists], sizes)
    return ranker().fit(
        joined[names].iloc[rows],
        (rows == clicked).astype(int),
        groups=np.repeat(np.arange(len(lists)), sizes),
        sample_weight=counts[clicked],
    )


def ndcg(target, scores):
    """Mean nDCG@10 by the judgments."""
    grades = np.maximum(target["grade"].to_numpy(), 0)
    found = metrics.evaluate(f"ndcg@{SHOWN}", scores, grades, target["query"].to_numpy())
    return found.mean(f"ndcg@{SHOWN}")


if __name__ == "__main__":
    main()
