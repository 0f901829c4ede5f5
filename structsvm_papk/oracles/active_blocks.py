"""Users of data in partitions as blocks of the dual: their active rows are here, the others there.

The dual variables of a user are zero on all but few rows, the *active* ones. These are kept in this
process, and the ascent works on them as on data in memory: on fewer negatives, of which at least as
many are left as count, a loss is nowhere larger, so a lower bound of the risk of the active rows is
one of the whole. A look at the partitions scores all their rows at the present w. It gives the
objective, and the rows that are to become active: of the users whose loss is larger on all rows
than on the active ones. Nothing of a solve stays with the partitions, so none of it is lost with
them. See ``docs/math/dual-ascent.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.origins import Spread
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.fingerprint import fingerprint_of
from structsvm_papk.oracles import _dual_kernels as kernels
from structsvm_papk.oracles.cut_blocks import Counted
from structsvm_papk.oracles.dual_choice import blocks_of
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.user_blocks import EXACTER, MORE, PAIRWISE, Duals, score_error
from structsvm_papk.solvers.oracle import DualBlocks, DualPoint
from structsvm_papk.surrogates import Surrogate

if TYPE_CHECKING:
    from structsvm_papk.oracles.partitioned import PartitionedRisk

_COPIES = 2  # of the active rows, while there come to be more
_ROUNDING = 4.0  # times what rounding may do to a loss, by which it has to be larger on all rows


class _Look(NamedTuple):
    """What a partition answers: losses of its users, how far off, rows scored, and new rows.

    `positions` are those of the new rows in the partition's lists; `lists` describes these lists,
    where it was asked for.
    """

    values: Array
    error: float
    visits: int
    positions: Array
    X: Any
    lists: tuple[Array, Array, Array | None] | None


@dataclass(frozen=True)
class _Users:
    """The users of all partitions: bounds of their lists, numbered through, and weights."""

    bounds: Array
    n_pos: Array
    weight: Array | None

    @classmethod
    def joined(cls, lists: list[Any]) -> _Users:
        """Of the lists of the partitions."""
        sizes = np.concatenate([np.diff(bounds) for bounds, _, _ in lists])
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        weights = [np.ones(n.size) if weight is None else weight for _, n, weight in lists]
        equal = all(weight is None for _, _, weight in lists)
        n_pos = np.concatenate([n for _, n, _ in lists])
        return cls(bounds, n_pos, None if equal else np.concatenate(weights))

    @property
    def n_neg(self) -> Array:
        """Negatives of each user."""
        return np.diff(self.bounds) - self.n_pos


@dataclass(frozen=True)
class _Rows:
    """Rows of the lists, by increasing position: ``X[rows[i]]`` is at ``positions[i]``."""

    positions: Array
    rows: Array
    X: Any

    @classmethod
    def joined(cls, parts: list[tuple[Array, Any]]) -> _Rows:
        """Of positions in any order, and their rows."""
        positions = np.concatenate([positions for positions, _ in parts])
        order = np.argsort(positions)
        X = parts[0][1]
        if len(parts) > 1:
            pieces: list[Any] = [X for _, X in parts]
            is_sparse = sparse.issparse(X)
            X = sparse.vstack(pieces, "csr") if is_sparse else np.concatenate(pieces)
        return cls(positions[order], order, X)

    def with_more(self, new: list[tuple[Array, Any]]) -> _Rows:
        """These rows and others."""
        unsorted = np.empty_like(self.positions)
        unsorted[self.rows] = self.positions
        return _Rows.joined([(unsorted, self.X), *new])

    def only(self, keep: Array) -> _Rows:
        """Those where the mask is true."""
        return _Rows(self.positions[keep], np.arange(keep.sum()), self.X[self.rows[keep]])

    def places(self, positions: Array) -> Array:
        """Where these positions are among those of the rows; ValueError where one is not."""
        at = np.searchsorted(self.positions, positions)
        if not np.array_equal(self.positions[np.minimum(at, self.positions.size - 1)], positions):
            raise ValueError("rows of the dual variables are missing")
        return at

    @property
    def nbytes(self) -> int:
        """Bytes of the features."""
        X = self.X
        return X.data.nbytes + X.indices.nbytes if sparse.issparse(X) else X.nbytes


@dataclass(frozen=True)
class ActiveDuals:
    """Dual variables of data in partitions, with their rows."""

    surrogate: Surrogate
    problem: str
    users: _Users
    active: _Rows
    w: Array
    duals: Duals


class _RiskHere(ListRisk):
    """The risk of the active rows."""

    active: _Rows


class ActiveBlocks(DualBlocks):
    """The users of a `PartitionedRisk` as blocks, of its active rows.

    Parameters
    ----------
    risk : PartitionedRisk
    alpha : float
    start : ndarray, mapping, ActiveDuals or None
        See `Oracle.dual_blocks`.

    Raises
    ------
    InputError
        Dual variables of another problem.
    OracleFailure
        The partitions cannot be evaluated, or the active rows need more memory than there is.
    """

    certify_at = 0.1  # a look at the partitions costs more than a sweep of the active rows

    def __init__(self, risk: PartitionedRisk, alpha: float, start: Any = None) -> None:
        self.risk, self.alpha = risk, alpha
        used = [each for each in risk.parts.summaries if each.n_used]
        self._problem = fingerprint_of(*(each.fingerprint for each in used))
        self._spread = _common([each.spread for each in used])
        self._first_user = np.cumsum([0, *(each.n_used for each in used)])
        self._first_position = np.cumsum([0, *(each.n_rows for each in used)])
        self._weights = np.array([each.weight for each in used])
        self.n_blocks = int(self._first_user[-1])
        self._visits = 0
        self._users: Any = None
        self._seen: Any = None  # the last w, the users' losses and how far off
        active, inner = self._begun(start)
        self._blocks: Any = self._blocks_on(active, inner)
        self.gaps = self._blocks.gaps

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Rows or cuts that have a dual variable."""
        return int(self._blocks.n_atoms)

    @property
    def n_active(self) -> int:
        """Rows that are here."""
        return int(self._active.rows.size)

    @property
    def row_visits(self) -> int:  # type: ignore[override]
        """Rows scored so far, here and there."""
        return int(self._visits + self._blocks.row_visits)

    @property
    def _active(self):
        return self._blocks.risk.active

    def sweep(self, blocks: Array, full: bool) -> float:  # noqa: D102
        gained = self._blocks.sweep(blocks, full)
        self.gaps = self._blocks.gaps
        return float(gained)

    def certificate(self) -> DualPoint:
        """The bound is that of the active rows, the objective that of all."""
        point = self._blocks.certificate()
        gaps = self._blocks.gaps
        objective, error, above = self._evaluated(point.w, EXACTER * float(gaps.sum()))
        self.gaps = gaps + above
        return DualPoint(point.w, objective, error, point.lower_bound)

    def point(self, w: Array) -> DualPoint:  # noqa: D102
        objective, error, _ = self._evaluated(w, np.inf)
        return DualPoint(w, objective, error, -np.inf)

    def state(self) -> dict[str, Array]:  # noqa: D102
        state: dict[str, Array] = self._blocks.state()
        return state | {"positions": self._active.positions[state["positions"]]}

    @property
    def duals(self) -> ActiveDuals:  # noqa: D102
        w, duals = self._blocks.w.copy(), self._blocks.duals
        return ActiveDuals(self.risk.surrogate, self._problem, self._users, self._active, w, duals)

    def _begun(self, start):
        """The first active rows, and what the blocks on them start from."""
        if isinstance(start, ActiveDuals):
            return self._adopted(start)
        zero = np.zeros(self.risk.n_features)
        if isinstance(start, Mapping):
            held = np.asarray(start["positions"])
            within = held.dtype.kind == "i" and ((held >= 0) & (held < self._first_position[-1]))
            if not np.all(within):
                raise ValueError("the positions of the dual variables do not fit")
            active = self._look(None, zero, None, np.inf, held)[-1]
            return active, {**start, "positions": active.places(held)}
        if start is not None and not isinstance(start, np.ndarray):
            raise InputError(
                "the warm start's dual variables are of another problem: give w_init=result.w"
            )
        w = zero if start is None else start
        *seen, active = self._look(None, w, None, np.inf)
        self._check_room(active)
        self._seen = w.copy(), *seen
        return active, start

    def _adopted(self, start):
        """Dual variables of the same lists, where a smaller depth is scaled to a larger one."""
        own, other = self.risk.surrogate, start.surrogate
        if start.problem != self._problem or own != replace(other, depth=own.depth):
            raise InputError(
                "the warm start's dual variables are of another problem: data, "
                "partitions, surrogate or k differ"
            )
        self._users, active, duals = start.users, start.active, start.duals
        counted = [each.negatives_counted(self._users.n_neg) for each in (own, other)]
        factor = np.minimum(1.0, counted[1] / counted[0])
        if (factor < 1.0).any():  # as many as count have to be active
            duals = duals.scaled(factor)
            active = self._look(active, start.w, None, np.inf)[-1]
        return active, _moved(duals, start.active, active)

    def _blocks_on(self, active, start=None):
        """Blocks of the risk of these active rows."""
        risk = self._risk_on(active)
        if isinstance(start, Duals):
            start = replace(start, risk=risk)
        return blocks_of(risk, self.alpha, start, self.risk.row_room)

    def _risk_on(self, active):
        users, surrogate = self._users, self.risk.surrogate
        indptr = np.searchsorted(active.positions, users.bounds)
        data = RankingData.from_parts(
            active.X, active.rows, indptr, users.n_pos, np.arange(users.n_pos.size), users.weight,
            None, self._spread,
        )  # fmt: skip
        if surrogate.depth is not None and surrogate.depth < 1:
            surrogate = Counted(surrogate, surrogate.negatives_counted(users.n_neg))
        risk = _RiskHere(surrogate, data, "cap", skip_rows=False)
        risk.active = active
        return risk

    def _evaluated(self, w, allowed):
        """Objective, its error, and the users' shares of what it is above that of active rows."""
        here, share = self._blocks.risk, self._blocks.share
        held, _ = here.user_values(here.scores(w))
        if self._seen is None or not np.array_equal(self._seen[0], w):
            *seen, active = self._look(here.active, w, held, allowed)
            self._seen = w.copy(), *seen
            if active is not here.active:
                self._go_on_with(active)
        _, values, error = self._seen
        square = 0.5 * self.alpha * float(np.sum(w * w))
        objective = float(np.sum(share * values)) + square
        error += PAIRWISE * (abs(objective) + square)
        return objective, error, share * np.maximum(values - held, 0.0)

    def _look(self, active, w, held, allowed, wanted=None):
        """Losses of all users at w, how far off, and the active rows with new ones.

        `held` are the losses on the active rows; without them all users get new ones.
        """
        held = np.full(self.n_blocks, -np.inf) if held is None else held
        settings = {"w": w, "allowed": allowed, "describe": self._users is None}
        task = partial(look, surrogate=self.risk.surrogate, **settings)
        known = None if active is None else active.positions
        users, starts = self._first_user, self._first_position
        shares = [
            (self._bits(known, p), self._bits(wanted, p), held[users[p] : users[p + 1]])
            for p in range(self._weights.size)
        ]
        looks = list(self.risk.parts.run(task, shares))
        self.passes += 1
        self._visits += sum(each.visits for each in looks)
        if self._users is None:
            self._users = _Users.joined([each.lists for each in looks])
        new = [
            (each.positions + start, each.X)
            for each, start in zip(looks, starts[:-1].tolist(), strict=True)
            if each.positions.size
        ]
        if new:
            active = _Rows.joined(new) if active is None else active.with_more(new)
        errors = np.array([each.error for each in looks])
        error = float(np.sum(self._weights * errors) / np.sum(self._weights))
        return np.concatenate([each.values for each in looks]), error, active

    def _bits(self, positions, p):
        """Which positions of a partition are among these, a bit each; None for none."""
        if positions is None:
            return None
        first, last = self._first_position[p : p + 2]
        mask = np.zeros(last - first, dtype=bool)
        mask[positions[(positions >= first) & (positions < last)] - first] = True
        return np.packbits(mask)

    def _go_on_with(self, active):
        """Take up more active rows; where there is no room for all, without the idle ones."""
        before = self._active
        if self.risk.has_room(_COPIES * active.nbytes):
            self._blocks.move_to(self._risk_on(active), active.places(before.positions))
            return
        duals = self._blocks.duals
        coef = np.ones(active.positions.size)  # the new ones stay
        coef[active.places(before.positions)] = duals.coef
        fewer = active.only(_needed(self._risk_on(active), coef))
        self._check_room(fewer)
        self._blocks = self._blocks_on(fewer, _moved(duals, before, fewer))

    def _check_room(self, active):
        if not self.risk.has_room(_COPIES * active.nbytes):
            raise OracleFailure(
                f"there is no room for the {active.nbytes / 1e6:.3g} MB that the active rows of "
                "DualAscent take: give a larger memory budget, or use CuttingPlane"
            )


