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

import argparse
import json
import time
from pathlib import Path

import numpy as np
from dask_time import cluster as local_cluster
from threadpoolctl import threadpool_limits

from structsvm_papk import EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.oracles import list_risk
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
WORKERS = (1, 2, 4, 8)
ALPHA, TOL = 1e-3, 1e-6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--from", dest="measured", type=Path, metavar="JSON")
    options = parser.parse_args()
    report = json.loads(options.measured.read_text()) if options.measured else measured()
    report["exponents"] = exponents(report)
    print(json.dumps(report["exponents"], indent=1))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")
    if options.plot:
        plot(report, options.plot)


def measured():
    evaluation(**BASE)  # kernels are compiled or loaded
    solve(**BASE | {"rows": 5_000})
    return {
        "evaluation": {name: [evaluation(**BASE | point) for point in points]
                       for name, points in SWEEPS.items()},
        "solve": {name: [solve(**BASE | point) for point in points]
                  for name, points in SOLVES.items()},
        "cluster": cluster(),
    }  # fmt: skip


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
    """Processor seconds of a certified solve, and how many evaluations it took.

    Without steps from a sample of the users, which a cluster does not take.
    """
    list_risk._MANY_ROWS = np.inf
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
    """Wall seconds of a round trip with next to no data."""
    data = RankingData.from_groups(*lists(64 * 100, 100, 50))
    trips = []
    for n in WORKERS:
        with local_cluster(n) as client:
            trips.append(round_trip(client, data, n, n))
            if n == 2:
                trips += [round_trip(client, data, n, more) for more in PARTITIONS[1:]]
    return {"round_trips": trips}


def round_trip(client, data, n_workers, partitions):
    from structsvm_papk.data.partitions import array_partitions
    from structsvm_papk.oracles.dask_risk import DaskRisk

    risk = DaskRisk(make_surrogate("ts", 10), array_partitions(data, partitions), client)
    seconds = median_seconds(risk, np.zeros(data.n_features))
    return {"workers": n_workers, "partitions": partitions, "seconds": seconds}


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
    with threadpool_limits(1):
        main()
