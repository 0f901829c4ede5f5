"""The convex-concave procedure, for risks that have convex majorants.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R not convex
    repeat             w_{t+1} = argmin_w alpha/2 ||w||^2 + M_t(w)

with ``M_t`` convex, ``M_t >= R`` everywhere and ``M_t(w_t) = R(w_t)``. Then F falls,

    F(w_{t+1}) <= alpha/2 ||w_{t+1}||^2 + M_t(w_{t+1}) <= F(w_t),

at every point that is no worse than w_t on the majorant: the inner problem need not be solved
exactly.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_number, check_type
from structsvm_papk.solvers.cut_model import default_blocks
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.descent import SCOUT, Descent, StartReport
from structsvm_papk.solvers.oracle import BlockOracle, MajorisedOracle
from structsvm_papk.solvers.result import Progress, SolverResult, Status
from structsvm_papk.solvers.solver import Run, Solver, digest_of, finite_start

_INNER_ITERATIONS = 500
_STEPS = (10.0,)  # the continuation where starts do not race
_SMOOTH = 16  # blocks from which on a mean of them is nearly smooth
_SAME = 1e-13  # objectives that differ by less, relatively


@dataclass(frozen=True)
class CCCPResult(SolverResult):
    """Outcome of `CCCP`.

    Attributes
    ----------
    criticality : float
        Of `w`: ``(F(w) - min of the majorant at w) / max(F(w), 1e-3)``, the minimum replaced by its
        certified lower bound: what no point improves on. 0 at a critical point of the difference
        of convex functions; w is within ``sqrt(2 (F(w) - bound) / alpha)`` of the minimiser of its
        own majorant. Where majorants that break ties otherwise were tried as well, the largest.
        inf where it was not measured: the run was terminated early just after it had moved.
    starts : tuple of StartReport
        How every start ended.
    """

    criticality: float = np.inf
    starts: tuple[StartReport, ...] = ()


@dataclass(frozen=True)
class CCCP(Solver[CCCPResult]):
    """Local minimiser of ``alpha/2 ||w||^2 + R(w)`` by convex majorants, of a `MajorisedOracle`.

    It starts at the oracle's own starts, or at those that are given. The status is 'critical' where
    the criticality reached `tol`, which is no proof that no direction lowers the risk: of the ways
    to break ties, `max_ties` are tried. 'inconsistent': a majorant was none, to rounding and
    beyond. A checkpoint is written between majorants.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when `CCCPResult.criticality` is at most this.
    max_iter : int
        Limit on majorants, for each start and each step of the continuation.
    starts : sequence of str, optional
        Names of the oracle's starts to use; by default all of them. With quasi-Newton steps over 16
        blocks or more they race: each goes down by such steps as long as these promise to come
        below the others, and only the best is followed to `tol`. Else, and with a continuation,
        every start is followed to a criticality of 0.3%, and the best one to `tol`.
    continuation : sequence of float, optional
        Decreasing multiples of alpha, above 1, that every start is first followed through. By
        default 10 where the oracle's own starts do not race, else none.
    rescale : bool
        Scale every start by the best power of two first.
    extrapolate : bool
        Go on along the step to the majorant's minimiser, doubling it while R itself decreases
        (boosted DC algorithm; Aragon Artacho, Fleming and Vuong, 2018).
    quasi_newton : int
        Evaluations of R that L-BFGS may spend at every start before the majorants take over; 0 for
        none. It ends where ten steps gain less than `tol`.
    n_blocks : int, optional
        Cuts an inner iteration; by default as in `CuttingPlane`.
    qp_solver : str
        As in `CuttingPlane`.
    time_limit : float, optional
        Seconds.
    max_ties : int
        At the critical point where the run would end, so many more majorants are tried, which break
        ties in other ways; where one goes down, the run goes on. 0 for none.
    positive : bool
        Minimise over w >= 0 only: majorants, starts and steps alike. `criticality` is that of this
        problem.

    References
    ----------
    Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003).
    Aragon Artacho, Fleming, Vuong, "Accelerating the DC algorithm for smooth functions",
    Mathematical Programming 169 (2018).
    Lewis, Overton, "Nonsmooth optimization via quasi-Newton methods", Mathematical Programming 141
    (2013).
    """

    tol: float = 1e-6
    max_iter: int = 200
    starts: tuple[str, ...] | None = None
    continuation: tuple[float, ...] | None = None
    rescale: bool = True
    extrapolate: bool = True
    quasi_newton: int = 200
    n_blocks: int | None = None
    qp_solver: str = "blocks"
    time_limit: float | None = None
    max_ties: int = 6
    positive: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.inner(self.alpha)  # checks n_blocks, qp_solver
        check_number("quasi_newton", self.quasi_newton, least=0)
        check_number("max_ties", self.max_ties, least=0)
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

    def _run(self, oracle, w_init, warm_start):
        if not isinstance(oracle, MajorisedOracle):
            raise InputError("CCCP needs a risk with majorants, a `MajorisedOracle`")
        starts = _starts(self, oracle, w_init, warm_start)
        blocks = oracle.with_blocks(self.n_blocks or default_blocks(oracle))
        given = w_init is not None or warm_start is not None
        identity = {
            "n_blocks": blocks.n_blocks,
            "starts": [f"{x} {digest_of(starts[x].tobytes())}" if given else x for x in starts],
        }
        majorised = blocks if isinstance(blocks, MajorisedOracle) else oracle
        smooth = isinstance(majorised, BlockOracle) and majorised.n_blocks >= _SMOOTH
        race = self.quasi_newton > 0 and not self.continuation and smooth
        usual = () if given or race else _STEPS
        ladder = usual if self.continuation is None else self.continuation
        return _Run(self, oracle, majorised, starts, identity, race, ladder)

    def inner(
        self, alpha: float, n_blocks: int | None = None, time_limit: float | None = None
    ) -> CuttingPlane:
        """The solver of the majorants."""
        blocks = n_blocks or self.n_blocks
        limit = time_limit or self.time_limit
        return CuttingPlane(
            alpha,
            tol=0.5 * self.tol,
            max_iter=_INNER_ITERATIONS,
            n_blocks=blocks,
            qp_solver=self.qp_solver,
            time_limit=limit,
            positive=self.positive,
        )


def _starts(config, oracle, w_init, warm_start):
    """Starting points by name, checked."""
    if w_init is None and warm_start is not None:
        w_init = warm_start.w
    if w_init is None:
        w_init = oracle.starts(config.alpha, config.starts)
    points = w_init if isinstance(w_init, dict) else {"given": w_init}
    starts: dict[str, Array] = {}
    for name, point in points.items():
        w = finite_start(point, oracle.n_features, f"start {name!r}")
        w = np.maximum(w, 0.0) if config.positive else w
        if not any(np.array_equal(w, other) for other in starts.values()):
            starts[name] = w  # the convex optimum of 'avg' is often the zero of 'zero'
    return starts


class _Run(Run[CCCPResult]):
    """All starts of one solve: scout each, then polish the best.

    `risk` has no blocks: it costs less then, to L-BFGS. `majorised` is the same risk with the
    blocks that its majorants have. Where starts `race`, quasi-Newton steps alone compare them.
    """

    def __init__(self, config, risk, majorised, starts, identity, race, ladder):
        super().__init__(config, risk)
        self.risk = risk
        self.majorised = majorised
        self.starts = starts
        self.identity = identity
        self.race = race
        self.ladder = ladder
        self.descents: list[Descent] = []
        self.polishing = False
        self.lowest = np.inf  # objective
        self.stop: Status | None = None
        self.failure: tuple[str, ...] = ()

    def note(self, objective, lower_bound, n_cuts):
        """Note one majorant, and whether the search has to stop."""
        self.lowest = min(self.lowest, objective)
        self.best = self.lowest
        self.lower_bound = lower_bound
        self.stop = self.judge(np.inf, self.record(n_cuts), spent=False)

    def show(self, objective, lower_bound):
        """Show where quasi-Newton steps have come to; the caller may stop here."""
        place = len(self.history) + 1, self.clock.seconds(), self.passes
        progress = Progress(*place, min(self.lowest, objective), lower_bound, 0)
        if self.callback is not None and self.callback(progress):
            self.stop = Status.STOPPED

    def has_point(self):
        return bool(self.descents)

    def begin(self):
        """Go on from where an earlier run had come to; else each start is evaluated in its turn."""
        if self.saved is None:
            return
        extra = self.saved.extra
        descents = []
        for (name, given), w, n_iter in zip(
            self.starts.items(), extra["points"], extra["n_iter"].tolist(), strict=False
        ):
            descents.append(Descent(self, name, finite_start(w, given.size, name)))
            descents[-1].n_iter = n_iter
            if n_iter:  # the continuation would lead away again
                descents[-1].stage = len(self.ladder)
        self.polishing = bool(extra["polishing"])
        self.descents = descents

    def loop(self):
        """Scout the starts, the most promising first, then polish the best."""
        for name, w in list(self.starts.items())[len(self.descents) :]:
            if self.descents and self.clock.late():
                break
            self.descents.append(Descent(self, name, w))
        if len(self.starts) > 1 and not self.polishing:
            for descent in sorted(self.descents, key=lambda descent: descent.initial):
                self._scout(descent)
                if self.stop is not None:
                    return self.stop
                if self.clock.late():
                    return Status.TIME_LIMIT
                self.offer()
            self.polishing = True
            self._best().n_steps = 0
        return self._polish(self._best())

    def _scout(self, descent):
        """Go down from a start as far as it takes to compare it with the others.

        Over many blocks the risk is nearly smooth: L-BFGS comes close to where majorants would.
        """
        if self.race:
            others = (other.objective for other in self.descents if other is not descent)
            descent.slide(min(others, default=np.inf))
        else:
            descent.follow(max(SCOUT, self.config.tol))

    def _polish(self, best):
        """Follow to the tolerance; where breaking a tie otherwise leads on, go on."""
        while True:
            status = best.follow(self.config.tol)
            exact = best.lower_bound > -np.inf  # its majorants are the risk itself
            if status is not Status.CRITICAL or exact or not self.config.max_ties:
                return status
            if self.stop is not None or not best.goes_down_from_tie():
                still = best.criticality <= self.config.tol
                return self.stop or (status if still else Status.STALLED)

    def _best(self):
        """The lowest descent; the first of those that differ by rounding alone."""
        lowest = min(descent.objective for descent in self.descents)
        border = lowest + _SAME * max(1.0, abs(lowest))
        return next(descent for descent in self.descents if descent.objective <= border)

    def saved_fields(self):
        """Where each start has come to, in how many majorants, and whether one was chosen."""
        extra = {
            "points": np.stack([descent.w for descent in self.descents]),
            "n_iter": np.array([descent.n_iter for descent in self.descents]),
            "polishing": np.array(self.polishing, dtype=np.int64),
        }
        return {"extra": extra}

    def result(self, status, notes):
        best = self._best()
        if best.lower_bound > -np.inf and status is Status.CRITICAL:
            status = Status.CONVERGED  # the majorant was the risk: its bound certifies
        self.best_w = best.w
        self.best = best.objective
        self.lower_bound = best.lower_bound
        return self.outcome(
            status,
            CCCPResult,
            notes=(*notes, *self._notes(best, status)),
            criticality=best.criticality,
            starts=tuple(descent.report(descent is best) for descent in self.descents),
        )

    def _notes(self, best, status):
        yield from self.failure
        if status is Status.CRITICAL and not best.w.any():
            yield (
                "The point is w = 0, from which no start led away: the risk may have no better "
                "one. Try other starts, or another risk."
            )
