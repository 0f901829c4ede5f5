"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R(w) = R_1(w) + .. + R_J(w) convex

Every evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``, one for each block;
a feasible dual point of the resulting model bounds the optimum from below. Polyhedral risks need
finitely many cuts. The blocks may share one more variable that is not regularised, see
`structsvm_papk.solvers.oracle.Cuts`.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.files.checkpoint import opened, pack_history, take, unpack_history
from structsvm_papk.solvers._trace import best_so_far
from structsvm_papk.solvers.bundle.cut_model import ROUNDING, WIDE, CutModel
from structsvm_papk.solvers.oracle import Cuts
from structsvm_papk.solvers.result import Progress, SolverResult, Status, relative_gap

METHODS = ("bundle", "line_search", "one_slack")
_SERIOUS = 0.1  # share of the predicted decrease that makes a step serious
_INNER = 0.3  # accuracy of the restricted problem, relative to the predicted decrease
_SMALLEST_PROX = 1e-3  # of alpha
_LEVEL_PROX = (1e-5, 1e-2)  # curvature of s: its scale is that of the risk, 1, not that of w
_FINAL = 0.1  # of the tolerance: more accuracy in the restricted problem is of no use
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress
_ROUNDING = 1e-12  # a decrease below this share of F is rounding
_CONTRADICTION = 1e-9  # a bound above the objective by this share proves that a cut is wrong
_TRY_DUAL = 10  # iterations without progress before the dual's own point is tried
_STALL = 50  # iterations without any progress before the solver gives up
_MAX_IDLE = {"bundle": 12, "line_search": 50, "one_slack": 50}  # iterations a cut may be idle
_AHEAD = 0.1  # of the way from the best point to the proposal: where line_search cuts
_LINE_STEPS = 20
_EPS = np.finfo(float).eps
_SAME = 1e-9  # subgradients at zero that differ by less are of one risk
_NUMBERS = ("best", "lower_bound", "predicted", "prox", "nulls", "passes", "last_progress")
# what a checkpoint keeps beside the model and the history; the best point last: it says that there
# is something to return
_STATE = dict.fromkeys(_NUMBERS, "number") | {"best_w": "w"}


