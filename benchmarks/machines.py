"""What many machines would do: a cost model of a solve on a cluster, from its measured parts.

    python -m benchmarks machines [--json benchmarks/results/machines.json]

    solve = passes * (compute(rows / workers) + trip(workers, partitions, bytes)) + rest

Compute and rest (the restricted problem) are fitted to solves on one worker, at other sizes than
those that are predicted; a trip to empty evaluations on one to eight workers, and to
wide ones for the bandwidth. Workers of one computer share its memory: by how much that slows their
products down is measured, too. How many passes there are and how many rows are scored is counted in
memory. Checked: solves of three sizes on one and two workers, and one whose messages are delayed.

    python -m benchmarks machines --from benchmarks/results/machines.json

fits and predicts again what was measured.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from dask_time import K, cluster, lists, memory, solved, watch, write
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from structsvm_papk import make_surrogate
from structsvm_papk.data.partitions import array_partitions
from structsvm_papk.oracles import DaskRisk

CALIBRATED = [(150_000, 30), (250_000, 50), (100_000, 80), (500_000, 50), (200_000, 120)]
CHECKED = [(300_000, 40), (600_000, 60), (1_000_000, 50)]
WORKERS, CHECKED_WORKERS, A_WORKER = (1, 2, 4, 8), (1, 2), 2  # partitions a worker
WIDE = 20_000
DELAY = 0.05  # s, of every message
ENTRY = 60  # bytes of a partition's name in the message to each worker
USER_ROWS = 500
TURNS = 3
PASSES, SCORED = 18, 2.1  # of `out_of_core.py`, 4,000,000 rows: of each row, how often it is scored
NETWORK = {"latency": 2e-4, "bandwidth": 1.25e9}  # two messages each way; 10 Gbit/s
HOPS = 4  # client, scheduler, worker, and back


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--from", dest="measured", type=Path, metavar="JSON")
    parser.add_argument("--shrink", type=int, default=1, help="divide all rows, to try it")
    options = parser.parse_args()
    if options.measured:
        report = json.loads(options.measured.read_text())
    else:
        report = measured(options.shrink)
    report["model"] = model = fitted(report)
    for run in report["checked"]:
        run["predicted"] = sum(parts(model, run, run["workers"], run.get("delay", 0.0)).values())
        print(
            f"{run['rows']} x {run['features']}, {run['workers']} workers, delay "
            f"{run.get('delay', 0.0)}: predicted {run['predicted']:.2f} s, measured "
            f"{run['seconds']:.2f} s, {run['predicted'] / run['seconds']:.2f}"
        )
    report["many"] = [
        large(model, rows, 100, n) for rows in (10**8, 10**9) for n in (16, 100, 1000)
    ]
    for row in report["many"]:
        print(", ".join(f"{name} {value:.4g}" for name, value in row.items()))
    print(json.dumps(model, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def measured(shrink):
    watch()
    sizes = [(rows // shrink, features) for rows, features in (*CALIBRATED, *CHECKED)]
    alone, known, checked, trips, products = [], [], [], [], {}
    with tempfile.TemporaryDirectory() as directory:
        problems = {size: problem(Path(directory), *size) for size in sizes}
    solved(memory(problems[sizes[0]], 1, "ts"))  # kernels are loaded
    for size in sizes[-len(CHECKED) :]:
        data = problems[size]
        known.append(counts(solved(memory(data, 1, "ts"))) | size_of(data))
    for n in WORKERS:
        with cluster(n) as client:
            trips += [trip(client, n, partitions, 50) for partitions in (n, 2 * n, 8 * n)]
            if n not in CHECKED_WORKERS:
                continue
            client.run(product_seconds)
            products[n] = max(client.run(product_seconds).values())
            trips.append(trip(client, n, n, WIDE))
            on_cluster(client, problems[sizes[0]], n)
            if n == 1:
                for size in sizes[: len(CALIBRATED)]:
                    alone.append(on_cluster(client, problems[size], 1) | size_of(problems[size]))
            for run, size in zip(known, sizes[-len(CHECKED) :], strict=True):
                checked.append(
                    run
                    | {"workers": n, "seconds": on_cluster(client, problems[size], n)["seconds"]}
                )
            if n == max(CHECKED_WORKERS):
                slow_down(client)
                late = on_cluster(client, problems[sizes[len(CALIBRATED)]], n)
                checked.append(
                    known[0] | {"workers": n, "delay": DELAY, "seconds": late["seconds"]}
                )
    shared = {n: seconds / products[1] for n, seconds in products.items()}
    for run in checked:
        run["shared"] = shared[run["workers"]]
    return {"alone": alone, "trips": trips, "checked": checked}


def product_seconds(rows=1_000_000, features=50, repeat=5):
    """On a worker, while the others do the same: both products with a matrix of its own."""
    X, w = np.ones((rows, features)), np.ones(features)
    started = time.perf_counter()
    for _ in range(repeat):
        (X @ w) @ X
    return time.perf_counter() - started


def problem(folder, rows, features):
    write(folder, rows, features)
    return lists(folder)


def fastest(run):
    return min((run() for _ in range(TURNS)), key=lambda found: found["seconds"])


def size_of(data):
    return {"rows": data.X.shape[0], "features": data.n_features}


def counts(run):
    """What a run in memory says of one elsewhere; nothing that was timed."""
    return {name: run[name] for name in ("passes", "rows_scored")}


def on_cluster(client, data, n_workers):
    def once():
        parts = array_partitions(data, A_WORKER * n_workers)
        return solved(DaskRisk(make_surrogate("ts", K), parts, client), client)

    return fastest(once)


def trip(client, n_workers, partitions, features, repeat=30):
    """Seconds of an evaluation of next to no data, and the bytes that come back."""
    with tempfile.TemporaryDirectory() as directory:
        data = problem(Path(directory), USER_ROWS * partitions, features)
    risk = DaskRisk(make_surrogate("avg", K), array_partitions(data, partitions), client)
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        risk(np.zeros(features))
        seconds.append(time.perf_counter() - started)
    return {
        "workers": n_workers, "partitions": partitions, "seconds": float(np.median(seconds)),
        "bytes": message_bytes(features, partitions, n_workers, partitions),
    }  # fmt: skip


def slow_down(client):
    """Delay every message of this process, which holds the scheduler, and of the workers."""

    def delayed(delay):
        from distributed.comm.tcp import TCP

        write = TCP.write

        async def later(self, *args, **options):
            await asyncio.sleep(delay)
            return await write(self, *args, **options)

        TCP.write = later

    client.run(delayed, DELAY)
    delayed(DELAY)


def message_bytes(features, blocks, workers, partitions):
    """Of an evaluation: w and the names of all partitions to each worker, a vector a block back."""
    return 8 * features * (blocks + workers) + ENTRY * partitions * workers


def work(run):
    """What is computed: the times of a product, of screening, of a user's kernel."""
    users = run["rows"] / USER_ROWS
    return [
        run["rows_scored"] * run["features"], run["rows_scored"], run["passes"] * run["rows"],
        run["passes"] * users,
    ]  # fmt: skip


