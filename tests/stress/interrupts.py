"""Ctrl-C at any instruction of a solve, by a timer; resumed, it has to end where it would have.

    python tests/stress/interrupts.py --seconds 120

Every result has to be true of its own point: the objective is the objective there, and the bound is
below the optimum. In the end the optimum has to be that of a solve without a break.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from threads import SOLVERS, problem

from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.result import Status
from structsvm_papk.surrogates import make_surrogate

_TIMES = 4  # interrupts of one run at most


def interrupted_after(seconds, solve):
    """The result of a solve, or None where it was interrupted before it had one."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return solve()
    except KeyboardInterrupt:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def check(result, whole, solver, risk):
    w = result.w
    objective = solver.alpha / 2 * (w @ w) + risk(w)[0]
    assert abs(objective - result.objective) <= 1e-9 * max(1.0, objective), "a wrong objective"
    assert result.lower_bound <= whole.objective * (1 + 1e-9), "a wrong bound"


def one_run(rng, folder, counts):
    name = rng.choice(list(SOLVERS))
    solver, (data, k) = SOLVERS[name], problem(int(rng.integers(20)))
    risk = EmpiricalRisk(make_surrogate("clipped_ramp" if name == "cccp" else "ts", k), data)
    began, whole = time.perf_counter(), solver.solve(risk)
    whole_seconds = time.perf_counter() - began
    place = Checkpoint(folder, rng.choice([0.0, 1e6]), tell=lambda text: None)

    def solve():
        return solver.solve(risk, checkpoint=place)

    for _ in range(_TIMES):
        result = interrupted_after(rng.uniform(5e-4, 1.2 * whole_seconds), solve)
        counts["before a result" if result is None else str(result.status)] += 1
        if result is not None:
            check(result, whole, solver, risk)
            if result.status is not Status.INTERRUPTED:
                break
    last = solve()
    check(last, whole, solver, risk)
    tol = 5 * getattr(solver, "tol", 0.0)
    if name not in ("cccp", "subgradient"):  # whose descents may lead elsewhere
        deviation = abs(last.objective - whole.objective)
        assert deviation <= tol * max(whole.objective, 1e-3), (name, deviation)
    counts["runs"] += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng, counts, end = np.random.default_rng(args.seed), Counter(), time.monotonic() + args.seconds
    while time.monotonic() < end:
        with tempfile.TemporaryDirectory() as folder:
            one_run(rng, Path(folder) / "c", counts)
    print(json.dumps(counts, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
