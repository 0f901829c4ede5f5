"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

    repeat    w, bound <- argmin_w alpha/2 ||w||^2 + model(w) + prox/2 ||w - best||^2
              ask the oracle at w: cuts, and perhaps a better point
    until     best objective - bound <= tol

Every evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``, one for each block.
The model is the sum over the blocks of the largest of their cuts; a feasible dual point of it
bounds the optimum from below (`cut_model`). Methods differ in where the oracle is asked, a `Step`:

    OneSlack       prox = 0, at w (Joachims, Finley and Yu, 2009)
    Proximal       at w; prox is smaller where the model is right (Kiwiel, 1990), and its norm is
                   that of a `StepMetric`

From top to bottom: the settings, one solve, its steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._rounding import EPS, OF_A_FEW, Rounding
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_choice, check_type
from structsvm_papk.solvers.cut_model import CutModel, default_blocks
from structsvm_papk.solvers.metric import StepMetric, blocks_of_metric
from structsvm_papk.solvers.oracle import BlockCuts, BlockOracle, Cuts, Oracle
from structsvm_papk.solvers.qp import DEFAULT_SOLVER
from structsvm_papk.solvers.solver import (
    RISK_SCALE,
    Run,
    Signs,
    Solver,
    SolverResult,
    Start,
    Status,
    WarmStart,
    finite_start,
    floor_of,
    relative_gap,
)

_INNER = 0.2  # accuracy of the restricted problem, relative to the predicted decrease
_LEVEL_PROX = (1e-5, 1e-2)  # curvature of s: its scale is that of the risk, 1, not that of w
_FINAL = 0.2  # of the tolerance: more accuracy in the restricted problem is of no use
_SERIOUS = 0.1  # share of the predicted decrease, from which on a step is worth having
_EXPECTED = 0.3  # share above which the proximal term falls,
_HALVES = 0.25  # and how much more of it halves the term
_SMALLEST_PROX = 1e-3  # of alpha
_LOOSE = 1e-3  # with a larger tolerance a metric takes longer than the passes that it saves
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress
_TRY_DUAL = 10  # iterations without progress before the dual's own point is tried
_STALL = 50  # iterations without any progress before the solver gives up
_AT_ROUNDING = 10  # as many where rounding alone may be half of the gap
_FAR_APART = 1e4  # sizes of columns that make a run slow
_ORDINARY = 1e-8  # of the objective: what rounding may amount to on features without faults
_OTHER_BLOCKS = "The cuts of the warm start are of other blocks: its point alone was taken."


