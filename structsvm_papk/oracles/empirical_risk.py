"""The empirical risk of a linear scorer in memory: the oracle that every solver can ask.

And what it offers: the blocks of one list, users as blocks of the dual, convex majorants, bounds
over boxes, and starting points for risks that are not convex.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import expit

from structsvm_papk._types import Array, Callback
from structsvm_papk.data import features
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import check_choice
from structsvm_papk.oracles.boxes import Boxes
from structsvm_papk.oracles.cut_blocks import CutBlocks
from structsvm_papk.oracles.list_risk import ListRisk, OtherCuts
from structsvm_papk.oracles.short_lists import ShortLists
from structsvm_papk.oracles.user_blocks import AverageBlocks, gram_bytes
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.oracle import (
    BlockOracle,
    BoxedOracle,
    Cuts,
    DualBlocks,
    DualOracle,
    LineOracle,
    Majorant,
    Oracle,
)
from structsvm_papk.solvers.result import Status
from structsvm_papk.solvers.rounding import Rounding, error_of_sum
from structsvm_papk.surrogates import Surrogate
from structsvm_papk.surrogates._kernels import tangent_intercepts
from structsvm_papk.surrogates.base import ListTerms, MajorantSurrogate, TermBlocks, check_scores
from structsvm_papk.surrogates.losses import Avg, MeanThreshold

_FEATURES, _USERS = 1000, 20  # from which on the ascent was faster, see docs/benchmarks.md
_GRAM_BYTES = 1 << 29  # of Avg: where its matrices may need more, cuts take less
_DEEP = 0.9  # share of the negatives that 'deep_avg' counts
_RIDGE = 1e-4
_ROWS = 1 << 14  # a start needs no more, and no more than as many a feature as below
_ROWS_PER_FEATURE = 300
_NEAR = 1e-3  # scores that differ by less tie, as w is not exact either; a margin is 1
_FEW = 20  # ties that are tried whether or not they are more than chance brings
_DIRECTIONS = 16  # looked at, and their opposites; more if more majorants may be tried
_IN_THE_PLANE = 4  # times as many with two features, whose directions can be covered


class EmpiricalRisk(ListRisk, LineOracle, DualOracle, BoxedOracle):
    """Mean over users of a surrogate of their lists, ``R(w) = sum_u v_u S(X_u w) / sum_u v_u``.

    The weights v are those of the data, by default all the same.

    Calling it with w gives the value and a subgradient; `blocks` gives them for each block of
    users, for solvers that take several cuts from one pass over the data.

    Where the surrogate is `majorised` and `boxed`, as Ramp and ClippedRamp are, there are majorants
    and bounds over boxes too; others refuse.

    Where the surrogate is `shift_invariant` and columns have large offsets, rows are read as their
    differences to the user's first row (`data.features`): scores and subgradients differ from
    ``X @ w`` and its like by what does not count.

    Parameters
    ----------
    surrogate : Surrogate
    data : RankingData
    policy : {'exclude', 'raise', 'cap'}
        What to do with users with fewer negatives than the surrogate's depth (k, where it has
        none): leave them out, refuse them, or count the negatives that they have, as rankers and
        commands do ('cap', the default). Users without a positive or a negative are left out, or
        refused. Rankers refuse a k above every list; a risk with 'cap' takes it, since lists may be
        parts of others: there every negative counts.
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
    rows_scored : int
        Rows scored so far.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'.
    """

    def _blocks_of_one_list(self, n_blocks: int, short: ShortLists | None) -> BlockOracle | None:
        terms = self.surrogate.list_terms(int(self.data.n_pos[0]), int(self.data.n_neg[0]))
        return None if terms is None else OneListCuts(self, terms, n_blocks, short)

    def dual_blocks(self, alpha: float, start: Any = None) -> DualBlocks | None:
        """Users as blocks of the dual, see `oracles.user_blocks`; None where it is not known."""
        is_avg = isinstance(self.surrogate.list_terms(1, 1), MeanThreshold)
        if is_avg and gram_bytes(self) <= _GRAM_BYTES:
            return AverageBlocks(self, alpha, start)
        return CutBlocks(self, alpha, start) if self._restricts() else None

    def suits_dual_ascent(self, alpha: float) -> bool:
        """Whether the ascent is likely to be faster: where users share little of what they need."""
        large = self.n_features >= _FEATURES and self.n_users >= _USERS
        return large and sparse.issparse(self.data.X) and self._restricts()

    def _restricts(self):
        """Whether the surrogate knows what it is on a part of a list."""
        return self.surrogate.restricted(np.arange(self.data.sizes[0]), 1) is not None

    def majorant(self, w: Array) -> MajorantRisk:
        """A convex risk that is nowhere below this one, and tight at w.

        Raises
        ------
        InputError
            A surrogate without majorants.
        """
        data = self.data
        return MajorantRisk(self.surrogate.majorant(self.scores(w), data.indptr, data.n_pos), self)

    def tied_majorants(self, w: Array, alpha: float, limit: int) -> Iterator[MajorantRisk]:
        """Majorants at w with ties broken otherwise, as an iterator; see `Ties`."""
        ties = Ties(self, w)
        for v in ways_to_break(ties.look, w, alpha, limit):
            yield MajorantRisk(ties.majorant(v), self)

    def bounds(self, alpha: float, low: Array, high: Array) -> tuple[Array, Array, Array]:
        """Bounds over boxes, see `Boxes.bounds`."""
        return self._boxes.bounds(alpha, low, high, self.map_ranges)

    @cached_property
    def _boxes(self) -> Boxes:
        return Boxes(self)

    def starts(self, alpha: float, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Starting points by name for solvers of non-convex risks; see `warm_starts`."""
        data = self.data.every_nth(enough_for_starts(self.data.rows.size, self.n_features))
        return warm_starts(self.surrogate, data, alpha, names, self.n_threads)


