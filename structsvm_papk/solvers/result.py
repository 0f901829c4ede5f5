"""What a solver returns: the point, its certificate, and how the run went."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.solvers.oracle import Cuts

# shares of the objective, or of another number that a difference is compared with
NO_DECREASE = 1e-12  # a decrease below this one is rounding
CONTRADICTION = 1e-9  # a bound above the objective by this one proves that something is wrong
RISK_SCALE = 1e-3  # floor of the denominator of the relative gap; R(0) = 1 sets the scale


def relative_gap(objective: float, lower_bound: float) -> float:
    """``(objective - lower_bound) / max(objective, 1e-3)``; infinite without a bound."""
    return (objective - lower_bound) / max(objective, RISK_SCALE)


class Status(StrEnum):
    """Why a solver stopped; `sentence` says it for people."""

    CONVERGED = "converged", "Converged: the certified gap is within the tolerance."
    DEGENERATE = (
        "degenerate",
        "Converged to the zero vector: to within the tolerance no direction lowers the risk, and "
        "at w = 0 all predictions are the same. Try a smaller tolerance, another risk, or better "
        "features.",
    )
    CRITICAL = (
        "critical",
        "Stopped at a critical point: none of the majorants there can be lowered any further.",
    )
    MAX_ITER = "max_iter", "Stopped at the iteration limit before the gap reached the tolerance."
    TIME_LIMIT = "time_limit", "Stopped at the time limit before the gap reached the tolerance."
    INTERRUPTED = (
        "interrupted",
        "Interrupted: this is the best point so far, with its certificate.",
    )
    STOPPED = "stopped", "Stopped by the callback: this is the best point so far."
    STALLED = "stalled", "Stopped: rounding errors prevent further progress at this tolerance."
    INCONSISTENT = (
        "inconsistent",
        "Stopped: the cuts contradict the values of the risk, so there is no bound. Either the "
        "risk is not convex, or the scores are too large for double precision (rescale X).",
    )
    FAILED = (
        "failed",
        "Stopped because the risk could not be evaluated any more: this is the best point so far, "
        "with its certificate.",
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
    cuts : tuple of ndarray or None
        ``(slopes, intercepts, blocks)``: the cuts that make the bound, for warm starts. They do
        not depend on alpha.
    notes : tuple of str
        What else is worth knowing, such as a QP solver that failed and was replaced.
    problem : tuple or None
        ``(n_blocks, layout of the blocks, oracle)`` that `cuts` belong to, which a warm start
        checks. The oracle holds the data: ``replace(result, problem=None)`` lets go of them. It is
        not pickled, and cuts of an unknown problem are refused.
    evaluation : Cuts or None
        Of the risk at `w`: a warm start need not ask for it again.
    lipschitz_factor : float
        The largest `Cuts.lipschitz_factor` of the run.
    duals : object
        Of `DualAscent`: see `DualBlocks.duals`, or from a checkpoint their arrays by name. For warm
        starts at every alpha, and scaled at other depths.
    """

    w: np.ndarray = field(repr=False)
    objective: float
    lower_bound: float
    status: Status
    history: tuple[Progress, ...] = field(default=(), repr=False)
    alpha: float = 0.0
    cuts: tuple[Array, Array, Array] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()
    problem: tuple[Any, ...] | None = field(default=None, repr=False)
    evaluation: Cuts | None = field(default=None, repr=False)
    lipschitz_factor: float = field(default=1.0, repr=False)
    duals: Any = field(default=None, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without the oracle, which holds the data."""
        state = {part.name: getattr(self, part.name) for part in fields(self)}
        return state | {"problem": None}

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

    @property
    def message(self) -> str:
        """The status as a sentence, with the notes."""
        return " ".join([self.status.sentence, *self.notes])

    def curve(self, name: str) -> Array:
        """One column of the history, such as ``'gap'``, as an array."""
        return np.array([getattr(entry, name) for entry in self.history])
