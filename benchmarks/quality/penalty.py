"""How strong the penalty should be: NDCG by the rule of `alpha="auto"`, by folds and in hindsight.

    python -m benchmarks penalty [--ltr-sample FOLDER] [--clueweb FOLDER] [--draws 10]
        [--results RUN] [--json FILE]

Lists of images of digits (generated here, with scikit-learn's images: is it the digit of the
query?), LightGBM's sample of learning to rank (examples/lambdarank; grade 2 and more is relevant),
the features of the ClueWeb09 corpus of Webis (Fold1/test.txt .. Fold5/test.txt; grade 1 and more),
at growing numbers of labelled lists; and single lists, by average precision on a test half.
Finished parts are kept in RUN.
"""

import argparse
import json
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    make_classification,
)
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import average_precision_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.common.cells import Cells
from benchmarks.common.markdown import grouped, table
from benchmarks.quality.fusing.lists import JoinedLists
from benchmarks.quality.fusing.methods import METHODS, choose
from benchmarks.quality.fusing.plain import digits_as_queries, letor_lists, svmlight_lists
from structsvm_papk import PAPKRanker, __version__

ALPHAS = tuple(10.0 ** np.arange(3.0, -3.1, -0.5))  # the strongest first
AUTO = 'alpha="auto"'
METHODS_BESIDE = ("logistic regression", "LambdaRank, 7 leaves")


def main():
    options = arguments()
    cells = Cells(options.results, {"version": __version__})
    rows = []
    for name, make, sizes in tasks(options):
        for size in sizes:
            found = [
                cells.get([name, size, draw], lambda d=draw, m=make, s=size: m(s, d))
                for draw in range(options.draws)
            ]
            rows += summary(name, size, found)
            print(name, size, file=sys.stderr)
    answer = {"command": f"python -m benchmarks penalty --draws {options.draws}", "rows": rows}
    if options.json:
        options.json.write_text(json.dumps(answer, indent=1) + "\n")
    print("\n".join(page(rows)))


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ltr-sample", type=Path, help="with rank.train and rank.test")
    parser.add_argument("--clueweb", type=Path, help="folder with Fold1 .. Fold5")
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--results", type=Path, help="keep finished parts in this folder")
    parser.add_argument("--json", type=Path, help="write the answer into this file")
    return parser.parse_args()


def tasks(options):
    """(name, what makes a part from size and draw, sizes)."""
    digits = [digits_as_queries(half) for half in (0, 1)]
    yield "digits", Drawn(*digits), (10, 30, 100, 300)
    if options.ltr_sample:
        sample = [svmlight_lists(options.ltr_sample / f"rank.{part}") for part in ("train", "test")]
        yield "ltr-sample", Drawn(*sample), (10, 30, 100)
    if options.clueweb:
        yield "ClueWeb09", Drawn(letor_lists(options.clueweb)), (10, 30)
    for name, (make, sizes) in SINGLE.items():
        yield f"one list: {name}", OneList(make), sizes


@dataclass(frozen=True)
class Drawn:
    """Lists to draw from, and others to be measured on: by default those that were not drawn."""

    pool: JoinedLists
    others: JoinedLists | None = None
    alphas: tuple[float, ...] = ALPHAS
    beside: tuple[str, ...] = METHODS_BESIDE

    def __call__(self, size, draw):
        """NDCG of each way."""
        order = np.random.default_rng(draw).permutation(self.pool.n_lists)
        train = self.pool.subset(np.sort(order[:size]))
        test = self.others or self.pool.subset(np.sort(order[size:]))

        def mean_of(scores):
            return float(test.ndcg(scores(test)).mean())

        found = {name: mean_of(METHODS[name](train, draw)) for name in self.beside}
        n_columns = int((train.X.std(axis=0) > 0).sum())
        by_hand = {"alpha .01": 0.01, "2 d / lists": 2 * n_columns / train.learnable.sum()}
        for name, alpha in {**by_hand, AUTO: "auto"}.items():
            ranker = fitted(PAPKRanker(k=train.k, alpha=alpha, curves=None), train)
            found[name] = mean_of(lambda lists, r=ranker: r.predict(lists.X))
            found[f"alpha: {name}"] = float(ranker.alpha_)
        of_alphas = partial(scores_of_alphas, alphas=self.alphas)
        found["curve"] = [mean_of(scores) for scores in of_alphas(train)]
        found["folds"] = mean_of(choose(train, draw, of_alphas))
        return found


