"""What a surrogate of the pAp@k risk is: a function of the scores of each user's list.

Notation: one user has positives ``p_(1) >= p_(2) >= ..`` and negatives ``q_(1) >= q_(2) >= ..``
in decreasing score, ``beta = min(n_pos, k)`` and ``(z)_+ = max(z, 0)``. The training *depth* says
how many negatives count: m of them, where the metric counts k. The paper has m = k; more of them
keep a surrogate from having its minimum at zero (`docs/math/depth.md`). Equation numbers are those
of Hiranandani, Vijitbenjaronk, Koyejo and Jain, "Optimization and Analysis of the pAp@k Metric for
Recommender Systems", ICML 2020.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, is_number, whole_number
from structsvm_papk.surrogates import _kernels


def check_scores(scores: Array) -> None:
    """Refuse scores that cannot be ranked; the kernels rely on it."""
    with np.errstate(invalid="ignore", over="ignore"):
        if np.isfinite(scores.sum()):  # one pass without an array; only a doubt costs more
            return
    bad = np.flatnonzero(~np.isfinite(scores))
    if bad.size:
        raise InputError(
            f"{bad.size} scores are not finite (the first is {scores[bad[0]]}): the weights or the "
            "features are too large or not numbers; rescale the features"
        )


@cache
def _examples() -> tuple[Array, Array, Array]:
    """Scores, indptr and n_pos of lists that tell surrogates apart.

    From 2 to 40 items; scores near zero, where hinges bend, and far from it; some lists have ties.
    """
    rng = np.random.default_rng(0)
    sizes = np.array([2, 3, 5, 8, 13, 20, 40] * 4)
    scale = np.repeat([0.3, 1.0, 10.0, 100.0], 7)
    n_pos = np.maximum(1, sizes // np.tile([2, 3, 4, 2, 6, 5, 8], 4))
    scores = rng.normal(size=sizes.sum()) * np.repeat(scale, sizes)
    tied = np.repeat(np.arange(sizes.size) % 3 == 0, sizes)
    scores[tied] = np.round(scores[tied])
    return scores, np.concatenate([[0], sizes.cumsum()]), n_pos


@dataclass(frozen=True)
class Surrogate(ABC):
    """A loss of each user's scores that stands in for the pAp@k risk.

    Attributes
    ----------
    k : int
        Number of recommended items; ``beta = min(n_pos, k)`` positives count.
    depth : int, float or None
        Negatives that count for a user with n_neg of them: an integer ``depth >= k`` stands for
        ``m = min(depth, n_neg)``, a share ``0 < depth < 1`` for
        ``m = max(ceil(depth n_neg), min(k, n_neg))``; None for depth k, the paper's surrogate.
    name : str
        Name for `make_surrogate`.
    convex : bool
        Whether the value is a convex function of the scores.
    top_negatives_only : bool
        Whether the value depends on a list's negatives through the m highest only: sums over a list
        have fewer terms then.
    nonnegative : bool
        Whether it is nowhere negative: then no lower bound of an objective is below 0.
    majorised : bool
        Whether it is `nonnegative` and has `majorant`: then CCCP solves it.
    boxed, clipped : bool
        Whether it is Ramp or ClippedRamp, whose risks are bounded over boxes of w
        (`structsvm_papk.oracles.boxes`), and whether a pair costs at most 1.
    above_slope_at_zero : bool
        Whether ``R(w) >= 1 + D(w)`` everywhere, where D is positively homogeneous and equality
        holds for scores within ``1 / (10 n_pos)`` of zero, and R does not rise with the depth: then
        `diagnose` tells whether w = 0 is optimal if it is convex or `boxed`.
    shift_invariant : bool
        Whether the value stays the same when one number is added to all scores of a user: then
        columns with large offsets are multiplied less the first row of their user.
    """

    k: int
    depth: int | float | None = field(default=None, kw_only=True)
    name: ClassVar[str]
    convex: ClassVar[bool] = True
    nonnegative: ClassVar[bool] = False
    majorised: ClassVar[bool] = False
    boxed: ClassVar[bool] = False
    clipped: ClassVar[bool] = False
    top_negatives_only: ClassVar[bool] = False
    above_slope_at_zero: ClassVar[bool] = False
    shift_invariant: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", whole_number("k", self.k))
        object.__setattr__(self, "depth", _checked_depth(self.depth, self.k))

    @property
    def kernel_depth(self) -> float:
        """Depth as the kernels take it: a number of negatives from 1 on, a share below."""
        return float(self.k if self.depth is None else self.depth)

    def negatives_counted(self, n_neg: Array) -> Array:
        """Negatives that count, m, for users with `n_neg` of them each."""
        n_neg = np.asarray(n_neg)
        if self.kernel_depth >= 1.0:
            return np.minimum(n_neg, self.kernel_depth).astype(np.int64)
        share = np.ceil(self.kernel_depth * n_neg * (1.0 - 1e-12))
        return np.maximum(share, np.minimum(self.k, n_neg)).astype(np.int64)

    def negatives_needed(self) -> int:
        """Negatives a user needs so that the depth is not capped; k for a share."""
        return int(self.kernel_depth) if self.kernel_depth >= 1 else self.k

    def depth_of_list(self, n_neg: int) -> int:
        """Negatives that count in a single list."""
        return int(self.negatives_counted(np.array([n_neg]))[0])

    def value_and_subgradient(
        self, scores: Array, indptr: Array, n_pos: Array
    ) -> tuple[Array, Array]:
        """Evaluate every user's list.

        Parameters
        ----------
        scores : ndarray of float64, shape (n_positions,)
            Users one after the other, each user's positives first.
        indptr : ndarray of int64, shape (n_users + 1,)
            Bounds of each user in `scores`.
        n_pos : ndarray of int64, shape (n_users,)
            Number of positives of each user; at least 1, and at least one negative follows them.

        Returns
        -------
        values : ndarray of shape (n_users,)
        coef : ndarray of shape (n_positions,)
            A subgradient of each user's value with respect to its own scores (a generalised
            gradient where the surrogate is not convex).

        Raises
        ------
        InputError
            Scores that are not finite.
        """
        check_scores(scores)
        values = np.empty(n_pos.size)
        coef = np.empty(scores.size)
        self.evaluate(scores, indptr, n_pos, 0, n_pos.size, values, coef)
        return values, coef

    @property
    def label(self) -> str:
        """The name, with the settings beside k and depth: ``name(exponent=1.5)``."""
        others = [f"{f.name}={getattr(self, f.name)!r}" for f in fields(self)[2:]]
        if not others:
            return self.name
        return f"{self.name}({', '.join(others)})"

    @property
    def is_custom(self) -> bool:
        """Whether its class is not the package's."""
        return not type(self).__module__.startswith("structsvm_papk.")

    def settings(self) -> tuple[Any, ...]:
        """What a fingerprint of a risk is made of: the name and all that was set, k among it.

        Of custom classes, whose formula no version tells, also a digest of what they do: values
        and slopes on a few fixed lists. An edit that changes none of these is not noticed.
        """
        settings = {f.name: getattr(self, f.name) for f in fields(self)}
        named = self.name, *(part for item in sorted(settings.items()) for part in item)
        if not self.is_custom:
            return named
        values, slopes = self.value_and_subgradient(*_examples())
        numbers = " ".join(f"{x:.6g}" for x in (*values, *slopes))
        return *named, hashlib.sha256(numbers.encode()).hexdigest()

    def l1_bound(self, n_pos: Array) -> Array:
        """What the absolute subgradients of a user's list add up to at most, of the shape of n_pos.

        It enters the bound of rounding in the certificate. By default ``2 n_pos / min(n_pos, k)``,
        where every pair of a positive and one of the m highest negatives weighs 1/(beta m);
        surrogates that can be steeper have to say so. Where slopes have no bound, it is that of
        scores at most 1 apart; the solver raises it to what it meets, see `Cuts.lipschitz_factor`.
        """
        return 2.0 * n_pos / np.minimum(n_pos, self.k)

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array] | None:
        """Shares of users' positives and negatives over which subgradients spread at least.

        Where they add up to at most s on each side, s half of the `l1_bound`, no positive's weight
        exceeds ``s / (share n_pos)`` and no negative's ``s / (share n_neg)``; a share of inf:
        positives weigh the same. None: not known. `bounds.stability` needs it.
        """
        return None

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms | None:
        """A single list's loss as a mean of its largest terms; by default none are known."""
        return None

    def __init_subclass__(cls) -> None:
        """A class that evaluates anew has the terms of its parent no more."""
        super().__init_subclass__()
        defined = vars(cls)
        if "evaluate" in defined and "list_terms" not in defined:
            cls.list_terms = Surrogate.list_terms  # type: ignore[method-assign]

    @property
    def weighs_negatives(self) -> bool:
        """Whether its dual is a weight of each negative, which `DualAscent` asks for."""
        terms = self.list_terms(1, 1)
        return terms is not None and terms.of_mean

    def majorant(self, scores: Array, indptr: Array, n_pos: Array) -> MajorantSurrogate:
        """A convex surrogate that is nowhere below this one, and tight at these scores.

        Parameters
        ----------
        scores, indptr, n_pos
            As for `value_and_subgradient`.

        Raises
        ------
        InputError
            A surrogate without majorants.
        """
        raise InputError(
            f"surrogate {self.name!r} has no majorant here; CCCP is for 'ramp' and "
            "'clipped_ramp'" + (", CuttingPlane for convex ones" if self.convex else "")
        )

    def is_convex_on(self, n_pos: Array) -> bool:
        """Whether the majorants of lists with so many positives are the surrogate itself."""
        return False

    @abstractmethod
    def evaluate(
        self,
        scores: Array,
        indptr: Array,
        n_pos: Array,
        first: int,
        last: int,
        values: Array,
        coef: Array,
        /,
    ) -> None:
        """Write values and subgradients of the users ``first <= u < last`` into the outputs."""


