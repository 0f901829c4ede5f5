"""Where the time of a solve on a cluster goes, and what many machines would do.

    python -m benchmarks cluster time [--rows 8000000 1000000]
        [--json benchmarks/results/dask_time.json]
    python -m benchmarks cluster model [--json benchmarks/results/machines.json]
    python -m benchmarks cluster model --from benchmarks/results/machines.json

`time`: TS and Avg, k = 10, a gap of 1e-6, lists of 500 rows, float64; one thread and two in memory,
and two workers of one thread, which read `.npy` files ('files') or are sent arrays once ('arrays').
The ways take turns, the fastest solve of each counts; loading is a column of its own.

`model`: a cost model (`cost_model.py`) is fitted to solves on one worker, at other sizes than those
that are predicted, and to empty evaluations on one to eight workers, with wide ones for the
bandwidth. Workers of one computer share its memory: by how much that slows their products down is
measured, too. How many passes there are and how many rows are scored is counted in memory. Checked:
solves of three sizes on one and two workers, and one whose messages are delayed. `--from` fits and
predicts again what was measured.
"""

import asyncio
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.speed.cost_model import A_WORKER, fitted, large, message_bytes, parts
from benchmarks.speed.data import USER_ROWS, read_lists, write_lists
from benchmarks.speed.harness import median_seconds, parsed, parser, save, timed
from benchmarks.speed.on_cluster import PARTS, K, local_cluster, solved, watch
from structsvm_papk import EmpiricalRisk, make_surrogate
from structsvm_papk.files import file_partitions, open_source
from structsvm_papk.files.partitions import array_partitions
from structsvm_papk.oracles import DaskRisk

CALIBRATED = [(150_000, 30), (250_000, 50), (100_000, 80), (500_000, 50), (200_000, 120)]
CHECKED = [(300_000, 40), (600_000, 60), (1_000_000, 50)]  # rows, features
SHRINK = 50  # times fewer rows in a small run
WORKERS = (1, 2, 4, 8)
CHECKED_WORKERS = (1, 2)
WIDE = 20_000  # features, of messages that show the bandwidth
DELAY = 0.05  # s, of every message


def main():
    options = parser(__doc__)
    options.add_argument("what", choices=("time", "model"))
    options.add_argument("--rows", type=int, nargs="+", default=[8_000_000, 1_000_000])
    options.add_argument("--features", type=int, default=50)
    options.add_argument("--surrogates", nargs="+", default=["ts", "avg"])
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--scratch", help="directory for the data")
    options.add_argument("--from", dest="measured", type=Path, metavar="JSON")
    options = parsed(options, rows=[20_000], turns=1)
    watch()
    if options.what == "time":
        save(options.json, times(options))
    else:
        save(options.json, model(options))


# ----------------------------------------------------------------- time


def times(options):
    """A row for each way of each problem."""
    report = []
    with tempfile.TemporaryDirectory(dir=options.scratch) as name, local_cluster(2) as client:
        folder = Path(name)
        data = problem(folder, 20_000, 20)
        solved(EmpiricalRisk(make_surrogate("ts", K), data))  # kernels are loaded
        solved(DaskRisk(make_surrogate("ts", K), array_partitions(data, 2), client), client)
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
    best = {}
    for _ in range(turns):
        for way, make in ways.items():
            risk, load = timed(make, time.perf_counter)
            run = solved(risk, client if way.startswith("workers") else None)
            del risk  # workers let go of the partitions
            if way not in best or run["seconds"] < best[way]["seconds"]:
                best[way] = {"surrogate": name, "way": way, "load": load} | size_of(data) | run
    return list(best.values())


def show(rows):
    alone = rows[0]["seconds"]
    print(f"{rows[0]['rows']} rows, {rows[0]['surrogate']}")
    for row in rows:
        spent = ", ".join(f"{name} {row[name]:.2f}" for name in (*PARTS, "rest"))
        print(
            f"  {row['way']:16s} load {row['load']:5.1f} s, solve {row['seconds']:6.2f} s "
            f"({row['seconds'] / alone:.2f}): {spent}; {row['passes']} passes, {row['status']}"
        )


# ----------------------------------------------------------------- model


