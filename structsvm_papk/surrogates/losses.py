"""The surrogates of the package by name; notation as in `structsvm_papk.surrogates.base`.

    convex        Avg, Max, TS, PAUC
    not convex    Ramp and ClippedRamp, which have convex majorants, and TSAlg2

Majorants for the convex-concave procedure freeze what a surrogate chooses at a point: see
`FrozenPositives` and `FrozenPairs`, and docs/math/proofs.md, "ClippedRamp".

Sources: Yuille and Rangarajan, "The concave-convex procedure", Neural Computation 15 (2003);
Collobert, Sinz, Weston, Bottou, "Trading convexity for scalability", ICML 2006 (the clipped hinge);
Yu and Joachims, "Learning structural SVMs with latent variables", ICML 2009 (frozen choices).
"""

from dataclasses import dataclass
from difflib import get_close_matches
from inspect import isclass

import numpy as np

from structsvm_papk._sorting import top_k
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, is_one_of
from structsvm_papk.surrogates import _kernels, _majorant_kernels
from structsvm_papk.surrogates._kernels import BEST, EVERY, WORST, HingePairs
from structsvm_papk.surrogates.base import (
    Hinges,
    ListTerms,
    MajorantSurrogate,
    PairMean,
    Surrogate,
    TermBlocks,
)

_GROUPS = 2  # of partners with the same slopes, for each block


class Avg(PairMean):
    """``1/m sum_{j<=m} (1 - mean(p) + q_(j))_+``, equation (10). Convex.

    No upper bound of the risk in general; it is where ``p_(beta) >= mean(p)``.
    """

    name = "avg"
    kernel = staticmethod(_kernels.average)
    top_negatives_only = True

    def weight_shares(self, n_pos: Array, n_neg: Array) -> tuple[Array, Array]:  # noqa: D102
        return np.full(n_pos.shape, np.inf), self.negatives_counted(n_neg) / n_neg

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return MeanThreshold(n_neg, self.depth_of_list(n_neg))


class Max(Hinges):
    """``1/(beta m) sum_{i>n_pos-beta} sum_{j<=m} (1 - p_(i) + q_(j))_+``, equation (24). Convex."""

    name = "max"
    pairs = HingePairs(WORST)

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return PositiveTerms(n_pos, self.depth_of_list(n_neg), n_counted=min(n_pos, self.k))


class TS(Hinges):
    """The tight structural surrogate, equation (14), solved exactly. Convex.

    With ``t_i = p_(i) - 1[i <= beta]`` and ``t~`` its least-squares non-increasing regression,

        TS = 1/(beta m) sum_{i<=n_pos} sum_{j<=m} (q_(j) - t~_i)_+

    The maximising ordering is monotone in the score, and every row of it contributes
    ``C(r) - r t_i`` with one common concave C; isotonic problems of that form are solved by the
    least-squares regression. The paper's Algorithm 2 computes something else, see `TSAlg2`.
    """

    name = "ts"
    pairs = HingePairs(EVERY, pooled=True)

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        return NegativeTerms(n_neg, self.depth_of_list(n_neg), min(n_pos, self.k), pooled=True)


class PAUC(Hinges):
    """``1/(n_pos m) sum_{i<=n_pos} sum_{j<=m} (1 - p_(i) + q_(j))_+``. Convex.

    The structural surrogate of the partial AUC over [0, m/n_neg] (Narasimhan and Agarwal, 2013).
    """

    name = "pauc"
    pairs = HingePairs(EVERY, mean_over_all=True)

    def list_terms(self, n_pos: int, n_neg: int) -> ListTerms:  # noqa: D102
        m = self.depth_of_list(n_neg)
        # all positives count, so that either side may have the terms: blocks share the shorter one
        if m > n_pos:
            return NegativeTerms(n_neg, m, n_rows=n_pos, pooled=False)
        return PositiveTerms(n_pos, m, n_counted=n_pos)


def frozen_at(surrogate: Surrogate, scores: Array, indptr: Array, n_pos: Array) -> Array:
    """What is frozen of lists at some scores, by position: the rows order, rank and n_free.

    Of each user's positives `order` is by decreasing score, and `rank` its inverse, at most k; it
    is k at negatives. Of each negative `n_free` counts the pairs with the best positives that are
    not clipped.
    """
    frozen = np.zeros((3, scores.size), dtype=np.int64)
    _majorant_kernels.freeze(scores, indptr, n_pos, surrogate.k, frozen)
    return frozen


