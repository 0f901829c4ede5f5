"""Memory of fits, each in a fresh process: the peak in memory, and within a budget from files.

    python -m benchmarks memory peak [--json benchmarks/results/memory.json]
    python -m benchmarks memory budget [--rows 2000000] [--json benchmarks/results/out_of_core.json]

`peak`: the peak resident set of the process counts: interpreter, libraries, X and everything beside
it. The target for X of 1,000,000 x 50 float64 is 1.3 X + 200 MB. pyarrow is kept out of the
processes: a plain install has none, and pandas, which scikit-learn imports, would load it.

`budget`: a fit on files four times as large as its memory budget, beside the same fit in memory,
with one computing thread, and one that reads ahead. Memory is the peak over what the process had
before the data: interpreter, libraries, compiled kernels. Seconds of processor time, of the
computing thread and of all, are less at the mercy of what else the machine does than those of the
clock. The files are written in pieces, and read from the page cache where the system has kept them.
"""

import json
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

from benchmarks.speed.harness import (
    MB,
    Steps,
    in_fresh_process,
    memory_mb,
    parsed,
    parser,
    peak_mb,
    reset_peak,
    save,
    verdict,
)

CONVEX = ("avg", "max", "ts", "pauc")
ROWS, FEATURES = 1_000_000, 50  # of `peak`
SMALL_ROWS = 10_000
K, DEPTH, ALPHA, TOL = 10, 0.9, 1e-3, 1e-6  # of `budget`
TIMES_THE_BUDGET = 4


def main():
    options = parser(__doc__)
    options.add_argument("what", choices=("peak", "budget"))
    options.add_argument("--rows", type=int, default=2_000_000, help="of budget")
    options.add_argument("--scratch", help="directory for the files")
    options.add_argument(
        "--child", nargs=3, metavar="WORD", help="do one fit in this process and print what it took"
    )
    options = parsed(options, rows=SMALL_ROWS)
    if options.child:
        fit = fit_in_memory if options.what == "peak" else fit_in_budget
        print(json.dumps(fit(*options.child)))
    elif options.what == "peak":
        save(options.json, peaks(options))
    else:
        save(options.json, budgets(options))


# ----------------------------------------------------------------- peak


def peaks(options):
    tasks = [(lists, name) for lists in ("one_user", "many_users") for name in CONVEX]
    tasks.append(("auc", "pauc"))
    if options.small:
        return [peak(lists, surrogate, SMALL_ROWS) for lists, surrogate in tasks[-2:]]
    return [peak(lists, surrogate, ROWS) for lists, surrogate in tasks]


def peak(lists, surrogate, n_rows):
    row = {"task": lists, "surrogate": surrogate}
    row |= in_fresh_process("memory", "peak", "--child", f"{lists}:{n_rows}", surrogate, 1e-2)
    row["limit_mb"] = 1.3 * row["X_mb"] + 200
    row["met"] = row["peak_mb"] <= row["limit_mb"]
    print(
        f"{lists:10s} {surrogate:5s} X {row['X_mb']:.0f} MB, before the fit "
        f"{row['before_mb']:.0f} MB, peak {row['peak_mb']:.0f} MB, limit "
        f"{row['limit_mb']:.0f} MB, gap {row['gap']:.0e}  {verdict(row['met'])}"
    )
    return row


def fit_in_memory(task, surrogate, alpha):
    """Fit once; the peak of this process."""
    sys.modules["pyarrow"] = None
    from structsvm_papk import PAPKRanker

    warnings.simplefilter("ignore")  # a degenerate optimum uses no less memory
    X, y, groups, k = lists_of(task)
    before = peak_mb()
    ranker = PAPKRanker(
        k=k, surrogate=surrogate, depth=None, alpha=float(alpha), tol=1e-6, max_iter=300
    )
    ranker.fit(X, y, groups=groups)
    return {
        "X_mb": X.nbytes / MB,
        "before_mb": before,
        "peak_mb": peak_mb(),
        "gap": ranker.result_.gap,
        "passes": ranker.result_.data_passes,
    }


