"""What to divide columns of two values by, beside numbers in a dense frame.

    python -m benchmarks indicators [--pairs train.tsv test.tsv] [--ltr-sample FOLDER]
        [--draws 3] [--results RUN]

Columns divided each by its deviation within lists (`standardize=True`), those of two values by half
their difference (the default), and by their difference (by hand): the latter two differ in how much
indicators count beside numbers. Generated lists (pAp@5 on 150 new ones): numbers and indicators,
with normal weights on all columns (`all`), weights that grow as one over the deviation, on all
(`equal shares`) or on rare indicators and numbers only (`rare`), and weights on numbers only
(`numbers`). With `--pairs` (tables of user and item, tab-separated) candidates of real users: which
of the 600 most popular items it is, and three numbers. Beside these, NDCG of the sets of
`benchmarks/quality/penalty.py`, and of runs with missing scores, whose columns "is there" have two
values. Finished parts are kept in RUN.
"""

import argparse
import sys
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import table
from benchmarks.quality.fusing.lists import JoinedLists, trec_years
from benchmarks.quality.fusing.plain import digits_as_queries, svmlight_lists
from structsvm_papk import PAPKRanker, RankingData, __version__

K = 5
N_NEW = 150  # lists that are scored
N_ROWS = 30  # of a generated list
N_ITEMS = 600
N_CANDIDATES = 100
SIZES = (30, 100, 300)
TRUTHS = ("all", "rare", "equal shares", "numbers")
TOL = 1e-3
LIMIT = 20  # seconds of a fit
BEFORE = "each by its deviation"
DEFAULT = "**default**"
DIFFERENCE = "two values by their difference"


