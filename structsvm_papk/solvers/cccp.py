"""The convex-concave procedure, for risks that have convex majorants: settings, and the run.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R not convex
    repeat             w_{t+1} = argmin_w alpha/2 ||w||^2 + M_t(w)

with ``M_t`` convex, ``M_t >= R`` everywhere and ``M_t(w_t) = R(w_t)``. Then F falls,

    F(w_{t+1}) <= alpha/2 ||w_{t+1}||^2 + M_t(w_{t+1}) <= F(w_t),

at every point that is no worse than w_t on the majorant: the inner problem need not be solved
exactly. Quasi-Newton steps on R itself come first; both phases are functions in `descent`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_type
from structsvm_papk.solvers.cut_model import default_blocks
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.descent import (
    Iterate,
    PenalisedRisk,
    follow_majorants,
    quasi_newton,
)
from structsvm_papk.solvers.oracle import MajorisedOracle, Oracle, needed
from structsvm_papk.solvers.solver import (
    NO_DECREASE,
    Progress,
    Run,
    Signs,
    Solver,
    SolverResult,
    Start,
    Status,
    finite_start,
    floor_of,
)

_INNER_ITERATIONS = 500
_STEPS = (10.0,)  # the continuation where starts do not race: a third more time, 1% lower ends
_SMOOTH = 16  # blocks from which on a mean of them is nearly smooth; to race saves a fifth
_SAME = 1e-13  # objectives that differ by less, relatively
_DIRECTIONS = 16  # random ones, which are tried where all starts end at zero
_LENGTHS = 4.0 ** np.arange(-4, 4)  # of these
_AT_ZERO = (
    "The point is w = 0, from which nothing that was tried led lower. That does not prove that no "
    "w is better: try other starts, or another risk."
)
_BESIDE_ZERO = "random direction"
_NO_MAJORANTS = "CCCP needs a risk with majorants, a `MajorisedOracle`"
_TO_COMPARE = 3e-3  # criticality to which starts that do not race are followed


@dataclass(frozen=True)
class StartReport:
    """One start of `CCCP`: where it ended, `w`.

    `initial` is the objective at the start, NaN where the time was over before, and `objective`
    that at the end; `criticality` is as in `CCCPResult`, inf for a start that lost the race;
    `n_iter` counts majorants and descents by quasi-Newton steps. Only the best start is `polished`,
    followed to the tolerance.
    """

    name: str
    w: np.ndarray = field(repr=False)
    initial: float = np.nan
    objective: float = np.inf
    criticality: float = np.inf
    n_iter: int = 0
    polished: bool = False


@dataclass(frozen=True)
class CCCPResult(SolverResult):
    """Outcome of `CCCP`.

    Attributes
    ----------
    criticality : float
        Of `w`: ``(F(w) - min of the majorant at w) / max(F(w), 1e-3)``, the minimum replaced by its
        certified lower bound: what no point improves on. 0 at a critical point of the difference
        of convex functions; w is within ``sqrt(2 (F(w) - bound) / alpha)`` of the minimiser of its
        own majorant. inf where it was not measured: the run was terminated early just after it had
        moved.
    starts : tuple of StartReport
        How every start ended.
    """

    criticality: float = np.inf
    starts: tuple[StartReport, ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class CCCP(Solver[CCCPResult]):
    """Descent on ``alpha/2 ||w||^2 + R(w)`` by convex majorants, of a `MajorisedOracle`.

    It starts at the oracle's own starts, or at those that are given. Where all end at w = 0, it
    goes on along the lowest of a few random directions. The status is 'critical' where the
    criticality reached `tol`, which is no proof that no direction lowers the risk: where scores
    tie, other majorants touch there too. 'inconsistent': a majorant was none, to rounding and
    beyond. From a checkpoint, as from a warm start, it goes on at the best point so far alone.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when `CCCPResult.criticality` is at most this.
    max_iter : int
        Limit on majorants: for each start and each step of the continuation.
    starts : sequence of str, optional
        Names of the oracle's starts to use; by default all of them. With quasi-Newton steps over 16
        blocks or more they race: each goes down by such steps as long as these promise to come
        below the others, and only the best is followed to `tol`. Else, and with a continuation,
        every start is followed to a criticality of 0.3%, and the best one to `tol`.
    continuation : sequence of float, optional
        Decreasing multiples of alpha, above 1, that every start is first followed through. By
        default 10 where the oracle's own starts do not race, else none.
    quasi_newton : int
        Evaluations of R that L-BFGS may spend at every start before the majorants take over; 0 for
        none. It ends where ten steps gain less than `tol`.
    n_blocks : int, optional
        Cuts an inner iteration; by default as in `CuttingPlane`.
    time_limit : float, optional
        Seconds.
    positive : bool or array-like of bool, shape (n_features,)
        Minimise over w >= 0 only, or over those w that are >= 0 where it is True: majorants, starts
        and steps alike. `criticality` is that of this problem.

    References
    ----------
    Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003).
    Lewis, Overton, "Nonsmooth optimization via quasi-Newton methods", Mathematical Programming 141
    (2013).
    """

    convex_only: ClassVar[bool] = False
    tol: float = 1e-6
    max_iter: int = 200
    starts: tuple[str, ...] | None = None
    continuation: tuple[float, ...] | None = None
    quasi_newton: int = 200
    n_blocks: int | None = None
    time_limit: float | None = None
    positive: Signs = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inner(self.n_blocks, self.alpha, self.time_limit)  # refuses what it does
        for name in ("starts", "continuation"):
            check_type(name, getattr(self, name), (tuple, list), "a sequence", optional=True)
        if self.starts is not None and not self.starts:
            raise InputError("starts must hold a name")
        given = () if self.continuation is None else self.continuation
        ladder = [*as_floats("continuation", given).ravel(), 1.0]
        if any(high <= low for high, low in pairwise(ladder)):
            raise InputError(
                f"continuation must decrease and stay above 1, got {self.continuation!r}"
            )

    def _run(self, oracle: Oracle, w_init: Start, warm_start: SolverResult | None) -> _CCCPRun:
        risk = needed(oracle, MajorisedOracle, _NO_MAJORANTS)
        points = _starts(self, risk, w_init, warm_start)
        blocks = risk.with_blocks(self.n_blocks or default_blocks(risk))
        majorised = blocks if isinstance(blocks, MajorisedOracle) else risk
        smooth = majorised.n_blocks >= _SMOOTH
        may_race = self.quasi_newton > 0 and not self.continuation and smooth
        ladder = self.continuation
        if warm_start is not None or (ladder is None and w_init is not None):
            ladder = ()  # it would lead away again
        elif ladder is None:
            ladder = () if may_race else _STEPS
        return _CCCPRun(
            problem=PenalisedRisk(config=self, risk=risk, majorised=majorised),
            given=points,
            race=may_race,
            ladder=tuple(ladder),
        )

    def inner(self, n_blocks: int | None, alpha: float, time_limit: float | None) -> CuttingPlane:
        """The solver of a majorant."""
        return CuttingPlane(
            alpha,
            tol=0.5 * self.tol,
            max_iter=_INNER_ITERATIONS,
            n_blocks=n_blocks,
            time_limit=time_limit,
            positive=self.positive,
        )


def starts_of(
    oracle: MajorisedOracle, alpha: float, names: Sequence[str] | None = None
) -> Mapping[str, Array]:
    """The oracle's own starts by name; what is the minimiser of a convex risk to a gap of 1%."""
    solver = CuttingPlane(alpha, tol=1e-2, max_iter=300)
    return oracle.starts(lambda risk: solver.solve(risk).w, names)


