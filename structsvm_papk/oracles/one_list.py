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

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from structsvm_papk.data import _products
from structsvm_papk.data.origins import EPS, FEW_ROUNDINGS, rounding_bound
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.surrogates import _kernels
from structsvm_papk.surrogates.base import check_scores

_BY_POSITIVES = ("pauc", "max")
_BY_NEGATIVES = ("ts", "avg")


def can_split(surrogate):
    """Whether a single list of this surrogate has blocks."""
    return surrogate.name in (*_BY_POSITIVES, *_BY_NEGATIVES)


class OneListCuts(BlockOracle):
    """Oracle of one user's risk with a cut for each block of its pairs.

    Parameters
    ----------
    risk : EmpiricalRisk
        Of a single user.
    n_blocks : int
        At most one block for each positive (pAUC, Max) or negative (TS, Avg).
    short : ShortLists, optional
        Finds the rows that count, instead of scoring all.
    """

    def __init__(self, risk, n_blocks, short=None):
        self.risk, self.surrogate, self.data = risk, risk.surrogate, risk.data
        self._short = short
        self.n_features = risk.n_features
        self._n_pos = int(risk.data.n_pos[0])
        self._n_neg = risk.data.rows.size - self._n_pos
        self._beta = min(self._n_pos, self.surrogate.k)
        by_negatives = self.surrogate.name in _BY_NEGATIVES
        # where every pair counts, blocks on the longer side leave less to share
        self._depth = int(self.surrogate.negatives_counted([self._n_neg])[0])
        every_pair = self.surrogate.name == "pauc" and self._depth == self._n_neg
        self._by_negatives = by_negatives or (every_pair and self._n_neg > self._n_pos)
        first, size = (self._n_pos, self._n_neg) if self._by_negatives else (0, self._n_pos)
        edges = np.linspace(first, first + size, min(n_blocks, size) + 1)
        self._bounds = edges.astype(np.int64)
        self.n_blocks = self._bounds.size - 1
        self.layout = fingerprint_of("rows", self._bounds)

    def __str__(self):
        return str(self.risk)

    def fingerprint(self):
        """The fingerprint of the risk."""
        return self.risk.fingerprint()

    def blocks(self, w):
        """Value and slope of each block at w and the best s."""
        cuts = self.cuts(w)
        return cuts.intercepts + cuts.slopes @ cuts.point, cuts.slopes[:, : self.n_features]

    @property
    def row_visits(self):
        """Rows scored so far."""
        return self.risk.row_visits if self._short is None else self._short.n_visits

    def cuts(self, w):
        """The cuts of an evaluation at w; see `Cuts`."""
        data, bounds, scores = self._list_at(w)
        check_scores(scores)
        split = self._negative_side if self._by_negatives else self._positive_side
        values, coef, counted, n_terms, lowest = split(data, bounds, scores)
        shifted = self.risk.origins() is not None
        slopes = coef.slopes(data, bounds, data.origins() if shifted else None)
        product, size = coef.products(scores, bounds)
        intercepts = values - product
        errors = (self._n_terms + FEW_ROUNDINGS) * EPS * (np.abs(values) + size)
        if counted.sum() < n_terms:  # some terms are dropped: s decides which
            share = -counted / counted.sum()
            share[0] += 1.0
            slopes = np.column_stack([slopes, share])
            w = np.append(w, lowest)
        return Cuts(values.sum(), slopes, intercepts, w, errors)

    def rounding(self):
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        data = self.data
        steepness = self.surrogate.steepness(data.n_pos).mean()
        shifted = self.risk.origins() is not None
        return rounding_bound(data.spread(), shifted, steepness, self._n_terms)

    def column_text(self, f):
        """A column with its mean and spread, for messages."""
        return self.data.column_text(f)

    @property
    def _n_terms(self):
        """The most scores that a sum has."""
        return self._n_pos + self.surrogate.k

    def _list_at(self, w):
        """The list, or what counts of it at w; the blocks' bounds in it; its scores."""
        if self._short is None:
            return self.data, self._bounds, self.risk.scores(w)
        scores = self._short.at(w)
        return self._short.data, np.searchsorted(self._short.positions, self._bounds), scores

    def _positive_side(self, data, bounds, scores):
        n_pos, m = data.n_pos[0], self._depth
        n_counted = self._n_pos if self.surrogate.name == "pauc" else self._beta
        values = np.empty(self.n_blocks)
        own = np.empty(scores.size, dtype=np.int64)
        shared = np.empty((self.n_blocks, m), dtype=np.int64)
        partners, counted, lowest = _kernels.positive_blocks(
            scores, n_pos, n_counted, m, bounds, values, own, shared
        )
        scale = 1.0 / (n_counted * m)
        coef = _Coefficients(-scale * own, scale * shared, partners)
        return scale * values, coef, counted, self._n_pos, lowest / m

    def _negative_side(self, data, bounds, scores):
        n_pos, m = self._n_pos, self._depth
        thresholds, onto_positives = self._thresholds(scores[:n_pos])
        values = np.empty(self.n_blocks)
        own = np.empty(scores.size, dtype=np.int64)
        rows = np.empty((self.n_blocks, thresholds.size), dtype=np.int64)
        counted, lowest = _kernels.negative_blocks(
            scores, n_pos, thresholds, m, bounds, values, own, rows
        )
        n_rows = {"ts": self._beta, "avg": 1, "pauc": n_pos}[self.surrogate.name]
        scale = 1.0 / (n_rows * m)
        shared = -scale * onto_positives(rows)
        coef = _Coefficients(scale * own, shared, np.arange(n_pos))
        return scale * values, coef, counted, self._n_neg, lowest / n_rows

    def _thresholds(self, positives):
        """Thresholds, and how to hand their counts on to the positives behind them."""
        if self.surrogate.name == "avg":
            share = np.full((1, positives.size), 1.0 / positives.size)
            return np.array([positives.mean() - 1.0]), lambda rows: rows @ share
        pooled = self.surrogate.name == "ts"
        thresholds, order = _kernels.threshold_order(positives, pooled, self._beta)
        return thresholds, lambda rows: rows[:, np.argsort(order)]


class _Coefficients(NamedTuple):
    """Subgradients of the blocks in the scores: ``own`` in their rows, ``shared[b]`` elsewhere.

    Attributes
    ----------
    own : ndarray of shape (n_positions,)
    shared : ndarray of shape (n_blocks, n_partners)
    partners : ndarray of int
        List positions of the columns of `shared`.
    """

    own: np.ndarray
    shared: np.ndarray
    partners: np.ndarray

    def slopes(self, data, bounds, origins):
        """The blocks' subgradients in the features."""
        own, shared, partners = self
        at = None if origins is None else origins.at(partners)
        rows = _products.shifted_rows(data.X, data.rows[partners], at)
        slopes = np.asarray(shared @ rows, dtype=np.float64)
        for b, (lo, hi) in enumerate(pairwise(bounds)):
            _products.add_weighted_rows(data.X, data.rows, own, lo, hi, slopes[b], origins)
        return slopes

    def products(self, scores, bounds):
        """Each block's coefficients times the scores, and the absolute terms with margins of 1."""
        own, shared, partners = self
        terms = own * scores
        product, size = np.empty((2, bounds.size - 1))
        for b, (lo, hi) in enumerate(pairwise(bounds)):
            product[b] = terms[lo:hi].sum() + shared[b] @ scores[partners]
            size[b] = np.abs(terms[lo:hi]).sum() + np.abs(own[lo:hi]).sum()
            size[b] += np.abs(shared[b]) @ (1.0 + np.abs(scores[partners]))
        return product, size
