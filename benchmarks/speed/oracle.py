"""Cost of one evaluation beside the two matrix products it needs, and start-up times.

    python -m benchmarks oracle [--rounds 3] [--json benchmarks/results/oracle.json]

The products are numpy's ``X @ w`` and ``X.T @ c`` with a dense c; the round with the lowest ratio
counts. Start-up: ``import structsvm_papk`` and the first evaluation in a process that finds
compiled kernels in the cache; the lowest of five processes.
"""

import json

import numpy as np

from benchmarks.speed.harness import median_seconds, output, parser, save, verdict
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.datasets.generators import two_gaussians
from structsvm_papk.surrogates.losses import SURROGATES

LIMIT = 2.0  # times the two products
LIMITS_OF_START = {"import": 1.5, "first": 0.5}  # seconds
PROCESSES = 5
START_UP = """
import json
from time import perf_counter, process_time
start = process_time()
wall_start = perf_counter()
import structsvm_papk as papk
imported = process_time() - start
wall_imported = perf_counter() - wall_start
import numpy as np
X = np.random.default_rng(0).standard_normal((1000, 20))
data = papk.RankingData.from_groups(X, np.arange(1000) % 5 == 0, np.arange(1000) // 50)
risk = papk.EmpiricalRisk(papk.make_surrogate("ts", 5), data)
start = process_time()
wall_start = perf_counter()
risk(np.ones(20))
seconds = {"import": imported, "first": process_time() - start}
seconds |= {"import, wall": wall_imported, "first, wall": perf_counter() - wall_start}
print(json.dumps(seconds))
"""


def main():
    options = parser(__doc__)
    options.add_argument("--rounds", type=int, default=3, help="the lowest ratio of these counts")
    options = options.parse_args()
    save(options.json, {"evaluation": evaluations(options), "start": start_up()})


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


def start_up():
    """Import and first evaluation of later processes; the first one fills the cache."""
    runs = [json.loads(output("-c", START_UP)) for _ in range(PROCESSES + 1)][1:]
    seconds = {step: min(run[step] for run in runs) for step in runs[0]}
    seconds["met"] = all(seconds[step] <= limit for step, limit in LIMITS_OF_START.items())
    print(
        f"import {seconds['import']:.2f} s, first evaluation {seconds['first']:.2f} s (wall clock: "
        f"{seconds['import, wall']:.2f} s and {seconds['first, wall']:.2f} s)  "
        f"{verdict(seconds['met'])}"
    )
    return seconds


if __name__ == "__main__":
    main()
