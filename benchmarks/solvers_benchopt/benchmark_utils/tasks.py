"""The benchmark's tasks: data, k, and the test that a task is not trivial.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    F(0) = 1

A task whose optimum lies within 5% of F(0) says little about a solver: w = 0 is nearly optimal.
`trivial` finds that out with a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists
from structsvm_papk.datasets.generators import two_gaussians

NEAR_ZERO = 0.95  # of F(0): an optimum above makes a task trivial


@dataclass(frozen=True)
class Task:
    """The number k of recommended items, and ``generate(seed)``, which returns `Lists`."""

    k: int
    generate: Callable

    def risk(self, surrogate, seed=0):
        """Return the empirical risk of a surrogate, by name."""
        lists = self.generate(seed)
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        return EmpiricalRisk(make_surrogate(surrogate, self.k), data)


def _users(n_users=600, n_items=70, n_features=90, **options):
    return lambda seed: linear_lists(n_users, n_items, n_features, seed=seed, **options)


def _one_user(separation, n_pos=1000, n_neg=100_000, n_features=50):
    return lambda seed: two_gaussians(n_pos, n_neg, n_features, separation, seed=seed)


TASKS = {  # the README says what they are
    "M": Task(8, _users()),
    "M-heavy": Task(8, _users(noise_law="t", df=1.5)),
    "M-mislabelled": Task(8, _users(mislabelled_users=0.1)),
    "S": Task(3, _users(8, 12, 5)),
    "P": Task(400, _one_user(1.5, 30, 400, 10)),
    "T": Task(500, _one_user(5.0)),
    "L": Task(100_000, _one_user(1.5)),
    "H": Task(10, _users(2500, 270, 150, relevant_share=0.05)),
    "H-20%": Task(10, _users(2500, 270, 150)),
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
