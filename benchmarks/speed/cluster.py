"""Seconds of a solve on two local Dask workers of one thread, beside one thread and two in memory.

    python -m benchmarks cluster [--rows 8000000 1000000] [--json FILE]

TS and Avg, k = 10, a gap of 1e-6, lists of 500 rows, float64; the workers read `.npy` files
('files') or are sent arrays once ('arrays'). The ways take turns, the fastest solve of each counts;
loading is a column of its own. Seconds are of the clock: a solve waits for other processes.
"""

import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from benchmarks.speed.data import read_lists, write_lists
from benchmarks.speed.harness import parsed, parser, save, timed
from structsvm_papk import CuttingPlane, EmpiricalRisk, make_surrogate
from structsvm_papk.files import open_source
from structsvm_papk.files.partitions import array_partitions, file_partitions
from structsvm_papk.oracles.dask_risk import DaskRisk

K, ALPHA, TOL = 10, 1e-3, 1e-6


def main():
    options = parser(__doc__)
    options.add_argument("--rows", type=int, nargs="+", default=[8_000_000, 1_000_000])
    options.add_argument("--features", type=int, default=50)
    options.add_argument("--surrogates", nargs="+", default=["ts", "avg"])
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--scratch", help="directory for the data")
    options = parsed(options, rows=[20_000], turns=1)
    save(options.json, times(options))


@contextmanager
def local_cluster(n_workers):
    """A client of so many workers of one thread."""
    from distributed import Client, LocalCluster

    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings, memory_limit=0) as local, Client(local) as client:
        yield client


def times(options):
    """A row for each way of each problem."""
    report = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as name, local_cluster(2) as client:
        folder = Path(name)
        write_lists(folder, 20_000, 20)
        ways_of(folder, "ts", client, 1)  # kernels are loaded
        for n_rows in options.rows:
            write_lists(folder, n_rows, options.features)
            for surrogate in options.surrogates:
                rows = ways_of(folder, surrogate, client, options.turns)
                show(rows)
                report += rows
    return report


def ways_of(folder, name, client, turns):
    """The fastest solve of each way."""
    data = read_lists(folder)
    source = open_source(folder)
    quarter = -(-data.X.nbytes // 4)
    surrogate = make_surrogate(name, K)
    ways = {
        "one thread": lambda: EmpiricalRisk(surrogate, data),
        "two threads": lambda: EmpiricalRisk(surrogate, data, n_threads=2),
        "workers, files": lambda: DaskRisk(surrogate, file_partitions(source, quarter), client),
        "workers, arrays": lambda: DaskRisk(surrogate, array_partitions(data, 4), client),
    }
    size = {"rows": data.X.shape[0], "features": data.n_features}
    best = {}
    for _ in range(turns):
        for way, make in ways.items():
            risk, load = timed(make, time.perf_counter)
            result, seconds = timed(
                lambda risk=risk: CuttingPlane(ALPHA, tol=TOL).solve(risk), time.perf_counter
            )
            del risk  # workers let go of the partitions
            if way not in best or seconds < best[way]["seconds"]:
                best[way] = size | {
                    "surrogate": name,
                    "way": way,
                    "load": load,
                    "seconds": seconds,
                    "passes": result.data_passes,
                    "objective": result.objective,
                    "status": str(result.status),
                }
    return list(best.values())


def show(rows):
    alone = rows[0]["seconds"]
    print(f"{rows[0]['rows']} rows, {rows[0]['surrogate']}")
    for row in rows:
        print(
            f"  {row['way']:16s} load {row['load']:5.1f} s, solve {row['seconds']:6.2f} s "
            f"({row['seconds'] / alone:.2f}); {row['passes']} passes, {row['status']}"
        )


if __name__ == "__main__":
    main()
