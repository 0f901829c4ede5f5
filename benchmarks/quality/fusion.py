"""Fusion of runs: NDCG on held-out lists against the number of judged ones, for every method.

    python -m benchmarks fusion [FOLDER ..] [--draws 10] [--sizes 10 30 100 300 2000]
        [--test-lists 800] [--method NAME ..] --results RUN [--json FILE]

The TREC Deep Learning tracks of the package (2019 -> 2020, 2020 -> 2019, and both, by five folds of
queries), and, for each FOLDER of the IR-Benchmark data (`results/rerank.md`), the top 100 of nine
recommenders. A draw is a random choice of the lists to learn from (of the folds, where all lists
are). Intervals are for the mean over further draws and further lists. Finished parts are kept in
RUN, so a run goes on from there.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from scipy import stats
from sklearn.model_selection import GroupKFold

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import grouped, publish, table
from benchmarks.quality.fusing import methods
from benchmarks.quality.fusing.lists import JoinedLists, recommended, together, trec_years
from benchmarks.quality.fusing.methods import DEFAULT, METHODS
from benchmarks.studies.rerank.study import LEVEL, interval
from structsvm_papk import __version__
from structsvm_papk.errors import InputError

N_USERS = 4000
TREC_SIZES = (10, 30)
MANY = 100  # lists from which on draws differ little
DRAWS_OF_MANY = 5

SHOWN = (10, 100)  # lists: columns of the page
ABOUT = """# Fusion of runs

