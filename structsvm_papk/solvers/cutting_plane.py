"""Cutting planes with a certificate, for convex risks.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R = R_1 + .. + R_J convex

The oracle answers ``blocks(w) -> (values, subgradients)``, one row for each of J blocks. Every
evaluation at w_t adds the cuts ``R_j(w) >= R_j(w_t) + g_j . (w - w_t)``; a feasible dual point of
the resulting model bounds the optimum from below. Polyhedral risks need finitely many cuts.
"""

import time
from dataclasses import dataclass

import numpy as np

from structsvm_papk.errors import InputError
from structsvm_papk.result import Progress, SolverResult, Status, relative_gap
from structsvm_papk.solvers._cut_model import CutModel

METHODS = ("bundle", "line_search", "one_slack")
_SERIOUS = 0.1  # share of the predicted decrease that makes a step serious
_INNER = 0.3  # accuracy of the restricted problem, relative to the predicted decrease
_SMALLEST_PROX = 1e-3  # of alpha
_FINAL = 0.1  # of the tolerance: more accuracy in the restricted problem is of no use
_PINNED = 1e-3  # share of the certified gap below which a predicted decrease is no progress
_ROUNDING = 1e-12  # a decrease below this share of F is rounding


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
        if not self.alpha > 0 or not np.isfinite(self.alpha):
            raise InputError(f"alpha must be a positive number, got {self.alpha!r}")
        if not self.tol > 0:
            raise InputError(f"tol must be positive, got {self.tol!r}")
        if self.max_iter < 1:
            raise InputError(f"max_iter must be at least 1, got {self.max_iter!r}")
        if self.method not in METHODS:
            raise InputError(f"unknown method {self.method!r}; choose from {', '.join(METHODS)}")
        if self.n_blocks is not None and self.n_blocks < 1:
            raise InputError(f"n_blocks must be at least 1, got {self.n_blocks!r}")
        if self.n_blocks not in (None, 1) and self.method != "bundle":
            raise InputError(
                f"method {self.method!r} takes one cut an iteration: n_blocks must be 1"
            )
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit must be positive, got {self.time_limit!r}")

    def solve(self, oracle, w_init=None, callback=None, warm_start=None):
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

        Returns
        -------
        SolverResult
            On Ctrl-C the best point so far, with its certificate.

        Raises
        ------
        InputError
            The risk is not convex, or w_init or the warm start do not fit it.
        """
        if not getattr(oracle, "convex", True):
            raise InputError(
                f"{_name(oracle)} is not convex, so its cuts would not be lower bounds and no "
                "certificate could hold; use CCCP for 'ramp' and 'clipped_ramp', "
                "SubgradientDescent for 'ts_alg2'"
            )
        run = _Run(self, self._in_blocks(oracle), callback)
        try:
            status = run.loop(w_init, warm_start)
        except KeyboardInterrupt:
            if run.best_w is None:
                raise
            status = Status.INTERRUPTED
        return run.result(status)

    def _in_blocks(self, oracle):
        if not hasattr(oracle, "with_blocks"):
            return _OneBlock(oracle)
        n_blocks = self.n_blocks or (1 if self.method != "bundle" else _default_blocks(oracle))
        return oracle if oracle.n_blocks == n_blocks else oracle.with_blocks(n_blocks)


class _OneBlock:
    """A plain oracle seen as one block."""

    n_blocks = 1

    def __init__(self, oracle):
        self.oracle, self.n_features = oracle, oracle.n_features

    def blocks(self, w):
        value, subgradient = self.oracle(w)
        return np.array([value]), np.asarray(subgradient)[None, :]


def _default_blocks(oracle):
    """About two cuts a feature and iteration, as long as they stay small beside the data."""
    affordable = max(1, (32 << 20) // (8 * oracle.n_features))
    return int(min(max(2 * oracle.n_features, 32), 400, affordable))


def _name(oracle):
    return f"surrogate {oracle.surrogate.name!r}" if hasattr(oracle, "surrogate") else "the risk"


class _Run:
    """State of one solve."""

    def __init__(self, config, oracle, callback):
        self.config, self.oracle, self.callback = config, oracle, callback
        self.started = time.perf_counter()
        self.model = CutModel(oracle.n_features, oracle.n_blocks, config.qp_solver)
        self.best_w, self.best, self.lower_bound = None, np.inf, -np.inf
        self.at_zero = None  # F(0) = R(0), where it was evaluated
        self.prox = 0.0
        self.passes = 0
        self.history = []

    def loop(self, w_init, warm_start):
        self._start(w_init, warm_start)
        predicted = np.inf
        while True:
            w, predicted = self._propose(predicted)
            objective = self._evaluate(w)
            self._move(w, objective, predicted)
            self.model.drop_idle(self._max_idle)
            status = self._record_and_judge(predicted)
            if status is not None:
                return status

    def result(self, status):
        """Gather the outcome; a zero vector that is optimal is said to be degenerate."""
        w, objective = self.best_w, self.best
        if status is Status.CONVERGED and self._zero_is_optimal():
            w, objective, status = np.zeros_like(w), self.at_zero, Status.DEGENERATE
        return SolverResult(
            w,
            objective,
            min(self.lower_bound, objective),
            status,
            tuple(self.history),
            self.config.alpha,
            self.model.cuts(),
            tuple(self.model.qp.notes),
        )

    def _start(self, w_init, warm_start):
        d = self.oracle.n_features
        w = np.zeros(d) if warm_start is None else warm_start.w
        w = np.array(w if w_init is None else w_init, dtype=np.float64)
        if w.shape != (d,) or not np.isfinite(w).all():
            raise InputError(f"the start must be a finite vector of length {d}, got {w.shape}")
        values, subgradients = self._ask(w)
        objective = self._objective(w, values)
        self.best_w, self.best = w, objective
        if warm_start is not None and warm_start.cuts is not None:
            self._take_cuts(warm_start.cuts, w, values)
        self._add_cuts(w, values, subgradients)
        if self.config.method == "bundle":
            self.prox = self._first_prox(subgradients.sum(axis=0) + self.config.alpha * w)

    def _first_prox(self, gradient):
        """Curvature at which the first step is Polyak's for an optimum of zero."""
        return max(10 * self.config.alpha, gradient @ gradient / max(self.best, 1e-300))

    def _take_cuts(self, cuts, w, values):
        slopes, intercepts, blocks = cuts
        if slopes.shape[1] != w.size or blocks.max(initial=0) >= self.oracle.n_blocks:
            raise InputError("the warm start's cuts are of another problem: shapes differ")
        excess = slopes @ w + intercepts - values[blocks]
        if (excess > 1e-9 * np.maximum(1.0, np.abs(values[blocks]))).any():
            raise InputError("the warm start's cuts are of another problem: they exceed this risk")
        self.model.add(slopes, intercepts, blocks)

    def _propose(self, last_predicted):
        """Minimise the model (with its proximal term); update the bound."""
        alpha = self.config.alpha
        curvature = alpha + self.prox
        scale = max(abs(self.best), 1e-3)
        wanted = min(self.best - self.lower_bound, last_predicted)
        target = np.clip(_INNER * 0.3 * wanted, _FINAL * self.config.tol * scale, 1e-2 * scale)
        w, _ = self.model.minimise(self.prox / curvature * self.best_w, curvature, target)
        self.lower_bound = max(self.lower_bound, self.model.lower_bound(alpha))
        predicted = self.best - self._objective(w, self.model.value(w))
        return w, predicted

    def _move(self, w, objective, predicted):
        decrease = self.best - objective
        if decrease > 0.0:
            self.best_w, self.best = w, objective
        if self.prox == 0.0:
            return
        if decrease >= _SERIOUS * predicted:
            shrink = 0.25 if decrease >= 0.5 * predicted else 0.5
            self.prox = max(shrink * self.prox, _SMALLEST_PROX * self.config.alpha)
        elif predicted <= _PINNED * (self.best - self.lower_bound):
            # the proximal term, not the model, keeps w in place: no certificate would come of it
            self.prox = max(0.25 * self.prox, _SMALLEST_PROX * self.config.alpha)
        elif -decrease > 3.0 * predicted:
            self.prox *= 2.0

    def _record_and_judge(self, predicted):
        progress = Progress(
            len(self.history) + 1,
            time.perf_counter() - self.started,
            self.passes,
            float(self.best),
            float(min(self.lower_bound, self.best)),
            self.model.size,
        )
        self.history.append(progress)
        stop = self.callback is not None and self.callback(progress)
        config = self.config
        if relative_gap(self.best, self.lower_bound) <= config.tol:
            return Status.CONVERGED
        if stop:
            return Status.STOPPED
        if len(self.history) >= config.max_iter:
            return Status.MAX_ITER
        if config.time_limit is not None and progress.seconds >= config.time_limit:
            return Status.TIME_LIMIT
        return Status.STALLED if self._is_stalled() else None

    def _is_stalled(self):
        """No better point and no better bound for many iterations."""
        if len(self.history) <= 50:
            return False
        old, new = self.history[-50], self.history[-1]
        return new.objective >= old.objective and new.lower_bound <= old.lower_bound

    def _zero_is_optimal(self):
        """No w improves on zero by more than rounding, and the bound agrees within tol."""
        if self.at_zero is None:
            self.at_zero = self._ask(np.zeros_like(self.best_w))[0].sum()
        near = relative_gap(self.at_zero, self.lower_bound) <= self.config.tol
        return near and self.best >= self.at_zero * (1.0 - _ROUNDING)

    @property
    def _max_idle(self):
        return 12 if self.config.method == "bundle" else 50

    def _evaluate(self, w):
        values, subgradients = self._ask(w)
        self._add_cuts(w, values, subgradients)
        return self._objective(w, values)

    def _ask(self, w):
        values, subgradients = self.oracle.blocks(w)
        self.passes += 1
        if not (np.isfinite(values).all() and np.isfinite(subgradients).all()):
            raise InputError(
                f"the risk is not finite at a point of norm {np.linalg.norm(w):.3g}; "
                "rescale the features"
            )
        if not w.any():
            self.at_zero = values.sum()
        return values, subgradients

    def _add_cuts(self, w, values, subgradients):
        self.model.add(subgradients, values - subgradients @ w, np.arange(values.size))

    def _objective(self, w, value):
        return self.config.alpha / 2 * (w @ w) + np.sum(value)
