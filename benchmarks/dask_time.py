"""Where the time of a solve goes: one thread and two in memory, and two workers of one thread.

    python -m benchmarks dask_time [--rows 8000000 1000000] [--json FILE]

TS and Avg, k = 10, a gap of 1e-6, lists of 500 rows, float64. The ways take turns, the fastest
solve of each counts; kernels are loaded beforehand. Workers read `.npy` files ('files') or are sent
arrays once ('arrays'); loading is a column of its own. All processes count the seconds of products
with X and of the surrogate's kernels, of workers the slowest counts; what is left of an evaluation
is messages and waiting, what is left of a solve the restricted problem.
"""

import argparse
import json
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.data import file_partitions, open_source
from structsvm_papk.data.partitions import array_partitions
from structsvm_papk.oracles import DaskRisk

K, ALPHA, TOL, USER_ROWS = 10, 1e-3, 1e-6, 500
PARTS = ("products", "kernels", "messages", "sample")  # and the rest
CHUNK = 100_000


def main():
    options = parsed()
    report = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as directory, cluster(2) as client:
        watch()
        solved(memory(*small(), "ts"))  # kernels are loaded
        solved(DaskRisk(make_surrogate("ts", K), array_partitions(small()[0], 2), client), client)
        for n in options.rows:
            write(Path(directory), n, options.features)
            for name in options.surrogates:
                report += rows_of(Path(directory), name, client, options.turns)
                show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[8_000_000, 1_000_000])
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--surrogates", nargs="+", default=["ts", "avg"])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--scratch", help="directory for the data")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


@contextmanager
def cluster(n_workers):
    from distributed import Client, LocalCluster

    settings = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**settings, memory_limit=0) as local, Client(local) as client:
        client.run(watch)
        yield client


def write(folder, n_rows, n_features):
    """Rows in `.npy` files, in pieces."""
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(n_features) / np.sqrt(n_features)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", shape=(n_rows, n_features))
    y = np.empty(n_rows, dtype=np.int8)
    for start in range(0, n_rows, CHUNK):
        piece = rng.standard_normal((min(CHUNK, n_rows - start), n_features))
        X[start : start + CHUNK] = piece
        noise = 0.3 * rng.standard_normal(len(piece))
        y[start : start + CHUNK] = piece @ direction + noise > 2.0
    np.save(folder / "y.npy", y)
    np.save(folder / "groups.npy", np.arange(n_rows) // USER_ROWS)


def lists(folder):
    X, y, groups = (np.load(folder / f"{name}.npy") for name in ("X", "y", "groups"))
    return RankingData.from_groups(X, y, groups)


def small():
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), 20_000, 20)
        return lists(Path(directory)), 1


def memory(data, n_threads, name):
    return EmpiricalRisk(make_surrogate(name, K), data, n_threads=n_threads)


def rows_of(folder, name, client, turns):
    """One row of the table for each way."""
    data, source = lists(folder), open_source(folder)
    n, d = data.X.shape
    ways = {
        "one thread": lambda: memory(data, 1, name),
        "two threads": lambda: memory(data, 2, name),
        "workers, files": lambda: on_workers(file_partitions(source, -(-8 * n * d // 4))),
        "workers, arrays": lambda: on_workers(array_partitions(data, 4)),
    }

    def on_workers(partitions):
        return DaskRisk(make_surrogate(name, K), partitions, client)

    best: dict[str, dict] = {}
    for _ in range(turns):
        for way, make in ways.items():
            started = time.perf_counter()
            risk = make()
            load = time.perf_counter() - started
            found = {"rows": n, "features": d, "surrogate": name, "way": way, "load": load}
            found |= solved(risk, client if way.startswith("workers") else None)
            if found["seconds"] < best.get(way, found)["seconds"] or way not in best:
                best[way] = found
            del risk  # workers let go of the partitions
    return list(best.values())


def solved(risk, client=None):
    """Seconds of a solve and what they went to."""
    reset()
    if client:
        client.run(reset)
    started = time.perf_counter()
    result = CuttingPlane(ALPHA, tol=TOL).solve(risk)
    seconds = time.perf_counter() - started
    spent = {name: _spent()[name] for name in PARTS}
    if client:
        workers = client.run(lambda: dict(_spent())).values()
        slowest = max(workers, key=lambda each: sum(each.values()))
        for name in ("products", "kernels"):
            spent[name] = slowest.get(name, 0.0)
        spent["messages"] -= spent["products"] + spent["kernels"]
    return {
        "seconds": seconds,
        **spent,
        "rest": seconds - sum(spent.values()),
        "passes": result.data_passes,
        "rows_scored": result.history[-1].rows_scored,
        "objective": result.objective,
        "status": str(result.status),
    }


def _spent():
    from structsvm_papk.oracles import list_risk

    return list_risk.spent


def reset():
    _spent().clear()


def watch():
    """Let this process count its seconds by what they are for; a sample's are one."""
    from collections import Counter
    from time import perf_counter

    from structsvm_papk.oracles import dask_risk, list_risk, short_lists
    from structsvm_papk.solvers import steps

    spent = list_risk.spent = Counter()
    inside = []

    def count(owner, method, name):
        call = getattr(owner, method)

        def counted(*args, **options):
            if inside:
                return call(*args, **options)
            inside.append(name)
            started = perf_counter()
            try:
                return call(*args, **options)
            finally:
                spent[name] += perf_counter() - started
                inside.pop()

        setattr(owner, method, counted)

    for owner, method, name in (
        (list_risk.ListRisk, "scores", "products"),
        (list_risk.ListRisk, "slopes", "products"),
        (short_lists.ShortLists, "at", "products"),
        (list_risk.ListRisk, "tangents", "kernels"),
        (dask_risk._DaskParts, "run", "messages"),
        (steps, "_minimum", "sample"),
    ):
        count(owner, method, name)


def show(report):
    last = report[-4:]
    alone = last[0]["seconds"]
    print(f"{last[0]['rows']} rows, {last[0]['surrogate']}")
    for row in last:
        parts = ", ".join(f"{name} {row[name]:.2f}" for name in (*PARTS, "rest"))
        print(
            f"  {row['way']:16s} load {row['load']:5.1f} s, solve {row['seconds']:6.2f} s "
            f"({row['seconds'] / alone:.2f}): {parts}; {row['passes']} passes, {row['status']}",
            flush=True,
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
