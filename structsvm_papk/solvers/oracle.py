"""What a solver may ask of a risk: the contract between the solvers and everything they minimise.

A solver knows a function R of w, and no more of it than one of these classes offers. `Oracle` is
the least; a class says by its bases what else it can do:

    Oracle             value and subgradient at w
    BlockOracle        several cuts from one evaluation, R = R_1 + .. + R_J
    FiniteSumOracle    one term of a sum at a time, for stochastic steps
    MajorisedOracle    convex majorants of a risk that is not convex
    BoxedOracle        bounds over boxes of w, for a global search
    DualOracle         dual variables in blocks, for an ascent on the dual that stores no dense cut

A plain callable with `n_features` is taken as well, see `as_oracle`. Solvers never ask an object
whether it has a method: what a kind of oracle may lack has a default here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

from structsvm_papk._rounding import Rounding
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError

Kind = TypeVar("Kind", bound="Oracle")


@dataclass(frozen=True)
class Cuts:
    """Lower bounds of a convex risk that are tight at one point.

    The risk is ``R(w) = min_s sum_j R_j(w, s)`` with convex R_j, where s is one more variable, or
    none. Every cut reads ``R_j(z) >= slopes[j] . z + intercepts[j]`` for ``z = (w, s)``, and all of
    them are tight at `point`.

    Attributes
    ----------
    value : float
        R(w).
    slopes : ndarray of shape (n_blocks, n_features) or (n_blocks, n_features + 1)
    intercepts : ndarray of shape (n_blocks,)
    point : ndarray
        (w, s), with the s that attains the minimum; ``0 <= s <= R(w)``. w alone without s.
    errors : ndarray of shape (n_blocks,), optional
        How far rounding may have put each intercept above what is right for the slopes as they
        were meant, and together the value from the risk at the computed scores. Without it the
        solver assumes what the sums in ``intercepts = values - slopes . point`` may lose.
    lipschitz_factor : float
        The Lipschitz constant of the risk in the scores, here, in units of the one that
        `BlockOracle.rounding` assumes.
    values : ndarray of shape (n_blocks,), optional
        What each block adds to the value.
    """

    value: float
    slopes: np.ndarray
    intercepts: np.ndarray
    point: np.ndarray
    errors: np.ndarray | None = None
    lipschitz_factor: float = 1.0
    values: np.ndarray | None = None


class Oracle(ABC):
    """A function R of w that solvers minimise.

    Attributes
    ----------
    n_features : int
        Length of w.
    convex : bool
        Whether R is convex. The cuts of a risk that is not are not lower bounds.
    nonnegative : bool
        Whether R is nowhere negative: then 0 is a lower bound of every objective.
    n_entries : int
        Numbers of the data that an evaluation multiplies, where they are known.
    n_blocks : int
        Cuts that one evaluation gives.
    most_blocks : int or None
        More cuts an evaluation hardly save passes, where that is known.
    exact : bool
        Of a majorant: whether it is the majorised risk itself.
    """

    n_features: int
    convex: bool = True
    nonnegative: bool = False
    n_entries: int = 0
    n_blocks: int = 1
    most_blocks: int | None = None
    exact: bool = False

    @abstractmethod
    def __call__(self, w: Array) -> tuple[float, Array]:
        """``R(w)`` and a subgradient of shape (n_features,)."""

    def __str__(self) -> str:
        """What messages call it."""
        return "the risk"

    def fingerprint(self) -> str | None:
        """What tells this risk from others; None where nothing does."""
        return None

    @property
    def itself(self) -> object:
        """The object that this risk is a view of."""
        return self

    def is_same(self, other: Oracle) -> bool:
        """Whether cuts of another risk are cuts of this one: itself, or its fingerprint."""
        if other.itself is self.itself:
            return True
        known = self.fingerprint()
        return known is not None and known == other.fingerprint()

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same risk with about `n_blocks` cuts an evaluation; by default a single block."""
        return _OneBlock(self, self)

    def suits_dual_ascent(self, alpha: float) -> bool:
        """Whether ascent on dual blocks, see `DualOracle`, is likely to beat cutting planes."""
        return False