def fitted(ranker, lists):
    return ranker.fit(lists.X, lists.relevant, groups=lists.groups)


def scores_of_alphas(train, alphas):
    """Scores for every alpha, each fit from the weights of the one before."""
    ranker = PAPKRanker(k=train.k, curves=None, tol=1e-3, max_iter=300, warm_start=True)
    for alpha in alphas:
        w = fitted(ranker.set_params(alpha=alpha), train).coef_.copy()
        yield lambda lists, w=w: lists.X @ w


@dataclass(frozen=True)
class OneList:
    """A list to learn from and one to be measured on, of ``make(size, draw)``."""

    make: object

    def __call__(self, size, draw):
        """Average precision of each way."""
        X, y, X_test, y_test = self.make(size, draw)

        def measured(alpha):
            avg = {"surrogate": "avg", "curves": None}  # as of lists: alpha alone differs
            ranker = PAPKRanker(k=10, alpha=alpha, tol=1e-4, one_list=True, **avg).fit(X, y)
            return average_precision_score(y_test, ranker.predict(X_test)), float(ranker.alpha_)

        logistic = LogisticRegressionCV(
            Cs=10, l1_ratios=(0.0,), scoring="average_precision", max_iter=1000,
            use_legacy_attributes=False,
        )  # fmt: skip
        beside = make_pipeline(StandardScaler(), logistic).fit(X, y).decision_function(X_test)
        found = {"logistic regression": average_precision_score(y_test, beside)}
        by_hand = {"alpha .01": 0.01, "2 d / lists": 2 * X.shape[1]}
        for name, alpha in {**by_hand, AUTO: "auto"}.items():
            found[name], found[f"alpha: {name}"] = measured(alpha)
        found["curve"] = [measured(alpha)[0] for alpha in ALPHAS]
        return found


def one_digit(size, draw):
    """Is it this digit?"""
    images = load_digits()
    return _halves(images.data, images.target == draw % 10, size, draw)


def cancer(size, draw):
    """Is it malignant?"""
    cells = load_breast_cancer()
    return _halves(cells.data, cells.target == 0, size, draw)


def generated(share):
    """Few relevant rows, with nearly clean labels."""

    def make(size, draw):
        X, y = make_classification(
            size + 6000, weights=[1 - share], flip_y=0.01 * share, n_informative=5,
            n_redundant=5, n_clusters_per_class=1, random_state=draw,
        )  # fmt: skip
        return X[:size], y[:size] == 1, X[size:], y[size:] == 1

    return make


def _halves(X, relevant, size, draw):
    order = np.random.default_rng(draw).permutation(relevant.size)
    half = relevant.size // 2
    train, test = order[: min(size, half)], order[half:]
    return X[train], relevant[train], X[test], relevant[test]


SINGLE = {
    "digit against the rest": (one_digit, (898,)),
    "breast cancer": (cancer, (284,)),
    "generated, 2% relevant": (generated(0.02), (1000,)),
}


def summary(name, size, found, alphas=ALPHAS):
    """A row for each way: mean and standard error over draws, of value and alpha."""
    curve = np.array([part["curve"] for part in found])
    best = int(curve.mean(axis=0).argmax())
    ways = [way for way in found[0] if way != "curve" and not way.startswith("alpha: ")]
    for way in ways:
        values = np.array([part[way] for part in found])
        row = {"set": name, "size": size, "draws": len(found), "way": way}
        row["value"] = float(values.mean())
        row["error"] = float(values.std(ddof=1) / np.sqrt(values.size)) if len(found) > 1 else None
        if f"alpha: {way}" in found[0]:
            row["alpha"] = float(np.median([part[f"alpha: {way}"] for part in found]))
        yield row
    yield {"set": name, "size": size, "draws": len(found), "way": "best in hindsight",
           "value": float(curve.mean(axis=0)[best]), "alpha": float(alphas[best])}  # fmt: skip


def page(rows):
    """Sets and sizes in rows, ways in columns."""
    ways = list(dict.fromkeys(row["way"] for row in rows))
    lines = []
    for (name, size), own in grouped(rows, lambda row: (row["set"], row["size"])):
        of_way = {row["way"]: row for row in own}
        lines.append([f"{name}, {size}", *(_cell(of_way.get(way)) for way in ways)])
    return table(("set, lists (rows of one list)", *ways), lines)


def _cell(row):
    if row is None:
        return "–"
    return f"{row['value']:.3f}" + (f" ({row['alpha']:.2g})" if "alpha" in row else "")


if __name__ == "__main__":
    main()
