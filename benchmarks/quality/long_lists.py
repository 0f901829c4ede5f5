"""Long lists: Avg, TS and others where most of a catalogue, or a crawl, is to be ranked.

    python -m benchmarks long_lists [--recommend movielens-1m.zip ..] [--clueweb FOLDER]
        [--items 100 300 1000] [--users 300] [--draws 10] [--results RUN] [--json FILE]

Zips are those of the public IR-Benchmark data. The most used items of a set are its catalogue; nine
recommenders, fitted on four fifths of each user's training interactions, score every item of it
that the user does not know, and the last fifth are the relevant ones of the lists that train. The
test: other users, recommenders fitted on all training interactions, relevant is what test.tsv has.
The features of the ClueWeb09 corpus of Webis: 40 queries train, the others are the test.

NDCG@k of the test lists in the mean over draws, and pAp@k of them, k = 20 (10 of ClueWeb09), beside
what `fit` sees of the training lists, and what three folds of them say of TS against Avg. Finished
parts are kept in RUN.
"""

import argparse
import json
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import table
from benchmarks.quality.fusing.methods import Tuned, best_run, logistic, ranker
from benchmarks.quality.fusing.plain import letor_lists, plain_lists
from benchmarks.studies.rerank import first_stage
from benchmarks.studies.rerank.data import inner_split, read
from structsvm_papk import __version__, metrics

K = 20
QUERIES = 40  # of ClueWeb09 that train
FOLDS = 3

of_two_labels = partial(ranker, relevance_threshold=1, tol=1e-4)
METHODS = {
    "Avg": of_two_labels(),
    "TS": of_two_labels(surrogate="ts"),
    "Avg, depth .5": of_two_labels(depth=0.5),
    "Avg, depth .1": of_two_labels(depth=0.1),
    "logistic regression": Tuned(logistic),
    "best column": best_run,
}


class Catalogue:
    """Lists of all items of a catalogue that a user does not know, a column for each recommender.

    Of a user drawn for training the labels are interactions that the recommenders have not seen; of
    one of the test those of `test`.
    """

    def __init__(self, file, n_items):
        interactions = read(file)
        counts = np.bincount(interactions.train.indices, minlength=interactions.n_items)
        items = np.sort(np.argsort(-counts, kind="stable")[:n_items])
        self.train = interactions.train[:, items]
        self.test = interactions.test[:, items]
        self.history, self.held_back = inner_split(self.train)
        self.models = first_stage.fit_all(self.history)
        self.models_of_all = first_stage.fit_all(self.train)

    def drawn(self, n_users, draw):
        """Lists that train, and those of the test, of other users."""
        order = np.random.default_rng(draw).permutation(self.train.shape[0])
        wanted = [np.diff(labels.indptr) > 0 for labels in (self.held_back, self.test)]
        train = order[wanted[0][order]][:n_users]
        rest = np.setdiff1d(order, train, assume_unique=True)
        test = rest[wanted[1][rest]][:n_users]
        return (
            _lists(self.models, self.history, self.held_back, np.sort(train)),
            _lists(self.models_of_all, self.train, self.test, np.sort(test)),
        )


def _lists(models, known, relevant, users):
    """A list for each user: all items that the user does not know."""
    unknown = known[users].toarray() == 0
    X = np.stack([model.scores(users)[unknown] for model in models], axis=1)
    grades = relevant[users].toarray()[unknown] > 0
    return plain_lists(X.astype(float), grades, unknown.sum(axis=1), K)


class Queries:
    """Lists of ClueWeb09."""

    def __init__(self, folder):
        self.pool = letor_lists(folder)

    def drawn(self, n_users, draw):
        """Lists that train, and the others."""
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        parts = np.sort(order[:QUERIES]), np.sort(order[QUERIES:])
        return tuple(self.pool.subset(part) for part in parts)