class BlockOracle(Oracle):
    """A risk that is the sum of blocks, each with a cut of its own.

    `blocks` is what a class has to write; the value, the subgradient and the cuts follow.

    Attributes
    ----------
    layout : str or None
        What tells this division into blocks from others with as many.
    notes : tuple of str
        What went wrong on the way and was put right, for the solver's result.
    rows_scored : int
        Rows scored so far, where they are counted.
    """

    layout: str | None = None
    notes: tuple[str, ...] = ()
    rows_scored: int = 0

    @abstractmethod
    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and subgradient of each block: shapes (n_blocks,) and (n_blocks, n_features)."""

    def __call__(self, w: Array) -> tuple[float, Array]:
        """``R(w)`` and a subgradient: the sums over the blocks."""
        values, subgradients = self.blocks(w)
        return float(values.sum()), subgradients.sum(axis=0)

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same risk with about `n_blocks` cuts an evaluation; by default its own blocks."""
        return self

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w, one for each block."""
        values, slopes = self.blocks(w.copy())  # which may change what it is given
        n_blocks = np.shape(values)
        n_features = np.shape(slopes)
        if n_blocks != (self.n_blocks,) or n_features != (self.n_blocks, w.size):
            raise InputError(
                f"{type(self).__name__}.blocks gave values of shape {n_blocks} and slopes of shape "
                f"{n_features}; it has {self.n_blocks} blocks of {w.size} features"
            )
        return Cuts(float(values.sum()), slopes, values - slopes @ w, w)

    def rounding(self) -> Rounding | None:
        """What rounding can do to values and slopes; None where it is not known."""
        return None

    def column_text(self, f: int) -> str:
        """A feature by name, for messages."""
        return f"column {f}"


@dataclass(frozen=True)
class BlockCuts:
    """Cuts ``R_j(z) >= slopes[i] . z + intercepts[i]``, j = blocks[i], and what they are of.

    Attributes
    ----------
    slopes : ndarray of shape (n_cuts, n_features) or (n_cuts, n_features + 1)
    intercepts : ndarray of shape (n_cuts,)
    blocks : ndarray of int, shape (n_cuts,)
    n_blocks : int
    layout : str or None
        The division into blocks, as of `BlockOracle`.
    risk : Oracle or None
        It holds the data, and is not pickled; None where it is not known any more.
    """

    slopes: Array
    intercepts: Array
    blocks: Array
    n_blocks: int
    layout: str | None
    risk: Oracle | None

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"risk": None}

    def are_of(self, oracle: BlockOracle) -> bool:
        """Whether a risk is divided in the same way."""
        return (self.n_blocks, self.layout) == (oracle.n_blocks, oracle.layout)


class FiniteSumOracle(Oracle):
    """A risk that is a weighted mean of terms, ``R(w) = sum_i shares_i R_i(w)``.

    Attributes
    ----------
    shares : ndarray of shape (n_terms,)
        They add up to 1.
    """

    shares: np.ndarray

    @abstractmethod
    def term(self, i: int, w: Array) -> tuple[float, Array]:
        """``R_i(w)`` and a subgradient of it, of shape (n_features,)."""


class DualOracle(BlockOracle):
    """A risk with dual variables, for an ascent on the dual that stores no dense cut."""

    @abstractmethod
    def dual_blocks(self, alpha: float, start: Any = None) -> DualBlocks | None:
        """Dual variables of ``min_w alpha/2 ||w||^2 + R(w)`` in blocks; None where it has none.

        Parameters
        ----------
        alpha : float
        start : ndarray of shape (n_features,), mapping or other, optional
            A point w near which to begin, or `DualBlocks.duals` of this risk, themselves or as
            arrays, or of a similar one. Without it they begin at zero.
        """


class MajorisedOracle(Oracle):
    """A risk with convex majorants, for the convex-concave procedure."""

    @abstractmethod
    def majorant(self, w: Array) -> Oracle:
        """A convex risk that is nowhere below this one and tight at w."""

    def starts(
        self, minimise: Callable[[Oracle], Array], names: Sequence[str] | None = None
    ) -> Mapping[str, Array]:
        """Starting points by name; by default zero.

        `minimise` gives the minimiser of a convex risk, beside the penalty: starts may be such.
        """
        return {"zero": np.zeros(self.n_features)}


class BoxedOracle(MajorisedOracle):
    """A risk that can be bounded over boxes of w, for branch and bound."""

    @abstractmethod
    def bounds(self, alpha: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Lower bound over each box, objective at its centre, coordinate along which to cut."""


class _OneBlock(BlockOracle):
    """A risk, or a callable with `n_features`, seen as one block."""

    def __init__(self, function: Plain, risk: Oracle | None = None) -> None:
        self._function = function
        self._risk = risk
        self.n_features = int(function.n_features)
        self.convex = risk is None or risk.convex
        self.nonnegative = risk is not None and risk.nonnegative

    @property
    def itself(self) -> object:
        return self._function

    def __str__(self) -> str:
        return super().__str__() if self._risk is None else str(self._risk)

    def fingerprint(self) -> str | None:
        return None if self._risk is None else self._risk.fingerprint()

    def blocks(self, w: Array) -> tuple[Array, Array]:
        value, slope = evaluated(self._function, w)
        return np.array([value]), slope[None, :]


