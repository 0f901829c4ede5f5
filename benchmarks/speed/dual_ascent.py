"""Many sparse features: ascent on the dual against the bundle, seconds to each gap, and memory.

    python -m benchmarks dual_ascent [--only ascent bundle] [--json FILE]

Avg at k = 5 on generated lists, by default 200,000 rows x 50,000 features of 50 non-zeros a row,
400 users. Each way is stopped after `--limit` seconds of its own. Memory (Linux) is what a solve
adds at its peak to what the process holds before it, the data included.
"""

import json
import warnings
from time import process_time as clock

from benchmarks.speed.data import sparse_lists
from benchmarks.speed.harness import memory_mb, parsed, parser, reset_peak, save, timed
from structsvm_papk import (
    CuttingPlane,
    DualAscent,
    EmpiricalRisk,
    make_surrogate,
)

TOLS = (1e-2, 1e-3, 1e-7)


def ascent(risk, alpha, limit):
    """Seconds to each gap, in a run of its own."""
    for tol in TOLS:
        yield solved(DualAscent(alpha, tol=tol, max_iter=100_000), risk, limit)


def bundle(risk, alpha, limit):
    """The same of the bundle, to 1e-3."""
    for tol in TOLS[:2]:
        yield solved(CuttingPlane(alpha, tol=tol, max_iter=100_000), risk, limit)


def solved(solver, risk, limit):
    """A certified solve, stopped after so many seconds."""
    reset_peak()
    before = memory_mb("VmRSS")
    start = clock()
    result, seconds = timed(lambda: solver.solve(risk, callback=lambda _: clock() - start > limit))
    return {
        "seconds": seconds,
        "objective": result.objective,
        "gap": result.gap,
        "status": str(result.status),
        "iterations": result.n_iter,
        "rows_scored": result.history[-1].rows_scored if result.history else 0,
        "peak_mb": max(0.0, memory_mb("VmHWM") - before),
    }


WAYS = {"ascent": ascent, "bundle": bundle}


def main():
    options = arguments()
    warnings.simplefilter("ignore")  # of methods that stop at their limit
    small = EmpiricalRisk(make_surrogate(options.surrogate, 5), sparse_lists(2000, 500, 5, 10))
    for solver in (DualAscent(0.1), CuttingPlane(0.1)):  # compiled code is loaded
        solver.solve(small)
    data = sparse_lists(options.rows, options.features, options.per_row, options.users)
    risk = EmpiricalRisk(make_surrogate(options.surrogate, 5), data)
    data.spread()
    shape = f"{options.rows} x {options.features}, {options.surrogate}"
    for alpha in options.alphas:
        task = f"{shape}, alpha {alpha:g}"
        ways = known(options.json, task)
        for name in options.only:
            ways[name] = []
            for point in WAYS[name](risk, alpha, options.limit):
                ways[name].append(point)
                print(task, name, point)
            save(options.json, {task: ways})


def arguments():
    options = parser(__doc__)
    options.add_argument("--only", nargs="+", default=list(WAYS), choices=list(WAYS))
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--features", type=int, default=50_000)
    options.add_argument("--per-row", type=int, default=50)
    options.add_argument("--users", type=int, default=400)
    options.add_argument("--alphas", type=float, nargs="+", default=[1e-2, 1e-3, 1e-4])
    options.add_argument("--surrogate", default="avg")
    options.add_argument("--limit", type=float, default=60.0)
    return parsed(options, rows=2000, features=500, per_row=5, users=10, alphas=[1e-2], limit=0.5)


def known(path, task):
    """Ways of a task that are in the file."""
    return json.loads(path.read_text()).get(task, {}) if path and path.exists() else {}


if __name__ == "__main__":
    main()