class FrozenPositives(MajorantSurrogate):
    """Ramp with its best positives Z_t at a point frozen, those that are True. Convex.

    ``1/(beta m) sum_{i in Z_t} sum_{j<=m} (1 - p_i + q_(j))_+``. Ramp is the minimum of such sums
    over sets of beta positives, as a sum decreases in p_i: it is at most its value at Z_t.
    """

    name = "frozen_positives"

    def run_kernel(self, *lists: Array) -> None:  # noqa: D102
        (best,) = self.frozen
        added = _kernels.HingeSum(k=self.k, depth=self.kernel_depth, pairs=HingePairs(EVERY))
        _kernels.hinges(added, best, *lists)


class FrozenPairs(MajorantSurrogate):
    """ClippedRamp with its best positives Z_t and its clipped pairs at a point frozen. Convex.

    ``1/(beta m) max_J sum_{j in J} sum_{i in Z_t} m_ij`` over sets J of m negatives, with 1 for the
    pairs that were clipped (p_i < q_j) and ``(1 - p_i + q_j)_+`` for the others: each is at least
    ``min(1, (1 - p_i + q_j)_+)``, and equal to it at that point.
    """

    name = "frozen_pairs"

    def run_kernel(self, *lists: Array) -> None:  # noqa: D102
        _majorant_kernels.frozen_pairs(self.k, self.kernel_depth, self.frozen, *lists)


class TSAlg2(Hinges):
    """What the paper's Algorithm 2 computes for TS. Not convex; for comparisons only.

    Its line 11 ranks the positives by the scores instead of by the ordering that is maximised:

        1/(beta m) [ sum_{i<=beta} sum_{j<=m} (1 - p_(i) + q_(j))_+
                     + sum_{i>beta} sum_{j<=m} (q_(j) - p_(i))_+ ]

    Never below `TS`. With k = 1, one negative at 0 and positives (1, 0) and (0, 1) it is 0 and 0,
    but 1/2 at the midpoint; cuts made from it are not valid.
    """

    name = "ts_alg2"
    convex = False
    pairs = HingePairs(BEST, others=True)


class Ramp(Hinges):
    """``1/(beta m) sum_{i<=beta} sum_{j<=m} (1 - p_(i) + q_(j))_+``, equation (8).

    Not convex where n_pos > k; an upper bound of the risk.
    """

    name = "ramp"
    convex = False
    majorised = boxed = True
    pairs = HingePairs(BEST)

    def majorant(self, scores: Array, indptr: Array, n_pos: Array) -> FrozenPositives:  # noqa: D102
        _, rank, _ = frozen_at(self, scores, indptr, n_pos)
        return FrozenPositives(self.k, depth=self.depth, frozen=(rank < self.k)[None])

    def is_convex_on(self, n_pos: Array) -> bool:
        """Where every user has ``n_pos <= k``: there Ramp is convex."""
        return bool((np.asarray(n_pos) <= self.k).all())


class ClippedRamp(PairMean):
    """``1/(beta m) sum_{i<=beta} sum_{j<=m} min(1, (1 - p_(i) + q_(j))_+)``. Not convex.

    Values in [0, 1], never below the risk, and equal to it once the scores are scaled up far
    enough, ties included.
    """

    name = "clipped_ramp"
    kernel = staticmethod(_kernels.clipped_pairs)
    convex = False
    majorised = boxed = clipped = True
    top_negatives_only = True

    def majorant(self, scores: Array, indptr: Array, n_pos: Array) -> FrozenPairs:  # noqa: D102
        frozen = frozen_at(self, scores, indptr, n_pos)
        return FrozenPairs(self.k, depth=self.depth, frozen=frozen)


SURROGATES = {cls.name: cls for cls in (Avg, Max, TS, TSAlg2, PAUC, Ramp, ClippedRamp)}
CONVEX = tuple(name for name, cls in SURROGATES.items() if cls.convex)


def make_surrogate(name: str, k: int, depth: int | float | None = None) -> Surrogate:
    """Return the surrogate called `name` at `k` and a training depth.

    Parameters
    ----------
    name : str
        A key of `SURROGATES`.
    k : int
        Number of recommended items.
    depth : int, float or None
        Negatives that count, see `Surrogate`.

    Raises
    ------
    InputError
        Unknown name, k that is not a whole number of at least 1, or a depth that is neither a
        whole number of at least k nor a share between 0 and 1.
    """
    if not is_one_of(name, SURROGATES):
        close = get_close_matches(str(name).lower(), SURROGATES, n=1)
        hint = ""
        if close:
            hint = f"; did you mean {close[0]!r}?"
        if isclass(name) and issubclass(name, Surrogate):
            hint = f", or give an object: {name.__name__}(k=..)"
        raise InputError(f"unknown surrogate {name!r}: choose from {', '.join(SURROGATES)}{hint}")
    return SURROGATES[name](k, depth=depth)


# --- terms of a single list, for `list_terms` ---------------------------------------------------