@dataclass(frozen=True)
class Rows:
    """Rows of lists."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray


def one_hot(rng, n_rows, d=300):
    """One column in d is one, by a power law."""
    share = 1 / np.arange(1, d + 1) ** 1.1
    X = np.zeros((n_rows, d))
    X[np.arange(n_rows), rng.choice(d, n_rows, p=share / share.sum())] = 1.0
    return X


def coins(rng, n_rows, least, d=20):
    """Columns that are one in a share of the rows between `least` and one half."""
    return (rng.random((n_rows, d)) < np.geomspace(least, 0.5, d)).astype(float)


SHAPES = {
    "5 numbers, 300 one-hot": (5, one_hot),
    "1 number, 300 one-hot": (1, one_hot),
    "20 numbers, 20 of 1% to 50%": (20, partial(coins, least=0.01)),
    "5 numbers, 20 of 50%": (5, partial(coins, least=0.5)),
}


def generated(shape, truth, n_lists, draw):
    """Training lists and new ones; the highest 10% are relevant."""
    rng = np.random.default_rng([draw, n_lists])
    n_rows = (n_lists + N_NEW) * N_ROWS
    n_numbers, indicators = SHAPES[shape]
    X = np.hstack([rng.normal(size=(n_rows, n_numbers)), indicators(rng, n_rows)])
    deviation = X.std(axis=0)
    w = rng.normal(size=X.shape[1])
    if truth in ("rare", "equal shares"):
        w /= np.maximum(deviation, 1e-2)
    if truth == "rare":
        frequent = deviation > np.sqrt(0.02 * 0.98)
        frequent[:n_numbers] = False
        w[frequent] = 0.0
    if truth == "numbers":
        w[n_numbers:] = 0.0
    score = X @ w
    score += 0.3 * score.std() * rng.normal(size=n_rows)
    groups = np.repeat(np.arange(n_lists + N_NEW), N_ROWS)
    y = score > np.quantile(score, 0.9)
    train = groups < n_lists
    return Rows(X[train], y[train], groups[train]), Rows(X[~train], y[~train], groups[~train])


class Candidates:
    """Items that a user may get: which it is, how popular, how near to what the user has."""

    def __init__(self, train_file, test_file):
        known, later = (
            np.loadtxt(file, skiprows=1, dtype=np.int64) for file in (train_file, test_file)
        )
        shape = np.maximum(known.max(axis=0), later.max(axis=0)) + 1
        self.seen = np.zeros(shape, dtype=np.float32)
        self.seen[known[:, 0], known[:, 1]] = 1.0
        self.wanted = np.zeros(shape, dtype=bool)
        self.wanted[later[:, 0], later[:, 1]] = True
        self.popularity = self.seen.sum(axis=0)
        self.items = np.argsort(-self.popularity)[:N_ITEMS]
        together = self.seen.T @ self.seen
        np.fill_diagonal(together, 0.0)
        both = np.sqrt(np.outer(self.popularity, self.popularity))
        self.cosine = together / (both + 1e-9)
        self.confidence = together / (self.popularity[:, None] + 10)

    def __call__(self, n_lists, draw):
        """Training lists and new ones."""
        rng = np.random.default_rng([draw, 7])
        has_some = self.wanted[:, self.items].any(axis=1) & (self.seen.sum(axis=1) > 5)
        users = rng.permutation(np.flatnonzero(has_some))[: n_lists + N_NEW]
        lists = [self._of_user(user, rng) for user in users]
        return _stacked(lists[:n_lists]), _stacked(lists[n_lists:])

    def _of_user(self, user, rng):
        new = self.items[self.seen[user, self.items] == 0]
        liked = new[self.wanted[user, new]]
        others = new[~self.wanted[user, new]]
        others = rng.choice(others, min(N_CANDIDATES, others.size), replace=False)
        items = np.concatenate([liked, others])
        history = np.flatnonzero(self.seen[user])
        numbers = [
            np.log1p(self.popularity[items]),
            self.cosine[np.ix_(history, items)].sum(axis=0),
            self.confidence[np.ix_(history, items)].sum(axis=0),
        ]
        which = (items[:, None] == self.items).astype(float)
        X = np.column_stack([*numbers, which])
        return Rows(X, self.wanted[user, items], np.full(items.size, user))


def _stacked(lists):
    return Rows(
        np.concatenate([each.X for each in lists]),
        np.concatenate([each.y for each in lists]),
        np.concatenate([each.groups for each in lists]),
    )


def pap_of_ways(make, size, draw):
    """pAp@K on new lists."""
    train, new = make(size, draw)
    unit = differences(train)
    ways = {BEFORE: (True, 1.0), DEFAULT: ("auto", 1.0), DIFFERENCE: (False, unit)}
    values = {}
    for way, (how, unit) in ways.items():
        ranker = PAPKRanker(k=K, standardize=how, tol=TOL, time_limit=LIMIT)
        ranker.fit(train.X / unit, train.y, groups=train.groups)
        values[way] = ranker.score(new.X / unit, new.y, groups=new.groups)
    return values


def differences(rows):
    """The deviations of columns, and the difference of the values of those that take two."""
    lists = RankingData.from_groups(rows.X, rows.y, rows.groups)
    deviation = lists.standardized(True).column_scale
    two = np.array([np.unique(column).size == 2 for column in rows.X.T])
    return np.where(two & (lists.deviation() > 0), np.ptp(rows.X, axis=0), deviation)


@dataclass(frozen=True)
class Known:
    """NDCG on lists of which some are drawn for training."""

    pool: JoinedLists
    others: JoinedLists
    missing: str | None = None

    def __call__(self, size, draw):
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        train = self.pool.subset(np.sort(order[:size]))
        values = {}
        for way, how in {BEFORE: True, DEFAULT: "auto"}.items():
            ranker = PAPKRanker(k=train.k, standardize=how, missing=self.missing)
            ranker.fit(train.X, train.relevant, groups=train.groups)
            scores = ranker.predict(self.others.X, groups=self.others.groups)
            values[way] = float(self.others.ndcg(scores).mean())
        return values


def tasks(options):
    """(name, what makes a part from size and draw, sizes)."""
    for shape in SHAPES:
        for truth in TRUTHS:
            yield f"{shape}; {truth}", partial(pap_of_ways, partial(generated, shape, truth)), SIZES
    if options.pairs:
        candidates = Candidates(*options.pairs)
        yield "3 numbers, 600 items", partial(pap_of_ways, candidates), SIZES
    yield "digits", Known(*(digits_as_queries(half) for half in (0, 1))), (10, 30, 100)
    if options.ltr_sample:
        parts = [svmlight_lists(options.ltr_sample / f"rank.{part}") for part in ("train", "test")]
        yield "ltr-sample", Known(*parts), (10, 30, 100)
    yield "TREC 2019, 2020", Known(*trec_years(), missing="lowest"), (10, 30)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, nargs=2)
    parser.add_argument("--ltr-sample", type=Path, help="with rank.train and rank.test")
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    options = parser.parse_args()
    cells = Cells(options.results, {"version": __version__})
    ways = (BEFORE, DEFAULT, DIFFERENCE)
    lines = []
    for name, make, sizes in tasks(options):
        for size in sizes:
            found = []
            for draw in range(options.draws):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    part = cells.get([name, size, draw], lambda m=make, s=size, d=draw: m(s, d))
                found.append(part)
            print(name, size, file=sys.stderr)
            means = {way: np.mean([part[way] for part in found]) for way in found[0]}
            leads = np.array([part[DEFAULT] - part[BEFORE] for part in found])
            error = leads.std(ddof=1) / np.sqrt(leads.size) if leads.size > 1 else np.nan
            shown = [f"{means[way]:.3f}" if way in means else "–" for way in ways]
            lines.append([f"{name}, {size}", *shown, f"{leads.mean():+.3f} ± {error:.3f}"])
    print("\n".join(table(("columns; truth, lists", *ways, "ahead of each"), lines)))


if __name__ == "__main__":
    main()
