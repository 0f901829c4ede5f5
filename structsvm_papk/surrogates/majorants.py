"""Convex majorants of Ramp and ClippedRamp at a point, for the convex-concave procedure.

One user's list, with ``h_i = sum_{j<=m} (1 - p_i + q_(j))_+`` convex in the scores, and the best
positives Z_t and the best negatives at the point w_t. Each majorant is convex, nowhere below the
surrogate, and tight at w_t; up to the factor 1/(beta m) it is

    Ramp          ``sum_{i in Z_t} h_i``. Ramp is the minimum of such sums over sets Z of beta
                  positives, since h_i decreases in p_i: at most its value at Z_t.
    ClippedRamp   ``max_J sum_{j in J} sum_{i in Z_t} m_ij`` over sets J of m negatives, with
                  ``m_ij = 1`` for the pairs that are clipped at w_t (p_i < q_j, all negatives j
                  counted) and ``(1 - p_i + q_j)_+`` for the others: each is at least
                  ``min(1, (1 - p_i + q_j)_+)``, and equal to it at w_t.

Where every user has n_pos <= k, Ramp is convex and its majorant is Ramp itself.

Sources: Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003);
Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006 (the clipped hinge);
Yu and Joachims, "Learning structural SVMs with latent variables", ICML 2009 (frozen choices).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.surrogates import _majorant_kernels as kernels
from structsvm_papk.surrogates.base import Surrogate


class Frozen(NamedTuple):
    """What is frozen of lists at some scores, by position.

    Of each user's positives `order` is by decreasing score, and `rank` its inverse, at most k; it
    is k at negatives. Of each negative `n_free` counts the pairs with the best positives that are
    not clipped.
    """

    order: Array
    rank: Array
    n_free: Array

    @classmethod
    def at(cls, surrogate: Surrogate, scores: Array, indptr: Array, n_pos: Array) -> Frozen:
        """Of lists at these scores."""
        order, rank, n_free = np.zeros((3, scores.size), dtype=np.int64)
        kernels.freeze(scores, indptr, n_pos, surrogate.k, order, rank, n_free)
        return cls(order, rank, n_free)


@dataclass(frozen=True, eq=False, kw_only=True)
class MajorantSurrogate(Surrogate):
    """A convex surrogate that holds what was frozen at a point, for these lists only."""

    shift_invariant = True
    parts: ClassVar[tuple[str, ...]]  # the fields that are frozen, by position
    __eq__, __hash__ = object.__eq__, object.__hash__  # arrays are not compared

    def settings(self) -> tuple[Any, ...]:  # noqa: D102
        return self.name, self.k, self.depth, self.frozen()

    def frozen(self) -> Array:
        """What is frozen, by position: one row for each kind of entry."""
        return np.stack([getattr(self, name) for name in self.parts])

    def restricted(self, positions: Array, m: int) -> Surrogate:  # noqa: D102
        held = {name: getattr(self, name)[positions] for name in self.parts}
        return replace(self, depth=max(m, self.k), **held)

    def l1_bound(self, n_pos: Array) -> Array:  # noqa: D102
        return np.full(np.shape(n_pos), 2.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenPositives(MajorantSurrogate):
    """Ramp with its best positives frozen: the `chosen` ones. Convex."""

    name = "frozen_positives"
    parts = ("chosen",)
    chosen: Array

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        kernels.frozen_positives(self.k, self.counted, self.chosen, *lists)


@dataclass(frozen=True, eq=False, kw_only=True)
class FrozenPairs(MajorantSurrogate):
    """ClippedRamp with its best positives and its clipped pairs frozen, see `Frozen`. Convex."""

    name = "frozen_pairs"
    parts = ("order", "rank", "n_free")
    order: Array
    rank: Array
    n_free: Array

    def evaluate(self, *lists: Any) -> None:  # noqa: D102
        kernels.frozen_pairs(self.k, self.counted, self.order, self.n_free, *lists)
