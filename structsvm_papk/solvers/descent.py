"""The two phases of the convex-concave procedure (`cccp`).

    quasi_newton      phase 1: down the risk itself, by L-BFGS
    follow_majorants  phase 2: majorant after majorant, until w is critical

Each takes a problem, a point and a budget, and returns the point that it has come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import scipy  # its parts load when they are first used

from structsvm_papk._types import Array
from structsvm_papk.solvers.oracle import MajorisedOracle, Oracle, as_oracle
from structsvm_papk.solvers.solver import (
    CONTRADICTION,
    RISK_SCALE,
    Clock,
    SolverResult,
    Status,
    floor_of,
    relative_gap,
)

_MEMORY = 20  # steps from which L-BFGS estimates the curvature
_WINDOW = 10  # L-BFGS steps whose decrease foretells that of as many more


@dataclass(frozen=True)
class Iterate:
    """A point w, and what is known of it.

    Attributes
    ----------
    w : ndarray of shape (n_features,)
    risk : float
        R(w).
    alpha : float
        That of the objective; in a continuation larger than that of the solver.
    criticality : float
        See `CCCPResult`; inf where it was not measured.
    lower_bound : float
        Of the objective at any w, where the majorants are the risk itself; else -inf.
    status : Status or None
        Why `follow_majorants` ended here; None where the run goes on from here.
    notes : tuple of str
        What else there is to say about that.
    """

    w: np.ndarray
    risk: float
    alpha: float
    criticality: float = np.inf
    lower_bound: float = -np.inf
    status: Status | None = None
    notes: tuple[str, ...] = ()

    @property
    def objective(self) -> float:
        """``alpha/2 ||w||^2 + R(w)``."""
        return float(self.alpha / 2 * (self.w @ self.w) + self.risk)

    @property
    def exact(self) -> bool:
        """Whether the majorants are the risk itself, which is convex then."""
        return self.lower_bound > -np.inf

    def with_alpha(self, alpha: float) -> Iterate:
        """The same w at another alpha, where it is not known how critical it is."""
        if alpha == self.alpha:
            return self
        return replace(self, alpha=alpha, criticality=np.inf, lower_bound=-np.inf)

    def moved(self, w: Array, risk: float) -> Iterate:
        """Another point; a bound of the objective at any w is one there as well."""
        objective = float(self.alpha / 2 * (w @ w) + risk)
        return Iterate(
            w=w,
            risk=risk,
            alpha=self.alpha,
            criticality=relative_gap(objective, self.lower_bound),
            lower_bound=self.lower_bound,
        )


@dataclass(frozen=True)
class PenalisedRisk:
    """``alpha/2 ||w||^2 + R(w)`` for several alphas, and the settings of its `CCCP`.

    `risk` and `majorised` are the same R: an evaluation costs less without blocks, and majorants
    have the blocks of the risk that they are made from.
    """

    config: Any
    risk: Oracle
    majorised: MajorisedOracle

    def evaluate(self, w: Array, alpha: float, budget: Budget) -> Iterate:
        """The point at w."""
        budget.passes += 1
        return Iterate(w=w, risk=float(self.risk(w)[0]), alpha=alpha)


class Budget(Protocol):
    """What a phase may spend, and whom it tells how far it has come.

    Attributes
    ----------
    clock : Clock
        No evaluation is begun when it is late.
    passes : int
        Evaluations so far, which a phase counts up.
    stop : Status or None
        Why the run has to end, such as 'stopped' by the callback; asked after every step.
    """

    clock: Clock
    passes: int
    stop: Status | None

    def keep(self, point: Iterate) -> None:
        """Keep a better point; it is what a run returns that is interrupted now."""

    def show(self, point: Iterate) -> None:
        """Show a point within an iteration; the caller may stop the run."""

    def note(self, point: Iterate, lowered: SolverResult | None = None) -> None:
        """Note an iteration: a majorant, or all of `quasi_newton`."""

    def keep_result(self) -> None:
        """Keep the result so far, now and then; between iterations."""


# --- phase 1: down the risk ---------------------------------------------------------------------


def quasi_newton(
    problem: PenalisedRisk, point: Iterate, budget: Budget, rival: float = np.inf
) -> Iterate:
    """Go down the risk itself by L-BFGS, until that leads no further.

    A mean over many lists is nearly smooth, and a majorant then allows short steps only: without
    this phase a solve takes 1.3 to 1.9 times as long, and ends higher half of the time. A descent
    that is not about to come below `rival`, the objective of another start, is given up.
    """
    config = problem.config
    alpha = point.alpha
    if not config.quasi_newton or budget.clock.late():
        return point
    best = point
    lowest = point.objective
    # L-BFGS ends where the objective is flat: so does a line search that is late
    flat = np.zeros_like(point.w)

    def objective_and_slope(w: Array) -> tuple[float, Array]:
        nonlocal best, lowest
        if budget.clock.late():
            return lowest, flat
        budget.passes += 1
        value, slope = problem.risk(w)
        if slope is None:  # a risk may give values alone
            return lowest, flat
        objective = float(alpha / 2 * (w @ w) + value)
        # the risk has kinks: a line search may have been lower than where it ends
        if objective < lowest:
            lowest = objective
            best = point.moved(w.copy(), float(value))
            budget.keep(best)
        return objective, alpha * w + slope

    objectives = [lowest]
    floor = floor_of(config.positive, point.w.size)

    def after_step(_: Array) -> None:
        objectives.append(lowest)
        budget.show(best)
        if budget.stop is not None or _promises_little(objectives, config.tol, rival):
            raise StopIteration  # which tells SciPy to end

    scipy.optimize.minimize(
        objective_and_slope,
        point.w,
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, None) for low in floor.tolist()] if floor.max() == 0.0 else None,
        callback=after_step,
        options={"maxfun": config.quasi_newton, "maxcor": _MEMORY},
    )
    if best is not point and budget.stop is None:
        budget.note(best)
    return best


def _promises_little(objectives: list[float], tol: float, rival: float) -> bool:
    """Whether the last steps foretell less than the tolerance, or less than a rival has."""
    if len(objectives) <= _WINDOW:
        return False
    decrease = objectives[-1 - _WINDOW] - objectives[-1]
    little = tol * max(objectives[-1], RISK_SCALE)
    return decrease <= little or objectives[-1] - decrease >= rival


# --- phase 2: majorants -------------------------------------------------------------------------


def follow_majorants(
    problem: PenalisedRisk, point: Iterate, budget: Budget, tol: float, limit: int
) -> Iterate:
    """Go to the minimiser of majorant after majorant, at most `limit`, until w is critical.

    The point has the status 'critical' where its criticality is at most `tol`, 'stalled' where its
    majorant leads no lower, 'inconsistent' where it was none, and 'max_iter' at the limit.
    """
    for _ in range(limit):
        before = point.objective
        # 1. the majorant at w is lowered; what that leaves is how critical w is
        majorant = as_oracle(problem.majorised.majorant(point.w))
        lowered = _lower(problem, majorant, point, budget)
        here = _measured(point, majorant, lowered)
        critical = here.criticality <= tol
        # 2. the risk at its minimiser; it is not above the majorant
        there = problem.evaluate(lowered.w, point.alpha, budget)
        contradiction = _contradiction(point, lowered, there)
        if contradiction is not None:
            notes = (f"A majorant contradicts the risk: {contradiction}.",)
            return replace(point, criticality=np.inf, status=Status.INCONSISTENT, notes=notes)
        # 3. go there; a w that is critical is the answer itself
        point = here
        if there.objective < before and (here.exact or not critical):
            point = here.moved(there.w, there.risk)
            budget.keep(point)
        budget.keep(point)
        budget.note(point, lowered)
        # 4. enough?
        if critical:
            return replace(point, status=Status.CRITICAL)
        if budget.stop is not None:
            return replace(point, status=budget.stop)
        if point.objective >= before:
            return replace(point, status=Status.STALLED)
        budget.keep_result()
    if point.criticality == np.inf:  # the last step moved the point
        majorant = as_oracle(problem.majorised.majorant(point.w))
        lowered = _lower(problem, majorant, point, budget)
        point = _measured(point, majorant, lowered)
    critical = point.criticality <= tol
    return replace(point, status=Status.CRITICAL if critical else Status.MAX_ITER)


def _lower(
    problem: PenalisedRisk, majorant: Oracle, point: Iterate, budget: Budget
) -> SolverResult:
    """The minimiser of a majorant, from the point that it belongs to."""
    inner = problem.config.inner(majorant.n_blocks, point.alpha, budget.clock.left())
    result = inner.solve(majorant, point.w)
    budget.passes += result.data_passes
    return result


def _measured(point: Iterate, majorant: Oracle, lowered: SolverResult) -> Iterate:
    """The point with its criticality, and with a bound where the majorant is the risk itself."""
    lower_bound = point.lower_bound
    if majorant.exact:
        lower_bound = max(lower_bound, lowered.lower_bound)
    return replace(
        point,
        criticality=relative_gap(point.objective, lowered.lower_bound),
        lower_bound=lower_bound,
    )


def _contradiction(point: Iterate, lowered: SolverResult, there: Iterate) -> str | None:
    """What shows that it is not a majorant; None where it keeps its promises."""
    if lowered.status is Status.INCONSISTENT:
        return "its own cuts exceed it"
    slack = CONTRADICTION * max(1.0, abs(point.objective))
    if lowered.objective > point.objective + slack:
        return f"it rose from {point.objective!r} to {lowered.objective!r} at its own point"
    if there.objective > lowered.objective + slack:
        return f"at {lowered.objective!r} it is below the objective {there.objective!r}"
    return None
