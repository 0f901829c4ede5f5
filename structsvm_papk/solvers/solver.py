"""What solvers share: `Solver`, their settings and `solve`, and `Run`, the state of one solve.

minimise over w    F(w) = alpha/2 ||w||^2 + R(w)

A checkpoint saves the result so far, from which another run goes on; where and how is not known
here: `structsvm_papk.files.checkpoint` writes to a folder.
"""

from __future__ import annotations

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Any, ClassVar, Generic, TypeVar, cast

import numpy as np
from threadpoolctl import ThreadpoolController

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import (
    InputError,
    OracleFailure,
    as_floats,
    check_callback,
    check_number,
    check_type,
    plain_interrupts,
    warn,
)
from structsvm_papk.solvers.oracle import Oracle, as_oracle
from structsvm_papk.solvers.result import Progress, SolverResult, Status, relative_gap
from structsvm_papk.solvers.rounding import CONTRADICTION, NO_DECREASE

Result = TypeVar("Result", bound=SolverResult)
_RANGES: dict[str, dict[str, Any]] = {
    "tol": {"above": 0},
    "max_iter": {"least": 1},
    "seed": {"least": 0},
    "time_limit": {"above": 0, "optional": True},
}
# when to stop, not where to go
_LIMITS = ("tol", "max_iter", "time_limit", "qp_solver", "lower_bound")
_FARTHEST = 1e120  # entry of a start; its square, and that of its multiples, must have room
_RUNS: ContextVar[tuple[Run[Any], ...]] = ContextVar("runs", default=())


@dataclass(frozen=True)
class Solver(ABC, Generic[Result]):
    """Minimiser of ``alpha/2 ||w||^2 + R(w)``: settings alone; each `solve` has its own `Run`.

    Attributes
    ----------
    alpha : float
        Regularisation strength.
    convex_only : bool
        Whether risks that are not convex are refused: cuts are no lower bounds of them. A class
        whose bounds do not rest on convexity says False.
    """

    alpha: float
    convex_only: ClassVar[bool] = True
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
        risk = as_oracle(oracle)
        if self.convex_only and not risk.convex:
            raise not_convex(str(risk))
        run = self._run(risk, w_init, warm_start)
        if checkpoint is None:
            return run.solve(callback)
        check_store(checkpoint)
        with checkpoint.opened(run.belongs_to(), run.progress) as session:
            return run.solve(callback, session)

    def suited_to(self, oracle: Oracle) -> Solver[Any]:
        """This solver, or another one that is likely to be faster on this risk."""
        return self

    @abstractmethod
    def _run(self, oracle: Oracle, w_init: Any, warm_start: SolverResult | None) -> Run[Result]:
        """Check the arguments; the state of a solve that has not begun."""


class Clock:
    """Wall time of a run, that of the run that it goes on from included, and its limit."""

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit, self._started = limit, time.perf_counter() - spent

    def seconds(self) -> float:
        """Time so far."""
        return time.perf_counter() - self._started

    def left(self) -> float | None:
        """Time that a part of the run may take; None without a limit."""
        return None if self.limit is None else max(self.limit - self.seconds(), 1e-3)

    def late(self) -> bool:
        """Whether the time is over: no evaluation is begun then."""
        return self.limit is not None and self.seconds() >= self.limit


