"""Candidate lists with first-stage scores as features, and how well any order of them does."""

from dataclasses import dataclass, fields, replace

import numpy as np

from structsvm_papk import RankingData, metrics
from structsvm_papk.errors import InputError

BLOCK_BYTES = 1 << 28  # of scores and masks at a time


@dataclass(frozen=True)
class Lists:
    """Candidates of each user, none of which the user knows.

    X holds raw first-stage scores, a column for each recommender; `n_relevant` and `n_unseen` count
    candidates or not.
    """

    users: np.ndarray
    X: np.ndarray
    labels: np.ndarray
    indptr: np.ndarray
    n_relevant: np.ndarray
    n_unseen: np.ndarray

    @property
    def groups(self):
        """Place in `users` of the user of each row."""
        return np.repeat(np.arange(self.users.size), np.diff(self.indptr))

    def ranking_data(self):
        """The lists as `RankingData`."""
        return RankingData(self.X, self.labels, self.indptr)

    def subset(self, chosen):
        """Users by their places."""
        sizes = np.diff(self.indptr)[chosen]
        indptr = np.concatenate([[0], np.cumsum(sizes)])
        rows = np.repeat(self.indptr[chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
        return Lists(
            self.users[chosen], self.X[rows], self.labels[rows], indptr,
            self.n_relevant[chosen], self.n_unseen[chosen],
        )  # fmt: skip

    def standardised(self):
        """With mean 0 and variance 1 of every column within every user; 0 where all are equal."""
        sizes = np.diff(self.indptr)

        def mean(values):
            return np.add.reduceat(values, self.indptr[:-1]) / sizes[:, None]

        X = self.X.astype(np.float64)
        largest = np.sqrt(mean(X * X))
        X -= np.repeat(mean(X), sizes, axis=0)
        spread = np.sqrt(mean(X * X))
        same = spread <= 1e-6 * np.maximum(largest, 1e-30)  # rounding of equal scores
        X *= np.repeat(np.where(same, 0, 1 / np.where(same, 1, spread)), sizes, axis=0)
        return replace(self, X=X.astype(np.float32))

    def save(self, folder):
        """Write each array into a file of its own."""
        folder.mkdir(parents=True, exist_ok=True)
        for field in fields(self):
            np.save(folder / f"{field.name}.npy", getattr(self, field.name))

    @classmethod
    def load(cls, folder):
        """Read what `save` wrote."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: np.load(folder / f"{name}.npy") for name in names})

    def values(self, scores, k):
        """`metrics_of` over all unseen items: those that are no candidates tie at the end."""
        sizes = np.diff(self.indptr)
        lost = self.n_relevant - np.add.reduceat(self.labels, self.indptr[:-1], dtype=int)
        others = np.minimum(self.n_unseen - sizes - lost, k)  # negatives that are no candidates
        owner = np.arange(self.users.size)
        user = [np.repeat(owner, n) for n in (sizes, lost, others)]
        below = np.full(lost.sum() + others.sum(), -np.inf)
        label = [self.labels, np.ones(lost.sum(), bool), np.zeros(others.sum(), bool)]
        return metrics_of(
            np.concatenate([scores, below]), np.concatenate(label), np.concatenate(user), k
        )


def metrics_of(scores, labels, user, k):
    """NDCG, recall and pAp at k of each user, as lists; ties count against the relevant items.

    A user with fewer than k irrelevant ones has the pAp@k of the pairs that exist.
    """
    names = [f"ndcg@{k}", f"recall@{k}", f"pap@{k}"]
    table = metrics.evaluate(names, scores, labels, user, few_negatives="normalise")
    return {name: table[name].tolist() for name in names}


def build(
    models, history, relevant, users, n_candidates, k, callback=None, block_bytes=BLOCK_BYTES
):
    """Candidates of users with their features, and `metrics_of` every model by itself.

    Every model puts its best unseen items forward; a user's candidates, at least one, are the
    `n_candidates` with the best place in any model (ties: the better mean score).
    """
    parts = []
    rows = [[] for _ in models]
    done = 0
    for block, scores, seen, target in _blocks(models, history, relevant, users, block_bytes):
        parts.append(_part_of_lists(scores, seen, target, n_candidates))
        for s, out in zip(scores, rows, strict=True):
            values, labels, user = _deciding(s, seen, target, k)
            out.append((values, labels, user + done))
        done += block.size
        if callback is not None:
            callback(block.size)
    X, labels, sizes, n_relevant, n_unseen = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    values = {
        model.name: metrics_of(*(np.concatenate(c) for c in zip(*out, strict=True)), k)
        for model, out in zip(models, rows, strict=True)
    }
    return Lists(users, X, labels, indptr, n_relevant, n_unseen), values


def _part_of_lists(scores, seen, target, n_candidates):
    """Features and labels of the candidates of a block, and three counts of each user."""
    chosen = _candidates(scores, seen, n_candidates)
    features = np.stack([np.take_along_axis(s, chosen, 1) for s in scores], axis=2)
    valid = ~np.take_along_axis(seen, chosen, 1)
    return (
        features[valid],
        np.take_along_axis(target, chosen, 1)[valid],
        valid.sum(axis=1),
        target.sum(axis=1),
        (~seen).sum(axis=1),
    )


def _deciding(s, seen, target, k):
    """Scores, labels and users of the relevant items and the k best others: they decide all."""
    owner, item = np.nonzero(target)
    others = np.where(target | seen, -np.inf, s)
    k = min(k, s.shape[1])
    best = -np.partition(-others, k - 1, axis=1)[:, :k]
    there = np.isfinite(best)
    values = np.concatenate([s[owner, item], best[there]])
    user = np.concatenate([owner, np.nonzero(there)[0]])
    return values, np.arange(values.size) < owner.size, user


def _blocks(models, history, relevant, users, block_bytes):
    """Blocks of users with the scores of every model, and masks of known and relevant items."""
    n_items = history.shape[1]
    size = max(1, block_bytes // (4 * n_items * (len(models) + 4)))
    for start in range(0, users.size, size):
        block = users[start : start + size]
        scores = [model.scores(block) for model in models]
        for model, s in zip(models, scores, strict=True):
            if not np.isfinite(s).all():
                user = block[np.flatnonzero(~np.isfinite(s).all(axis=1))[0]]
                raise InputError(f"the first-stage model {model.name} has no score for user {user}")
        yield block, scores, history[block].toarray() > 0, relevant[block].toarray() > 0


def _candidates(scores, seen, n):
    """Items with the best place in any model; known ones only where there are no others."""
    n = min(n, seen.shape[1])
    place = np.full(seen.shape, n, dtype=np.float32)
    total = np.zeros(seen.shape, dtype=np.float32)
    ranks = np.broadcast_to(np.arange(n, dtype=np.float32), (len(seen), n))
    for s in scores:
        unseen = np.where(seen, -np.inf, s)
        top = np.argpartition(-unseen, n - 1, axis=1)[:, :n]
        values = np.take_along_axis(unseen, top, 1)
        top = np.take_along_axis(top, np.argsort(-values, axis=1, kind="stable"), 1)
        known = np.take_along_axis(place, top, 1)
        np.put_along_axis(place, top, np.minimum(known, ranks), 1)
        low, high = s.min(axis=1, keepdims=True), s.max(axis=1, keepdims=True)
        total += (s - low) / np.maximum(high - low, 1e-12)
    place -= total / (len(scores) + 1)  # below 1: the mean score decides between equal places
    place[seen] = np.inf
    return np.argpartition(place, n - 1, axis=1)[:, :n]
