"""Cost of one evaluation beside the two matrix products it needs, and start-up times.

    python -m benchmarks oracle [--json benchmarks/oracle.json]

One thread, processor seconds. The products are numpy's ``X @ w`` and ``X.T @ c`` with a dense c.
Start-up: ``import structsvm_papk`` and the first evaluation in a process that finds compiled
kernels in the cache; the lowest of five processes.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parent / "solvers_benchopt"))

from benchmark_utils.measuring import median_seconds
from processes import output

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists, two_gaussians
from structsvm_papk.surrogates import SURROGATES

LIMIT = 2.0  # times the two products
PROCESSES = 5
START_UP = """
from time import perf_counter, process_time
start, cpu_start = perf_counter(), process_time()
import structsvm_papk as papk
imported, cpu_imported = perf_counter() - start, process_time() - cpu_start
import numpy as np
X = np.random.default_rng(0).standard_normal((1000, 20))
data = papk.RankingData.from_groups(X, np.arange(1000) % 5 == 0, np.arange(1000) // 50)
risk = papk.EmpiricalRisk(papk.make_surrogate("ts", 5), data)
start, cpu_start = perf_counter(), process_time()
risk(np.ones(20))
print(cpu_imported, process_time() - cpu_start, imported, perf_counter() - start)
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="the lowest ratio of these counts")
    options = parser.parse_args()
    report = {"evaluation": evaluations(options.rounds), "start": start_up()}
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def evaluations(rounds):
    rows = []
    for name, lists, ks in (
        ("600 x 70 x 90", linear_lists(600, 70, 90), (8,)),
        ("1,000,000 negatives x 50", two_gaussians(1000, 1_000_000, 50, 2.0), (500, 1_000_000)),
    ):
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        for k in ks:
            rows += [ratio(name, s, k, data, lists.w_true, rounds) for s in SURROGATES]
    return rows


def ratio(name, surrogate, k, data, w, rounds):
    """One evaluation against the products, in turns."""
    risk = EmpiricalRisk(make_surrogate(surrogate, k), data)
    c = np.random.default_rng(0).standard_normal(data.rows.size)
    found = []
    for _ in range(rounds):
        products = median_seconds(lambda: (data.X @ w, data.X.T @ c), 5)
        found.append((median_seconds(lambda: risk(w), 5), products))
    seconds, products = min(found, key=lambda pair: pair[0] / pair[1])
    row = {"data": name, "surrogate": surrogate, "k": k, "ms": 1e3 * seconds}
    row |= {"products_ms": 1e3 * products, "ratio": seconds / products}
    row["met"] = row["ratio"] <= LIMIT
    print(
        f"{name:25s} {surrogate:12s} k {k:7d}  {row['ms']:8.2f} ms, products "
        f"{row['products_ms']:7.2f} ms, ratio {row['ratio']:.2f}  {verdict(row['met'])}",
        flush=True,
    )
    return row


def start_up():
    """Import and first evaluation of later processes; the first one fills the cache."""
    printed = [output("-c", START_UP) for _ in range(PROCESSES + 1)][1:]
    runs = [map(float, line.split()) for line in printed]
    imported, evaluated, *wall = (min(column) for column in zip(*runs, strict=True))
    met = imported <= 1.5 and evaluated <= 0.5
    print(
        f"import {imported:.2f} s, first evaluation {evaluated:.2f} s (wall clock: "
        f"{wall[0]:.2f} s and {wall[1]:.2f} s)  {verdict(met)}"
    )
    return {"import": imported, "first": evaluated, "wall": wall, "met": met}


def verdict(met):
    return "met" if met else "MISSED"


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
