"""Raw scores of recommenders as features: what scaling does for each method, on held-out users.

    python -m benchmarks raw_scores LISTS [--train-users 2000] [--test-users 2500] [--draws 3]
        [--k 20] [--method NAME ..] [--results DIR] [--json]

LISTS is a folder of candidate lists as ``python -m benchmarks studies rerank FOLDER --results RUN``
keeps them: RUN/inner, where recommenders and labels are of the training interactions alone. Users
are drawn at random to learn from, others to be measured on; settings are chosen on folds of the
former. NDCG@k counts all items that a user does not know. `--results` keeps finished fits.
"""

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path
from time import process_time

import numpy as np
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import table
from benchmarks.studies.rerank import methods
from benchmarks.studies.rerank.lists import Lists
from structsvm_papk import PAPKRanker, PAPKRankerCV
from structsvm_papk.errors import InputError

SCALINGS = [None, "standardize", "rank"]


def ranker(**settings):
    return methods.Ranker(lambda k, folds, seed: PAPKRanker(k=k, **settings))


def search(**settings):
    return methods.Ranker(
        lambda k, folds, seed: PAPKRankerCV(
            k=k, surrogates=("ts", "avg"), cv=folds, scoring=f"ndcg@{k}", **settings
        )
    )


# name -> method, and whether scikit-learn's StandardScaler comes before it
ROWS = {
    "default": (ranker(), False),
    "default, raw (`standardize=False`)": (ranker(standardize=False), False),
    'default, `user_scaling="standardize"`': (ranker(user_scaling="standardize"), False),
    'default, `user_scaling="rank"`': (ranker(user_scaling="rank"), False),
    "logistic regression, raw": (methods.METHODS["logistic regression"], False),
    "logistic regression, StandardScaler": (methods.METHODS["logistic regression"], True),
    "logistic regression on pairs, raw": (methods.METHODS["logistic regression on pairs"], False),
    "logistic regression on pairs, StandardScaler": (
        methods.METHODS["logistic regression on pairs"], True,
    ),
    "trees, lambdarank": (methods.METHODS["trees, lambdarank"], False),
    "search": (search(), False),
    "search over scalings, too": (search(user_scaling=SCALINGS), False),
}  # fmt: skip


def main():
    options = arguments()
    try:
        answer = run(options)
    except InputError as error:
        sys.exit(f"Error: {error}")
    if options.json:
        print(json.dumps(answer, indent=1))
        return
    head = ("columns and method", f"NDCG@{options.k}", "± draws", "default ahead (± error)", "s")
    print("\n".join(table(head, map(cells_of, answer["rows"]))))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lists", type=Path)
    parser.add_argument("--train-users", type=int, default=2000)
    parser.add_argument("--test-users", type=int, default=2500)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--method", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--results", type=Path, help="keep finished fits in this folder")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def run(options):
    """NDCG of every method on the same held-out users; the best single score first."""
    k, sizes = options.k, (options.train_users, options.test_users)
    for name, least in (("train_users", 5), ("test_users", 2), ("draws", 1), ("k", 1)):
        if getattr(options, name) < least:
            raise InputError(f"{name} must be at least {least}, got {getattr(options, name)}")
    try:
        lists = Lists.load(options.lists)
    except OSError as error:
        raise InputError(f"{options.lists} holds no lists of the study: {error}") from None
    names = list(dict.fromkeys(["default", *options.method]))
    about = {"lists": options.lists.resolve().name, "n_rows": len(lists.labels), "k": k}
    cells = Cells(options.results, about)
    gains = {name: [] for name in ["best single score", *names]}
    seconds = dict.fromkeys(gains, 0.0)
    for draw in range(options.draws):
        train, test = drawn(lists, *sizes, draw)
        single = [test.values(column, k)[f"ndcg@{k}"] for column in test.X.T]
        gains["best single score"].append(max(single, key=np.mean))
        for name in names:
            key = [name, draw, *sizes]
            known = cells.load(key) or outcome(name, train, test, k, draw)
            cells.save(key, known)
            gains[name].append(known["ndcg"])
            seconds[name] += known["seconds"] / options.draws
            print(f"draw {draw}, {name}: {np.mean(known['ndcg']):.4f}", file=sys.stderr)
    rows = [row(name, np.array(gains[name]), np.array(gains["default"])) for name in gains]
    for each in rows:
        each["seconds"] = seconds[each["name"]]
    return {**about, "train_users": sizes[0], "test_users": sizes[1], "draws": options.draws,
            "rows": rows}  # fmt: skip


def drawn(lists, n_train, n_test, draw):
    """Lists of random users who have a relevant candidate and another one, and of other users."""
    order = np.random.default_rng(draw).permutation(lists.users.size)
    n_pos = np.add.reduceat(lists.labels, lists.indptr[:-1], dtype=int)[order]
    able = (n_pos > 0) & (n_pos < np.diff(lists.indptr)[order])
    if able.sum() < n_train or order.size < n_train + n_test:
        raise InputError(f"{order.size} users are too few for {n_train} and {n_test} others")
    chosen = order[able][:n_train]
    others = order[~np.isin(order, chosen)][:n_test]
    return lists.subset(np.sort(chosen)), lists.subset(np.sort(others))


def outcome(name, train, test, k, draw):
    method, scaled = ROWS[name]
    if scaled:
        scaler = StandardScaler().fit(train.X)
        train, test = (replace(part, X=scaler.transform(part.X)) for part in (train, test))
    began = process_time()
    fit = method.fit(train, k, GroupKFold(5, shuffle=True, random_state=draw), draw)
    seconds = process_time() - began
    ndcg = test.values(fit.scores(test), k)[f"ndcg@{k}"]
    return {"ndcg": ndcg, "seconds": seconds, "setting": fit.setting}


def row(name, ndcg, default):
    """Mean over draws, and by how much the default is ahead, with the error over held-out users."""
    ahead = (default - ndcg).mean(axis=0)
    spread = float(ndcg.mean(axis=1).std(ddof=1)) if len(ndcg) > 1 else None
    error = float(ahead.std(ddof=1) / np.sqrt(ahead.size))
    return {"name": name, "ndcg": float(ndcg.mean()), "spread": spread,
            "default_ahead": float(ahead.mean()), "error": error}  # fmt: skip


def cells_of(row):
    spread = "–" if row["spread"] is None else f"{row['spread']:.4f}"
    ahead = f"{row['default_ahead']:+.4f} ± {row['error']:.4f}"
    return row["name"], f"{row['ndcg']:.4f}", spread, ahead, f"{row['seconds']:.0f}"


if __name__ == "__main__":
    main()