def lists_of(task):
    """X, y, groups and k of a task of `targets`, or of NAME:ROWS.

    Made in place, so that the peak is the fit's.
    """
    if ":" not in task:
        from benchmarks.speed.tasks import TASKS

        lists = TASKS[task].generate()
        return lists.X, lists.y, lists.groups, TASKS[task].k
    name, n_rows = task.split(":")
    X = np.random.default_rng(0).standard_normal((int(n_rows), FEATURES))
    X[::100, 0] += 4.0  # one row in a hundred is relevant
    y = np.zeros(len(X), dtype=np.int64)
    y[::100] = 1
    if name == "many_users":
        return X, y, np.arange(len(X)) // 500, 10
    return X, y, "one_list", len(X) - len(X) // 100 if name == "auc" else 500


# ----------------------------------------------------------------- budget


def budgets(options):
    """The same fit in memory, from `.npy` files and from Parquet."""
    from benchmarks.speed.data import write_lists

    size = options.rows * FEATURES * 8
    budget = size // TIMES_THE_BUDGET
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        write_lists(Path(folder), options.rows, FEATURES, parquet=True)
        rows = [
            in_fresh_process("memory", "budget", "--child", how, folder, budget)
            for how in ("memory", "npy", "parquet")
        ]
    in_memory = rows[0]
    for row in rows:
        row["X_mb"] = size / MB
        row["budget_mb"] = None if row is in_memory else budget / MB
        row["within_budget"] = row["budget_mb"] and row["used_mb"] <= row["budget_mb"]
        row["fit_time_ratio"] = row["fit_seconds"] / in_memory["fit_seconds"]
        for name in ("thread", "processor"):
            row[f"{name}_ratio"] = row[f"{name}_seconds"] / in_memory[f"{name}_seconds"]
        row["pass_time_ratio"] = row["pass_seconds"] / in_memory["pass_seconds"]
        report(row)
    return rows


def fit_in_budget(how, folder, budget):
    """Fit once; time and memory of this process."""
    from structsvm_papk import CuttingPlane

    solver = CuttingPlane(ALPHA, tol=TOL)
    warm_up(how, solver)
    before = memory_mb("VmRSS")
    reset_peak()
    steps = Steps()
    risk = make_risk(how, Path(folder), int(budget))
    steps.done("read")
    result = solver.solve(risk)
    steps.done("fit")
    for _ in range(3):
        risk(result.w)
    steps.done("passes")
    return {
        "how": how,
        "before_mb": before,
        "used_mb": memory_mb("VmHWM") - before,
        "read_seconds": steps.seconds["read"],
        "fit_seconds": steps.seconds["fit"],
        "thread_seconds": steps.thread["fit"],
        "processor_seconds": steps.processor["fit"],
        "rows_scored": result.history[-1].rows_scored,
        "pass_seconds": steps.seconds["passes"] / 3,
        "passes": result.data_passes,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "status": str(result.status),
        "share_in_memory": getattr(risk, "share_in_memory", 1.0),
    }


def warm_up(how, solver):
    """Load libraries and kernels on a small problem of the same kind."""
    from benchmarks.speed.data import write_lists

    with tempfile.TemporaryDirectory() as folder:
        write_lists(Path(folder), 5000, FEATURES, parquet=True)
        solver.solve(make_risk(how, Path(folder), 1 << 24))


def make_risk(how, folder, budget):
    from benchmarks.speed.data import read_lists
    from structsvm_papk import EmpiricalRisk, make_surrogate
    from structsvm_papk.files import open_source
    from structsvm_papk.oracles import StreamedRisk

    surrogate = make_surrogate("ts", K, DEPTH)
    if how == "memory":
        return EmpiricalRisk(surrogate, read_lists(folder))
    path = folder if how == "npy" else folder / "data.parquet"
    tempfile.tempdir = str(folder)
    return StreamedRisk(surrogate, open_source(path), budget)


def report(row):
    limit = "" if row["budget_mb"] is None else f" of {row['budget_mb']:.0f}"
    print(
        f"{row['how']:8s} X {row['X_mb']:.0f} MB, used {row['used_mb']:.0f}{limit} MB, read "
        f"{row['read_seconds']:.1f} s, fit {row['fit_seconds']:.1f} s "
        f"({row['passes']} passes, x{row['fit_time_ratio']:.2f}; processor "
        f"x{row['processor_ratio']:.2f}, computing thread x{row['thread_ratio']:.2f}), pass "
        f"{row['pass_seconds']:.2f} s (x{row['pass_time_ratio']:.2f}), "
        f"objective {row['objective']:.9f}, bound {row['lower_bound']:.9f}, {row['status']}"
    )


if __name__ == "__main__":
    main()
