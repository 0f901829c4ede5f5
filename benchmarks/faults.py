"""Fits whose workers are killed at random times, and many fits on one client.

    python -m benchmarks faults [--kills 10] [--fits 200] [--rows 100000]

Two workers of one thread read `.npy` files. A worker, drawn at random, is killed (SIGKILL) at a
time drawn from the seconds that the undisturbed solve took; each time the fit has to end with the
status and the objective of the undisturbed one. Every kill has a cluster of its own, so that it
meets two workers whatever became of the one killed before.
"""

import argparse
import os
import signal
import tempfile
import time
from pathlib import Path
from threading import Timer

import numpy as np
from dask_time import cluster, write
from threadpoolctl import threadpool_limits

from structsvm_papk import CCCP, CuttingPlane, make_surrogate
from structsvm_papk.data import file_partitions, open_source
from structsvm_papk.oracles import DaskRisk

K, ALPHA, N_FEATURES = 10, 1e-3, 100
SAME = 1e-9


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=10, help="of each surrogate")
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        write(Path(directory), options.rows, N_FEATURES)
        partitions = file_partitions(open_source(directory), 8 * options.rows * N_FEATURES // 8)
        many_fits(partitions, options.fits)
        for name in ("avg", "ts", "clipped_ramp"):
            kills(partitions, name, options.kills)


def fit(client, partitions, name, timer=None):
    """The result, its notes, and the seconds with loading; the timer starts with the solve."""
    started = time.perf_counter()
    risk = DaskRisk(make_surrogate(name, K), partitions, client)
    if timer:
        timer.start()
    solver = CuttingPlane(ALPHA) if risk.convex else CCCP(ALPHA)
    return solver.solve(risk), risk.notes, time.perf_counter() - started


def many_fits(partitions, n):
    with cluster(2) as client:
        fit(client, partitions, "ts")  # kernels are loaded
        fits = [fit(client, partitions, "ts") for _ in range(n)]
    results, notes, seconds = zip(*fits, strict=True)
    print(
        f"{n} fits on one client: {sum(map(bool, notes))} disturbed, "
        f"{len({result.objective for result in results})} optimum; seconds with loading: median "
        f"{np.median(seconds):.2f}, longest {max(seconds):.2f}",
        flush=True,
    )


def kills(partitions, name, n):
    rng = np.random.default_rng(0)
    with cluster(2) as client:
        fit(client, partitions, name)
        expected = fit(client, partitions, name)[0]
    print(f"{name}: undisturbed {expected.seconds:.1f} s, {expected.objective:.12f}", flush=True)
    killed = 0
    while killed < n:
        with cluster(2) as client:
            pids = sorted(client.run(os.getpid).values())
            victim, after = int(rng.choice(pids)), rng.uniform(0.0, expected.seconds)
            timer = Timer(after, os.kill, (victim, signal.SIGKILL))
            found, noted, _ = fit(client, partitions, name, timer)
            if timer.is_alive():
                timer.cancel()
                continue  # the fit was faster
        killed += 1
        difference = abs(found.objective - expected.objective)
        print(
            f"  killed after {after:5.2f} s of {found.seconds:5.2f}: {found.status}, difference "
            f"{difference:.0e}, {'loaded again' if noted else 'no note'}",
            flush=True,
        )
        if found.status != expected.status or difference > SAME:
            raise SystemExit(f"another result: {found.message}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
