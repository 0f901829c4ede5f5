"""The risk of a linear scorer on users' lists, as an oracle of w.

    R(w) = sum_u v_u S(X_u w) / sum_u v_u,    subgradient sum_u v_u X_u' S'(X_u w) / sum_u v_u

S is a surrogate, which sees the scores ``X_u w`` of user u only, and v_u the user's weight.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array, Callback
from structsvm_papk.data import features
from structsvm_papk.data.features import Origins, rounding_bound
from structsvm_papk.data.ranking_data import RankingData, check_policy, checked_weights
from structsvm_papk.errors import InputError, check_type, whole_number
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.oracles.short_lists import ShortLists
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, LineOracle
from structsvm_papk.solvers.rounding import EPS, Rounding, error_of_sum
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import Surrogate, check_scores

CHUNK_ROWS = 1 << 16
_SAMPLED = 20  # one user of so many
_USERS_PER_FEATURE = 5
_WORTH = 16  # rows for each one that is wanted, below which a full pass is as good
_FEW_FEATURES = 8  # a bound costs about as much memory traffic as two features
_MANY_ROWS = 100_000  # below, a solve is too short for anything beside it


class Tangents(NamedTuple):
    """The surrogate of every user at some scores s, and the plane below it that touches there.

    ``S_u(s') >= intercept_u + coef_u . s'`` for all s', but for ``error_u``, which is what rounding
    may have added to the intercept. `steeper` is as in `Cuts`.
    """

    values: Array
    coef: Array
    intercepts: Array
    errors: Array
    steeper: float


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
    """What a cutting plane asks for; `EmpiricalRisk` has the same parameters and attributes."""

    def __init__(
        self,
        surrogate: Surrogate,
        data: RankingData,
        policy: str = "cap",
        n_blocks: int = 1,
        n_threads: int = 1,
        skip_rows: bool = True,
    ) -> None:
        check_type("data", data, RankingData, "a RankingData")
        n_blocks = whole_number("n_blocks", n_blocks)
        n_threads = whole_number("n_threads", n_threads)
        needed, setting, policy = users_needed(surrogate, policy)
        self.surrogate = surrogate
        self.convex = surrogate.convex
        self.exclusions = data.exclusions(needed, setting)
        self.data = data.usable(needed, policy, setting)
        self.n_threads = n_threads
        self.skip_rows = skip_rows
        self.n_features = self.data.n_features
        self.n_users = self.data.n_users
        self.column_scale = self.data.column_scale
        weight = self.data.user_weight
        self._total = self.n_users if weight is None else weight.sum()
        self._split_at(_split_users(self.data.indptr, n_blocks))

    def _split_at(self, user_bounds):
        """Let the blocks be the runs of users between these bounds."""
        self._rounding: Rounding | None = None
        self.user_bounds = user_bounds
        self.n_blocks = user_bounds.size - 1
        self.layout = f"users {user_bounds.tolist()}"
        self.edges, self._block_starts = _split_rows(
            self.data.indptr[self.user_bounds], max(CHUNK_ROWS, 4 * self.n_features)
        )

    def in_runs(self, user_bounds: Array) -> ListRisk:
        """The same risk with other runs of users for its blocks; it counts its own rows."""
        split = copy.copy(self)
        split._split_at(user_bounds)
        return split

    def __str__(self) -> str:
        return f"surrogate {self.surrogate.name!r}"

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """Return an oracle of this risk for one solve, with `n_blocks` cuts an evaluation.

        Blocks are runs of users, or parts of a single user's list where its terms are known. The
        oracle may remember scores from one evaluation to the next (`short_lists`).
        """
        short = self._short_lists()
        if self.n_users == 1 and n_blocks > 1:
            one_list = self._blocks_of_one_list(n_blocks, short)
            if one_list is not None:
                return one_list
        if short is not None:
            return _OnShortLists(self, short, n_blocks)
        return self.in_runs(_split_users(self.data.indptr, n_blocks))

    def _short_lists(self) -> ShortLists | None:
        """What leaves rows out that provably do not count, where that is allowed and pays."""
        # a risk that is not convex is asked for majorants, which are made of all rows
        if not (self.skip_rows and self.convex):
            return None
        X = self.data.X
        values_per_row = X.nnz / X.shape[0] if sparse.issparse(X) else self.n_features
        if not skipping_pays(self.surrogate, self.data.n_neg, values_per_row):
            return None
        return ShortLists(self.data, self.surrogate, self._map)

    def _blocks_of_one_list(self, n_blocks: int, short: ShortLists | None) -> BlockOracle | None:
        """A single user's list in blocks of its terms, or None."""
        return None

    @cached_property
    def sample(self) -> ListRisk | None:  # type: ignore[override]
        """The risk of few of the users, enough for the curvature, where there are many."""
        data = self.data
        step = sampled(data.n_users, data.rows.size, data.n_features)
        if step is None:
            return None
        return ListRisk(self.surrogate, data.every_nth(step), "cap", 1, self.n_threads)

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
        return self.cuts_from_scores(w, self.scores(w))

    def cuts_from_scores(self, w: Array, scores: Array) -> Cuts:
        """`cuts`, for scores that are known already: without the product ``X @ w``.

        ``S(s') >= S(s) + coef . (s' - s)``: the intercept is ``S(s) - coef . s``, whatever rounding
        did to the scores.
        """
        tangents = self.tangents(scores)
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
            steeper=tangents.steeper,
            values=values,
        )

    def along(self, scores: Array, direction: Array) -> Callback:
        """``t -> (R, dR/dt)`` at ``scores + t * direction``, without another look at X."""

        def line(t):
            values, coef = self.user_values(scores + t * direction)
            return self.mean_over_users(values), self.mean_slope(coef, direction)

        return line

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions: linear in w, the costlier half of an evaluation."""
        data = self.data
        origins = self.origins()
        w = data.divided(checked_weights(w, self.n_features))
        out = np.empty(data.rows.size)
        self.rows_scored += out.size

        def part(lo, hi):
            features.scores(data.X, data.rows, w, lo, hi, out, origins)

        self.map_ranges(part, self.edges)
        return out

    def column_text(self, f: int) -> str:
        """A column with its mean and spread, for messages."""
        data = self.data
        return features.column_text(data.X, data.rows, f, data.spread(), data.feature_names)

    def origins(self) -> Origins | None:
        """What is subtracted from the rows before they are multiplied, or None; see `origins`."""
        return self.data.origins() if self.surrogate.shift_invariant else None

    def user_values(self, scores: Array) -> tuple[Array, Array]:
        """Surrogate value of each user for given scores, and its score-space subgradient."""
        check_scores(scores)
        data = self.data
        values = np.empty(data.n_users)
        coef = np.empty(scores.size)

        def part(lo, hi):
            self.surrogate.evaluate(scores, data.indptr, data.n_pos, lo, hi, values, coef)

        self.map_ranges(part, np.arange(data.n_users + 1))
        return values, coef

    def tangents(self, scores: Array) -> Tangents:
        """The users' `Tangents` at some scores."""
        data = self.data
        values, coef = self.user_values(scores)
        intercepts, sizes, steep = tangent_intercepts(scores, coef, data.indptr, values)
        steepest = float((steep / self.surrogate.l1_bound(data.n_pos)).max())
        return Tangents(
            values=values,
            coef=coef,
            intercepts=intercepts,
            errors=error_of_sum(self.score_terms(), sizes),
            steeper=max(1.0, steepest),
        )

    def on_each_part(self, task: Callback) -> Iterator[Any]:
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
        shifted = self.origins() is not None
        l1_bound = self.mean_over_users(self.surrogate.l1_bound(data.n_pos))
        bound = rounding_bound(data.spread(), shifted, l1_bound, longest_sum)
        return bound.scaled(data.column_scale)

    def _longest_sum(self):
        """The most rows that are added up one after the other in a slope."""
        active = np.add.reduceat(self.score_terms(), self.user_bounds[:-1])
        chunks = np.diff(self._block_starts, append=self.edges.size - 1).max()
        return int(min(active.max(), np.diff(self.edges).max()) + chunks)

    def _block_sums(self, values):
        return np.add.reduceat(self._weigh(values), self.user_bounds[:-1]) / self._total

    def slopes(self, coef: Array) -> Array:
        """Weighted mean over the users of ``X_u' coef_u``, block by block."""
        data = self.data
        origins = self.origins()
        coef = self._weigh_rows(coef)
        edges = self.edges
        partial = np.zeros((edges.size - 1, data.n_features))

        def part(lo, hi):
            bounds = edges[lo : hi + 1]
            features.add_weighted_rows(data.X, data.rows, coef, bounds, partial[lo:hi], origins)

        self.map_ranges(part, np.arange(edges.size))
        return data.divided(np.add.reduceat(partial, self._block_starts, axis=0)) / self._total

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

    def map_ranges(self, task: Callback, bounds: Array) -> None:
        """``task(lo, hi)`` on consecutive ranges that end at bounds, a few for each thread."""
        n_ranges = min(bounds.size - 1, 1 if self.n_threads == 1 else 4 * self.n_threads)
        ends = bounds[np.linspace(0, bounds.size - 1, n_ranges + 1).astype(np.int64)]
        self._map(task, list(pairwise(ends.tolist())))

    def _map(self, task, arguments):
        if self.n_threads == 1 or len(arguments) == 1:
            for args in arguments:
                task(*args)
            return
        with ThreadPoolExecutor(self.n_threads) as pool:
            list(pool.map(lambda args: task(*args), arguments))


