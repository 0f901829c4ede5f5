"""From interactions to a better top of the list: re-rankers over the scores of recommenders.

First-stage recommenders are fitted on a part of the training interactions; of the rest, the labels,
re-rankers learn to weigh their scores. Then the recommenders are fitted on all training
interactions, and every method orders the items that a user does not know; the test interactions
say how well.

The recommenders and the candidate lists of all users are made once. Training is repeated over
`draws` of the training users, each with folds and seeds of its own, since which of two methods is
ahead by a few thousandths depends on them.
"""

import time
from dataclasses import dataclass

import numpy as np
from scipy import stats

from benchmarks.common.cells import Cells
from benchmarks.studies.rerank import first_stage, methods
from benchmarks.studies.rerank.data import inner_split, read
from benchmarks.studies.rerank.lists import Lists, build
from benchmarks.studies.rerank.methods import OURS
from structsvm_papk import __version__
from structsvm_papk.errors import InputError

LEVEL = 0.95


@dataclass(frozen=True)
class Plan:
    """What a run computes: re-rankers see `candidates` items of a user, who is shown k of them.

    They are trained on `train_users` random users, `draws` times; `standardised` says whether
    columns are brought to mean 0 and variance 1 within every user first.
    """

    k: int = 20
    candidates: int = 200
    train_users: int = 2000
    draws: int = 10
    standardised: bool = True

    def __post_init__(self):
        for name, least in (("k", 1), ("candidates", 1), ("train_users", 5), ("draws", 2)):
            if getattr(self, name) < least:
                raise InputError(f"{name} must be at least {least}, got {getattr(self, name)}")


def run(source, results, plan, names=(), callback=None):
    """The whole table: our re-ranker and those in `names`, by default all that can run here.

    `results` is a folder that keeps lists and fits: a run goes on from it.
    """
    unknown = [name for name in names if name not in methods.METHODS]
    if unknown:
        raise InputError(f"unknown method {unknown[0]!r}; choose from {', '.join(methods.METHODS)}")
    say = callback or (lambda text: None)
    say("reading")
    data = read(source)
    if data.n_items <= plan.k:
        raise InputError(f"{source} has {data.n_items} items; k={plan.k} has to be smaller")
    of_lists = {"k": plan.k, "candidates": plan.candidates}
    cells = Cells(results, {"version": __version__, "data": data.digest, **of_lists})
    history, held_back = inner_split(data.train)
    inner, train = _lists("inner", history, held_back, plan, cells, say)
    of_test, test = _lists("test", data.train, data.test, plan, cells, say)
    if plan.standardised:
        train, test = train.standardised(), test.standardised()
    names = tuple(dict.fromkeys((*(names or methods.available()), OURS)))
    fits = {name: [] for name in names}
    for draw in range(plan.draws):
        chosen = _drawn(train, plan, draw)
        for name in names:
            say(f"draw {draw + 1} of {plan.draws}: {name}")
            key = [name, draw, plan.train_users, plan.standardised]
            known = cells.load(key)
            if known is None:
                known = methods.outcome(name, train.subset(chosen), test, plan.k, draw)
                cells.save(key, known)
            fits[name].append(known)
    return _answer(data, plan, (inner, of_test), test, fits)


def _lists(part, history, relevant, plan, cells, say):
    """What is known of the recommenders of one split, and the lists of all users with labels."""
    folder = cells.folder.parent / part
    known = cells.load(part)
    if known is not None:
        return known, Lists.load(folder)
    users = np.flatnonzero(np.diff(relevant.indptr))
    if not users.size:
        raise InputError("no user has two training interactions: there is nothing to learn")
    began, seconds = time.process_time(), {}

    def fitted(name):
        seconds[name] = time.process_time() - began - sum(seconds.values())
        say(f"{part} split: {name} fitted")

    models = first_stage.fit_all(history, fitted)
    candidates = plan.candidates, plan.k
    lists, values = build(
        models, history, relevant, users, *candidates, lambda n: say(f"{part} split: candidates")
    )
    known = {
        "values": values,
        "seconds": seconds,
        "candidate_seconds": time.process_time() - began - sum(seconds.values()),
        "candidate_recall": float(lists.labels.sum() / lists.n_relevant.sum()),
    }
    lists.save(folder)
    cells.save(part, known)
    return known, lists


