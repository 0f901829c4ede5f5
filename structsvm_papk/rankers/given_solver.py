"""Solvers that a ranker is given as objects: the package's, and those of a user's own."""

from __future__ import annotations

import functools
import inspect
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import InputError, as_floats, check_number
from structsvm_papk.solvers.oracle import Oracle, evaluated
from structsvm_papk.solvers.solver import (
    CONTRADICTION,
    Progress,
    ResultStore,
    Solver,
    SolverResult,
    Status,
)

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
    return float(solver.alpha) if hasattr(solver, "solve") else None


def check_solver(solver: Any) -> None:
    """Refuse what is no solver."""
    name = name_of(solver)
    is_object = hasattr(solver, "solve")
    call = solver.solve if is_object else solver
    arguments = ("risk", "w_init", "callback") if is_object else ("risk", "alpha")
    if isinstance(solver, type) or not callable(call):
        raise InputError(f"{_WHAT}, got {solver!r:.80}")
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError as error:
        raise InputError(f"solver {name} must take ({', '.join(arguments)}): {error}") from None
    except ValueError:  # written in C: nothing says what it takes
        pass
    if is_object:
        check_number(f"alpha of solver {name}", getattr(solver, "alpha", None), above=0)


def adapted(solver: Any, alpha: float, given: Mapping[str, Any]) -> Solver[Any] | OwnSolver:
    """What solves with an object: the solver itself, or an `OwnSolver`.

    `given` are the settings of the ranker that are not as by default, and `positive`: the object
    must have the same.
    """
    own_alpha = alpha_of(solver)
    if own_alpha is not None:
        given = {"alpha": alpha, **given}
    for setting, value in given.items():
        its: Any = getattr(solver, setting, False if setting == "positive" else None)
        if not np.array_equal(its, value):
            raise InputError(
                f"{setting} is {value!r}, that of solver {name_of(solver)} {its!r}: they must agree"
            )
    if isinstance(solver, Solver):
        return solver
    return OwnSolver(solver, alpha, bool(given["positive"]))


@dataclass(frozen=True)
class OwnSolver:
    """A solver of a user's own, called as the package's are."""

    solver: Any
    alpha: float
    positive: bool

    def solve(
        self,
        risk: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        checkpoint: ResultStore | None = None,
    ) -> SolverResult:
        """Minimise; what is returned, with the objective at its w."""
        name = name_of(self.solver)
        is_object = hasattr(self.solver, "solve")
        if checkpoint is not None:
            raise InputError(f"solver {name} is none of the package's: it takes no checkpoint")
        if w_init is not None and not is_object:
            raise InputError(f"{name}(risk, alpha) takes no start: leave out warm_start")
        started = time.perf_counter()
        if is_object:
            returned = self.solver.solve(risk, w_init, callback)
        else:
            returned = self.solver(risk, self.alpha)
        return self._result(risk, returned, time.perf_counter() - started)

    def _result(self, risk: Oracle, returned: Any, seconds: float) -> SolverResult:
        """The result; of weights alone there is no certificate, and of what led there no history.

        A lower bound is refused where the objective, there or at w = 0, contradicts it.
        """
        name = name_of(self.solver)
        is_result = isinstance(returned, SolverResult)
        given = returned.w if is_result else returned
        w = np.array(as_floats(f"what solver {name} returns", given))
        if w.shape != (risk.n_features,) or not np.isfinite(w).all():
            raise InputError(
                f"solver {name} must return a SolverResult, or finite weights of shape "
                f"({risk.n_features},), got shape {w.shape}: {w!r:.80}"
            )
        if self.positive and (w < 0.0).any():
            raise InputError(f"solver {name} has positive=True, but w.min() < 0")
        with np.errstate(over="ignore"):
            objective = float(self.alpha / 2 * (w @ w) + evaluated(risk, w)[0])
        if not np.isfinite(objective):
            raise InputError(f"solver {name} returns weights so large that their objective is inf")
        end = Progress(1, seconds, 1, objective, -np.inf, 0)
        result = SolverResult(w, objective, -np.inf, Status.FINISHED, (end,), self.alpha)
        if not is_result:
            return result
        notes = (returned.notes,) if isinstance(returned.notes, str) else returned.notes
        try:
            result = replace(
                result,
                lower_bound=float(returned.lower_bound),
                status=Status(returned.status),
                history=tuple(returned.history),
                notes=tuple(notes),
            )
        except (TypeError, ValueError) as error:
            raise InputError(
                f"solver {name} returns a SolverResult that is none: {error}"
            ) from None
        least = min(objective, evaluated(risk, np.zeros_like(w))[0])
        if not result.lower_bound <= least + CONTRADICTION * max(1.0, least):
            raise InputError(
                f"solver {name} returns the lower bound {result.lower_bound:.9g}, but an objective "
                f"is {least:.9g}"
            )
        if result.lower_bound == -np.inf and result.status in (Status.CONVERGED, Status.DEGENERATE):
            return replace(result, status=Status.FINISHED)
        return replace(result, lower_bound=min(result.lower_bound, objective))
