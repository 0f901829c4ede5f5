"""What "not retrieved" should mean: ways to treat missing scores, on real candidates.

    python -m benchmarks missing                             # TREC DL 2019 and 2020
    python -m benchmarks missing RUN/NAME.npz --train 30 300 # lists that `fusion` keeps in RUN
        [--test 1000] [--draws 10]

NDCG@k of new lists, after training on a few: mean over draws of the training lists, and the
standard error over draws of the difference from ``missing="lowest"``.
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.common.markdown import table
from benchmarks.quality.fusing.lists import JoinedLists, together, trec_years
from benchmarks.quality.fusing.methods import METHODS, min_max, ranker
from structsvm_papk import PAPKRanker
from structsvm_papk.data.missing import filled_rows

RRF = 60  # the usual constant
DEPTH = 0.5  # of all ways: that of `missing`, so that they differ in what a hole is


def filled_by(make):
    """A way that fills the holes by itself: ``make(lists, training lists)``."""

    def fit(train, seed):
        made = PAPKRanker(k=train.k, depth=DEPTH)
        made.fit(make(train, train), train.grades, train.groups)
        return lambda test: made.predict(make(test, train), test.groups)

    return fit


def lowest(lists, training):
    """The lowest of the list."""
    return filled_rows(lists.X, lists.groups, "lowest").X


def minmax(lists, training):
    """0, where the highest of a list is 1 and the lowest 0."""
    return min_max(lists)


def lowest_of_training(lists, training):
    """The lowest of the column in training."""
    return np.where(np.isnan(lists.X), np.nanmin(training.X, axis=0), lists.X)


def zero(lists, training):
    """What `fillna(0)` makes of it."""
    return np.nan_to_num(lists.X)


def reciprocal_ranks(lists, training):
    """1 / (60 + rank) of what each source retrieved, 0 for the rest."""
    ranks = pd.DataFrame(lists.X).groupby(lists.groups).rank(ascending=False)
    return (1.0 / (RRF + ranks)).fillna(0.0).to_numpy()


WAYS = {
    'missing="lowest"': ranker(),
    'missing="lowest", depth=0.9': ranker(depth=0.9),
    'missing="lowest", positive=True': ranker(positive=True),
    "the lowest of the list, no weight for holes": filled_by(lowest),
    "minmax, holes 0, no weight for holes": filled_by(minmax),
    "the lowest of the training column": filled_by(lowest_of_training),
    "fillna(0)": filled_by(zero),
    "1 / (60 + rank)": filled_by(reciprocal_ranks),
    "best single source": METHODS["best single run"],
    "reciprocal rank fusion": METHODS["RRF"],
    "CombSUM": METHODS["CombSUM"],
}


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--train", type=int, nargs="+", default=[10, 30, 60], help="lists")
    parser.add_argument("--test", type=int, default=1000, help="lists, at most")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    lists = JoinedLists.load(options.file) if options.file else together(*trec_years())
    columns = [measured(lists, n, options.test, options.draws) for n in options.train]
    rows = [[way, *(cell(column, place) for column in columns)] for place, way in enumerate(WAYS)]
    print("\n".join(table(["way", *(f"{n} lists" for n in options.train)], rows)))


def measured(lists, n_train, n_test, n_draws):
    """Mean NDCG by way and draw."""
    values = np.empty((len(WAYS), n_draws))
    for draw in range(n_draws):
        order = np.random.default_rng(draw).permutation(lists.n_lists)
        train = lists.subset(np.sort(order[:n_train]))
        test = lists.subset(np.sort(order[n_train:][:n_test]))
        for place, way in enumerate(WAYS.values()):
            values[place, draw] = test.ndcg(way(train, draw)(test)).mean()
    return values


def cell(values, place):
    """A way's mean, and its difference from the first."""
    away = values[place] - values[0]
    error = away.std(ddof=1) / np.sqrt(away.size)
    shown = f"{values[place].mean():.4f}"
    return f"{shown} ({away.mean():+.4f} ± {error:.4f})" if error > 0 else shown


if __name__ == "__main__":
    main()
