"""Ramp and ClippedRamp by CCCP: seconds and objectives beside those of an earlier version.

    python -m benchmarks ramps [LISTS.npz ..] [--before FILE.json] [--repeats 2] [--json FILE.json]

Lists like those of a re-ranker (`depth.py`), lists of handwritten digits, 600 users x 70 items x 90
features, and files of prepared lists as `depth.py` takes them. One thread, processor seconds, the
fastest of the repeats; alpha 1e-3, criticality 1e-4. ``--before``: what this script wrote when it
ran on the package of an earlier commit (first on PYTHONPATH), on the same machine.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import process_time as clock

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.quality.depth import as_data, re_ranking_lists
from structsvm_papk import CCCP, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import digit_queries, linear_lists

SURROGATES = ("clipped_ramp", "ramp")
ALPHA, TOL = 1e-3, 1e-4


def digits():
    """49 queries, 430 images each, the 42 pixels that vary most."""
    X, y, users = digit_queries(n_queries=49, n_shown=430)
    most = np.sort(np.argsort(-X.std(axis=0))[:42])
    return RankingData.from_groups(np.ascontiguousarray(X[:, most]), y, users), 10


def many_users():
    lists = linear_lists(600, 70, 90, noise=1.0)
    return RankingData.from_groups(lists.X, lists.y, lists.groups), 8


def prepared(path):
    """The lists to learn from, of users with enough negatives."""
    stored = np.load(path)
    X, y = stored["f"], stored["y"]
    enough = (~y).sum(axis=1) >= 20
    return as_data(X[enough], y[enough]), 20


def solved(solver, risk, repeats):
    """The fastest of several runs, which all end alike."""
    seconds = []
    for _ in range(repeats):
        start = clock()
        result = solver.solve(risk)
        seconds.append(clock() - start)
    return {
        "seconds": min(seconds), "objective": result.objective, "status": str(result.status),
        "criticality": result.criticality, "passes": result.data_passes,
    }  # fmt: skip


def warm_up(data, k):
    """Load compiled code on few of the rows, as they are stored."""
    few = data.subset(np.arange(data.n_users) < 20)
    for name in SURROGATES:
        CCCP(ALPHA, tol=1e-2).solve(EmpiricalRisk(make_surrogate(name, k), few))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("lists", nargs="*", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    before = json.loads(options.before.read_text()) if options.before else {}
    tasks = {
        "re-ranking": lambda: (re_ranking_lists(), 20),
        "digits": digits,
        "many users": many_users,
        **{path.stem: lambda path=path: prepared(path) for path in options.lists},
    }
    rows = {}
    for task, make in tasks.items():
        data, k = make()
        warm_up(data, k)
        for name in SURROGATES:
            risk, key = EmpiricalRisk(make_surrogate(name, k), data), f"{task}, {name}"
            size = {"rows": data.rows.size, "features": data.n_features, "users": data.n_users}
            rows[key] = size | {"now": solved(CCCP(ALPHA, tol=TOL), risk, options.repeats)}
            if key in before:
                rows[key]["before"] = before[key]["now"]
            print(key, json.dumps(rows[key]), flush=True)
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
