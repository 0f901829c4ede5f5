"""Peak memory of a fit, each in a fresh process.

    python -m benchmarks memory [--json benchmarks/memory.json]

The peak resident set of the process counts: interpreter, libraries, X and everything beside it. The
target for X of 1,000,000 x 50 float64 is 1.3 X + 200 MB. pyarrow is kept out of the processes: a
plain install has none, and pandas, which scikit-learn imports, would load it.
"""

import argparse
import json
import resource
import sys
from pathlib import Path

import numpy as np
from processes import answer
from threadpoolctl import threadpool_limits

HERE = Path(__file__).resolve().parent
CONVEX = ("avg", "max", "ts", "pauc")
MB = 1e6


def main():
    options = parsed()
    if options.child:
        print(json.dumps(child(*options.child)))
        return
    rows = [
        measured(task, surrogate) for task in ("one_user", "many_users") for surrogate in CONVEX
    ]
    rows.append(measured("auc", "pauc"))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--child", nargs=3, metavar=("TASK", "SURROGATE", "ALPHA"),
                        help="do one fit in this process and print its memory")  # fmt: skip
    return parser.parse_args()


def measured(task, surrogate):
    found = {
        "task": task,
        "surrogate": surrogate,
        **answer(__file__, "--child", task, surrogate, 1e-2),
    }
    found["limit_mb"] = 1.3 * found["X_mb"] + 200
    found["met"] = found["peak_mb"] <= found["limit_mb"]
    verdict = "met" if found["met"] else "MISSED"
    print(
        f"{task:10s} {surrogate:5s} X {found['X_mb']:.0f} MB, before the fit "
        f"{found['before_mb']:.0f} MB, peak {found['peak_mb']:.0f} MB, limit "
        f"{found['limit_mb']:.0f} MB, gap {found['gap']:.0e}  {verdict}",
        flush=True,
    )
    return found


def child(task, surrogate, alpha):
    """Fit once; the peak of this process."""
    import warnings

    sys.modules["pyarrow"] = None
    from structsvm_papk import PAPKRanker

    warnings.simplefilter("ignore")  # a degenerate optimum uses no less memory
    X, y, groups, k = data(task)
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


def data(task):
    """X, y, groups and k; made in place, so that the peak is the fit's."""
    if task.startswith("H"):
        sys.path.insert(0, str(HERE / "solvers_benchopt"))
        from benchmark_utils.tasks import TASKS

        lists = TASKS[task].generate(0)
        return lists.X, lists.y, lists.groups, TASKS[task].k
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1_000_000, 50))
    X[::100, 0] += 4.0  # one row in a hundred is relevant
    y = np.zeros(len(X), dtype=np.int64)
    y[::100] = 1
    if task == "many_users":
        return X, y, np.arange(len(X)) // 500, 10
    return X, y, "one_list", 990_000 if task == "auc" else 500


def peak_mb():
    """Peak resident set of this process; `getrusage` would count the parent's before the exec."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / MB
    scale = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / MB


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
