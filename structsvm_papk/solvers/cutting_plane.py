"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

Every evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``, one for each block;
a feasible dual point of the resulting model bounds the optimum from below.

    repeat    w, bound <- the model's minimiser          BundleState.propose
              ask the oracle at w or near it             the step of the method, in `steps`
    until     best objective - bound <= tol              _Run
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, as_floats, check_choice, check_number, check_type
from structsvm_papk.solvers.cut_model import CutModel
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.oracle import DualOracle, LineOracle, Oracle
from structsvm_papk.solvers.result import SolverResult, Status, relative_gap
from structsvm_papk.solvers.solver import (
    CheckpointStore,
    Solver,
    check_signs,
    check_store,
    digest_of,
    finite_start,
    not_convex,
)
from structsvm_papk.solvers.steps import (
    BundleState,
    LineSearch,
    OneSlack,
    ProximalBundle,
    SampledBundle,
    default_blocks,
)

METHODS = {"bundle": ProximalBundle, "line_search": LineSearch, "one_slack": OneSlack}
_TRY_DUAL = 10  # iterations without progress before the dual's own point is tried
_STALL = 50  # iterations without any progress before the solver gives up
_AT_ROUNDING = 10  # as many where rounding alone may be half of the gap
_SAME = 1e-9  # subgradients at zero that differ by less are of one risk


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
        if not oracle.convex:
            raise not_convex(str(oracle))
        usual = default_blocks(oracle) if self.method == "bundle" else 1
        blocks = oracle.with_blocks(self.n_blocks or usual)
        if self.method == "line_search" and not isinstance(blocks, LineOracle):
            raise InputError("method 'line_search' needs an oracle with `scores` and `along`")
        sampled = self.method == "bundle" and blocks.sample is not None
        step = SampledBundle(blocks.sample) if sampled else METHODS[self.method]()
        return _Run(self, blocks, oracle, step, (w_init, warm_start))

    def suited_to(self, oracle: Oracle) -> Solver[Any]:
        """`DualAscent` in place of a bundle, with its limits, where the oracle says that it pays.

        Not where options of the bundle are set, or weights may not be negative.
        """
        if not isinstance(oracle, DualOracle) or self.method != "bundle" or self.positive:
            return self
        usual = (None, default_blocks(oracle) if oracle.n_blocks == 1 else oracle.n_blocks)
        plain = self.n_blocks in usual and self.qp_solver in (None, "blocks")
        if not (plain and oracle.suits_dual_ascent(self.alpha)):
            return self
        return DualAscent(self.alpha, self.tol, self.max_iter, self.time_limit)


