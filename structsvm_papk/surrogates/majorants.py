"""Convex majorants of Ramp and ClippedRamp at a point, for the convex-concave procedure.

One user's list, with ``h^m_i = sum_{j<=m} (m - p_i + q_(j))_+``, the hinges of positive i at margin
m against the m best negatives. ``h^m_i`` is convex in the scores: it is the maximum over m-subsets
of negatives of a sum of hinges. It decreases in p_i, so the beta best positives are those with the
beta smallest ``h^m_i``, whatever m is. With sets Z of beta positives, ``G^m = max_Z sum_{i not in
Z} h^m_i``, and up to the factor 1/(beta m):

    Ramp        = min_Z sum_{i in Z} h^1_i = sum_i h^1_i - G^1
    ClippedRamp = min_Z max_J sum_{i in Z} sum_{j in J} c(p_i - q_j),   c(z) = min(1, (1 - z)_+)
                = min_Z sum_{i in Z} (h^1_i - h^0_i) = (sum_i h^1_i + G^0) - (sum_i h^0_i + G^1)

(c decreases, so the beta best positives and the m best negatives J solve the min and the max.)
``lin`` is a linear minorant of a convex function, tight at the point w_t; Z_t and J_t are the best
positives and negatives there. Each majorant is convex, nowhere below the surrogate, tight at w_t:

`latent`
    Ramp: ``sum_{i in Z_t} h^1_i``. A minimum is at most its value at Z_t.
    ClippedRamp: ``max_J sum_{j in J} sum_{i in Z_t} m_ij`` with ``m_ij = 1`` for the pairs that are
    clipped at w_t (p_i < q_j, all negatives j counted) and ``(1 - p_i + q_j)_+`` for the others.
    Each ``m_ij >= c(p_i - q_j)``, and the maximum over J keeps the order; ``m_ij = c`` at w_t.
`mixed`
    Ramp: the same. ClippedRamp: ``sum_{i in Z_t} h^1_i - lin(sum_{i in Z_t} h^0_i)``.
`linearised`
    Ramp: ``sum_i h^1_i - lin(G^1)``.
    ClippedRamp: ``sum_i h^1_i + G^0 - lin(sum_i h^0_i) - lin(G^1)``.

``mixed <= linearised`` everywhere, since ``h^m_i - lin(h^m_i) >= 0`` for the positives outside Z_t
and ``G^0 >= sum_{i not in Z_t} h^0_i``; ``latent`` and ``mixed`` are not ordered for ClippedRamp.
Where every user has n_pos <= k, Ramp is convex and all three are Ramp itself.

Sources: Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003);
Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006 (the clipped hinge);
Yu and Joachims, "Learning structural SVMs with latent variables", ICML 2009.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.surrogates import _majorant_kernels as kernels
from structsvm_papk.surrogates.base import Surrogate


@dataclass(frozen=True, eq=False, kw_only=True)
class MajorantSurrogate(Surrogate):
    """A convex surrogate that holds what was frozen at a point, for these lists only."""

    shift_invariant = True
    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    def selection(self) -> Array:
        """What is frozen beside the linear term, by position: one row for each kind of entry."""
        raise NotImplementedError

    def changed_positions(self, other: MajorantSurrogate) -> Array:
        """Positions where what is frozen beside the linear term differs, as 0 and 1."""
        return (self.selection() != other.selection()).any(axis=0).astype(np.int64)

    def linear_term(self) -> LinearTerm | None:
        """The linear term, which is part of the value; by default none."""
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenHinges(MajorantSurrogate):
    """Hinges of the positives in `rows` against the m best negatives, plus a linear term. Convex.

    With `rest_at_zero`, the hinges at margin 0 of all but the beta best positives are added.
    """

    name = "frozen_hinges"
    rows: Array
    linear: Array
    constants: Array
    rest_at_zero: bool = False

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        frozen = self.rows, self.rest_at_zero, self.linear, self.constants
        kernels.frozen_hinges(self.k, self.counted, *frozen, *lists)

    def selection(self) -> Array:
        """The marked positives."""
        return self.rows[None, :]

    def linear_term(self) -> LinearTerm:
        """The linear term."""
        return LinearTerm(self.k, depth=self.depth, linear=self.linear, constants=self.constants)

    def steepness(self, n_pos: Array) -> Array:
        """Of two sums of hinges and of two linear terms."""
        return 4.0 * super().steepness(n_pos)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenPairs(MajorantSurrogate):
    """ClippedRamp with its best positives and its clipped pairs frozen. Convex.

    Of each user's positives `order` is by decreasing score, and `rank` its inverse; of each
    negative `n_free` counts the pairs with chosen positives that are not clipped.
    """

    name = "frozen_pairs"
    order: Array
    rank: Array
    n_free: Array

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        kernels.frozen_pairs(self.k, self.counted, self.order, self.n_free, *lists)

    def selection(self) -> Array:
        """Ranks of positives, and counts of unclipped pairs."""
        return np.stack([self.rank, self.n_free])


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearTerm(Surrogate):
    """``linear . scores + constant`` of each user."""

    name = "linear"
    shift_invariant = True
    linear: Array
    constants: Array

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        scores, indptr, _, first, last, values, coef = lists
        rows = slice(indptr[first], indptr[last])
        products = self.linear[rows] * scores[rows]
        values[first:last] = self.constants[first:last]
        values[first:last] += np.add.reduceat(products, indptr[first:last] - indptr[first])
        coef[rows] = self.linear[rows]


class Freeze:
    """What majorants freeze of Ramp or ClippedRamp at given scores."""

    def __init__(self, surrogate: Surrogate, scores: Array, indptr: Array, n_pos: Array) -> None:
        self._k, self._depth = surrogate.k, surrogate.depth
        self._scores, self._indptr, self._n_pos = scores, indptr, n_pos
        self._chosen = np.zeros(scores.size, dtype=bool)
        self._order, self._rank, self._n_free = np.zeros((3, scores.size), dtype=np.int64)
        outputs = self._chosen, self._order, self._rank, self._n_free
        kernels.freeze(scores, indptr, n_pos, surrogate.k, surrogate.counted, *outputs)

    def pairs(self) -> FrozenPairs:
        """The latent majorant of ClippedRamp."""
        frozen = {"order": self._order, "rank": self._rank, "n_free": self._n_free}
        return FrozenPairs(self._k, depth=self._depth, **frozen)

    def mixed(self, clipped: bool) -> FrozenHinges:
        """The mixed majorant; without clipping, the latent one as well."""
        minus = ((0.0, False),) if clipped else ()
        return self._hinges(self._chosen & self._positive(), minus, rest_at_zero=False)

    def linearised(self, clipped: bool) -> FrozenHinges:
        """The linearised majorant."""
        minus = ((1.0, True), (0.0, False), (0.0, True)) if clipped else ((1.0, True),)
        return self._hinges(self._positive(), minus, rest_at_zero=clipped)

    def _hinges(
        self, rows: Array, minus: tuple[tuple[float, bool], ...], rest_at_zero: bool
    ) -> FrozenHinges:
        """Hinges of some rows, less linear minorants: (margin, whether of the rest)."""
        linear, constants = np.zeros(self._scores.size), np.zeros(self._n_pos.size)
        for margin, rest in minus:
            kernels.subtract_hinge_slopes(
                self._scores, self._indptr, self._n_pos, self._k, self._chosen,
                margin, rest, linear, constants,
            )  # fmt: skip
        terms = {"rows": rows, "linear": linear, "constants": constants}
        return FrozenHinges(self._k, depth=self._depth, **terms, rest_at_zero=rest_at_zero)

    def _positive(self) -> Array:
        """Relevance at the list positions."""
        ends = np.repeat(self._indptr[:-1] + self._n_pos, np.diff(self._indptr))
        return np.arange(self._scores.size) < ends
