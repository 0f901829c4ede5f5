"""Random tables of users, items, scores and labels, with ids of every type, each from one seed."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
from helpers.reference_metrics import plain

_TEXTS = (
    *("007", "7", "07", "+7", "7.0", " 7", "7 ", "1e3", "1000", "1E3", "1000.0", "1_000"),
    *("12345678901234567890", "12345678901234567891", "9007199254740993", "9007199254740992"),
    *("0", "00", "-0", "0x10", "16", "nan", "NaN", "None", "null", "NA", "inf", "Infinity"),
    *("True", "true", "a", "A", "é", "e\u0301", "a,b", 'say "x"', "x;y", "#1", "'", "٧", "1,5"),
)
_MIXED = (1, "1", 2, "2", 1.5, "1.5", -1, "-1")
TIES = ("loss", "half", "win", "threshold")
RULES = {
    "ties": TIES,
    "few_negatives": ("exclude", "normalise", "as_wins"),
    "no_positives": ("exclude", "zero", "one", "nan"),
    "ideal": ("achievable", "all_places"),
    "mean": ("user", "positives", "pairs", "pooled"),
}


@dataclass
class Drawn:
    """One table; the i-th row belongs to the user ``users[i]``, an index into `user_ids`.

    Ids are different Python values of the family `kind`; items are numbered like users.
    """

    users: np.ndarray
    items: np.ndarray
    user_ids: list
    item_ids: list
    kind: str
    scores: np.ndarray
    labels: np.ndarray
    metrics: list
    rules: dict

    @property
    def words(self):
        """The table in a line."""
        return (
            f"{len(self.user_ids)} users, {self.users.size} rows, ids: {self.kind}, "
            f"{', '.join(self.metrics)}; " + ", ".join(f"{k}={v}" for k, v in self.rules.items())
        )

    def lists(self, scores=None, gains=None):
        """Rows (score, relevant, gain) of each user."""
        scores = self.scores if scores is None else scores
        gains = self.labels.astype(int) if gains is None else gains
        rows = [[] for _ in self.user_ids]
        columns = (plain(scores), plain(self.labels), plain(gains))
        for u, *row in zip(self.users, *columns, strict=True):
            rows[u].append(tuple(row))
        return rows

    def without_auc(self):
        """For lists that are cut, whose mean is over users."""
        self.metrics = [name for name in self.metrics if name != "auc"]
        self.rules = self.rules | {"mean": "user"}

    def users_column(self):
        """The id of every row's user, as an array."""
        return column([self.user_ids[code] for code in self.users], self.kind)

    def items_column(self):
        """The id of every row's item, as an array."""
        return column([self.item_ids[code] for code in self.items], self.kind)


def column(values, kind):
    """Ids of a family as an array."""
    if kind in ("mixed", "text objects"):
        return np.array(values, dtype=object)
    return np.array(values, dtype=np.uint64 if kind == "uint64" else None)


def draw(rng):
    """A table; every choice comes from the generator."""
    kind = str(rng.choice(list(FAMILIES)))
    most = 6 if kind == "mixed" or rng.random() < 0.7 else 16
    n_users = int(rng.integers(1 if most == 6 else 10, most))
    sizes = rng.integers(1, 8, n_users)
    users = np.repeat(np.arange(n_users), sizes)
    items = np.concatenate([rng.permutation(8)[:size] for size in sizes])
    levels = int(rng.choice([1, 2, 3, 6, 50]))
    scores = rng.integers(-levels, levels + 1, users.size) / rng.choice([1.0, 4.0, 3.0])
    labels = rng.random(users.size) < rng.choice([0.2, 0.5, 0.8])
    order = rng.permutation(users.size) if rng.random() < 0.6 else np.arange(users.size)
    return Drawn(
        users[order], items[order], FAMILIES[kind](rng, n_users), FAMILIES[kind](rng, 8), kind,
        scores[order], labels[order], _metrics(rng),
        {name: str(rng.choice(choices)) for name, choices in RULES.items()},
    )  # fmt: skip


def _metrics(rng):
    k = int(rng.integers(1, 6))
    names = [f"pap@{k}", f"pauc@{k}", "auc", f"precision@{k}", f"recall@{k}", "ap"]
    names += [f"ndcg@{k}", "ndcg", "rr", f"auc@{k}"]
    return [str(n) for n in rng.choice(names, int(rng.integers(2, 6)), replace=False)]


def _from_pool(pool):
    return lambda rng, n: [pool[i] for i in rng.permutation(len(pool))[:n]]


def _near(start, step=1):
    return lambda rng, n: [start + step * int(i) for i in rng.permutation(n)]


FAMILIES = {
    "ints": _near(1),
    "negative ints": _near(-9, 3),
    "ints beyond 2^53": _near(2**53),
    "uint64": _near(2**64 - 1, -1),
    "sparse ints": _near(5, 10**12),
    "floats": _near(0.5),
    "whole floats": _near(1.0),
    "text": _from_pool(_TEXTS),
    "text objects": _from_pool(_TEXTS),
    "mixed": _from_pool(_MIXED),
}