def measured(source, n_users, draw):
    """NDCG of each method on test lists, what `fit` sees, and what folds say."""
    train, test = source.drawn(n_users, draw)
    scores = {name: method(train, draw)(test) for name, method in METHODS.items()}
    n_pos = np.bincount(train.groups[train.relevant], minlength=train.n_lists)
    ahead = ahead_on_folds(train, draw)
    return {
        "NDCG": {name: float(test.ndcg(own).mean()) for name, own in scores.items()},
        "pAp": {name: pap(test, own) for name, own in scores.items()},
        "items": float(train.sizes.mean()),
        "positives": float(n_pos.mean()),
        "columns": train.X.shape[1],
        "lists": train.n_lists,
        "ahead": float(ahead.mean()),
        "error": float(ahead.std(ddof=1) / np.sqrt(ahead.size)),
    }


def pap(lists, scores):
    """Mean of pAp@k over the lists that have it."""
    name = f"pap@{lists.k}"
    return metrics.evaluate(name, scores, lists.relevant, lists.groups).mean(name)


def ahead_on_folds(train, draw):
    """By how much TS is ahead of Avg in NDCG of each list, where folds hold it out."""
    fold = np.random.default_rng(draw).permutation(np.arange(train.n_lists) % FOLDS)
    ahead = np.zeros(train.n_lists)
    for number in range(FOLDS):
        held = np.flatnonzero(fold == number)
        rest = train.subset(np.flatnonzero(fold != number))
        lists = train.subset(held)
        for name, sign in (("TS", 1.0), ("Avg", -1.0)):
            ahead[held] += sign * lists.ndcg(METHODS[name](rest, draw)(lists))
    return ahead


def main():
    options = arguments()
    warnings.simplefilter("ignore")  # of w = 0
    cells = Cells(options.results, {"version": __version__, "users": options.users})
    rows = []
    for name, n_items, make in tasks(options):
        source = make()
        parts = []
        for draw in range(options.draws):
            measure = partial(measured, source, options.users, draw)
            parts.append(cells.get([name, n_items, draw], measure))
            print(name, n_items, draw, parts[-1], file=sys.stderr, flush=True)
        rows.append({"set": name, "draws": len(parts), "parts": parts})
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(page(rows)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--recommend", nargs="*", type=Path, default=[], help="zips or folders")
    parser.add_argument("--clueweb", type=Path, help="folder with Fold1 .. Fold5")
    parser.add_argument("--items", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--json", type=Path, help="write the answer into this file")
    return parser.parse_args()


def tasks(options):
    """Name, number of items, and what makes the source."""
    if options.clueweb:
        yield "ClueWeb09", None, partial(Queries, options.clueweb)
    for n_items in options.items:
        for file in options.recommend:
            yield f"{file.stem}, {n_items}", n_items, partial(Catalogue, file, n_items)


def page(rows):
    """A table of each metric: by how much others are ahead of or behind Avg, in thousandths."""
    others = [name for name in METHODS if name != "Avg"]
    head = ["set, items", "a list", "relevant", "Avg", *others, "TS on folds"]
    for metric in ("NDCG", "pAp"):
        yield f"\n## {metric}\n"
        yield from table(head, [_cells(row, metric, others) for row in rows])


def _cells(row, metric, others):
    def mean(name):
        return np.mean([part[name] for part in row["parts"]])

    def of_draws(name):
        return np.array([part[metric][name] for part in row["parts"]])

    ahead = [_thousandths(of_draws(name) - of_draws("Avg")) for name in others]
    folds = f"{1000 * mean('ahead'):+.0f} ± {1000 * mean('error'):.0f}"
    known = f"{mean('items'):.0f}", f"{mean('positives'):.1f}", f"{of_draws('Avg').mean():.4f}"
    return [row["set"], *known, *ahead, folds]


def _thousandths(differences):
    """Mean over draws and its standard error."""
    shown = f"{1000 * differences.mean():+.0f}"
    if differences.size == 1:
        return shown
    return f"{shown} ± {1000 * differences.std(ddof=1) / np.sqrt(differences.size):.0f}"


if __name__ == "__main__":
    main()
