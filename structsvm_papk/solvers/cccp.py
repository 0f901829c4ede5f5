"""The convex-concave procedure, for risks that have convex majorants.

    minimise over w    F(w) = alpha/2 ||w||^2 + R(w),    R not convex
    repeat             w_{t+1} = argmin_w alpha/2 ||w||^2 + M_t(w)

with ``M_t`` convex, ``M_t >= R`` everywhere and ``M_t(w_t) = R(w_t)``. Then

    F(w_{t+1}) <= alpha/2 ||w_{t+1}||^2 + M_t(w_{t+1}) <= F(w_t)

for every point that is no worse than w_t on the majorant: the inner problem need not be solved
exactly. The oracle answers ``majorant(w, kind)``; the solver knows nothing else of it.
"""

import time
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback, Oracle
from structsvm_papk.errors import InputError, OracleFailure, check_number
from structsvm_papk.files.checkpoint import opened, pack_history, take, unpack_history
from structsvm_papk.solvers.bundle.cut_model import check_cuts
from structsvm_papk.solvers.cutting_plane import CuttingPlane, _default_blocks
from structsvm_papk.solvers.result import RISK_SCALE, Progress, SolverResult, Status, relative_gap

_SHARE = 0.5  # of the decrease that a majorant still allows: enough to move on
_SCOUT = 3e-3  # criticality to which every start is followed, before the best is polished
_ROUNDING = 1e-9
_INNER_ITERATIONS = 500
_CUTS = ("slopes", "intercepts", "blocks")
_NUMBERS = (
    *("objective", "initial", "alpha", "stage", "n_steps", "seconds", "passes", "n_iter"),
    *("lower_bound", "criticality", "reached"),
)
# what a checkpoint keeps of a descent, beside its last majorant
_STATE = dict.fromkeys(_NUMBERS, "number") | {"w": "w", "previous_w": "w?"}
_SCALES = 4.0 ** np.arange(-10, 11)


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
        inf where it was not measured: the run was broken off just after it had moved.
    starts : tuple of StartReport
        How every start ended.
    """

    criticality: float = np.inf
    starts: tuple = ()


@dataclass(frozen=True)
class StartReport:
    """One start of `CCCP`.

    Attributes
    ----------
    name : str
    initial : float
        Objective at the start, after scaling it.
    objective : float
        Objective where the start ended.
    criticality : float
        As in `CCCPResult`, at that point.
    n_iter : int
        Majorants.
    data_passes : int
    seconds : float
    polished : bool
        Whether it was followed to the tolerance (the best start), or only scouted.
    w : ndarray
        Where it ended.
    """

    name: str
    initial: float
    objective: float
    criticality: float
    n_iter: int
    data_passes: int
    seconds: float
    polished: bool
    w: np.ndarray = field(repr=False)


@dataclass(frozen=True)
class CCCP:
    """Local minimiser of ``alpha/2 ||w||^2 + R(w)`` by convex majorants.

    Parameters
    ----------
    alpha : float
        Regularisation strength, > 0 (the paper's lambda).
    tol : float
        Stop when `CCCPResult.criticality` is at most this.
    max_iter : int
        Limit on majorants, for each start and each step of the continuation.
    majorant : str
        Kind of majorant, as the oracle names them.
    starts : sequence of str, optional
        Names of the oracle's starts to use; by default all of them. Every start is followed to a
        criticality of 0.3%, the best one to `tol`.
    continuation : sequence of float
        Decreasing multiples of alpha, above 1, that every start is first followed through.
    rescale : bool
        Scale every start by the best power of two first.
    extrapolate : bool
        Go on along the step to the majorant's minimiser, doubling it while R itself decreases
        (boosted DC algorithm; Aragon Artacho, Fleming and Vuong, 2018).
    n_blocks : int, optional
        Cuts an inner iteration; by default as in `CuttingPlane`.
    qp_solver : str
        As in `CuttingPlane`.
    time_limit : float, optional
        Seconds.
    max_ties : int
        At the critical point where the run would end, so many more majorants are tried, which break
        ties in other ways; where one goes down, the run goes on. 0 for none.

    References
    ----------
    Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003).
    Aragon Artacho, Fleming, Vuong, "Accelerating the DC algorithm for smooth functions",
    Mathematical Programming 169 (2018).
    """

    alpha: float
    tol: float = 1e-6
    max_iter: int = 200
    majorant: str = "latent"
    starts: tuple | None = None
    continuation: tuple = ()
    rescale: bool = True
    extrapolate: bool = True
    n_blocks: int | None = None
    qp_solver: str = "blocks"
    time_limit: float | None = None
    max_ties: int = 16

    def __post_init__(self) -> None:
        self._inner(self.alpha, None)  # checks alpha, tol, n_blocks, time_limit
        check_number("max_iter", self.max_iter, least=1)
        check_number("max_ties", self.max_ties, least=0)
        ladder = [*self.continuation, 1.0]
        if any(high <= low for high, low in pairwise(ladder)):
            raise InputError(
                f"continuation must decrease and stay above 1, got {self.continuation!r}"
            )

    def solve(
        self,
        oracle: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        warm_start: SolverResult | None = None,
        checkpoint: Any | None = None,
    ) -> Any:
        """Minimise from one start or several.

        Parameters
        ----------
        oracle : EmpiricalRisk or any object with `n_features` and ``majorant(w, kind)``
            A majorant is an oracle for `CuttingPlane`. It may have ``reuse(previous, cuts)``, which
            carries the cuts of an earlier majorant over, and be `exact`, the risk itself. Where
            the oracle has ``starts(alpha, names)``, several starts come from there.
        w_init : ndarray of shape (n_features,) or dict of str to ndarray, optional
            The start, or several by name, instead of the oracle's own.
        callback : callable, optional
            Called with a `Progress` after every majorant; a true return value stops the solver.
        warm_start : SolverResult, optional
            Its point is the start.
        checkpoint : Checkpoint, optional
            Where the state is kept, between majorants. If it holds one, the run goes on from there.

        Returns
        -------
        CCCPResult
            Status 'critical' where the criticality reached `tol`: the majorants at w cannot be
            lowered. That is not a proof that no direction lowers the risk: of the ways to break
            ties, `max_ties` are tried. 'inconsistent' where a majorant was none, to rounding and
            beyond. On Ctrl-C, and when the oracle fails, the best so far.

        Raises
        ------
        InputError
            The oracle has no majorants, a start does not fit, or the checkpoint is of another run.
        """
        if not hasattr(oracle, "majorant"):
            raise InputError("CCCP needs an oracle with majorants; this one has none")
        starts = _starts(self, oracle, w_init, warm_start)
        oracle = self._in_blocks(oracle)
        n_blocks = getattr(oracle, "n_blocks", 1)
        with opened(checkpoint, self, oracle, n_blocks=n_blocks, starts=list(starts)) as keeper:
            return _Search(self, oracle, callback, keeper).run(starts)

    def _in_blocks(self, oracle):
        if not hasattr(oracle, "with_blocks"):
            return oracle
        return oracle.with_blocks(self.n_blocks or _default_blocks(oracle))

    def _inner(self, alpha, n_blocks, time_limit=None):
        return CuttingPlane(
            alpha,
            0.5 * self.tol,
            _INNER_ITERATIONS,
            n_blocks=n_blocks or self.n_blocks,
            qp_solver=self.qp_solver,
            time_limit=time_limit or self.time_limit,
        )


def _starts(config, oracle, w_init, warm_start):
    """Starting points by name, checked."""
    if w_init is None and warm_start is not None:
        w_init = warm_start.w
    if w_init is None and hasattr(oracle, "starts"):
        given = {} if config.starts is None else {"names": config.starts}
        w_init = oracle.starts(config.alpha, **given)
    if w_init is None:
        w_init = np.zeros(oracle.n_features)
    points = w_init if isinstance(w_init, dict) else {"given": w_init}
    points = {name: np.array(w, dtype=np.float64) for name, w in points.items()}
    for name, w in points.items():
        if w.shape != (oracle.n_features,) or not np.isfinite(w).all():
            raise InputError(
                f"start {name!r} must be a finite vector of length {oracle.n_features}"
            )
    return points


class _Search:
    """All starts of one solve: scout each, then polish the best."""

    def __init__(self, config, oracle, callback, keeper):
        self.config, self.oracle, self.callback, self.keeper = config, oracle, callback, keeper
        self.started = time.perf_counter()
        self.passes, self.best = 0, np.inf
        self.history, self.stop, self.failure = [], None, ()
        self.descents, self.polishing = [], False
        if keeper is not None and keeper.state is not None:
            with keeper.taking() as state:
                self._go_on(state)

    def run(self, starts):
        if self.keeper is not None and self.keeper.status is not None:
            return self._result(self._best(), self.keeper.status)
        try:
            status = self._follow(starts)
        except (KeyboardInterrupt, OracleFailure) as stop:
            if not self.descents:
                raise
            failed = isinstance(stop, OracleFailure)
            status = Status.FAILED if failed else Status.INTERRUPTED
            self.failure = (str(stop),) * failed
        return self._result(self._best(), status)

    def _follow(self, starts):
        """Scout the starts that have not been, then polish the best."""
        several, target = len(starts) > 1, max(_SCOUT, self.config.tol)
        for place, (name, w) in enumerate(starts.items()):
            if self.polishing or place < len(self.descents) - 1:
                continue
            if place == len(self.descents):
                self.descents.append(_Descent.begin(self, name, w))
            if several:
                self.descents[place].follow(target)
                if self.stop is not None:
                    return self.stop
        best = self._best()
        if several and not self.polishing:
            self.polishing, best.n_steps = True, 0
        return self._polish(best)

    def _polish(self, best):
        """Follow to the tolerance; where breaking a tie otherwise leads on, go on."""
        while True:
            status = best.follow(self.config.tol)
            if status is not Status.CRITICAL or not best.may_tie:
                return status
            if self.stop is not None or not best.leaves_tie():
                still = best.criticality <= self.config.tol
                return self.stop or (status if still else Status.STALLED)

    def _best(self):
        return min(self.descents, key=lambda descent: descent.objective)

    def keep(self):
        """Write a checkpoint where it is time to; called between majorants."""
        if self.keeper is not None and self.keeper.due():
            self.keeper.save(self._state())

    def _state(self):
        state = {
            "seconds": self.seconds(),
            "passes": self.passes,
            "best": self.best,
            "polishing": int(self.polishing),
            "history": pack_history(self.history),
        }
        for place, descent in enumerate(self.descents):
            state |= {f"{place}.{name}": value for name, value in descent.state().items()}
        return state

    def _go_on(self, state):
        self.started = time.perf_counter() - float(state["seconds"])
        self.passes, self.best = int(state["passes"]), float(state["best"])
        self.polishing = bool(state["polishing"])
        self.history = unpack_history(state["history"])
        for place, name in enumerate(self.keeper.identity["starts"]):
            prefix = f"{place}."
            part = {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
            if part:
                self.descents.append(_Descent.restored(self, name, part))

    def seconds(self):
        return time.perf_counter() - self.started

    def record(self, objective, lower_bound, n_cuts):
        """Note one majorant, and whether the search has to stop."""
        self.best = min(self.best, objective)
        progress = Progress(
            len(self.history) + 1, self.seconds(), self.passes, self.best, lower_bound, n_cuts
        )
        self.history.append(progress)
        if self.callback is not None and self.callback(progress):
            self.stop = Status.STOPPED
        elif self.late():
            self.stop = Status.TIME_LIMIT

    def late(self):
        """Whether the time is over."""
        return self.config.time_limit is not None and self.seconds() >= self.config.time_limit

    def _result(self, best, status):
        if self.keeper is not None and status is not self.keeper.status:
            self.keeper.save(self._state(), status)
        if best.lower_bound > -np.inf and status is Status.CRITICAL:
            status = Status.CONVERGED  # the majorant was the risk: its bound certifies
        if status is Status.CONVERGED and not best.w.any():
            status = Status.DEGENERATE
        return CCCPResult(
            best.w,
            best.objective,
            best.lower_bound,
            status,
            tuple(self.history),
            self.config.alpha,
            None,
            tuple(self._notes(best, status)),
            criticality=best.criticality,
            starts=tuple(descent.report(descent is best) for descent in self.descents),
        )

    def _notes(self, best, status):
        yield from self.failure
        if self.keeper is not None:
            yield from self.keeper.notes
        if status is Status.CRITICAL and not best.w.any():
            yield (
                "The point is w = 0, from which no start led away: this risk may say nothing about "
                "this data, which 'diagnose' tells. Try other starts, or surrogate 'clipped_ramp'."
            )


class _Descent:
    """One start: majorant after majorant."""

    def __init__(self, search, name):
        self.search, self.config, self.oracle = search, search.config, search.oracle
        self.name, self.alpha = name, search.config.alpha
        self.stage, self.n_steps = 0, 0  # place in the continuation, and majorants there
        self.reached = np.inf  # tolerance to which this stage was followed to its end
        self.seconds, self.passes, self.n_iter = 0.0, 0, 0
        self.lower_bound, self.criticality = -np.inf, np.inf
        self.inner, self.previous, self.previous_w = None, None, None

    @classmethod
    def begin(cls, search, name, w):
        """A start, scaled."""
        descent = cls(search, name)
        descent.w = w
        descent._best_scale()
        descent.initial = descent.objective
        return descent

    @classmethod
    def restored(cls, search, name, state):
        """A descent from its state."""
        descent = cls(search, name)
        take(descent, state, _STATE, w=search.oracle.n_features)
        off = abs(descent._evaluate(descent.w) - descent.objective)
        if off > _ROUNDING * max(1.0, abs(descent.objective)):
            raise ValueError(f"the risk has another value at the point from {name!r}")
        if descent.stage not in range(len(search.config.continuation) + 1):
            raise ValueError(f"stage {descent.stage} of the continuation")
        if descent.previous_w is not None:
            cuts = tuple(state[f"cuts_{part}"] for part in _CUTS)
            inner_w = state["inner_w"]
            descent.previous = descent.oracle.majorant(descent.previous_w, descent.config.majorant)
            check_cuts(*cuts, inner_w.size, getattr(descent.previous, "n_blocks", 1))
            descent.inner = SolverResult(
                inner_w,
                float(state["inner_objective"]),
                -np.inf,
                Status.STOPPED,
                alpha=descent.alpha,
                cuts=cuts,
            )
        return descent

    def state(self):
        """Everything that `restored` needs; the last majorant follows from where it was made."""
        state = {name: getattr(self, name) for name in _STATE}
        if self.previous_w is not None:
            state |= {"inner_w": self.inner.w, "inner_objective": self.inner.objective}
            cuts = zip(_CUTS, self.inner.cuts, strict=True)
            state |= {f"cuts_{part}": array for part, array in cuts}
        return state

    def follow(self, tol):
        """Descend until the criticality is at most `tol`, through the continuation first."""
        try:
            while self.stage < len(self.config.continuation):
                self._set_alpha(self.config.continuation[self.stage] * self.config.alpha)
                self._loop(max(tol, _SCOUT))
                if self.search.stop is not None:
                    return self.search.stop
                self.stage, self.n_steps, self.reached = self.stage + 1, 0, np.inf
            self._set_alpha(self.config.alpha)
            return self._loop(tol)
        finally:
            self._set_alpha(self.config.alpha)

    def report(self, polished):
        return StartReport(
            self.name,
            self.initial,
            self.objective,
            self.criticality,
            self.n_iter,
            self.passes,
            self.seconds,
            polished,
            self.w,
        )

    def _loop(self, tol):
        if self.reached <= tol:
            return Status.CRITICAL if self.criticality <= tol else Status.STALLED
        while self.n_steps < self.config.max_iter:
            status = self._timed(self._step, tol)
            self.n_steps += 1
            if status in (Status.CRITICAL, Status.STALLED):
                self.reached = tol
            if status is not None:
                return status
            self.search.keep()
        if self.criticality == np.inf:  # the last step moved the point
            self._timed(self._measure, tol)
        return Status.CRITICAL if self.criticality <= tol else Status.MAX_ITER

    def _timed(self, step, *arguments):
        """Take a step that counts towards this start's time and passes."""
        began, passes = self.search.seconds(), self.search.passes
        try:
            return step(*arguments)
        finally:
            self.seconds += self.search.seconds() - began
            self.passes += self.search.passes - passes

    def _step(self, tol):
        """One majorant; returns a status where the descent ends."""
        majorant = self.oracle.majorant(self.w, self.config.majorant)
        inner = self._minimise(majorant, tol, self._warm(majorant))
        self.n_iter += 1
        exact = self._certify(majorant, inner)
        objective = self._evaluate(inner.w)
        contradiction = self._contradiction(inner, objective)
        if contradiction is not None:
            return self._give_up(contradiction)
        critical, before, origin = self.criticality <= tol, self.objective, self.w
        # the criticality is that of the w at hand: where it suffices, that w is the answer
        if objective < before and (exact or not critical):
            self._move(inner.w, objective)
            if self.config.extrapolate and not exact:
                self._extrapolate(inner.w - origin)
        self.inner, self.previous, self.previous_w = inner, majorant, origin
        self._record(inner)
        if critical:
            return Status.CRITICAL
        if self.search.stop is not None:
            return self.search.stop
        return Status.STALLED if self.objective >= before else None

    def _measure(self, tol):
        """The criticality of a point that no step started from."""
        majorant = self.oracle.majorant(self.w, self.config.majorant)
        self._certify(majorant, self._minimise(majorant, tol, self._warm(majorant)))

    @property
    def may_tie(self):
        """Whether there can be other majorants at w: not where they are the risk itself."""
        certified = self.lower_bound > -np.inf
        return self.config.max_ties > 0 and not certified and hasattr(self.oracle, "tied_majorants")

    def leaves_tie(self):
        """Try the majorants that break ties at w otherwise; whether one led to a lower point.

        At most `max_ties` of them, each to the tolerance, and no more than the time allows.
        """
        return self._timed(self._leave_tie, self.config.max_ties)

    def _leave_tie(self, limit):
        before, tol, worst = self.objective, self.config.tol, self.criticality
        for majorant in self.oracle.tied_majorants(self.w, self.alpha, limit):
            inner = self._minimise(majorant, tol, self._warm(majorant))
            self.n_iter += 1
            gap = relative_gap(before, inner.lower_bound)
            objective = self._evaluate(inner.w) if gap > tol else before
            if objective < before:
                self._move(inner.w, objective)
            self._record(inner)
            if objective < before:
                self.n_steps, self.reached = self.n_steps + 1, np.inf
                self.inner, self.previous, self.previous_w = None, None, None
                return True
            worst = max(worst, gap)
            if self.search.stop is not None:
                break
        self.criticality = worst
        return False

    def _certify(self, majorant, inner):
        """Take the criticality of w, and a bound where the majorant is the risk; whether it is."""
        self.criticality = relative_gap(self.objective, inner.lower_bound)
        exact = getattr(majorant, "exact", False)
        if exact and self.alpha == self.config.alpha:
            self.lower_bound = max(self.lower_bound, inner.lower_bound)
        return exact

    def _move(self, w, objective):
        """Go to a lower point; the criticality was that of the old one.

        It is not known of the new one, unless there is a bound of the risk itself.
        """
        self.w, self.objective = w, objective
        self.criticality = relative_gap(objective, self.lower_bound)

    def _record(self, inner):
        """Note one majorant; an interruption within it is one of the search."""
        self.search.record(
            self.objective if self.alpha == self.config.alpha else np.inf,
            self.lower_bound,
            0 if inner.cuts is None else inner.cuts[2].size,
        )
        if inner.status is Status.INTERRUPTED:
            self.search.stop = Status.INTERRUPTED

    def _minimise(self, majorant, tol, warm):
        """Solve the majorant as far as pays: at least half of what it allows, or to `tol`."""
        start, limit = self.objective, self.config.time_limit
        left = None if limit is None else max(limit - self.search.seconds(), 1e-3)
        inner = self.config._inner(self.alpha, getattr(majorant, "n_blocks", None), left)

        def enough(progress):
            possible = start - progress.lower_bound
            settled = possible <= tol * max(start, RISK_SCALE)
            return settled or start - progress.objective >= _SHARE * possible

        try:
            result = inner.solve(majorant, self.w, enough, warm)
        except InputError:
            if warm is None:
                raise
            # far out the cuts that were carried over have lost their digits, and exceed the risk
            result = inner.solve(majorant, self.w, enough)
        self.search.passes += result.data_passes
        return result

    def _warm(self, majorant):
        if self.inner is None or not hasattr(majorant, "comparable"):
            return None
        if not majorant.comparable(self.previous):
            return None
        cuts = majorant.reuse(self.previous, self.inner.cuts)
        # `problem` would tell the last majorant from this one
        return replace(self.inner, cuts=cuts, problem=None) if cuts[2].size else None

    def _contradiction(self, inner, risk):
        """What shows that the majorant is none; None where it keeps its promises."""
        if inner.status is Status.INCONSISTENT:
            return "its own cuts exceed it"
        slack = _ROUNDING * max(1.0, abs(self.objective))
        if inner.objective > self.objective + slack:
            return f"it rose from {self.objective!r} to {inner.objective!r} at its own point"
        if risk > inner.objective + slack:
            return f"at {inner.objective!r} it is below the objective {risk!r}"
        return None

    def _give_up(self, contradiction):
        self.criticality = np.inf
        self.search.failure = (f"A majorant contradicts the risk: {contradiction}.",)
        self.search.stop = Status.INCONSISTENT
        return Status.INCONSISTENT

    def _extrapolate(self, step):
        """Double the step while F decreases, and there is time."""
        while not self.search.late():
            w = self.w + step
            objective = self._evaluate(w)
            if not objective < self.objective:
                return
            self.w, self.objective, step = w, objective, 2.0 * step

    def _best_scale(self):
        """Scale the start."""
        self.objective = self._evaluate(self.w)
        if not self.config.rescale:
            return
        for scales in (_SCALES, (0.5, 2.0)):
            if self.search.late():
                return
            candidates = [scale * self.w for scale in scales]
            values = [self._evaluate(w) for w in candidates]
            best = int(np.argmin(values))
            if values[best] < self.objective:
                self.w, self.objective = candidates[best], values[best]

    def _set_alpha(self, alpha):
        if alpha == self.alpha:
            return
        self.objective += float((alpha - self.alpha) / 2 * (self.w @ self.w))
        self.alpha, self.criticality = alpha, np.inf

    def _evaluate(self, w):
        self.search.passes += 1
        return float(self.alpha / 2 * (w @ w) + self.oracle(w)[0])