def _starts(
    config: CCCP, oracle: MajorisedOracle, w_init: Start, warm_start: SolverResult | None
) -> dict[str, Array]:
    """Starting points by name, checked."""
    if w_init is None and warm_start is not None:
        w_init = warm_start.w
    if w_init is None:
        w_init = starts_of(oracle, config.alpha, config.starts)
    points = w_init if isinstance(w_init, Mapping) else {"given": w_init}
    starts: dict[str, Array] = {}
    floor = floor_of(config.positive, oracle.n_features)
    for name, point in points.items():
        w = _inside(point, floor, name)
        if not any(np.array_equal(w, other) for other in starts.values()):
            starts[name] = w  # the convex optimum of 'avg' is often the zero of 'zero'
    return starts


def _inside(point: ArrayLike, floor: Array, name: str) -> Array:
    """A point, checked; the nearest one where weights have their signs."""
    return np.maximum(finite_start(point, floor.size, f"start {name!r}"), floor)


@dataclass
class _Start:
    """One start: the objective where it began, and where it has come to, at the run's alpha."""

    name: str
    initial: float
    point: Iterate
    n_iter: int = 0  # majorants, and descents by quasi-Newton steps

    def report(self, polished: bool) -> StartReport:
        """How far it has come."""
        return StartReport(
            name=self.name,
            w=self.point.w,
            initial=self.initial,
            objective=self.point.objective,
            criticality=self.point.criticality,
            n_iter=self.n_iter,
            polished=polished,
        )


