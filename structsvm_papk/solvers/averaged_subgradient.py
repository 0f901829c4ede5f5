"""Subgradient descent with steps 1/(alpha t) and an average that weighs late iterates more.

A step takes all of the risk, or one of its terms, such as one list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.solvers.oracle import FiniteSumOracle, Oracle, evaluated, needed
from structsvm_papk.solvers.solver import (
    Risk,
    Run,
    Signs,
    Solver,
    SolverResult,
    Start,
    Status,
    finite_start,
    floor_of,
)
from structsvm_papk.solvers.subgradient import finite_objective

_NEXT_LOOK = 1.25  # times as many passes as at the last look at the average
_NO_TERMS = (
    "stochastic steps need a risk whose terms can be evaluated alone, a `FiniteSumOracle`, such as "
    "one in memory"
)


@dataclass(frozen=True)
class AveragedSubgradient(Solver[SolverResult]):
    """``w <- w - (alpha w + g_t) / (alpha t)``, and the average of the w with weights t.

    On a convex risk the average is within O(1 / (alpha t)) of the optimum; there is no certificate,
    and the status at the end is 'finished'. The average is looked at after 1, 2, 3, 4, 5, 7, 9, 12,
    .. passes and at the end; the best w that was looked at is returned. These looks, one
    evaluation each, do not count as passes, their seconds do.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0.
    max_iter : int
        Passes over the data: here steps.
    time_limit : float, optional
        Seconds.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0, or over those w that are >= 0 where it is True: every step, and the
        start, is followed by ``w <- max(w, 0)`` there.

    References
    ----------
    Lacoste-Julien, Schmidt, Bach, "A simpler approach to obtaining an O(1/t) convergence rate for
    the projected stochastic subgradient method", 2012 (arXiv:1212.2002).
    """

    convex_only: ClassVar[bool] = False
    takes_checkpoints: ClassVar[bool] = False
    max_iter: int = 200
    time_limit: float | None = None
    positive: Signs = False

    def _start(self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None) -> Array:
        """The first w; by default zero."""
        if w_init is None:
            w_init = np.zeros(oracle.n_features) if warm_start is None else warm_start.w
        w = finite_start(w_init, oracle.n_features, "the start")
        return np.maximum(w, floor_of(self.positive, w.size))

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> AveragedRun[Any, Any]:
        return AveragedRun(self, oracle, self._start(oracle, w_init, warm_start))


Averaging = TypeVar("Averaging", bound=AveragedSubgradient)


class AveragedRun(Run[Averaging, Risk, SolverResult]):
    """State of one descent; a pass is one step here."""

    def __init__(self, config: Averaging, oracle: Risk, w: Array) -> None:
        super().__init__(config, oracle)
        self.w = w
        self.floor = floor_of(config.positive, w.size)
        self.average = np.zeros_like(w)
        self.t = 0  # steps
        self.last_look = 0  # the pass after which the average was looked at

    def begin(self) -> None:
        """Evaluate the start."""
        self.best = self._objective(self.w)
        self.best_w = self.w

    def loop(self) -> Status:
        """Pass after pass, with looks at the average in between."""
        status = None
        while status is None and self.passes < self.config.max_iter:
            self.take_pass()
            self.passes += 1
            if self.passes >= _NEXT_LOOK * self.last_look:
                self._look()
            status = self.judge(np.inf, self.record(), spent=False)
        if self.last_look < self.passes and not self.clock.interrupted():
            self._look()
            self.record()
        return status or Status.FINISHED

    def take_pass(self) -> None:
        """Look at all data once, and step."""
        _, subgradient = evaluated(self.oracle, self.w)
        self.step(subgradient)

    def step(self, subgradient: Array) -> None:
        """Take w into the average, and go one step."""
        self.t += 1
        self.average += (self.w - self.average) * (2.0 / (self.t + 1))
        w = (1.0 - 1.0 / self.t) * self.w - subgradient / (self.config.alpha * self.t)
        self.w = np.maximum(w, self.floor)

    def _look(self) -> None:
        """Keep the average where it is better than the best so far."""
        self.last_look = self.passes
        objective = self._objective(self.average)
        if objective < self.best:
            self.best_w = self.average.copy()
            self.best = objective

    def _objective(self, w: Array) -> float:
        return finite_objective(self.oracle, w, self.config.alpha)[0]


@dataclass(frozen=True)
class StochasticSubgradient(AveragedSubgradient):
    """``w <- w - (alpha w + g_i) / (alpha t)``, g_i of one term alone, averaged with weights t.

    The terms of a risk in memory are the lists; they come in a new random order in every pass. On
    a convex risk the average is within O(1 / (alpha t)) of the optimum after t steps; there is no
    certificate, and the status at the end is 'finished'. The average is looked at after 1, 2, 3, 4,
    5, 7, 9, 12, .. passes and at the end; the best w that was looked at is returned. These looks,
    one evaluation each, do not count as passes, their seconds do.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0.
    max_iter : int
        Passes over the data.
    time_limit : float, optional
        Seconds; a pass that was begun is finished.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0, or over those w that are >= 0 where it is True: every step, and the
        start, is followed by ``w <- max(w, 0)`` there.
    seed : int
        Of the order.

    References
    ----------
    Shalev-Shwartz, Singer, Srebro, Cotter, "Pegasos: primal estimated sub-gradient solver for SVM",
    Mathematical Programming 127 (2011), for the steps. Lacoste-Julien, Schmidt, Bach, "A simpler
    approach to obtaining an O(1/t) convergence rate for the projected stochastic subgradient
    method", 2012 (arXiv:1212.2002), for the average.
    """

    seed: int = 0

    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> _StochasticRun:
        risk = needed(oracle, FiniteSumOracle, _NO_TERMS)
        return _StochasticRun(self, risk, self._start(risk, w_init, warm_start))


class _StochasticRun(AveragedRun[StochasticSubgradient, FiniteSumOracle]):
    """A pass is a step on each term."""

    def take_pass(self) -> None:
        shares = self.oracle.shares
        order = np.random.default_rng([self.config.seed, self.passes]).permutation(shares.size)
        for i in order.tolist():
            if self.clock.interrupted():
                return
            _, subgradient = self.oracle.term(i, self.w)
            self.step(shares.size * shares[i] * subgradient)
