"""Sparse data of 1,000,000 rows x 100,000 features with 50 non-zeros a row: time and memory.

    python -m benchmarks sparse [--rows 1000000] [--features 100000] [--json FILE]

One thread. Memory is what the fit adds at its peak to what the process holds before it, the data
included: a dense copy would need 800 GB. The bundle, and the ascent on the dual, which is what such
data get.
"""

import argparse
import json
import time
from itertools import product
from pathlib import Path

import numpy as np
from out_of_core import memory_mb, reset_peak
from scipy import sparse

from structsvm_papk import CuttingPlane, DualAscent, EmpiricalRisk, RankingData, make_surrogate

SOLVERS = {"bundle": CuttingPlane, "ascent": DualAscent}


def generated(n_rows, d, per_row, n_users, dtype, seed=0):
    """Popular features and rare ones; a user's highest noisy scores are relevant, 2% of them."""
    rng = np.random.default_rng(seed)
    columns = (d * rng.random((n_rows, per_row), dtype=np.float32) ** 3).astype(np.int32)
    columns.sort(axis=1)
    values = rng.random(n_rows * per_row, dtype=np.float32).astype(dtype)
    indptr = np.arange(0, n_rows * per_row + 1, per_row)
    X = sparse.csr_array((values, columns.ravel(), indptr), (n_rows, d))
    X.sum_duplicates()  # in their own type: ours would be float64
    scores = X @ rng.standard_normal(d).astype(dtype)
    scores += 0.3 * scores.std() * rng.standard_normal(n_rows)
    size = n_rows // n_users
    groups = np.minimum(np.arange(n_rows) // size, n_users - 1)
    y = np.zeros(n_rows, dtype=bool)
    for u in range(n_users):
        rows = (
            np.flatnonzero(groups == u) if u == n_users - 1 else np.arange(u * size, (u + 1) * size)
        )
        y[rows[np.argpartition(-scores[rows], size // 50)[: size // 50]]] = True
    return RankingData.from_groups(X, y, groups)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=100_000)
    parser.add_argument("--per-row", type=int, default=50)
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--k", type=int, default=5)
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.1, 0.01])
    parser.add_argument("--tols", type=float, nargs="+", default=[1e-2, 1e-3])
    parser.add_argument("--surrogates", nargs="+", default=["avg", "ts"])
    parser.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    lines = []
    for dtype in (np.float64, np.float32):
        data = generated(options.rows, options.features, options.per_row, options.users, dtype)
        size = sum(a.nbytes for a in (data.X.data, data.X.indices, data.X.indptr)) / 1e6
        for name in options.surrogates:
            risk = EmpiricalRisk(make_surrogate(name, options.k), data)
            for solver in options.solvers:
                SOLVERS[solver](1.0, max_iter=2).solve(risk)  # load compiled code
            w = np.random.default_rng(1).standard_normal(data.n_features)
            start = time.perf_counter()
            scores = risk.scores(w)
            product_seconds = time.perf_counter() - start
            start = time.perf_counter()
            risk.cuts_from_scores(w, scores)
            rest = time.perf_counter() - start
            tasks = list(zip(options.alphas, options.tols, strict=True))
            for solver, (alpha, tol) in product(options.solvers, tasks):
                reset_peak()
                before = memory_mb("VmRSS")
                start = time.perf_counter()
                result = SOLVERS[solver](alpha, tol=tol, time_limit=600).solve(risk)
                seconds = time.perf_counter() - start
                line = {
                    "solver": solver,
                    "dtype": np.dtype(dtype).name,
                    "data_mb": size,
                    "surrogate": name,
                    "alpha": alpha,
                    "product_seconds": product_seconds,
                    "rest_seconds": rest,
                    "objective": result.objective,
                    "gap": result.gap,
                    "status": str(result.status),
                    "passes": result.data_passes,
                    "rows_scored": result.history[-1].rows_scored / data.rows.size,
                    "seconds": seconds,
                    "peak_growth_mb": memory_mb("VmHWM") - before,
                }
                lines.append(line)
                print(LINE.format(**line), flush=True)
    if options.json:
        options.json.write_text(json.dumps(lines, indent=1) + "\n")


LINE = (
    "{dtype} {data_mb:.0f} MB  {solver} {surrogate:4s} alpha {alpha:g}: X w "
    "{product_seconds:.2f} s, rest {rest_seconds:.2f} s; F {objective:.5f} gap {gap:.1e} {status}, "
    "{passes} passes, {rows_scored:.1f} in rows, {seconds:.1f} s, peak + {peak_growth_mb:.0f} MB"
)


if __name__ == "__main__":
    main()
