"""How time grows with rows, users, features, k and workers.

    python -m benchmarks scaling [--json benchmarks/results/scaling.json] [--plot docs/scaling.png]

Evaluations and solves: processor seconds of one thread, the lowest of several runs, which other
programs on the machine disturb least. Round trips of a cluster: wall seconds, the median, with
next to no data, so that what is left is the cluster's own cost: with one partition for each of some
local workers, and with more partitions on two. The exponents are slopes of least-squares lines
through the logarithms of the larger half of the sizes.

    python -m benchmarks scaling --from benchmarks/results/scaling.json --plot docs/scaling.png

fits and draws again what was measured.
"""

import json
import time
from pathlib import Path

import numpy as np

from benchmarks.speed.harness import fastest, median_seconds, parser, save
from benchmarks.speed.on_cluster import local_cluster
from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.files.partitions import array_partitions
from structsvm_papk.oracles.dask_risk import DaskRisk
from structsvm_papk.oracles.list_risk import Thresholds
from structsvm_papk.solvers.cutting_plane import CuttingPlane

NO_SAMPLE = Thresholds(sample_rows=10**12)  # a cluster takes no steps from a sample of the users
BASE = {"rows": 160_000, "list_rows": 100, "features": 50, "k": 10}
SWEEPS = {  # what varies, and the rest of the problem
    "rows": [{"rows": 10_000 * 2**i} for i in range(7)],
    "users": [{"list_rows": 160_000 // n} for n in (10, 40, 160, 640, 2_560, 10_000)],
    "features": [{"features": 5 * 2**i, "rows": 80_000} for i in range(7)],
    "k": [{"k": k, "list_rows": 4_000} for k in (5, 10, 20, 40, 80, 160, 320)],
}
SOLVES = ("rows", "features", "k")
PARTITIONS = (4, 8, 16, 32, 64)  # on two workers, which have two partitions in the other series
WORKERS = (1, 2, 4, 8)
SMALL = {  # sizes at which each series still has its larger half
    "rows": [{"rows": 500 * 2**i} for i in range(4)],
    "users": [{"rows": 2000, "list_rows": 2000 // n} for n in (5, 10, 20, 40)],
    "features": [{"features": 5 * 2**i, "rows": 2000} for i in range(4)],
    "k": [{"k": k, "rows": 2000} for k in (2, 3, 5, 8)],
}
ALPHA, TOL = 1e-3, 1e-6


def main():
    options = parser(__doc__)
    options.add_argument("--plot", type=Path)
    options.add_argument("--from", dest="measured", type=Path, metavar="JSON")
    options = options.parse_args()
    report = json.loads(options.measured.read_text()) if options.measured else measured(options)
    report["exponents"] = exponents(report)
    print(json.dumps(report["exponents"], indent=1))
    save(options.json, report)
    if options.plot:
        plot(report, options.plot)


def measured(options):
    evaluation(**BASE | {"rows": 5_000})  # kernels are compiled or loaded
    solve(**BASE | {"rows": 5_000})
    sweeps = SMALL if options.small else SWEEPS
    workers = WORKERS[:2] if options.small else WORKERS
    return {
        "evaluation": {
            name: [evaluation(**BASE | point) for point in points]
            for name, points in sweeps.items()
        },
        "solve": {name: [solve(**BASE | point) for point in sweeps[name]] for name in SOLVES},
        "cluster": {"round_trips": list(round_trips(workers))},
    }


def lists(rows, list_rows, features, seed=0):
    rng = np.random.default_rng(seed)
    rows -= rows % list_rows
    X = rng.standard_normal((rows, features))
    direction = rng.standard_normal(features)
    score = X @ direction / np.linalg.norm(direction) + 0.3 * rng.standard_normal(rows)
    users = np.arange(rows) // list_rows
    rank = np.argsort(np.argsort(-score.reshape(-1, list_rows), axis=1), axis=1)
    return RankingData.from_groups(X, rank.ravel() < max(1, list_rows // 20), users)


def evaluation(rows, list_rows, features, k):
    """Seconds of one value and subgradient."""
    risk = EmpiricalRisk(make_surrogate("ts", k), lists(rows, list_rows, features))
    w = np.random.default_rng(1).standard_normal(features) / np.sqrt(features)
    seconds = fastest(lambda: risk(w), 7).seconds
    return {**size(rows, list_rows, features, k), "seconds": seconds}


def solve(rows, list_rows, features, k):
    """Seconds of a certified solve, and how many evaluations it took."""
    surrogate = make_surrogate("ts", k)
    risk = EmpiricalRisk(surrogate, lists(rows, list_rows, features), thresholds=NO_SAMPLE)
    result, seconds = fastest(lambda: CuttingPlane(ALPHA, tol=TOL).solve(risk), 2)
    return {
        **size(rows, list_rows, features, k),
        "seconds": seconds,
        "passes": result.data_passes,
        "status": str(result.status),
        "objective": result.objective,
    }


def size(rows, list_rows, features, k):
    return {"rows": rows, "users": rows // list_rows, "features": features, "k": k}


def round_trips(workers):
    """Wall seconds of evaluations with next to no data."""
    data = lists(64 * 100, 100, 50)
    for n in workers:
        with local_cluster(n) as client:
            for partitions in (n, *(PARTITIONS if n == 2 else ())):
                yield round_trip(client, data, n, partitions)


def round_trip(client, data, n_workers, partitions):
    risk = DaskRisk(make_surrogate("ts", 10), array_partitions(data, partitions), client)
    w = np.zeros(data.n_features)
    seconds = median_seconds(lambda: risk(w), 15, clock=time.perf_counter)
    return {"workers": n_workers, "partitions": partitions, "seconds": seconds}


def exponents(report):
    """Slopes in the logarithms; passes are those of the solves."""
    found = {}
    for kind, quantity in (("evaluation", "seconds"), ("solve", "seconds"), ("solve", "passes")):
        for name, points in report[kind].items():
            sizes = [point[name] for point in points]
            found[f"{quantity} of {kind} against {name}"] = slope(
                sizes, [point[quantity] for point in points]
            )
    for name, points in trip_sweeps(report).items():
        found[f"seconds of a round trip against {name}"] = slope(*columns(points, name, "seconds"))
    return found


def trip_sweeps(report):
    """Round trips against workers, with a partition each, and against partitions on two."""
    trips = report["cluster"]["round_trips"]
    return {
        "workers": [trip for trip in trips if trip["workers"] == trip["partitions"]],
        "partitions": [trip for trip in trips if trip["workers"] == 2],
    }


def slope(sizes, values):
    half = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[half:]), np.log(values[half:]), 1)[0])


def plot(report, path):
    """Two columns of panels, in letters that a telephone shows at a readable size."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "lines.markersize": 5})
    figure, axes = plt.subplots(3, 2, figsize=(6, 8.4), constrained_layout=True)
    panels = dict(zip((*SWEEPS, "trips", "passes"), axes.flat, strict=True))
    for name in SWEEPS:
        draw(panels[name], name, "evaluation", report["evaluation"][name])
        if name in report["solve"]:
            draw(panels[name], name, "solve", report["solve"][name])
        panels[name].set(xlabel=name, ylabel="seconds", ylim=(1e-4, 200))
    for name, points in trip_sweeps(report).items():
        draw(panels["trips"], name, f"trip, {name}", points)
    panels["trips"].set(xlabel="workers, or partitions on two", ylabel="seconds", ylim=(1e-3, 20))
    for name, points in report["solve"].items():
        draw(panels["passes"], name, f"passes, {name}", points, "passes")
    panels["passes"].set(xlabel="rows, features or k", ylabel="passes of a solve", ylim=(5, 2000))
    for axis in axes.flat:
        axis.legend(frameon=False, loc="upper left", handletextpad=0.2, borderaxespad=0.1)
        axis.grid(alpha=0.3, which="major")
    figure.savefig(path, dpi=150)


def draw(axis, name, label, points, quantity="seconds"):
    """Measured points, and the fitted line through the larger half of them."""
    sizes, values = columns(points, name, quantity)
    fitted = slope(sizes, values)
    (dots,) = axis.loglog(sizes, values, "o", label=f"{label}: {fitted:+.2f}")
    half = len(sizes) // 2
    middle = np.exp(np.mean(np.log(values[half:])) - fitted * np.mean(np.log(sizes[half:])))
    axis.loglog(sizes[half:], middle * np.array(sizes[half:]) ** fitted, color=dots.get_color())


def columns(points, *names):
    return [[point[name] for point in points] for name in names]


if __name__ == "__main__":
    main()
