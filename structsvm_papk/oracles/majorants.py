"""The risk of a majorant, and which of an earlier one's cuts hold for it."""

from __future__ import annotations

from typing import cast

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.oracle import BlockOracle, Rounding
from structsvm_papk.surrogates.majorants import LinearTerm, MajorantSurrogate


class Majorant(ListRisk):
    """A convex risk that is nowhere below another one and tight at one point."""

    surrogate: MajorantSurrogate
    sample = None  # what is frozen belongs to all users

    def __init__(self, surrogate: MajorantSurrogate, risk: ListRisk) -> None:
        super().__init__(surrogate, risk.data, "cap", risk.n_blocks, risk.n_threads)
        self.exact = risk.surrogate.is_its_majorant(risk.data.n_pos)
        self._n_reused = 0  # how often linear terms in cuts were changed

    def rounding(self) -> Rounding:
        """As for the risk; cuts that were carried over had their linear terms changed as often."""
        bound = super().rounding()
        return Rounding(bound.scores, (1 + self._n_reused) * bound.slopes)

    def reuse(
        self, previous: BlockOracle, cuts: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array] | None:
        """The cuts of an earlier majorant that are cuts of this one; None where it is of another
        kind.

        A block keeps its cuts where what was frozen is the same in all its users; a linear term
        that differs is moved from one to the other. The other blocks get the cut 0: a majorant of a
        risk that is nowhere negative.
        """
        if not isinstance(previous, Majorant):
            return None
        if type(self.surrogate) is not type(previous.surrogate):
            return None
        slopes, intercepts, blocks = cuts
        changed = self.surrogate.changed_positions(previous.surrogate)
        per_block = np.add.reduceat(changed, self.data.indptr[self.user_bounds[:-1]])
        keep = per_block[blocks] == 0
        slopes, intercepts, blocks = slopes[keep], intercepts[keep], blocks[keep]
        if self.surrogate.linear_term() is not None and keep.any():
            self._n_reused = previous._n_reused + 1
            (shift, constants), (old_shift, old_constants) = (
                risk._linear_term() for risk in (self, previous)
            )
            slopes = slopes + (shift - old_shift)[blocks]
            intercepts = intercepts + (constants - old_constants)[blocks]
        empty = np.flatnonzero(per_block)  # these get the cut 0, as the risk is nowhere negative
        return (
            np.concatenate([slopes, np.zeros((empty.size, slopes.shape[1]))]),
            np.concatenate([intercepts, np.zeros(empty.size)]),
            np.concatenate([blocks, empty]),
        )

    def _linear_term(self):
        """Slope and constant of each block's linear term."""
        term = cast(LinearTerm, self.surrogate.linear_term())
        risk = ListRisk(term, self.data, "cap", self.n_blocks, self.n_threads)
        constants, slopes = risk.blocks(np.zeros(self.n_features))
        return slopes, constants
