"""The empirical risk of data in partitions of whole users.

    R(w) = sum_p v_p R_p(w) / sum_p v_p

over partitions p whose lists weigh v_p together (by default their number). Whoever holds them
evaluates them (`Partitions`); the sums run in their order, so that the result does not depend on
who was faster.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from structsvm_papk._rounding import EPS, Rounding
from structsvm_papk._types import Array, Callback
from structsvm_papk.data.content import fingerprint_of
from structsvm_papk.data.ranking_data import checked_weights
from structsvm_papk.errors import OracleFailure, interrupted
from structsvm_papk.metrics.table import evaluate_by_grade
from structsvm_papk.oracles.empirical_risk import start_step, warm_starts
from structsvm_papk.oracles.list_risk import CHUNK_ROWS, ListRisk, Partition, runs_of_users
from structsvm_papk.oracles.partitions import Partitions, divided
from structsvm_papk.solvers.oracle import BlockOracle, Cuts, MajorisedOracle, Oracle
from structsvm_papk.surrogates import Surrogate


class PartitionedCuts(BlockOracle):
    """The risk of lists in partitions, or a majorant of it: what asks for cuts and adds them up.

    Blocks are of consecutive users; every partition has a share of them in proportion to its rows.

    Parameters
    ----------
    surrogate : Surrogate
    partitions : Partitions
    n_blocks : int
        About how many cuts an evaluation gives.
    frozen : ndarray of shape (n_features,), optional
        The point in the columns' own units at which a majorant touches the risk; by default it is
        the risk itself.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        partitions: Partitions,
        n_blocks: int = 1,
        frozen: Array | None = None,
    ) -> None:
        self.surrogate = surrogate
        self.partitions = partitions
        self.units = partitions.units
        self.frozen = frozen
        self.convex = surrogate.convex or frozen is not None
        self.nonnegative = surrogate.nonnegative
        self.n_features = partitions.n_features
        self.n_entries = partitions.n_entries
        self._divide(n_blocks)

    def __str__(self) -> str:
        return f"surrogate {self.surrogate.name!r} over partitions"

    def _divide(self, n_blocks: int) -> None:
        self._division = divided(
            self.partitions.used, int(min(n_blocks, self.partitions.most_blocks))
        )
        self.n_blocks = self._division.n_blocks
        self.layout = self._division.layout
        self.rows_scored = 0

    def with_blocks(self, n_blocks: int) -> BlockOracle:
        """The same with about `n_blocks` cuts an evaluation, or as many as there is room for."""
        risk = copy.copy(self)
        risk._divide(n_blocks)
        return risk

    def fingerprint(self) -> str:
        """SHA-256 of surrogate, k, data and what is frozen. Blocks do not count."""
        scale = () if self.units.scale is None else (self.units.scale,)
        data = [each.fingerprint for each in self.partitions.used]
        risk = fingerprint_of(*self.surrogate.settings(), *data, *scale)
        if self.frozen is None:
            return risk
        return fingerprint_of(risk, "majorant", self.frozen)

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
        point = self.in_own_units(w)
        task = partial(
            _cuts,
            surrogate=self.surrogate,
            needed=self.partitions.exclusions.needed,
            w=point,
            frozen=self.frozen,
        )
        n_done = 0
        lipschitz_factor = 1.0
        results = self.on_each_partition(task)
        for summary, cuts in zip(self.partitions.used, results, strict=True):
            self.rows_scored += summary.n_rows
            weight = summary.weight / self.partitions.weight
            blocks = self._division.block_of[n_done : n_done + cuts.values.size]
            values[blocks] += weight * cuts.values
            slopes[blocks] += weight * cuts.slopes
            intercepts[blocks] += weight * cuts.intercepts
            errors[blocks] += weight * cuts.errors
            n_done += cuts.values.size
            lipschitz_factor = max(lipschitz_factor, cuts.lipschitz_factor)
        # what adding up the partitions may lose comes on top
        errors += len(self.partitions.used) * EPS * (np.abs(values) + np.abs(intercepts))
        return Cuts(
            value=float(values.sum()),
            slopes=self.units.of_columns(slopes),
            intercepts=intercepts,
            point=w,
            errors=errors,
            lipschitz_factor=lipschitz_factor,
            values=values,
        )

    def on_each_partition(self, task: Callback) -> Iterator[Any]:
        """What a task gives of each `Partition`, in the columns' own units."""
        for result in self.partitions.run(task, self._division.shares):
            if interrupted():
                raise OracleFailure("interrupted in the middle of a pass")
            yield result

    def rounding(self) -> Rounding:
        """What rounding of scores and slopes can do at any w, see `Rounding`."""
        return self._rounding

    @cached_property
    def _rounding(self) -> Rounding:
        scores = np.zeros(self.n_features)
        slopes = np.zeros(self.n_features)
        used = self.partitions.used
        for each in used:
            l1_bound = self.surrogate.l1_bound(each.n_pos) @ each.weights / self.partitions.weight
            chain = min(each.n_rows, 2 * CHUNK_ROWS) + each.n_rows // CHUNK_ROWS + len(used)
            chain += each.lists_a_row - 1
            shifted = self.surrogate.shift_invariant and each.spread.has_offsets
            bound = each.spread.rounding(shifted, l1_bound, chain)
            scores += bound.scores
            slopes += bound.slopes
        return Rounding(scores, slopes).scaled(self.units.scale)

    def in_own_units(self, w: Array) -> Array:
        """Checked weights in the units of X."""
        return self.units.of_columns(checked_weights(w, self.n_features))