def solver_work(run):
    return [run["passes"], run["passes"] * cuts(run) * run["features"]]


def cuts(run):
    """Blocks of users: those of `default_blocks`."""
    return run.get("cuts", min(max(2 * run["features"], 32), 400, run["rows"] // USER_ROWS))


def fitted(report):
    alone, trips = report["alone"], report["trips"]
    ways = [[1.0, each["workers"], each["partitions"], each["bytes"]] for each in trips]
    return {
        "compute": least([work(run) for run in alone], [compute_of(run) for run in alone]),
        "solver": least([solver_work(run) for run in alone], [run["rest"] for run in alone]),
        "trip": least(ways, [each["seconds"] for each in trips]),
    }


def compute_of(run):
    return run["products"] + run["kernels"]


def least(terms, seconds):
    """Non-negative costs by least squares of relative errors."""
    terms, seconds = np.array(terms, dtype=float), np.array(seconds)
    return nnls(terms / seconds[:, None], np.ones(seconds.size))[0].tolist()


def parts(model, run, workers, delay=0.0, network=None):
    """Seconds of a solve by what they are for."""
    partitions = A_WORKER * workers
    n_bytes = message_bytes(run["features"], max(cuts(run), partitions), workers, partitions)
    trip = np.dot(model["trip"], [1.0, workers, partitions, n_bytes]) + HOPS * delay
    if network:
        trip += HOPS * network["latency"] + n_bytes / network["bandwidth"]
    return {
        "compute": float(np.dot(model["compute"], work(run))) * run.get("shared", 1.0) / workers,
        "messages": float(run["passes"] * trip),
        "solver": float(np.dot(model["solver"], solver_work(run))),
    }


def large(model, rows, features, workers):
    """A solve of more rows than were measured, over a network."""
    scored = SCORED * rows
    run = {"rows": rows, "features": features, "passes": PASSES, "rows_scored": scored, "cuts": 400}

    def seconds(n_workers):
        return sum(parts(model, run, n_workers, network=NETWORK).values())

    return {
        "rows": rows, "workers": workers, "GB a worker": 8e-9 * rows * features / workers,
        **parts(model, run, workers, network=NETWORK), "solve": seconds(workers),
        "times one worker": seconds(1) / seconds(workers),
        "fastest with": min(np.unique(np.geomspace(1, 10_000, 400).astype(int)).tolist(),
                            key=seconds),
    }  # fmt: skip


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
