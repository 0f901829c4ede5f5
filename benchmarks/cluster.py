"""A fit on a cluster of two workers, one of which is killed on the way, beside one machine.

    python benchmarks/cluster.py [--rows 600000] [--json benchmarks/results/cluster.json]

Both workers and the single-machine fit compute with one thread. The rows are sent by this process
once ('arrays'), or read by the workers from `.npy` files ('files'). Each fit runs twice, and the
second time a worker is killed (SIGKILL) after some iterations.
"""

import argparse
import json
import os
import signal
import tempfile
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

K, ALPHA, TOL, USER_ROWS, N_FEATURES = 10, 1e-3, 1e-6, 500, 100
KILL_AT = 10  # iterations


def main():
    options = parsed()
    X, y, groups = rows(options.rows)
    report = {"rows": len(X), "features": N_FEATURES, "kill_at": KILL_AT}
    report["one_machine"], expected = one_machine(X, y, groups)
    with tempfile.TemporaryDirectory() as directory, cluster() as client:
        for how, partitions in ways(Path(directory), X, y, groups):
            report[how] = on_cluster(client, partitions, expected)
    show(report)
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=600_000)
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


def rows(n_rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, N_FEATURES))
    direction = rng.standard_normal(N_FEATURES) / np.sqrt(N_FEATURES)
    y = (X @ direction + 0.3 * rng.standard_normal(n_rows) > 2.0).astype(np.int8)
    return X, y, np.arange(n_rows) // USER_ROWS


def solver():
    from structsvm_papk.solvers.cutting_plane import CuttingPlane

    return CuttingPlane(ALPHA, tol=TOL)


def surrogate():
    from structsvm_papk import make_surrogate

    return make_surrogate("ts", K)


def one_machine(X, y, groups):
    from structsvm_papk import EmpiricalRisk, RankingData

    few = RankingData.from_groups(X[:5000], y[:5000], groups[:5000])
    solver().solve(EmpiricalRisk(surrogate(), few))  # kernels are compiled or loaded
    started = time.perf_counter()
    risk = EmpiricalRisk(surrogate(), RankingData.from_groups(X, y, groups))
    ready = time.perf_counter()
    result = solver().solve(risk)
    return outcome(result, ready - started, pass_seconds(risk, result.w)), result


def cluster():
    from distributed import Client, LocalCluster

    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    return Client(local)


def ways(directory, X, y, groups):
    from structsvm_papk import RankingData
    from structsvm_papk.data.partitions import array_partitions, file_partitions, open_source

    for name, values in (("X", X), ("y", y), ("groups", groups)):
        np.save(directory / f"{name}.npy", values)
    yield "files", lambda: file_partitions(open_source(directory), X.nbytes // 8)
    yield "arrays", lambda: array_partitions(RankingData.from_groups(X, y, groups), 8)


def on_cluster(client, partitions, expected):
    from structsvm_papk.oracles.dask_risk import DaskRisk

    found = {}
    for name in ("undisturbed", "worker_killed"):
        client.wait_for_workers(2)
        started = time.perf_counter()
        risk = DaskRisk(surrogate(), partitions(), client)
        ready = time.perf_counter()
        killed = []

        def callback(progress, stop=name == "worker_killed", killed=killed):
            if stop and progress.iteration == KILL_AT:
                killed.append(kill_a_worker(client))

        result = solver().solve(risk, callback=callback)
        found[name] = outcome(result, ready - started, pass_seconds(risk, result.w))
        found[name]["killed"] = killed
        found[name]["notes"] = list(risk.notes)
    first, second = found["undisturbed"], found["worker_killed"]
    found["same_to"] = abs(first["objective"] - second["objective"])
    found["within_bounds_of_one_machine"] = bool(
        second["lower_bound"] <= expected.objective and expected.lower_bound <= second["objective"]
    )
    found["largest_difference_of_w"] = float(np.abs(result.w - expected.w).max())
    return found


def kill_a_worker(client):
    """Kill a worker that holds partitions."""
    address = next(worker for worker, keys in client.has_what().items() if keys)
    pid = client.run(os.getpid, workers=[address])[address]
    os.kill(pid, signal.SIGKILL)
    return address


def pass_seconds(risk, w, n=5):
    risk(w)
    started = time.perf_counter()
    for _ in range(n):
        risk(w)
    return (time.perf_counter() - started) / n


def outcome(result, load_seconds, pass_seconds):
    return {
        "load_seconds": load_seconds,
        "fit_seconds": result.seconds,
        "pass_seconds": pass_seconds,
        "iterations": result.n_iter,
        "objective": result.objective,
        "lower_bound": result.lower_bound,
        "gap": result.gap,
        "status": str(result.status),
    }


def show(report):
    lines = [("one machine", report["one_machine"])]
    for how in ("files", "arrays"):
        lines += [(f"{how}, {name.replace('_', ' ')}", report[how][name])
                  for name in ("undisturbed", "worker_killed")]  # fmt: skip
    for name, found in lines:
        print(
            f"{name:24s} load {found['load_seconds']:.1f} s, fit {found['fit_seconds']:.1f} s, "
            f"{found['iterations']} iterations, pass {found['pass_seconds']:.3f} s, objective "
            f"{found['objective']:.12f}, bound {found['lower_bound']:.12f}, {found['status']}"
        )
        for note in found.get("notes", ()):
            print(f"{'':24s} {note}")
    for how in ("files", "arrays"):
        print(f"{how}: with and without the kill the same to {report[how]['same_to']:.1e}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
