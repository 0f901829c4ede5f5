"""What the search chose, and what that cost or gained on lists that nobody had seen.

    python -m benchmarks searched [--ltr-sample FOLDER] [--clueweb FOLDER] [--ratings FILE]
        [--recommend movielens-1m.zip ..] [--one-list vowel.dat ..] [--draws 10]
        [--results RUN] [--json FILE]

Of each draw some lists train `PAPKRanker` and `PAPKRankerCV` as they come; on the others NDCG@k is
taken, of grades by their gains; of one list average precision on the other half of its rows. Sets:
digits as queries, the TREC tracks of the package, and those that are given, as for the benchmarks
`graded` (LightGBM's sample, ClueWeb09, ratings), `rerank` (zips of IR-Benchmark, the top lists of
nine recommenders) and `one_list` (files of KEEL, a class against the rest). Finished parts are kept
in RUN.
"""

import argparse
import json
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.metrics import average_precision_score

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import table
from benchmarks.quality import one_list
from benchmarks.quality.fusing.lists import recommended
from benchmarks.quality.fusing.plain import digits_as_queries
from benchmarks.quality.graded import Task
from benchmarks.quality.graded import tasks as graded_tasks
from structsvm_papk import PAPKRanker, PAPKRankerCV, __version__

N_USERS = 1000  # of a set of interactions, drawn once


def on_lists(task, size, draw):
    """A draw of a `Task`."""
    train, test = task.drawn(size, draw)
    missing = "lowest" if np.isnan(train.X).any() else None

    def score(ranker):
        return test.ndcg(ranker.predict(test.X, groups=test.groups)).mean()

    rows = train.X, train.grades if train.grades.max() > 1 else train.relevant, train.groups
    return compared(rows, score, k=train.k, missing=missing)


def on_one_list(file, n_rows, draw):
    """A draw of a file of KEEL; None where positives are too few."""
    split = one_list.drawn(*one_list.read(file), n_rows, draw)
    if split is None:
        return None

    def score(ranker):
        return average_precision_score(split.y_test, ranker.predict(split.X_test))

    return compared((split.X, split.y, "one_list"), score, k=one_list.K)


def compared(rows, score, **settings):
    """What default, search, and the largest mean of the search score, and what was chosen."""
    with warnings.catch_warnings(action="ignore"):
        started = time.process_time()
        usual = PAPKRanker(**settings).fit(*rows)
        between = time.process_time()
        search = PAPKRankerCV(**settings).fit(*rows)
        ended = time.process_time()
        results = search.cv_results_
        largest = results["params"][int(np.argmax(results["mean_test_score"]))]
        best = PAPKRanker(**settings, **largest).fit(*rows)
    choice = search.choice_
    left = choice.setting != choice.default
    return {
        "default": float(score(usual)),
        "search": float(score(search)),
        "largest": float(score(best)),
        "chosen": _in_words(choice) if left else "the default",
        "lead": choice.lead,
        "by_chance": choice.by_chance,
        "times": (ended - between) / (between - started),
    }


def _in_words(choice):
    """In what the chosen setting differs from the default."""
    parts = []
    if choice.setting.name != choice.default.name:
        parts.append(choice.setting.name.upper())
    if choice.setting.user_scaling != choice.default.user_scaling:
        parts.append(f"scaling {choice.setting.user_scaling}")
    if choice.setting.standardize != choice.default.standardize:
        parts.append("columns in their units")
    return ", ".join(parts) or "another alpha"


def tasks(options):
    """Name of a set, number of lists, and what measures a draw."""
    digits = Task(digits_as_queries(0), (20, 100), digits_as_queries(1))
    sets = [("digits, NDCG@10", digits), *graded_tasks(options)]
    for file in options.recommend:
        pool = recommended(file, N_USERS)
        sets.append((f"{file.stem}, NDCG@{pool.k}", Task(pool, (30, 300))))
    for name, task in sets:
        for size in task.sizes:
            yield name, size, partial(on_lists, task, size)
    for file in options.one_list:
        yield f"{file.stem}, one list, AP", None, partial(on_one_list, file, options.rows)


def main():
    options = arguments()
    cells = Cells(options.results, {"version": __version__})
    rows = []
    for name, size, measure in tasks(options):
        parts = [
            cells.get([name, size, draw], partial(measure, draw)) for draw in range(options.draws)
        ]
        parts = [part for part in parts if part is not None]
        rows.append({"set": name, "lists": size, "parts": parts})
        print(name, size, file=sys.stderr, flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(page(rows)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ltr-sample", type=Path, help="with rank.train and rank.test")
    parser.add_argument("--clueweb", type=Path, help="folder with Fold1 .. Fold5")
    parser.add_argument("--ratings", type=Path, help="user, item and rating in a line")
    parser.add_argument("--recommend", nargs="*", type=Path, default=[], help="zips or folders")
    parser.add_argument("--one-list", nargs="*", type=Path, default=[], help="files of KEEL")
    parser.add_argument("--rows", type=int, default=500, help="of one list, to train on")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--json", type=Path, help="write the answer into this file")
    return parser.parse_args()


def page(rows):
    """The table, losses first."""
    head = ("set", "lists", "draws", "default", "search ahead", "largest mean ahead",
            "the search chose", "times")  # fmt: skip
    yield from table(head, [_cells(row) for row in sorted(rows, key=_gain)])


def _gain(row):
    return np.mean([part["search"] - part["default"] for part in row["parts"]])


def _cells(row):
    parts = row["parts"]
    chosen = [part["chosen"] for part in parts]
    counts = {name: chosen.count(name) for name in sorted(set(chosen))}
    largest = np.mean([part["largest"] - part["default"] for part in parts])
    return [
        row["set"],
        "1" if row["lists"] is None else str(row["lists"]),
        str(len(parts)),
        f"{np.mean([part['default'] for part in parts]):.3f}",
        f"{_gain(row):+.4f}",
        f"{largest:+.4f}",
        ", ".join(f"{name} {count}" for name, count in counts.items()),
        f"{np.median([part['times'] for part in parts]):.1f}",
    ]


if __name__ == "__main__":
    main()
