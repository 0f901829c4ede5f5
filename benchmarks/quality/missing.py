"""What "not retrieved" should mean: ways to treat missing scores, on real candidates.

    python -m benchmarks missing                    # TREC DL 2019 and 2020
    python -m benchmarks missing LISTS.npz --k 20   # lists of your own

nDCG@k of new lists, after training on a few: mean over draws of the training lists, and the
standard error over draws of the difference from ``missing="lowest"``. A file holds X (NaN: not
retrieved), y (grades) and group; relevant items that no source retrieved may stand in missed_group
and missed_grade, and count in the ideal.
"""

import argparse

import numpy as np

from structsvm_papk import PAPKRanker
from structsvm_papk.data.user_scaling import completed_rows
from structsvm_papk.datasets import retrieval_runs

RRF = 60  # the usual constant
DEPTH = 0.5  # of all ways: that of `missing`, so that they differ in what a hole is


class Lists:
    """Rows of lists that stand together, and the relevant items that are not among them."""

    def __init__(self, X, grades, groups, missed_group, missed_grade):
        self.X = X
        self.grades = np.maximum(grades, 0)
        _, self.groups = np.unique(groups, return_inverse=True)
        self.n_lists = int(self.groups.max()) + 1
        self.missed = [missed_grade[missed_group == user] for user in np.unique(groups)]

    def rows(self, users):
        """Which rows belong to some users."""
        return np.flatnonzero(np.isin(self.groups, users))

    def ndcg(self, scores, rows, k):
        """nDCG@k of every list of these rows that has a relevant item; the earlier of tied ones."""
        discount = 1.0 / np.log2(np.arange(2, k + 2))
        groups = self.groups[rows]  # in ascending order: every list's rows stand together
        starts = np.flatnonzero(np.diff(groups, prepend=-1))
        values = []
        for user, mine in zip(groups[starts], np.split(rows, starts[1:]), strict=True):
            place = np.searchsorted(rows, mine[0])
            own = scores[place : place + mine.size]
            best = np.sort(np.concatenate([self.grades[mine], self.missed[user]]))[::-1][:k]
            ideal = best @ discount[: best.size]
            if ideal > 0:
                shown = self.grades[mine][np.argsort(-own, kind="stable")][:k]
                values.append(shown @ discount[: shown.size] / ideal)
        return float(np.mean(values))


def trec_lists():
    """All queries of both years, a row for each document that a run retrieved."""
    import pandas as pd

    parts = []
    missed = []
    sample = retrieval_runs()
    for collection in (sample.train, sample.test):
        runs = {
            name: run.set_index(["query", "document"])["score"]
            for name, run in collection.runs.items()
        }
        joined = pd.DataFrame(runs)
        grades = collection.judgments.set_index(["query", "document"])["grade"]
        parts.append(joined.assign(grade=grades.reindex(joined.index).fillna(0)))
        missed.append(grades[~grades.index.isin(joined.index)])
    frame = pd.concat(parts).sort_index()
    beside = pd.concat(missed)
    query = frame.index.get_level_values("query").to_numpy()
    X = frame.drop(columns="grade").to_numpy()
    missed_query = beside.index.get_level_values("query").to_numpy()
    return Lists(X, frame["grade"].to_numpy(), query, missed_query, beside.to_numpy())


def reciprocal_ranks(X, groups):
    """1 / (60 + rank) of what each source retrieved, 0 for the rest."""
    import pandas as pd

    ranks = pd.DataFrame(X).groupby(groups).rank(ascending=False)
    return (1.0 / (RRF + ranks)).fillna(0.0).to_numpy()


def labels_of(lists, rows, relevant):
    """Grades as they are, or cut at one."""
    return lists.grades[rows] if relevant is None else lists.grades[rows] >= relevant


def filled_by(make):
    """A way that fills the holes by itself: ``make(X, groups, X of training)``."""

    def way(lists, train, test, k, relevant):
        X, groups = lists.X, lists.groups
        ranker = PAPKRanker(k=k, policy="cap", depth=DEPTH)
        rows = make(X[train], groups[train], X[train])
        ranker.fit(rows, labels_of(lists, train, relevant), groups[train])
        return ranker.predict(make(X[test], groups[test], X[train]))

    return way