@dataclass(frozen=True)
class CuttingPlane:
    """Certified minimiser of ``alpha/2 ||w||^2 + R(w)`` for convex R.

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
    qp_solver : str
        cvxpy solver for the restricted problem; others stand in when it fails.
    time_limit : float, optional
        Seconds.

    References
    ----------
    Kiwiel, "Proximity control in bundle methods for convex nondifferentiable minimization",
    Mathematical Programming 46 (1990). Joachims, Finley, Yu, "Cutting-plane training of structural
    SVMs", Machine Learning 77 (2009). Shah, Kolmogorov, Lampert, "A multi-plane block-coordinate
    Frank-Wolfe algorithm for training structural SVMs with a costly max-oracle", CVPR 2015.
    """

    alpha: float
    tol: float = 1e-6
    max_iter: int = 2000
    method: str = "bundle"
    n_blocks: int | None = None
    qp_solver: str = "blocks"
    time_limit: float | None = None

    def __post_init__(self):
        check_number("alpha", self.alpha, above=0)
        check_number("tol", self.tol, above=0)
        check_number("max_iter", self.max_iter, least=1)
        if self.method not in METHODS:
            raise InputError(f"unknown method {self.method!r}; choose from {', '.join(METHODS)}")
        check_number("n_blocks", self.n_blocks, least=1, optional=True)
        if self.n_blocks not in (None, 1) and self.method != "bundle":
            raise InputError(
                f"method {self.method!r} takes one cut an iteration: n_blocks must be 1"
            )
        check_number("time_limit", self.time_limit, above=0, optional=True)

    def solve(
        self,
        oracle: Any,
        w_init: Array | None = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
        checkpoint: Any = None,
    ) -> SolverResult:
        """Minimise.

        Parameters
        ----------
        oracle : EmpiricalRisk or any object with `n_features` and ``oracle(w) -> (value, g)``
            Where it has `with_blocks` and `blocks`, several cuts are taken from one evaluation.
        w_init : ndarray of shape (n_features,), optional
            Start; zero by default, or the warm start's point.
        callback : callable, optional
            Called with a `Progress` after every iteration; a true return value stops the solver.
        warm_start : SolverResult, optional
            Earlier result for the same risk (any alpha), whose cuts are used again.
        checkpoint : Checkpoint, optional
            Where the state is kept. If it holds one, the run goes on from there, with its history,
            and neither w_init nor warm_start is looked at.

        Returns
        -------
        SolverResult
            On Ctrl-C, and when the oracle fails in mid-course (`OracleFailure`), the best point so
            far, with its certificate.

        Raises
        ------
        OracleFailure
            The oracle failed at the first point already.
        InputError
            The risk is not convex, or w_init or the warm start do not fit it, or the checkpoint is
            of another run.
        """
        if not getattr(oracle, "convex", True):
            raise InputError(
                f"{_name(oracle)} is not convex, so its cuts would not be lower bounds and no "
                "certificate could hold; use CCCP for 'ramp' and 'clipped_ramp', "
                "SubgradientDescent for 'ts_alg2'"
            )
        oracle = self._in_blocks(oracle)
        # the matrices of the model are small: more BLAS threads only wait for each other, and the
        # last digits would depend on their number
        with (
            opened(checkpoint, self, oracle, **_blocks_of(oracle)) as keeper,
            threadpool_limits(limits=1, user_api="blas"),
        ):
            return best_so_far(_Run(self, oracle, callback, keeper), w_init, warm_start)

    def _in_blocks(self, oracle):
        if not hasattr(oracle, "with_blocks"):
            return _OneBlock(oracle)
        n_blocks = self.n_blocks or (1 if self.method != "bundle" else _default_blocks(oracle))
        return oracle.with_blocks(n_blocks)


def _blocks_of(oracle):
    """What tells the blocks of an oracle from those of another."""
    return {"n_blocks": oracle.n_blocks, "layout": getattr(oracle, "layout", None)}


def _same_risk(one, other):
    """Whether two identifications agree: fingerprints, or subgradients at zero to rounding."""
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and one == other
    near = _SAME * np.abs(other).max(initial=0.0)
    return one.shape == other.shape and np.allclose(one, other, rtol=_SAME, atol=near)


class _OneBlock:
    """A plain oracle seen as one block."""

    n_blocks = 1

    def __init__(self, oracle):
        self.oracle, self.n_features = oracle, oracle.n_features
        if hasattr(oracle, "fingerprint"):
            self.fingerprint = oracle.fingerprint

    def cuts(self, w):
        value, slope = self.oracle(w)
        slope = np.asarray(slope, dtype=np.float64)
        return Cuts(value, slope[None, :], np.array([value - slope @ w]), w)


