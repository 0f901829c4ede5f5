"""Subgradient descent, the paper's Algorithm 1, for comparison with certified solvers."""

import time
from dataclasses import dataclass

import numpy as np

from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.result import Progress, SolverResult, Status

KEEP = ("best", "last", "average")


@dataclass(frozen=True)
class SubgradientDescent:
    """``w <- project(w - eta/sqrt(t+1) (alpha w + g_t))`` on ``alpha/2 ||w||^2 + R(w)``.

    Works with every surrogate, convex or not. There is no certificate: the lower bound is -inf.

    Parameters
    ----------
    alpha : float
        Regularisation strength, >= 0.
    eta : float
        Step size at t = 0.
    max_iter : int
        Number of steps; each asks the oracle once.
    radius : float, optional
        Project every iterate on the ball ``||w|| <= radius``.
    keep : {'best', 'last', 'average'}
        Which point is returned: the lowest objective seen, the last iterate, or the average of
        the second half of the iterates (evaluated once at the end).
    start_scale : float
        Start at a normal vector with this standard deviation; 0 starts at zero.
    seed : int
        Seed of the random start.
    time_limit : float, optional
        Seconds.

    References
    ----------
    Hiranandani et al., "Optimization and Analysis of the pAp@k Metric for Recommender Systems",
    ICML 2020, Algorithm 1.
    """

    alpha: float
    eta: float = 0.1
    max_iter: int = 200
    radius: float | None = None
    keep: str = "best"
    start_scale: float = 0.0
    seed: int = 0
    time_limit: float | None = None

    def __post_init__(self):
        if not self.alpha >= 0 or not np.isfinite(self.alpha):
            raise InputError(f"alpha must be a non-negative number, got {self.alpha!r}")
        if not self.eta > 0 or not np.isfinite(self.eta):
            raise InputError(f"eta must be a positive number, got {self.eta!r}")
        if self.max_iter < 1:
            raise InputError(f"max_iter must be at least 1, got {self.max_iter!r}")
        if self.radius is not None and not self.radius > 0:
            raise InputError(f"radius must be positive, got {self.radius!r}")
        if self.keep not in KEEP:
            raise InputError(f"unknown keep={self.keep!r}; choose from {', '.join(KEEP)}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise InputError(f"time_limit must be positive, got {self.time_limit!r}")

    @classmethod
    def paper(cls, alpha, eta=0.1, max_iter=200, seed=0, **options):
        """Return the authors' recipe: standard normal start, fixed steps, best loss kept."""
        return cls(alpha, eta, max_iter, keep="best", start_scale=1.0, seed=seed, **options)

    def solve(self, oracle, w_init=None, callback=None, warm_start=None):
        """Run the steps.

        Parameters
        ----------
        oracle : callable with `n_features`
            ``oracle(w) -> (value, subgradient)``.
        w_init : ndarray of shape (n_features,), optional
            Start instead of the configured one.
        callback : callable, optional
            Called with a `Progress` after every step; a true return value stops the solver.
        warm_start : SolverResult, optional
            Start at its point.

        Returns
        -------
        SolverResult
            Status 'finished'; on Ctrl-C, and when the oracle fails, the best point so far.

        Raises
        ------
        InputError
            The start does not fit, or the risk is not finite at an iterate.
        """
        if w_init is None and warm_start is not None:
            w_init = warm_start.w
        run = _Run(self, oracle, self._start(oracle.n_features, w_init), callback)
        try:
            return run.result(run.loop())
        except KeyboardInterrupt:
            if run.best_w is None:
                raise
            return run.result(Status.INTERRUPTED)
        except OracleFailure as failure:
            if run.best_w is None:
                raise
            return run.result(Status.FAILED, str(failure))

    def _start(self, n_features, w_init):
        if w_init is None:
            random = np.random.default_rng(self.seed).standard_normal(n_features)
            return self._project(self.start_scale * random)
        w = np.array(w_init, dtype=np.float64)
        if w.shape != (n_features,) or not np.isfinite(w).all():
            raise InputError(f"w_init must be a finite vector of length {n_features}")
        return self._project(w)

    def _project(self, w):
        if self.radius is None:
            return w
        return w * min(1.0, self.radius / max(np.linalg.norm(w), 1e-300))


class _Run:
    """State of one descent."""

    def __init__(self, config, oracle, w, callback):
        self.config, self.oracle, self.w, self.callback = config, oracle, w, callback
        self.started = time.perf_counter()
        self.best_w, self.best = None, np.inf
        self.total, self.n_total = np.zeros_like(w), 0
        self.passes = 0
        self.history = []

    def loop(self):
        config = self.config
        for t in range(config.max_iter):
            objective, gradient = self._evaluate(self.w)
            if objective < self.best or (config.keep == "last" and self.best_w is not None):
                self.best_w, self.best = self.w, objective
            if t >= config.max_iter // 2:
                self.total, self.n_total = self.total + self.w, self.n_total + 1
            status = self._record()
            if status is not None:
                return status
            self.w = config._project(self.w - config.eta / np.sqrt(t + 1) * gradient)
        if config.keep == "average":
            w = self.total / self.n_total
            self.best_w, self.best = w, self._evaluate(w)[0]
            self._record()
        return Status.FINISHED

    def result(self, status, *notes):
        return SolverResult(
            self.best_w,
            float(self.best),
            -np.inf,
            status,
            tuple(self.history),
            self.config.alpha,
            notes=notes,
        )

    def _evaluate(self, w):
        value, subgradient = self.oracle(w)
        self.passes += 1
        if not np.isfinite(value):
            raise InputError(
                f"the risk is {value} after {self.passes} evaluations; lower eta or rescale X"
            )
        alpha = self.config.alpha
        return alpha / 2 * (w @ w) + value, alpha * w + subgradient

    def _record(self):
        seconds = time.perf_counter() - self.started
        progress = Progress(
            len(self.history) + 1, seconds, self.passes, float(self.best), -np.inf, 0
        )
        self.history.append(progress)
        if self.callback is not None and self.callback(progress):
            return Status.STOPPED
        limit = self.config.time_limit
        return Status.TIME_LIMIT if limit is not None and seconds >= limit else None
