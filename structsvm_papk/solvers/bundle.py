"""One solve of a cutting-plane method: its state, its loop, and the steps of the usual methods.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

    repeat    w, bound <- argmin_w alpha/2 ||w||^2 + model(w) + prox/2 ||w - best||^2
              ask the oracle at w, or near it: cuts, and perhaps a better point
    until     best objective - bound <= tol

The model is the sum over the blocks of the largest of their cuts; a feasible dual point of it gives
the bound (`cut_model`). How the oracle is asked is what the methods differ in, a `Step`:

    OneSlack       prox = 0, at w (Joachims, Finley and Yu, 2009)
    Proximal       at w; prox is smaller where the model is right (Kiwiel, 1990)
    LineSearch     on the way to w: `line_search`
    SampledSteps   at steps of a small sample of the risk first: `sampled_steps`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.cut_model import CutModel
from structsvm_papk.solvers.oracle import (
    EPS,
    OF_A_FEW,
    BlockOracle,
    Cuts,
    LineOracle,
    Oracle,
    Rounding,
)
from structsvm_papk.solvers.qp import DEFAULT_SOLVER
from structsvm_papk.solvers.result import RISK_SCALE, SolverResult, Status, relative_gap
from structsvm_papk.solvers.solver import Run, finite_start

_INNER = 0.3  # accuracy of the restricted problem, relative to the predicted decrease
_LEVEL_PROX = (1e-5, 1e-2)  # curvature of s: its scale is that of the risk, 1, not that of w
_FINAL = 0.1  # of the tolerance: more accuracy in the restricted problem is of no use
_SERIOUS = 0.1  # share of the predicted decrease that makes a step serious
SMALLEST_PROX = 1e-3  # of alpha
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress
_TRY_DUAL = 10  # iterations without progress before the dual's own point is tried
_STALL = 50  # iterations without any progress before the solver gives up
_AT_ROUNDING = 10  # as many where rounding alone may be half of the gap
_ORDINARY = 1e-8  # of the objective: what rounding may amount to on features without faults
_OTHER_BLOCKS = "The cuts of the warm start are of other blocks: its point alone was taken."


class Bundle(Run[SolverResult]):
    """State of one solve: the model with its bound, and the best point so far.

    The model's variables are z = (w, s), or z = w; see `Cuts`.
    """

    def __init__(
        self,
        config: Any,
        oracle: BlockOracle,
        given: Oracle,
        step: Step,
        w_init: Any,
        warm_start: SolverResult | None,
    ) -> None:
        super().__init__(config, oracle)
        self.step = step
        self.given = given  # the risk as it was given, before it was cut into blocks
        self.w_init = w_init
        self.warm_start = warm_start
        self.problem = oracle.n_blocks, oracle.layout, given
        self.model: Any = None  # a `CutModel`, from the first evaluation on
        self.prox = 0.0  # curvature of the proximal term around the best point
        self.centre: Any = None  # z of the best point
        self.n_moves = 0  # how often the best point has changed
        self.evaluation: Any = None  # the one that was accepted last
        self.at_zero: Any = None  # F(0) = R(0), where it was evaluated
        self.lipschitz_factor = 1.0  # than the risk says that it is in the scores; of all cuts
        self.n_at_rounding = 0  # iterations at which rounding may have been half of the gap
        self.notes: tuple[str, ...] = ()

    # --- begin, iterate, end --------------------------------------------------------------------

    def begin(self) -> None:
        """Evaluate the start, and take over the cuts of a warm start."""
        warm = self.warm_start
        w = self.w_init
        self.rows_before = self.oracle.rows_scored
        if w is None:
            w = self.step.start(self) if warm is None else warm.w
        w = finite_start(w, self.oracle.n_features, "the start")
        if self.config.positive:
            w = np.maximum(w, 0.0)
        self.lipschitz_factor = 1.0 if warm is None else warm.lipschitz_factor
        cuts = None
        carried = None if warm is None else self._cuts_of(warm)
        if warm is not None and carried is not None and _is_at(warm.evaluation, w):
            cuts = warm.evaluation
        if cuts is None:
            cuts = self.ask(w)
        if not w.any():
            self.at_zero = float(cuts.value)
        self.model = CutModel(
            n_features=w.size,
            n_variables=cuts.point.size,
            n_blocks=self.oracle.n_blocks,
            qp_solver=self.config.qp_solver or self.step.qp_solver,
            positive=self.config.positive,
        )
        self.add(cuts)
        if carried is not None:
            refuse_too_high(carried, cuts)
            self.model.add(*carried)
        self.accept(cuts, self.objective(w, cuts.value))
        self.step.begin(self)

    def _cuts_of(self, warm):
        """The cuts of a warm start; None where they are of other blocks of this risk."""
        if warm.cuts is None:
            return None
        refuse_other(warm.problem, self.given)
        if warm.problem[:2] == self.problem[:2]:
            return warm.cuts
        self.notes = (_OTHER_BLOCKS,)
        return None

    def loop(self) -> Status:
        """Iterate until a status says why to stop."""
        predicted = np.inf
        status = None
        while status is None:
            # 1. the minimiser of the model near the best point; the model's dual raises the bound
            w, predicted = self.propose(predicted)
            self.reevaluate()
            # 2. unless that was enough, or took long enough: ask the oracle there, or near it
            if not (self.is_certified or self.clock.late()):
                self.step.advance(self, w, predicted)
            # 3. cuts that have had no weight for long leave the model
            self.model.drop_idle(self.step.max_idle)
            # 4. enough?
            n_rows = self.oracle.rows_scored - self.rows_before
            stop = self.record(self.model.order.size, rows_scored=n_rows)
            self.reevaluate()
            status = self.judge(self.gap(), stop)
            if status is None:
                self.look_for_progress()
                status = Status.STALLED if self.is_stalled else None
            # 5. else keep it, now and then
            if status is None:
                self.keep_result()
        return status

    def result(self, status: Status, notes: tuple[str, ...]) -> SolverResult:
        """The best point, with the cuts that make its bound."""
        if status is not Status.FAILED:
            self.step.reevaluate(self)
        if status is Status.CONVERGED:
            self._go_to_zero_if_optimal()
        if status in (Status.STALLED, Status.MAX_ITER):
            notes = (*notes, *self._digits())
        result: SolverResult = self.outcome(
            status,
            evaluation=self.evaluation if _is_at(self.evaluation, self.best_w) else None,
            cuts=self.model.cuts(active=True),
            notes=(*self.notes, *self.model.qp.notes, *self.oracle.notes, *notes),
            problem=self.problem,
            lipschitz_factor=self.lipschitz_factor,
        )
        return result

    # --- phases of an iteration -----------------------------------------------------------------

    def propose(self, predicted: float) -> tuple[Array, float]:
        """Minimise the model with its proximal term; w, and the decrease that is promised there.

        `predicted` is what the last proposal promised. The bound is updated.
        """
        alpha = self.config.alpha
        d = self.best_w.size
        curvature = np.full(self.centre.size, alpha + self.prox, dtype=np.float64)
        loose = 0.1 * relative_gap(self.best, self.lower_bound)
        curvature[d:] = np.clip(loose, *_LEVEL_PROX)
        # alpha/2 ||w||^2 + prox/2 ||w - best||^2 is a square around a point nearer to zero
        centre = self.centre.copy()
        centre[:d] *= self.prox / (alpha + self.prox)
        scale = max(abs(self.best), RISK_SCALE)
        wanted = min(self.best - self.lower_bound, predicted)
        target = np.clip(_INNER * 0.3 * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        z, value = self.model.minimise(centre, curvature, target)
        errors = self.rounding().slopes
        bound = self.model.lower_bound(alpha, self.best + self.best_error, errors)
        self.lower_bound = max(self.lower_bound, bound)
        return z[:d], self.best - self.objective(z[:d], value)

    def ask(self, w: Array, scores: Array | None = None) -> Cuts:
        """One evaluation of the oracle; of a `LineOracle` the scores may be known."""
        if scores is None or not isinstance(self.oracle, LineOracle):
            cuts: Cuts = self.oracle.cuts(w)
        else:
            cuts = self.oracle.cuts_from_scores(w, scores)
        self.passes += 1
        self.lipschitz_factor = max(self.lipschitz_factor, cuts.lipschitz_factor)
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
            errors = OF_A_FEW * (np.abs(cuts.intercepts) + 2.0 * product)
            errors += cuts.point.size * EPS * product
        intercepts = cuts.intercepts - errors
        self.model.add(cuts.slopes, intercepts, np.arange(intercepts.size))

    def try_point(self, w: Array) -> float:
        """Ask the oracle at w, and go there if it is better; returns by how much it is."""
        cuts = self.ask(w)
        self.add(cuts)
        objective = self.objective(w, cuts.value)
        decrease = self.best - objective
        if decrease > 0.0:
            self.accept(cuts, objective)
        return decrease

    def accept(self, cuts: Cuts, objective: float) -> None:
        """Take the point of an evaluation as the best one."""
        self.centre = cuts.point
        self.evaluation = cuts
        self.best_w = cuts.point[: self.oracle.n_features]
        self.best = objective
        self.best_error = self._error(cuts)
        self.n_moves += 1

    def move(self, w: Array, objective: float) -> None:
        """Take a point as the best one whose objective is known without an evaluation."""
        self.best_w = w
        self.best = objective
        self.n_moves += 1

    def reevaluate(self) -> None:
        """Where the gap is small enough: make sure that the objective is no sum of steps."""
        if self.is_certified:
            self.step.reevaluate(self)

    @property
    def is_certified(self) -> bool:
        """Whether the gap is within the tolerance."""
        return self.gap() <= self.config.tol

    def objective(self, w: Array, risk: float) -> float:
        """``alpha/2 ||w||^2 + risk``."""
        value: float = self.config.alpha / 2 * (w @ w) + risk
        return value

    # --- when to stop ---------------------------------------------------------------------------

    @property
    def n_idle(self) -> int:
        """Iterations since the last one with a better point or a better bound."""
        return len(self.history) - self.last_progress

    def look_for_progress(self) -> None:
        """After some idle iterations try the dual's own point; note where rounding decides."""
        if self.n_idle and not self.n_idle % _TRY_DUAL:
            self.step.try_point(self, self.model.dual_point(self.config.alpha), 0.0)
        gap = relative_gap(self.best, self.lower_bound)
        self.n_at_rounding += self.lost_to_rounding().sum() >= 0.5 * gap

    @property
    def is_stalled(self) -> bool:
        """No better point and no better bound for many iterations, or such as rounding makes."""
        if self.n_at_rounding >= _AT_ROUNDING:
            return True
        return self.n_idle >= _STALL and self.best >= self.history[-1].objective

    def _go_to_zero_if_optimal(self):
        """Return zero itself, where no w improves on it by more than rounding."""
        if self.at_zero is None:
            if relative_gap(self.model.least_at_zero(), self.lower_bound) > self.tol:
                return  # already the cuts say that it is not
            self.ask(np.zeros_like(self.best_w))
        if self.no_better_than_zero(self.at_zero):
            self.best_w = np.zeros_like(self.best_w)
            self.best = self.at_zero

    # --- rounding -------------------------------------------------------------------------------

    def rounding(self) -> Rounding:
        """`BlockOracle.rounding`, of a risk as steep as its cuts have shown it to be."""
        known = self.oracle.rounding()
        if known is None:
            zero = np.zeros(self.oracle.n_features)
            return Rounding(scores=zero, slopes=zero)
        factor = self.lipschitz_factor
        return Rounding(scores=factor * known.scores, slopes=factor * known.slopes)

    def lost_to_rounding(self) -> Array:
        """What rounding in each feature may amount to, as a share of the objective."""
        rounding = self.rounding()
        sizes = np.maximum(np.abs(self.best_w), np.abs(self.model.dual_point(self.config.alpha)))
        return (rounding.scores + rounding.slopes) * sizes / max(self.best, RISK_SCALE)

    def _error(self, cuts):
        """How far rounding may have put the objective of an evaluation off."""
        w = cuts.point[: self.oracle.n_features]
        error = (w.size + 2) * EPS * self.config.alpha / 2 * (w @ w)
        if cuts.errors is None:  # what the sum over the blocks may have lost
            values = cuts.slopes @ cuts.point + cuts.intercepts
            error += (values.size + 2) * EPS * np.abs(values).sum()
        elif self.oracle.rounding() is not None:
            error += cuts.errors.sum() + float(self.rounding().scores @ np.abs(w))
        return float(error)

    def _digits(self):
        """Says so where rounding alone is more than the tolerance allows."""
        parts = self.lost_to_rounding()
        lost = parts.sum()
        if lost < 0.5 * self.config.tol:
            return ()
        text = f"rounding may amount to {lost:.2g} of the objective"
        tol = f"tol={self.config.tol:g}"
        if lost < _ORDINARY or parts.max() < 0.5 * lost:
            return (f"{tol} is below what double precision allows here: {text}.",)
        name = self.oracle.column_text(int(parts.argmax()))
        return (
            f"The digits of the features do not suffice for {tol}: {text}, most of it in one "
            f"column: {name}. Rescale it, clip its outliers or subtract its offset, or ask for "
            "less.",
        )