class Run(ABC, Generic[Result]):
    """State of one solve, which dies with it. A solver's own run says what an iteration is."""

    progress: ClassVar[type[Progress]] = Progress  # of an iteration, in the history

    def __init__(self, config: Any, oracle: Oracle) -> None:
        self.config, self.oracle = config, cast("Any", oracle)  # of the kind that it asks for
        self.tol = getattr(config, "tol", 0.0)  # a descent without a certificate has none
        self.identity: dict[str, Any] = {}  # what a result depends on beside settings and risk
        self.callback: Callback | None = None
        self.history: list[Progress] = []
        self.last_progress = 0  # iteration that improved on the point or on the bound
        self.passes = self.visited = 0  # evaluations of the oracle, and rows scored
        self.best_w: Any = None  # the best point, once there is one
        self.best = np.inf
        self.lower_bound = -np.inf
        self.best_error = 0.0  # how far rounding may have put `best` below the objective there

    def belongs_to(self) -> dict[str, Any]:
        """All that a saved result belongs to: the settings, but for the limits on when to stop."""
        problem = self.oracle.fingerprint()
        if problem is None:
            raise InputError("a checkpoint needs an oracle with a method fingerprint()")
        settings = {field.name: getattr(self.config, field.name) for field in fields(self.config)}
        known = {"solver": type(self.config).__name__, **settings}
        known = {name: value for name, value in known.items() if name not in _LIMITS}
        return known | self.identity | {"problem": problem}

    def _open(self, callback, session):
        """Begin, or let history, clock and counts go on from those of a saved result."""
        check_callback(callback)
        self.callback = callback
        self.session = session
        saved = self.saved = session.saved
        self.clock = Clock(self.config.time_limit, 0.0 if saved is None else saved.seconds)
        if saved is not None:
            self.history = list(saved.history)
            self.passes = saved.data_passes
            self.visited = self.history[-1].rows_scored if self.history else 0
            self.last_progress = len(self.history)

    @abstractmethod
    def begin(self) -> None:
        """Evaluate the start."""

    @abstractmethod
    def loop(self) -> Status:
        """Iterate to the end."""

    def has_point(self) -> bool:
        """Whether there is something to return, should the run be terminated now."""
        return self.best_w is not None

    def result(self, status: Status, notes: tuple[str, ...]) -> Result:
        """The outcome of a run that ends."""
        return cast("Result", self.outcome(status, notes=notes))

    def saved_fields(self) -> dict[str, Any]:
        """Fields that a checkpoint saves otherwise than the result has them."""
        return {}

    def gap(self) -> float:
        """The relative gap, with what rounding may have done to the objective."""
        return relative_gap(self.best + self.best_error, self.lower_bound)

    def judge(self, gap: float, stop: bool, spent: bool | None = None) -> Status | None:
        """The stopping rule: None to go on.

        `stop` is what the callback wants; `spent`, by default the limit on iterations, whether the
        run has done as much as it may.
        """
        if gap < -CONTRADICTION:
            self.lower_bound = -np.inf
            return Status.INCONSISTENT
        if gap <= self.tol:
            return Status.CONVERGED
        if stop:
            return Status.STOPPED
        if len(self.history) >= self.config.max_iter if spent is None else spent:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.clock.late() else None

    def offer(self) -> None:
        """Offer the checkpoint the result so far; called between iterations."""
        self.session.offer(
            lambda: replace(self.result(Status.INTERRUPTED, ()), **self.saved_fields())
        )

    def solve(
        self, callback: Callback | None = None, session: CheckpointSession | None = None
    ) -> Result:
        """Run to the end; terminated early, the result of the best point, if there is one."""
        self._open(callback, session or CheckpointSession())
        notes: tuple[str, ...] = ()
        outer = _RUNS.set((*_RUNS.get(), self))
        try:
            with plain_interrupts(), one_blas_thread():
                self.begin()
                status = self.loop()
        except KeyboardInterrupt:
            if not self.has_point():
                raise
            status = Status.INTERRUPTED
        except OracleFailure as failure:
            if not self.has_point():
                raise
            status = Status.FAILED
            notes = (str(failure),)
        finally:
            _RUNS.reset(outer)
        late = status is Status.FAILED and self.clock.late()  # the oracle is not asked again
        with one_blas_thread():
            result = self.result(status, notes)
        if late:
            result = replace(result, status=Status.TIME_LIMIT)
        if result.status is Status.INCONSISTENT:
            if not _RUNS.get():  # else the run that asked for this one says so
                from sklearn.exceptions import ConvergenceWarning

                warn(result.message, ConvergenceWarning)
        else:
            self.session.save(replace(result, **self.saved_fields()))
        return replace(result, notes=(*result.notes, *self.session.notes))

    def record(self, n_cuts: int = 0, **more: int) -> bool:
        """Note an iteration; whether the callback wants the run to stop."""
        objective = float(self.best)
        lower_bound = float(min(self.lower_bound, self.best))
        last = self.history[-1] if self.history else None
        if last is None or objective < last.objective or lower_bound > last.lower_bound:
            self.last_progress = len(self.history)
        counts = len(self.history) + 1, self.clock.seconds(), self.passes
        progress = self.progress(*counts, objective, lower_bound, n_cuts, **more)
        self.history.append(progress)
        return self.callback is not None and bool(self.callback(progress))

    def no_better_than_zero(self, at_zero: float) -> bool:
        """No w improves on zero by more than rounding, and the bound agrees within tol."""
        near = relative_gap(at_zero, self.lower_bound) <= self.tol
        return near and self.best >= at_zero * (1.0 - NO_DECREASE)

    def outcome(self, status: Status, kind: type[SolverResult] = SolverResult, **more: Any) -> Any:
        """The best point with the history; an optimum at zero is said to be degenerate."""
        if status is Status.CONVERGED and not self.best_w.any():
            status = Status.DEGENERATE
        point = self.best_w, float(self.best), float(min(self.lower_bound, self.best))
        return kind(*point, status, tuple(self.history), self.config.alpha, **more)


