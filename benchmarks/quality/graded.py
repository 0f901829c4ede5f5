"""Grades in training: NDCG by grades as they are, cut at a threshold, and by other methods.

    python -m benchmarks graded [--ltr-sample FOLDER] [--clueweb FOLDER] [--ratings FILE]
        [--draws 10] [--results RUN] [--json FILE]

LightGBM's sample of learning to rank (examples/lambdarank: rank.train, rank.test and their .query
files, taken together), the features of the ClueWeb09 corpus of Webis, ratings of MovieLens (u.data
or ratings.dat) as grades of what nine recommenders put forward, and the TREC Deep Learning tracks
of the package, of which one year trains and the other is the test. A draw is a random choice of the
lists that train; all others, or those of the other year, are the test. Finished parts are kept in
RUN.
"""

import argparse
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import grouped, publish, table
from benchmarks.quality.fusing.lists import JoinedLists, rated, together, trec_years
from benchmarks.quality.fusing.methods import Tuned, logistic, ranker, ridge, trees
from benchmarks.quality.fusing.plain import letor_lists, svmlight_lists
from benchmarks.studies.rerank.study import interval
from structsvm_papk import __version__

DEFAULT = "grades, linear"

ABOUT = """# Grades in training

Mean NDCG of other lists, with linear gains, after learning from so many lists; means of {draws}
draws where a heading says nothing else. Behind it: how far grades with linear gains are ahead, in
thousandths; in brackets where 0 is within its 95% interval over draws and lists. Logistic
regression learns from grades of 2 and more, ridge regression and LambdaRank (trees of 7 leaves)
from the grades; these three choose their setting on five folds. Measured by
`{command}`;
`graded.json` has the intervals and NDCG with exponential gains."""


def cut_at_two(train, seed):
    """Logistic regression on relevance from grade 2 on."""
    return Tuned(logistic)(replace(train, level=2), seed)


METHODS = {
    "threshold 1": ranker(relevance_threshold=1),
    "threshold 2": ranker(relevance_threshold=2),
    DEFAULT: ranker(),
    "grades, exponential": ranker(label_gain="exponential"),
    "logistic regression": cut_at_two,
    "ridge regression": Tuned(ridge),
    "LambdaRank": trees(7),
}


@dataclass(frozen=True)
class Task:
    """Lists to draw from, and others to be measured on: by default those that were not drawn."""

    pool: JoinedLists
    sizes: tuple[int, ...]
    others: JoinedLists | None = None

    def drawn(self, size, draw):
        """Lists that train, and those of the test."""
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        train = self.pool.subset(np.sort(order[:size]))
        return train, self.others or self.pool.subset(self.tested(size, draw))

    def tested(self, size, draw):
        """Which lists are the test of a draw."""
        if self.others is not None:
            return np.arange(self.others.n_lists)
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        return np.sort(order[size:])

    def by_list(self, cells, size):
        """NDCG with linear gains, a row for each draw and a column for each list of any test."""
        lists = self.pool if self.others is None else self.others
        values = np.full((len(cells), lists.n_lists), np.nan)
        for draw, cell in enumerate(cells):
            values[draw, self.tested(size, draw)] = cell["linear"]
        return values

    def measured(self, name, size, draw):
        """NDCG of each list of the test by linear gains, and the mean by exponential ones."""
        train, test = self.drawn(size, draw)
        scores = METHODS[name](train, draw)(test)
        powers = replace(test, grades=2**test.grades - 1, missed=2**test.missed - 1)
        return {
            "linear": test.ndcg(scores).tolist(),
            "exponential": float(powers.ndcg(scores).mean()),
        }


def main():
    options = arguments()
    cells = Cells(options.results, {"version": __version__})
    rows = []
    for set_name, task in tasks(options):
        for size in task.sizes:
            found = {
                name: [
                    cells.get(
                        [set_name, name, size, draw],
                        lambda n=name, s=size, d=draw, t=task: t.measured(n, s, d),
                    )
                    for draw in range(options.draws)
                ]
                for name in options.method
            }
            rows += summary(set_name, task, size, found)
            print(set_name, size, file=sys.stderr)
    given = {"ltr-sample FOLDER": options.ltr_sample, "clueweb FOLDER": options.clueweb}
    given |= {"ratings FILE": options.ratings}
    words = [f"--{word}" for word, value in given.items() if value]
    command = " ".join(["python -m benchmarks graded", *words, f"--draws {options.draws}"])
    answer = {"command": command, "draws": options.draws, "rows": rows}
    publish(answer, page(answer), options.json)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ltr-sample", type=Path, help="with rank.train and rank.test")
    parser.add_argument("--clueweb", type=Path, help="folder with Fold1 .. Fold5")
    parser.add_argument("--ratings", type=Path, help="user, item and rating in a line")
    parser.add_argument("--draws", type=int, default=10)
    known = [name for name in METHODS if name != "LambdaRank" or find_spec("lightgbm")]
    parser.add_argument("--method", nargs="+", choices=known, default=known)
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--json", type=Path, help="write the answer here, and the page beside it")
    return parser.parse_args()


def tasks(options):
    """Name and `Task` of each set."""
    if options.ltr_sample:
        parts = [svmlight_lists(options.ltr_sample / f"rank.{part}") for part in ("train", "test")]
        yield "ltr-sample, NDCG@5", Task(together(*parts), (20, 60, 150))
    if options.clueweb:
        yield "ClueWeb09, NDCG@10", Task(letor_lists(options.clueweb), (10, 30))
    if options.ratings:
        yield "MovieLens, ratings, NDCG@20", Task(rated(options.ratings), (10, 30, 100))
    first, second = trec_years()
    yield "TREC DL 2019 on 2020, NDCG@10", Task(first, (10, 25), second)
    yield "TREC DL 2020 on 2019, NDCG@10", Task(second, (10, 25), first)


def summary(set_name, task, size, found):
    """A row for each method."""
    usual = task.by_list(found.get(DEFAULT, []), size)
    for name, cells in found.items():
        linear = task.by_list(cells, size)
        mean = float(np.nanmean(linear))
        row = {"set": set_name, "lists": size, "method": name, "linear": mean}
        row["exponential"] = float(np.mean([cell["exponential"] for cell in cells]))
        if usual.size and name != DEFAULT and len(cells) > 1:
            ahead = usual - linear
            ahead = np.ma.masked_invalid(ahead[:, ~np.isnan(ahead).all(axis=0)])
            row["ahead"] = float(ahead.mean())
            row["interval"] = interval(ahead)
        yield row


def page(answer):
    """The page of results."""
    yield ABOUT.format(**answer)
    for set_name, rows in grouped(answer["rows"], lambda row: row["set"]):
        yield f"\n## {set_name}\n"
        by_size = grouped(rows, lambda row: row["lists"])
        head = ["learning from", *(f"{size} lists" for size, _ in by_size)]
        lines = []
        for name, of_method in grouped(rows, lambda row: row["method"]):
            cells = {row["lists"]: _cell(row) for row in of_method}
            lines.append([name, *(cells.get(size, "–") for size, _ in by_size)])
        yield from table(head, lines)


def _cell(row):
    text = f"{row['linear']:.3f}"
    if "interval" not in row:
        return text
    low, high = row["interval"]
    ahead = f"{1000 * row['ahead']:+.0f}"
    return f"{text} ({ahead})" if low <= 0 <= high else f"{text} {ahead}"


if __name__ == "__main__":
    main()