# --- cuts of an earlier result ------------------------------------------------------------------


def refuse_other(problem: tuple[Any, ...] | None, given: Oracle) -> None:
    """Refuse cuts of another risk, or of nobody knows which; `problem` is the result's."""
    if problem is None:
        raise InputError(
            "what the warm start's cuts are of is not known any more: start at its point, "
            "w_init=result.w"
        )
    if given.is_same(problem[2]):
        return
    advice = ""
    if given.fingerprint() is None:
        advice = "; without a fingerprint() it is known by its object only: give w_init=result.w"
    raise InputError(f"the warm start's cuts are of another problem: the risk differs{advice}")


def refuse_too_high(cuts: tuple[Array, Array, Array], here: Cuts) -> None:
    """Refuse cuts of another shape, or above the risk at the point of an evaluation."""
    slopes, intercepts, blocks = cuts
    n_blocks, n_variables = here.slopes.shape
    if slopes.shape[1] != n_variables or blocks.max(initial=0) >= n_blocks:
        raise InputError("the warm start's cuts are of another problem: shapes differ")
    values = (here.slopes @ here.point + here.intercepts)[blocks]
    if (slopes @ here.point + intercepts > values + 1e-9 * np.maximum(1.0, values)).any():
        raise InputError("the warm start's cuts are of another problem: they exceed this risk")


