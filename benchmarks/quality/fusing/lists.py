"""Lists with a column for each run, NaN where it did not retrieve, and where they come from."""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
import pandas as pd

from benchmarks.studies.rerank import first_stage
from benchmarks.studies.rerank.data import inner_split, read
from structsvm_papk import metrics
from structsvm_papk.datasets import retrieval_runs
from structsvm_papk.fusion import join_lists

RETRIEVED = 100  # items that each recommender puts forward
_BLOCK = 256


@dataclass(frozen=True)
class JoinedLists:
    """What several runs retrieved, one list after the other.

    Attributes
    ----------
    runs : ndarray of str, shape (n_runs,)
    X : ndarray of shape (n_rows, n_runs)
    grades : ndarray of int, shape (n_rows,)
    sizes : ndarray of int, shape (n_lists,)
    missed : ndarray of int, shape (n_missed,)
        Grades of relevant items that no run retrieved; they count in every ideal.
    missed_sizes : ndarray of int, shape (n_lists,)
    k : int
        Number of items that are shown.
    level : int
        Grades of at least this are relevant.
    """

    runs: np.ndarray
    X: np.ndarray
    grades: np.ndarray
    sizes: np.ndarray
    missed: np.ndarray
    missed_sizes: np.ndarray
    k: int
    level: int = 1

    @property
    def n_lists(self):
        """Number of lists."""
        return self.sizes.size

    @cached_property
    def groups(self):
        """List of each row."""
        return np.repeat(np.arange(self.sizes.size), self.sizes)

    @property
    def relevant(self):
        """Which rows are relevant."""
        return self.grades >= self.level

    @property
    def learnable(self):
        """Which lists hold a relevant item and another one."""
        n_relevant = np.bincount(self.groups[self.relevant], minlength=self.n_lists)
        return (n_relevant > 0) & (n_relevant < self.sizes)

    def subset(self, chosen):
        """Lists by their places."""
        return JoinedLists(
            self.runs,
            self.X[_rows(self.sizes, chosen)],
            self.grades[_rows(self.sizes, chosen)],
            self.sizes[chosen],
            self.missed[_rows(self.missed_sizes, chosen)],
            self.missed_sizes[chosen],
            self.k,
            self.level,
        )

    def ndcg(self, scores):
        """NDCG@k of each list, its ideal from all relevant items; 0 where there are none."""
        missed = np.repeat(np.arange(self.n_lists), self.missed_sizes)
        table = metrics.evaluate(
            f"ndcg@{self.k}",
            np.concatenate([scores, np.full(missed.size, -np.inf)]),
            np.concatenate([self.grades, self.missed]),
            np.concatenate([self.groups, missed]),
            ties="half",
            no_positives="zero",
        )
        return table[f"ndcg@{self.k}"]

    def frame(self):
        """As `structsvm_papk.fusion.join_lists` makes it."""
        place = np.arange(self.groups.size)
        return pd.DataFrame(self.X, columns=self.runs).assign(query=self.groups, document=place)[
            ["query", "document", *self.runs]
        ]

    def save(self, file):
        """Write into an .npz file."""
        np.savez(file, **{field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def load(cls, file):
        """Read what `save` wrote."""
        with np.load(file) as kept:
            values = {field.name: kept[field.name] for field in fields(cls)}
        return cls(**values | {"k": int(values["k"]), "level": int(values["level"])})


def together(first, second):
    """Lists of the same runs, one after the other."""
    names = ("X", "grades", "sizes", "missed", "missed_sizes")
    both = {n: np.concatenate([getattr(first, n), getattr(second, n)]) for n in names}
    return JoinedLists(first.runs, **both, k=first.k, level=first.level)


def _rows(sizes, chosen):
    """Rows of lists that have these sizes."""
    starts = np.concatenate([[0], np.cumsum(sizes)])[chosen]
    lengths = sizes[chosen]
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if ends.size else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)


def trec_years(k=10):
    """The TREC Deep Learning tracks 2019 and 2020 of `datasets.retrieval_runs`."""
    sample = retrieval_runs()
    return [_of_collection(year, k) for year in (sample.train, sample.test)]


def _of_collection(collection, k):
    joined = join_lists(collection.runs, judgments=collection.judgments)
    joined = joined.sort_values(["query", "document"], ignore_index=True)
    list_of_row, queries = pd.factorize(joined["query"])
    pairs = pd.MultiIndex.from_frame(joined[["query", "document"]])
    judged = collection.judgments
    judged = judged[(judged["grade"] > 0) & judged["query"].isin(queries)]
    unseen = judged[~pd.MultiIndex.from_frame(judged[["query", "document"]]).isin(pairs)]
    unseen_list = pd.Index(queries).get_indexer(unseen["query"])
    runs = np.array(list(collection.runs))
    return JoinedLists(
        runs,
        joined[list(runs)].to_numpy(float),
        joined["grade"].to_numpy(int),
        np.bincount(list_of_row, minlength=queries.size),
        unseen["grade"].to_numpy(int)[np.argsort(unseen_list, kind="stable")],
        np.bincount(unseen_list, minlength=queries.size),
        k,
    )


def recommended(source, n_users, k=20, seed=0):
    """Top lists of nine recommenders on people's interactions, for users drawn at random.

    Recommenders are fitted on four fifths of a user's training interactions; the last fifth are the
    relevant items. `source` is a folder or zip as the study `rerank` reads it.
    """
    history, held_back = inner_split(read(source).train)
    return of_recommenders(history, held_back, history, n_users, k, seed)


def of_recommenders(history, held_back, known, n_users, k, seed):
    """Lists of users drawn at random, all where `n_users` is None.

    Recommenders learn from `history`, put forward what is not in `known`, and are judged by the
    grades in `held_back`: CSR of users and items.
    """
    models = first_stage.fit_all(history)
    able = np.flatnonzero(np.asarray(held_back.max(axis=1).todense()).ravel() > 0)
    users = np.sort(np.random.default_rng(seed).permutation(able)[:n_users])
    parts = []
    for start in range(0, users.size, _BLOCK):
        block = users[start : start + _BLOCK]
        scores = [model.scores(block) for model in models]
        parts += _of_users(scores, known[block].toarray() > 0, held_back[block].toarray())
    return JoinedLists(
        np.array([model.name for model in models]),
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.grades for part in parts]),
        np.array([len(part.X) for part in parts]),
        np.concatenate([part.missed for part in parts]),
        np.array([part.missed.size for part in parts]),
        k,
    )


@dataclass(frozen=True)
class _User:
    """Rows of a user, their grades, and those of relevant items that nobody retrieved."""

    X: np.ndarray
    grades: np.ndarray
    missed: np.ndarray


def _of_users(scores, known, wanted):
    """A `_User` for each user of a block."""
    retrieved = np.stack([_best(of_model, known) for of_model in scores], axis=2)
    for user, here in enumerate(retrieved):
        listed = here.any(axis=1)
        items = np.flatnonzero(listed)
        own = np.stack([of_model[user, items] for of_model in scores], axis=1)
        grades = wanted[user].astype(int)
        missed = grades[(grades > 0) & ~listed]
        yield _User(np.where(here[items], own, np.nan), grades[items], missed)


def _best(scores, known):
    """Which items are among the best of a user that the user does not know."""
    unknown = np.where(known, -np.inf, scores)
    n = min(RETRIEVED, scores.shape[1])
    top = np.argpartition(-unknown, n - 1, axis=1)[:, :n]
    mask = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(mask, top, True, axis=1)
    return mask & ~known
