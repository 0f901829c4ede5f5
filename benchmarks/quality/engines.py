"""Weights in engines' own rules: nDCG@10 on queries that they were not learned from.

    python -m benchmarks engines > benchmarks/results/engines.md    # half an hour on one core
    python -m benchmarks engines --small

On each year of the sample's runs: ten draws of half of the judged queries to learn from, the others
to be measured on, by each rule. Put in: the certified weights of min-max scores as they are (in
Qdrant, whose rule depends on their scale, with a mean of 1, too). Learned: `for_engine`.
Search: what its search finds, chosen or not. Best run: the best on the half that was learned from.
Pairs of runs: the mean over all pairs, each with one draw a year.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from benchmarks.common.markdown import table
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.fusion.engines import ENGINES
from structsvm_papk.fusion.held_out import CrossValidation, Settings
from structsvm_papk.fusion.in_rule import RuleSearch
from structsvm_papk.fusion.joining import join

RULES = {  # an engine of each rule
    "min-max (MongoDB, Elasticsearch, ..)": "mongodb",
    "z-scores (OpenSearch)": "opensearch-zscore",
    "weighted RRF (LangChain, Elasticsearch, ..)": "langchain",
    "Qdrant": "qdrant",
}
WAYS = ("no weights", "put in", "put in, mean 1", "learned", "search", "best run")
BETWEEN = 0.9  # share of draws between the ends that are shown


@dataclass(frozen=True)
class Halves:
    """Joined runs of the queries to learn from, and of those to be measured on."""

    learn: CrossValidation
    measure: CrossValidation


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--rules", nargs="*", choices=RULES.values(), help="default: all")
    parser.add_argument("--small", action="store_true", help="one draw, one rule, two pairs")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sample = retrieval_runs()
    years = {"2019": sample.train, "2020": sample.test}
    names = list(sample.train.runs)
    wanted = options.rules or (["qdrant"] if options.small else RULES.values())
    rules = {title: name for title, name in RULES.items() if name in wanted}
    draws = 1 if options.small else options.draws
    pairs = list(combinations(names, 2))[: 2 if options.small else None]
    title, *_, explained = __doc__.strip().split("\n\n")
    print(f"# {title.partition(':')[0]}\n\n{explained}\n")
    for year, collection in years.items():
        print(f"## {year}, all six runs: mean over {draws} draws\n")
        show(rules, [split(collection, names, draw) for draw in range(draws)])
    print(f"## Pairs of runs: mean over {len(pairs)} pairs of both years\n")
    show(
        rules,
        [split(collection, pair, 0) for collection in years.values() for pair in pairs],
    )


def split(collection, names, draw):
    """Half of the judged queries, at random, and the others."""
    runs = {name: collection.runs[name] for name in names}
    judgments = collection.judgments
    queries = np.random.default_rng(draw).permutation(judgments["query"].unique())
    first = judgments["query"].isin(queries[: queries.size // 2])
    how = Settings(
        k=10, threshold=1, engine="mongodb", n_folds=5, level=0.95, n_resamples=10, n_refits=2,
        seed=draw,
    )  # fmt: skip
    return Halves(
        CrossValidation.of(join(runs, judgments[first]), how),
        CrossValidation.of(join(runs, judgments[~first]), how),
    )


def show(rules, halves):
    """A table with a row for each rule."""
    values = np.array([measured(half, rules.values()) for half in halves])
    rows = []
    for number, title in enumerate(rules):
        of_rule = values[:, number]
        means = [f"{value:.4f}" for value in of_rule.mean(axis=0)]
        ahead = of_rule[:, WAYS.index("learned")] - of_rule[:, WAYS.index("no weights")]
        low, high = np.quantile(ahead, [(1 - BETWEEN) / 2, (1 + BETWEEN) / 2])
        rows.append([title, *means, f"{ahead.mean():+.4f} ({low:+.4f} to {high:+.4f})"])
    head = ["rule", *WAYS, f"learned less no weights ({BETWEEN:.0%} of draws)"]
    print("\n".join(table(head, rows)), end="\n\n", flush=True)


def measured(half, engines):
    """nDCG@10 of each of `WAYS` on the queries to be measured on, a row for each engine."""
    names = half.learn.joined.names
    assert names == half.measure.joined.names
    minmax = RuleSearch(half.learn, ENGINES["mongodb"], names)
    put_in = minmax.options()[0].weights / len(names)
    alone = {
        name: half.learn.table(scores).values.mean() for name, scores in half.learn.alone().items()
    }
    chosen = half.measure.alone()[max(alone, key=alone.get)]
    best_run = half.measure.table(chosen).values.mean()
    rows = []
    for engine in engines:
        search = RuleSearch(half.learn, ENGINES[engine], names)
        judge = RuleSearch(half.measure, ENGINES[engine], names)
        weights = {
            "no weights": search.equal,
            "put in": put_in,
            "put in, mean 1": put_in.size * put_in,
            "learned": search.chosen().weights,
            "search": search.options()[-1].weights,
        }
        rows.append([judge.values(weights[way]).mean() for way in WAYS[:-1]] + [best_run])
    return rows


if __name__ == "__main__":
    main()