def _is_at(evaluation, w):
    """Whether an evaluation was made at w."""
    return evaluation is not None and np.array_equal(evaluation.point[: w.size], w)


# --- steps: where the oracle is asked -----------------------------------------------------------


class Step:
    """How one iteration of a `Bundle` asks the oracle. It works on the bundle that it is given."""

    max_idle = 50  # iterations that a cut may be idle
    qp_solver = DEFAULT_SOLVER

    def start(self, bundle: Bundle) -> Array:
        """Where to begin without a start."""
        return np.zeros(bundle.oracle.n_features)

    def begin(self, bundle: Bundle) -> None:
        """Take note of the evaluation at the start."""

    def advance(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """One iteration from the proposal w, where the model promises that decrease."""
        raise NotImplementedError

    def try_point(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """Ask the oracle at w, where the model promises that decrease, and go there if better."""
        bundle.try_point(w)

    def reevaluate(self, bundle: Bundle) -> None:
        """Evaluate the best point anew, where its objective is a sum of steps."""


class OneSlack(Step):
    """The textbook method: ask the oracle at each proposal of the model."""

    qp_solver = "piqp"  # the books leave the restricted problem to a general QP solver

    def advance(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """Ask the oracle at the proposal."""
        bundle.try_point(w)


class Proximal(Step):
    """Steps that are kept short as long as the model promises too much."""

    max_idle = 12

    def __init__(self) -> None:
        self.n_nulls = 0  # steps without a serious decrease since the proximal term last changed

    def begin(self, bundle: Bundle) -> None:
        """Curvature at which the first step is Polyak's for an optimum of zero."""
        alpha = bundle.config.alpha
        w = bundle.best_w
        gradient = bundle.evaluation.slopes.sum(axis=0)[: w.size] + alpha * w
        if bundle.config.positive:  # no step makes a weight of zero smaller
            gradient = gradient[(w > 0.0) | (gradient < 0.0)]
        bundle.prox = max(10 * alpha, gradient @ gradient / max(abs(bundle.best), RISK_SCALE))

    def advance(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """Ask the oracle at the proposal."""
        self.try_point(bundle, w, predicted)

    def try_point(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """`Bundle.try_point`; and a looser term after good steps, a tighter one after bad ones."""
        decrease = bundle.try_point(w)
        smallest = SMALLEST_PROX * bundle.config.alpha
        if decrease >= _SERIOUS * predicted:
            shrink = 0.25 if decrease >= 0.5 * predicted else 0.5
            bundle.prox = max(shrink * bundle.prox, smallest)
            self.n_nulls = 0
        elif predicted <= _PINNED * (bundle.best - bundle.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            bundle.prox = max(0.25 * bundle.prox, smallest)
        else:
            self.n_nulls += 1
            far_too_high = -decrease > 3.0 * predicted
            if far_too_high or (self.n_nulls > 1 and -decrease > 0.5 * predicted):
                bundle.prox = 2.0 * bundle.prox
                self.n_nulls = 0
