"""Clocks: a solve in units of one evaluation, and the share of the QP.

Seconds here are processor seconds of this process. Everything measured runs in one thread, so they
are the wall-clock seconds of an idle machine, and a busy one does not change the ratios much.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time as clock

import numpy as np

from structsvm_papk.solvers.cut_model import CutModel


@contextmanager
def clocked(owner, name):
    """The seconds of each call of a method of a class while the block runs, as a list."""
    spent, original = [], getattr(owner, name)

    def timed(*args, **kwargs):
        start = clock()
        try:
            return original(*args, **kwargs)
        finally:
            spent.append(clock() - start)

    setattr(owner, name, timed)
    try:
        yield spent
    finally:
        setattr(owner, name, original)


@dataclass(frozen=True)
class Measured:
    """One solver on one risk; of several runs the fastest.

    Attributes
    ----------
    result : SolverResult
    seconds : float
    evaluation : float
        Seconds of one evaluation of value and subgradient at the solution, measured between the
        runs: the lowest of their medians.
    qp_share : float
        Of `seconds`.
    """

    result: object
    seconds: float
    evaluation: float
    qp_share: float

    @property
    def evaluations(self):
        """Time of the solve in evaluations."""
        return self.seconds / self.evaluation

    def as_dict(self):
        """Plain numbers for JSON."""
        result = self.result
        return {
            "objective": result.objective,
            "lower_bound": result.lower_bound,
            "gap": result.gap,
            "status": str(result.status),
            "passes": result.data_passes,
            "seconds": self.seconds,
            "evaluation_ms": 1e3 * self.evaluation,
            "evaluations": self.evaluations,
            "qp_share": self.qp_share,
        }


def measure(solver, risk, repeats=1):
    """Solve `repeats` times and keep the fastest, as `Measured`."""
    runs, evaluations = [], []
    for _ in range(repeats):
        with clocked(CutModel, "minimise") as spent:
            start = clock()
            result = solver.solve(risk)
            seconds = clock() - start
        runs.append((seconds, sum(spent) / seconds, result))
        evaluations.append(evaluation_seconds(risk, result.w))
    seconds, qp_share, result = min(runs, key=lambda run: run[0])
    return Measured(result, seconds, min(evaluations), qp_share)


def evaluation_seconds(risk, w, repeats=11):
    """Median seconds of ``risk(w)``."""
    return median_seconds(lambda: risk(w), repeats)


def median_seconds(function, repeats=11):
    """Median seconds of a call; one call before warms up."""
    function()
    seconds = []
    for _ in range(repeats):
        start = clock()
        function()
        seconds.append(clock() - start)
    return float(np.median(seconds))
