"""How a ranker solves: by the name of a solver, or by an object or a function that it is given.

`solver_choice` tells these apart, once; what each of them can do is a `SolverChoice`. What a solve
has to say on the way are the lines of a `Log`.
"""

from __future__ import annotations

import inspect
import logging
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.errors import (
    InputError,
    as_floats,
    check_callback,
    check_choice,
    check_number,
)
from structsvm_papk.solvers.averaged_subgradient import AveragedSubgradient, StochasticSubgradient
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.oracle import Oracle, evaluated
from structsvm_papk.solvers.solver import (
    CONTRADICTION,
    Progress,
    ResultStore,
    Solver,
    SolverResult,
    Status,
    not_convex,
)
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates.losses import SURROGATES

_LOGGER = logging.getLogger("structsvm_papk")
_LOGGER.addHandler(logging.NullHandler())
_INTERVAL = 1.0  # seconds between lines of the log
_LEAST_SECONDS = 1e-3  # that a solver is given, whatever was spent before
_SOLVERS: dict[str, Any] = {
    "cutting_plane": CuttingPlane,
    "dual_ascent": DualAscent,
    "cccp": CCCP,
    "subgradient": SubgradientDescent,
    "averaged": AveragedSubgradient,
    "stochastic": StochasticSubgradient,
}
SOLVERS = ("auto", *_SOLVERS, "one_slack")


def solver_name(name: str, surrogate: Surrogate) -> str:
    """The solver called `name`, where it can solve the surrogate.

    ``auto`` is the cutting plane for convex surrogates, in whose place `make_solver` may put the
    dual ascent when the data are known, CCCP for those with convex majorants (Ramp, ClippedRamp),
    and subgradient descent for the rest (TS_alg2).
    """
    check_choice("solver", name, SOLVERS)
    if name == "auto":
        if surrogate.convex:
            return "cutting_plane"
        return "cccp" if surrogate.majorised else "subgradient"
    if name == "cccp" and not surrogate.majorised:
        able = [other for other, cls in SURROGATES.items() if cls.majorised]
        raise InputError(f"CCCP solves {' and '.join(able)}, not {surrogate.name!r}")
    if (name == "one_slack" or _SOLVERS[name].convex_only) and not surrogate.convex:
        raise not_convex(f"surrogate {surrogate.name!r}")
    if name == "dual_ascent" and not surrogate.weighs_negatives:
        raise InputError(f"the dual ascent solves Avg, not {surrogate.name!r}: use cutting_plane")
    return name


def make_solver(
    name: str, surrogate: Surrogate, alpha: float, risk: Oracle | None = None, **settings: Any
) -> Any:
    """The solver called `name`, one of `SOLVERS`, for a surrogate.

    With a risk, 'auto' is the dual ascent where the risk says that this is likely to be faster than
    cutting planes, and weights may be negative.

    `settings` are fields of the solver, or refused; those that are None keep its own default.
    Descents have steps of at most 1 / alpha, unless ``eta`` is given.
    """
    free = not np.any(settings.get("positive", False))
    pays = risk is not None and surrogate.convex and free and risk.suits_dual_ascent(alpha)
    name = "dual_ascent" if name == "auto" and pays else solver_name(name, surrogate)
    if name == "one_slack":
        settings["method"] = name
        name = "cutting_plane"
    solver = _SOLVERS[name]
    known = solver.__dataclass_fields__
    given = {key: value for key, value in settings.items() if value is not None}
    if solver is SubgradientDescent:  # a step of 2 / alpha or more leads away from the optimum
        given.setdefault("eta", min(SubgradientDescent.eta, 1.0 / alpha))
    if np.any(given.get("positive", False)) and "positive" not in known:
        able = [other for other, cls in _SOLVERS.items() if "positive" in cls.__dataclass_fields__]
        raise InputError(
            f"{solver.__name__} cannot keep weights from being negative: with positive=True use "
            f"solver='auto' or {', '.join(able)}"
        )
    unknown = set(given) - set(known) - {"positive"}
    if unknown:
        raise InputError(f"{solver.__name__} has no setting {sorted(unknown)[0]!r}")
    return solver(alpha=alpha, **{key: value for key, value in given.items() if key in known})


