"""One run of a solver: its clock, limits, history, callback and checkpoint, and how it ends."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, OracleFailure, as_floats, check_callback
from structsvm_papk.solvers.checkpoints import CheckpointSession
from structsvm_papk.solvers.result import Progress, SolverResult, Status

Result = TypeVar("Result", bound=SolverResult)
_FARTHEST = 1e120  # entry of a start; its square, and that of its multiples, must have room
_RUNS: ContextVar[tuple[Run[Any], ...]] = ContextVar("runs", default=())


class Run(ABC, Generic[Result]):
    """State of one solve, which dies with it. A solver's own run says what an iteration is.

    Where its checkpoint holds the result of an earlier run, its history, clock and counts go on.
    """

    def __init__(
        self, config: Any, callback: Callback | None, session: CheckpointSession | None = None
    ) -> None:
        check_callback(callback)
        self.config, self.callback = config, callback
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

    def saved_fields(self) -> dict[str, Any]:
        """Fields that a checkpoint saves otherwise than the result has them."""
        return {}

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
