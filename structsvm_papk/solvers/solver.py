"""What solvers share: `Solver`, their settings and `solve`, and `Run`, the state of one solve.

minimise over w    F(w) = alpha/2 ||w||^2 + R(w)
"""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import (
    InputError,
    OracleFailure,
    as_floats,
    check_callback,
    check_number,
    check_type,
)
from structsvm_papk.solvers.checkpoints import CheckpointSession, CheckpointStore, open_checkpoint
from structsvm_papk.solvers.oracle import Oracle, as_oracle
from structsvm_papk.solvers.result import Progress, SolverResult, Status

Result = TypeVar("Result", bound=SolverResult)
_RANGES: dict[str, dict[str, Any]] = {
    "tol": {"above": 0},
    "max_iter": {"least": 1},
    "seed": {"least": 0},
    "time_limit": {"above": 0, "optional": True},
}
_CONTRADICTION = 1e-9  # a bound above the objective by this share proves that something is wrong
_FARTHEST = 1e120  # entry of a start; its square, and that of its multiples, must have room
_RUNS: ContextVar[tuple[Run[Any], ...]] = ContextVar("runs", default=())


@dataclass(frozen=True)
class Solver(ABC, Generic[Result]):
    """Minimiser of ``alpha/2 ||w||^2 + R(w)``: settings alone; each `solve` has its own `Run`."""

    alpha: float
    _alpha_range: ClassVar[dict[str, Any]] = {"above": 0}

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, **self._alpha_range)
        for name, bounds in _RANGES.items():
            if hasattr(self, name):
                check_number(name, getattr(self, name), **bounds)

    def solve(
        self,
        oracle: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
        checkpoint: CheckpointStore | None = None,
    ) -> Result:
        """Minimise.

        Parameters
        ----------
        oracle : Oracle, or any callable with `n_features` and ``oracle(w) -> (value, g)``
            Of the kind that this solver asks for.
        w_init : ndarray of shape (n_features,), optional
            Start; by default the warm start's point, or the solver's own start. `CCCP` and
            `BranchAndBound` take several, as a dict by name.
        callback : callable, optional
            Called with a `Progress` after every iteration; a true return value stops the solver.
        warm_start : SolverResult, optional
            Earlier result, whose point is the start. `CuttingPlane` takes its cuts too, of the same
            risk at any alpha; `DualAscent` its dual variables, of the same lists at any alpha and
            depth.
        checkpoint : Checkpoint, optional
            Where the result so far is saved. If it holds one, the run goes on from there, with its
            history, and neither w_init nor warm_start is looked at.

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
            The oracle is not of the kind that this solver asks for, or not finite somewhere;
            w_init or the warm start do not fit it; or the checkpoint is of another run.
        """
        check_type("warm_start", warm_start, SolverResult, "a SolverResult", optional=True)
        oracle, identity, run = self._prepare(as_oracle(oracle), w_init, warm_start)
        with open_checkpoint(checkpoint, self, oracle, **identity) as session:
            return run(callback, session).solve()

    @abstractmethod
    def _prepare(
        self, oracle: Oracle, w_init: Any, warm_start: SolverResult | None
    ) -> tuple[Oracle, dict[str, Any], Callable[[Callback | None, CheckpointSession], Run[Result]]]:
        """Check the arguments; the oracle to ask, what else a run belongs to, and how to make it.

        `identity` is what a result depends on beside the settings and the risk.
        """