class MajorantRisk(EmpiricalRisk, Majorant):
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
        changed_rows = (self.surrogate.held != previous.surrogate.held).any(axis=0)
        block_starts = self.data.indptr[self.user_bounds[:-1]]
        changed = np.logical_or.reduceat(changed_rows, block_starts)
        keep = ~changed[blocks]
        empty = np.flatnonzero(changed)
        return (
            np.concatenate([slopes[keep], np.zeros((empty.size, slopes.shape[1]))]),
            np.concatenate([intercepts[keep], np.zeros(empty.size)]),
            np.concatenate([blocks[keep], empty]),
        )


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

    @cached_property
    def _rounding(self) -> Rounding:
        return self.risk.rounding_of(self._longest)

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self._rounding

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and slope of each block at w and the best s."""
        cuts = self.cuts(w)
        return cuts.intercepts + cuts.slopes @ cuts.point, cuts.slopes[:, : self.n_features]

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w; see `Cuts`."""
        at = self._list_at(w)
        check_scores(at.scores)
        n_pos = at.data.n_pos
        terms = self._terms.blocks(at.scores, int(n_pos[0]), at.bounds)
        intercepts, sizes, steep = tangent_intercepts(at.scores, terms.own, at.bounds, terms.values)
        partner_scores = at.scores[terms.partners]
        weights = np.abs(terms.shared)
        intercepts -= terms.shared @ partner_scores
        sizes += weights @ (1.0 + np.abs(partner_scores))
        steepest = (steep.sum() + weights.sum()) / self.risk.surrogate.l1_bound(n_pos).mean()
        slopes = self._slopes_of(terms, at.data, at.bounds)
        point = w
        counted = terms.counted
        if counted.sum() < self._terms.n_terms:  # some terms are dropped: s decides which
            slope_in_s = -counted / counted.sum()
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

    def _list_at(self, w: Array) -> _ListAt:
        """The list, or what counts of it at w."""
        if self._short is None:
            scores = self.risk.scores(w)
            self.rows_scored += scores.size
            return _ListAt(self.risk.data, self._bounds, scores)
        scores = self._short.at(w)
        self.rows_scored = self._short.n_visits
        bounds = np.searchsorted(self._short.positions, self._bounds)
        return _ListAt(self._short.data, bounds, scores)

    def _slopes_of(self, terms: TermBlocks, data: RankingData, bounds: Array) -> Array:
        """The blocks' subgradients in the features."""
        origins = None if self.risk.origins() is None else data.origins()
        partners_origins = None if origins is None else origins.at(terms.partners)
        rows = features.shifted_rows(data.X, data.rows[terms.partners], partners_origins)
        slopes = np.asarray(terms.shared @ rows, dtype=np.float64)
        features.add_weighted_rows(data.X, data.rows, terms.own, bounds, slopes, origins)
        return data.divided(slopes)


