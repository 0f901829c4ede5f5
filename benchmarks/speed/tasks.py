"""The tasks of `targets`: data, k, and the test that a task is not trivial.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    F(0) = 1

A task whose optimum lies within 5% of F(0) says little about a solver: w = 0 is nearly optimal.
`trivial` finds that out with a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.datasets.generators import two_gaussians

NEAR_ZERO = 0.95  # of F(0): an optimum above makes a task trivial


@dataclass(frozen=True)
class Task:
    """The number k of recommended items, and what generates the lists."""

    k: int
    generate: Callable

    def risk(self, surrogate):
        """Return the empirical risk of a surrogate, by name."""
        lists = self.generate()
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        return EmpiricalRisk(make_surrogate(surrogate, self.k), data)


TASKS = {  # benchmarks/results/solvers.md says what they are; S and P are small
    "M": Task(8, partial(linear_lists, 600, 70, 90, seed=0)),
    "S": Task(3, partial(linear_lists, 8, 12, 5, seed=0)),
    "P": Task(400, partial(two_gaussians, 30, 400, 10, 1.5, seed=0)),
    "T": Task(500, partial(two_gaussians, 1000, 100_000, 50, 5.0, seed=0)),
    "L": Task(100_000, partial(two_gaussians, 1000, 100_000, 50, 1.5, seed=0)),
    "H": Task(10, partial(linear_lists, 2500, 270, 150, relevant_share=0.05, seed=0)),
    "H-20%": Task(10, partial(linear_lists, 2500, 270, 150, seed=0)),
}


def trivial(risk, alpha):
    """Say why a task is to be rejected, or return None where its optimum is below 0.95 F(0).

    A task is rejected on proof: a certified lower bound above that limit.
    """

    def decided(progress):
        return progress.objective < NEAR_ZERO or progress.lower_bound >= NEAR_ZERO

    solver = CuttingPlane(alpha, tol=1e-3, time_limit=60.0)
    bound = solver.solve(risk, callback=decided).lower_bound
    if bound < NEAR_ZERO:
        return None
    return f"trivial task: the optimum is at least {bound:.3f} F(0), the limit is {NEAR_ZERO} F(0)"
