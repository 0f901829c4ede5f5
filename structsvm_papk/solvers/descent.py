"""One start of the convex-concave procedure: majorant after majorant, see `cccp`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any
from weakref import proxy

import numpy as np
from scipy.optimize import minimize

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.solvers.oracle import BlockOracle, LineOracle, Majorant, as_oracle
from structsvm_papk.solvers.result import RISK_SCALE, Status, relative_gap
from structsvm_papk.solvers.rounding import CONTRADICTION

SCOUT = 3e-3  # criticality to which starts that do not race are followed before the best goes on
_MEMORY = 20  # steps from which L-BFGS estimates the curvature
_SHARE = 0.5  # of the decrease that a majorant still allows: enough to move on
_FACTORS = ((16.0, 5), (4.0, 1), (2.0, 1))  # by which a start is scaled, and how often
_WINDOW = 10  # quasi-Newton steps whose decrease foretells that of as many more


class _EndOfSlide(Exception):
    """Breaks off L-BFGS."""


@dataclass(frozen=True)
class StartReport:
    """One start of `CCCP`: where it ended.

    `initial` is the objective at the start, after scaling it; `criticality` is as in `CCCPResult`,
    inf for a start that lost the race; `n_iter` counts majorants and descents by quasi-Newton
    steps. Only the best start is `polished`, followed to the tolerance.
    """

    name: str
    initial: float
    objective: float
    criticality: float
    n_iter: int
    polished: bool
    w: np.ndarray = field(repr=False)


class Descent:
    """One start: majorant after majorant."""

    def __init__(self, search: Any, name: str, w: Array) -> None:
        self.search: Any = proxy(search)  # a cycle would keep the risk's data for a while
        self.config = search.config
        self.ladder = search.ladder
        self.risk = search.risk
        self.oracle = search.majorised
        self.name = name
        self.alpha = search.config.alpha
        self.stage = 0  # place in the continuation
        self.n_steps = 0  # majorants there
        self.reached = np.inf  # tolerance to which this stage was followed to its end
        self.n_iter = 0
        self.slid = False  # whether the point is where a slide ended
        self.n_tied = 0  # majorants tried here that break ties otherwise
        self.lower_bound = -np.inf
        self.criticality = np.inf
        # the last majorant, and what its minimiser answered
        self.previous: Any = None
        self.inner: Any = None
        self.w, self.objective = self._best_scale(w)
        self.initial = self.objective

    def follow(self, tol: float) -> Status:
        """Descend until the criticality is at most `tol`, through the continuation first."""
        try:
            while self.stage < len(self.ladder):
                self._set_alpha(self.ladder[self.stage] * self.config.alpha)
                self._loop(max(tol, SCOUT))
                if self.search.stop is not None:
                    return self.search.stop
                self.stage = self.stage + 1
                self.n_steps = 0
                self.reached = np.inf
            self._set_alpha(self.config.alpha)
            return self._loop(tol)
        finally:
            self._set_alpha(self.config.alpha)

    def report(self, polished: bool) -> StartReport:
        """How it ended."""
        place = self.initial, self.objective, self.criticality
        return StartReport(self.name, *place, self.n_iter, polished, self.w)

    def _loop(self, tol):
        if self.reached <= tol:
            return Status.CRITICAL if self.criticality <= tol else Status.STALLED
        if self.n_steps == 0:
            self.slide()
            if self.search.stop is not None:
                return self.search.stop
        while self.n_steps < self.config.max_iter:
            status = self._step(tol)
            if status in (Status.CRITICAL, Status.STALLED):
                self.reached = tol
            if status is not None:
                return status
            self.search.offer()
        if self.criticality == np.inf:  # the last step moved the point
            majorant = as_oracle(self.oracle.majorant(self.w))
            self._certify(majorant, self._minimise(majorant, tol))
        return Status.CRITICAL if self.criticality <= tol else Status.MAX_ITER

    def slide(self, rival: float = np.inf) -> None:
        """Go down the risk itself by L-BFGS, until that leads no further.

        A mean over many lists is nearly smooth, and a majorant then allows short steps only. A
        slide that is not about to come below `rival`, the objective of another start, is given up.
        """
        if not self.config.quasi_newton or self.slid or self.search.clock.late():
            return
        start = self.w
        trail = [self.objective]

        def after_step(_):
            trail.append(self.objective)
            self.search.show(self._shown(), self.lower_bound)
            if self.search.stop is not None or self._leads_nowhere(trail, rival):
                raise _EndOfSlide

        with suppress(_EndOfSlide):
            minimize(
                self._slope,
                self.w,
                jac=True,
                method="L-BFGS-B",
                bounds=[(0.0, None)] * self.w.size if self.config.positive else None,
                callback=after_step,
                options={"maxfun": self.config.quasi_newton, "maxcor": _MEMORY},
            )
        if self.search.stop is None:
            self.slid = True
            if self.w is not start:
                self.n_iter += 1
                self._record()

    def _leads_nowhere(self, trail, rival):
        """Whether the last steps foretell less than the tolerance, or less than a rival has."""
        if len(trail) <= _WINDOW:
            return False
        decrease = trail[-1 - _WINDOW] - trail[-1]
        little = self.config.tol * max(trail[-1], RISK_SCALE)
        return decrease <= little or trail[-1] - decrease >= rival

    def _slope(self, w):
        """F and a subgradient; the lowest point is kept. A risk may give values alone."""
        if self.search.clock.late():
            self.search.stop = Status.TIME_LIMIT
            raise _EndOfSlide
        self.search.passes += 1
        value, slope = self.risk(w)
        if slope is None:
            raise _EndOfSlide
        objective = float(self.alpha / 2 * (w @ w) + value)
        if objective < self.objective:
            self._move(w.copy(), objective)
        return objective, self.alpha * w + slope

    def _step(self, tol):
        """One majorant; returns a status where the descent ends."""
        majorant = as_oracle(self.oracle.majorant(self.w))
        inner = self._minimise(majorant, tol)
        self.n_iter = self.n_iter + 1
        self.n_steps = self.n_steps + 1
        exact = self._certify(majorant, inner)
        objective = self._evaluate(inner.w)
        contradiction = self._contradiction(inner, objective)
        if contradiction is not None:
            self.criticality = np.inf
            self.search.stop = Status.INCONSISTENT
            self.search.failure = (f"A majorant contradicts the risk: {contradiction}.",)
            return self.search.stop
        critical = self.criticality <= tol
        before = self.objective
        origin = self.w
        # the criticality is that of the w at hand: where it suffices, that w is the answer
        if objective < before and (exact or not critical):
            self._move(inner.w, objective)
            if self.config.extrapolate and not exact:
                self._extrapolate(inner.w - origin)
        self.inner = inner
        self.previous = majorant
        self._record(inner)
        if critical:
            return Status.CRITICAL
        if self.search.stop is not None:
            return self.search.stop
        return Status.STALLED if self.objective >= before else None

    def goes_down_from_tie(self) -> bool:
        """Try `max_ties` majorants that break ties at w otherwise; whether one led lower."""
        before = self.objective
        tol = self.config.tol
        tied = self.oracle.tied_majorants(self.w, self.alpha, self.config.max_ties)
        for majorant in map(as_oracle, islice(tied, self.n_tied, None)):
            inner = self._minimise(majorant, tol)
            self.n_iter += 1
            self.n_tied += 1
            gap = relative_gap(before, inner.lower_bound)
            objective = self._evaluate(inner.w) if gap > tol else before
            if objective < before:
                self._move(inner.w, objective)
                self.n_steps = self.n_steps + 1
                self.reached = np.inf
                self.inner = None
                self.previous = None
            else:
                self.criticality = max(self.criticality, gap)
            self._record(inner)
            if objective < before or self.search.stop is not None:
                break
            self.search.offer()
        return self.objective < before

    def _certify(self, majorant, inner):
        """Take the criticality of w, and a bound where the majorant is the risk; whether it is."""
        self.criticality = relative_gap(self.objective, inner.lower_bound)
        exact = isinstance(majorant, Majorant) and majorant.exact
        if exact and self.alpha == self.config.alpha:
            self.lower_bound = max(self.lower_bound, inner.lower_bound)
        return exact

    def _move(self, w, objective):
        """Go to a lower point; the criticality was that of the old one.

        It is not known of the new one, unless there is a bound of the risk itself.
        """
        criticality = relative_gap(objective, self.lower_bound)
        # no call between these, so that no interrupt comes between a point and its objective
        self.w = w
        self.objective = objective
        self.criticality = criticality
        self.slid = False
        self.n_tied = 0

    def _record(self, inner=None):
        """Note one majorant, or a slide; an interruption within it is one of the search."""
        n_cuts = 0 if inner is None or inner.cuts is None else inner.cuts[2].size
        self.search.note(self._shown(), self.lower_bound, n_cuts)
        if inner is not None and inner.status is Status.INTERRUPTED:
            self.search.stop = Status.INTERRUPTED

    def _shown(self):
        """The objective, unless it is one of a larger alpha."""
        return self.objective if self.alpha == self.config.alpha else np.inf

    def _minimise(self, majorant, tol):
        """Solve the majorant as far as pays: at least half of what it allows, or to `tol`."""
        start = self.objective
        warm = self._warm(majorant)
        n_blocks = majorant.n_blocks if isinstance(majorant, BlockOracle) else 1
        inner = self.config.inner(self.alpha, n_blocks, self.search.clock.left())
        inner = inner.suited_to(majorant)

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
        if self.inner is None or not isinstance(majorant, Majorant):
            return None
        cuts = majorant.transfer_cuts(self.previous, self.inner.cuts)
        if cuts is None or not cuts[2].size:
            return None
        *blocks, _ = self.inner.problem
        return replace(self.inner, cuts=cuts, problem=(*blocks, majorant), evaluation=None)

    def _contradiction(self, inner, risk):
        """What shows that it is not a majorant; None where it keeps its promises."""
        if inner.status is Status.INCONSISTENT:
            return "its own cuts exceed it"
        slack = CONTRADICTION * max(1.0, abs(self.objective))
        if inner.objective > self.objective + slack:
            return f"it rose from {self.objective!r} to {inner.objective!r} at its own point"
        if risk > inner.objective + slack:
            return f"at {inner.objective!r} it is below the objective {risk!r}"
        return None

    def _extrapolate(self, step):
        """Double the step while F decreases, and there is time."""
        while not self.search.clock.late():
            w = self.w + step
            w = np.maximum(w, 0.0) if self.config.positive else w
            objective = self._evaluate(w)
            if not objective < self.objective:
                return
            self.w = w
            self.objective = objective
            step = 2.0 * step

    def _best_scale(self, w):
        """A start and its objective, scaled by powers of two, so that scores do not round."""
        objective = self._evaluate(w)
        best = 1.0
        if not self.config.rescale or not w.any():
            return w, objective
        line = self._ray(w)
        for factor, times in _FACTORS:
            for step in (factor, 1.0 / factor):
                for _ in range(times):
                    if self.search.clock.late():
                        break
                    value = line(step * best)
                    if not value < objective:
                        break
                    best = step * best
                    objective = value
        return best * w, objective

    def _ray(self, w):
        """``t -> F(t w)``; one product with the data serves for all t where scores are linear."""
        if not isinstance(self.risk, LineOracle):
            return lambda t: self._evaluate(t * w)
        scores = self.risk.scores(w)
        line = self.risk.along(np.zeros_like(scores), scores)

        def objective(t):
            self.search.passes += 1
            return float(self.alpha / 2 * t**2 * (w @ w) + line(t)[0])

        return objective

    def _set_alpha(self, alpha):
        if alpha == self.alpha:
            return
        self.objective += float((alpha - self.alpha) / 2 * (self.w @ self.w))
        self.alpha = alpha
        self.criticality = np.inf
        self.slid = False

    def _evaluate(self, w):
        self.search.passes += 1
        return float(self.alpha / 2 * (w @ w) + self.risk(w)[0])
