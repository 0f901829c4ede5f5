"""The empirical risk of a linear scorer: the oracle that the solvers ask."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np

from structsvm_papk import _kernels, _products
from structsvm_papk.errors import InputError

_CHUNK_ROWS = 1 << 16


class EmpiricalRisk:
    """Mean over users of a surrogate of their lists, ``R(w) = mean_u S(X_u w)``.

    Calling it with w gives the value and a subgradient; `blocks` gives them for each block of
    users, for solvers that take several cuts from one pass over the data.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
    policy : {'exclude', 'raise'}
        What to do with users without a positive or with fewer than k negatives.
    n_blocks : int
        Number of blocks of consecutive users with about the same number of rows (at most one
        block per user).
    n_threads : int
        Threads that share the work. The result does not depend on it.

    Attributes
    ----------
    data : RankingData
        The users that are used.
    exclusions : Exclusions
        The users that were left out, and why.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'.
    """

    def __init__(self, surrogate, data, policy="exclude", n_blocks=1, n_threads=1):
        if n_blocks < 1 or n_threads < 1:
            raise InputError("n_blocks and n_threads must be at least 1")
        self.surrogate = surrogate
        self.exclusions = data.exclusions(surrogate.k)
        self.data = data.usable(surrogate.k, policy)
        self.n_threads = n_threads
        self._user_bounds = _split_users(self.data.indptr, n_blocks)
        self._chunks, self._block_starts = _split_rows(
            self.data.indptr[self._user_bounds], max(_CHUNK_ROWS, 4 * data.n_features)
        )

    @property
    def convex(self):
        """Whether the surrogate is convex."""
        return self.surrogate.convex

    @property
    def n_features(self):
        """Length of w."""
        return self.data.n_features

    @property
    def n_users(self):
        """Number of users in the mean."""
        return self.data.n_users

    @property
    def n_blocks(self):
        """Number of blocks of users."""
        return self._user_bounds.size - 1

    def with_blocks(self, n_blocks):
        """Return the same risk split into `n_blocks` blocks.

        Blocks are runs of users, at most one block per user; a single user's list is split into
        blocks of pairs where the surrogate is a sum over positives.
        """
        one_list = self.n_users == 1 and self.surrogate.sums_over_positives and n_blocks > 1
        kind = OneListRisk if one_list else EmpiricalRisk
        split = kind(self.surrogate, self.data, "raise", n_blocks, self.n_threads)
        split.exclusions = self.exclusions
        return split

    def __call__(self, w):
        """Return ``R(w)`` and a subgradient of shape (n_features,)."""
        values, subgradients = self.blocks(w)
        return values.sum(), subgradients.sum(axis=0)

    def blocks(self, w):
        """Return the value and a subgradient of each block's share of the risk.

        Returns
        -------
        values : ndarray of shape (n_blocks,)
            They add up to ``R(w)``.
        subgradients : ndarray of shape (n_blocks, n_features)
        """
        return self.blocks_from_scores(self.scores(w))

    def scores(self, w):
        """``X @ w`` at the list positions: linear in w, the costlier half of an evaluation."""
        data = self.data
        w = np.ascontiguousarray(w, dtype=np.float64)
        out = np.empty(data.rows.size)
        self._map(lambda lo, hi: _products.scores(data.X, data.rows, w, lo, hi, out), self._chunks)
        return out

    def user_values(self, scores):
        """Surrogate value of each user for given scores, and its score-space subgradient."""
        data = self.data
        values, coef = np.empty(data.n_users), np.empty(scores.size)
        self._map(
            lambda lo, hi: self.surrogate.evaluate(
                scores, data.indptr, data.n_pos, lo, hi, values, coef
            ),
            list(pairwise(self._user_bounds)),
        )
        return values, coef

    def blocks_from_scores(self, scores):
        """Like `blocks`, for scores that are known already."""
        data = self.data
        values, coef = self.user_values(scores)
        partial = np.zeros((len(self._chunks), data.n_features))
        self._map(
            lambda c, lo, hi: _products.add_weighted_rows(
                data.X, data.rows, coef, lo, hi, partial[c]
            ),
            [(c, lo, hi) for c, (lo, hi) in enumerate(self._chunks)],
        )
        subgradients = np.add.reduceat(partial, self._block_starts, axis=0)
        sums = np.add.reduceat(values, self._user_bounds[:-1])
        return sums / data.n_users, subgradients / data.n_users

    def majorant(self, w, kind="latent"):
        """A convex majorant of a Ramp or ClippedRamp risk, tight at w; see `majorants`."""
        from structsvm_papk.majorants import majorant  # it builds on this module

        return majorant(self, w, kind)

    def starts(self, alpha, **given):
        """Starting points by name for solvers of non-convex risks; see `starts.warm_starts`."""
        from structsvm_papk.starts import warm_starts

        return warm_starts(self, alpha, **given)

    def _map(self, task, arguments):
        if self.n_threads == 1 or len(arguments) == 1:
            for args in arguments:
                task(*args)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            for done in [pool.submit(task, *args) for args in arguments]:
                done.result()


class OneListRisk(EmpiricalRisk):
    """Risk of a single user, split into blocks of pairs.

    For surrogates that sum over the positives (pAUC). Each block has some of the positives and the
    common top-k negatives; at k = n_neg, where every negative counts, some of the negatives and all
    positives, if there are more of them.

    Parameters
    ----------
    surrogate, data, policy, n_blocks, n_threads
        As for `EmpiricalRisk`.
    """

    def __init__(self, surrogate, data, policy="exclude", n_blocks=1, n_threads=1):
        super().__init__(surrogate, data, policy, 1, n_threads)
        self._n_pos = int(self.data.n_pos[0])
        n_neg = self.data.rows.size - self._n_pos
        self._split_negatives = surrogate.k == n_neg and n_neg > self._n_pos
        first, size = (self._n_pos, n_neg) if self._split_negatives else (0, self._n_pos)
        edges = np.linspace(first, first + size, min(n_blocks, size) + 1)
        self._bounds = edges.astype(np.int64)

    @property
    def n_blocks(self):
        """Number of blocks of pairs."""
        return self._bounds.size - 1

    def blocks_from_scores(self, scores):
        """Value and subgradient of each block of pairs; see `EmpiricalRisk.blocks_from_scores`."""
        data, k, n_pos = self.data, self.surrogate.k, self._n_pos
        values = np.empty(self.n_blocks)
        own = np.zeros(scores.size, dtype=np.int64)
        if self._split_negatives:
            shared = np.empty((self.n_blocks, n_pos), dtype=np.int64)
            _kernels.negative_blocks(scores, n_pos, self._bounds, values, own, shared)
            partners, sign = np.arange(n_pos), 1.0
        else:
            shared = np.empty((self.n_blocks, k), dtype=np.int64)
            partners = _kernels.positive_blocks(scores, n_pos, k, self._bounds, values, own, shared)
            sign = -1.0
        scale = 1.0 / (n_pos * k)
        subgradients = np.asarray((-sign * scale * shared) @ data.X[data.rows[partners]])
        coef = sign * scale * own
        self._map(
            lambda b, lo, hi: _products.add_weighted_rows(
                data.X, data.rows, coef, lo, hi, subgradients[b]
            ),
            [(b, lo, hi) for b, (lo, hi) in enumerate(pairwise(self._bounds))],
        )
        return scale * values, subgradients


def _split_users(indptr, n_blocks):
    """Bounds of at most `n_blocks` runs of users with about the same number of rows."""
    targets = np.linspace(0, indptr[-1], min(n_blocks, indptr.size - 1) + 1)
    bounds = np.searchsorted(indptr, targets)
    bounds[0], bounds[-1] = 0, indptr.size - 1
    return np.unique(bounds)


def _split_rows(block_bounds, chunk_rows):
    """Cut every block into chunks of rows; return the chunks and where each block's begin."""
    chunks, starts = [], []
    for lo, hi in pairwise(block_bounds):
        starts.append(len(chunks))
        n_chunks = max(1, round((hi - lo) / chunk_rows))
        edges = np.linspace(lo, hi, n_chunks + 1).astype(np.int64)
        chunks.extend(pairwise(edges))
    return chunks, np.array(starts)