def _hinge_blocks(
    thresholds: Array,
    partners: Array,
    terms: Array,
    counted: Array,
    *,
    sign: float,
    r: int,
    bounds: Array,
    n_scores: int,
) -> TermBlocks:
    """Blocks of the terms ``sum_i (terms_j - thresholds_i)_+ / r`` that count.

    Thresholds, which do not increase, are of the positions `partners`; terms of the positions
    `counted`, which increase and say in which block a term is. A term rises with its score (`sign`
    is 1) or falls, and a threshold likewise.
    """
    n_blocks = bounds.size - 1
    in_block = np.searchsorted(counted, bounds)
    sums = np.empty(n_blocks)
    active = np.empty(terms.size, dtype=np.int64)  # pairs of each term
    active_with = np.empty((n_blocks, thresholds.size), dtype=np.int64)  # of each threshold
    _kernels.sweep_blocks(thresholds, terms, in_block, sums, active_with, active)
    # no count falls along the thresholds: where their sum stays, each does
    starts = np.flatnonzero(np.diff(active_with.sum(axis=0), prepend=-1))
    if starts.size > _GROUPS * n_blocks:  # they would cost more than the thresholds one by one
        starts = np.arange(thresholds.size)
    scale = 1.0 / (counted.size * r)
    slopes = np.zeros(n_scores)
    slopes[counted] = sign * scale * active
    return TermBlocks(
        values=scale * sums,
        slopes=slopes,
        partner_slopes=-sign * scale * active_with[:, starts],
        partners=partners,
        edges=np.append(starts, thresholds.size),
        n_used=np.diff(in_block),
        lowest=np.maximum(terms.min() - thresholds, 0.0).sum() / r,
    )


@dataclass(frozen=True)
class PositiveTerms(ListTerms):
    """The `n_counted` largest, c, over the positives of ``sum_{j<=m} (1 - p_i + q_(j))_+``; r=m."""

    n_counted: int
    over_negatives = False

    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:  # noqa: D102
        partners = n_pos + top_k(scores[n_pos:], self.depth)
        counted = top_k(-scores[:n_pos], self.n_counted)
        # (q - t)_+ is (-t - -q)_+: the negatives are the thresholds here
        order = partners[np.argsort(scores[partners], kind="stable")]
        return _hinge_blocks(
            -scores[order], order, 1.0 - scores[counted], counted,
            sign=-1.0, r=self.depth, bounds=bounds, n_scores=scores.size,
        )  # fmt: skip


@dataclass(frozen=True)
class NegativeTerms(ListTerms):
    """The m = c largest over the negatives of ``sum_i (q_j - t_i)_+``; r is `n_rows`.

    The thresholds t are ``p_i - 1``, or `pooled` as in `TS`, with ``beta = n_rows``.
    """

    n_rows: int
    pooled: bool = False
    over_negatives = True
    most_blocks = 8  # each has a slope at every positive: an evaluation gets dearer with them

    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:  # noqa: D102
        thresholds, order = self._thresholds(scores[:n_pos])
        counted = n_pos + top_k(scores[n_pos:], self.depth)
        return _hinge_blocks(
            thresholds, order, scores[counted], counted,
            sign=1.0, r=self.n_rows, bounds=bounds, n_scores=scores.size,
        )  # fmt: skip

    def _thresholds(self, positives: Array) -> tuple[Array, Array]:
        """Thresholds that do not increase, and the positives behind them."""
        order = np.argsort(-positives, kind="stable")
        thresholds = positives[order] - 1.0
        if self.pooled:
            _kernels.pool_thresholds(thresholds, positives, 0, order, self.n_rows)
        return thresholds, order


@dataclass(frozen=True)
class MeanThreshold(ListTerms):
    """The m = c largest over the negatives of ``(1 - mean(p) + q_j)_+``; r = 1."""

    over_negatives = True
    of_mean = True

    def blocks(self, scores: Array, n_pos: int, bounds: Array) -> TermBlocks:  # noqa: D102
        n_blocks = bounds.size - 1
        threshold = scores[:n_pos].mean() - 1.0
        largest = n_pos + top_k(scores[n_pos:], self.depth)
        block = np.searchsorted(bounds, largest, side="right") - 1
        above = scores[largest] - threshold
        active = above >= 0.0
        lowest = max(float(above.min()), 0.0)
        scale = 1.0 / self.depth
        slopes = np.zeros(scores.size)
        slopes[largest[active]] = scale
        return TermBlocks(
            values=scale * np.bincount(block, np.maximum(above, 0.0), n_blocks),
            slopes=slopes,
            partner_slopes=-scale / n_pos * np.bincount(block, active, n_blocks)[:, None],
            partners=np.arange(n_pos),
            edges=np.array([0, n_pos]),
            n_used=np.bincount(block, minlength=n_blocks),
            lowest=lowest,
        )
