"""What solvers share.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w)

`SolverResult` is what they return: the point, its certificate, and how the run went. `Solver` has
the settings and `solve`; `Run` is the state of one solve.

A checkpoint keeps the result so far, and a later solve starts warm from it; how it is stored is not
known here: `structsvm_papk.files.Checkpoint` writes a file.
"""

from __future__ import annotations

import math
import reprlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import ThreadpoolController

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import (
    InputError,
    OracleFailure,
    as_floats,
    check_callback,
    check_number,
    check_type,
    interrupted,
    interrupts_noted,
    warn,
)
from structsvm_papk.solvers.metric import StepMetric
from structsvm_papk.solvers.oracle import BlockCuts, Cuts, Oracle, as_oracle

# shares of the objective, or of another number that a difference is compared with
NO_DECREASE = 1e-12  # a decrease below this one is rounding
CONTRADICTION = 1e-9  # a bound above the objective by this one proves that something is wrong
RISK_SCALE = 1e-3  # floor of the denominator of the relative gap; R(0) = 1 sets the scale
_RANGES: dict[str, dict[str, Any]] = {  # of the numbers that solvers have, by their name
    "tol": {"above": 0, "below": 1},  # w = 0 has a gap of 1 to the bound 0, which proves nothing
    "max_iter": {"least": 1},
    "seed": {"least": 0},
    "time_limit": {"above": 0, "optional": True},
    "n_blocks": {"least": 1, "optional": True},
    "quasi_newton": {"least": 0},
    "max_boxes": {"least": 1},
    "eta": {"above": 0},
    "start_scale": {"least": 0.0},
    "radius": {"above": 0, "optional": True},
}
_FARTHEST = 1e120  # entry of a start; its square, and that of its multiples, must have room
# of the runs that wait for an oracle. Not the runs themselves: a connection that Dask opens keeps
# the context in which it was opened, and with a run its risk and its data would stay
_CLOCKS: ContextVar[tuple[Clock, ...]] = ContextVar("clocks", default=())

Signs = bool | tuple[bool, ...]  # which weights are >= 0: all, none, or those that are named
Start = ArrayLike | Mapping[str, ArrayLike] | None  # a point, or several by name


# --- results ------------------------------------------------------------------------------------


def relative_gap(objective: float, lower_bound: float) -> float:
    """``(objective - lower_bound) / max(objective, 1e-3)``; infinite without a bound."""
    return (objective - lower_bound) / max(objective, RISK_SCALE)


class Status(StrEnum):
    """Why a solver stopped; `sentence` says it for people."""

    CONVERGED = "converged", "Converged: the certified gap is within the tolerance."
    DEGENERATE = (
        "degenerate",
        "Converged to the zero vector: no w lowers the objective by more than the tolerance, and "
        "at w = 0 all predictions are the same. Try a smaller tolerance, another risk, or better "
        "features.",
    )
    CRITICAL = (
        "critical",
        "Stopped at a critical point: the convex majorant there falls by no more than the "
        "tolerance. Other points may be lower.",
    )
    MAX_ITER = "max_iter", "Stopped at the iteration limit before the tolerance was reached."
    TIME_LIMIT = "time_limit", "Stopped at the time limit before the tolerance was reached."
    INTERRUPTED = (
        "interrupted",
        "Interrupted: this is the best point so far. Its bound holds, if it has one.",
    )
    STOPPED = "stopped", "Stopped by the callback: this is the best point so far."
    STALLED = (
        "stalled",
        "Stopped: many iterations gave no better point and no better bound. Rounding, or columns "
        "of very different sizes, keep the gap above the tolerance.",
    )
    INCONSISTENT = (
        "inconsistent",
        "Stopped: the cuts contradict the values of the risk, so there is no bound. Either the "
        "risk is not convex, or the scores are too large for double precision (rescale X).",
    )
    FAILED = (
        "failed",
        "Stopped because the risk could not be evaluated any more: this is the best point so far. "
        "Its bound holds, if it has one.",
    )
    FINISHED = (
        "finished",
        "Finished the requested number of iterations; the method has no certificate.",
    )
    sentence: str

    def __new__(cls, value: str, sentence: str = "") -> Status:  # noqa: D102
        status = str.__new__(cls, value)
        status._value_ = value
        status.sentence = sentence
        return status


