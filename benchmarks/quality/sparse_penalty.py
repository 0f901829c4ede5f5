"""What to divide sparse columns by, and how strong the penalty on them should be.

    python -m benchmarks sparse_penalty [--pairs train.tsv test.tsv] [--sizes 0 1 2] [--full]
        [--json FILE]

Curves of pAp@5 on new users over the strength of the penalty, for columns divided each by its own
deviation and for all divided by one number (the root of their mean variance). Another common number
only moves the second curve along: that of SVM^light, the root of the mean squared row norm, is
printed as the place on it. Generated: 20 one-hot columns a row, of power-law frequency, four
truths. With `--pairs` (tables of user and item, tab-separated) real lists: a row is a user and a
candidate; its columns are the candidate, and each pair of an item of the user's history and it.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from structsvm_papk import PAPKRanker, RankingData
from structsvm_papk.rankers.settings import Evidence

K = 5
PER_ROW = 20
SIZES = (
    (20_000, 5_000, 100),
    (50_000, 12_500, 250),
    (100_000, 25_000, 500),
)  # rows, columns, users
LIMIT = 8  # seconds of a fit
TRUTHS = ("dense", "rare", "few", "noisy")
STRENGTHS = 10.0 ** np.arange(-2.0, 6.5, 0.75)  # over the rule's 2 d / p with d = 1


def one_hot(n_rows, d, n_users, truth, seed=0):
    """Rows of PER_ROW columns of power-law frequency; the highest 10% are relevant."""
    rng = np.random.default_rng(seed)
    share = 1 / np.arange(1, d + 1) ** 1.1
    columns = rng.choice(d, size=n_rows * PER_ROW, p=share / share.sum())
    rows = np.repeat(np.arange(n_rows), PER_ROW)
    X = sparse.csr_array((np.ones(columns.size), (rows, columns)), shape=(n_rows, d))
    X.data[:] = 1.0
    w = rng.normal(size=d)
    if truth == "rare":  # weights grow as 1 / deviation
        frequency = np.bincount(columns, minlength=d) / n_rows
        w /= np.sqrt(frequency + 1 / n_rows)
    if truth == "few":
        w *= rng.random(d) < 0.05
    score = X @ w
    score += (3.0 if truth == "noisy" else 0.3) * score.std() * rng.normal(size=n_rows)
    users = rng.integers(n_users, size=n_rows)
    return X, score > np.quantile(score, 0.9), users


def histories(train_file, test_file, n_users=600, n_candidates=100, n_history=20, seed=0):
    """Candidates of real users: one-hot items, and pairs of an item of the history and it."""
    rng = np.random.default_rng(seed)
    known = np.loadtxt(train_file, skiprows=1, dtype=np.int64)
    later = np.loadtxt(test_file, skiprows=1, dtype=np.int64)
    n_items = int(max(known[:, 1].max(), later[:, 1].max())) + 1
    popularity = np.bincount(known[:, 1], minlength=n_items)
    width = 2**17
    row, column, labels, groups = [], [], [], []
    for u in rng.choice(np.unique(later[:, 0]), n_users, replace=False):
        seen = known[known[:, 0] == u, 1]
        wanted = later[later[:, 0] == u, 1]
        other = np.setdiff1d(np.arange(n_items), np.union1d(seen, wanted))
        weight = popularity[other] / popularity[other].sum()
        drawn = rng.choice(other, n_candidates, replace=False, p=weight)
        history = rng.choice(seen, min(n_history, seen.size), replace=False)
        for item in np.concatenate([wanted, drawn]):
            pairs = n_items + (history * 1_000_003 + item * 7919) % width
            places = np.append(pairs, item)
            row += [len(labels)] * places.size
            column += places.tolist()
            labels.append(item in wanted)
            groups.append(u)
    X = sparse.csr_array((np.ones(len(row)), (row, column)), shape=(len(labels), n_items + width))
    X.data[:] = 1.0
    return X, np.array(labels), np.array(groups)


def curves(X, y, groups, n_train, full):
    """pAp@K on new users for each divisor and strength, in multiples of 2 d / p with d = 1."""
    users = np.unique(groups)
    chosen = np.isin(groups, users[:n_train])
    new = np.isin(groups, users[len(users) // 2 :])
    lists = RankingData.from_groups(X[chosen], y[chosen], groups[chosen]).usable(1)
    common = lists.standardized("auto")
    evidence = Evidence.of(common, common)
    deviation = lists.deviation()
    facts = {
        "lists": lists.n_users,
        "positives": lists.total_positives,
        "columns": int((deviation > 0).sum()),
        "sum_of_variances": float(evidence.variances.sum()),
        "effective_columns": evidence.n_columns,
    }

    def score(alpha, how):
        """pAp@K on the new users, and seconds of the fit."""
        ranker = PAPKRanker(k=K, alpha=alpha, standardize=how, tol=1e-3, time_limit=LIMIT)
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranker.fit(X[chosen], y[chosen], groups[chosen])
            seconds = time.perf_counter() - start
            return ranker.score(X[new], y[new], groups[new]), seconds

    defaults = {
        "as before": score(1e-2, True),
        "default": score("auto", "auto"),
        "common, .01": score(1e-2, "auto"),
    }
    alphas = (2.0 / lists.total_positives) * STRENGTHS[:: 1 if full else 3]
    curves = {
        name: [score(float(alpha), how)[0] for alpha in alphas]
        for name, how in (("own", True), ("common", "auto"))
    }
    return facts | {"defaults": defaults} | curves


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=Path, nargs=2)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--full", action="store_true", help="three times as many strengths")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    tasks = []
    if options.pairs:
        rows = histories(*options.pairs)
        tasks += [(f"histories, {n} users", rows, n) for n in (30, 100, 300)]
    for size in options.sizes:
        n_rows, d, n_users = SIZES[size]
        for truth in TRUTHS:
            rows = one_hot(n_rows, d, n_users, truth)
            tasks += [(f"{truth}, {d} columns, {n} users", rows, n) for n in (25, n_users // 2)]
    results = {}
    for name, rows, n_train in tasks:
        result = results[name] = curves(*rows, n_train, options.full)
        shown = " ".join(
            f"{how} {value:.3f} ({seconds:.1f} s)"
            for how, (value, seconds) in result["defaults"].items()
        )
        best = " ".join(f"best {how} {max(result[how]):.3f}" for how in ("own", "common"))
        print(f"{name}: {shown} {best}", flush=True)
        if options.json:
            options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
