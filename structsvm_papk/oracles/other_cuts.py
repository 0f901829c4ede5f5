"""Other cuts of a risk than one for each run of users: of one list's terms, or from short lists."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array, Callback
from structsvm_papk.data import features
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.list_risk import ListRisk, runs_of_users
from structsvm_papk.oracles.short_lists import ShortLists
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, LineOracle
from structsvm_papk.solvers.rounding import Rounding, error_of_sum
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import ListTerms, TermBlocks, check_scores

_WORTH = 16  # rows for each one that is wanted, below which a full pass is as good
_FEW_FEATURES = 8  # a bound costs about as much memory traffic as two features


class OtherCuts(BlockOracle):
    """A risk that one solve asks for other cuts; what it says of itself is what the risk says."""

    def __init__(self, risk: BlockOracle) -> None:
        self.risk = risk
        self.n_features = risk.n_features
        self.convex = risk.convex
        self.sample = risk.sample

    def __str__(self) -> str:
        return str(self.risk)

    def fingerprint(self) -> str | None:
        """That of the risk: how it is cut does not count."""
        return self.risk.fingerprint()

    def column_text(self, f: int) -> str:
        """A feature by name, for messages."""
        return self.risk.column_text(f)


class OneListCuts(OtherCuts):
    """One user's risk with several cuts from one evaluation of the list.

    Its loss is the sum of the c largest of many convex terms f_i (`ListTerms`) over r,
    ``min_s c s + sum_i (f_i - s)_+``: for fixed s a sum over terms, any partition of which gives
    blocks, convex in (w, s). At the optimal s their cuts together are the usual single cut. The
    variable of the cuts is s/r, between 0 and R(w) at its optimum: the certified bound uses this.
    At most one block for each positive (pAUC, Max) or negative (TS, Avg). ``paper/proofs.md``, "One
    long list".
    """

    def __init__(
        self, risk: ListRisk, terms: ListTerms, n_blocks: int, short: ShortLists | None
    ) -> None:
        super().__init__(risk)
        self._lists = risk
        self._terms = terms
        self._short = short
        n_pos = int(risk.data.n_pos[0])
        first = n_pos if terms.over_negatives else 0
        edges = np.linspace(first, first + terms.n_terms, min(n_blocks, terms.n_terms) + 1)
        self._bounds = edges.astype(np.int64)
        # the most scores that a sum has: those of a block that count, and all of the other side
        in_block = int(np.diff(self._bounds).max())
        if terms.over_negatives:
            self._longest = n_pos + min(terms.depth, in_block)
        else:
            self._longest = terms.depth + min(n_pos, in_block)
        self.n_blocks = self._bounds.size - 1
        self.layout = f"rows {self._bounds.tolist()}"
        self.rows_scored = 0

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        return self._lists.rounding_of(self._longest)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and slope of each block at w and the best s."""
        cuts = self.cuts(w)
        return cuts.intercepts + cuts.slopes @ cuts.point, cuts.slopes[:, : self.n_features]

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w; see `Cuts`."""
        data, bounds, scores = self._scored_list(w)
        check_scores(scores)
        terms = self._terms.blocks(scores, int(data.n_pos[0]), bounds)
        # value less slope . scores: over each block's terms, then over their partners
        intercepts, sizes, steepness = tangent_intercepts(
            scores, terms.slopes, bounds, terms.values
        )
        partner_scores = scores[terms.partners]
        partner_weights = np.abs(terms.partner_slopes)
        intercepts -= terms.partner_slopes @ partner_scores
        sizes += partner_weights @ (1.0 + np.abs(partner_scores))
        l1_norm = steepness.sum() + partner_weights.sum()
        steepest = l1_norm / self._lists.surrogate.l1_bound(data.n_pos).mean()
        slopes = self._slopes_of(terms, data, bounds)
        point = w
        n_used = terms.n_used.sum()
        if n_used < self._terms.n_terms:  # some terms are dropped: s decides which
            # a term that is used falls as s rises; the s before the sum is in the first block
            slope_in_s = -terms.n_used / n_used
            slope_in_s[0] += 1.0
            slopes = np.column_stack([slopes, slope_in_s])
            point = np.append(w, terms.lowest)
        return Cuts(
            value=terms.values.sum(),
            slopes=slopes,
            intercepts=intercepts,
            point=point,
            errors=error_of_sum(self._longest, sizes),
            steeper=max(1.0, float(steepest)),
        )

    def _scored_list(self, w: Array) -> _ScoredList:
        """The list, or what counts of it at w, with its scores there."""
        if self._short is None:
            scores = self._lists.scores(w)
            self.rows_scored += scores.size
            return _ScoredList(self._lists.data, self._bounds, scores)
        scores = self._short.find(w)
        self.rows_scored = self._short.n_visits
        bounds = np.searchsorted(self._short.positions, self._bounds)
        return _ScoredList(self._short.data, bounds, scores)

    def _slopes_of(self, terms: TermBlocks, data: RankingData, bounds: Array) -> Array:
        """The blocks' subgradients in the features."""
        origins = None if self._lists.origins() is None else data.origins()
        partner_origins = None if origins is None else origins.at_positions(terms.partners)
        partners = features.shifted_rows(data.X, data.rows[terms.partners], partner_origins)
        slopes = np.asarray(terms.partner_slopes @ partners, dtype=np.float64)
        features.add_weighted_rows(data.X, data.rows, terms.slopes, bounds, slopes, origins)
        return data.divided(slopes)