class _ListAt(NamedTuple):
    """One list, or what counts of it at some w: its blocks' bounds, and its scores there."""

    data: RankingData
    bounds: Array
    scores: Array


class Ties:
    """Other convex majorants of Ramp and ClippedRamp at a point where scores tie.

    A majorant freezes the beta best positives and the clipped pairs (`surrogates.losses`). Where
    scores tie there is a choice, and along a direction v the right one is that of the scores just
    ahead: ties are broken by ``x . v``. With M_v the majorant that breaks them so, and R' the
    derivative of the risk along a direction,

        R'(w; v) = M_v'(w; v),     R'(w; u) <= M_v'(w; u)  for every u,

    so w is stationary if and only if it minimises ``alpha/2 ||.||^2 + M_v`` for every v. Those of a
    fixed number of directions are tried, the steepest first: in one dimension that is all, in two
    nearly so. None is tried where scores come only as near each other as chance brings them.
    """

    def __init__(self, risk: ListRisk, w: Array) -> None:
        self.risk, data = risk, risk.data
        scores = risk.scores(w)
        order = np.lexsort((scores, data.user_of_position))
        gaps = np.diff(scores[order], prepend=-np.inf)
        gaps[data.indptr[:-1]] = np.inf
        ahead = gaps > _NEAR
        first = np.flatnonzero(ahead)
        cluster = np.empty(scores.size, dtype=np.int64)
        cluster[order] = np.cumsum(ahead) - 1
        self._scores = scores[order][first][cluster]
        self._near = np.flatnonzero(np.bincount(cluster)[cluster] > 1)
        positive = data.labels[order]
        positive[1:] |= positive[:-1]
        self._counts = np.array([(gaps[positive] <= x).sum() for x in (_NEAR, 10.0 * _NEAR)])

    def look(self, directions: Array) -> tuple[Array, Array, list[bytes]]:
        """What these users show along v_1, -v_1, v_2, -v_2, ..; sums and means of it can be taken.

        How many gaps between scores, one of them a positive's, are below two widths; ``R'(w; v)``;
        and what tells what the majorant there keeps.
        """
        slopes, keys = [], []
        for v in directions:
            for sign in (1.0, -1.0):
                rise = sign * self.risk.scores(v)
                _, coef = self.risk.user_values(self._ahead(rise))
                slopes.append(self.risk.mean_slope(coef, rise))
                kept = self._frozen(rise).held[:, self._near]
                keys.append(hashlib.blake2b(kept.tobytes()).digest())
        return self._counts, np.array(slopes), keys

    def majorant(self, v: Array) -> MajorantSurrogate:
        """The surrogate's majorant that breaks ties along v."""
        return self._frozen(self.risk.scores(v))

    def _frozen(self, rise):
        data = self.risk.data
        return self.risk.surrogate.majorant(self._ahead(rise), data.indptr, data.n_pos)

    def _ahead(self, rise):
        """The scores a little way along a direction: those that differ keep their order."""
        largest = np.abs(rise).max()
        return self._scores + rise * (0.25 * _NEAR / max(largest, 1e-300))


def ways_to_break(look: Callback, w: Array, alpha: float, limit: int) -> Iterator[Array]:
    """Directions along which ties at w break differently, at most `limit`; `look` as in `Ties`.

    The steepest of ``alpha/2 ||w||^2 + R(w)`` first. Choosing them costs 16 products ``X @ v`` (64
    in the plane), and one where nothing ties but by chance.
    """
    directions = _directions(w.size, limit)
    near, around = look(directions[:0])[0]
    # the scores of real numbers come ten times as near to each other a tenth as often
    if near == 0 or (near > _FEW and around > 5 * near):
        return
    ahead, behind = look(directions[:1])[2]
    if ahead == behind:
        return  # what ties differently along a direction does so the other way round against it
    _, slopes, keys = look(directions)
    signed = np.stack([directions, -directions], axis=1).reshape(-1, w.size)
    tried: set[bytes] = set()
    for place in np.argsort(alpha * signed @ w + slopes, kind="stable"):
        if len(tried) < limit and keys[place] not in tried:
            tried.add(keys[place])
            yield signed[place]


