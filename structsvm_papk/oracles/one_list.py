"""The risk of one list with several cuts from one evaluation."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from structsvm_papk._rounding import Rounding, error_of_sum
from structsvm_papk._types import Array
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import ListTerms, TermBlocks, check_scores


class OneListCuts(BlockOracle):
    """One user's risk with several cuts from one evaluation of the list.

    Its loss is the sum of the c largest of many convex terms f_i (`ListTerms`) over r,
    ``min_s c s + sum_i (f_i - s)_+``: for fixed s a sum over terms, any partition of which gives
    blocks, convex in (w, s). At the optimal s their cuts together are the usual single cut. The
    variable of the cuts is s/r, between 0 and R(w) at its optimum: the certified bound uses this.
    At most one block for each term, a positive or a negative. See ``docs/math/proofs.md``, "One
    long list".
    """

    def __init__(self, risk: ListRisk, terms: ListTerms, n_blocks: int) -> None:
        self._risk = risk
        self._terms = terms
        self.n_features = risk.n_features
        self.convex = risk.convex
        self.nonnegative = risk.nonnegative
        self.n_entries = risk.n_entries
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

    def __str__(self) -> str:
        return str(self._risk)

    def fingerprint(self) -> str:
        """That of the risk: how it is cut does not count."""
        return self._risk.fingerprint()

    def column_text(self, f: int) -> str:
        """A feature by name, for messages."""
        return self._risk.column_text(f)

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        return self._risk.rounding_of(self._longest)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and slope of each block at w and the best s."""
        cuts = self.cuts(w)
        return cuts.intercepts + cuts.slopes @ cuts.point, cuts.slopes[:, : self.n_features]

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w; see `Cuts`."""
        data = self._risk.data
        bounds = self._bounds
        scores = self._risk.scores(w)
        self.rows_scored += scores.size
        check_scores(scores)
        terms = self._terms.blocks(scores, int(data.n_pos[0]), bounds)
        # value less slope . scores: over each block's terms, then over their partners
        intercepts, sizes, steepness = tangent_intercepts(
            scores, terms.slopes, bounds, terms.values
        )
        weights = np.abs(terms.partner_slopes)
        partner_scores = scores[terms.partners]
        groups = terms.edges[:-1]
        intercepts -= terms.partner_slopes @ np.add.reduceat(partner_scores, groups)
        sizes += weights @ np.add.reduceat(1.0 + np.abs(partner_scores), groups)
        l1_norm = steepness.sum() + (weights @ np.diff(terms.edges)).sum()
        steepest = l1_norm / self._risk.surrogate.l1_bound(data.n_pos).mean()
        slopes = self._slopes_of(terms)
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
            lipschitz_factor=max(1.0, float(steepest)),
        )

    def _slopes_of(self, terms: TermBlocks) -> Array:
        """The blocks' subgradients in the features."""
        columns, rows = self._risk.list_rows()
        partners = rows[terms.partners]
        n_groups = terms.edges.size - 1
        if n_groups == partners.size:
            slopes = columns.combined_rows(partners, terms.partner_slopes)
        else:
            sums = np.zeros((n_groups, self.n_features))
            columns.add_weighted_rows(partners, np.ones(partners.size), terms.edges, sums)
            slopes = terms.partner_slopes @ sums
        columns.add_weighted_rows(rows, terms.slopes, self._bounds, slopes)
        return self._risk.units.of_columns(slopes)