class PairMean(Surrogate):
    """A surrogate in which pairs weigh 1 together: so do positives, and so do negatives."""

    kernel: ClassVar[Callable[..., None]]  # of k, the depth and what `run_kernel` gets
    shift_invariant = above_slope_at_zero = nonnegative = True

    def l1_bound(self, n_pos: Array) -> Array:  # noqa: D102
        return np.full(np.shape(n_pos), 2.0)

    def evaluate(  # noqa: D102
        self,
        scores: Array,
        indptr: Array,
        n_pos: Array,
        first: int,
        last: int,
        values: Array,
        coef: Array,
        /,
    ) -> None:
        users = slice(first, last)
        self.run_kernel(scores, indptr[first : last + 1], n_pos[users], values[users], coef)

    def run_kernel(
        self, scores: Array, indptr: Array, n_pos: Array, values: Array, coef: Array, /
    ) -> None:
        """Write values and subgradients of all these users into the last two."""
        self.kernel(self.k, self.kernel_depth, scores, indptr, n_pos, values, coef)


class Hinges(PairMean):
    """A surrogate that adds hinges of pairs of a positive and one of the top negatives."""

    top_negatives_only = True
    pairs: ClassVar[_kernels.HingePairs]  # which

    def l1_bound(self, n_pos: Array) -> Array:
        """Twice the positives that are added for each one by whose number the sum is divided."""
        beta = np.minimum(n_pos, self.k)
        added = beta if self.pairs.of_beta else n_pos
        return 2.0 * added / (n_pos if self.pairs.mean_over_all else beta)

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array] | None:  # noqa: D102
        beta = np.minimum(n_pos, self.k)
        share = beta / n_pos if self.pairs.of_beta else np.ones(n_pos.shape)
        return share, self.negatives_counted(n_neg) / n_neg

    def run_kernel(self, *lists: Array) -> None:  # noqa: D102
        added = _kernels.HingeSum(k=self.k, depth=self.kernel_depth, pairs=self.pairs)
        _kernels.hinges(added, _kernels.NO_CHOICE, *lists)


