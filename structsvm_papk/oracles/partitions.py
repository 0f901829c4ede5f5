"""Partitions of whole users that someone holds: what a risk has to know of them, and may ask."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np

from structsvm_papk._types import Array, Callback
from structsvm_papk.data.columns.base import Variation, joined
from structsvm_papk.data.columns.knots import Knots
from structsvm_papk.data.columns.units import Units
from structsvm_papk.data.content import fingerprint_of
from structsvm_papk.data.lists import Exclusions, refusal
from structsvm_papk.data.ranking_data import Parts, RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.list_risk import (
    Partition,
    refuse_deeper_than_all,
)
from structsvm_papk.surrogates import Surrogate


@dataclass(frozen=True)
class PartitionSummary:
    """What the risk has to know of a partition without its rows."""

    most_negatives: int
    exclusions: Exclusions
    first_excluded: str  # what is wrong with that user
    variation: Variation  # of the rows of all users
    grades: Any = ()  # the different ones of all users
    label_gain: Any = None
    n_rows: int = 0  # from here on of the users that can be used
    n_entries: int = 0
    fingerprint: str = ""
    spread: Any = None  # `Spread`
    total_positives: float = 0.0
    user_weight: float = 0.0
    squared_weight: float = 0.0  # sum of the squares of the users' weights
    # of the lists that train: those of the users, or with grades of `by_grade`
    weight: float = 0.0
    n_pos: Any = ()  # numbers of positives that occur, and what the lists with as many weigh
    weights: Any = ()
    lists_a_row: int = 1  # in which a row stands, at most


def summarise(
    data: RankingData, needed: int, setting: str = "k", user_weight: str | None = None
) -> tuple[RankingData | None, PartitionSummary]:
    """The users of a partition that can be used, None for none, and the `PartitionSummary`."""
    if user_weight is not None:
        data = data.weighted(user_weight)
    exclusions = data.exclusions(needed, setting)
    of_all = PartitionSummary(
        most_negatives=data.most_negatives,
        exclusions=exclusions,
        first_excluded=data.name_first(exclusions),
        variation=data.variation(),
        grades=() if data.grades is None else np.unique(data.grades),
        label_gain=data.label_gain,
    )
    if not exclusions.n_used:
        return None, of_all
    used = data.usable(needed)
    lists = used.by_grade(needed)
    of_users = used.weight_of_user
    weight = lists.weight_of_user
    n_pos, index = np.unique(lists.n_pos, return_inverse=True)
    return used, replace(
        of_all,
        n_rows=used.rows.size,
        n_entries=used.n_entries,
        fingerprint=used.fingerprint(),
        spread=used.spread(),
        total_positives=used.total_positives,
        user_weight=float(of_users.sum()),
        squared_weight=float(np.square(of_users).sum()),
        weight=float(weight.sum()),
        n_pos=n_pos,
        weights=np.bincount(index, weight),
        lists_a_row=1 if lists.shared is None else lists.shared.most,
    )


class Partitions(Parts):
    """The partitions of a risk, for `PartitionedRisk`; a subclass holds and evaluates them.

    They are held in the units of X; `units` are for the risk.

    Parameters
    ----------
    summaries : sequence of PartitionSummary
        One of each partition, in order.
    surrogate : Surrogate
        Whose k or depth is refused where no user can be used because of it.
    policy : {'exclude', 'raise', 'cap'}
        'raise' refuses users who cannot be used.

    Attributes
    ----------
    used : list of PartitionSummary
        Of the partitions with users.
    exclusions : Exclusions
        Of all partitions together; users are numbered through them.
    weight : float
        What the lists that train weigh together: users, or with grades the lists of `by_grade`.
    label_gain : str, tuple of float, or None
        What grades count; None where labels are binary.
    n_rows, n_entries, n_features : int
        Rows that are used, their numbers; columns.
    knots : Knots or None
        Of curves: the columns of all partitions are pieces between them.
    most_blocks, most_start_rows : float
        Cuts of an evaluation, and rows for starting points, that there is room for.

    Raises
    ------
    InputError
        No user can be used, or some cannot and the policy is 'raise'; partitions that differ in
        their columns.
    """

    knots: Knots | None = None
    most_blocks: float = np.inf
    most_start_rows: float = np.inf

    def __init__(
        self,
        summaries: Sequence[PartitionSummary],
        surrogate: Surrogate,
        policy: str = "cap",
    ) -> None:
        self.summaries = summaries
        self.exclusions = _joined([each.exclusions for each in summaries])
        if not self.exclusions.n_used:
            refuse_deeper_than_all(surrogate, self.most_negatives)
            raise InputError(f"no user can be used: {self.exclusions}")
        if policy == "raise" and self.exclusions.n_excluded:
            first = next(each.first_excluded for each in summaries if each.first_excluded)
            raise InputError(refusal(first, self.exclusions))
        widths = {each.variation.deviation.size for each in summaries}
        if len(widths) > 1:
            raise InputError(f"partitions differ in their number of features: {sorted(widths)}")
        self.n_features = widths.pop()
        gains = {each.label_gain for each in summaries}
        if len(gains) > 1:
            raise InputError(
                f"partitions differ in label_gain: {', '.join(sorted(map(repr, gains)))}"
            )
        self.label_gain = gains.pop()
        self.used = [each for each in summaries if each.exclusions.n_used]
        self.weight = sum(each.weight for each in self.used)
        self.n_rows = sum(each.n_rows for each in self.used)
        self.n_entries = sum(each.n_entries for each in self.used)

    @abstractmethod
    def run(self, task: Callback, shares: Sequence[int]) -> Iterable[Any]:
        """What the task gives of a `Partition` with its share, for each of the `used`, in order."""

    @property
    def n_columns(self) -> int:
        """Number of columns as they were given."""
        return self.n_features if self.knots is None else self.knots.n_columns

    @property
    def is_sparse(self) -> bool:
        """Whether a partition's matrix is sparse."""
        return any(each.variation.is_sparse for each in self.summaries)

    @property
    def n_users(self) -> int:
        """Number of users that are used."""
        return self.exclusions.n_used

    @property
    def effective_users(self) -> float:
        """``(sum v)^2 / sum v^2`` of the weights of the users that are used."""
        weight = sum(each.user_weight for each in self.used)
        squares = sum(each.squared_weight for each in self.used)
        return float(weight**2 / squares)

    @property
    def total_positives(self) -> float:
        """Positives of the users that are used."""
        return sum(each.total_positives for each in self.used)

    @property
    def most_negatives(self) -> int:
        """Of any user, used or not."""
        return max(each.most_negatives for each in self.summaries)

    @property
    def classes(self) -> Array:
        """The grades that occur; of binary labels False and True."""
        if self.label_gain is None:
            return np.array([False, True])
        return np.unique(np.concatenate([each.grades for each in self.summaries]))

    def variation(self) -> Variation:
        """How the columns vary over all partitions, known since the data were first read."""
        return Variation.pooled([each.variation for each in self.summaries])

    def stiffness(self, stiffness: float) -> Array:
        """How many times stronger the penalty is on each weight, see `Columns.stiffness`."""
        if self.knots is None:
            return np.ones(self.n_features)
        return self.knots.stiffness(stiffness)

    def in_units(self, units: Units) -> Self:
        """The same in other units than now; what is held is shared."""
        partitions = copy.copy(self)
        partitions.units = units
        return partitions

    def term_deviations(self, w: Array) -> Array:
        """Deviation within lists of what each column adds to the scores, for weights of X."""
        if self.knots is None:
            return np.asarray(np.abs(w) * self.deviation())
        n_rows = np.array([each.n_rows for each in self.used])
        squares = np.square(list(self.run(partial(_term_deviations, w=w), [0] * n_rows.size)))
        return np.asarray(np.sqrt(n_rows @ squares / n_rows.sum()))

    def some_of(self, n: int) -> RankingData:
        """The lists of `RankingData.some_of` n users, in this process; users are numbered."""
        no_blocks = [0] * len(self.used)
        some = _stacked(list(self.run(partial(_one_of, n=n), no_blocks)))
        return some if some.n_users else self.some_of(n // 2)


@dataclass(frozen=True)
class Division:
    """How users are divided into blocks: every partition has a share of these.

    `shares` are the blocks of each partition, and `block_of` the block that each of theirs is in:
    with fewer blocks than partitions they share one.
    """

    shares: list[int]
    block_of: Array

    @property
    def n_blocks(self) -> int:
        """Blocks of all partitions together."""
        return int(self.block_of[-1]) + 1

    @property
    def layout(self) -> str:
        """What tells this division from others."""
        return fingerprint_of("partitions", np.array(self.shares), self.block_of)


def divided(used: Sequence[PartitionSummary], n_blocks: int) -> Division:
    """About `n_blocks` blocks, for each partition in proportion to its rows."""
    rows = np.array([each.n_rows for each in used])
    ends = np.cumsum(rows)
    if n_blocks < rows.size:
        middle = (ends - rows / 2) / ends[-1] * n_blocks
        _, block_of = np.unique(middle.astype(np.int64), return_inverse=True)
        return Division([1] * rows.size, block_of)
    shares = np.diff(np.round(ends / ends[-1] * n_blocks).astype(np.int64), prepend=0)
    shares = np.clip(shares, 1, [each.exclusions.n_used for each in used])
    return Division(shares.tolist(), np.arange(shares.sum()))


def _term_deviations(partition: Partition, *, w: Array) -> Array:
    """How much each column moves the scores of one partition within users."""
    deviations: Array = partition.data.term_deviations(w)
    return deviations


def _one_of(partition: Partition, *, n: int) -> RankingData:
    """One of n users, with rows of its own."""
    some: RankingData = partition.data.one_of(n).with_own_rows()
    return some


def _stacked(parts: Sequence[RankingData]) -> RankingData:
    """The lists of all partitions together; users are numbered."""
    sizes = np.concatenate([part.sizes for part in parts])
    return RankingData.from_parts(
        columns=joined([part.columns for part in parts]),
        rows=np.arange(sizes.sum()),
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        n_pos=np.concatenate([part.n_pos for part in parts]),
        users=np.arange(sizes.size),
        user_weight=_joined_or_none([part.user_weight for part in parts]),
        grades=_joined_or_none([part.grades for part in parts]),
        label_gain=parts[0].label_gain,
    )


def _joined_or_none(arrays):
    """All of the arrays together; None where there are none."""
    return None if arrays[0] is None else np.concatenate(arrays)


def _joined(exclusions):
    """The exclusions of all partitions together, users numbered through."""
    sizes = [each.n_users for each in exclusions]
    before = np.cumsum(sizes) - sizes
    pairs = list(zip(exclusions, before.tolist(), strict=True))
    no_positive = np.concatenate([each.no_positive + lo for each, lo in pairs])
    few_negatives = np.concatenate([each.few_negatives + lo for each, lo in pairs])
    return Exclusions(
        exclusions[0].needed, sum(sizes), no_positive, few_negatives, pairs[0][0].setting
    )
