"""The empirical risk of a linear scorer: the oracle that the solvers ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numba import njit

from structsvm_papk._types import Array, Callback
from structsvm_papk.data import _products
from structsvm_papk.data.origins import EPS, FEW_ROUNDINGS, rounding_bound
from structsvm_papk.data.ranking_data import check_policy
from structsvm_papk.errors import InputError
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.oracles.one_list import OneListCuts, can_split
from structsvm_papk.oracles.short_lists import short_lists
from structsvm_papk.solvers.oracle import Cuts, Rounding
from structsvm_papk.surrogates.base import check_scores

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData
    from structsvm_papk.oracles.boxes import Boxes
    from structsvm_papk.surrogates.base import Surrogate

CHUNK_ROWS = 1 << 16


class EmpiricalRisk:
    """Mean over users of a surrogate of their lists, ``R(w) = sum_u v_u S(X_u w) / sum_u v_u``.

    The weights v are those of the data, by default all the same.

    Calling it with w gives the value and a subgradient; `blocks` gives them for each block of
    users, for solvers that take several cuts from one pass over the data.

    Where the surrogate is `shift_invariant` and columns have large offsets, rows are read as their
    differences to the user's first row (`data.origins`): scores and subgradients differ from
    ``X @ w`` and its like by what does not count.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
    policy : {'exclude', 'raise', 'cap'}
        What to do with users without a positive or with fewer negatives than the surrogate's depth
        (k, where it has none): leave them out, refuse them, or count the negatives that they have;
        users without a positive or a negative are always left out.
    n_blocks : int
        Number of blocks of consecutive users with about the same number of rows (one for each
        user, if there are fewer).
    n_threads : int
        Threads that share the work. The result does not depend on it.
    skip_rows : bool
        Whether solvers may leave out rows that provably do not count, see
        `structsvm_papk.oracles.short_lists`. Values and cuts are the same to rounding.

    Attributes
    ----------
    data : RankingData
        The users that are used.
    exclusions : Exclusions
        The users that were left out, and why.
    row_visits : int
        Rows scored so far.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        data: RankingData,
        policy: str = "exclude",
        n_blocks: int = 1,
        n_threads: int = 1,
        skip_rows: bool = True,
    ) -> None:
        if n_blocks < 1 or n_threads < 1:
            raise InputError("n_blocks and n_threads must be at least 1")
        self.surrogate = surrogate
        needed, setting, policy = users_needed(surrogate, policy)
        self.exclusions = data.exclusions(needed, setting)
        self.data = data.usable(needed, policy, setting)
        self.n_threads, self.skip_rows = n_threads, skip_rows
        self.row_visits = 0
        self._rounding: Rounding | None = None
        self._steeper = 1.0  # than the surrogate says that its subgradients are
        self._user_bounds = _split_users(self.data.indptr, n_blocks)
        self._chunks, self._block_starts = _split_rows(
            self.data.indptr[self._user_bounds], max(CHUNK_ROWS, 4 * data.n_features)
        )

    @property
    def convex(self) -> bool:
        """Whether the surrogate is convex."""
        return self.surrogate.convex

    @property
    def n_features(self) -> int:
        """Length of w."""
        return self.data.n_features

    @property
    def n_users(self) -> int:
        """Number of users in the mean."""
        return self.data.n_users

    @property
    def n_blocks(self) -> int:
        """Number of blocks of users."""
        return self._user_bounds.size - 1

    @property
    def layout(self) -> str:
        """SHA-256 that tells which users are in which block."""
        return fingerprint_of("users", self._user_bounds)

    def with_blocks(self, n_blocks: int) -> Any:
        """Return an oracle of this risk for one solve, with `n_blocks` cuts an evaluation.

        Blocks are runs of users, at most one block per user; a single user's list is split into
        blocks of pairs (`OneListCuts`) where the surrogate allows it. The oracle may remember
        scores from one evaluation to the next (`row_skipping`).
        """
        skip = self.skip_rows and self.convex  # the others are asked for majorants, of all rows
        short = short_lists(self.data, self.surrogate, self._map) if skip else None
        if self.n_users == 1 and n_blocks > 1 and can_split(self.surrogate):
            return OneListCuts(self, n_blocks, short)
        return self._in_blocks(n_blocks) if short is None else _OnShortLists(self, short, n_blocks)

    def _in_blocks(self, n_blocks, data=None):
        data = self.data if data is None else data
        surrogate = self.surrogate if data is self.data else self.surrogate.on_counted_lists()
        split = EmpiricalRisk(surrogate, data, "cap", n_blocks, self.n_threads)
        split.exclusions = self.exclusions
        return split

    def fingerprint(self) -> str:
        """SHA-256 that tells this risk from others: surrogate, k and data. Blocks do not count."""
        return fingerprint_of(*self.surrogate.settings(), self.data.fingerprint())

    def __call__(self, w: Array) -> Any:
        """Return ``R(w)`` and a subgradient of shape (n_features,)."""
        values, subgradients = self.blocks(w)
        return values.sum(), subgradients.sum(axis=0)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Return the value and a subgradient of each block's share of the risk.

        Returns
        -------
        values : ndarray of shape (n_blocks,)
            They add up to ``R(w)``.
        subgradients : ndarray of shape (n_blocks, n_features)
        """
        return self.blocks_from_scores(self.scores(w))

    def cuts(self, w: Array, scores: Array | None = None) -> Cuts:
        """The cuts of an evaluation at w, one for each block; see `Cuts`.

        `scores`, if they are known already, save the product ``X @ w``.
        """
        values, slopes, *rest = self.tangents(self.scores(w) if scores is None else scores)
        return Cuts(float(values.sum()), slopes, rest[0], w, rest[1])

    def along(self, scores: Array, direction: Array) -> Callback:
        """The risk on a line, for scores that are linear in t, without another look at X.

        Returns
        -------
        callable
            ``t -> (R, dR/dt)`` at the scores ``scores + t * direction``.
        """

        def line(t):
            values, coef = self.user_values(scores + t * direction)
            return self.mean_over_users(values), self.mean_slope(coef, direction)

        return line

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions: linear in w, the costlier half of an evaluation."""
        data, origins = self.data, self.origins()
        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty(data.rows.size)
        self.row_visits += out.size
        self._map(
            lambda lo, hi: _products.scores(data.X, data.rows, w, lo, hi, out, origins),
            self._chunks,
        )
        return out

    def column_text(self, f: int) -> str:
        """A column with its mean and spread, for messages."""
        return self.data.column_text(f)

    def origins(self) -> Any:
        """What is subtracted from the rows before they are multiplied, or None; see `origins`."""
        return self.data.origins() if self.surrogate.shift_invariant else None

    def user_values(self, scores: Array) -> tuple[Array, Array]:
        """Surrogate value of each user for given scores, and its score-space subgradient."""
        check_scores(scores)
        data = self.data
        values, coef = np.empty(data.n_users), np.empty(scores.size)
        self._map(
            lambda lo, hi: self.surrogate.evaluate(
                scores, data.indptr, data.n_pos, lo, hi, values, coef
            ),
            list(pairwise(self._user_bounds)),
        )
        return values, coef

    def blocks_from_scores(self, scores: Array) -> tuple[Array, Array]:
        """Like `blocks`, for scores that are known already."""
        values, coef = self.user_values(scores)
        return self._block_sums(values), self._slopes(coef)

    def tangents(self, scores: Array) -> tuple[Array, Array, Array, Array]:
        """Values and slopes of the blocks, the cuts' intercepts, and their errors (see `Cuts`).

        The surrogate is convex in the scores s, ``S(s') >= S(s) + coef . (s' - s)``: so the
        intercept is ``S(s) - coef . s``, whatever rounding did to the scores.
        """
        data = self.data
        values, coef = self.user_values(scores)
        intercepts, sizes, steep = np.empty((3, data.n_users))
        _intercepts(scores, coef, data.indptr, values, intercepts, sizes, steep)
        self._steeper = max(
            self._steeper, float((steep / self.surrogate.steepness(data.n_pos)).max())
        )
        terms = _terms(self.surrogate, data)
        errors = self._block_sums((terms + FEW_ROUNDINGS) * EPS * sizes)
        users = np.diff(self._user_bounds)
        errors += users * EPS * self._block_sums(np.abs(values) + np.abs(intercepts))
        return self._block_sums(values), self._slopes(coef), self._block_sums(intercepts), errors

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        if self._rounding is None:
            data = self.data
            active = np.add.reduceat(_terms(self.surrogate, data), self._user_bounds[:-1])
            longest = max(hi - lo for lo, hi in self._chunks)
            chunks = np.diff(self._block_starts, append=len(self._chunks)).max()
            self._rounding = rounding_bound(
                data.spread(),
                self.origins() is not None,
                self.mean_over_users(self.surrogate.steepness(data.n_pos)),
                int(min(active.max(), longest) + chunks),
            )
        bound, factor = self._rounding, self._steeper
        return Rounding(factor * bound.scores, factor * bound.slopes)

    def _block_sums(self, values):
        return np.add.reduceat(self._weigh(values), self._user_bounds[:-1]) / self._total

    def _slopes(self, coef):
        data, origins, coef = self.data, self.origins(), self._weigh_rows(coef)
        partial = np.zeros((len(self._chunks), data.n_features))
        self._map(
            lambda c, lo, hi: _products.add_weighted_rows(
                data.X, data.rows, coef, lo, hi, partial[c], origins
            ),
            [(c, lo, hi) for c, (lo, hi) in enumerate(self._chunks)],
        )
        return np.add.reduceat(partial, self._block_starts, axis=0) / self._total

    @property
    def _total(self):
        """Sum of the users' weights."""
        weight = self.data.user_weight
        return self.n_users if weight is None else weight.sum()

    def _weigh(self, values):
        """Values of the users times the users' weights."""
        weight = self.data.user_weight
        return values if weight is None else values * weight

    def _weigh_rows(self, coef):
        weight = self.data.user_weight
        return coef if weight is None else coef * np.repeat(weight, self.data.sizes)

    def mean_over_users(self, values: Array) -> float:
        """Mean of one value a user, by the users' weights."""
        return float(self._weigh(values).sum() / self._total)

    def mean_slope(self, coef: Array, direction: Array) -> float:
        """Derivative of the risk for score-space subgradients of users and a change of scores."""
        return float(self._weigh_rows(coef) @ direction / self._total)

    def majorant(self, w: Array, kind: str = "latent") -> Any:
        """A convex majorant of a Ramp or ClippedRamp risk, tight at w; see `majorants`."""
        from structsvm_papk.surrogates.majorants import majorant  # it builds on this module

        return majorant(self, w, kind)

    def tied_majorants(self, w: Array, alpha: float, limit: int) -> Any:
        """Majorants at w with ties broken otherwise, as an iterator; see `oracles.ties`."""
        from structsvm_papk.oracles.ties import tied_majorants

        return tied_majorants(self, w, alpha, limit)

    def boxes(self) -> Boxes:
        """Bounds of a Ramp or ClippedRamp risk over boxes of w; see `oracles.boxes`."""
        from structsvm_papk.oracles.boxes import Boxes

        return Boxes(self)

    def starts(self, alpha: float, **given: Any) -> dict[str, Array]:
        """Starting points by name for solvers of non-convex risks; see `starts.warm_starts`."""
        from structsvm_papk.oracles.starts import warm_starts

        return warm_starts(self, alpha, **given)

    def _map(self, task, arguments):
        if self.n_threads == 1 or len(arguments) == 1:
            for args in arguments:
                task(*args)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            for done in [pool.submit(task, *args) for args in arguments]:
                done.result()