def _directions(n_features, limit):
    """Unit vectors, without their opposites: all in one dimension, spread evenly in two."""
    if n_features == 1:
        return np.array([[1.0]])
    count = max(_DIRECTIONS, limit)
    if n_features == 2:
        count *= _IN_THE_PLANE
        angle = np.pi * (np.arange(count) + 0.5) / count
        return np.column_stack([np.cos(angle), np.sin(angle)])
    vectors = np.random.default_rng(0).normal(size=(count, n_features))
    return vectors / np.linalg.norm(vectors, axis=1)[:, None]


def warm_starts(
    surrogate: Surrogate,
    data: RankingData,
    alpha: float,
    names: Sequence[str] | None = None,
    n_threads: int = 1,
) -> dict[str, Array]:
    """Starting points by name, by default all, from lists that are `enough_for_starts`.

    ``zero``; ``avg``: the optimum of the convex Avg surrogate, to a gap of 1%; ``deep_avg``: the
    same with nine tenths of each user's negatives counted, which is seldom zero; ``logistic`` and
    ``centred_logistic``: see `logistic_regression`.
    """

    def optimum_of_avg(depth: float | None) -> Array:
        risk = EmpiricalRisk(Avg(surrogate.k, depth=depth), data, "cap", n_threads=n_threads)
        result = CuttingPlane(alpha, tol=1e-2, max_iter=300).solve(risk)
        if result.status is Status.INTERRUPTED:  # a run resumed later would begin elsewhere
            raise KeyboardInterrupt
        return result.w

    makers = {
        "zero": lambda: np.zeros(data.n_features),
        "avg": lambda: optimum_of_avg(surrogate.depth),
        "deep_avg": lambda: optimum_of_avg(_DEEP),
        "logistic": lambda: logistic_regression(data),
        "centred_logistic": lambda: logistic_regression(data, centred=True),
    }
    names = list(makers) if names is None else names
    for name in names:
        check_choice("starts", name, makers)
    return {name: makers[name]() for name in names}


def enough_for_starts(n_rows: int, n_features: int) -> int:
    """The n for which every n-th user is enough."""
    return max(1, n_rows // max(_ROWS, _ROWS_PER_FEATURE * n_features))


def logistic_regression(data: RankingData, centred: bool = False, max_iter: int = 100) -> Array:
    """Weights of a logistic regression of relevance on the features, users by their weights.

    ``min_{w,b} ridge/2 ||w||^2 + mean_u mean_{r of u} log(1 + exp(-y_r (w.x_r + b)))``, y = +-1.
    With `centred`, each user's scores enter less their mean, so that what all items of a user
    share does not count.
    """
    sign = np.where(data.labels, 1.0, -1.0)
    share = np.ones(data.n_users) if data.user_weight is None else data.user_weight
    weight = np.repeat(share / (share.sum() * data.sizes), data.sizes)

    def centre(values):
        """Less the user's mean: a symmetric projection, so its own transpose."""
        if not centred:
            return values
        sums = np.add.reduceat(values, data.indptr[:-1])
        return values - np.repeat(sums / data.sizes, data.sizes)

    def loss(point):
        w, intercept = point[:-1], point[-1]
        margin = sign * (centre(data.scores(w)) + intercept)
        value = float(weight @ np.logaddexp(0.0, -margin))
        slope = sign * (-weight * expit(-margin))
        gradient = data.rmatvec(centre(slope)) + _RIDGE * w
        return value + _RIDGE / 2 * (w @ w), np.append(gradient, slope.sum())

    start = np.zeros(data.n_features + 1)
    return minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter}).x[:-1]