@dataclass(frozen=True)
class Progress:
    """One iteration of a solver, as given to callbacks and kept in the history.

    Attributes
    ----------
    iteration : int
        Counted from 1.
    seconds : float
        Wall time since the start of the solve.
    data_passes : int
        Evaluations of the oracle (value and subgradient) so far.
    objective : float
        Best objective so far.
    lower_bound : float
        Best certified lower bound so far; -inf without one.
    n_cuts : int
        Cuts in the model.
    rows_scored : int
        Rows whose scores were computed so far, where the oracle counts them; else 0. Fewer than
        rows times passes where rows could be skipped.
    """

    iteration: int
    seconds: float
    data_passes: int
    objective: float
    lower_bound: float
    n_cuts: int
    rows_scored: int = 0

    @property
    def gap(self) -> float:
        """Relative gap, see `relative_gap`."""
        return relative_gap(self.objective, self.lower_bound)


@dataclass(frozen=True)
class WarmStart:
    """What a later solve takes from a result, beside its point.

    Attributes
    ----------
    cuts : BlockCuts or None
        Those that make the bound. They do not depend on alpha.
    evaluation : Cuts or None
        Of the risk at `w`: it need not be asked for again.
    lipschitz_factor : float
        The largest `Cuts.lipschitz_factor` of the run.
    duals : object
        Of `DualAscent`: see `DualBlocks.duals`, or from a checkpoint their arrays by name. For
        every alpha, and scaled for other depths.
    metric : StepMetric or None
        What the proximal term of the cutting plane measured steps by.
    """

    cuts: BlockCuts | None = None
    evaluation: Cuts | None = None
    lipschitz_factor: float = 1.0
    duals: Any = None
    metric: StepMetric | None = None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"duals": None, "metric": None}  # which are large


@dataclass(frozen=True)
class SolverResult:
    """Outcome of ``min_w alpha/2 ||w||^2 + R(w)``.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
        Best point found.
    objective : float
        Objective at `w`.
    lower_bound : float
        Certified: no w has a smaller objective. -inf for methods without a certificate.
    status : Status
    history : tuple of Progress
        One entry an iteration; `curve` gives them as columns.
    alpha : float
        Regularisation strength that was used.
    notes : tuple of str
        What else is worth knowing, such as a QP solver that failed and was replaced.
    """

    w: np.ndarray = field(repr=False)
    objective: float
    lower_bound: float
    status: Status
    history: tuple[Progress, ...] = field(default=(), repr=False)
    alpha: float = 0.0
    notes: tuple[str, ...] = ()
    _warm_start: WarmStart = field(default=WarmStart(), repr=False)

    @property
    def cuts(self) -> tuple[Array, Array, Array] | None:
        """``(slopes, intercepts, blocks)``: the cuts that make the bound, see `BlockCuts`."""
        cuts = self._warm_start.cuts
        return None if cuts is None else (cuts.slopes, cuts.intercepts, cuts.blocks)

    @property
    def gap(self) -> float:
        """``(objective - lower_bound) / max(objective, 1e-3)``."""
        return relative_gap(self.objective, self.lower_bound)

    @property
    def n_iter(self) -> int:
        """Number of iterations."""
        return len(self.history)

    @property
    def data_passes(self) -> int:
        """Number of evaluations of the oracle."""
        return self.history[-1].data_passes if self.history else 0

    @property
    def seconds(self) -> float:
        """Wall time of the solve."""
        return self.history[-1].seconds if self.history else 0.0

    @property
    def converged(self) -> bool:
        """Whether the certified gap reached the tolerance (or the point is critical)."""
        return self.status in (Status.CONVERGED, Status.DEGENERATE, Status.CRITICAL)

    def of(self, risk: Oracle | None) -> Self:
        """The same with cuts that are said to be of this risk; None: it is not known any more."""
        cuts = self._warm_start.cuts
        if cuts is None:
            return self
        kept = replace(self._warm_start, cuts=replace(cuts, risk=risk))
        return replace(self, _warm_start=kept)

    def without_data(self) -> Self:
        """The same without what holds the data; its cuts stay, of a risk that is not known."""
        return replace(self, _warm_start=WarmStart(self._warm_start.cuts)).of(None)

    @property
    def message(self) -> str:
        """The status as a sentence, with the notes."""
        return " ".join([self.status.sentence, *self.notes])

    def curve(self, name: str) -> Array:
        """One column of the history, such as ``'gap'``, as an array."""
        return np.array([getattr(entry, name) for entry in self.history])