class OtherCuts(BlockOracle):
    """A risk of lists that one solve asks for other cuts than one for each run of users.

    What it says of itself is what the risk says.
    """

    def __init__(self, risk: ListRisk) -> None:
        self.risk = risk
        self.n_features = risk.n_features
        self.convex = risk.convex

    def __str__(self) -> str:
        return str(self.risk)

    @property
    def sample(self) -> ListRisk | None:  # type: ignore[override]
        """The risk of few of the users."""
        return self.risk.sample

    def fingerprint(self) -> str:
        """That of the risk: how it is cut does not count."""
        return self.risk.fingerprint()

    def column_text(self, f: int) -> str:
        """A column with its mean and spread, for messages."""
        return self.risk.column_text(f)

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self.risk.rounding()


class _OnShortLists(OtherCuts, LineOracle):
    """A risk that is evaluated on the rows that decide it; line searches take them all."""

    def __init__(self, risk: ListRisk, short: ShortLists, n_blocks: int) -> None:
        surrogate = risk.surrogate.on_counted_lists()
        self._short = short
        self._on_short = ListRisk(surrogate, short.data, "cap", n_blocks, risk.n_threads)
        super().__init__(risk.in_runs(self._on_short.user_bounds))
        self.n_blocks = self._on_short.n_blocks
        self.layout = self._on_short.layout

    @property
    def user_bounds(self) -> Array:
        """Bounds of the runs of users that the blocks are."""
        return self.risk.user_bounds

    @property
    def rows_scored(self) -> int:  # type: ignore[override]
        """Rows scored so far, by evaluations and by line searches."""
        return self.risk.rows_scored + self._short.n_visits

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions, all of them."""
        return self.risk.scores(w)

    def along(self, scores: Array, direction: Array) -> Callback:
        """``t -> (R, dR/dt)`` at ``scores + t * direction``."""
        return self.risk.along(scores, direction)

    def cuts_from_scores(self, w: Array, scores: Array) -> Cuts:
        """The cuts of the runs of users, for scores that are known already."""
        return self.risk.cuts_from_scores(w, scores)

    def slopes(self, coef: Array) -> Array:
        """Weighted mean over the users of ``X_u' coef_u``, block by block."""
        return self.risk.slopes(coef)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and a subgradient of each block's share of the risk."""
        cuts: Any = self.cuts(w)
        return cuts.values, cuts.slopes

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w, one for each block; see `Cuts`."""
        return self._on_short.cuts_from_scores(w, self._short.at(w))


def sampled(n_users: int, n_rows: int, n_features: int, step: float = _SAMPLED) -> int | None:
    """Every how many users one is in `ListRisk.sample`, or None.

    `step`, or less where features would be left with too few users.
    """
    most = n_users // (_USERS_PER_FEATURE * n_features)
    return None if n_rows < _MANY_ROWS or most < _SAMPLED else int(min(step, most))


def skipping_pays(surrogate: Surrogate, n_neg: Array, per_row: float) -> bool:
    """Whether `ShortLists` are allowed, and can be faster; `per_row` are the values of a row."""
    if not surrogate.top_negatives_only or per_row < _FEW_FEATURES:
        return False
    return bool(n_neg.sum() >= _WORTH * surrogate.negatives_counted(n_neg).sum())


def users_needed(surrogate: Surrogate, policy: str) -> tuple[int, str, str]:
    """Negatives that a user needs, the setting that says so, and what to do without them."""
    check_type("surrogate", surrogate, Surrogate, "a surrogate, such as make_surrogate('avg', k)")
    check_policy(policy)
    needed = 1 if policy == "cap" else surrogate.negatives_needed()
    setting = "k" if surrogate.depth is None or surrogate.depth < 1 else "depth"
    return needed, setting, "exclude" if policy == "cap" else policy


def refuse_deeper_than_all(surrogate: Surrogate, most: int) -> None:
    """A k or a depth above the `most` negatives of any user is a mistake, whatever the policy."""
    if most and surrogate.k > most:
        raise InputError(
            f"k={surrogate.k} is larger than the number of negatives of every user (at most "
            f"{most}); choose k <= {most}"
        )
    if surrogate.depth is not None and surrogate.depth > most:
        raise InputError(
            f"depth={surrogate.depth} is above every list: the most negatives of a user are "
            f"{most}; give at most {most}, or a share such as 0.9"
        )


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
    """Edges of chunks of rows that no block's bound divides; which chunk each block begins with."""
    n_chunks = np.maximum(1, np.rint(np.diff(block_bounds) / chunk_rows).astype(np.int64))
    starts = np.concatenate([[0], np.cumsum(n_chunks)])
    edges = np.interp(np.arange(starts[-1] + 1), starts, block_bounds)
    return edges.astype(np.int64), starts[:-1]
