"""A fit on data four times as large as its memory budget, beside the same fit in memory.

    python -m benchmarks out_of_core [--rows 2000000] [--json benchmarks/results/out_of_core.json]

Each fit runs in a fresh process with one computing thread, and one that reads ahead; its seconds
of processor time, of the computing thread and of all, are less at the mercy of what else the
machine does than those of the clock. Memory is the peak resident set of the
process over what it had before the data: interpreter, libraries, compiled kernels. The files are
written in pieces, and read from the page cache where the system has kept them there.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from processes import answer

K, ALPHA, TOL, USER_ROWS, N_FEATURES = 10, 1e-3, 1e-6, 500, 50
TIMES_THE_BUDGET = 4
MB = 1e6


def main():
    options = parsed()
    if options.child:
        print(json.dumps(child(*options.child)))
        return
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory:
        write_data(Path(directory), options.rows)
        features = options.rows * N_FEATURES * 8
        rows = [
            answer(__file__, "--child", how, directory, features // TIMES_THE_BUDGET)
            for how in ("memory", "npy", "parquet")
        ]
    in_memory = rows[0]
    for found in rows:
        found["X_mb"] = features / MB
        found["budget_mb"] = None if found is in_memory else features / TIMES_THE_BUDGET / MB
        found["within_budget"] = found["budget_mb"] and found["used_mb"] <= found["budget_mb"]
        found["fit_time_ratio"] = found["fit_seconds"] / in_memory["fit_seconds"]
        for name in ("thread", "processor"):
            found[f"{name}_ratio"] = found[f"{name}_seconds"] / in_memory[f"{name}_seconds"]
        found["pass_time_ratio"] = found["pass_seconds"] / in_memory["pass_seconds"]
        report(found)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--scratch", help="directory for the data")
    parser.add_argument("--child", nargs=3, metavar=("HOW", "DIRECTORY", "BUDGET"),
                        help="do one fit in this process and print what it took")  # fmt: skip
    return parser.parse_args()


def write_data(directory, n_rows, piece=50_000):
    """`.npy` files and one Parquet file of the same rows, never all of them in memory."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    direction = rng.standard_normal(N_FEATURES) / np.sqrt(N_FEATURES)
    arrays = {
        name: np.lib.format.open_memmap(directory / f"{name}.npy", "w+", dtype, shape)
        for name, dtype, shape in (
            ("X", np.float64, (n_rows, N_FEATURES)),
            ("y", np.int8, (n_rows,)),
            ("groups", np.int32, (n_rows,)),
        )
    }
    writer = None
    for start in range(0, n_rows, piece):
        X = rng.standard_normal((min(piece, n_rows - start), N_FEATURES))
        rows = np.arange(start, start + len(X))
        y = (X @ direction + 0.3 * rng.standard_normal(len(X)) > 2.0).astype(np.int8)
        for name, values in (("X", X), ("y", y), ("groups", rows // USER_ROWS)):
            arrays[name][rows] = values
        columns = {f"f{c}": X[:, c] for c in range(N_FEATURES)}
        table = pa.table({**columns, "label": y, "group": (rows // USER_ROWS).astype(np.int32)})
        writer = writer or parquet.ParquetWriter(directory / "data.parquet", table.schema)
        writer.write_table(table)
    writer.close()


def child(how, directory, budget):
    """Fit once; time and memory of this process."""
    warm_up(how)
    before = memory_mb("VmRSS")
    reset_peak()
    started = time.perf_counter()
    risk = make_risk(how, Path(directory), int(budget))
    ready, before_fit = time.perf_counter(), (time.thread_time(), time.process_time())
    result = solver().solve(risk)
    done, after_fit = time.perf_counter(), (time.thread_time(), time.process_time())
    for _ in range(3):
        risk(result.w)
    return {
        "how": how,
        "before_mb": before,
        "used_mb": memory_mb("VmHWM") - before,
        "read_seconds": ready - started,
        "fit_seconds": done - ready,
        "thread_seconds": after_fit[0] - before_fit[0],
        "processor_seconds": after_fit[1] - before_fit[1],
        "rows_scored": result.history[-1].rows_scored,
        "pass_seconds": (time.perf_counter() - done) / 3,
        "passes": result.data_passes,
        "n_blocks": int(result.cuts[2].max()) + 1,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "status": str(result.status),
        "share_in_memory": getattr(risk, "share_in_memory", 1.0),
    }


def solver():
    from structsvm_papk import CuttingPlane

    return CuttingPlane(ALPHA, tol=TOL)


def warm_up(how):
    """Load libraries and kernels on a small problem of the same kind."""
    with tempfile.TemporaryDirectory() as directory:
        write_data(Path(directory), 5000, 5000)
        solver().solve(make_risk(how, Path(directory), 1 << 24))


def make_risk(how, directory, budget):
    from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
    from structsvm_papk.data import open_source
    from structsvm_papk.oracles import StreamedRisk

    surrogate = make_surrogate("ts", K)
    if how == "memory":
        arrays = (np.load(directory / f"{name}.npy") for name in ("X", "y", "groups"))
        return EmpiricalRisk(surrogate, RankingData.from_groups(*arrays))
    path = directory if how == "npy" else directory / "data.parquet"
    return StreamedRisk(surrogate, open_source(path), budget, scratch=directory)


def memory_mb(name):
    """A line of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(name)).split()[1]) * 1024 / MB


def reset_peak():
    """Let the peak be what comes from now on."""
    Path("/proc/self/clear_refs").write_text("5")


def report(found):
    limit = "" if found["budget_mb"] is None else f" of {found['budget_mb']:.0f}"
    print(
        f"{found['how']:8s} X {found['X_mb']:.0f} MB, used {found['used_mb']:.0f}{limit} MB, read "
        f"{found['read_seconds']:.1f} s, fit {found['fit_seconds']:.1f} s "
        f"({found['passes']} passes, x{found['fit_time_ratio']:.2f}; processor "
        f"x{found['processor_ratio']:.2f}, computing thread x{found['thread_ratio']:.2f}), pass "
        f"{found['pass_seconds']:.2f} s (x{found['pass_time_ratio']:.2f}), "
        f"objective {found['objective']:.9f}, bound {found['lower_bound']:.9f}, {found['status']}",
        flush=True,
    )


if __name__ == "__main__":
    main()
