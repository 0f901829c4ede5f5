"""Subgradient descent, the paper's Algorithm 1, for comparison with certified solvers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.solvers.oracle import Oracle, evaluated
from structsvm_papk.solvers.solver import (
    Run,
    Signs,
    Solver,
    SolverResult,
    Start,
    Status,
    finite_start,
    floor_of,
)

_SEEDS_OF_STARTS = 1 << 20


@dataclass(frozen=True)
class SubgradientDescent(Solver[SolverResult]):
    """``w <- P(w - eta/sqrt(t+1) (alpha w + g_t))`` on ``alpha/2 ||w||^2 + R(w)``.

    P projects onto a set W: the ball of a given radius, w >= 0, what is in both, or all w.

    Works with every risk, convex or not. It has no certificate: the lower bound of the result is
    -inf, and the status at the end is 'finished'.

    Parameters
    ----------
    alpha : float
        Regularisation strength, >= 0.
    eta : float
        Step size at t = 0.
    max_iter : int
        Number of steps; each asks the oracle once.
    keep : {'best', 'last', 'average'}
        Which point is returned: the lowest objective seen, the last iterate, or the average of
        the second half of the iterates (evaluated once at the end).
    start_scale : float
        Start at a normal vector with this standard deviation, as the authors do with 1; 0 starts at
        zero.
    seed : int
        Seed of the random start, see `normal_start`.
    time_limit : float, optional
        Seconds.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0, or over those w that are >= 0 where it is True: every step, and the
        start, is followed by the projection, ``w <- max(w, 0)`` there.
    radius : float, optional
        Minimise over ``||w|| <= radius``, in the same way. As the optimum has ``F <= R(0)``, it
        lies in the ball of radius ``sqrt(2 R(0) / alpha)``; R(0) is 1 for the surrogates of pAp@k.

    References
    ----------
    Hiranandani et al., "Optimization and Analysis of the pAp@k Metric for Recommender Systems",
    ICML 2020, Algorithm 1.
    """

    convex_only: ClassVar[bool] = False
    takes_checkpoints: ClassVar[bool] = False
    _alpha_range: ClassVar[dict[str, Any]] = {"least": 0.0}
    eta: float = 0.1
    max_iter: int = 200
    keep: str = "best"
    start_scale: float = 0.0
    seed: int = 0
    time_limit: float | None = None
    positive: Signs = False
    radius: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("keep", self.keep, ("best", "last", "average"))

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> _SubgradientRun:
        if w_init is None and warm_start is not None:
            w_init = warm_start.w
        if w_init is None:
            start = self.start_scale * normal_start(oracle.n_features, self.seed)
        else:
            start = finite_start(w_init, oracle.n_features, "w_init")
        return _SubgradientRun(self, oracle, self.projected(start))

    def projected(self, w: Array) -> Array:
        """The nearest point of W."""
        w = np.maximum(w, floor_of(self.positive, w.size))
        length = np.linalg.norm(w)
        if self.radius is not None and length > self.radius:
            w = w * (self.radius / length)
        return w


def normal_start(n_features: int, seed: int) -> Array:
    """Standard normal vector, with seeds from 2^20 on.

    Generators of `datasets` draw their true direction first: a start drawn with the same seed would
    be the solution.
    """
    return np.random.default_rng(_SEEDS_OF_STARTS + seed).standard_normal(n_features)


class _SubgradientRun(Run[SubgradientDescent, Oracle, SolverResult]):
    """State of one descent."""

    def __init__(self, config: SubgradientDescent, oracle: Oracle, w: Array) -> None:
        super().__init__(config, oracle)
        self.w = w
        self.total = np.zeros_like(w)
        self.n_total = 0
        self.n_steps = 0

    def begin(self) -> None:
        """Nothing: the first step evaluates the start."""

    def loop(self) -> Status:
        while self.n_steps < self.config.max_iter:
            stop = self._step()
            status = self.judge(self.gap(), stop, spent=False)
            if status is not None:
                return status
        if self.n_total:
            w = self.total / self.n_total
            self.best_w, self.best = w, self._evaluate(w)[0]
            self.record()
        return Status.FINISHED

    def _step(self) -> bool:
        config = self.config
        t = self.n_steps
        objective, gradient = self._evaluate(self.w)
        if objective < self.best or (config.keep == "last" and self.best_w is not None):
            self.best_w = self.w
            self.best = objective
        if config.keep == "average" and t >= config.max_iter // 2:
            self.total = self.total + self.w
            self.n_total += 1
        self.w = config.projected(self.w - config.eta / np.sqrt(t + 1) * gradient)
        self.n_steps = t + 1
        return self.record()

    def _evaluate(self, w: Array) -> tuple[float, Array]:
        self.passes += 1
        objective, subgradient = finite_objective(self.oracle, w, self.config.alpha)
        return objective, self.config.alpha * w + subgradient


def finite_objective(oracle: Oracle, w: Array, alpha: float) -> tuple[float, Array]:
    """``alpha/2 ||w||^2 + R(w)`` and a subgradient of R; refused where R is not finite."""
    value, subgradient = evaluated(oracle, w)
    if not np.isfinite(value):
        raise InputError(
            f"the risk is {value} at a point of norm {np.linalg.norm(w):.3g}; take smaller steps "
            "or rescale X"
        )
    return float(alpha / 2 * (w @ w) + value), subgradient
