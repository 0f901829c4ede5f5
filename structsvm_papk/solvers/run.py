"""One run of a solver: its clock, limits, history, callback and checkpoint, and how it ends."""

from __future__ import annotations

import math
import time
import warnings
from abc import ABC, abstractmethod
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Generic, TypeVar

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import OracleFailure, check_callback
from structsvm_papk.solvers.keeping import Keeper
from structsvm_papk.solvers.result import Progress, SolverResult, Status

Result = TypeVar("Result", bound=SolverResult)
_RUNS: ContextVar[tuple[Run[Any], ...]] = ContextVar("runs", default=())


class Run(ABC, Generic[Result]):
    """State of one solve, which dies with it. A solver's own run says what an iteration is."""

    def __init__(
        self, config: Any, callback: Callback | None, keeper: Keeper | None = None
    ) -> None:
        check_callback(callback)
        self.config, self.callback, self.keeper = config, callback, keeper or Keeper()
        self.started = time.perf_counter()
        self.passes = 0  # evaluations of the oracle
        self.history: list[Progress] = []

    @abstractmethod
    def begin(self) -> None:
        """Evaluate the start."""

    @abstractmethod
    def loop(self) -> Status:
        """Iterate to the end."""

    @abstractmethod
    def has_point(self) -> bool:
        """Whether there is something to return, should the run be broken off now."""

    @abstractmethod
    def result(self, status: Status, notes: tuple[str, ...]) -> Result:
        """The outcome of a run that ends."""

    def snapshot(self) -> SolverResult:
        """The result so far, with all that `resume` needs in `extra`; asked by a checkpoint."""
        raise NotImplementedError

    def resume(self, kept: SolverResult) -> None:
        """Take over what an earlier run kept; ValueError, KeyError where it does not fit."""
        raise NotImplementedError

    def solve(self) -> Result:
        """Run to the end; broken off, the result of the best point, if there is one."""
        notes: tuple[str, ...] = ()
        outer = _RUNS.set((*_RUNS.get(), self))
        try:
            status = self._start()
            status = self.loop() if status is None else status
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
        elif not self.keeper.has_ended:
            self.keeper.finish(self.snapshot, result.status)
        return replace(result, notes=(*result.notes, *self.keeper.notes))

    def _start(self) -> Status | None:
        """Begin or go on; the status of a run that had ended."""
        kept = self.keeper.kept
        if kept is None:
            self.begin()
            return None
        with self.keeper.restoring():
            self.history = list(kept.history)
            self.started -= kept.seconds
            self.resume(kept)
        return kept.status if self.keeper.has_ended else None

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
