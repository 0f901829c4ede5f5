"""Whether results depend on the number of threads: the same fits in processes of 1, 2 and 4.

    python tests/stress/threads.py --problems 100 --json tests/stress/results/threads.json

Each process has so many threads for everything: the passes over the data, BLAS, OpenMP and numba.
Fits are compared by all bits of w, of objective and bound, and of the history but for seconds.
Data are dense or sparse, with ties or not, users of even or uneven sizes, at times one user only.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
from scipy import sparse

from structsvm_papk.data import RankingData
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import make_surrogate

COUNTS = (1, 2, 4)
_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
SOLVERS = {
    "bundle": CuttingPlane(1e-3),
    "line_search": CuttingPlane(1e-2, tol=1e-4, method="line_search"),
    "one_slack": CuttingPlane(1e-1, tol=1e-4, method="one_slack"),
    "subgradient": SubgradientDescent(1e-2, max_iter=50),
    "cccp": CCCP(1e-2, tol=1e-3),
}


def problem(seed):
    """Data, k and what kind of data it is."""
    rng = np.random.default_rng(seed)
    n_users = int(rng.choice([1, 7, 40, 150]))
    sizes = rng.integers(20, 60, n_users) if seed % 2 else np.full(n_users, 40)
    sizes[0] *= 50 if n_users == 1 or seed % 3 == 0 else 1
    groups = np.repeat(np.arange(n_users), sizes)
    X = rng.normal(size=(groups.size, int(rng.choice([3, 17, 64]))))
    y = X[:, 0] + rng.normal(size=groups.size) > 0.7
    if seed % 5 == 0:
        X = X.round(0)
    if seed % 4 == 0:
        X = sparse.csr_array(np.where(rng.random(X.shape) < 0.2, X, 0.0))
    return RankingData.from_groups(X, y, groups), 5


def digest(result):
    """All that has to be the same."""
    told = hashlib.sha256(result.w.tobytes())
    for entry in result.history:
        told.update(repr({**vars(entry), "seconds": 0}).encode())
    told.update(repr((result.objective, result.lower_bound, str(result.status))).encode())
    return told.hexdigest()


def fits(n_problems, n_threads):
    """Digests of all fits, by seed, surrogate and solver."""
    found = {}
    for seed in range(n_problems):
        data, k = problem(seed)
        for name in ("avg", "max", "ts", "pauc", "clipped_ramp"):
            risk = EmpiricalRisk(make_surrogate(name, k), data, n_threads=n_threads)
            # every surrogate by its own solver, the others in turn
            chosen = {"cccp"} if name == "clipped_ramp" else {"bundle", list(SOLVERS)[1 + seed % 3]}
            for solver in sorted(chosen):
                found[f"{seed} {name} {solver}"] = digest(SOLVERS[solver].solve(risk))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    if args.threads:
        print(json.dumps(fits(args.problems, args.threads)))
        return 0
    outcomes = []
    for n in COUNTS:
        command = [sys.executable, __file__, "--problems", args.problems, "--threads", n]
        settings = os.environ | dict.fromkeys(_VARIABLES, str(n))
        done = subprocess.run(map(str, command), env=settings, stdout=subprocess.PIPE, check=True)
        outcomes.append(json.loads(done.stdout))
    different = [key for key in outcomes[0] if len({found[key] for found in outcomes}) > 1]
    by_solver = Counter(key.split()[2] for key in outcomes[0])
    found = {"threads": COUNTS, "problems": args.problems, "fits": len(outcomes[0])}
    found |= {"by_solver": by_solver, "different": different}
    print(json.dumps(found, indent=1))
    if args.json is not None:
        write_atomically(args.json, json.dumps(found, indent=1).encode())
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