def _drawn(lists, plan, draw):
    """Places of random users who have a relevant candidate and another one."""
    n_pos = np.add.reduceat(lists.labels, lists.indptr[:-1], dtype=int)
    able = np.flatnonzero((n_pos > 0) & (n_pos < np.diff(lists.indptr)))
    return np.sort(np.random.default_rng(draw).permutation(able)[: plan.train_users])


def _answer(data, plan, stages, test, fits):
    """The table and what it was made from, of what JSON can say."""
    inner, of_test = stages
    k = plan.k
    ours = np.array([fit["ndcg"] for fit in fits[OURS]])
    rows = []
    for name, values in of_test["values"].items():
        means = {metric: float(np.mean(values[f"{metric}@{k}"])) for metric in ("recall", "pap")}
        seconds = inner["seconds"][name] + of_test["seconds"][name]
        row = {"name": name, "kind": "recommender", **means, "seconds": seconds}
        rows.append(row | compared(np.array([values[f"ndcg@{k}"]]), ours))
    for name, own in fits.items():
        names = ("recall", "pap", "seconds")
        means = {metric: float(np.mean([fit[metric] for fit in own])) for metric in names}
        row = {"name": name, "kind": "re-ranker", **means}
        row["settings"] = [fit["setting"] for fit in own]
        row["certificates"] = [fit["certificate"] for fit in own]
        rows.append(row | compared(np.array([fit["ndcg"] for fit in own]), ours))
    name, source, published = data.published
    return {
        "dataset": name,
        "n_users": data.n_users,
        "n_items": data.n_items,
        "n_train": int(data.train.nnz),
        "n_test": int(data.test.nnz),
        "remarks": data.remarks,
        **vars(plan),
        "n_test_users": test.users.size,
        "candidate_recall": of_test["candidate_recall"],
        "candidate_seconds": inner["candidate_seconds"] + of_test["candidate_seconds"],
        "rows": rows,
        "published": [
            {"name": label, "ndcg": ndcg, "recall": recall, "source": source}
            for label, (ndcg, recall) in (published.items() if k == 20 else ())
        ],
    }


def compared(ndcg, ours):
    """Mean NDCG, its spread over draws, and how far ours is ahead, with an interval.

    Both of shape (draws, users), or (1, users) for what is fitted once.
    """
    row = {"ndcg": float(ndcg.mean())}
    row["spread"] = float(ndcg.mean(axis=1).std(ddof=1)) if len(ndcg) > 1 else None
    lower, upper = interval(ours - ndcg)
    if np.array_equal(ndcg, ours):
        lower = upper = None
    return row | {"ours_ahead": float((ours - ndcg).mean()), "lower": lower, "upper": upper}


def interval(ahead):
    """Interval for the mean of differences, shape (draws, users), over new users and new draws.

    ``Var = Var_users / n_users + Var_draws / n_draws``, with Student's t at Satterthwaite's degrees
    of freedom.
    """
    parts, freedom = [], 0.0
    for means in (ahead.mean(axis=0), ahead.mean(axis=1)):
        parts.append(means.var(ddof=1) / means.size)
        freedom += parts[-1] ** 2 / (means.size - 1)
    error = np.sqrt(sum(parts))
    quantile = stats.t.ppf((1 + LEVEL) / 2, sum(parts) ** 2 / freedom) if error else 0.0
    mean, half = ahead.mean(), quantile * error
    return float(mean - half), float(mean + half)