def _default_blocks(oracle):
    """About two cuts a feature and iteration, as long as they stay small beside the data."""
    if oracle.n_features > WIDE:  # the restricted problem grows with the cuts, not the features
        affordable = max(1, (8 << 20) // (8 * oracle.n_features))
        return int(min(20, affordable))
    return int(min(max(2 * oracle.n_features, 32), 400))


def _name(oracle):
    return f"surrogate {oracle.surrogate.name!r}" if hasattr(oracle, "surrogate") else "the risk"


class _Run:
    """State of one solve. The model's variables are z = (w, s), or z = w; see `Cuts`."""

    def __init__(self, config, oracle, callback, keeper):
        self.config, self.oracle, self.callback, self.keeper = config, oracle, callback, keeper
        self.started = time.perf_counter()
        self.model = None
        self.best_w, self.best, self.lower_bound = None, np.inf, -np.inf
        self.best_error = 0.0  # how far rounding may have put `best` below the objective there
        self.line_search = None
        self.centre = None  # z of the best point
        self.at_zero = None  # F(0) = R(0), where it was evaluated
        self.slope_at_zero = None  # a subgradient there
        self.predicted = np.inf  # decrease that the last proposal promised
        self.prox = 0.0
        self.nulls = 0  # steps without a serious decrease since prox last changed
        self.passes = 0
        self.visited = -getattr(oracle, "row_visits", 0)  # rows scored before this run do not count
        self.history = []
        self.last_progress = 0

    def loop(self, w_init, warm_start):
        if self.keeper is None or self.keeper.state is None:
            self._start(w_init, warm_start)
        else:
            with self.keeper.taking() as state:
                self._go_on(state)
            if self.keeper.status is not None:
                return self.keeper.status
        self.line_search = _LineSearch(self) if self.config.method == "line_search" else None
        while True:
            w, self.predicted = self._propose(self.predicted)
            if not self.late():  # else the evaluations so far were long enough
                if self.line_search is not None:
                    self.line_search.advance(w)
                else:
                    self._step(w, self.predicted)
            self.model.drop_idle(_MAX_IDLE[self.config.method])
            status = self._record_and_judge()
            if status is not None:
                return status
            if self.keeper is not None and self.keeper.due():
                self.keeper.save(self._state())

    def result(self, status, *notes):
        """Gather the outcome; a zero vector that is optimal is said to be degenerate."""
        if self.line_search is not None:
            self.line_search.settle()
        if status is Status.CONVERGED and self._zero_is_optimal():
            self.best_w, self.best = np.zeros_like(self.best_w), self.at_zero
            status = Status.DEGENERATE
        if status in (Status.STALLED, Status.MAX_ITER):
            notes = (*notes, *self._digits())
        if self.keeper is not None:
            if status not in (self.keeper.status, Status.INCONSISTENT):
                self.keeper.save(self._state(), status)
            notes = (*notes, *self.keeper.notes)
        w, objective = self.best_w, self.best
        return SolverResult(
            w,
            float(objective),
            float(min(self.lower_bound, objective)),
            status,
            tuple(self.history),
            self.config.alpha,
            self.model.active_cuts(),
            (*self.model.qp.notes, *getattr(self.oracle, "notes", ()), *notes),
            self._problem(),
        )

    def _state(self):
        """What a checkpoint keeps."""
        return {
            **self.model.state(),
            **{name: getattr(self, name) for name in _STATE},
            "seconds": time.perf_counter() - self.started,
            "history": pack_history(self.history),
        }

    def _go_on(self, state):
        """Take a state from a checkpoint: the cuts hold, so the bound does."""
        self.history = unpack_history(state["history"])
        self.visited += self.history[-1].row_visits if self.history else 0
        self.started = time.perf_counter() - float(state["seconds"])
        self.model = CutModel.restored(
            state, self.oracle.n_features, self.oracle.n_blocks, self.config.qp_solver
        )
        take(self, state, _STATE, w=self.oracle.n_features)
        self._check_state()

    def _check_state(self):
        """Ask at zero and at the best point: its objective, and the cuts, have to fit the risk."""
        self.ask(np.zeros_like(self.best_w))
        cuts = self.ask(self.best_w)
        self.centre, self.best_error = cuts.point, self._error(cuts)
        slopes, intercepts, blocks = self.model.active_cuts()
        values = cuts.slopes @ cuts.point + cuts.intercepts
        above = slopes @ cuts.point + intercepts - values[blocks]
        off = abs(self.objective(self.best_w, cuts.value) - self.best)
        allowed = _SAME * max(1.0, abs(self.best)) + 2.0 * self._error(cuts)
        if max(off, above.max(initial=0.0)) > allowed:
            raise ValueError("the risk has other values at the best point")
        if not 0.0 <= self.prox < np.inf:
            raise ValueError(f"the proximal term is {self.prox}")

    def _problem(self):
        """What tells this risk and its blocks from others, see `SolverResult.problem`."""
        blocks = tuple(_blocks_of(self.oracle).values())
        if hasattr(self.oracle, "fingerprint"):
            return *blocks, self.oracle.fingerprint()
        return None if self.slope_at_zero is None else (*blocks, self.slope_at_zero)

    def _start(self, w_init, warm_start):
        w = self._first_point(w_init, warm_start)
        cuts = self.ask(w)
        self.model = CutModel(w.size, cuts.point.size, self.oracle.n_blocks, self.config.qp_solver)
        self.add(cuts)
        if warm_start is not None and warm_start.cuts is not None:
            self._refuse_other(warm_start.problem)
            self._take_cuts(warm_start.cuts, cuts)
        self.accept(cuts, self.objective(w, cuts.value))
        if self.config.method == "bundle":
            self.prox = self._first_prox(cuts)

    def _first_point(self, w_init, warm_start):
        d = self.oracle.n_features
        w = np.zeros(d) if warm_start is None else warm_start.w
        w = np.array(w if w_init is None else w_init, dtype=np.float64)
        if w.shape != (d,) or not np.isfinite(w).all():
            raise InputError(
                f"the start must be a finite vector of length {d}, got shape {w.shape}"
            )
        return w

    def _first_prox(self, cuts):
        """Curvature at which the first step is Polyak's for an optimum of zero."""
        gradient = cuts.slopes.sum(axis=0)[: self.best_w.size] + self.config.alpha * self.best_w
        return max(10 * self.config.alpha, gradient @ gradient / max(self.best, 1e-300))

    def _refuse_other(self, problem):
        """Refuse cuts of another risk, or of other blocks.

        An oracle without a fingerprint shows at zero what it can: its subgradient there.
        """
        if problem is None:
            return
        if not hasattr(self.oracle, "fingerprint") and self.slope_at_zero is None:
            self.ask(np.zeros(self.oracle.n_features))
        *blocks, risk = problem
        *own_blocks, own_risk = self._problem()
        if blocks != own_blocks or not _same_risk(risk, own_risk):
            raise InputError(
                "the warm start's cuts are of another problem: data, surrogate, k or blocks differ"
            )

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
        curvature = np.full(self.centre.size, alpha + self.prox, dtype=np.float64)
        loose = 0.1 * relative_gap(self.best, self.lower_bound)
        curvature[d:] = np.clip(loose, *_LEVEL_PROX)
        centre = self.centre.copy()
        centre[:d] *= self.prox / (alpha + self.prox)
        scale = max(abs(self.best), 1e-3)
        wanted = min(self.best - self.lower_bound, last_predicted)
        target = np.clip(_INNER * 0.3 * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        z, value = self.model.minimise(centre, curvature, target)
        rounding = self._rounding()
        errors = 0.0 if rounding is None else rounding.slopes
        bound = self.model.lower_bound(alpha, self.best + self.best_error, errors)
        self.lower_bound = max(self.lower_bound, bound)
        return z[:d], self.best - self.objective(z[:d], value)

    def _step(self, w, predicted):
        """Ask the oracle at w; move there if it is better; adapt the proximal term."""
        cuts = self.ask(w)
        self.add(cuts)
        objective = self.objective(w, cuts.value)
        decrease = self.best - objective
        if decrease > 0.0:
            self.accept(cuts, objective)
        if self.prox > 0.0:
            self._adapt_prox(decrease, predicted)

    def _adapt_prox(self, decrease, predicted):
        """Looser after good steps, tighter when the model keeps promising what R does not give."""
        smallest = _SMALLEST_PROX * self.config.alpha
        if decrease >= _SERIOUS * predicted:
            shrink = 0.25 if decrease >= 0.5 * predicted else 0.5
            self.prox, self.nulls = max(shrink * self.prox, smallest), 0
        elif predicted <= _PINNED * (self.best - self.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            self.prox = max(0.25 * self.prox, smallest)
        else:
            self.nulls += 1
            if -decrease > 3.0 * predicted or (self.nulls > 1 and -decrease > 0.5 * predicted):
                self.prox, self.nulls = 2.0 * self.prox, 0

    def _record_and_judge(self):
        progress = Progress(
            len(self.history) + 1,
            time.perf_counter() - self.started,
            self.passes,
            float(self.best),
            float(min(self.lower_bound, self.best)),
            self.model.size,
            self.visited + getattr(self.oracle, "row_visits", 0),
        )
        if not self.history or (
            progress.objective < self.history[-1].objective
            or progress.lower_bound > self.history[-1].lower_bound
        ):
            self.last_progress = len(self.history)
        self.history.append(progress)
        stop = self.callback is not None and self.callback(progress)
        config = self.config
        if relative_gap(self.best + self.best_error, self.lower_bound) < -_CONTRADICTION:
            self.lower_bound = -np.inf
            return Status.INCONSISTENT
        if self._is_certified():
            return Status.CONVERGED
        if stop:
            return Status.STOPPED
        if len(self.history) >= config.max_iter:
            return Status.MAX_ITER
        if self.late():
            return Status.TIME_LIMIT
        return Status.STALLED if self._is_stalled() else None

    def late(self):
        """Whether the time is over: no evaluation is begun then."""
        limit = self.config.time_limit
        return limit is not None and time.perf_counter() - self.started >= limit

    def _is_certified(self):
        """The gap is within the tolerance, with what rounding may have done to the objective."""

        def certified():
            return relative_gap(self.best + self.best_error, self.lower_bound) <= self.config.tol

        if self.line_search is not None and certified():
            self.line_search.settle()
        return certified()

    def _is_stalled(self):
        """No better point and no better bound for many iterations, nor at the dual's own point."""
        idle = len(self.history) - self.last_progress
        if idle % _TRY_DUAL == 0:
            self._step(self.model.dual_point(self.config.alpha), 0.0)
        return idle >= _STALL and self.best >= self.history[-1].objective

    def _zero_is_optimal(self):
        """No w improves on zero by more than rounding, and the bound agrees within tol."""
        if self.at_zero is None:
            self.ask(np.zeros_like(self.best_w))
        near = relative_gap(self.at_zero, self.lower_bound) <= self.config.tol
        return near and self.best >= self.at_zero * (1.0 - _ROUNDING)

    def ask(self, w, **known):
        """One evaluation of the oracle."""
        cuts = self.oracle.cuts(w, **known)
        self.passes += 1
        if not (np.isfinite(cuts.value) and np.isfinite(cuts.slopes).all()):
            raise InputError(
                f"the risk is not finite at a point of norm {np.linalg.norm(w):.3g}; "
                "rescale the features"
            )
        if not w.any():
            self.at_zero = float(cuts.value)
            self.slope_at_zero = cuts.slopes[:, : w.size].sum(axis=0)
        return cuts

    def add(self, cuts):
        """Add the cuts of an evaluation to the model, lowered by what rounding may have added.

        The intercept ``R_j(w) - g . w`` is a difference: far out it has few digits left.
        """
        errors = cuts.errors
        if errors is None:
            size = np.abs(cuts.intercepts) + 2.0 * np.abs(cuts.slopes) @ np.abs(cuts.point)
            errors = ROUNDING * size
        intercepts = cuts.intercepts - errors
        self.model.add(cuts.slopes, intercepts, np.arange(intercepts.size))

    def accept(self, cuts, objective):
        """Take the point of an evaluation as the best one."""
        self.centre, self.best_w = cuts.point, cuts.point[: self.oracle.n_features]
        self.best, self.best_error = objective, self._error(cuts)

    def _rounding(self):
        """What rounding does to the risk, as far as the oracle knows; see `Rounding`."""
        return self.oracle.rounding() if hasattr(self.oracle, "rounding") else None

    def _error(self, cuts):
        """How far rounding may have put the objective of an evaluation off."""
        rounding, w = self._rounding(), cuts.point[: self.oracle.n_features]
        if rounding is None or cuts.errors is None:
            return 0.0
        square = (w.size + 2) * _EPS * self.config.alpha / 2 * (w @ w)
        return float(cuts.errors.sum() + rounding.value(w) + square)

    def _digits(self):
        """Says so where rounding alone is more than the tolerance allows."""
        rounding = self._rounding()
        if rounding is None:
            return ()
        sizes = np.maximum(np.abs(self.best_w), np.abs(self.model.dual_point(self.config.alpha)))
        parts = (rounding.scores + rounding.slopes) * sizes
        lost = parts.sum() / max(self.best, 1e-3)
        if lost < 0.5 * self.config.tol:
            return ()
        f = int(parts.argmax())
        name = self.oracle.column_text(f) if hasattr(self.oracle, "column_text") else f"column {f}"
        return (
            f"The digits of the features do not suffice for tol={self.config.tol:g}: rounding may "
            f"amount to {lost:.2g} of the objective, most of it in one column: {name}. Rescale it, "
            "clip its outliers or subtract its offset, or ask for less.",
        )

    def objective(self, w, risk):
        """``alpha/2 ||w||^2 + risk``."""
        return self.config.alpha / 2 * (w @ w) + risk


class _LineSearch:
    """OCAS: move the best point by an exact line search towards each proposal, cut near it.

    Scores are linear in w, so a search costs evaluations in score space but no look at X.
    """

    def __init__(self, run):
        if not hasattr(run.oracle, "along"):
            raise InputError("method 'line_search' needs an oracle with `scores` and `along`")
        self.run = run
        self.settled = None  # the best point that was last evaluated anew
        self._renew()

    def _renew(self):
        """Scores of the best point from the data; sums of older ones keep the errors of larger."""
        self.scores = self.run.oracle.scores(self.run.best_w)
        self.size = np.abs(self.scores).max()

    def settle(self):
        """Evaluate the best point anew: its scores are a sum of steps, and so was its objective."""
        run = self.run
        if self.settled is not run.best_w:
            cuts, before = run.oracle.cuts(run.best_w), run.best
            run.accept(cuts, run.objective(run.best_w, cuts.value))
            self.settled = run.best_w
            if abs(run.best - before) > _ROUNDING * abs(run.best):
                self._renew()

    def advance(self, w):
        """Move the best point towards w, and add the cuts a little further on."""
        run, proposed = self.run, self.run.oracle.scores(w)
        direction, rise = w - run.best_w, proposed - self.scores
        t, objective = self._minimise(direction, run.oracle.along(self.scores, rise))
        if objective < run.best:
            run.best_w, run.best = run.best_w + t * direction, objective
            self.scores = self.scores + t * rise
            self._renew_if_smaller()
        run.centre = run.best_w
        if run.late():
            return
        scores = self.scores + _AHEAD * (proposed - self.scores)
        cuts = run.ask(run.best_w + _AHEAD * (w - run.best_w), scores=scores)
        run.add(cuts)
        value = run.objective(cuts.point, cuts.value)
        if value < run.best:
            run.accept(cuts, value)
            self.scores = scores
            self._renew_if_smaller()

    def _renew_if_smaller(self):
        run = self.run
        if np.abs(self.scores).max() < 0.5 * self.size:
            self._renew()
            run.best = run.objective(run.best_w, run.oracle.along(self.scores, self.scores)(0.0)[0])

    def _minimise(self, direction, line):
        """Bisect on the sign of the derivative; return t and the objective there."""
        alpha, w = self.run.config.alpha, self.run.best_w

        def along(t):
            value, slope = line(t)
            point = w + t * direction
            return self.run.objective(point, value), slope + alpha * (point @ direction)

        low, high, best = 0.0, 1.0, (0.0, self.run.best)
        for _ in range(_LINE_STEPS):
            if self.run.late():
                break
            t = (low + high) / 2
            value, slope = along(t)
            if value < best[1]:
                best = (t, value)
            low, high = (t, high) if slope < 0.0 else (low, t)
        return best
