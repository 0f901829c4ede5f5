"""The empirical risk of data in partitions of whole users.

    R(w) = sum_p v_p R_p(w) / sum_p v_p

over partitions p whose users weigh v_p together (by default their number). Whoever holds the
partitions evaluates them; the sums run in the order of the partitions, so that the result does not
depend on who was faster.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.column_scale import ScaleRule, Variation, check_standardize
from structsvm_papk.data.features import Spread, rounding_bound
from structsvm_papk.data.ranking_data import Exclusions, RankingData, checked_weights, refusal
from structsvm_papk.errors import InputError
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.metrics import evaluate
from structsvm_papk.oracles.empirical_risk import (
    Ties,
    enough_for_starts,
    warm_starts,
    ways_to_break,
)
from structsvm_papk.oracles.list_risk import (
    CHUNK_ROWS,
    ListRisk,
    Partition,
    refuse_deeper_than_all,
)
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, Majorant, MajorisedOracle
from structsvm_papk.solvers.rounding import EPS, Rounding
from structsvm_papk.surrogates import Surrogate


@dataclass(frozen=True)
class Summary:
    """What the risk has to know of a partition without its rows."""

    most_negatives: int
    exclusions: Exclusions
    first_excluded: str  # what is wrong with that user
    variation: Variation  # of the rows of all users
    n_rows: int = 0  # from here on of those that can be used
    n_pos: Any = ()  # numbers of positives that occur, and what the users with as many weigh
    weights: Any = ()
    fingerprint: str = ""
    spread: Spread | None = None
    total_positives: int = 0
    weight: float = 0.0
    squared_weight: float = 0.0  # sum of the squares


def summarise(
    data: RankingData, needed: int, setting: str = "k", user_weight: str | None = None
) -> tuple[RankingData | None, Summary]:
    """The users of a partition that can be used, None for none, and the `Summary`."""
    if user_weight is not None:
        data = data.weighted(user_weight)
    exclusions = data.exclusions(needed, setting)
    of_all = Summary(
        most_negatives=data.most_negatives,
        exclusions=exclusions,
        first_excluded=data.name_first(exclusions),
        variation=data.variation(),
    )
    if not exclusions.n_used:
        return None, of_all
    used = data.usable(needed)
    weight = np.ones(used.n_users) if used.user_weight is None else used.user_weight
    n_pos, place = np.unique(used.n_pos, return_inverse=True)
    return used, replace(
        of_all, n_rows=used.rows.size, n_pos=n_pos, weights=np.bincount(place, weight),
        fingerprint=used.fingerprint(), spread=used.spread(), weight=float(weight.sum()),
        total_positives=used.total_positives, squared_weight=float(np.square(weight).sum()),
    )  # fmt: skip


class PartitionedRisk(BlockOracle, MajorisedOracle):
    """An oracle like `EmpiricalRisk`, over partitions that someone else holds.

    `parts` has ``summaries``, one `Summary` each; ``notes`` on what went wrong and was put right;
    and ``run(task, shares)``, which yields what the task gives of a `Partition` with its share, for
    each partition with users, in order. Blocks are of consecutive users; every partition has a
    share of them in proportion to its rows. `exclusions` numbers the users through the partitions.
    """

    _most_sampled: float = np.inf  # rows that starts may be made of
    _frozen: Frozen | None = None  # where a majorant touches the risk

    def __init__(self, surrogate: Surrogate, parts: Any, policy: str = "cap") -> None:
        self.surrogate = surrogate
        self.convex = surrogate.convex
        self.parts = parts
        self.exclusions = _joined([each.exclusions for each in parts.summaries])
        self.n_users = self.exclusions.n_used  # in the mean
        self.most_negatives = max(each.most_negatives for each in parts.summaries)  # of any user
        if not self.n_users:
            refuse_deeper_than_all(surrogate, self.most_negatives)
            raise InputError(f"no user can be used: {self.exclusions}")
        if policy == "raise" and self.exclusions.n_excluded:
            first = next(each.first_excluded for each in parts.summaries if each.first_excluded)
            raise InputError(refusal(first, self.exclusions))
        widths = {each.variation.deviation.size for each in parts.summaries}
        if len(widths) > 1:
            raise InputError(f"partitions differ in their number of features: {sorted(widths)}")
        self.n_features = widths.pop()
        self._used = [each for each in parts.summaries if each.exclusions.n_used]
        self._total = sum(each.weight for each in self._used)
        self._n_rows = sum(each.n_rows for each in self._used)
        self.column_scale: Array | None = None
        self.scale_rule: ScaleRule | None = None
        self._rounding: Rounding | None = None
        self._has_sample = False
        self._sample: ListRisk | None = None
        self._split(1)

    def __str__(self) -> str:
        return f"surrogate {self.surrogate.name!r} over partitions"

    @property
    def data(self) -> RankingData:
        """Refused: what asks for it needs all rows in one place."""
        raise InputError("this needs all data in one place, and the data are in partitions")

    @property
    def sample(self) -> ListRisk | None:  # type: ignore[override]
        """The risk of few of the users, where there are many: made once for each scale."""
        if not self._has_sample:
            self._sample = self._make_sample()
            self._has_sample = True
        return self._sample

    def _make_sample(self) -> ListRisk | None:
        return None

    @property
    def notes(self) -> tuple[str, ...]:  # type: ignore[override]
        """What went wrong on the way and was put right, for the solver's result."""
        return tuple(self.parts.notes)

    @property
    def is_sparse(self) -> bool:
        """Whether a partition's matrix is sparse."""
        return any(each.variation.is_sparse for each in self.parts.summaries)

    @property
    def effective_users(self) -> float:
        """``(sum v)^2 / sum v^2`` of the weights of the users that are used."""
        return float(self._total**2 / sum(each.squared_weight for each in self._used))

    @property
    def total_positives(self) -> int:
        """Positives of the users that are used."""
        return sum(each.total_positives for each in self._used)

    def deviation(self) -> Array:
        """The deviation of each column within users, known since the data were first read."""
        return self.variation().deviation

    def variation(self) -> Variation:
        """How the columns vary over all partitions, known since the data were first read."""
        return Variation.pooled([each.variation for each in self.parts.summaries])

    def standardized(self, how: bool | str = "auto") -> PartitionedRisk:
        """The same risk in units of the columns' deviations, see `RankingData.standardized`."""
        check_standardize(how)
        if not how:
            return self
        variation = self.variation()
        other = copy.copy(self)
        other.scale_rule = variation.rule(how)
        other.column_scale = variation.scale(other.scale_rule)
        other._rounding = None
        other._has_sample = False  # it was made for the other scale
        return other

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """Return the same risk as an oracle of about `n_blocks` cuts an evaluation."""
        other = copy.copy(self)
        other._split(n_blocks)
        return other

    def fingerprint(self) -> str:
        """SHA-256 that tells this risk from others: surrogate, k and data. Blocks do not count."""
        parts = (each.fingerprint for each in self._used)
        scale = () if self.column_scale is None else (self.column_scale,)
        return fingerprint_of(*self.surrogate.settings(), *parts, *scale)

    def blocks(self, w: Array) -> tuple[Array, Array]:
        """Value and a subgradient of each block's share of the risk."""
        cuts: Any = self.cuts(w)
        return cuts.values, cuts.slopes

    def cuts(self, w: Array) -> Cuts:
        """The cuts of an evaluation at w, one for each block; see `Cuts`."""
        values = np.zeros(self.n_blocks)
        intercepts = np.zeros(self.n_blocks)
        errors = np.zeros(self.n_blocks)
        slopes = np.zeros((self.n_blocks, self.n_features))
        task = partial(
            _cuts, surrogate=self.surrogate, w=self._in_own_units(w), frozen=self._frozen
        )
        results = self.parts.run(task, self._shares)
        n_done = 0
        steeper = 1.0
        for summary, (n_scored, part) in zip(self._used, results, strict=True):
            self.rows_scored += n_scored
            weight = summary.weight / self._total
            blocks = self._block_of[n_done : n_done + part.values.size]
            values[blocks] += weight * part.values
            slopes[blocks] += weight * part.slopes
            intercepts[blocks] += weight * part.intercepts
            errors[blocks] += weight * part.errors
            n_done += part.values.size
            steeper = max(steeper, part.steeper)
        # what adding up the partitions may lose comes on top
        errors += len(self._used) * EPS * (np.abs(values) + np.abs(intercepts))
        if self.column_scale is not None:
            slopes /= self.column_scale
        return Cuts(
            value=float(values.sum()),
            slopes=slopes,
            intercepts=intercepts,
            point=w,
            errors=errors,
            steeper=steeper,
            values=values,
        )

    def on_each_part(self, task: Any) -> Iterator[Any]:
        """What a task gives of each `Partition`, in the columns' own units."""
        yield from self.parts.run(task, self._shares)

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        if self._rounding is not None:
            return self._rounding
        scores, slopes = np.zeros((2, self.n_features))
        for each in self._used:
            l1_bound = self.surrogate.l1_bound(each.n_pos) @ each.weights / self._total
            chain = min(each.n_rows, 2 * CHUNK_ROWS) + each.n_rows // CHUNK_ROWS + len(self._used)
            shifted = self.surrogate.shift_invariant and each.spread.from_origins
            bound = rounding_bound(each.spread, shifted, l1_bound, chain)
            scores += bound.scores
            slopes += bound.slopes
        self._rounding = Rounding(scores, slopes).scaled(self.column_scale)
        return self._rounding

    def majorant(self, w: Array) -> PartitionedRisk:
        """A convex majorant of a Ramp or ClippedRamp risk, tight at w; see `majorants`.

        Where nothing stays with the partitions, what is frozen at w is found anew in each of them
        at every evaluation, at the price of a second product ``X @ w``.
        """
        return _PartitionedMajorant(self, Frozen(self._in_own_units(w)))

    def tied_majorants(self, w: Array, alpha: float, limit: int) -> Iterator[PartitionedRisk]:
        """Majorants at w with ties broken otherwise, as an iterator; see `Ties`."""
        point = self._in_own_units(w)
        for v in ways_to_break(partial(self._look_at_ties, point), w, alpha, limit):
            yield _PartitionedMajorant(self, Frozen(point, self._in_own_units(v)))

    def _look_at_ties(self, w, directions):
        directions = [self._in_own_units(v) for v in directions]
        task = partial(_look_at_ties, surrogate=self.surrogate, w=w, directions=directions)
        counts, slopes, keys = zip(*self.parts.run(task, self._shares), strict=True)
        weighted = zip(self._used, slopes, strict=True)
        slope = sum(each.weight / self._total * slope for each, slope in weighted)
        return sum(counts), slope, [b"".join(each) for each in zip(*keys, strict=True)]

    def starts(self, alpha: float, names: Sequence[str] | None = None) -> dict[str, Array]:
        """Starting points by name, from the rows of some users; see `starts.warm_starts`."""
        n_rows = self._n_rows
        n = max(enough_for_starts(n_rows, self.n_features), -(-n_rows // self._most_sampled))
        lists = self._every_nth(n).scaled_by(self.column_scale)
        return warm_starts(self.surrogate, lists, alpha, names)

    def _every_nth(self, n):
        """The lists of every n-th user, in this process."""
        first = np.cumsum([0, *(each.exclusions.n_used for each in self._used[:-1])]).tolist()
        return _stacked(list(self.parts.run(partial(_every_nth, n=n), first)))

    def gain(self, w: Array) -> float:
        """Mean pAp@k gain over the users with k negatives, ties counting as errors."""
        task = partial(_gains, k=self.surrogate.k, w=self._in_own_units(w))
        gains = np.concatenate(list(self.parts.run(task, self._shares)))
        return float(gains.mean()) if gains.size else np.nan

    def _split(self, n_blocks):
        """Give every partition its blocks; with fewer blocks than partitions they share them."""
        rows = np.array([each.n_rows for each in self._used])
        ends = np.cumsum(rows)
        if n_blocks < rows.size:
            shares = np.ones_like(rows)
            middle = (ends - rows / 2) / ends[-1] * n_blocks
            _, self._block_of = np.unique(middle.astype(np.int64), return_inverse=True)
        else:
            shares = np.diff(np.round(ends / ends[-1] * n_blocks).astype(np.int64), prepend=0)
            shares = np.clip(shares, 1, [each.exclusions.n_used for each in self._used])
            self._block_of = np.arange(shares.sum())
        self._shares, self.n_blocks = shares.tolist(), int(self._block_of[-1]) + 1
        self.layout = fingerprint_of("partitions", shares, self._block_of)

    def _in_own_units(self, w):
        """Checked weights in the units of X."""
        w = checked_weights(w, self.n_features)
        return w if self.column_scale is None else w / self.column_scale


class _PartitionedMajorant(PartitionedRisk, Majorant):
    """A convex risk that is nowhere below another one and tight at one point."""

    def __init__(self, risk: PartitionedRisk, frozen: Frozen) -> None:
        no_rows = np.empty(0, dtype=np.int64)
        risk.surrogate.majorant(np.empty(0), np.zeros(1, dtype=np.int64), no_rows)  # or refuse
        super().__init__(risk.surrogate, risk.parts)
        self.convex = True
        self.column_scale = risk.column_scale
        self.scale_rule = risk.scale_rule
        self._frozen = frozen
        self._key = frozen.key()
        self._split(risk.n_blocks)
        n_pos = np.concatenate([each.n_pos for each in self._used])
        self.exact = risk.surrogate.is_convex_on(n_pos)

    def fingerprint(self) -> str:
        """SHA-256 that tells this majorant from those at other points, and from the risk."""
        return fingerprint_of(super().fingerprint(), "majorant", *self._key)


class Frozen(NamedTuple):
    """Where a majorant touches the risk, in the columns' own units, and how ties break there."""

    point: Array
    direction: Array | None = None

    def key(self) -> list[Array]:
        """What tells one majorant from another."""
        return [self.point] if self.direction is None else [self.point, self.direction]


def _cuts(
    partition: Partition, *, surrogate: Surrogate, w: Array, frozen: Frozen | None
) -> tuple[int, Cuts]:
    """Rows scored, and the cuts of the blocks of one partition's risk, or of its majorant.

    The oracle stays with the partition, with what an evaluation leaves for the next one.
    """
    frozen_key = [] if frozen is None else frozen.key()
    key = fingerprint_of(str(partition.share), *surrogate.settings(), *frozen_key)
    cache = {} if partition.cache is None else partition.cache
    if key not in cache:
        cache.clear()  # before the next one takes its memory
        cache[key] = _oracle(partition, surrogate, frozen)
    oracle = cache[key]
    n_before = oracle.rows_scored
    cuts = oracle.cuts(w)
    return oracle.rows_scored - n_before, cuts


def _oracle(partition: Partition, surrogate: Surrogate, frozen: Frozen | None) -> BlockOracle:
    data = partition.data
    n_threads = partition.n_threads
    # short lists remember scores from one evaluation to the next, so they need a cache
    skip_rows = partition.cache is not None
    risk = ListRisk(surrogate, data, "cap", 1, n_threads, skip_rows)
    if frozen is None:
        return risk.with_blocks(partition.share)
    if frozen.direction is None:
        majorant = surrogate.majorant(risk.scores(frozen.point), data.indptr, data.n_pos)
    else:
        majorant = Ties(risk, frozen.point).majorant(frozen.direction)
    return ListRisk(majorant, data, "cap", partition.share, n_threads)


def _look_at_ties(
    partition: Partition, *, surrogate: Surrogate, w: Array, directions: Any
) -> tuple[Array, Array, list[bytes]]:
    risk = ListRisk(surrogate, partition.data, "cap", 1, partition.n_threads)
    return Ties(risk, w).look(directions)


def _every_nth(partition: Partition, *, n: int) -> tuple[Any, Array, Array, Array | None]:
    """Every n-th user, with rows of its own; the share is the number of the first user."""
    some = partition.data.every_nth(n, partition.share)
    return some.X[some.rows], some.indptr, some.n_pos, some.user_weight


def _stacked(parts):
    """The lists of all parts together; users are numbered."""
    X, indptr, n_pos, weight = zip(*parts, strict=True)
    sizes = np.concatenate([np.diff(each) for each in indptr])
    stack = sparse.vstack if sparse.issparse(X[0]) else np.concatenate
    return RankingData.from_parts(
        stack(X), np.arange(sizes.sum()), np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate(n_pos), np.arange(sizes.size),
        None if weight[0] is None else np.concatenate(weight),
    )  # fmt: skip


def _gains(partition: Partition, *, k: int, w: Array) -> Array:
    """Gains of the users of one partition for whom pAp@k is defined: those with k negatives."""
    data = partition.data
    name = f"pap@{k}"
    table = evaluate(name, data.scores(w), data.labels, indptr=data.indptr)
    gains = table.values[:, 0]
    return gains[~np.isnan(gains)]


def _joined(exclusions):
    """The exclusions of all partitions together, users numbered through."""
    *before, n_users = np.cumsum([0, *(each.n_users for each in exclusions)]).tolist()
    pairs = list(zip(exclusions, before, strict=True))
    no_positive = np.concatenate([each.no_positive + lo for each, lo in pairs])
    few_negatives = np.concatenate([each.few_negatives + lo for each, lo in pairs])
    return Exclusions(
        exclusions[0].needed, n_users, no_positive, few_negatives, pairs[0][0].setting
    )
