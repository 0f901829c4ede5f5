"""Subgradient descent, the paper's Algorithm 1, for comparison with certified solvers."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback, Oracle
from structsvm_papk.errors import InputError, check_number
from structsvm_papk.files.checkpoint import opened, pack_history, take, unpack_history
from structsvm_papk.solvers._trace import best_so_far
from structsvm_papk.solvers.result import Progress, SolverResult, Status

KEEP = ("best", "last", "average")
_SEEDS_OF_STARTS = 1 << 20
_STATE = {"w": "w", "best_w": "w", "total": "w"} | dict.fromkeys(
    ("best", "n_total", "passes"), "number"
)


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
        Seed of the random start, see `normal_start`.
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

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, least=0)
        check_number("eta", self.eta, above=0)
        check_number("max_iter", self.max_iter, least=1)
        check_number("radius", self.radius, above=0, optional=True)
        if self.keep not in KEEP:
            raise InputError(f"unknown keep={self.keep!r}; choose from {', '.join(KEEP)}")
        check_number("time_limit", self.time_limit, above=0, optional=True)

    @classmethod
    def paper(
        cls, alpha: float, eta: float = 0.1, max_iter: int = 200, seed: int = 0, **options: Any
    ) -> SubgradientDescent:
        """Return the authors' recipe: standard normal start, fixed steps, best loss kept."""
        return cls(alpha, eta, max_iter, keep="best", start_scale=1.0, seed=seed, **options)

    def solve(
        self,
        oracle: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
        checkpoint: Any | None = None,
    ) -> SolverResult:
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
        checkpoint : Checkpoint, optional
            Where the state is kept. If it holds one, the run goes on from there.

        Returns
        -------
        SolverResult
            Status 'finished'; on Ctrl-C, and when the oracle fails, the best point so far.

        Raises
        ------
        InputError
            The start does not fit, the risk is not finite at an iterate, or the checkpoint is of
            another run.
        """
        if w_init is None and warm_start is not None:
            w_init = warm_start.w
        # an average is over the second half of the steps: another number is another run
        half = {"average_from": self.max_iter // 2} if self.keep == "average" else {}
        with opened(checkpoint, self, oracle, **half) as keeper:
            run = _Run(self, oracle, self._start(oracle.n_features, w_init), callback, keeper)
            return best_so_far(run)

    def _start(self, n_features, w_init):
        if w_init is None:
            return self._project(self.start_scale * normal_start(n_features, self.seed))
        w = np.array(w_init, dtype=np.float64)
        if w.shape != (n_features,) or not np.isfinite(w).all():
            raise InputError(f"w_init must be a finite vector of length {n_features}")
        return self._project(w)

    def _project(self, w):
        if self.radius is None:
            return w
        return w * min(1.0, self.radius / max(np.linalg.norm(w), 1e-300))


def normal_start(n_features: int, seed: int) -> Array:
    """Standard normal vector, not drawn by ``default_rng(seed)``: that may have made the data.

    Generators of `datasets` draw their true direction first, so a start drawn with the same seed
    would be the solution. Starts use the seeds from 2^20 on.
    """
    return np.random.default_rng(_SEEDS_OF_STARTS + seed).standard_normal(n_features)


class _Run:
    """State of one descent."""

    def __init__(self, config, oracle, w, callback, keeper):
        self.config, self.oracle, self.w, self.callback = config, oracle, w, callback
        self.keeper = keeper
        self.started = time.perf_counter()
        self.best_w, self.best = None, np.inf
        self.total, self.n_total = np.zeros_like(w), 0
        self.passes = 0
        self.history = []
        self.saved = None  # the state after the last whole step
        if keeper is not None and keeper.state is not None:
            with keeper.taking() as state:
                self._go_on(state)

    def loop(self):
        config = self.config
        if self.keeper is not None and self.keeper.status is not None:
            return self.keeper.status
        for t in range(len(self.history), config.max_iter):
            objective, gradient = self._evaluate(self.w)
            if objective < self.best or (config.keep == "last" and self.best_w is not None):
                self.best_w, self.best = self.w, objective
            if t >= config.max_iter // 2:
                self.total, self.n_total = self.total + self.w, self.n_total + 1
            status = self._record()
            self.w = config._project(self.w - config.eta / np.sqrt(t + 1) * gradient)
            self._keep()
            if status is not None:
                return status
        if config.keep == "average":
            w = self.total / self.n_total
            self.best_w, self.best = w, self._evaluate(w)[0]
            self._record()
            self._keep()
        return Status.FINISHED

    def _keep(self):
        if self.keeper is None:
            return
        self.saved = {name: getattr(self, name) for name in _STATE}
        self.saved |= {"seconds": self.history[-1].seconds, "n_iter": len(self.history)}
        if self.keeper.due():
            self.keeper.save(self._state())

    def _state(self):
        history = self.history[: self.saved["n_iter"]]
        return {**self.saved, "history": pack_history(history)}

    def _go_on(self, state):
        take(self, state, _STATE, w=self.w.size)
        self.history = unpack_history(state["history"])
        self.started = time.perf_counter() - float(state["seconds"])
        self._keep()

    def result(self, status, *notes):
        if self.keeper is not None:
            if self.saved is not None and status is not self.keeper.status:
                self.keeper.save(self._state(), status)
            notes = (*notes, *self.keeper.notes)
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