@dataclass(frozen=True)
class Told:
    """What a ranker says beside its solver.

    Attributes
    ----------
    limits : dict
        ``tol``, ``max_iter`` and ``time_limit``, those that are not as by default.
    positive : bool
        The setting of the ranker.
    constrained : bool or ndarray of bool
        Which weights have to be 0 or above.
    has_signs : bool
        Whether that is said column by column, by `monotonic_cst`.
    has_callback : bool
    spent : float
        Seconds of the time limit that are over.
    """

    limits: dict[str, Any] = field(default_factory=dict)
    positive: bool = False
    constrained: Any = False
    has_signs: bool = False
    has_callback: bool = False
    spent: float = 0.0


class SolverChoice(ABC):
    """How a ranker solves."""

    @property
    def alpha(self) -> float | None:
        """The regularization strength that it holds; None where it is told."""
        return None

    @abstractmethod
    def name_for(self, surrogate: Surrogate) -> str:
        """What messages and model files call it; refused where it cannot solve a surrogate."""

    @abstractmethod
    def make(
        self, surrogate: Surrogate, alpha: float, told: Told, risk: Oracle | None = None
    ) -> Any:
        """What solves, with a method `solve` as of `Solver`."""


@dataclass(frozen=True)
class ByName(SolverChoice):
    """A solver of the package, by its name."""

    name: str

    def name_for(self, surrogate: Surrogate) -> str:  # noqa: D102
        return solver_name(self.name, surrogate)

    def make(  # noqa: D102
        self, surrogate: Surrogate, alpha: float, told: Told, risk: Oracle | None = None
    ) -> Any:
        limits = dict(told.limits)
        if "time_limit" in limits:
            limits["time_limit"] = max(limits["time_limit"] - told.spent, _LEAST_SECONDS)
        return make_solver(self.name, surrogate, alpha, risk, positive=told.constrained, **limits)


@dataclass(frozen=True)
class AsGiven(SolverChoice):
    """A solver of the package that is an object, and is used as it is."""

    solver: Any

    @property
    def name(self) -> str:
        """What messages call it."""
        function = getattr(self.solver, "func", self.solver)  # of a `functools.partial`
        name = getattr(function, "name", None) or getattr(function, "__name__", None)
        return str(name or type(self.solver).__name__)

    @property
    def alpha(self) -> float | None:  # noqa: D102
        alpha = getattr(self.solver, "alpha", None)
        check_number(f"alpha of solver {self.name}", alpha, above=0)
        return float(self.solver.alpha)

    def name_for(self, surrogate: Surrogate) -> str:  # noqa: D102
        named = {cls: known for known, cls in _SOLVERS.items()}.get(type(self.solver))
        return self.name if named is None else solver_name(named, surrogate)

    def make(  # noqa: D102
        self, surrogate: Surrogate, alpha: float, told: Told, risk: Oracle | None = None
    ) -> Any:
        self.name_for(surrogate)
        if told.has_signs:
            raise InputError(
                f"solver {self.name} is used as it is, and does not know which weights of "
                "monotonic_cst have a sign: give solver by its name"
            )
        given = {"positive": told.positive, **told.limits}
        if self.alpha is not None:
            given = {"alpha": alpha, **given}
        for setting, value in given.items():
            its: Any = getattr(self.solver, setting, False if setting == "positive" else None)
            if not np.array_equal(its, value):
                raise InputError(
                    f"{setting} is {value!r}, that of solver {self.name} {its!r}: they must agree"
                )
        return self.solver