def alpha_path(
    oracle: Oracle,
    alphas: ArrayLike,
    solver: CuttingPlane,
    w_init: Array | None = None,
    callback: Callback | None = None,
    checkpoint: CheckpointStore | None = None,
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
    checkpoint : Checkpoint, optional
        Each solve saves its result in a part of it, and starts warm from there.

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
    check_store(checkpoint)
    if not alphas.size:
        raise InputError("alpha_path needs at least one alpha")
    solvers = [replace(solver, alpha=float(alpha)) for alpha in alphas]
    results: list[SolverResult | None] = [None] * alphas.size
    last: SolverResult | None = None
    for i in np.argsort(-alphas, kind="stable"):
        start = w_init if last is None else None
        part = checkpoint and checkpoint.part(f"alpha-{solvers[i].alpha!r}")
        last = results[i] = solvers[i].solve(oracle, start, callback, last, part)
        if last.status in ("interrupted", "stopped"):
            break
    return results


class _Run(BundleState):
    """How a solve begins, and when it ends."""

    def __init__(self, config, oracle, given, step, start):
        super().__init__(config, oracle)
        self.given, self.step, self.start = given, step, start
        self.problem = oracle.n_blocks, oracle.layout, given
        layout = digest_of(str(oracle.layout).encode())
        self.identity = {"n_blocks": oracle.n_blocks, "layout": layout}
        self.at_rounding = 0

    def begin(self):
        w_init, warm = self.start
        self.visited -= self.oracle.rows_scored  # rows scored before this run do not count
        if self.saved is not None:  # of this problem, as the checkpoint has checked
            w_init, warm = None, replace(self.saved, problem=self.problem)
        if w_init is None:
            w_init = self.step.start(self) if warm is None else warm.w
        w = finite_start(w_init, self.oracle.n_features, "the start")
        if self.config.positive:
            w = np.maximum(w, 0.0)
        self.steeper = 1.0 if warm is None else warm.steeper
        cuts = self._known(w, warm) or self.ask(w)
        if not w.any():
            self.at_zero = float(cuts.value)
        qp_solver = self.config.qp_solver or self.step.qp_solver
        sizes = w.size, cuts.point.size, self.oracle.n_blocks
        self.model = CutModel(*sizes, qp_solver, self.config.positive)
        self.add(cuts)
        if warm is not None and warm.cuts is not None:
            self._take_cuts(warm.cuts, cuts)
        self.accept(cuts, self.objective(w, cuts.value))
        if self.saved is not None:
            self._bound_anew()
        self.step.begin(self)

    def _known(self, w, warm):
        """The evaluation at the start, where the last solve of this very risk has made it."""
        if warm is None or warm.cuts is None:
            return None
        self._refuse_other(warm.problem)
        return warm.evaluation if _is_at(warm.evaluation, w) else None

    def loop(self):
        predicted = np.inf
        status = None if self.saved is None else self._judge(stop=False)
        while status is None:
            w, predicted = self.propose(predicted)
            # else the evaluations so far were long enough, or they suffice
            if not (self.clock.late() or self._is_certified()):
                self.step.advance(self, w, predicted)
            self.model.drop_idle(self.step.max_idle)
            visits = self.visited + self.oracle.rows_scored
            status = self._judge(self.record(self.model.order.size, rows_scored=visits))
            if status is None:
                self.offer()
        return status

    def result(self, status, notes):
        if status is not Status.FAILED:
            self.step.settle(self)
        if status is Status.CONVERGED and self._zero_is_optimal():
            self.best_w, self.best = np.zeros_like(self.best_w), self.at_zero
        if status in (Status.STALLED, Status.MAX_ITER):
            notes = (*notes, *self._digits())
        return self.outcome(
            status,
            evaluation=self.evaluation if _is_at(self.evaluation, self.best_w) else None,
            cuts=self.model.cuts(active=True),
            notes=(*self.model.qp.notes, *self.oracle.notes, *notes),
            problem=self.problem,
            steeper=self.steeper,
        )

    def saved_fields(self):
        """All cuts: those without dual weight at this moment may soon have some again."""
        return {"cuts": self.model.cuts()}

    def _refuse_other(self, problem):
        """Refuse cuts of another risk, or of other blocks, or of nobody knows which."""
        if problem is None:
            raise InputError(
                "what the warm start's cuts are of is not known any more: start at its point, "
                "w_init=result.w"
            )
        *blocks, risk = problem
        if blocks != [self.oracle.n_blocks, self.oracle.layout] or not self._is_same(risk):
            raise InputError(
                "the warm start's cuts are of another problem: the risk or its blocks differ"
            )

    def _is_same(self, risk):
        """Whether a risk is the one that is minimised.

        Oracles without a fingerprint show at zero what they can: their subgradients there.
        """
        if risk is self.given:
            return True
        own, other = self.oracle.fingerprint(), risk.fingerprint()
        if own is not None or other is not None:
            return own == other
        one, two = (each(np.zeros(self.oracle.n_features))[1] for each in (self.given, risk))
        self.passes += 1
        near = _SAME * np.abs(two).max(initial=0.0)
        return one.shape == two.shape and np.allclose(one, two, rtol=_SAME, atol=near)

    def _take_cuts(self, old, new):
        slopes, intercepts, blocks = old
        if slopes.shape[1] != new.point.size or blocks.max(initial=0) >= self.oracle.n_blocks:
            raise InputError("the warm start's cuts are of another problem: shapes differ")
        values = (new.slopes @ new.point + new.intercepts)[blocks]
        if (slopes @ new.point + intercepts > values + 1e-9 * np.maximum(1.0, values)).any():
            raise InputError("the warm start's cuts are of another problem: they exceed this risk")
        self.model.add(slopes, intercepts, blocks)

    def _bound_anew(self):
        """The bound of saved cuts, before there is a proximal term."""
        before = -np.inf
        self.propose(0.0)
        while self.lower_bound > before + self.config.tol:
            before = self.lower_bound
            self.propose(0.0)

    def _judge(self, stop):
        self._is_certified()
        status = self.judge(self.gap(), stop)
        return Status.STALLED if status is None and self._is_stalled() else status

    def _is_certified(self):
        """The gap is within the tolerance, at an objective that is no sum of steps."""
        if self.gap() <= self.config.tol:
            self.step.settle(self)
        return self.gap() <= self.config.tol

    def _is_stalled(self):
        """No better point and no better bound for many iterations, nor at the dual's own point.

        Or only such as rounding may have made.
        """
        idle = len(self.history) - self.last_progress
        if idle and not idle % _TRY_DUAL:
            self.step.visit(self, self.model.dual_point(self.config.alpha), 0.0)
        gap = relative_gap(self.best, self.lower_bound)
        self.at_rounding += self.lost_to_rounding().sum() >= 0.5 * gap
        if self.at_rounding >= _AT_ROUNDING:
            return True
        return idle >= _STALL and self.best >= self.history[-1].objective

    def _zero_is_optimal(self):
        if self.at_zero is None:
            if relative_gap(self.model.least_at_zero(), self.lower_bound) > self.tol:
                return False  # already the cuts say so
            self.ask(np.zeros_like(self.best_w))
        return self.no_better_than_zero(self.at_zero)

    def _digits(self):
        """Says so where rounding alone is more than the tolerance allows."""
        parts = self.lost_to_rounding()
        lost = parts.sum()
        if lost < 0.5 * self.config.tol:
            return ()
        name = self.oracle.column_text(int(parts.argmax()))
        return (
            f"The digits of the features do not suffice for tol={self.config.tol:g}: rounding may "
            f"amount to {lost:.2g} of the objective, most of it in one column: {name}. Rescale it, "
            "clip its outliers or subtract its offset, or ask for less.",
        )


def _is_at(evaluation, w):
    """Whether an evaluation was made at w."""
    return evaluation is not None and np.array_equal(evaluation.point[: w.size], w)