@dataclass(frozen=True)
class DualPoint:
    """A point w that belongs to dual variables, with what both certify.

    The `objective` is computed, and rounding may have put it below what is right by `error`; the
    `lower_bound` of all objectives is lowered by what rounding may have added.
    """

    w: np.ndarray
    objective: float
    error: float
    lower_bound: float


class DualBlocks(ABC):
    """Dual variables of ``min_w alpha/2 ||w||^2 + sum_j R_j(w)``, one group for each block j.

    A block's variables choose one of its affine lower bounds, ``R_j(w) >= g_j . w + b_j`` for all
    w, from a convex set of them. Together they bound the optimum from below,

        min_w F(w) >= sum_j b_j - ||sum_j g_j||^2 / (2 alpha),   attained at w = -sum_j g_j / alpha.

    `sweep` raises that bound one block after the other. No g_j is ever formed. The `gaps` are
    ``R_j(w) - g_j . w - b_j`` at the w of each block's last full update: their sum estimates the
    gap. At a common w, such as that of `certificate`, it is the gap.
    """

    n_blocks: int
    gaps: np.ndarray
    passes: int = 0  # looks at all rows
    rows_scored: int = 0
    n_atoms: int = 0  # rows or cuts that have a dual variable

    @abstractmethod
    def sweep(self, blocks: Array, full: bool) -> float:
        """Maximise over each of these blocks in turn; return what the bound has gained.

        With `full` each block is looked at as a whole; else only where it has dual variables.
        """

    @abstractmethod
    def certificate(self) -> DualPoint:
        """One evaluation at the w that belongs to the dual variables; sets the `gaps`."""

    @abstractmethod
    def point(self, w: Array) -> DualPoint:
        """The objective at any w, without a bound."""

    def cuts(self, n_blocks: int) -> BlockCuts | None:
        """The bound as a cut for each block of `Oracle.with_blocks`; None where it is none."""
        return None

    @property
    @abstractmethod
    def duals(self) -> Any:
        """The dual variables with what they belong to, for `DualOracle.dual_blocks`.

        An object whose method `arrays` gives them as arrays by name, for the same risk later.
        """


class Plain(Protocol):
    """A function that is taken as an oracle."""

    n_features: int

    def __call__(self, w: Array, /) -> tuple[float, Array]:
        """``R(w)`` and a subgradient."""


def evaluated(risk: Callable[[Array], Any], w: Array) -> tuple[float, Array]:
    """What an oracle, or another callable, says of w: a number, and a slope for each feature.

    It is given a copy: a function that changes w would make every bound wrong. So would an array
    for the slope that it fills anew each time, so that is copied as well.
    """
    answer = risk(w.copy())
    try:
        value, slope = answer
        value = float(value)
        slope = np.array(slope, dtype=np.float64)
    except (TypeError, ValueError):
        value = np.nan
        slope = np.empty(0)
    if slope.shape != w.shape:
        kind = type(getattr(risk, "__self__", risk)).__name__
        raise InputError(
            f"the oracle {kind} must return a number and a slope of shape {w.shape}, got "
            f"{_in_short(answer)}"
        )
    return value, slope


def _in_short(answer: object) -> str:
    """An answer for a message: the type of each part, with its shape."""
    if isinstance(answer, tuple):
        return f"({', '.join(map(_in_short, answer))})"
    return f"{type(answer).__name__}{getattr(answer, 'shape', '')}"


def as_oracle(given: Oracle | Plain) -> Oracle:
    """An `Oracle`, or a plain callable with `n_features` taken as one."""
    if isinstance(given, Oracle):
        return given
    n_features = getattr(given, "n_features", None)
    if not (callable(given) and isinstance(n_features, int | np.integer) and n_features >= 0):
        raise InputError(
            f"a {type(given).__name__} is not an oracle: a solver needs an `Oracle` "
            "(structsvm_papk.solvers.Oracle) or a callable w -> (value, slope) with `n_features`"
        )
    return _OneBlock(given)


def needed(oracle: Oracle, kind: type[Kind], refusal: str) -> Kind:
    """A risk as one of a kind; refused where it is of another."""
    if isinstance(oracle, kind):
        return oracle
    raise InputError(refusal)
