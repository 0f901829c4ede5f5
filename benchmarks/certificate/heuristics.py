"""What each heuristic of CCCP is worth: time and objective without it, beside the run with all.

    python -m benchmarks heuristics [--lists NAME ..] [--json FILE.json]

One or few lists, many, lists on a lattice whose scores tie, mislabelled ones, and digits; Ramp and
ClippedRamp; alpha 1e-1 to 1e-4, criticality 1e-4. One thread, processor seconds, one run each, in
turn.
"""

import argparse
import json
import warnings
from contextlib import ExitStack
from pathlib import Path
from time import process_time as clock
from typing import NamedTuple
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from structsvm_papk import CCCP, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import digit_queries, linear_lists
from structsvm_papk.datasets.generators import two_gaussians
from structsvm_papk.solvers import cccp

SURROGATES = ("clipped_ramp", "ramp")
ALPHAS = (1e-1, 1e-2, 1e-3, 1e-4)
TOL = 1e-4
MANY = 16  # users from which on starts race
ALL = "all"  # the run with every heuristic


class Variant(NamedTuple):
    """One heuristic left out: by a setting of `CCCP`, or by a replacement inside of it."""

    settings: dict
    replaced: tuple = ()  # (module, name, value)
    many: bool | None = None  # of many lists only, or of few


VARIANTS = {
    ALL: Variant({}),
    "race": Variant({"continuation": ()}, (cccp, "_SMOOTH", np.inf), many=True),
    "continuation": Variant({"continuation": ()}, many=False),
    "race (a continuation instead)": Variant({"continuation": (10.0,)}, many=True),
    "quasi-Newton": Variant({"quasi_newton": 0}),
}


def as_data(lists):
    return RankingData.from_groups(lists.X, lists.y, lists.groups)


def digits():
    """30 queries, 200 images each, the 30 pixels that vary most."""
    X, y, users = digit_queries(n_queries=30, n_shown=200)
    most = np.sort(np.argsort(-X.std(axis=0))[:30])
    return RankingData.from_groups(np.ascontiguousarray(X[:, most]), y, users)


def lattice():
    """Features that are whole numbers: most scores tie at simple weights."""
    lists = linear_lists(60, 30, 4, noise=1.0, seed=5)
    return RankingData.from_groups(np.round(lists.X), lists.y, lists.groups)


HEAVY = {"noise_law": "t", "df": 1.5}


def mislabelled():
    """Half of the users have most of their labels exchanged."""
    return as_data(linear_lists(200, 50, 30, noise=0.3, mislabelled_users=0.5, seed=4, **HEAVY))


LISTS = {  # data, k
    "1 list": (lambda: as_data(two_gaussians(30, 200, 5, 1.0, seed=0)), 10),
    "1 list b": (lambda: as_data(two_gaussians(30, 200, 5, 1.0, seed=3)), 10),
    "8 lists": (lambda: as_data(linear_lists(8, 60, 12, noise=1.0, seed=1)), 5),
    "40 lists": (lambda: as_data(linear_lists(40, 30, 6, noise=1.0, seed=2)), 3),
    "lattice": (lattice, 3),
    "200 lists": (lambda: as_data(linear_lists(200, 50, 30, noise=0.7, seed=3, **HEAVY)), 6),
    "mislabelled": (mislabelled, 6),
    "600 lists": (lambda: as_data(linear_lists(600, 70, 90, noise=1.0)), 8),
    "digits": (digits, 8),
}  # fmt: skip


def solved(variant, risk, alpha):
    """One run without a heuristic."""
    solver = CCCP(alpha, tol=TOL, **variant.settings)
    with ExitStack() as stack:
        if variant.replaced:
            stack.enter_context(patch.object(*variant.replaced))
        start = clock()
        result = solver.solve(risk)
        seconds = clock() - start
    return {
        "seconds": round(seconds, 4),
        "objective": result.objective,
        "passes": result.data_passes,
        "status": str(result.status),
    }


def measured(name, data, k, surrogate, alpha):
    """All variants on one problem, in turn."""
    risk = EmpiricalRisk(make_surrogate(surrogate, k), data)
    many = data.n_users >= MANY
    runs = {
        label: solved(variant, risk, alpha)
        for label, variant in VARIANTS.items()
        if variant.many in (None, many)
    }
    return {
        "lists": name,
        "users": data.n_users,
        "surrogate": surrogate,
        "alpha": alpha,
        "runs": runs,
    }


def warm_up():
    """Load compiled code, so that no run is charged for it."""
    data = as_data(linear_lists(40, 30, 6, noise=1.0, seed=9))
    for surrogate in SURROGATES:
        for variant in VARIANTS.values():
            solved(variant, EmpiricalRisk(make_surrogate(surrogate, 3), data), 1e-2)


def one_line_each(rows):
    return "[" + ",\n".join(json.dumps(row) for row in rows) + "]\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lists", nargs="+", choices=list(LISTS), default=list(LISTS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    warm_up()
    rows = []
    for name in options.lists:
        make, k = LISTS[name]
        data = make()
        for surrogate in SURROGATES:
            for alpha in ALPHAS:
                rows.append(measured(name, data, k, surrogate, alpha))
                print(json.dumps(rows[-1]), flush=True)
                if options.json:
                    options.json.write_text(one_line_each(rows))


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        main()
