"""A model of the seconds of a solve on a cluster, fitted to measured parts.

    solve = passes * (compute(rows / workers) + trip(workers, partitions, bytes)) + rest

Compute and rest (the restricted problem) are fitted to solves on one worker, a trip to evaluations
of next to no data. Costs are non-negative, by least squares of relative errors.
"""

import numpy as np
from scipy.optimize import nnls

from benchmarks.speed.data import USER_ROWS

A_WORKER = 2  # partitions a worker
ENTRY = 60  # bytes of a partition's name in the message to each worker
HOPS = 4  # client, scheduler, worker, and back
PASSES, SCORED = 18, 2.1  # of 4,000,000 rows (`memory budget`): of each row, how often it is scored
NETWORK = {"latency": 2e-4, "bandwidth": 1.25e9}  # two messages each way; 10 Gbit/s


def fitted(report):
    """The costs, from solves on one worker (`alone`) and round trips (`trips`)."""
    alone = report["alone"]
    trips = report["trips"]
    ways = [[1.0, trip["workers"], trip["partitions"], trip["bytes"]] for trip in trips]
    return {
        "compute": least([work(run) for run in alone], [compute_of(run) for run in alone]),
        "solver": least([solver_work(run) for run in alone], [run["rest"] for run in alone]),
        "trip": least(ways, [trip["seconds"] for trip in trips]),
    }


def least(terms, seconds):
    """Non-negative costs of the terms."""
    terms = np.array(terms, dtype=float)
    seconds = np.array(seconds)
    return nnls(terms / seconds[:, None], np.ones(seconds.size))[0].tolist()


def compute_of(run):
    return run["products"] + run["kernels"]


def work(run):
    """What is computed: the times of a product, of screening, of a user's kernel."""
    users = run["rows"] / USER_ROWS
    return [
        run["rows_scored"] * run["features"],
        run["rows_scored"],
        run["passes"] * run["rows"],
        run["passes"] * users,
    ]


def solver_work(run):
    return [run["passes"], run["passes"] * cuts(run) * run["features"]]


def cuts(run):
    """Blocks of users: those of `default_blocks`."""
    return run.get("cuts", min(max(2 * run["features"], 32), 400, run["rows"] // USER_ROWS))


def message_bytes(features, blocks, workers, partitions):
    """Of an evaluation: w and the names of all partitions to each worker, a vector a block back."""
    return 8 * features * (blocks + workers) + ENTRY * partitions * workers


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
    run = {
        "rows": rows,
        "features": features,
        "passes": PASSES,
        "rows_scored": SCORED * rows,
        "cuts": 400,
    }

    def seconds(n_workers):
        return sum(parts(model, run, n_workers, network=NETWORK).values())

    numbers = np.unique(np.geomspace(1, 10_000, 400).astype(int)).tolist()
    return {
        "rows": rows,
        "workers": workers,
        "GB a worker": 8e-9 * rows * features / workers,
        **parts(model, run, workers, network=NETWORK),
        "solve": seconds(workers),
        "times one worker": seconds(1) / seconds(workers),
        "fastest with": min(numbers, key=seconds),
    }