Mean NDCG of held-out lists (at 10 for TREC, at 20 for recommenders) after learning from 10 lists
and from 100, or all that there are. In brackets: 0 is within the 95% interval for how far the
default is ahead, over draws of the training lists and held-out lists. Other sizes, leads and
intervals: `fusion.json`. Measured by
`{command}`;
five draws from {MANY} lists on, and of all lists.
"""


def main():
    options = arguments()
    try:
        answer = run(options)
    except InputError as error:
        sys.exit(f"Error: {error}")
    publish(answer, page(answer), options.json)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="*", metavar="FOLDER")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100, 300, 2000])
    parser.add_argument("--test-lists", type=int, default=800, help="of each FOLDER")
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=methods.available())
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--json", type=Path, help="write the answer here, and the page beside it")
    return parser.parse_args()


def run(options):
    """A row for each data set, number of lists and method."""
    if options.draws < 2:
        raise InputError(f"draws must be at least 2, got {options.draws}")
    cells = Cells(options.results, {"version": __version__})
    first, second = trec_years()
    plans = [
        Split("TREC DL 2019 to 2020", first, second, (*TREC_SIZES, first.n_lists)),
        Split("TREC DL 2020 to 2019", second, first, (*TREC_SIZES, second.n_lists)),
        Folds("TREC DL, both years", together(first, second)),
    ]
    plans += [of_folder(folder, options) for folder in options.folders]
    rows = []
    for plan in plans:
        for size, draws in plan.sizes_and_draws(options):
            rows += compared(measured(plan, size, draws, options.method, cells))
    command = ["python -m benchmarks fusion", *(folder.stem for folder in options.folders)]
    return {"command": " ".join([*command, f"--draws {options.draws}"]), "rows": rows}


class Split:
    """Lists to draw training lists from, and others to be measured on."""

    def __init__(self, name, pool, test, sizes):
        self.name = name
        self.pool = pool.subset(np.flatnonzero(pool.learnable))
        self.test = test
        self.sizes = sizes

    @property
    def graded(self):
        """Whether labels are of more than two values."""
        return bool(self.pool.grades.max() > 1)

    def sizes_and_draws(self, options):
        """Where all lists are taken, draws differ by their folds only."""
        for size in sorted({min(size, self.pool.n_lists) for size in self.sizes}):
            many = size >= min(MANY, self.pool.n_lists)
            yield size, min(options.draws, DRAWS_OF_MANY) if many else options.draws

    def ndcg(self, method, size, draw):
        """NDCG of each test list after training on `size` lists."""
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        train = self.pool.subset(np.sort(order[:size]))
        return self.test.ndcg(METHODS[method](train, draw)(self.test))


class Folds:
    """Every list is measured by what was trained on the other folds."""

    def __init__(self, name, lists):
        self.name = name
        self.lists = lists

    @property
    def graded(self):
        """Whether labels are of more than two values."""
        return bool(self.lists.grades.max() > 1)

    def sizes_and_draws(self, options):
        """One size: four fifths of all lists."""
        yield self.lists.n_lists * 4 // 5, min(options.draws, DRAWS_OF_MANY)

    def ndcg(self, method, size, draw):
        """NDCG of each list."""
        ndcg = np.empty(self.lists.n_lists)
        folds = GroupKFold(5, shuffle=True, random_state=draw)
        for rows, held_rows in folds.split(self.lists.X, groups=self.lists.groups):
            chosen, held = (np.unique(self.lists.groups[part]) for part in (rows, held_rows))
            train, test = self.lists.subset(chosen), self.lists.subset(held)
            ndcg[held] = test.ndcg(METHODS[method](train, draw)(test))
        return ndcg


def of_folder(folder, options):
    """Users of a data set of interactions, with the lists of nine recommenders."""
    kept = None if options.results is None else options.results / f"{folder.stem}.npz"
    if kept is not None and kept.is_file():
        lists = JoinedLists.load(kept)
    else:
        lists = recommended(folder, N_USERS)
        if kept is not None:
            lists.save(kept)
    order = np.random.default_rng(7).permutation(lists.n_lists)
    test = np.sort(order[: options.test_lists])
    pool = np.sort(order[options.test_lists :])
    return Split(folder.stem, lists.subset(pool), lists.subset(test), options.sizes)


def measured(plan, size, draws, names, cells):
    """NDCG of every method, an array of shape (draws, lists) each."""
    names = list(dict.fromkeys([DEFAULT, *names]))
    values = {}
    for name in names:
        if name in methods.OF_GRADES and not plan.graded:
            continue
        once = name in methods.UNLEARNED
        of_draws = []
        for draw in range(draws):
            key = [plan.name, 0 if once else size, 0 if once else draw, name]
            known = cells.get(key, lambda d=draw, n=name: plan.ndcg(n, size, d).round(6).tolist())
            of_draws.append(known)
        values[name] = np.array(of_draws)
        print(f"{plan.name}, {size} lists, {name}: {values[name].mean():.4f}", file=sys.stderr)
    return {"set": plan.name, "size": size, "values": values}


def compared(found):
    """Means, and by how much the default is ahead."""
    for name, ndcg in found["values"].items():
        ours = found["values"][DEFAULT]
        row = {"set": found["set"], "size": found["size"], "draws": len(ndcg), "method": name}
        row["ndcg"] = float(ndcg.mean())
        row["ahead"] = float((ours - ndcg).mean())
        row["lower"], row["upper"] = _interval(ours - ndcg) if name != DEFAULT else (None, None)
        yield row


def _interval(ahead):
    if len(ahead) > 1 and np.ptp(ahead.mean(axis=1)) > 0:
        return interval(ahead)
    means = ahead.mean(axis=0)
    half = stats.t.ppf((1 + LEVEL) / 2, means.size - 1) * means.std(ddof=1) / np.sqrt(means.size)
    return float(means.mean() - half), float(means.mean() + half)


def page(answer):
    """Methods in rows, data sets and numbers of lists in columns."""
    rows = answer["rows"]
    yield ABOUT.format(command=answer["command"], MANY=MANY)
    columns = list(shown(rows))
    lines = []
    for method, own in grouped(rows, lambda row: row["method"]):
        of_column = {(row["set"], row["size"]): row for row in own}
        lines.append([method, *(_cell(of_column.get(column)) for column in columns)])
    yield from table(("method", *(f"{name}, {size}" for name, size in columns)), lines)


def shown(rows):
    """Set and number of lists of each column: the sizes of the page, or all lists."""
    for name, own in grouped(rows, lambda row: row["set"]):
        sizes = sorted({row["size"] for row in own})
        wanted = {min(size, sizes[-1]) for size in SHOWN}
        yield from ((name, size) for size in sizes if size in wanted)


def _cell(row):
    if row is None:
        return "–"
    value = f"{row['ndcg']:.4f}".lstrip("0")
    if row["lower"] is None:
        return f"**{value}**"
    return f"({value})" if row["lower"] <= 0 <= row["upper"] else value


if __name__ == "__main__":
    main()