Result = TypeVar("Result", bound=SolverResult)
Settings = TypeVar("Settings", bound="Solver[Any]")
Risk = TypeVar("Risk", bound=Oracle)


# --- solvers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Solver(ABC, Generic[Result]):
    """Minimiser of ``alpha/2 ||w||^2 + R(w)``: settings alone; each `solve` has its own `Run`.

    Runs read the fields `tol`, `max_iter` and `time_limit` (seconds or None) of a class, too.

    Attributes
    ----------
    alpha : float
        Regularisation strength.
    convex_only : bool
        Whether risks that are not convex are refused: cuts are no lower bounds of them. A class
        whose bounds do not rest on convexity says False.
    takes_checkpoints : bool
        Whether a solve that starts at an earlier result goes on with what that one had reached.
    """

    alpha: float
    convex_only: ClassVar[bool] = True
    takes_checkpoints: ClassVar[bool] = True
    _alpha_range: ClassVar[dict[str, Any]] = {"above": 0}

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, **self._alpha_range)
        settings = vars(self)
        for name, bounds in _RANGES.items():
            if name in settings:
                check_number(name, settings[name], **bounds)
        if "positive" in settings:
            object.__setattr__(self, "positive", checked_signs(settings["positive"]))

    def solve(
        self,
        oracle: Oracle,
        w_init: Start = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
        checkpoint: ResultStore | None = None,
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
            Where the result so far is kept. If it holds one, that is the warm start, in place of
            w_init and warm_start.

        Returns
        -------
        SolverResult
            On Ctrl-C, which ends the solve after the step that is running, and when the oracle
            fails in mid-course (`OracleFailure`), the best point so far, with its certificate.

        Raises
        ------
        OracleFailure
            The oracle failed at the first point already.
        InputError
            The oracle is not of the kind that this solver asks for, or not finite somewhere;
            w_init or the warm start do not fit it; or the checkpoint is of another problem.
        """
        check_type("warm_start", warm_start, SolverResult, "a SolverResult", optional=True)
        risk = as_oracle(oracle)
        if self.convex_only and not risk.convex:
            raise not_convex(str(risk))
        kept = None if checkpoint is None else self._kept(risk, checkpoint)
        last = None if kept is None else kept.last
        if last is not None:
            w_init = None
            warm_start = last
        with interrupts_noted(), one_blas_thread():
            result = self._run(risk, w_init, warm_start).solve(callback, kept)
        return result if last is None else replace(result, notes=last.notes + result.notes)

    def _kept(self, risk: Oracle, checkpoint: ResultStore) -> Kept:
        """What a checkpoint holds of this problem."""
        check_type("checkpoint", checkpoint, ResultStore, "a files.Checkpoint(path)")
        name = type(self).__name__
        if not self.takes_checkpoints:
            raise InputError(f"{name} takes no checkpoint: from its point it would begin anew")
        problem = risk.fingerprint()
        if problem is None:
            raise InputError("a checkpoint needs an oracle with a method fingerprint()")
        identity = {"problem": problem, "solver": name, "alpha": float(self.alpha)}
        return Kept(checkpoint, identity, risk)

    @abstractmethod
    def _run(
        self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None
    ) -> Run[Any, Any, Result]:
        """Check the arguments; the state of a solve that has not begun."""


class Clock:
    """Wall time of a run, its limit, and whether Ctrl-C has ended it before."""

    def __init__(self, limit: float | None) -> None:
        self.limit = limit
        self.callback_interrupted = False
        self._started = time.perf_counter()

    def seconds(self) -> float:
        """Time so far."""
        return time.perf_counter() - self._started

    def left(self) -> float | None:
        """Time that a part of the run may take; None without a limit."""
        return None if self.limit is None else max(self.limit - self.seconds(), 1e-3)

    def interrupted(self) -> bool:
        """Whether Ctrl-C came."""
        return self.callback_interrupted or interrupted()

    def late(self) -> bool:
        """Whether the time is over, or Ctrl-C came: no evaluation is begun then."""
        if self.interrupted():
            return True
        return self.limit is not None and self.seconds() >= self.limit


class Run(ABC, Generic[Settings, Risk, Result]):
    """State of one solve, which dies with it. A solver's own run says what an iteration is."""

    progress: ClassVar[type[Progress]] = Progress  # of an iteration, in the history

    def __init__(self, config: Settings, oracle: Risk) -> None:
        self.config = config
        self.oracle = oracle
        self.tol: float = getattr(config, "tol", 0.0)  # a descent without a certificate has none
        self.max_iter: int = getattr(config, "max_iter", 0)
        self.time_limit: float | None = getattr(config, "time_limit", None)
        self.callback: Callback | None = None
        self.history: list[Progress] = []
        self.last_progress = 0  # iteration that improved on the point or on the bound
        self.passes = 0  # evaluations of the oracle
        self.best_w: Any = None  # the best point, once there is one
        self.best = np.inf
        self.lower_bound = -np.inf
        self.last_bound = -np.inf  # of the last iteration
        self.best_error = 0.0  # how far rounding may have put `best` below the objective there

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

    def gap(self) -> float:
        """The relative gap, with what rounding may have done to the objective."""
        return relative_gap(self.best + self.best_error, self.known_bound())

    def known_bound(self) -> float:
        """The bound that is reported: that of the method, or what is known without it."""
        return self.lower_bound

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
        if len(self.history) >= self.max_iter if spent is None else spent:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self.clock.late() else None

    def keep_result(self) -> None:
        """Keep the result so far, now and then; called between iterations."""
        if self.kept is not None and self.kept.is_due():
            self.kept.write(self.result(Status.INTERRUPTED, ()))

    def solve(self, callback: Callback | None = None, kept: Kept | None = None) -> Result:
        """Run to the end; terminated early, the result of the best point, if there is one."""
        check_callback(callback)
        self.callback = callback
        self.kept = kept
        self.clock = Clock(self.time_limit)
        outer = _CLOCKS.set((*_CLOCKS.get(), self.clock))
        try:
            self.begin()
            result = self.result(self.loop(), ())
        except OracleFailure as failure:
            if not self.has_point():
                if self.clock.interrupted():
                    raise KeyboardInterrupt from None
                raise
            result = self.result(Status.FAILED, (str(failure),))  # the oracle is not asked again
            if self.clock.late():
                result = replace(result, status=Status.TIME_LIMIT)
        finally:
            _CLOCKS.reset(outer)
        if self.clock.interrupted() and result.status is not Status.INCONSISTENT:
            result = replace(result, status=Status.INTERRUPTED)
        if result.status is Status.INCONSISTENT:
            if not _CLOCKS.get():  # else the run that asked for this one says so
                from sklearn.exceptions import ConvergenceWarning

                warn(result.message, ConvergenceWarning)
        elif self.kept is not None:
            self.kept.write(result)
            result = replace(result, notes=result.notes + self.kept.notes)
        return result

    def record(self, n_cuts: int = 0, **more: int) -> bool:
        """Note an iteration; whether the callback wants the run to stop."""
        objective = float(self.best)
        lower_bound = float(min(self.known_bound(), self.best))
        last = self.history[-1] if self.history else None
        if last is None or objective < last.objective or self.lower_bound > self.last_bound:
            self.last_progress = len(self.history)
        self.last_bound = self.lower_bound
        counts = len(self.history) + 1, self.clock.seconds(), self.passes
        progress = self.progress(*counts, objective, lower_bound, n_cuts, **more)
        self.history.append(progress)
        return self.asked_to_stop(progress)

    def asked_to_stop(self, progress: Progress) -> bool:
        """What the callback says to an iteration; Ctrl-C that comes there is noted as others."""
        if self.callback is None:
            return False
        try:
            return bool(self.callback(progress))
        except KeyboardInterrupt:
            self.clock.callback_interrupted = True
            return True

    def no_better_than_zero(self, at_zero: float) -> bool:
        """No w improves on zero by more than rounding, and the bound agrees within tol."""
        near = relative_gap(at_zero, self.lower_bound) <= self.tol
        return near and self.best >= at_zero * (1.0 - NO_DECREASE)

    def outcome(self, status: Status, kind: type[SolverResult] = SolverResult, **more: Any) -> Any:
        """The best point with the history; an optimum at zero is said to be degenerate."""
        if status is Status.CONVERGED and not self.best_w.any():
            status = Status.DEGENERATE
        bound = -np.inf  # cuts that contradict the risk, which may be negative for all one knows
        if status is not Status.INCONSISTENT:
            bound = float(min(self.known_bound(), self.best))
        return kind(
            self.best_w,
            float(self.best),
            bound,
            status,
            tuple(self.history),
            self.config.alpha,
            **more,
        )


def seconds_left() -> float:
    """Until the first time limit of the runs that wait for an oracle; infinite without one.

    None are left after Ctrl-C.
    """
    if interrupted():
        return 0.0
    limited = (each.limit - each.seconds() for each in _CLOCKS.get() if each.limit is not None)
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


def check_signs(positive: object) -> None:
    """Refuse a setting `positive` that is not one for all weights."""
    check_type("positive", positive, bool | np.bool_, "True or False")


def checked_signs(positive: ArrayLike) -> Signs:
    """A setting `positive` of a solver: True, False, or one of them for each weight, as a tuple."""
    try:
        signs = np.asarray(positive)
    except ValueError:  # rows of several lengths
        signs = np.empty((0, 0))
    if signs.dtype != bool or signs.ndim > 1 or not signs.size:
        what = "True, False, or one of them for each weight"
        raise TypeError(f"positive must be {what}, got {reprlib.repr(positive)}")
    return tuple(signs.tolist()) if signs.ndim else bool(signs)


def floor_of(positive: Signs, n_features: int) -> Array:
    """What each weight is at least: 0 where `positive` says so, -inf where it has no sign.

    The nearest point there is ``np.maximum(w, floor)``.
    """
    signs = np.asarray(positive)
    if signs.ndim and signs.size != n_features:
        raise InputError(
            f"positive has {signs.size} entries, but there are {n_features} weights: give one "
            "for each, or True or False for all of them"
        )
    floor = np.full(n_features, -np.inf)
    floor[signs] = 0.0
    return floor


def finite_start(start: Start, n_features: int, name: str) -> Array:
    """A starting point as an array of its own; refused where it does not fit or overflows."""
    w = np.array(as_floats(name, start))
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


@runtime_checkable
class ResultStore(Protocol):
    """Where solvers keep results so far: the argument `checkpoint` of ``solve``."""

    interval: float  # seconds from one to the next

    def read(self, identity: Mapping[str, Any]) -> SolverResult | None:
        """The result that was kept, or None; refused where its identity is another one."""

    def write(self, identity: Mapping[str, Any], result: SolverResult) -> None:
        """Keep a result in place of the one before."""


class Kept:
    """The result that a checkpoint held as a solve began, and how later ones get there.

    `last` is that result, or None; `notes` has a sentence where the store failed.
    """

    def __init__(self, store: ResultStore, identity: Mapping[str, Any], risk: Oracle) -> None:
        self.store = store
        self.identity = identity
        self.last = store.read(identity)
        if self.last is not None:
            self.last = self.last.of(risk)
        self.notes: tuple[str, ...] = ()
        self._written = time.monotonic()

    def is_due(self) -> bool:
        """Whether the interval has passed."""
        return time.monotonic() - self._written >= self.store.interval

    def write(self, result: SolverResult) -> None:
        """Keep a result; where that fails, say so once and go on."""
        try:
            self.store.write(self.identity, result)
        except InputError as error:
            if not self.notes:
                self.notes = (f"No checkpoint: {error}. The run goes on.",)
                warn(self.notes[0])
        self._written = time.monotonic()
