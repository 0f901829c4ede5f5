"""How time grows with rows, users, features, k and partitions, and what larger data would cost.

    python benchmarks/scaling.py [--json benchmarks/results/scaling.json] [--plot docs/scaling.png]

Evaluations and solves: processor seconds of one thread, the lowest of several runs, which other
programs on the machine disturb least. Round trips of a cluster: wall seconds, the median, on a
cluster of two local workers with next to no data. The exponents are slopes of least-squares lines
through the logarithms of the larger half of the sizes.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.optimize import nnls
from threadpoolctl import threadpool_limits

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.solvers.cutting_plane import CuttingPlane

BASE = {"rows": 160_000, "list_rows": 100, "features": 50, "k": 10}
SWEEPS = {  # what varies, and the rest of the problem
    "rows": [{"rows": 10_000 * 2**i} for i in range(7)],
    "users": [{"list_rows": 160_000 // n} for n in (10, 40, 160, 640, 2_560, 10_000)],
    "features": [{"features": 5 * 2**i, "rows": 80_000} for i in range(7)],
    "k": [{"k": k, "list_rows": 4_000} for k in (5, 10, 20, 40, 80, 160, 320)],
}
SOLVES = {name: SWEEPS[name] for name in ("rows", "features", "k")}
PARTITIONS = (2, 4, 8, 16, 32, 64)
ALPHA, TOL = 1e-3, 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    evaluation(**BASE)  # kernels are compiled or loaded
    solve(**BASE | {"rows": 5_000})
    report = {
        "evaluation": {name: [evaluation(**BASE | point) for point in points]
                       for name, points in SWEEPS.items()},
        "solve": {name: [solve(**BASE | point) for point in points]
                  for name, points in SOLVES.items()},
        "cluster": cluster(),
    }  # fmt: skip
    report["exponents"] = exponents(report)
    report["model"] = cost_model(report)
    report["prediction"] = [
        prediction(report["model"]), prediction(report["model"], more_passes=True)
    ]  # fmt: skip
    print(json.dumps({name: report[name] for name in ("exponents", "model", "prediction")},
                     indent=1))  # fmt: skip
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        plot(report, options.plot)


def lists(rows, list_rows, features, seed=0):
    rng = np.random.default_rng(seed)
    rows -= rows % list_rows
    X = rng.standard_normal((rows, features))
    direction = rng.standard_normal(features)
    score = X @ direction / np.linalg.norm(direction) + 0.3 * rng.standard_normal(rows)
    users = np.arange(rows) // list_rows
    rank = np.argsort(np.argsort(-score.reshape(-1, list_rows), axis=1), axis=1)
    return X, rank.ravel() < max(1, list_rows // 20), users


def make_risk(rows, list_rows, features, k):
    data = RankingData.from_groups(*lists(rows, list_rows, features))
    return EmpiricalRisk(make_surrogate("ts", k), data)


def evaluation(rows, list_rows, features, k, repeat=7):
    """Processor seconds of one value and subgradient."""
    risk = make_risk(rows, list_rows, features, k)
    w = np.random.default_rng(1).standard_normal(features) / np.sqrt(features)
    seconds = []
    for _ in range(repeat):
        started = time.process_time()
        risk(w)
        seconds.append(time.process_time() - started)
    size = {"rows": rows, "users": rows // list_rows, "features": features, "k": k}
    return {**size, "seconds": min(seconds)}


def solve(rows, list_rows, features, k):
    """Processor seconds of a certified solve, and how many evaluations it took."""
    risk = make_risk(rows, list_rows, features, k)
    found = []
    for _ in range(2):
        started = time.process_time()
        result = CuttingPlane(ALPHA, tol=TOL).solve(risk)
        found.append(time.process_time() - started)
    size = {"rows": rows, "users": rows // list_rows, "features": features, "k": k}
    return {
        **size,
        "seconds": min(found),
        "passes": result.data_passes,
        "status": str(result.status),
        "objective": result.objective,
    }


def cluster():
    """Wall seconds of a round trip with next to no data, and of loading the rows of files."""
    from distributed import Client, LocalCluster

    from structsvm_papk.cluster import DaskRisk
    from structsvm_papk.partitions import array_partitions, file_partitions, open_source

    surrogate = make_surrogate("ts", 10)
    local = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    trips = []
    with Client(local) as client, tempfile.TemporaryDirectory() as directory:
        data = RankingData.from_groups(*lists(64 * 100, 100, 50))
        for n in PARTITIONS:
            risk = DaskRisk(surrogate, array_partitions(data, n), client)
            trips.append({"partitions": n, "seconds": median_seconds(risk, np.zeros(50))})
        arrays = zip(("X", "y", "groups"), lists(200_000, 100, 100), strict=True)
        for name, values in arrays:
            np.save(Path(directory) / f"{name}.npy", values)
        started = time.perf_counter()
        DaskRisk(surrogate, file_partitions(open_source(directory), 40_000_000), client)
        seconds = time.perf_counter() - started
    local.close()
    return {"round_trips": trips, "load_bytes_a_second_and_worker": 160e6 / 2 / seconds}


def median_seconds(risk, w, repeat=15):
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        risk(w)
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds))


def exponents(report):
    """Slopes in the logarithms; passes are those of the solves."""
    found = {}
    for kind, quantity in (("evaluation", "seconds"), ("solve", "seconds"), ("solve", "passes")):
        for name, points in report[kind].items():
            sizes = [point[name] for point in points]
            found[f"{quantity} of {kind} against {name}"] = slope(
                sizes, [point[quantity] for point in points]
            )
    return found


def slope(sizes, values):
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def cost_model(report):
    """Seconds of an evaluation as a non-negative sum over what it does; of a round trip too."""
    points = [point for sweep in report["evaluation"].values() for point in sweep]
    seconds = np.array([point["seconds"] for point in points])
    terms = np.array([list(work(point).values()) for point in points])
    costs, _ = nnls(terms / seconds[:, None], np.ones(seconds.size))  # relative errors
    errors = terms @ costs / seconds
    trips = report["cluster"]["round_trips"]
    n = np.array([trip["partitions"] for trip in trips])
    wall = np.array([trip["seconds"] for trip in trips])
    trip, _ = nnls(np.column_stack([np.ones(n.size), n]) / wall[:, None], np.ones(n.size))
    return {
        "nanoseconds": dict(zip(work(points[0]), (1e9 * costs).tolist(), strict=True)),
        "predicted_over_measured": [float(errors.min()), float(errors.max())],
        "round_trip_seconds": float(trip[0]),
        "seconds_a_partition": float(trip[1]),
        "load_bytes_a_second": report["cluster"]["load_bytes_a_second_and_worker"],
        "solver_seconds_a_pass": solver_seconds(report),
        "passes": report["solve"]["rows"][-1]["passes"],
        "passes_at_rows": report["solve"]["rows"][-1]["rows"],
        "passes_exponent": report["exponents"]["passes of solve against rows"],
    }


def solver_seconds(report):
    """What a solve takes beside its evaluations, for each pass; by the number of features."""
    pairs = zip(report["solve"]["features"], report["evaluation"]["features"], strict=True)
    return {
        solved["features"]: solved["seconds"] / solved["passes"] - evaluated["seconds"]
        for solved, evaluated in pairs
    }


def work(point):
    rows, users, features, k = (point[name] for name in ("rows", "users", "features", "k"))
    return {
        "a feature of a row": rows * features,
        "a row": rows,
        "a user": users,
        "a recommended item of a user": users * k,
    }


def prediction(model, rows=10**9, features=100, workers=100, more_passes=False):
    """What a solve would cost with lists of 100 rows, k = 10, one partition and thread a worker.

    The passes are those of the largest solve that was measured, or extrapolated from their trend.
    """
    point = {"rows": rows // workers, "users": rows // workers // 100, "features": features}
    parts = work({**point, "k": 10})
    compute = sum(1e-9 * model["nanoseconds"][name] * size for name, size in parts.items())
    trip = model["round_trip_seconds"] + workers * model["seconds_a_partition"]
    sizes, own = zip(*model["solver_seconds_a_pass"].items(), strict=True)
    solver = float(np.interp(features, sizes, own))
    growth = (rows / model["passes_at_rows"]) ** model["passes_exponent"] if more_passes else 1.0
    passes = round(model["passes"] * growth)
    bytes_a_worker = 8 * rows * features / workers
    return {
        "rows": rows,
        "features": features,
        "workers": workers,
        "gigabytes_a_worker": bytes_a_worker / 1e9,
        "load_seconds": bytes_a_worker / model["load_bytes_a_second"],
        "compute_seconds_a_pass": compute,
        "round_trip_seconds": trip,
        "solver_seconds_a_pass": solver,
        "passes": passes,
        "solve_seconds": passes * (compute + trip + solver),
        "worker_hours": workers * passes * (compute + trip + solver) / 3600,
    }


def plot(report, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.5), constrained_layout=True)
    for axis, name in zip(axes.flat, SWEEPS, strict=False):
        for kind, mark in (("evaluation", "o"), ("solve", "s")):
            points = report[kind].get(name)
            if points:
                draw(axis, name, kind, mark, points)
        axis.set(xlabel=name, ylabel="seconds", ylim=(1e-4, 10))
    trips = report["cluster"]["round_trips"]
    axis = axes.flat[4]
    axis.loglog(*columns(trips, "partitions", "seconds"), "o-", label="round trip, two workers")
    axis.set(xlabel="partitions", ylabel="seconds", ylim=(5e-3, 2), xticks=PARTITIONS)
    axis.set_xticklabels(PARTITIONS)
    axis.minorticks_off()
    axis = axes.flat[5]
    for name, points in report["solve"].items():
        axis.loglog(*columns(points, name, "passes"), "s-", label=f"against {name}")
    axis.set(xlabel="size", ylabel="passes of a solve", ylim=(5, 500))
    for axis in axes.flat:
        axis.legend(frameon=False, fontsize=9)
        axis.grid(alpha=0.3, which="major")
    figure.savefig(path, dpi=110)


def draw(axis, name, kind, mark, points):
    sizes, seconds = columns(points, name, "seconds")
    fitted = slope(sizes, seconds)
    (line,) = axis.loglog(sizes, seconds, mark, label=f"{kind}, exponent {fitted:.2f}")
    half = len(sizes) // 2
    middle = np.exp(np.mean(np.log(seconds[half:])) - fitted * np.mean(np.log(sizes[half:])))
    axis.loglog(sizes[half:], middle * np.array(sizes[half:]) ** fitted, color=line.get_color())


def columns(points, *names):
    return [[point[name] for point in points] for name in names]


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
