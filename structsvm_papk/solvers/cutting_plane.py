"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

Every evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``, one for each block;
a feasible dual point of the resulting model bounds the optimum from below. Polyhedral risks need
finitely many cuts. The blocks may share one more variable that is not regularised, see
`structsvm_papk.solvers.oracle.Cuts`.
"""

from dataclasses import dataclass
from functools import partial

from structsvm_papk.errors import InputError, check_choice, check_number, check_type
from structsvm_papk.solvers.bundle.cut_model import WIDE
from structsvm_papk.solvers.cutting_plane_run import CuttingPlaneRun
from structsvm_papk.solvers.line_search import LineSearch
from structsvm_papk.solvers.one_slack import OneSlack
from structsvm_papk.solvers.oracle import BlockOracle, LineOracle, Oracle
from structsvm_papk.solvers.proximal_bundle import ProximalBundle
from structsvm_papk.solvers.result import SolverResult
from structsvm_papk.solvers.solver import Solver

METHODS = {"bundle": ProximalBundle, "line_search": LineSearch, "one_slack": OneSlack}


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
        'blocks', an interior-point method for the restricted problem, or a cvxpy solver; others
        stand in when it fails. By default 'blocks', and 'piqp' for 'one_slack'.
    time_limit : float, optional
        Seconds.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)
        check_number("n_blocks", self.n_blocks, least=1, optional=True)
        if self.n_blocks not in (None, 1) and self.method != "bundle":
            raise InputError(
                f"method {self.method!r} takes one cut an iteration: n_blocks must be 1"
            )
        check_type("qp_solver", self.qp_solver, str, "the name of a solver", optional=True)

    def _prepare(self, oracle, w_init, warm_start):
        if not oracle.convex:
            raise not_convex(str(oracle))
        blocks = oracle.with_blocks(self._n_blocks(oracle))
        if self.method == "line_search" and not isinstance(blocks, LineOracle):
            raise InputError("method 'line_search' needs an oracle with `scores` and `along`")
        identity = {"n_blocks": blocks.n_blocks, "layout": blocks.layout}
        start = w_init, warm_start
        return (
            blocks,
            identity,
            partial(CuttingPlaneRun, self, METHODS[self.method], blocks, oracle, start),
        )

    def _n_blocks(self, oracle: Oracle) -> int:
        if self.n_blocks is not None:
            return self.n_blocks
        return default_blocks(oracle) if self.method == "bundle" else 1


def not_convex(what: str) -> InputError:
    """The refusal of a risk."""
    return InputError(
        f"{what} is not convex, so its cuts would not be lower bounds and no certificate could "
        "hold; use CCCP where it has convex majorants, and SubgradientDescent where not"
    )


def default_blocks(oracle: Oracle) -> int:
    """About two cuts a feature and iteration, as long as they stay small beside the data.

    More where steps come from a sample: these are few, and their cuts alone have to make the bound.
    """
    if oracle.n_features > WIDE:  # the restricted problem grows with the cuts, not the features
        affordable = max(1, (8 << 20) // (8 * oracle.n_features))
        return int(min(20, affordable))
    sampled = isinstance(oracle, BlockOracle) and oracle.sample is not None
    least = 400 if sampled else 32
    return int(min(max(2 * oracle.n_features, least), 400))
