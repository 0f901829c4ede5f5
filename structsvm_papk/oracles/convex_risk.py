"""Risks of convex surrogates in memory: one list in blocks, and users as blocks of the dual."""

from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import features
from structsvm_papk.data.features import EPS, FEW_ROUNDINGS, rounding_bound
from structsvm_papk.oracles.cut_blocks import CutBlocks
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.short_lists import ShortLists
from structsvm_papk.oracles.user_blocks import AverageBlocks, gram_bytes
from structsvm_papk.solvers.oracle import (
    BlockOracle,
    Cuts,
    DualBlocks,
    DualOracle,
    Majorant,
    Oracle,
    Rounding,
)
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import ListTerms, MajorantSurrogate, check_scores
from structsvm_papk.surrogates.losses import MeanThreshold

_FEATURES, _USERS = 1000, 20  # from which on the ascent was faster, see docs/benchmarks.md
_GRAM_BYTES = 1 << 29  # of Avg: where its matrices may need more, cuts take less


class ConvexRisk(ListRisk, DualOracle):
    """A `ListRisk` with all that solvers of convex risks may ask for."""

    def dual_blocks(self, alpha: float, start: Any = None) -> DualBlocks | None:
        """Users as blocks of the dual, for `DualAscent`; see `structsvm_papk.oracles.user_blocks`.

        None for surrogates whose polytopes are not known.
        """
        is_avg = isinstance(self.surrogate.list_terms(1, 1), MeanThreshold)
        if is_avg and gram_bytes(self) <= _GRAM_BYTES:
            return AverageBlocks(self, alpha, start)
        return CutBlocks(self, alpha, start) if self._restricts() else None

    def suits_dual_ascent(self, alpha: float) -> bool:
        """Whether the ascent is likely to be faster: where users share little of what they need."""
        if not sparse.issparse(self.data.X) or self.n_features < _FEATURES or self.n_users < _USERS:
            return False
        return self._restricts()

    def _restricts(self):
        """Whether the surrogate knows what it is on a part of a list."""
        return self.surrogate.restricted(np.arange(self.data.sizes[0]), 1) is not None

    def _blocks_of_one_list(self, n_blocks: int, short: ShortLists | None) -> BlockOracle | None:
        terms = self.surrogate.list_terms(int(self.data.n_pos[0]), int(self.data.n_neg[0]))
        return None if terms is None else OneListCuts(self, terms, n_blocks, short)


class OneListCuts(BlockOracle):
    """Oracle of one user's risk with several cuts from one evaluation of the list.

    Its loss is the sum of the c largest of many convex terms f_i (`ListTerms`) over r,
    ``min_s c s + sum_i (f_i - s)_+``: for fixed s a sum over terms, any partition of which gives
    blocks, convex in (w, s). At the optimal s their cuts together are the usual single cut. The
    variable of the cuts is s/r, between 0 and R(w) at its optimum: the certified bound uses this.
    At most one block for each positive (pAUC, Max) or negative (TS, Avg). ``docs/math/one-list.md``
    """

    def __init__(
        self, risk: ListRisk, terms: ListTerms, n_blocks: int, short: ShortLists | None = None
    ) -> None:
        self.risk, self.surrogate, self.data = risk, risk.surrogate, risk.data
        self._short = short
        self.n_features = risk.n_features
        self._n_pos = int(risk.data.n_pos[0])
        self._terms = terms
        first, size = self._n_pos if terms.over_negatives else 0, terms.n_terms
        edges = np.linspace(first, first + size, min(n_blocks, size) + 1)
        self._bounds = edges.astype(np.int64)
        # the most scores that a sum has: those of a block that count, and all of the other side
        own, others = self._n_pos, terms.depth
        if terms.over_negatives:
            own, others = others, own
        self._longest = others + min(own, int(np.diff(self._bounds).max()))
        self.n_blocks = self._bounds.size - 1
        self.layout = f"rows {self._bounds.tolist()}"

    def __str__(self) -> str:
        return str(self.risk)

    def fingerprint(self) -> str:
        """The fingerprint of the risk."""
        return self.risk.fingerprint()

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and slope of each block at w and the best s."""
        cuts = self.cuts(w)
        return cuts.intercepts + cuts.slopes @ cuts.point, cuts.slopes[:, : self.n_features]

    @property
    def rows_scored(self) -> int:  # type: ignore[override]
        """Rows scored so far."""
        return self.risk.rows_scored if self._short is None else self._short.n_visits

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w; see `Cuts`."""
        data, bounds, scores = self._list_at(w)
        check_scores(scores)
        terms = self._terms.blocks(scores, int(data.n_pos[0]), bounds)
        values, counted = terms.values, terms.counted
        intercepts, sizes, steep = tangent_intercepts(scores, terms.own, bounds, values)
        shared, partners = np.abs(terms.shared), scores[terms.partners]
        intercepts -= terms.shared @ partners
        sizes += shared @ (1.0 + np.abs(partners))
        slopes = self._slopes(terms, data, bounds)
        steeper = (steep.sum() + shared.sum()) / self.surrogate.l1_bound(data.n_pos).mean()
        errors = (self._longest + FEW_ROUNDINGS) * EPS * sizes
        if counted.sum() < self._terms.n_terms:  # some terms are dropped: s decides which
            share = -counted / counted.sum()
            share[0] += 1.0
            slopes = np.column_stack([slopes, share])
            w = np.append(w, terms.lowest)
        return Cuts(values.sum(), slopes, intercepts, w, errors, max(1.0, float(steeper)))

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        data = self.data
        l1_bound = self.surrogate.l1_bound(data.n_pos).mean()
        shifted = self.risk.origins() is not None
        bound = rounding_bound(data.spread(), shifted, l1_bound, self._longest)
        return bound.scaled(data.column_scale)

    def column_text(self, f: int) -> str:
        """A column with its mean and spread, for messages."""
        return self.data.column_text(f)

    def _list_at(self, w):
        """The list, or what counts of it at w; the blocks' bounds in it; its scores."""
        if self._short is None:
            return self.data, self._bounds, self.risk.scores(w)
        scores = self._short.at(w)
        return self._short.data, np.searchsorted(self._short.positions, self._bounds), scores

    def _slopes(self, terms, data, bounds):
        """The blocks' subgradients in the features."""
        origins = None if self.risk.origins() is None else data.origins()
        at = None if origins is None else origins.at(terms.partners)
        rows = features.shifted_rows(data.X, data.rows[terms.partners], at)
        slopes = np.asarray(terms.shared @ rows, dtype=np.float64)
        features.add_weighted_rows(data.X, data.rows, terms.own, bounds, slopes, origins)
        return data.divided(slopes)


class MajorantRisk(ConvexRisk, Majorant):
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
        changed = (self.surrogate.held != previous.surrogate.held).any(axis=0)
        per_block = np.logical_or.reduceat(changed, self.data.indptr[self.user_bounds[:-1]])
        keep, empty = ~per_block[blocks], np.flatnonzero(per_block)
        return (
            np.concatenate([slopes[keep], np.zeros((empty.size, slopes.shape[1]))]),
            np.concatenate([intercepts[keep], np.zeros(empty.size)]),
            np.concatenate([blocks[keep], empty]),
        )