def seconds_left() -> float:
    """Until the first time limit of the runs that wait for an oracle; infinite without one."""
    clocks = (run.clock for run in _RUNS.get())
    limited = (each.limit - each.seconds() for each in clocks if each.limit is not None)
    return min(limited, default=math.inf)


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context with one BLAS thread: the matrices of a model are small.

    More threads only wait for each other, and the last digits would depend on their number.
    """
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process; to look for them takes longer than a small solve."""
    return ThreadpoolController()


def not_convex(what: str) -> InputError:
    """The refusal of a risk."""
    return InputError(
        f"{what} is not convex, so its cuts would not be lower bounds and no certificate could "
        "hold; use CCCP where it has convex majorants, and SubgradientDescent where not"
    )


def check_signs(positive: Any) -> None:
    """Refuse a setting `positive` that is not one."""
    check_type("positive", positive, bool | np.bool_, "True or False")


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


# --- checkpoints --------------------------------------------------------------------------------


class CheckpointSession:
    """The checkpoint of one solve; this one saves nothing.

    `saved`: the result of an earlier run, to go on from; `notes`: what went wrong with files.
    """

    def __init__(self, saved: SolverResult | None = None) -> None:
        self.saved, self.notes = saved, list[str]()

    def offer(self, result: Callable[[], SolverResult]) -> None:
        """Save the result so far if it is time to; called between iterations."""

    def save(self, result: SolverResult) -> None:
        """Save the result of a run that ends."""


class CheckpointStore(ABC):
    """Where solvers save results so far: the argument `checkpoint` of ``solve``."""

    @abstractmethod
    def opened(
        self, identity: Mapping[str, Any], progress: type[Progress] = Progress
    ) -> AbstractContextManager[CheckpointSession]:
        """The `CheckpointSession` of one solve; refused where the `identity` is of another run.

        Entries of its history are of the class `progress`.
        """

    @abstractmethod
    def part(self, name: str) -> CheckpointStore:
        """The store of one of several solves."""


def check_store(checkpoint: Any) -> None:
    """Raise `TypeError` unless a checkpoint is one, or None."""
    check_type(
        "checkpoint", checkpoint, CheckpointStore, "a files.Checkpoint(folder)", optional=True
    )


def digest_of(data: bytes) -> str:
    """A short text that tells one start, or division into blocks, from another."""
    return hashlib.sha256(data).hexdigest()[:16]