@dataclass(frozen=True, eq=False, kw_only=True)
class MajorantSurrogate(PairMean):
    """A convex surrogate that holds what was frozen at a point, for these lists only.

    `frozen` has a row for each kind of what is frozen, by position.
    """

    frozen: Array
    above_slope_at_zero = False
    __eq__ = object.__eq__  # arrays are not compared
    __hash__ = object.__hash__

    def settings(self) -> tuple[Any, ...]:  # noqa: D102
        return self.name, self.k, self.depth, self.frozen


def _checked_depth(given: object, k: int) -> int | float | None:
    """A depth as an int, a float below 1, or None."""
    if given is None:
        return None
    if is_number(given):
        depth: Any = given
        may_be_share = not isinstance(depth, Integral) and 0 < depth <= 1
        if may_be_share and depth < 1:
            return float(depth)
        if not may_be_share and k <= depth < 2**63 and depth == int(depth):
            return int(depth)
    raise InputError(
        f"depth must be a whole number of at least k={k}, a share above 0 and below 1, or "
        f"None for depth k, got {given!r}"
    )


class TermBlocks(NamedTuple):
    """Blocks of terms at some scores, at the best s, which is `lowest`.

    The subgradient of block b in the scores is ``slopes`` at the positions of its terms, and
    ``partner_slopes[b, g]`` at each of the positions ``partners[edges[g] : edges[g + 1]]``, a group
    of those whose slopes agree in all blocks. ``n_used[b]`` of its terms are among the c largest.
    """

    values: Array
    slopes: Array
    partner_slopes: Array
    partners: Array
    edges: Array
    n_used: Array
    lowest: float


@dataclass(frozen=True)
class ListTerms(ABC):
    """A single list's loss as a mean of its largest terms, cut into blocks.

    With ``f_1, f_2, ..`` convex terms of the scores, one for each positive or one for each
    negative, ``c`` the number of terms that count and ``r`` a number,

        loss = 1/(c r) (sum of the c largest f_i) = min_s s + 1/c sum_i (f_i/r - s)_+

    so that any partition of the terms gives blocks, each convex in (scores, s); the proofs are in
    docs/math/proofs.md, "One long list". `depth` is m, the negatives that count. `of_mean`: the
    terms are ``(1 - mean(p) + q_j)_+``, whose dual has a variable for each negative. More than
    `most_blocks` blocks hardly save passes.
    """

    n_terms: int
    depth: int
    over_negatives: ClassVar[bool]
    of_mean: ClassVar[bool] = False
    most_blocks: ClassVar[int | None] = None

    @abstractmethod
    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:
        """The blocks of the terms at the list positions between each two of the bounds."""
