"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

Every evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``, one for each block;
a feasible dual point of the resulting model bounds the optimum from below.

`bundle` holds one solve, from top to bottom.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, as_floats, check_choice, check_number, check_type
from structsvm_papk.solvers.bundle import Bundle, OneSlack, Proximal, Step
from structsvm_papk.solvers.cut_model import default_blocks
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.line_search import LineSearch
from structsvm_papk.solvers.oracle import DualOracle, LineOracle, Oracle
from structsvm_papk.solvers.qp import DEFAULT_SOLVER
from structsvm_papk.solvers.result import SolverResult
from structsvm_papk.solvers.sampled_steps import SampledSteps
from structsvm_papk.solvers.solver import Solver, check_signs

METHODS: dict[str, type[Step]] = {
    "bundle": Proximal,
    "line_search": LineSearch,
    "one_slack": OneSlack,
}


@dataclass(frozen=True)
class CuttingPlane(Solver[SolverResult]):
    """Certified minimiser of ``alpha/2 ||w||^2 + R(w)`` for convex R.

    It takes several cuts from one evaluation of a `BlockOracle`; 'line_search' needs a
    `LineOracle`. With thousands of sparse features and many blocks `DualAscent` is faster.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when the relative gap ``(F - lower_bound) / max(F, 1e-3)`` is at most this.
    max_iter : int
        Limit on iterations; each asks the oracle once.
    method : {'bundle', 'line_search', 'one_slack'}
        'bundle': proximal bundle, several cuts an iteration. 'line_search': one cut an iteration,
        placed by an exact line search from the best point (OCAS; Franc and Sonnenburg, 2009).
        'one_slack': the textbook method (Joachims, Finley and Yu, 2009), for comparison.
    n_blocks : int, optional
        Cuts an iteration; by default chosen for 'bundle' from the size of the problem, else 1.
    qp_solver : str, optional
        'interior_point', the package's own, or the name of a QP solver that cvxpy finds; others
        stand in when it fails. By default 'interior_point', and 'piqp' for 'one_slack'.
    time_limit : float, optional
        Seconds.
    positive : bool
        Minimise over w >= 0 only, with a certificate of that problem. A start is taken at its
        nearest point there.

    References
    ----------
    Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization",
    Mathematical Programming 46 (1990). Joachims, Finley, Yu, "Cutting-plane training of structural
    SVMs", Machine Learning 77 (2009). Shah, Kolmogorov, Lampert, "A multi-plane block-coordinate
    Frank-Wolfe algorithm for training structural SVMs with a costly max-oracle", CVPR 2015.
    """

    tol: float = 1e-6
    max_iter: int = 2000
    method: str = "bundle"
    n_blocks: int | None = None
    qp_solver: str | None = None
    time_limit: float | None = None
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)
        check_number("n_blocks", self.n_blocks, least=1, optional=True)
        if self.n_blocks not in (None, 1) and self.method != "bundle":
            raise InputError(
                f"method {self.method!r} takes one cut an iteration: n_blocks must be 1"
            )
        check_type("qp_solver", self.qp_solver, str, "the name of a solver", optional=True)
        check_signs(self.positive)

    def _run(self, oracle, w_init, warm_start):
        usual = default_blocks(oracle) if self.method == "bundle" else 1
        blocks = oracle.with_blocks(self.n_blocks or usual)
        if self.method == "line_search" and not isinstance(blocks, LineOracle):
            raise InputError("method 'line_search' needs an oracle with `scores` and `along`")
        step = METHODS[self.method]()
        if self.method == "bundle" and blocks.sample is not None:
            step = SampledSteps(blocks.sample)
        return Bundle(self, blocks, oracle, step, w_init, warm_start)

    def suited_to(self, oracle: Oracle) -> Solver[Any]:
        """`DualAscent` in place of a bundle, with its limits, where the oracle says that it pays.

        Not where options of the bundle are set, or weights may not be negative.
        """
        if not isinstance(oracle, DualOracle) or self.method != "bundle" or self.positive:
            return self
        usual = (None, default_blocks(oracle) if oracle.n_blocks == 1 else oracle.n_blocks)
        plain = self.n_blocks in usual and self.qp_solver in (None, DEFAULT_SOLVER)
        if not (plain and oracle.suits_dual_ascent(self.alpha)):
            return self
        return DualAscent(self.alpha, self.tol, self.max_iter, self.time_limit)


def alpha_path(
    oracle: Oracle,
    alphas: ArrayLike,
    solver: CuttingPlane,
    w_init: Array | None = None,
    callback: Callback | None = None,
) -> list[SolverResult | None]:
    """Solve ``alpha/2 ||w||^2 + R(w)`` for every alpha, from the largest to the smallest.

    Cuts are lower bounds of R, so they hold for every alpha: each solve starts with those that
    the one before kept, and at its point.

    Parameters
    ----------
    oracle : EmpiricalRisk or any convex oracle of `CuttingPlane`
    alphas : array-like of float
        Regularisation strengths, in any order.
    solver : CuttingPlane
        Its alpha is replaced.
    w_init : ndarray of shape (n_features,), optional
        Start at the largest alpha.
    callback : callable, optional
        Called with a `Progress` after every iteration of every solve.

    Returns
    -------
    list of SolverResult
        In the order of `alphas`. The path ends early where it is interrupted or stopped; the
        results of the alphas that were not reached are None.

    Raises
    ------
    InputError
        No alphas, or one that is not positive.
    """
    alphas = as_floats("alphas", alphas).ravel()
    check_type("solver", solver, CuttingPlane, "a CuttingPlane")
    if not alphas.size:
        raise InputError("alpha_path needs at least one alpha")
    solvers = [replace(solver, alpha=float(alpha)) for alpha in alphas]
    results: list[SolverResult | None] = [None] * alphas.size
    last: SolverResult | None = None
    for i in np.argsort(-alphas, kind="stable"):
        start = w_init if last is None else None
        last = results[i] = solvers[i].solve(oracle, start, callback, last)
        if last.status in ("interrupted", "stopped"):
            break
    return results
