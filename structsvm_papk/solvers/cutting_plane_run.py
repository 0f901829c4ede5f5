"""The state of a cutting-plane solve, which the steps of the methods work on.

A method is a step object: `OneSlack`, `LineSearch` or `ProximalBundle`. What they share is here:
the model and its bound, the best point, and the judgement after every iteration.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import ThreadpoolController

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.bundle.cut_model import ROUNDING, CutModel
from structsvm_papk.solvers.checkpoints import CheckpointSession
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, LineOracle, Oracle
from structsvm_papk.solvers.result import RISK_SCALE, SolverResult, Status, relative_gap
from structsvm_papk.solvers.solver import Run, finite_start

if TYPE_CHECKING:
    from structsvm_papk.solvers.cutting_plane import CuttingPlane
    from structsvm_papk.solvers.one_slack import OneSlack

_INNER = 0.3  # accuracy of the restricted problem, relative to the predicted decrease
_LEVEL_PROX = (1e-5, 1e-2)  # curvature of s: its scale is that of the risk, 1, not that of w
_FINAL = 0.1  # of the tolerance: more accuracy in the restricted problem is of no use
_ROUNDING = 1e-12  # a decrease below this share of F is rounding
_TRY_DUAL = 10  # iterations without progress before the dual's own point is tried
_STALL = 50  # iterations without any progress before the solver gives up
_AT_ROUNDING = 10  # as many where rounding alone may be half of the gap
_EPS = np.finfo(float).eps
_SAME = 1e-9  # subgradients at zero that differ by less are of one risk


class CuttingPlaneRun(Run[SolverResult]):
    """State of one solve. The model's variables are z = (w, s), or z = w; see `Cuts`."""

    def __init__(
        self,
        config: CuttingPlane,
        step: type[OneSlack],
        oracle: BlockOracle,
        given: Oracle,
        start: tuple[Array | None, SolverResult | None],
        callback: Callback | None,
        session: CheckpointSession,
    ) -> None:
        super().__init__(config, callback, session)
        self.oracle, self.given = oracle, given
        self.problem = oracle.n_blocks, oracle.layout, given
        saved = session.saved  # of this problem, as the checkpoint has checked
        self.start = start if saved is None else (None, replace(saved, problem=self.problem))
        self.step, self.qp_solver = step(self), config.qp_solver or step.qp_solver
        self.best_w: Any = None
        self.best, self.lower_bound = np.inf, -np.inf
        self.best_error = 0.0  # how far rounding may have put `best` below the objective there
        self.centre: Any = None  # z of the best point
        self.evaluation: Any = None  # the one that was accepted last
        self.at_zero: Any = None  # F(0) = R(0), where it was evaluated
        self.steeper = 1.0  # than the risk says that it is in the scores; of all cuts
        self.predicted = np.inf  # decrease that the last proposal promised
        self.visited -= oracle.rows_scored  # rows scored before this run do not count
        self.last_progress, self.at_rounding = len(self.history), 0

    def limits(self) -> AbstractContextManager[Any]:
        """One BLAS thread: the matrices of the model are small.

        More threads only wait for each other, and the last digits would depend on their number.
        """
        limits: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
        return limits

    def has_point(self) -> bool:
        """Whether a point was evaluated."""
        return self.best_w is not None

    def begin(self) -> None:
        """Evaluate the start, and take the cuts of a warm start."""
        w_init, warm = self.start
        d = self.oracle.n_features
        if w_init is None:
            w_init = self.step.start() if warm is None else warm.w
        w = finite_start(w_init, d, "the start")
        self.steeper = 1.0 if warm is None else warm.steeper
        cuts = self._known(w, warm) or self.ask(w)
        if not w.any():
            self.at_zero = float(cuts.value)
        self.model = CutModel(d, cuts.point.size, self.oracle.n_blocks, self.qp_solver)
        self.add(cuts)
        if warm is not None and warm.cuts is not None:
            self._take_cuts(warm.cuts, cuts)
        self.accept(cuts, self.objective(w, cuts.value))
        if self.session.saved is not None:
            self._bound_anew()
        self.step.begin(cuts)

    def _known(self, w, warm):
        """The evaluation at the start, where the last solve of this very risk has made it."""
        if warm is None or warm.cuts is None:
            return None
        self._refuse_other(warm.problem)
        return warm.evaluation if _is_at(warm.evaluation, w) else None

    def loop(self) -> Status:
        """Propose, ask, judge."""
        status = None if self.session.saved is None else self._judge(stop=False)
        while status is None:
            w, self.predicted = self._propose(self.predicted)
            # else the evaluations so far were long enough, or they suffice
            if not (self.late() or self._is_certified()):
                self.step.advance(w, self.predicted)
            self.model.drop_idle(self.step.max_idle)
            status = self._judge(self._record())
            if status is None:
                self.offer()
        return status

    def result(self, status: Status, notes: tuple[str, ...]) -> SolverResult:
        """Gather the outcome; a zero vector that is optimal is said to be degenerate."""
        if status is not Status.FAILED:
            self.step.settle()
        if status is Status.CONVERGED and self._zero_is_optimal():
            self.best_w, self.best = np.zeros_like(self.best_w), self.at_zero
            status = Status.DEGENERATE
        if status in (Status.STALLED, Status.MAX_ITER):
            notes = (*notes, *self._digits())
        known = self.evaluation if _is_at(self.evaluation, self.best_w) else None
        return self.outcome(
            self.best_w,
            self.best,
            min(self.lower_bound, self.best),
            status,
            evaluation=known,
            cuts=self.model.active_cuts(),
            notes=(*self.model.qp.notes, *self.oracle.notes, *notes),
            problem=self.problem,
            steeper=self.steeper,
        )

    def saved_fields(self) -> dict[str, Any]:
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

    def _propose(self, last_predicted):
        """Minimise the model (with its proximal term); update the bound."""
        alpha, d = self.config.alpha, self.best_w.size
        curvature = np.full(self.centre.size, alpha + self.step.prox, dtype=np.float64)
        loose = 0.1 * relative_gap(self.best, self.lower_bound)
        curvature[d:] = np.clip(loose, *_LEVEL_PROX)
        centre = self.centre.copy()
        centre[:d] *= self.step.prox / (alpha + self.step.prox)
        scale = max(abs(self.best), RISK_SCALE)
        wanted = min(self.best - self.lower_bound, last_predicted)
        target = np.clip(_INNER * 0.3 * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        z, value = self.model.minimise(centre, curvature, target)
        rounding = self._rounding()
        errors = 0.0 if rounding is None else rounding.slopes
        bound = self.model.lower_bound(alpha, self.best + self.best_error, errors)
        self.lower_bound = max(self.lower_bound, bound)
        return z[:d], self.best - self.objective(z[:d], value)

    def _bound_anew(self):
        """The bound of saved cuts, before there is a proximal term."""
        before = -np.inf
        self._propose(0.0)
        while self.lower_bound > before + self.config.tol:
            before = self.lower_bound
            self._propose(0.0)

    def _record(self):
        bound, last = min(self.lower_bound, self.best), self.history[-1] if self.history else None
        if last is None or self.best < last.objective or bound > last.lower_bound:
            self.last_progress = len(self.history)
        visits = self.visited + self.oracle.rows_scored
        return self.record(self.best, bound, self.model.size, rows_scored=visits)

    def _judge(self, stop):
        self._is_certified()
        status = self.judge(self._gap(), stop)
        if status is Status.INCONSISTENT:
            self.lower_bound = -np.inf
        return Status.STALLED if status is None and self._is_stalled() else status

    def _gap(self):
        """The relative gap, with what rounding may have done to the objective."""
        return relative_gap(self.best + self.best_error, self.lower_bound)

    def _is_certified(self):
        """The gap is within the tolerance, at an objective that is no sum of steps."""
        if self._gap() <= self.config.tol:
            self.step.settle()
        return self._gap() <= self.config.tol

    def _is_stalled(self):
        """No better point and no better bound for many iterations, nor at the dual's own point.

        Or only such as rounding may have made.
        """
        idle = len(self.history) - self.last_progress
        if idle and not idle % _TRY_DUAL:
            self.step.visit(self.model.dual_point(self.config.alpha), 0.0)
        gap = relative_gap(self.best, self.lower_bound)
        self.at_rounding += self._lost_to_rounding().sum() >= 0.5 * gap
        if self.at_rounding >= _AT_ROUNDING:
            return True
        return idle >= _STALL and self.best >= self.history[-1].objective

    def _zero_is_optimal(self):
        """No w improves on zero by more than rounding, and the bound agrees within tol."""
        if self.at_zero is None:
            least = self.model.least_at_zero()
            if relative_gap(least, self.lower_bound) > self.config.tol:
                return False  # already the cuts say so
            self.ask(np.zeros_like(self.best_w))
        near = relative_gap(self.at_zero, self.lower_bound) <= self.config.tol
        return near and self.best >= self.at_zero * (1.0 - _ROUNDING)

    def ask(self, w: Array, scores: Array | None = None) -> Cuts:
        """One evaluation of the oracle; of a `LineOracle` the scores may be known."""
        if scores is None or not isinstance(self.oracle, LineOracle):
            cuts = self.oracle.cuts(w)
        else:
            cuts = self.oracle.cuts_from_scores(w, scores)
        self.passes += 1
        self.steeper = max(self.steeper, cuts.steeper)
        if not (np.isfinite(cuts.value) and np.isfinite(cuts.slopes).all()):
            raise InputError(
                f"the risk is not finite at a point of norm {np.linalg.norm(w):.3g}; "
                "rescale the features"
            )
        if not w.any():
            self.at_zero = float(cuts.value)
        return cuts

    def add(self, cuts: Cuts) -> None:
        """Add the cuts of an evaluation to the model, lowered by what rounding may have added.

        The intercept ``R_j(w) - g . w`` is a difference: far out it has few digits left.
        """
        errors = cuts.errors
        if errors is None:
            product = np.abs(cuts.slopes) @ np.abs(cuts.point)
            errors = ROUNDING * (np.abs(cuts.intercepts) + 2.0 * product)
            errors += cuts.point.size * _EPS * product
        intercepts = cuts.intercepts - errors
        self.model.add(cuts.slopes, intercepts, np.arange(intercepts.size))

    def accept(self, cuts: Cuts, objective: float) -> None:
        """Take the point of an evaluation as the best one."""
        self.centre, self.best_w = cuts.point, cuts.point[: self.oracle.n_features]
        self.best, self.best_error, self.evaluation = objective, self._error(cuts), cuts

    def _rounding(self):
        """`BlockOracle.rounding`, of a risk as steep as its cuts have shown it to be."""
        rounding = self.oracle.rounding()
        return None if rounding is None else rounding.times(self.steeper)

    def _error(self, cuts):
        """How far rounding may have put the objective of an evaluation off."""
        rounding, w = self._rounding(), cuts.point[: self.oracle.n_features]
        error = (w.size + 2) * _EPS * self.config.alpha / 2 * (w @ w)
        if cuts.errors is None:  # what the sum over the blocks may have lost
            values = cuts.slopes @ cuts.point + cuts.intercepts
            error += (values.size + 2) * _EPS * np.abs(values).sum()
        elif rounding is not None:
            error += cuts.errors.sum() + rounding.value(w)
        return float(error)

    def _lost_to_rounding(self):
        """What rounding in each feature may amount to, as a share of the objective."""
        rounding = self._rounding()
        if rounding is None:
            return np.zeros(1)
        sizes = np.maximum(np.abs(self.best_w), np.abs(self.model.dual_point(self.config.alpha)))
        return (rounding.scores + rounding.slopes) * sizes / max(self.best, RISK_SCALE)

    def _digits(self):
        """Says so where rounding alone is more than the tolerance allows."""
        parts = self._lost_to_rounding()
        lost = parts.sum()
        if lost < 0.5 * self.config.tol:
            return ()
        name = self.oracle.column_text(int(parts.argmax()))
        return (
            f"The digits of the features do not suffice for tol={self.config.tol:g}: rounding may "
            f"amount to {lost:.2g} of the objective, most of it in one column: {name}. Rescale it, "
            "clip its outliers or subtract its offset, or ask for less.",
        )

    def objective(self, w: Array, risk: float) -> float:
        """``alpha/2 ||w||^2 + risk``."""
        return self.config.alpha / 2 * (w @ w) + risk


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; to look for them takes longer than a small solve."""
    return ThreadpoolController()


def _is_at(evaluation, w):
    """Whether an evaluation was made at w."""
    return evaluation is not None and np.array_equal(evaluation.point[: w.size], w)