@dataclass(frozen=True)
class OwnSolver(AsGiven):
    """A user's own object with a method ``solve(risk, w_init, callback)``, or function.

    The function is of a risk and alpha. `make` returns what is called as the package's solvers are.
    """

    told_alpha: float = 0.0
    positive: bool = False

    @property
    def is_function(self) -> bool:
        """Whether it is called itself, with a risk and alpha."""
        return not hasattr(self.solver, "solve")

    @property
    def alpha(self) -> float | None:  # noqa: D102
        return None if self.is_function else super().alpha

    def make(  # noqa: D102
        self, surrogate: Surrogate, alpha: float, told: Told, risk: Oracle | None = None
    ) -> Any:
        if self.is_function and told.has_callback:
            raise InputError("callback: a function of (risk, alpha) calls none back")
        super().make(surrogate, alpha, told, risk)
        return replace(self, told_alpha=alpha, positive=told.positive)

    def solve(
        self,
        risk: Oracle,
        w_init: Array | None = None,
        callback: Callback | None = None,
        checkpoint: ResultStore | None = None,
    ) -> SolverResult:
        """Minimise; what is returned, with the objective at its w."""
        if checkpoint is not None:
            raise InputError(f"solver {self.name} is none of the package's: it takes no checkpoint")
        started = time.perf_counter()
        if not self.is_function:
            returned = self.solver.solve(risk, w_init, callback)
        elif w_init is None:
            returned = self.solver(risk, self.told_alpha)
        else:
            raise InputError(f"{self.name}(risk, alpha) takes no start: leave out warm_start")
        return self._result(risk, returned, time.perf_counter() - started)

    def _result(self, risk: Oracle, returned: Any, seconds: float) -> SolverResult:
        """The result; of weights alone there is no certificate, and of what led there no history.

        A lower bound is refused where the objective, there or at w = 0, contradicts it.
        """
        name = self.name
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
            objective = float(self.told_alpha / 2 * (w @ w) + evaluated(risk, w)[0])
        if not np.isfinite(objective):
            raise InputError(f"solver {name} returns weights so large that their objective is inf")
        end = Progress(1, seconds, 1, objective, -np.inf, 0)
        result = SolverResult(w, objective, -np.inf, Status.FINISHED, (end,), self.told_alpha)
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


def solver_choice(given: Any) -> SolverChoice:
    """How a ranker solves that is given this; refused where it is no solver."""
    if isinstance(given, str):
        return ByName(given)
    if isinstance(given, Solver):
        return AsGiven(given)
    choice = OwnSolver(given)
    call = given
    arguments = ["risk", "alpha"]
    if not choice.is_function:
        call = given.solve
        arguments = ["risk", "w_init", "callback"]
    if inspect.isclass(given) or not callable(call):
        raise InputError(
            "solver must be a name, a solver such as CuttingPlane(alpha=0.1), an object with a "
            "number `alpha` and a method solve(risk, w_init, callback), or a function of (risk, "
            f"alpha), got {given!r:.80}"
        )
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError as error:
        raise InputError(
            f"solver {choice.name} must take ({', '.join(arguments)}): {error}"
        ) from None
    except ValueError:  # written in C: nothing says what it takes
        pass
    return choice


# --- what is said on the way ----------------------------------------------------------------------


class Log:
    """Lines about one fit, at most one a second: level INFO of the log `structsvm_papk`.

    With `verbose` they are printed, too.
    """

    def __init__(self, verbose: int) -> None:
        self.verbose = verbose
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for a line, and somebody reads it."""
        wanted = self.verbose or _LOGGER.isEnabledFor(logging.INFO)
        return bool(wanted) and time.monotonic() - self._last >= _INTERVAL

    def say(self, text: str) -> None:
        """Say it, due or not."""
        self._last = time.monotonic()
        _LOGGER.info(text)
        if self.verbose:
            print(text, flush=True)

    def watching(self, callback: Callback | None) -> Callback:
        """A solver's callback that says where the solver is, beside what another one does."""
        check_callback(callback)

        def watch(progress: Progress) -> object:
            if self.due():
                certified = progress.lower_bound > -float("inf")
                bound = f"gap {progress.gap:.1e}" if certified else "no lower bound"
                where = f"iteration {progress.iteration}, {progress.seconds:.0f} s"
                self.say(f"{where}: objective {progress.objective:.6g}, {bound}")
            return callback is not None and callback(progress)

        return watch
