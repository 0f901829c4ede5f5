"""Candidates of users with the first-stage scores as features, and metrics over all unseen items.

Users come in blocks, so that memory holds the scores of all items for a few of them only; of the
rest the candidates are kept.
"""

import io
from dataclasses import dataclass

import numpy as np

from structsvm_papk import RankingData, metrics
from structsvm_papk.errors import InputError

_BLOCK_BYTES = 1 << 28
_FIELDS = ("users", "X", "labels", "indptr", "n_relevant", "n_unseen")


@dataclass(frozen=True)
class Lists:
    """Candidates of each user, none of which the user knows.

    X holds first-stage scores, each with mean 0 and variance 1 among the candidates of a user (0
    where all are equal); `n_relevant` and `n_unseen` count candidates or not.
    """

    users: np.ndarray
    X: np.ndarray
    labels: np.ndarray
    indptr: np.ndarray
    n_relevant: np.ndarray
    n_unseen: np.ndarray

    def ranking_data(self):
        """The lists as `RankingData`."""
        return RankingData(self.X, self.labels, self.indptr)

    def subset(self, keep):
        """The users where a mask is true."""
        sizes = np.diff(self.indptr)
        rows = np.repeat(keep, sizes)
        indptr = np.concatenate([[0], np.cumsum(sizes[keep])])
        return Lists(
            self.users[keep], self.X[rows], self.labels[rows], indptr,
            self.n_relevant[keep], self.n_unseen[keep],
        )  # fmt: skip

    def values(self, scores, k):
        """`metrics_of` over all unseen items: those that are no candidates tie at the end."""
        sizes = np.diff(self.indptr)
        found = np.add.reduceat(self.labels, self.indptr[:-1]) * (sizes > 0)
        lost = self.n_relevant - found
        others = np.minimum(self.n_unseen - sizes - lost, k)  # negatives that are no candidates
        owner = np.arange(self.users.size)
        user = [np.repeat(owner, n) for n in (sizes, lost, others)]
        below = np.full(lost.sum() + others.sum(), -np.inf)
        label = [self.labels, np.ones(lost.sum(), bool), np.zeros(others.sum(), bool)]
        return metrics_of(
            np.concatenate([scores, below]), np.concatenate(label), np.concatenate(user), k
        )

    def packed(self):
        """Bytes that `unpacked` reads."""
        stream = io.BytesIO()
        np.savez(stream, **{name: getattr(self, name) for name in _FIELDS})
        return stream.getvalue()

    @classmethod
    def unpacked(cls, path):
        """Lists of a file of `packed` bytes."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(**{name: arrays[name] for name in _FIELDS})
        except (OSError, ValueError, KeyError):
            raise InputError(f"{path} is damaged; delete it and run again") from None


def metrics_of(scores, labels, user, k):
    """NDCG, recall and pAp at k of each user, as lists; ties count against the relevant items.

    A user with fewer than k irrelevant ones has the pAp@k of the pairs that exist.
    """
    names = [f"ndcg@{k}", f"recall@{k}", f"pap@{k}"]
    table = metrics.evaluate(names, scores, labels, user, few_negatives="normalise")
    return {name: table[name].tolist() for name in names}


def build(models, history, relevant, users, n_candidates, k, callback=None):
    """Candidates of users with their features, and `metrics_of` every model by itself.

    Every model puts its best unseen items forward; a user's candidates are the `n_candidates` with
    the best place in any model (ties: the better mean score).
    """
    parts, rows, done = [], [[] for _ in models], 0
    for block, scores, seen, target in _blocks(models, history, relevant, users):
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
        _standardised(features, valid)[valid],
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


def _blocks(models, history, relevant, users):
    """Blocks of users with the scores of every model, and masks of known and relevant items."""
    n_items = history.shape[1]
    size = max(1, _BLOCK_BYTES // (4 * n_items * (len(models) + 4)))
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


def _standardised(features, valid):
    """Mean 0 and variance 1 within users."""
    count = np.maximum(valid.sum(axis=1), 1)[:, None]
    weight = valid[:, :, None]
    mean = (features * weight).sum(axis=1, dtype=np.float64) / count
    centred = features - mean[:, None]
    spread = np.sqrt((np.square(centred) * weight).sum(axis=1) / count)
    size = np.abs(features).max(axis=1, initial=0)
    same = spread <= 1e-6 * np.maximum(size, 1e-30)  # rounding of equal scores
    return np.where(same[:, None], 0, centred / np.where(same, 1, spread)[:, None]).astype(
        np.float32
    )