def _needed(risk, coef):
    """Rows that cannot be left out: positives, those with dual variables, as many as count."""
    data = risk.data
    needed = data.labels | (coef != 0.0)
    missing = risk.surrogate.negatives_counted(data.n_neg) + data.n_pos
    missing -= np.add.reduceat(needed, data.indptr[:-1])
    idle = np.cumsum(~needed)
    rank = idle - np.repeat(idle[data.indptr[:-1]] - ~needed[data.indptr[:-1]], data.sizes)
    return needed | (rank <= np.repeat(missing, data.sizes))


def _moved(duals, old, new):
    """Dual variables of some active rows on others, which have all that are not zero."""
    coef, nonzero = np.zeros(new.positions.size), np.flatnonzero(duals.coef)
    coef[new.places(old.positions[nonzero])] = duals.coef[nonzero]
    return replace(duals, coef=coef)


def look(
    data: RankingData,
    share: tuple[Array | None, Array | None, Array],
    n_threads: int,
    memory: Any,
    *,
    surrogate: Surrogate,
    w: Array,
    allowed: float,
    describe: bool,
) -> _Look:
    """Losses of the users of a partition at w, and rows that are to become active.

    `share` are the rows that are active, those that are wanted anyway, a bit each, and the users'
    losses on the active ones. The error of the losses is found more exactly where it is larger than
    `allowed`.
    """
    known, wanted, held = share
    risk = ListRisk(surrogate, data, "cap", 1, n_threads)
    scores = risk.scores(w)
    values, coef, _, errors = risk.user_tangents(scores)
    larger = values - held > _ROUNDING * errors
    active, missing = (_mask(bits, data.rows.size) for bits in (known, wanted))
    counted = surrogate.negatives_counted(data.n_neg)
    kernels.mark_missing(scores, coef, data.indptr, data.n_pos, counted, larger, MORE, missing)
    positions = np.flatnonzero(missing & ~active)
    error = risk.mean_over_users(errors) + score_error(risk, w, allowed)
    lists = (data.indptr, data.n_pos, data.user_weight) if describe else None
    return _Look(values, error, scores.size, positions, data.X[data.rows[positions]], lists)


def _mask(bits, size):
    if bits is None:
        return np.zeros(size, dtype=bool)
    return np.unpackbits(bits, count=size).astype(bool)


def _common(spreads):
    """A `Spread` that holds for the rows of all partitions."""
    shifted = np.all([each.shifted for each in spreads], axis=0)
    largest = np.max([each.largest for each in spreads], axis=0)
    within = np.max([each.within for each in spreads], axis=0)
    terms = max(each.row_terms for each in spreads)
    return Spread(largest, np.where(shifted, within, largest), shifted, terms)
