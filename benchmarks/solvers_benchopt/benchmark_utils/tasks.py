"""The benchmark's tasks: data, k, and the test that a task is not trivial.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    F(0) = 1

A task whose optimum lies within 5% of F(0) says little about a solver: w = 0 is nearly optimal.
`trivial` finds that out with a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass

from structsvm_papk import CuttingPlane, EmpiricalRisk, RankingData, make_surrogate
from structsvm_papk.datasets import linear_lists, two_gaussians

NEAR_ZERO = 0.95  # of F(0): an optimum above makes a task trivial


@dataclass(frozen=True)
class Task:
    """A seeded data set and the number k of recommended items.

    Attributes
    ----------
    k : int
    generate : callable
        ``generate(seed)`` returns `Lists`.
    about : str
    """

    k: int
    generate: Callable
    about: str

    def risk(self, surrogate, seed=0):
        """Return the empirical risk of a surrogate, by name."""
        lists = self.generate(seed)
        data = RankingData.from_groups(lists.X, lists.y, lists.groups)
        return EmpiricalRisk(make_surrogate(surrogate, self.k), data)


def _users(n_users=600, n_items=70, n_features=90, **options):
    return lambda seed: linear_lists(n_users, n_items, n_features, seed=seed, **options)


def _one_user(separation, n_pos=1000, n_neg=100_000, n_features=50):
    return lambda seed: two_gaussians(n_pos, n_neg, n_features, separation, seed=seed)


TASKS = {
    "M": Task(8, _users(), "600 users x 70 items x 90 features, noise 0.3"),
    "M-heavy": Task(8, _users(noise_law="t", df=1.5), "as M, Student noise with 1.5 degrees"),
    "M-mislabelled": Task(
        8, _users(mislabelled_users=0.1), "as M, labels of 10% of the users wrong"
    ),
    "S": Task(3, _users(8, 12, 5), "8 users x 12 items x 5 features"),
    "P": Task(400, _one_user(1.5, 30, 400, 10), "one user, 400 negatives, 30 positives, AUC hinge"),
    "T": Task(500, _one_user(5.0), "one user, 100,000 negatives, 1,000 positives, 50 features"),
    "L": Task(100_000, _one_user(1.5), "as T, less separated, all negatives count (AUC hinge)"),
    "H": Task(
        10,
        _users(2500, 270, 150, relevant_share=0.05),
        "2,500 users x 270 items x 150, 5% relevant",
    ),
    "H-20%": Task(10, _users(2500, 270, 150), "as H, 20% relevant"),
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