class _ScoredList(NamedTuple):
    """One list, or what counts of it at some w: the bounds of its blocks, and its scores there."""

    data: RankingData
    bounds: Array
    scores: Array


class ShortListCuts(OtherCuts):
    """A risk that is evaluated on the rows that decide it, which are found anew at each w.

    Blocks are runs of users. `reading` is a context in which rows may be read from a file.
    """

    def __init__(
        self,
        risk: BlockOracle,
        surrogate: Surrogate,
        short: ShortLists,
        n_blocks: int,
        n_threads: int,
        reading: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        super().__init__(risk)
        self._short = short
        self._reading = reading
        self.user_bounds = runs_of_users(short.data.indptr, n_blocks)
        self._on_short = ListRisk(
            surrogate.on_counted_lists(), short.data, self.user_bounds, n_threads
        )
        self.n_blocks = self._on_short.n_blocks
        self.layout = self._on_short.layout

    @property
    def rows_scored(self) -> int:  # type: ignore[override]
        """Rows scored so far."""
        return self._short.n_visits

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self._on_short.rounding()

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and a subgradient of each block's share of the risk."""
        cuts: Any = self.cuts(w)
        return cuts.values, cuts.slopes

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w, one for each block; see `Cuts`."""
        with self._reading():
            scores = self._short.find(w)
        return self._on_short.cuts_from_scores(w, scores)


class ShortListLines(ShortListCuts, LineOracle):
    """The same with all rows in memory: line searches take them all."""

    def __init__(self, risk: ListRisk, short: ShortLists, n_blocks: int) -> None:
        super().__init__(risk, risk.surrogate, short, n_blocks, risk.n_threads)
        self._all = ListRisk(risk.surrogate, risk.data, self.user_bounds, risk.n_threads)

    @property
    def rows_scored(self) -> int:  # type: ignore[override]
        """Rows scored so far, by evaluations and by line searches."""
        return self._all.rows_scored + self._short.n_visits

    def rounding(self) -> Rounding:
        """That of sums over all rows, as line searches take them."""
        return self._all.rounding()

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions, all of them."""
        return self._all.scores(w)

    def along(self, scores: Array, direction: Array) -> Callback:
        """``t -> (R, dR/dt)`` at ``scores + t * direction``."""
        return self._all.along(scores, direction)

    def cuts_from_scores(self, w: Array, scores: Array) -> Cuts:
        """The cuts of the runs of users, for scores that are known already."""
        return self._all.cuts_from_scores(w, scores)

    def slopes(self, coef: Array) -> Array:
        """Weighted mean over the users of ``X_u' coef_u``, block by block."""
        return self._all.slopes(coef)


def short_lists_of(risk: ListRisk) -> ShortLists | None:
    """What leaves rows of a risk out that provably do not count, where that can be faster."""
    # a risk that is not convex is asked for majorants, which are made of all rows
    if not risk.convex:
        return None
    X = risk.data.X
    values_per_row = X.nnz / X.shape[0] if sparse.issparse(X) else risk.n_features
    if not skipping_pays(risk.surrogate, risk.data.n_neg, values_per_row):
        return None
    return ShortLists(risk.data, risk.surrogate, risk.map)


def skipping_pays(surrogate: Surrogate, n_neg: Array, values_per_row: float) -> bool:
    """Whether `ShortLists` are allowed, and can be faster than to score all rows."""
    if not surrogate.top_negatives_only or values_per_row < _FEW_FEATURES:
        return False
    return bool(n_neg.sum() >= _WORTH * surrogate.negatives_counted(n_neg).sum())
