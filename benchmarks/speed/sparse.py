"""Sparse data of 1,000,000 rows x 100,000 features with 50 non-zeros a row: time and memory.

    python -m benchmarks sparse [--rows 1000000] [--features 100000]
        [--json benchmarks/results/sparse.json]

Memory is what the fit adds at its peak to what the process holds before it, the data included: a
dense copy would need 800 GB. The bundle, and the ascent on the dual, which is what such data get.
"""

from itertools import product

import numpy as np

from benchmarks.speed.data import sparse_lists
from benchmarks.speed.harness import MB, memory_mb, parsed, parser, reset_peak, save, timed
from structsvm_papk import CuttingPlane, DualAscent, EmpiricalRisk, make_surrogate

SOLVERS = {"bundle": CuttingPlane, "ascent": DualAscent}


def main():
    options = arguments()
    rows = []
    for dtype in (np.float64, np.float32):
        data = sparse_lists(options.rows, options.features, options.per_row, options.users, dtype)
        size = sum(part.nbytes for part in (data.X.data, data.X.indices, data.X.indptr)) / MB
        for name in options.surrogates:
            risk = EmpiricalRisk(make_surrogate(name, options.k), data)
            about = {"dtype": np.dtype(dtype).name, "data_mb": size, "surrogate": name}
            for row in measured(risk, options):
                rows.append(about | row)
                print(LINE.format(**rows[-1]))
    save(options.json, rows)


def arguments():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--features", type=int, default=100_000)
    options.add_argument("--per-row", type=int, default=50)
    options.add_argument("--users", type=int, default=2000)
    options.add_argument("--k", type=int, default=5)
    options.add_argument("--alphas", type=float, nargs="+", default=[0.1, 0.01])
    options.add_argument(
        "--tols", type=float, nargs="+", default=[1e-2, 1e-3], help="of each alpha"
    )
    options.add_argument("--surrogates", nargs="+", default=["avg", "ts"])
    options.add_argument("--solvers", nargs="+", default=list(SOLVERS), choices=SOLVERS)
    return parsed(options, rows=2000, features=500, per_row=5, users=10)


def measured(risk, options):
    """A row for each solver, alpha and its tolerance."""
    for name in options.solvers:
        SOLVERS[name](1.0, max_iter=2).solve(risk)  # load compiled code
    w = np.random.default_rng(1).standard_normal(risk.n_features)
    scores, product_seconds = timed(lambda: risk.scores(w))
    _, rest_seconds = timed(lambda: risk.cuts_from_scores(w, scores))
    tasks = list(zip(options.alphas, options.tols, strict=True))
    for name, (alpha, tol) in product(options.solvers, tasks):
        solver = SOLVERS[name](alpha, tol=tol, time_limit=600)
        reset_peak()
        before = memory_mb("VmRSS")
        result, seconds = timed(lambda solver=solver: solver.solve(risk))
        yield {
            "solver": name,
            "alpha": alpha,
            "product_seconds": product_seconds,
            "rest_seconds": rest_seconds,
            "objective": result.objective,
            "gap": result.gap,
            "status": str(result.status),
            "passes": result.data_passes,
            "rows_scored": result.history[-1].rows_scored / risk.data.rows.size,
            "seconds": seconds,
            "peak_growth_mb": max(0.0, memory_mb("VmHWM") - before),
        }


LINE = (
    "{dtype} {data_mb:.0f} MB  {solver} {surrogate:4s} alpha {alpha:g}: X w "
    "{product_seconds:.2f} s, rest {rest_seconds:.2f} s; F {objective:.5f} gap {gap:.1e} {status}, "
    "{passes} passes, {rows_scored:.1f} in rows, {seconds:.1f} s, peak + {peak_growth_mb:.0f} MB"
)


if __name__ == "__main__":
    main()
