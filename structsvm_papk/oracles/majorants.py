"""The risk of a majorant, and which of an earlier one's cuts hold for it."""

from __future__ import annotations

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.oracle import Majorant, Oracle
from structsvm_papk.surrogates.majorants import MajorantSurrogate


class MajorantRisk(ListRisk, Majorant):
    """A convex risk that is nowhere below another one and tight at one point."""

    surrogate: MajorantSurrogate
    sample = None  # what is frozen belongs to all users

    def __init__(self, surrogate: MajorantSurrogate, risk: ListRisk) -> None:
        super().__init__(surrogate, risk.data, "cap", risk.n_blocks, risk.n_threads)
        self.exact = risk.surrogate.is_convex_on(risk.data.n_pos)

    def transfer_cuts(
        self, previous: Oracle, cuts: tuple[Array, Array, Array]
    ) -> tuple[Array, Array, Array] | None:
        """The cuts of the blocks of users for whom the same is frozen in the earlier majorant.

        The other blocks get the cut 0: this is a majorant of a risk that is nowhere negative.
        """
        if not isinstance(previous, MajorantRisk):
            return None
        if type(self.surrogate) is not type(previous.surrogate):
            return None
        slopes, intercepts, blocks = cuts
        changed = (self.surrogate.frozen() != previous.surrogate.frozen()).any(axis=0)
        per_block = np.logical_or.reduceat(changed, self.data.indptr[self.user_bounds[:-1]])
        keep, empty = ~per_block[blocks], np.flatnonzero(per_block)
        return (
            np.concatenate([slopes[keep], np.zeros((empty.size, slopes.shape[1]))]),
            np.concatenate([intercepts[keep], np.zeros(empty.size)]),
            np.concatenate([blocks[keep], empty]),
        )