class _OnShortLists:
    """A risk that is evaluated on the rows that decide it; `scores` and `along` take them all."""

    def __init__(self, risk, short, n_blocks):
        self.convex, self.surrogate, self.data = risk.convex, risk.surrogate, risk.data
        self.exclusions, self.n_features = risk.exclusions, risk.n_features
        self.fingerprint = risk.fingerprint
        self._short, self._on_short = short, risk._in_blocks(n_blocks, short.data)
        self._on_all = risk._in_blocks(n_blocks)
        self.scores, self.along = self._on_all.scores, self._on_all.along
        self.rounding, self.column_text = self._on_all.rounding, risk.column_text

    @property
    def n_blocks(self):
        return self._on_short.n_blocks

    @property
    def layout(self):
        return self._on_short.layout

    @property
    def row_visits(self):
        return self._short.n_visits + self._on_all.row_visits

    def __call__(self, w):
        values, subgradients = self.blocks(w)
        return values.sum(), subgradients.sum(axis=0)

    def blocks(self, w):
        return self._on_short.blocks_from_scores(self._short.at(w))

    def cuts(self, w, scores=None):
        if scores is not None:
            return self._on_all.cuts(w, scores)
        return self._on_short.cuts(w, self._short.at(w))


def users_needed(surrogate: Surrogate, policy: str) -> tuple[int, str, str]:
    """Negatives that a user needs, the setting that says so, and what to do without them."""
    check_policy(policy)
    needed = 1 if policy == "cap" else surrogate.negatives_needed()
    setting = "k" if surrogate.depth is None or surrogate.depth < 1 else "depth"
    return needed, setting, "exclude" if policy == "cap" else policy