class _CCCPRun(Run[CCCP, Oracle, CCCPResult]):
    """State of one solve: its starts, each with its point. It is the `Budget` of the phases.

    Where starts `race`, quasi-Newton steps alone compare them. `ladder`: the multiples of alpha of
    the continuation.
    """

    def __init__(
        self, problem: PenalisedRisk, given: dict[str, Array], race: bool, ladder: tuple[float, ...]
    ) -> None:
        super().__init__(problem.config, problem.risk)
        self.problem = problem
        self.waiting = given  # starts that have not begun
        self.race = race
        self.ladder = ladder
        self.starts: list[_Start] = []
        self.current: Any = None  # the start that is followed now
        self.stop: Status | None = None

    # --- begin, iterate, end --------------------------------------------------------------------

    def begin(self) -> None:
        """Each start is evaluated in its turn."""

    def loop(self) -> Status:
        # 1. every start
        while self.waiting and not (self.starts and self.clock.late()):
            name = next(iter(self.waiting))
            self.starts.append(self._begin(name, self.waiting.pop(name)))
        if self.waiting:
            return Status.TIME_LIMIT
        # 2. down from each, the most promising first, as far as it takes to compare them
        for start in sorted(self.starts, key=lambda start: start.initial):
            if len(self.starts) == 1:
                self._descend(start, self.config.tol)
            else:
                self._descend_to_compare(start)
            if self.stop is not None:
                return self.stop
            if start.point.status is None and self.clock.late():
                return Status.TIME_LIMIT
            self.keep_result()
        # 3. the best one, to the tolerance
        best = self._best()
        if len(self.starts) > 1 or best.point.status is None:
            self._follow_majorants(best)
        # 4. where that is zero: along the lowest of a few random directions
        if best.point.status is Status.CRITICAL and not best.point.w.any():
            self._leave_zero(best)
            best = self._best()
        status = self.stop or best.point.status
        assert status is not None  # as `_follow_majorants` and `_descend` end
        return status

    def result(self, status: Status, notes: tuple[str, ...]) -> CCCPResult:
        best = self._best()
        if best.point.exact and status is Status.CRITICAL:
            status = Status.CONVERGED  # the majorant was the risk: its bound certifies
        self.best_w = best.point.w
        self.best = best.point.objective
        self.lower_bound = best.point.lower_bound
        for start in self.starts:
            notes = notes + start.point.notes
        if status is Status.CRITICAL and not best.point.w.any():
            notes = (*notes, _AT_ZERO)
        begun = [start.report(start is best) for start in self.starts]
        waiting = [StartReport(name, w) for name, w in self.waiting.items()]
        return self.outcome(
            status,
            CCCPResult,
            notes=notes,
            criticality=best.point.criticality,
            starts=(*begun, *waiting),
        )

    def has_point(self) -> bool:
        return bool(self.starts)

    # --- phases ---------------------------------------------------------------------------------

    def _begin(self, name: str, w: Array) -> _Start:
        point = self.problem.evaluate(w, self.config.alpha, self)
        return _Start(name, point.objective, point)

    def _descend_to_compare(self, start: _Start) -> None:
        """Over many blocks the risk is nearly smooth: L-BFGS comes close to where majorants would.

        Over fewer blocks majorants have to follow.
        """
        if self.race:
            self.current = start
            rival = min(each.point.objective for each in self.starts if each is not start)
            self.keep(quasi_newton(self.problem, start.point, self, rival))
        else:
            self._descend(start, max(_TO_COMPARE, self.config.tol))

    def _descend(self, start: _Start, tol: float) -> None:
        """Both phases, at the alphas of the continuation first, to a criticality of `tol`."""
        self.current = start
        for factor in (*self.ladder, 1.0):
            point = start.point.with_alpha(factor * self.config.alpha)
            point = quasi_newton(self.problem, point, self)
            if self.stop is None:
                stage_tol = tol if factor == 1.0 else max(tol, _TO_COMPARE)
                point = follow_majorants(self.problem, point, self, stage_tol, self.config.max_iter)
            self.keep(point)
            if self.stop is not None:
                return

    def _leave_zero(self, zero: _Start) -> None:
        """Zero is critical where majorants that are frozen there have no lower point; others may.

        A risk that is convex has been certified.
        """
        if zero.point.exact:
            return
        floor = floor_of(self.config.positive, zero.point.w.size)
        rng = np.random.default_rng(0)
        lowest = zero.point
        directions = rng.normal(size=(_DIRECTIONS, zero.point.w.size))
        for direction, length in product(directions, _LENGTHS):
            if self.clock.late():
                return
            w = np.maximum(length * direction, floor)
            point = self.problem.evaluate(w, self.config.alpha, self)
            if point.objective < lowest.objective * (1.0 - NO_DECREASE):
                lowest = point
        if lowest is not zero.point:
            start = _Start(_BESIDE_ZERO, lowest.objective, lowest)
            self.starts.append(start)
            self._descend(start, self.config.tol)

    def _follow_majorants(self, start: _Start) -> None:
        """The second phase alone, to the tolerance."""
        self.current = start
        config = self.config
        self.keep(follow_majorants(self.problem, start.point, self, config.tol, config.max_iter))

    def _best(self) -> _Start:
        """The lowest start; the first of those that differ by rounding alone."""
        lowest = min(start.point.objective for start in self.starts)
        border = lowest + _SAME * max(1.0, abs(lowest))
        return next(start for start in self.starts if start.point.objective <= border)

    # --- what the phases are told and tell: `Budget` --------------------------------------------

    def keep(self, point: Iterate) -> None:
        """Take a point as that of the start which is followed."""
        self.current.point = point.with_alpha(self.config.alpha)
        if point.status is Status.INCONSISTENT:
            self.stop = point.status

    def show(self, point: Iterate) -> None:
        """Show where quasi-Newton steps have come to; the caller may stop here."""
        if self.callback is None:
            return
        of_this_alpha = point.alpha == self.config.alpha
        progress = Progress(
            iteration=len(self.history) + 1,
            seconds=self.clock.seconds(),
            data_passes=self.passes,
            objective=min(self.best, point.objective) if of_this_alpha else self.best,
            lower_bound=self.lower_bound,
            n_cuts=0,
        )
        if self.asked_to_stop(progress):
            self.stop = Status.STOPPED

    def note(self, point: Iterate, lowered: SolverResult | None = None) -> None:
        """Note an iteration, and whether the run has to stop."""
        self.current.n_iter += 1
        if point.alpha == self.config.alpha:
            self.best = min(self.best, point.objective)
            self.lower_bound = point.lower_bound
        n_cuts = 0 if lowered is None or lowered.cuts is None else lowered.cuts[2].size
        self.stop = self.judge(np.inf, self.record(n_cuts), spent=False)
