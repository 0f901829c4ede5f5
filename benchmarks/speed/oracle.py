"""Cost of one evaluation beside the two matrix products it needs.

    python -m benchmarks oracle [--rounds 3] [--json benchmarks/results/oracle.json]

The products are numpy's ``X @ w`` and ``X.T @ c`` with a dense c; the round with the lowest ratio
counts.
"""

import numpy as np

from benchmarks.speed.harness import median_seconds, parser, save, verdict
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.datasets.generators import two_gaussians
from structsvm_papk.surrogates.losses import SURROGATES

LIMIT = 2.0  # times the two products


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3, help="the lowest ratio of these counts")
    options = options.parse_args()
    save(options.json, evaluations(options))


def evaluations(options):
    n_negatives = 1000 if options.small else 1_000_000
    few = linear_lists(600, 70, 90)
    many = two_gaussians(1000, n_negatives, 50, 2.0)
    rows = []
    for name, lists, ks in (
        ("600 x 70 x 90", few, (8,)),
        (f"{n_negatives:,} negatives x 50", many, (500, n_negatives)),
    ):
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        for k in ks:
            for surrogate in SURROGATES:
                rows.append(ratio(name, surrogate, k, data, lists.w_true, options.rounds))
    return rows


def ratio(name, surrogate, k, data, w, rounds):
    """One evaluation against the products, in turns."""
    risk = EmpiricalRisk(make_surrogate(surrogate, k), data)
    c = np.random.default_rng(0).standard_normal(data.rows.size)
    row = {"data": name, "surrogate": surrogate, "k": k, "ratio": np.inf}
    for _ in range(rounds):
        products = median_seconds(lambda: (data.X @ w, data.X.T @ c), 5)
        seconds = median_seconds(lambda: risk(w), 5)
        if seconds / products < row["ratio"]:
            row |= {"ms": 1e3 * seconds, "products_ms": 1e3 * products}
            row["ratio"] = seconds / products
    row["met"] = row["ratio"] <= LIMIT
    print(
        f"{name:25s} {surrogate:12s} k {k:7d}  {row['ms']:8.2f} ms, products "
        f"{row['products_ms']:7.2f} ms, ratio {row['ratio']:.2f}  {verdict(row['met'])}"
    )
    return row


if __name__ == "__main__":
    main()
