"""The risk of a linear scorer on users' lists, as an oracle of w.

    R(w) = sum_u v_u S(X_u w) / sum_u v_u,    subgradient sum_u v_u X_u' S'(X_u w) / sum_u v_u

S is a surrogate, which sees the scores ``X_u w`` of user u only, and v_u the user's weight.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from structsvm_papk._rounding import EPS, Rounding, error_of_sum
from structsvm_papk._types import Array, Callback
from structsvm_papk.data.columns.base import ListRows
from structsvm_papk.data.content import fingerprint_of
from structsvm_papk.data.lists import check_policy
from structsvm_papk.data.ranking_data import RankingData, checked_weights
from structsvm_papk.errors import InputError, check_type
from structsvm_papk.solvers.oracle import BlockOracle, Cuts
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import Surrogate, check_scores

CHUNK_ROWS = 1 << 16


class Tangents(NamedTuple):
    """The surrogate of every user at some scores s, and the plane below it that touches there.

    ``S_u(s') >= intercept_u + coef_u . s'`` for all s', but for ``error_u``, which is what rounding
    may have added to the intercept. `lipschitz_factor` is as in `Cuts`.
    """

    values: Array
    coef: Array
    intercepts: Array
    errors: Array
    lipschitz_factor: float


class RowSlopes(NamedTuple):
    """Rows of X, and the slope of a risk in the score of each."""

    rows: Array
    slopes: Array


class Partition(NamedTuple):
    """Lists that are evaluated in one place, and what an evaluation may use there.

    `share` is what the caller has for these lists, as a rule how many blocks to cut them into.
    `cache` is a dict that stays with the lists from one evaluation to the next, None where nothing
    does.
    """

    data: Any
    share: int
    n_threads: int
    cache: dict[str, Any] | None


class ListRisk(BlockOracle):
    """The risk of users' lists in memory: what scores them and pulls subgradients back.

    Rows that lists have in common (`RankingData.shared`) are multiplied once. Blocks are runs of
    consecutive users. Each block's rows are added up in chunks that end at fixed places, whatever
    the number of threads.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
        Of users that all have a positive and a negative.
    user_bounds : ndarray of int64, shape (n_blocks + 1,)
        Bounds of the runs of users, see `runs_of_users`.
    n_threads : int
        Threads that share the work.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        data: RankingData,
        user_bounds: Array,
        n_threads: int = 1,
    ) -> None:
        self.surrogate = surrogate
        self.convex = surrogate.convex
        self.nonnegative = surrogate.nonnegative
        self.data = data
        self.n_features = data.n_features
        self.n_users = data.n_users
        self.units = data.units
        self.n_threads = n_threads
        self.n_entries = data.n_entries
        weight = data.user_weight
        self._total = data.n_users if weight is None else weight.sum()
        self._divide(user_bounds)

    def __str__(self) -> str:
        return f"surrogate {self.surrogate.name!r}"

    def _divide(self, user_bounds: Array) -> None:
        """Let the blocks be these runs of users."""
        data = self.data
        self.user_bounds = user_bounds
        self.n_blocks = user_bounds.size - 1
        self.layout = f"users {user_bounds.tolist()}"
        bounds = data.indptr[user_bounds]
        if data.shared is not None:
            lists = data.shared.lists
            bounds = lists.indptr[np.append(data.shared.source, lists.n_users)[user_bounds]]
        self.edges, self._block_starts = _split_rows(bounds, max(CHUNK_ROWS, 4 * data.n_features))
        self.rows_scored = 0
        self._rounding: Rounding | None = None  # computed when it is first asked for

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same risk in about `n_blocks` runs of users."""
        risk = copy.copy(self)
        risk._divide(runs_of_users(self.data, n_blocks))
        return risk

    @cached_property
    def _multiplied(self) -> ListRows:
        """The rows that are multiplied, each once; see `RankingData.multiplied_rows`."""
        return self.data.multiplied_rows(self.surrogate.shift_invariant)

    @cached_property
    def score_terms(self) -> Array:
        """How many scores of each user a sum of the surrogate may have."""
        data = self.data
        if not self.surrogate.top_negatives_only:
            return data.sizes
        return data.n_pos + self.surrogate.negatives_counted(data.n_neg)

    def fingerprint(self) -> str:
        """SHA-256 that tells this risk from others: surrogate, k and data. Blocks do not count."""
        return fingerprint_of(*self.surrogate.settings(), self.data.fingerprint())

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and a subgradient of each block's share of the risk."""
        values, coef = self.user_values(self.scores(w))
        return self._block_sums(values), self.slopes(coef)

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w, one for each block; see `Cuts`."""
        # S(s') >= S(s) + coef . (s' - s): the intercept is S(s) - coef . s, whatever rounding did
        # to the scores s
        tangents = self.tangents(self.scores(w))
        values = self._block_sums(tangents.values)
        # what the sum over a block's users may lose comes on top of what its terms have lost
        n_users = np.diff(self.user_bounds)
        sizes = self._block_sums(np.abs(tangents.values) + np.abs(tangents.intercepts))
        return Cuts(
            value=float(values.sum()),
            slopes=self.slopes(tangents.coef),
            intercepts=self._block_sums(tangents.intercepts),
            point=w,
            errors=self._block_sums(tangents.errors) + n_users * EPS * sizes,
            lipschitz_factor=tangents.lipschitz_factor,
            values=values,
        )

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions: linear in w, the costlier half of an evaluation."""
        columns, rows = self._multiplied
        w = self.units.of_columns(checked_weights(w, self.n_features))
        out = np.empty(rows.size)
        self.rows_scored += out.size

        def part(lo: int, hi: int) -> None:
            columns.scores(rows, w, lo, hi, out)

        self.map_ranges(part, self.edges)
        return out if self.data.shared is None else self.data.shared.handed_out(out)

    def column_text(self, f: int) -> str:
        """A column with its mean and spread, for messages."""
        data = self.data
        within = data.spread().within[f]
        return data.columns.text_of(f, data.rows, within, data.feature_names)

    def list_rows(self) -> ListRows:
        """The rows that are multiplied, see `RankingData.list_rows`."""
        return self.data.list_rows(self.surrogate.shift_invariant)

    def user_values(self, scores: Array) -> tuple[Array, Array]:
        """Surrogate value of each user for given scores, and its score-space subgradient."""
        check_scores(scores)
        data = self.data
        values = np.empty(data.n_users)
        coef = np.empty(scores.size)

        def part(lo: int, hi: int) -> None:
            self.surrogate.evaluate(scores, data.indptr, data.n_pos, lo, hi, values, coef)

        self.map_ranges(part, np.arange(data.n_users + 1))
        return values, coef

    def slopes_of_rows(self, w: Array) -> RowSlopes:
        """The slope of the risk in the score of each row of X, at w."""
        _, coef = self.user_values(self.scores(w))
        rows = self.data.rows
        shared = self.data.shared
        if shared is not None:
            rows = shared.lists.rows[shared.order]
        return RowSlopes(rows, self._of_rows(coef))

    def tangents(self, scores: Array) -> Tangents:
        """The users' `Tangents` at some scores."""
        values, coef = self.user_values(scores)
        intercepts, sizes, steep = tangent_intercepts(scores, coef, self.data.indptr, values)
        steepest = float((steep / self.surrogate.l1_bound(self.data.n_pos)).max())
        return Tangents(
            values=values,
            coef=coef,
            intercepts=intercepts,
            errors=error_of_sum(self.score_terms, sizes),
            lipschitz_factor=max(1.0, steepest),
        )

    def on_each_partition(self, task: Callback) -> Iterator[Any]:
        """What a task gives of a `Partition`: here of all users at once."""
        yield task(Partition(self.data, self.n_blocks, self.n_threads, cache=None))

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        if self._rounding is None:
            self._rounding = self.rounding_of(self._longest_sum())
        return self._rounding

    def rounding_of(self, longest_sum: int) -> Rounding:
        """`rounding`, if at most so many rows are added up one after the other in a slope."""
        data = self.data
        shifted = self.surrogate.shift_invariant and data.spread().has_offsets
        l1_bound = self.mean_over_users(self.surrogate.l1_bound(data.n_pos))
        bound = data.spread().rounding(shifted, l1_bound, longest_sum)
        return bound.scaled(self.units.scale)

    def _longest_sum(self):
        """The most rows that are added up one after the other in a slope."""
        active = np.add.reduceat(self.score_terms, self.user_bounds[:-1])
        chunks = np.diff(self._block_starts, append=self.edges.size - 1).max()
        once = 0 if self.data.shared is None else self.data.shared.most
        return int(min(active.max(), np.diff(self.edges).max()) + chunks + once)

    def _block_sums(self, values: Array) -> Array:
        return np.add.reduceat(self._weigh(values), self.user_bounds[:-1]) / self._total

    def slopes(self, coef: Array) -> Array:
        """Weighted mean over the users of ``X_u' coef_u``, block by block."""
        columns, rows = self._multiplied
        coef = self._of_rows(coef)
        edges = self.edges
        sums = np.zeros((edges.size - 1, self.n_features))

        def part(lo: int, hi: int) -> None:
            bounds = edges[lo : hi + 1]
            columns.add_weighted_rows(rows, coef, bounds, sums[lo:hi])

        self.map_ranges(part, np.arange(edges.size))
        blocks = np.add.reduceat(sums, self._block_starts, axis=0)
        return self.units.of_columns(blocks) / self._total

    def _of_rows(self, coef: Array) -> Array:
        """Weighted coefficients of the rows that are multiplied."""
        weight = self.data.user_weight
        if self.data.shared is not None:
            return self.data.shared.added_up(coef, self.data.weight_of_user)
        return coef if weight is None else coef * np.repeat(weight, self.data.sizes)

    def _weigh(self, values: Array) -> Array:
        """Values of the users times the users' weights."""
        weight = self.data.user_weight
        return values if weight is None else values * weight

    def mean_over_users(self, values: Array) -> float:
        """Mean of one value a user, by the users' weights."""
        return float(self._weigh(values).sum() / self._total)

    def map_ranges(self, task: Callback, bounds: Array) -> None:
        """``task(lo, hi)`` on consecutive ranges that end at bounds, a few for each thread."""
        if self.n_threads == 1:
            task(int(bounds[0]), int(bounds[-1]))
            return
        n_ranges = min(bounds.size - 1, 4 * self.n_threads)
        ends = bounds[np.linspace(0, bounds.size - 1, n_ranges + 1).astype(np.int64)]
        with ThreadPoolExecutor(self.n_threads) as pool:
            list(pool.map(task, ends[:-1].tolist(), ends[1:].tolist()))