def _terms(surrogate, data):
    """How many scores of each user a sum of the surrogate may have."""
    if not surrogate.top_negatives_only:
        return data.sizes
    return data.n_pos + surrogate.negatives_counted(data.n_neg)


@njit(cache=True, nogil=True)
def _intercepts(scores, coef, indptr, values, intercepts, sizes, steep):
    """``values - coef . scores`` of each user; the absolute terms, margins of 1 included."""
    for u in range(values.size):
        product, size, slope = 0.0, 0.0, 0.0
        for p in range(indptr[u], indptr[u + 1]):
            if coef[p] != 0.0:
                product += coef[p] * scores[p]
                size += abs(coef[p] * scores[p])
                slope += abs(coef[p])
        intercepts[u] = values[u] - product
        sizes[u], steep[u] = abs(values[u]) + size + slope, slope


def _split_users(indptr, n_blocks):
    """Bounds of `n_blocks` runs of users, or of one for each user, with about equally many rows."""
    n_users = indptr.size - 1
    count = np.arange(min(n_blocks, n_users) + 1)
    bounds = np.searchsorted(indptr, count * (indptr[-1] / count[-1]))
    bounds[0] = 0
    # every run has a user, however long the lists of some are
    bounds = np.maximum.accumulate(bounds - count) + count
    return np.minimum(bounds, n_users - count[::-1])


def _split_rows(block_bounds, chunk_rows):
    """Cut every block into chunks of rows; return the chunks and where each block's begin."""
    chunks, starts = [], []
    for lo, hi in pairwise(block_bounds):
        starts.append(len(chunks))
        n_chunks = max(1, round((hi - lo) / chunk_rows))
        edges = np.linspace(lo, hi, n_chunks + 1).astype(np.int64)
        chunks.extend(pairwise(edges))
    return chunks, np.array(starts)
