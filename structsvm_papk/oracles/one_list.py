"""Several cuts from one evaluation of a single user's list.

A list cannot be split into users, but its convex surrogates are sums of the m largest of many
convex terms, one for each positive or one for each negative:

    pAUC   sum over all positives         of  h_i  = sum_{j<=m} (1 - p_i + q_(j))_+
    Max    the beta largest over i        of  h_i
    TS     the m largest over negatives   of  f(q_j) = sum_i (q_j - t~_i)_+
    Avg    the m largest over negatives   of  (1 - mean(p) + q_j)_+

with m the depth. The sum of the c largest is ``min_s c s + sum_i (f_i - s)_+``
(Rockafellar and Uryasev's formula for the conditional value at risk). For fixed s the right-hand
side is a sum over terms, so any partition of the terms gives blocks, each convex in (w, s). At the
optimal s the cuts of all blocks together are the usual single cut.

The risk is the mean of the c largest, over r = m (Max), beta (TS) or 1 (Avg). The variable of the
cuts is s/r. At its optimum it is the c-th largest of the ``f_i/r >= 0``, hence between 0 and R(w),
the mean of the c largest: the certified bound uses this.

That f is convex for TS: with m equal negatives q, TS is f(q) / beta, and TS is convex.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import _products
from structsvm_papk.data.origins import EPS, FEW_ROUNDINGS, rounding_bound
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, Rounding
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import check_scores

if TYPE_CHECKING:
    from structsvm_papk.oracles.list_risk import ListRisk
    from structsvm_papk.oracles.short_lists import ShortLists
    from structsvm_papk.surrogates.list_terms import ListTerms


def terms_of(risk: ListRisk) -> ListTerms | None:
    """The terms of the list of a risk of a single user, or None where none are known."""
    return risk.surrogate.list_terms(int(risk.data.n_pos[0]), int(risk.data.n_neg[0]))


class OneListCuts(BlockOracle):
    """Oracle of one user's risk with a cut for each block of its pairs.

    At most one block for each positive (pAUC, Max) or negative (TS, Avg).
    """

    def __init__(self, risk: ListRisk, n_blocks: int, short: ShortLists | None = None) -> None:
        self.risk, self.surrogate, self.data = risk, risk.surrogate, risk.data
        self._short = short
        self.n_features = risk.n_features
        self._n_pos = int(risk.data.n_pos[0])
        terms: Any = terms_of(risk)
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
        self.layout = fingerprint_of("rows", self._bounds)

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
        values, *coef, counted, lowest = self._terms.blocks(scores, data.n_pos[0], bounds)
        coef = _Coefficients(*coef)
        shifted = self.risk.origins() is not None
        slopes = coef.slopes(data, bounds, data.origins() if shifted else None)
        intercepts, sizes, steep = coef.intercepts(scores, bounds, values)
        steeper = steep / self.surrogate.l1_bound(data.n_pos).mean()
        errors = (self._longest + FEW_ROUNDINGS) * EPS * sizes
        if counted.sum() < self._terms.n_terms:  # some terms are dropped: s decides which
            share = -counted / counted.sum()
            share[0] += 1.0
            slopes = np.column_stack([slopes, share])
            w = np.append(w, lowest)
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


class _Coefficients(NamedTuple):
    """Subgradients of the blocks in the scores: `own` in their rows, `shared` at `partners`."""

    own: np.ndarray
    shared: np.ndarray
    partners: np.ndarray

    def slopes(self, data, bounds, origins):
        """The blocks' subgradients in the features."""
        own, shared, partners = self
        at = None if origins is None else origins.at(partners)
        rows = _products.shifted_rows(data.X, data.rows[partners], at)
        slopes = np.asarray(shared @ rows, dtype=np.float64)
        _products.add_weighted_rows(data.X, data.rows, own, bounds, slopes, origins)
        return data.divided(slopes)

    def intercepts(self, scores, bounds, values):
        """``values - coef . scores`` of each block; the absolute terms, margins of 1 included.

        Also what the absolute subgradients of all blocks add up to.
        """
        own, shared, partners = self
        intercepts, sizes, steep = tangent_intercepts(scores, own, bounds, values)
        intercepts -= shared @ scores[partners]
        sizes += np.abs(shared) @ (1.0 + np.abs(scores[partners]))
        return intercepts, sizes, steep.sum() + np.abs(shared).sum()
