"""Clocks: a solve in units of one evaluation, and its share in the oracle and in the QP.

Seconds here are processor seconds of this process. Everything measured runs in one thread, so they
are the wall-clock seconds of an idle machine, and a busy one does not change the ratios much.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from time import process_time as clock

import numpy as np

from structsvm_papk import EmpiricalRisk
from structsvm_papk.solvers.bundle.cut_model import CutModel

ORACLE = (EmpiricalRisk, ("blocks", "scores", "user_values", "blocks_from_scores"))
QP = (CutModel, ("minimise",))


class Stopwatch:
    """Seconds spent inside some functions; calls among them count once."""

    def __init__(self):
        self.seconds, self._depth = 0.0, 0

    def wrap(self, function):
        """Return the function with its time added to `seconds`."""

        def timed(*args, **kwargs):
            self._depth += 1
            start = clock()
            try:
                return function(*args, **kwargs)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += clock() - start

        return timed


@contextmanager
def clocked(owner, names):
    """Measure the time spent in these methods of a class while the block runs."""
    watch = Stopwatch()
    originals = {name: getattr(owner, name) for name in names if hasattr(owner, name)}
    for name, function in originals.items():
        setattr(owner, name, watch.wrap(function))
    try:
        yield watch
    finally:
        for name, function in originals.items():
            setattr(owner, name, function)


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
    oracle_share, qp_share : float
        Shares of `seconds`.
    """

    result: object
    seconds: float
    evaluation: float
    oracle_share: float
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
            "oracle_share": self.oracle_share,
            "qp_share": self.qp_share,
        }


def measure(solver, risk, repeats=1):
    """Solve `repeats` times and keep the fastest, as `Measured`."""
    runs, evaluations = [], []
    for _ in range(repeats):
        with clocked(*ORACLE) as oracle, clocked(*QP) as qp:
            start = clock()
            result = solver.solve(risk)
            seconds = clock() - start
        runs.append((seconds, oracle.seconds / seconds, qp.seconds / seconds, result))
        evaluations.append(evaluation_seconds(risk, result.w))
    seconds, oracle_share, qp_share, result = min(runs, key=lambda run: run[0])
    return Measured(result, seconds, min(evaluations), oracle_share, qp_share)


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
