"""Fits whose workers are killed at random times, and many fits on one client.

    python -m benchmarks faults [--kills 10] [--fits 200] [--rows 100000] [--json FILE]

Two workers of one thread read `.npy` files. A worker, drawn at random, is killed (SIGKILL) at a
time drawn from the seconds that the undisturbed solve took; each time the fit has to end with the
status and the objective of the undisturbed one. Every kill has a cluster of its own, so that it
meets two workers whatever became of the one killed before.
"""

import os
import signal
import tempfile
import time
from pathlib import Path
from threading import Timer
from typing import NamedTuple

import numpy as np

from benchmarks.speed.cluster import local_cluster
from benchmarks.speed.data import write_lists
from benchmarks.speed.harness import parsed, parser, save
from structsvm_papk import CCCP, CuttingPlane, SolverResult, make_surrogate
from structsvm_papk.files import open_source
from structsvm_papk.files.partitions import file_partitions
from structsvm_papk.oracles.dask_risk import DaskRisk

K, ALPHA, N_FEATURES = 10, 1e-3, 100
SAME = 1e-9


def main():
    options = parser(__doc__)
    options.add_argument("--kills", type=int, default=10, help="of each surrogate")
    options.add_argument("--fits", type=int, default=200)
    options.add_argument("--rows", type=int, default=100_000)
    options = parsed(options, kills=1, fits=2, rows=5_000)
    with tempfile.TemporaryDirectory() as folder:
        write_lists(Path(folder), options.rows, N_FEATURES)
        eighth = options.rows * N_FEATURES  # bytes: eight each number
        partitions = file_partitions(open_source(folder), eighth)
        report = {"fits": many_fits(partitions, options.fits)}
        for name in ("avg", "ts", "clipped_ramp"):
            report[name] = kills(partitions, name, options.kills)
    save(options.json, report)


class Fit(NamedTuple):
    """What a fit gave, and its seconds with loading."""

    result: SolverResult
    seconds: float


def fit(client, partitions, name, timer=None):
    """Load and solve; the timer starts with the solve."""
    started = time.perf_counter()
    risk = DaskRisk(make_surrogate(name, K), partitions, client)
    if timer:
        timer.start()
    solver = CuttingPlane(ALPHA) if risk.convex else CCCP(ALPHA)
    result = solver.solve(risk)
    return Fit(result=result, seconds=time.perf_counter() - started)


def many_fits(partitions, n):
    with local_cluster(2) as client:
        fit(client, partitions, "ts")  # kernels are loaded
        fits = [fit(client, partitions, "ts") for _ in range(n)]
    seconds = [each.seconds for each in fits]
    row = {
        "fits": n,
        "optima": len({each.result.objective for each in fits}),
        "median": float(np.median(seconds)),
        "longest": max(seconds),
    }
    print(
        "{fits} fits on one client: {optima} optimum; seconds with loading: "
        "median {median:.2f}, longest {longest:.2f}".format(**row)
    )
    return row


def kills(partitions, name, n):
    """A row for each fit in which a worker was killed; another result ends the program."""
    rng = np.random.default_rng(0)
    with local_cluster(2) as client:
        fit(client, partitions, name)  # kernels are loaded
        expected = fit(client, partitions, name).result
    print(f"{name}: undisturbed {expected.seconds:.1f} s, {expected.objective:.12f}")
    rows = []
    while len(rows) < n:
        with local_cluster(2) as client:
            victim = int(rng.choice(sorted(client.run(os.getpid).values())))
            after = rng.uniform(0.0, expected.seconds)
            timer = Timer(after, os.kill, (victim, signal.SIGKILL))
            disturbed = fit(client, partitions, name, timer)
            if timer.is_alive():
                timer.cancel()
                continue  # the fit was faster
        rows.append(row_of(after, disturbed, expected))
        if disturbed.result.status != expected.status or rows[-1]["difference"] > SAME:
            raise SystemExit(f"another result: {disturbed.result.message}")
    return rows


def row_of(after, disturbed, expected):
    row = {
        "after": after,
        "seconds": disturbed.result.seconds,
        "status": str(disturbed.result.status),
        "difference": abs(disturbed.result.objective - expected.objective),
    }
    print(
        f"  killed after {after:5.2f} s of {row['seconds']:5.2f}: {row['status']}, difference "
        f"{row['difference']:.0e}"
    )
    return row


if __name__ == "__main__":
    main()
