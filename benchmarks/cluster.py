"""A fit on a cluster of two workers, one of which is killed on the way, beside one machine.

    python benchmarks/cluster.py [--rows 600000] [--json benchmarks/results/cluster.json]

Both workers and the single-machine fit compute with one thread; kernels are loaded beforehand. The
rows are sent by this process once ('arrays'), or read by the workers from `.npy` files ('files').
Undisturbed fits and those in one process take turns; the fastest of each counts. In one more fit a
worker is killed (SIGKILL) after some iterations.

Processor seconds are those of the fit in one process, and on the cluster of this process, which
holds the scheduler too, and of each worker. With two free processors and nothing but waiting
between them, a fit takes at least as long as this process and one worker together.
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
TURNS = 3


def main():
    options = parsed()
    X, y, groups = rows(options.rows)
    report = {"rows": len(X), "features": N_FEATURES, "kill_at": KILL_AT}
    with tempfile.TemporaryDirectory() as directory, cluster() as client:
        warm_up(client, X, y, groups)
        for how, partitions in ways(Path(directory), X, y, groups):
            report[how] = on_cluster(client, partitions, (X, y, groups))
        report["one_machine"] = min(
            (report[how].pop("one_machine") for how in ("files", "arrays")),
            key=lambda each: each["fit_seconds"],
        )
        report["empty_round_trip_seconds"] = empty_round_trip(client, X, y, groups)
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


def warm_up(client, X, y, groups):
    """Kernels are compiled or loaded, here and on the workers."""
    from structsvm_papk import EmpiricalRisk, RankingData
    from structsvm_papk.data.partitions import array_partitions
    from structsvm_papk.oracles.dask_risk import DaskRisk

    few = RankingData.from_groups(X[:20_000], y[:20_000], groups[:20_000])
    solver().solve(EmpiricalRisk(surrogate(), few))
    solver().solve(DaskRisk(surrogate(), array_partitions(few, 8), client))


def one_machine(X, y, groups):
    from structsvm_papk import EmpiricalRisk, RankingData

    started = time.perf_counter()
    risk = EmpiricalRisk(surrogate(), RankingData.from_groups(X, y, groups))
    ready, before = time.perf_counter(), time.process_time()
    result = solver().solve(risk)
    processor = time.process_time() - before
    found = outcome(result, ready - started, pass_seconds(risk, result.w))
    return found | {"processor_seconds": processor}, result


def empty_round_trip(client, X, y, groups, n=100):
    """Seconds of one message to each worker, and its answer, with nothing to do."""
    from structsvm_papk import RankingData
    from structsvm_papk.data.partitions import array_partitions
    from structsvm_papk.oracles.dask_risk import DaskRisk

    few = RankingData.from_groups(X[:5000], y[:5000], groups[:5000])
    risk = DaskRisk(surrogate(), array_partitions(few, 8), client)
    risk(np.zeros(N_FEATURES))
    seconds = []
    for _ in range(n):
        started = time.perf_counter()
        risk.parts.run(nothing, risk._shares)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def nothing(data, n_blocks, n_threads, memory):
    """A task."""


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


def on_cluster(client, partitions, arrays):
    from structsvm_papk.oracles.dask_risk import DaskRisk

    found, tries, alone = {}, [], []
    for name in ("undisturbed",) * TURNS + ("worker_killed",):
        client.wait_for_workers(2)
        started = time.perf_counter()
        risk = DaskRisk(surrogate(), partitions(), client)
        risk(np.ones(N_FEATURES))
        ready = time.perf_counter()
        killed = []

        def callback(progress, stop=name == "worker_killed", killed=killed):
            if stop and progress.iteration == KILL_AT:
                killed.append(kill_a_worker(client))

        before, workers_before = time.process_time(), client.run(time.process_time)
        result = solver().solve(risk, callback=callback)
        processor, workers = time.process_time() - before, client.run(time.process_time)
        one = outcome(result, ready - started, pass_seconds(risk, result.w))
        one |= {"killed": killed, "notes": list(risk.notes), "processor_seconds": processor}
        if name == "undisturbed":
            one["worker_seconds"] = [workers[w] - workers_before[w] for w in workers]
            tries.append(one)
            outcome_alone, expected = one_machine(*arrays)
            alone.append(outcome_alone)
    found["undisturbed"], found["worker_killed"] = min(tries, key=_fit_seconds), one
    found["one_machine"] = min(alone, key=_fit_seconds)
    first, second = found["undisturbed"], found["worker_killed"]
    found["fit_time_ratios"] = [
        _fit_seconds(t) / _fit_seconds(a) for t, a in zip(tries, alone, strict=True)
    ]
    found["same_to"] = abs(first["objective"] - second["objective"])
    found["within_bounds_of_one_machine"] = bool(
        second["lower_bound"] <= expected.objective and expected.lower_bound <= second["objective"]
    )
    found["largest_difference_of_w"] = float(np.abs(result.w - expected.w).max())
    return found


def _fit_seconds(outcome):
    return outcome["fit_seconds"]


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
        workers = ", ".join(f"{seconds:.2f}" for seconds in found.get("worker_seconds", ()))
        print(f"{'':24s} processor {found['processor_seconds']:.2f} s; workers {workers}")
        for note in found.get("notes", ()):
            print(f"{'':24s} {note}")
    print(f"empty round trip {1e3 * report['empty_round_trip_seconds']:.1f} ms")
    for how in ("files", "arrays"):
        ratios = ", ".join(f"{ratio:.2f}" for ratio in report[how]["fit_time_ratios"])
        print(f"{how}: times in one process: {ratios}")
        print(f"{how}: with and without the kill the same to {report[how]['same_to']:.1e}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
