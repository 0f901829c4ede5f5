"""From how few users, or how short a list, does a metric tell two close rankers apart?

Definition 3 of Wang et al. (2013): a metric distinguishes two scorers consistently when from some
size N on the better one is ahead at every size n >= N. Nested samples are drawn, and the share of
replicates in which that holds is reported against N: for lists that grow (`by="items"`, the paper's
setting) and for a mean over more and more users (`by="users"`, a recommender's question).
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.common.cells import Cells
from structsvm_papk import metrics
from structsvm_papk.errors import InputError

NDCG_VARIANTS = {
    "NDCG log": ("ndcg", None),
    "NDCG r^-1/2": ("ndcg", lambda ranks: ranks**-0.5),
    "NDCG 2^-r": ("ndcg", lambda ranks: np.exp2(-ranks)),
    "NDCG log, k = n/5": ("ndcg@n/5", None),
}
OTHERS = {
    "pAp@10": ("pap@10", None),
    "pAp, k = n/10": ("pap@n/10", None),
    "precision@10": ("precision@10", None),
    "precision, k = n/5": ("precision@n/5", None),
    "AUC": ("auc", None),
    "AP": ("ap", None),
}
METRICS = NDCG_VARIANTS | OTHERS


@dataclass(frozen=True)
class Distinguishability:
    """Per metric, shares of replicates where the better scorer leads from N on, and at N."""

    by: str
    sizes: np.ndarray
    share: dict
    right_now: dict
    n_replicates: int
    description: str

    def needed(self, share=0.95):
        """Smallest N per metric, but the largest, from which this share stays right; or None."""
        found = {}
        for name, curve in self.share.items():
            enough = np.flatnonzero(curve[:-1] >= share)
            found[name] = int(self.sizes[enough[0]]) if enough.size else None
        return found

    def as_dict(self):
        """Plain values, for JSON."""
        return {
            "by": self.by,
            "description": self.description,
            "n_replicates": self.n_replicates,
            "sizes": self.sizes.tolist(),
            "share": {name: curve.tolist() for name, curve in self.share.items()},
            "needed_95": self.needed(),
        }


def run(
    by="users",
    *,
    n_replicates=200,
    largest=None,
    n_items=100,
    noise=(1.0, 1.15),
    positive_rate=0.1,
    chosen=None,
    seed=0,
    cells=None,
):
    """Two scorers that see an item's quality through noise; the first through a little less.

    Quality x ~ N(0, 1), Pr[Y = 1 | x] = sigmoid(2 x + c) with c set for the positive rate, scores x
    + noise * N(0, 1), independent between the scorers. Users (lists of `n_items`) or the items of
    one list are added, up to `largest`: 2000 users or 20000 items by default.
    """
    if by not in ("users", "items"):
        raise InputError(f"by={by!r} must be 'users' or 'items'")
    if not 0 < noise[0] < noise[1]:
        raise InputError(f"noise={noise}: the first scorer must have less noise, and both some")
    names = list(METRICS if chosen is None else chosen)
    unknown = sorted(set(names) - set(METRICS))
    if unknown:
        raise InputError(f"no metric {', '.join(unknown)}; choose from {', '.join(METRICS)}")
    largest = largest or (2000 if by == "users" else 20_000)
    sizes = _sizes(largest, start=5 if by == "users" else 50)
    offset = _offset(positive_rate)
    ahead = np.empty((len(names), n_replicates, sizes.size), dtype=bool)
    rows = largest * n_items if by == "users" else largest
    advantage = _by_users if by == "users" else _by_items

    def replicate(stream):
        drawn = _draw(np.random.default_rng(stream), rows, noise, offset)
        found = [advantage(METRICS[name], drawn, sizes, n_items) for name in names]
        return (np.array(found) > 0).tolist()

    cells = cells or Cells()
    for number, stream in enumerate(np.random.SeedSequence(seed).spawn(n_replicates)):
        key = ["distinguishability", by, rows, n_items, *noise, positive_rate, *names, seed, number]
        ahead[:, number] = cells.get(key, partial(replicate, stream))
    return Distinguishability(
        by=by,
        sizes=sizes,
        share={name: _from_there_on(ahead[m]).mean(axis=0) for m, name in enumerate(names)},
        right_now={name: ahead[m].mean(axis=0) for m, name in enumerate(names)},
        n_replicates=n_replicates,
        description=(
            f"noise {noise[0]:g} against {noise[1]:g}, {positive_rate:.0%} positives"
            + (f", {n_items} items a user" if by == "users" else "")
        ),
    )


def _sizes(largest, start):
    if largest < 2 * start:
        raise InputError(f"largest={largest} is too small; use at least {2 * start}")
    return np.unique(np.geomspace(start, largest, 30).round().astype(int))


def _from_there_on(ahead):
    """Whether the better scorer is ahead at this and at every larger size."""
    return np.logical_and.accumulate(ahead[:, ::-1], axis=1)[:, ::-1]


def _offset(positive_rate):
    """The c with E sigmoid(2 x + c) = positive_rate, by Gauss-Hermite quadrature."""
    from scipy.optimize import brentq
    from scipy.special import expit

    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    return brentq(lambda c: weights @ expit(2 * nodes + c) - positive_rate, -60, 60)


def _draw(rng, n_rows, noise, offset):
    quality = rng.standard_normal(n_rows)
    labels = rng.random(n_rows) < 1 / (1 + np.exp(-2 * quality - offset))
    scores = [quality + spread * rng.standard_normal(n_rows) for spread in noise]
    return scores, labels.view(np.uint8)


def _values(metric, scores, labels, indptr, n_items):
    name, discount = metric
    base, _, part = name.partition("@n/")
    name = f"{base}@{max(n_items // int(part), 1)}" if part else name
    table = metrics.evaluate(name, scores, labels, indptr=indptr, discount=discount)
    return table.values[:, 0]


def _by_users(metric, drawn, sizes, n_items):
    """Difference of the means over the first N users, for every N."""
    scores, labels = drawn
    indptr = np.arange(0, labels.size + 1, n_items)
    one, two = (_values(metric, s, labels, indptr, n_items) for s in scores)
    kept = ~np.isnan(one)
    total, count = np.cumsum(np.where(kept, one - two, 0.0)), np.cumsum(kept)
    return total[sizes - 1] / np.maximum(count[sizes - 1], 1)


def _by_items(metric, drawn, sizes, _):
    """Difference on the first N items, for every N."""
    scores, labels = drawn
    differences = np.empty(sizes.size)
    for i, n in enumerate(sizes):
        one, two = (_values(metric, s[:n], labels[:n], [0, n], int(n))[0] for s in scores)
        differences[i] = one - two
    return np.nan_to_num(differences)


def figure(result):
    """Share of replicates that stay right, against N."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(7.5, 4.8), layout="constrained")
    ax = drawn.add_subplot()
    for name in sorted(result.share, key=lambda name: -float(result.share[name].sum())):
        style = "--" if name.startswith("NDCG") else "-"
        ax.plot(result.sizes[:-1], result.share[name][:-1], style, label=name, linewidth=1.6)
    ax.axhline(0.95, color="0.7", linewidth=0.8)
    ax.set_xscale("log")
    ax.set_ylim(0, 1.02)
    ax.set_xlabel("users" if result.by == "users" else "items in the list")
    ax.set_ylabel("share of replicates: better ranker ahead from here on")
    ax.set_title(
        f"Which metric tells two close rankers apart?\n{result.description}, "
        f"{result.n_replicates} replicates",
        fontsize=10,
    )
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    return drawn