@dataclass(frozen=True)
class CuttingPlane(Solver[SolverResult]):
    """Certified minimiser of ``alpha/2 ||w||^2 + R(w)`` for convex R.

    It takes several cuts from one evaluation of a `BlockOracle`. With thousands of sparse features
    and many blocks `DualAscent` is faster.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when the relative gap ``(F - lower_bound) / max(F, 1e-3)`` is at most this.
    max_iter : int
        Limit on iterations; each asks the oracle once.
    method : {'bundle', 'one_slack'}
        'bundle': proximal bundle, several cuts an iteration. 'one_slack': one cut, the textbook
        method (Joachims, Finley and Yu, 2009), for comparison.
    n_blocks : int, optional
        Cuts an iteration; by default chosen for 'bundle' from the size of the problem, else 1.
    qp_solver : str, optional
        'interior_point', the package's own, or the name of a QP solver that cvxpy finds, in whose
        place the own one stands where it fails. By default 'interior_point', and 'piqp' for
        'one_slack'.
    time_limit : float, optional
        Seconds.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0 only, or over those w that are >= 0 where it is True, with a
        certificate of that problem. A start is taken at its nearest point there.

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
    positive: Signs = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)
        if self.n_blocks not in (None, 1) and self.method != "bundle":
            raise InputError(
                f"method {self.method!r} takes one cut an iteration: n_blocks must be 1"
            )
        check_type("qp_solver", self.qp_solver, str, "the name of a solver", optional=True)

    def _run(self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None) -> Bundle:
        usual = default_blocks(oracle) if self.method == "bundle" else 1
        blocks = oracle.with_blocks(self.n_blocks or usual)
        return Bundle(self, blocks, oracle, METHODS[self.method](), w_init, warm_start)


# --- one solve ----------------------------------------------------------------------------------


class Bundle(Run[CuttingPlane, BlockOracle, SolverResult]):
    """State of one solve: the model with its bound, and the best point so far.

    The model's variables are z = (w, s), or z = w; see `Cuts`.
    """

    def __init__(
        self,
        config: CuttingPlane,
        oracle: BlockOracle,
        given: Oracle,
        step: Step,
        w_init: Start,
        warm_start: SolverResult | None,
    ) -> None:
        super().__init__(config, oracle)
        self.step = step
        self.given = given  # the risk as it was given, before it was cut into blocks
        self.w_init = w_init
        self.warm_start = warm_start
        self.floor = floor_of(config.positive, oracle.n_features)  # of the weights
        self.model: Any = None  # a `CutModel`, from the first evaluation on
        self.prox = 0.0  # curvature of the proximal term around the best point,
        self.metric = StepMetric()  # times the sizes of this one's axes
        self.evaluation: Any = None  # of the oracle at z of the best point
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
            w = np.zeros(self.oracle.n_features) if warm is None else warm.w
        w = finite_start(w, self.oracle.n_features, "the start")
        w = np.maximum(w, self.floor)
        last = WarmStart() if warm is None else warm._warm_start
        self.lipschitz_factor = last.lipschitz_factor
        carried = self._cuts_of(last)
        cuts = last.evaluation
        if cuts is None or carried is None or not _is_at(cuts, w):
            cuts = self.ask(w)
        if not w.any():
            self.at_zero = float(cuts.value)
        self.metric = self.step.metric(self, w, last.metric)
        self.model = CutModel(
            metric=self.metric,
            floor=self.floor,
            n_variables=cuts.point.size,
            n_blocks=self.oracle.n_blocks,
            qp_solver=self.config.qp_solver or self.step.qp_solver,
        )
        self.add(cuts)
        self.accept(cuts, self.objective(w, cuts.value))
        if carried is not None:
            refuse_too_high(carried, cuts)
            self.model.add(carried.slopes, carried.intercepts, carried.blocks)
        self.step.begin(self)

    def _cuts_of(self, last: WarmStart) -> BlockCuts | None:
        """The cuts of a warm start; None where they are of other blocks of this risk."""
        if last.cuts is None:
            return None
        refuse_other(last.cuts.risk, self.given)
        if last.cuts.are_of(self.oracle):
            return last.cuts
        self.notes = (_OTHER_BLOCKS,)
        return None

    def loop(self) -> Status:
        """Iterate until a status says why to stop."""
        predicted = np.inf
        status = None
        while status is None:
            # 1. the minimiser of the model near the best point; the model's dual raises the bound
            w, predicted = self.propose(predicted)
            # 2. unless that was enough, or took long enough: ask the oracle there
            if not (self.gap() <= self.config.tol or self.clock.late()):
                self.step.try_point(self, w, predicted)
            # 3. cuts that have had no weight for long leave the model
            self.model.drop_idle(self.step.max_idle)
            # 4. enough?
            n_rows = self.oracle.rows_scored - self.rows_before
            stop = self.record(self.model.order.size, rows_scored=n_rows)
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
        if status is Status.CONVERGED:
            self._go_to_zero_if_optimal()
        if status in (Status.STALLED, Status.MAX_ITER):
            notes = notes + (self._digits() or self._sizes())
        slopes, intercepts, blocks = self.model.cuts(active=True)
        result: SolverResult = self.outcome(
            status,
            notes=self.notes + tuple(self.model.qp.notes) + tuple(self.oracle.notes) + notes,
            _warm_start=WarmStart(
                cuts=BlockCuts(
                    slopes=slopes,
                    intercepts=intercepts,
                    blocks=blocks,
                    n_blocks=self.oracle.n_blocks,
                    layout=self.oracle.layout,
                    risk=self.given,
                ),
                evaluation=self.evaluation if _is_at(self.evaluation, self.best_w) else None,
                lipschitz_factor=self.lipschitz_factor,
                metric=self.metric,
            ),
        )
        return result

    # --- phases of an iteration -----------------------------------------------------------------

    def propose(self, predicted: float) -> tuple[Array, float]:
        """Minimise the model with its proximal term; w, and the decrease that is promised there.

        `predicted` is what the last proposal promised. The bound is updated.
        """
        alpha = self.config.alpha
        d = self.best_w.size
        centre = self.metric.along_axes(self.evaluation.point.copy())
        curvature = np.empty(centre.size)
        curvature[:d] = alpha + self.prox * self.metric.sizes
        loose = 0.1 * relative_gap(self.best, self.lower_bound)
        curvature[d:] = np.clip(loose, *_LEVEL_PROX)
        # alpha/2 ||w||^2 + prox/2 ||w - best||^2 is a square around a point nearer to zero
        centre[:d] *= 1.0 - alpha / curvature[:d]
        centre = self.metric.of_features(centre)
        scale = max(abs(self.best), RISK_SCALE)
        wanted = min(self.best - self.lower_bound, predicted)
        target = np.clip(_INNER * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        z, value = self.model.minimise(centre, curvature, target)
        errors = self.rounding().slopes
        bound = self.model.lower_bound(alpha, self.best + self.best_error, errors)
        self.lower_bound = max(self.lower_bound, bound)
        return z[:d], self.best - self.objective(z[:d], value)

    def known_bound(self) -> float:
        """The cuts' bound, or 0 of a risk that is nowhere negative.

        Steps are steered by the cuts' bound alone: 0 says nothing of the model.
        """
        return max(self.lower_bound, 0.0) if self.oracle.nonnegative else self.lower_bound

    def ask(self, w: Array) -> Cuts:
        """One evaluation of the oracle."""
        cuts: Cuts = self.oracle.cuts(w)
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

    def slopes_of(self, risk: BlockOracle, w: Array) -> Array:
        """Slopes of the blocks of this risk in another division, by one more evaluation."""
        rows_before = risk.rows_scored
        _, slopes = risk.blocks(w.copy())  # which may change what it is given
        self.passes += 1
        if risk is not self.oracle:  # whose rows are counted anyway
            self.rows_before -= risk.rows_scored - rows_before
        return slopes

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
        """Take the point of an evaluation, whose cuts were added last, as the best one."""
        self.model.keep_added()
        self.evaluation = cuts
        self.best_w = cuts.point[: self.oracle.n_features]
        self.best = objective
        self.best_error = self._error(cuts)

    def objective(self, w: Array, risk: float) -> float:
        """``alpha/2 ||w||^2 + risk``."""
        return float(self.config.alpha / 2 * (w @ w) + risk)

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

    def _go_to_zero_if_optimal(self) -> None:
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

    def _error(self, cuts: Cuts) -> float:
        """How far rounding may have put the objective of an evaluation off."""
        w = cuts.point[: self.oracle.n_features]
        error = (w.size + 2) * EPS * self.config.alpha / 2 * (w @ w)
        if cuts.errors is None:  # what the sum over the blocks may have lost
            values = cuts.slopes @ cuts.point + cuts.intercepts
            error += (values.size + 2) * EPS * np.abs(values).sum()
        elif self.oracle.rounding() is not None:
            error += cuts.errors.sum() + float(self.rounding().scores @ np.abs(w))
        return float(error)

    def _digits(self) -> tuple[str, ...]:
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

    def _sizes(self):
        """Names the columns whose sizes differ so much that steps in all of them are slow."""
        known = self.rounding().scores  # in proportion to the entries of each column
        varying = np.flatnonzero(known > 0.0)
        if not varying.size:
            return ()
        largest = varying[known[varying].argmax()]
        smallest = varying[known[varying].argmin()]
        ratio = known[largest] / known[smallest]
        if ratio < _FAR_APART:
            return ()
        return (
            f"Columns differ in size by a factor of {ratio:.0e}: "
            f"{self.oracle.column_text(int(largest))}; {self.oracle.column_text(int(smallest))}. "
            "Divide columns by their spread.",
        )


# --- cuts of an earlier result ------------------------------------------------------------------


def refuse_other(risk: Oracle | None, given: Oracle) -> None:
    """Refuse cuts of another risk than the given one, or of nobody knows which."""
    if risk is None:
        raise InputError(
            "what the warm start's cuts are of is not known any more: start at its point, "
            "w_init=result.w"
        )
    if given.is_same(risk):
        return
    advice = ""
    if given.fingerprint() is None:
        advice = "; without a fingerprint() it is known by its object only: give w_init=result.w"
    raise InputError(f"the warm start's cuts are of another problem: the risk differs{advice}")


def refuse_too_high(cuts: BlockCuts, here: Cuts) -> None:
    """Refuse cuts of another shape, or above the risk at the point of an evaluation."""
    n_blocks, n_variables = here.slopes.shape
    if cuts.slopes.shape[1] != n_variables or cuts.blocks.max(initial=0) >= n_blocks:
        raise InputError("the warm start's cuts are of another problem: shapes differ")
    heights = cuts.slopes @ here.point + cuts.intercepts
    values = (here.slopes @ here.point + here.intercepts)[cuts.blocks]
    if (heights > values + 1e-9 * np.maximum(1.0, values)).any():
        raise InputError("the warm start's cuts are of another problem: they exceed this risk")


def _is_at(evaluation: Cuts | None, w: Array) -> bool:
    """Whether an evaluation was made at w."""
    return evaluation is not None and np.array_equal(evaluation.point[: w.size], w)


# --- steps: where the oracle is asked -----------------------------------------------------------


class Step:
    """How one iteration of a `Bundle` asks the oracle. It works on the bundle that it is given."""

    max_idle = 50  # iterations that a cut may be idle
    qp_solver = DEFAULT_SOLVER

    def metric(self, bundle: Bundle, w: Array, known: StepMetric | None) -> StepMetric:
        """What the proximal term measures steps by at the start w; `known` of a warm start."""
        return StepMetric()

    def begin(self, bundle: Bundle) -> None:
        """Take note of the evaluation at the start."""

    def try_point(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """Ask the oracle at w, where the model promises that decrease, and go there if better."""
        bundle.try_point(w)


class OneSlack(Step):
    """The textbook method: ask the oracle at each proposal of the model."""

    qp_solver = "piqp"  # the books leave the restricted problem to a general QP solver


class Proximal(Step):
    """Steps that are kept short as long as the model promises too much."""

    max_idle = 6

    def __init__(self) -> None:
        self.n_nulls = 0  # steps without a serious decrease since the proximal term last changed

    def metric(self, bundle: Bundle, w: Array, known: StepMetric | None) -> StepMetric:
        """By the slopes of many blocks, where weights have no signs: it turns the features."""
        n_blocks = blocks_of_metric(w.size, bundle.oracle.n_entries)
        if n_blocks == 0 or bundle.config.tol > _LOOSE or np.isfinite(bundle.floor).any():
            return StepMetric()
        if known is not None and known.axes is not None:
            return known
        risk = bundle.given.with_blocks(n_blocks)
        if risk.n_blocks < 2 * w.size or bundle.clock.late():
            return StepMetric()
        return StepMetric.of(bundle.slopes_of(risk, w))

    def begin(self, bundle: Bundle) -> None:
        """Curvature at which the first step is Polyak's for an optimum of zero."""
        alpha = bundle.config.alpha
        w = bundle.best_w
        gradient = bundle.evaluation.slopes.sum(axis=0)[: w.size] + alpha * w
        # no step makes a weight smaller that is as small as it may be
        gradient[(w <= bundle.floor) & (gradient > 0.0)] = 0.0
        along = bundle.metric.along_axes(gradient)
        square = np.sum(along * along / bundle.metric.sizes)
        bundle.prox = max(10 * alpha, square / max(abs(bundle.best), RISK_SCALE))

    def try_point(self, bundle: Bundle, w: Array, predicted: float) -> None:
        """`Bundle.try_point`; a looser term where the model was right, else in time a tighter one.

        A single step without a decrease adds the cuts that it takes to make the next one better.
        """
        decrease = bundle.try_point(w)
        factor = 1.0
        if decrease >= _SERIOUS * predicted:
            self.n_nulls = 0
            kept = 1.0  # where the model, solved loosely, promised none
            if predicted > 0.0:
                kept = decrease / predicted
            factor = float(np.clip(2.0 ** ((_EXPECTED - kept) / _HALVES), 0.25, 1.0))
        elif predicted <= _PINNED * (bundle.best - bundle.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            factor = 0.25
        else:
            self.n_nulls += 1
            far_too_high = -decrease > 3.0 * predicted
            if far_too_high or (self.n_nulls > 1 and -decrease > 0.5 * predicted):
                factor = 2.0
                self.n_nulls = 0
        bundle.prox = max(factor * bundle.prox, _SMALLEST_PROX * bundle.config.alpha)


METHODS: dict[str, type[Step]] = {
    "bundle": Proximal,
    "one_slack": OneSlack,
}
