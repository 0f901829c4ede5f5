"""A solve in units of one evaluation, and the share of the QP in it."""

from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks.speed.harness import median_seconds, timed
from structsvm_papk.solvers import SolverResult
from structsvm_papk.solvers.cut_model import CutModel


@contextmanager
def clocked(owner, name):
    """The seconds of each call of a method of a class while the block runs, as a list."""
    spent = []
    original = getattr(owner, name)

    def watched(*args, **kwargs):
        result, seconds = timed(lambda: original(*args, **kwargs))
        spent.append(seconds)
        return result

    setattr(owner, name, watched)
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

    result: SolverResult
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
    runs = []
    for _ in range(repeats):
        with clocked(CutModel, "minimise") as spent:
            result, seconds = timed(lambda: solver.solve(risk))
        evaluation = median_seconds(lambda w=result.w: risk(w))
        runs.append(Measured(result, seconds, evaluation, sum(spent) / seconds))
    best = min(runs, key=lambda run: run.seconds)
    evaluation = min(run.evaluation for run in runs)
    return Measured(best.result, best.seconds, evaluation, best.qp_share)


def warm_path(risk, alphas, solver):
    """A result for each alpha; each solve starts with the cuts of the next larger one."""
    results = {}
    last = None
    for alpha in sorted(alphas, reverse=True):
        last = results[alpha] = replace(solver, alpha=alpha).solve(risk, warm_start=last)
    return [results[alpha] for alpha in alphas]
