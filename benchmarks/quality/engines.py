"""Weights in engines' rules: none, what a search of nDCG finds, and one certified fit.

    python -m benchmarks.quality.engines six|pairs|few

Of each year of the sample's runs, half of the judged queries (`few`: 12) are learned from, and the
others are measured on. `six`: all runs, ten draws; else each pair of runs with a draw of its own.
"""

import sys
import warnings
from itertools import combinations

import numpy as np
import pandas as pd

from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.held_out import CrossValidation, Settings
from structsvm_papk.fusion.in_rule import RuleSearch
from structsvm_papk.fusion.joining import join

RULES = ("elasticsearch", "opensearch-zscore", "langchain", "qdrant")


def joined(collection, names, queries):
    """The lists of some queries."""
    runs = {name: collection.runs[name] for name in names}
    runs = {name: run[run["query"].isin(queries)] for name, run in runs.items()}
    judged = collection.judgments
    return join(runs, judged[judged["query"].isin(queries)])


def certified(search):
    """One fit of what the rule makes of the lists, of ranks of 1 / rank; the mean weight is 1."""
    lists = search.folds.joined
    rule = search.engine.rule
    columns = rule if rule.of_scores else ENGINES["qdrant"].rule
    values = columns.columns(lists.scores.to_numpy(), lists.query, lists.place)
    ranker = search.folds.settings.ranker(positive=True)
    frame = pd.DataFrame(values, columns=list(lists.names))
    search.folds.fit_rows(ranker, frame, lists.scores.notna().to_numpy().any(axis=1))
    return ranker.coef_ / ranker.coef_.mean() if ranker.coef_.any() else search.equal


def main(mode):
    """Print mean nDCG@10 of the queries that were measured on."""
    sample = retrieval_runs()
    values = {rule: [] for rule in RULES}
    for collection in (sample.train, sample.test):
        names = tuple(collection.runs)
        queries = np.array(sorted(collection.judgments["query"].astype(str).unique()))
        for draw, some in enumerate([names] * 10 if mode == "six" else combinations(names, 2)):
            order = np.random.default_rng(draw).permutation(queries)
            n = 12 if mode == "few" else order.size // 2
            parts = [joined(collection, some, part) for part in (order[:n], order[n:])]
            folds = [CrossValidation.of(part, Settings(k=10)) for part in parts]
            for rule in RULES:
                here, there = (RuleSearch(each, ENGINES[rule], some) for each in folds)
                found = (here.equal, here.chosen().weights, certified(here))
                values[rule].append([there.values(weights).mean() for weights in found])
    for rule, rows in values.items():
        print(f"{mode:6}{rule:20}", *(f"{value:.4f}" for value in np.mean(rows, axis=0)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1])
