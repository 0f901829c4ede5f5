"""Solvers that a ranker is given as objects: the package's, and those of a user's own."""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, as_floats, check_number
from structsvm_papk.solvers.oracle import Oracle, evaluated
from structsvm_papk.solvers.solver import (
    RISK_SCALE,
    Progress,
    ResultStore,
    Solver,
    SolverResult,
    Status,
)

_AGREES = 1e-6  # relative difference of two computations of one objective
_WHAT = (
    "solver must be a name, a solver such as CuttingPlane(alpha=0.1), an object with a number "
    "`alpha` and a method solve(risk, w_init, callback), or a function of (risk, alpha)"
)


def name_of(solver: Any) -> str:
    """What messages and model files call a solver that is an object."""
    function = solver.func if isinstance(solver, functools.partial) else solver
    name = getattr(function, "name", None) or getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(solver).__name__


def alpha_of(solver: Any) -> float | None:
    """The strength that an object holds; None for a function, which is told."""
    check_solver(solver)
    return float(solver.alpha) if _is_object(solver) else None


def check_solver(solver: Any) -> None:
    """Refuse what is no solver."""
    if isinstance(solver, Solver):
        return
    if isinstance(solver, type):
        raise InputError(f"{_WHAT}; {solver.__name__} is a class: give {solver.__name__}(..)")
    if _is_object(solver):
        if not hasattr(solver, "alpha"):
            raise InputError(
                f"{name_of(solver)} has no attribute alpha, the strength of the penalty: give it "
                "one, or give a function of (risk, alpha)"
            )
        check_number(f"alpha of {name_of(solver)}", solver.alpha, above=0)
        _check_call(solver.solve, ("risk", "w_init", "callback"), f"solve of {name_of(solver)}")
    elif callable(solver):
        _check_call(solver, ("risk", "alpha"), name_of(solver))
    else:
        raise InputError(f"{_WHAT}, got {solver!r:.80}")


def ready(solver: Any, alpha: float, given: Mapping[str, Any]) -> Any:
    """What solves with an object: the solver itself, or an `OwnSolver`.

    `given` are the settings of the ranker that are not as by default.
    """
    check_solver(solver)
    name = name_of(solver)
    its_alpha = alpha_of(solver)
    if its_alpha is not None and not math.isclose(its_alpha, alpha, rel_tol=1e-12):
        raise InputError(
            f"alpha is {alpha:g}, that of solver {name} {its_alpha:g}: give one of them"
        )
    for setting, value in given.items():
        if not hasattr(solver, setting):
            raise InputError(f"solver {name} has no {setting}: leave out {setting}={value!r}")
        if getattr(solver, setting) != value:
            raise InputError(
                f"{setting} is {value!r}, that of solver {name} {getattr(solver, setting)!r}: give "
                "it to the solver alone"
            )
    signs = getattr(solver, "positive", False)
    if np.ndim(signs) and np.any(signs):
        raise InputError(
            f"solver {name} has positive for single weights: a ranker takes it for all or none"
        )
    positive = bool(np.any(signs))
    if positive and "positive" not in given:
        raise InputError(f"solver {name} has positive=True: give it to the ranker, too")
    return solver if isinstance(solver, Solver) else OwnSolver(solver, alpha, positive)


@dataclass(frozen=True)
class OwnSolver:
    """A solver of a user's own, called as the package's are; what it returns is checked."""

    solver: Any
    alpha: float
    positive: bool = False

    def solve(
        self,
        risk: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        checkpoint: ResultStore | None = None,
    ) -> SolverResult:
        """Minimise; a vector that is returned becomes a result without a certificate."""
        name = name_of(self.solver)
        if checkpoint is not None:
            raise InputError(f"solver {name} is none of the package's: it takes no checkpoint")
        started = time.perf_counter()
        if _is_object(self.solver):
            returned = self.solver.solve(risk, w_init, callback)
        elif w_init is not None:
            raise InputError(f"{name}(risk, alpha) takes no start: leave out warm_start")
        else:
            returned = self.solver(risk, self.alpha)
        seconds = time.perf_counter() - started
        is_result = isinstance(returned, SolverResult)
        w = self._weights(returned.w if is_result else returned, risk.n_features)
        with np.errstate(over="ignore"):
            objective = float(self.alpha / 2 * (w @ w) + evaluated(risk, w)[0])
        if not np.isfinite(objective):
            raise InputError(f"solver {name} returns weights so large that their objective is inf")
        if is_result:
            result = self._typed(returned)
            self._check(result, objective, evaluated(risk, np.zeros_like(w))[0])
            return replace(result, w=w, alpha=self.alpha)
        end = Progress(1, seconds, 1, objective, -np.inf, 0)  # how it got there is not known
        return SolverResult(w, objective, -np.inf, Status.FINISHED, (end,), self.alpha)

    def _weights(self, given: Any, n_features: int) -> Array:
        w = np.array(as_floats(f"what solver {name_of(self.solver)} returns", given))
        if w.shape != (n_features,) or not np.isfinite(w).all():
            raise InputError(
                f"solver {name_of(self.solver)} must return a SolverResult, or finite weights of "
                f"shape ({n_features},), got shape {w.shape}: {w!r:.80}"
            )
        if self.positive and (w < 0.0).any():
            raise InputError(f"solver {name_of(self.solver)} has positive=True, but w.min() < 0")
        return w

    def _typed(self, result: SolverResult) -> SolverResult:
        """The result with its fields as the types that they are declared to be."""
        try:
            return replace(
                result,
                objective=float(result.objective),
                lower_bound=float(result.lower_bound),
                status=Status(result.status),
                history=tuple(result.history),
                notes=(result.notes,) if isinstance(result.notes, str) else tuple(result.notes),
            )
        except (TypeError, ValueError) as error:
            raise InputError(
                f"solver {name_of(self.solver)} returns a SolverResult that is none: {error}"
            ) from None

    def _check(self, result: SolverResult, objective: float, at_zero: float) -> None:
        """Refuse a result that contradicts the risk or itself."""
        room = _AGREES * max(abs(objective), RISK_SCALE)
        if not abs(result.objective - objective) <= room:
            raise InputError(
                f"solver {name_of(self.solver)} returns the objective {result.objective:.9g}, but "
                f"alpha/2 ||w||^2 + risk(w) is {objective:.9g}"
            )
        if not result.lower_bound <= result.objective + room:
            raise InputError(
                f"solver {name_of(self.solver)} returns the lower bound {result.lower_bound:.9g} "
                f"above its own objective {result.objective:.9g}"
            )
        if result.lower_bound > at_zero + room:
            raise InputError(
                f"solver {name_of(self.solver)} returns the lower bound {result.lower_bound:.9g}, "
                f"but the objective of w = 0 is {at_zero:.9g}"
            )
        if result.status in (Status.CONVERGED, Status.DEGENERATE) and result.gap == np.inf:
            raise InputError(
                f"solver {name_of(self.solver)} returns the status {result.status} without a lower "
                "bound: 'finished' says that the steps are done"
            )


def _is_object(solver: Any) -> bool:
    return callable(getattr(solver, "solve", None)) and not isinstance(solver, type)


def _check_call(function: Any, arguments: tuple[str, ...], name: str) -> None:
    """Refuse a function that cannot be called with these arguments by position."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError as error:
        raise InputError(f"{name} must take ({', '.join(arguments)}): {error}") from None
    except ValueError:  # written in C: nothing says what it takes
        return