class Need(NamedTuple):
    """Negatives that a user needs, the setting that says so, and what to do with others."""

    negatives: int
    setting: str
    policy: str


def users_needed(surrogate: Surrogate, policy: str) -> Need:
    """What a user needs so that the surrogate can use it, see `Need`."""
    check_type("surrogate", surrogate, Surrogate, "a surrogate, such as make_surrogate('avg', k)")
    check_policy(policy)
    setting = "k" if surrogate.depth is None or surrogate.depth < 1 else "depth"
    if policy == "cap":
        return Need(1, setting, "exclude")
    return Need(surrogate.negatives_needed(), setting, policy)


def refuse_deeper_than_all(surrogate: Surrogate, most: int) -> None:
    """A depth above the `most` negatives of any user is a mistake, whatever the policy."""
    if surrogate.depth is not None and surrogate.depth > most:
        raise InputError(
            f"depth={surrogate.depth} is above every list: the most negatives of a user are "
            f"{most}; give at most {most}, or a share such as 0.9"
        )


def runs_of_users(data: RankingData, n_blocks: int) -> Array:
    """Bounds of `n_blocks` runs of users, or of one for each user, with about equally many rows.

    Lists that have rows in common stay together.
    """
    if data.shared is not None:
        bounds = runs_of_users(data.shared.lists, n_blocks)
        return np.searchsorted(data.shared.source, bounds)
    indptr = data.indptr
    n_users = indptr.size - 1
    count = np.arange(min(n_blocks, n_users) + 1)
    bounds = np.searchsorted(indptr, count * (indptr[-1] / count[-1]))
    bounds[0] = 0
    # every run has a user, however long the lists of some are
    bounds = np.maximum.accumulate(bounds - count) + count
    return np.minimum(bounds, n_users - count[::-1])


def _split_rows(block_bounds: Array, chunk_rows: int) -> tuple[Array, Array]:
    """Edges of chunks of rows that no block's bound divides; which chunk each block begins with."""
    n_chunks = np.maximum(1, np.rint(np.diff(block_bounds) / chunk_rows).astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(n_chunks)])
    edges = np.interp(np.arange(starts[-1] + 1), starts, block_bounds)
    return edges.astype(np.int64), starts[:-1]