class Run(ABC, Generic[Result]):
    """State of one solve, which dies with it. A solver's own run says what an iteration is.

    Where its checkpoint holds the result of an earlier run, its history, clock and counts go on.
    """

    def __init__(
        self, config: Any, callback: Callback | None, session: CheckpointSession | None = None
    ) -> None:
        check_callback(callback)
        self.config, self.callback = config, callback
        self.tol = getattr(config, "tol", 0.0)  # a descent without a certificate has none
        self.session = session or CheckpointSession()
        saved = self.session.saved
        self.history: list[Progress] = [] if saved is None else list(saved.history)
        self.started = time.perf_counter() - (0.0 if saved is None else saved.seconds)
        self.passes = 0 if saved is None else saved.data_passes  # evaluations of the oracle
        self.visited = self.history[-1].rows_scored if self.history else 0

    @abstractmethod
    def begin(self) -> None:
        """Evaluate the start."""

    @abstractmethod
    def loop(self) -> Status:
        """Iterate to the end."""

    @abstractmethod
    def has_point(self) -> bool:
        """Whether there is something to return, should the run be terminated now."""

    @abstractmethod
    def result(self, status: Status, notes: tuple[str, ...]) -> Result:
        """The outcome of a run that ends."""

    def limits(self) -> AbstractContextManager[Any]:
        """What holds while the run computes; by default nothing."""
        return nullcontext()

    def saved_fields(self) -> dict[str, Any]:
        """Fields that a checkpoint saves otherwise than the result has them."""
        return {}

    def judge(self, gap: float, stop: bool, spent: bool | None = None) -> Status | None:
        """The stopping rule: None to go on.

        `stop` is what the callback wants; `spent`, by default the limit on iterations, whether the
        run has done as much as it may.
        """
        if gap < -_CONTRADICTION:
            return Status.INCONSISTENT
        if gap <= self.tol:
            return Status.CONVERGED
        if stop:
            return Status.STOPPED
        if len(self.history) >= self.config.max_iter if spent is None else spent:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.late() else None

    def offer(self) -> None:
        """Offer the checkpoint the result so far; called between iterations."""
        self.session.offer(
            lambda: replace(self.result(Status.INTERRUPTED, ()), **self.saved_fields())
        )

    def solve(self) -> Result:
        """Run to the end; terminated early, the result of the best point, if there is one."""
        notes: tuple[str, ...] = ()
        outer = _RUNS.set((*_RUNS.get(), self))
        try:
            with self.limits():
                self.begin()
                status = self.loop()
        except (KeyboardInterrupt, SystemError) as error:
            # a kernel that is interrupted while it takes its arguments makes a SystemError of it
            interrupt = KeyboardInterrupt in (type(error), type(error.__cause__))
            if not (interrupt and self.has_point()):
                raise
            status = Status.INTERRUPTED
        except OracleFailure as failure:
            if not self.has_point():
                raise
            status, notes = Status.FAILED, (str(failure),)
        finally:
            _RUNS.reset(outer)
        late = status is Status.FAILED and self.late()  # the oracle is not asked again
        with self.limits():
            result = self.result(status, notes)
        if late:
            result = replace(result, status=Status.TIME_LIMIT)
        if result.status is Status.INCONSISTENT:
            _warn(result.message)
        else:
            self.session.save(replace(result, **self.saved_fields()))
        return replace(result, notes=(*result.notes, *self.session.notes))

    def seconds(self) -> float:
        """Wall time of the run, and of the one that it goes on from."""
        return time.perf_counter() - self.started

    def seconds_left(self) -> float | None:
        """Time that a part of the run may take; None without a limit."""
        limit = self.config.time_limit
        return None if limit is None else max(limit - self.seconds(), 1e-3)

    def late(self) -> bool:
        """Whether the time is over: no evaluation is begun then."""
        limit = self.config.time_limit
        return limit is not None and self.seconds() >= limit

    def record(
        self,
        objective: float,
        lower_bound: float,
        n_cuts: int = 0,
        kind: type[Progress] = Progress,
        **more: int,
    ) -> bool:
        """Note an iteration; whether the callback wants the run to stop."""
        counts = len(self.history) + 1, self.seconds(), self.passes
        progress = kind(*counts, float(objective), float(lower_bound), n_cuts, **more)
        self.history.append(progress)
        return self.callback is not None and bool(self.callback(progress))

    def outcome(
        self, w: Array, objective: float, lower_bound: float, status: Status, **more: Any
    ) -> SolverResult:
        """A result with the history of this run."""
        history, alpha = tuple(self.history), self.config.alpha
        return SolverResult(w, float(objective), float(lower_bound), status, history, alpha, **more)


def _warn(message):
    if not _RUNS.get():  # else the run that asked for this one says so
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(message, ConvergenceWarning, stacklevel=4)


def seconds_left() -> float:
    """Until the first time limit of the runs that wait for an answer; infinite without one.

    For oracles that depend on others, who may never answer: they raise `OracleFailure` then.
    """
    limited = [run for run in _RUNS.get() if run.config.time_limit is not None]
    return min((run.config.time_limit - run.seconds() for run in limited), default=math.inf)


def finite_start(w: Any, n_features: int, name: str) -> Array:
    """A starting point as an array of its own; refused where it does not fit or overflows."""
    w = np.array(as_floats(name, w))
    if w.shape != (n_features,) or not np.isfinite(w).all():
        raise InputError(
            f"{name} must be a finite vector of length {n_features}, got shape {w.shape}"
        )
    if np.abs(w).max(initial=0.0) > _FARTHEST:
        raise InputError(
            f"{name} is too far out, with an entry of {np.abs(w).max():.3g}: its square has no "
            f"room in double precision; scale it to entries of at most {_FARTHEST:g}"
        )
    return w