class PartitionedRisk(PartitionedCuts, MajorisedOracle):
    """An oracle like `EmpiricalRisk`, over partitions that someone else holds, see `Partitions`.

    `exclusions` numbers the users through the partitions.
    """

    def __init__(self, surrogate: Surrogate, partitions: Partitions, n_blocks: int = 1) -> None:
        super().__init__(surrogate, partitions, n_blocks)
        self.of_users = partitions
        self.exclusions = partitions.exclusions
        self.n_users = partitions.n_users  # in the mean

    def majorant(self, w: Array) -> PartitionedMajorant:
        """A convex majorant of a Ramp or ClippedRamp risk, tight at w; see `majorants`.

        Where nothing stays with the partitions, what is frozen at w is computed again in each of
        them at every evaluation, at the price of a second product ``X @ w``.
        """
        return PartitionedMajorant(self, self.in_own_units(w))

    def starts(
        self, minimise: Callable[[Oracle], Array], names: Sequence[str] | None = None
    ) -> dict[str, Array]:
        """Starting points by name, from the rows of some users; see `warm_starts`."""
        held = self.partitions
        enough = start_step(held.n_rows, self.n_features)
        in_room = int(np.ceil(held.n_rows / held.most_start_rows))
        lists = held.some_of(max(enough, in_room)).in_units(self.units)
        return warm_starts(self.surrogate, lists, minimise, names)

    def gain(self, w: Array) -> float:
        """Mean pAp@k gain over the users with k negatives, ties counting as errors."""
        task = partial(_gains, k=self.surrogate.k, w=self.in_own_units(w))
        gains = np.concatenate(list(self.on_each_partition(task)))
        return float(gains.mean()) if gains.size else np.nan


class PartitionedMajorant(PartitionedCuts):
    """A convex risk that is nowhere below another one, and tight where it is frozen."""

    def __init__(self, risk: PartitionedRisk, frozen: Array) -> None:
        surrogate = risk.surrogate
        no_rows = np.empty(0, dtype=np.int64)
        surrogate.majorant(np.empty(0), np.zeros(1, dtype=np.int64), no_rows)  # or refuse
        super().__init__(surrogate, risk.partitions, risk.n_blocks, frozen)
        n_pos = np.concatenate([each.n_pos for each in risk.partitions.used])
        self.exact = surrogate.is_convex_on(n_pos)


def _cuts(
    partition: Partition, *, surrogate: Surrogate, needed: int, w: Array, frozen: Array | None
) -> Cuts:
    """The cuts of the blocks of one partition's risk, or of its majorant.

    The oracle stays with the partition, with what an evaluation leaves for the next one.
    """
    frozen_key = [] if frozen is None else [frozen]
    key = fingerprint_of(str(partition.share), *surrogate.settings(), *frozen_key)
    cache = {} if partition.cache is None else partition.cache
    if key not in cache:
        cache.clear()  # before the next one takes its memory
        cache[key] = _oracle(partition, surrogate, needed, frozen)
    cuts: Cuts = cache[key].cuts(w)
    return cuts


def _oracle(
    partition: Partition, surrogate: Surrogate, needed: int, frozen: Array | None
) -> ListRisk:
    """What gives a partition's cuts, or those of its majorant."""
    data = partition.data.by_grade(needed)
    n_threads = partition.n_threads
    bounds = runs_of_users(data, partition.share)
    risk = ListRisk(surrogate, data, bounds, n_threads)
    if frozen is None:
        return risk
    majorant = surrogate.majorant(risk.scores(frozen), data.indptr, data.n_pos)
    return ListRisk(majorant, data, bounds, n_threads)


def _gains(partition: Partition, *, k: int, w: Array) -> Array:
    """Gains of the users of one partition for whom pAp@k is defined: those with k negatives."""
    data = partition.data
    gains = evaluate_by_grade(f"pap@{k}", data.scores(w), data)[f"pap@{k}"]
    return gains[~np.isnan(gains)]