def model(options):
    """What was measured, what the model says of it, and of larger problems."""
    report = json.loads(options.measured.read_text()) if options.measured else measured(options)
    report["model"] = fitted(report)
    for run in report["checked"]:
        delay = run.get("delay", 0.0)
        run["predicted"] = sum(parts(report["model"], run, run["workers"], delay).values())
        print(
            f"{run['rows']} x {run['features']}, {run['workers']} workers, delay {delay}: "
            f"predicted {run['predicted']:.2f} s, measured {run['seconds']:.2f} s, "
            f"{run['predicted'] / run['seconds']:.2f}"
        )
    report["many"] = [
        large(report["model"], rows, 100, n) for rows in (10**8, 10**9) for n in (16, 100, 1000)
    ]
    for row in report["many"]:
        print(", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(json.dumps(report["model"], indent=1))
    return report


def measured(options):
    """Solves on one worker, round trips, and the solves that are predicted."""
    shrink = SHRINK if options.small else 1
    with tempfile.TemporaryDirectory(dir=options.scratch) as name:
        calibrated = [problem(Path(name), rows // shrink, d) for rows, d in CALIBRATED]
        checked = [problem(Path(name), rows // shrink, d) for rows, d in CHECKED]
    solved(EmpiricalRisk(make_surrogate("ts", K), calibrated[0]))  # kernels are loaded
    known = [counts(data) for data in checked]
    report = {"alone": [], "trips": [], "checked": []}
    products = {}
    for n in CHECKED_WORKERS if options.small else WORKERS:
        with local_cluster(n) as client:
            report["trips"] += [trip(client, n, m, 50) for m in (n, 2 * n, 8 * n)]
            if n not in CHECKED_WORKERS:
                continue
            client.run(product_seconds, 1_000_000 // shrink)
            products[n] = max(client.run(product_seconds, 1_000_000 // shrink).values())
            report["trips"].append(trip(client, n, n, WIDE))
            on_workers(client, calibrated[0], n, options.turns)
            if n == 1:
                for data in calibrated:
                    report["alone"].append(
                        on_workers(client, data, 1, options.turns) | size_of(data)
                    )
            for run, data in zip(known, checked, strict=True):
                seconds = on_workers(client, data, n, options.turns)["seconds"]
                report["checked"].append(run | {"workers": n, "seconds": seconds})
            if n == max(CHECKED_WORKERS):
                slow_down(client)
                late = on_workers(client, checked[0], n, options.turns)["seconds"]
                run = {"workers": n, "delay": DELAY, "seconds": late}
                report["checked"].append(known[0] | run)
    for run in report["checked"]:
        run["shared"] = products[run["workers"]] / products[1]
    return report


def problem(folder, n_rows, n_features):
    write_lists(folder, n_rows, n_features)
    return read_lists(folder)


def size_of(data):
    return {"rows": data.X.shape[0], "features": data.n_features}


def counts(data):
    """What a solve in memory says of one elsewhere; nothing that was timed."""
    run = solved(EmpiricalRisk(make_surrogate("ts", K), data))
    return {name: run[name] for name in ("passes", "rows_scored")} | size_of(data)


def on_workers(client, data, n_workers, turns):
    """The fastest of some solves, each with partitions of its own."""

    def once():
        partitions = array_partitions(data, A_WORKER * n_workers)
        return solved(DaskRisk(make_surrogate("ts", K), partitions, client), client)

    return min((once() for _ in range(turns)), key=lambda run: run["seconds"])


def product_seconds(rows, features=50, repeat=5):
    """On a worker, while the others do the same: both products with a matrix of its own."""
    X = np.ones((rows, features))
    w = np.ones(features)
    return timed(lambda: [(X @ w) @ X for _ in range(repeat)], time.perf_counter).seconds


def trip(client, n_workers, partitions, features, repeats=30):
    """Seconds of an evaluation of next to no data, and the bytes that come back."""
    with tempfile.TemporaryDirectory() as name:
        data = problem(Path(name), USER_ROWS * partitions, features)
    risk = DaskRisk(make_surrogate("avg", K), array_partitions(data, partitions), client)
    w = np.zeros(features)
    return {
        "workers": n_workers,
        "partitions": partitions,
        "seconds": median_seconds(lambda: risk(w), repeats, time.perf_counter),
        "bytes": message_bytes(features, partitions, n_workers, partitions),
    }


def slow_down(client):
    """Delay every message of this process, which holds the scheduler, and of the workers."""
    client.run(delay_messages, DELAY)
    delay_messages(DELAY)


def delay_messages(delay):
    from distributed.comm.tcp import TCP

    write = TCP.write

    async def later(self, *args, **options):
        await asyncio.sleep(delay)
        return await write(self, *args, **options)

    TCP.write = later


if __name__ == "__main__":
    main()