def by_setting(**settings):
    """``PAPKRanker(missing="lowest")`` with further settings."""

    def way(lists, train, test, k, relevant):
        X, groups = lists.X, lists.groups
        ranker = PAPKRanker(k=k, policy="cap", missing="lowest", **settings)
        labels = labels_of(lists, train, relevant)
        ranker.fit(X[train], labels, groups[train])
        return ranker.predict(X[test], groups[test])

    return way


def best_single(lists, train, test, k, relevant):
    """The source whose order is best on the training lists."""

    def column(rows):
        return completed_rows(lists.X[rows], lists.groups[rows], None, "lowest").X

    of_training = column(train)
    values = [lists.ndcg(scores, train, k) for scores in of_training.T]
    return column(test)[:, int(np.argmax(values))]


def fusion(lists, train, test, k, relevant):
    """Reciprocal rank fusion, which learns nothing."""
    return reciprocal_ranks(lists.X[test], lists.groups[test]).sum(axis=1)


def comb_sum(lists, train, test, k, relevant):
    """The sum of scores between 0 and 1 in each list, which learns nothing."""
    return completed_rows(lists.X[test], lists.groups[test], "minmax", "lowest").X.sum(axis=1)


WAYS = {
    'missing="lowest"': by_setting(),
    'missing="lowest", depth=0.9': by_setting(depth=0.9),
    'missing="lowest", positive=True': by_setting(positive=True),
    'missing="lowest", user_scaling="standardize"': by_setting(user_scaling="standardize"),
    'missing="lowest", user_scaling="minmax"': by_setting(user_scaling="minmax"),
    "the lowest of the list, no weight for holes": filled_by(
        lambda X, groups, _: completed_rows(X, groups, None, "lowest").X
    ),
    "minmax, holes 0, no weight for holes": filled_by(
        lambda X, groups, _: completed_rows(X, groups, "minmax", "lowest").X
    ),
    "the lowest of the training column": filled_by(
        lambda X, groups, training: np.where(np.isnan(X), np.nanmin(training, axis=0), X)
    ),
    "fillna(0)": filled_by(lambda X, groups, _: np.nan_to_num(X)),
    "1 / (60 + rank)": filled_by(lambda X, groups, _: reciprocal_ranks(X, groups)),
    "best single source": best_single,
    "reciprocal rank fusion": fusion,
    "CombSUM": comb_sum,
}


def main():
    """Print a table."""
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("file", nargs="?")
    options.add_argument("--k", type=int, default=10)
    options.add_argument("--relevant", type=int, help="cut grades here; by default they train")
    options.add_argument("--train", type=int, nargs="*", default=[10, 30, 60])
    options.add_argument("--test", type=int, default=1000, help="lists, at most")
    options.add_argument("--draws", type=int, default=20)
    options.add_argument(
        "--way", nargs="*", help="only those in whose names this is, and the first"
    )
    given = options.parse_args()
    lists = trec_lists()
    if given.file is not None:
        with np.load(given.file) as held:
            names = ("X", "y", "group", "missed_group", "missed_grade")
            lists = Lists(*(held[name] for name in names))
    ways = WAYS
    if given.way:
        first, *others = ways
        names = [name for name in others if any(text in name for text in given.way)]
        ways = {name: ways[name] for name in (first, *names)}
    print("| way | " + " | ".join(f"{n} lists" for n in given.train) + " |")
    print("|---" * (len(given.train) + 1) + "|")
    values = np.empty((len(ways), len(given.train), given.draws))
    for column, n_lists in enumerate(given.train):
        for draw in range(given.draws):
            order = np.random.default_rng(draw).permutation(lists.n_lists)
            train = lists.rows(order[:n_lists])
            test = lists.rows(order[n_lists:][: given.test])
            for row, way in enumerate(ways.values()):
                scores = way(lists, train, test, given.k, given.relevant)
                values[row, column, draw] = lists.ndcg(scores, test, given.k)
    for name, of_way in zip(ways, values, strict=True):
        away = of_way - values[0]
        errors = away.std(axis=1, ddof=1) / np.sqrt(given.draws)
        cells = [
            f"{mean:.4f}" + (f" ({lead:+.4f} ± {error:.4f})" if error > 0 else "")
            for mean, lead, error in zip(
                of_way.mean(axis=1), away.mean(axis=1), errors, strict=True
            )
        ]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
