"""Users as blocks of the dual: what `DualAscent` asks of the risk of Avg in memory.

With weights v of the users that add up to 1, and points (c_u, b_u) of each user's dual polytope,
which lies in the space of the user's scores,

    S(s) >= c_u . s + b_u for all scores s,    w = -1/alpha sum_u v_u X_u' c_u,
    min F >= sum_u v_u b_u - alpha/2 ||w||^2.

c_u is the weight of each negative, and less their sum over the number of positives at each
positive; b_u is their sum. Few weights are above zero. See docs/math/proofs.md, "Ascent on the
dual".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._rounding import EPS, error_of_sum
from structsvm_papk._types import Array
from structsvm_papk.errors import InputError
from structsvm_papk.oracles import _dual_kernels as kernels
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.oracle import BlockCuts, DualBlocks, DualPoint

ACCURACY = 0.1  # of its gap, to which a block is solved
CANDIDATES = 4  # of the highest negatives, for each one that counts, may become active at a visit
_ACTIVE = 16  # negatives that come to be active, for each one that counts
ROUNDING_SHARE = 0.01  # of the gap: a larger bound of rounding is made anew, closer
PAIRWISE = 64 * EPS  # of a pairwise sum, of any number of terms there can be


@dataclass(frozen=True)
class Duals:
    """A point of every user's polytope, and the lists that it belongs to.

    `coef` is c, over the list positions, and `sums` b, for each user; rounding may have put b above
    what is right by `errors`.
    """

    risk: ListRisk
    coef: Array
    sums: Array
    errors: Array

    def arrays(self) -> dict[str, Array]:
        """The numbers by name, for a file."""
        positions = np.flatnonzero(self.coef)
        return {"positions": positions, "coef": self.coef[positions]}


class UserBlocks(DualBlocks):
    """The users of Avg as blocks: weights of at most 1/m on negatives, adding up to at most 1.

    A visit solves a block to `ACCURACY` times its gap: the other blocks soon move w anyway. A user
    has `room` slots at first, beside those for the negatives that count.
    """

    def __init__(self, risk: ListRisk, alpha: float, start: Any = None, *, room: int = 16) -> None:
        self.risk = risk
        self.alpha = alpha
        data = risk.data
        self.n_blocks = n = data.n_users
        weight = np.full(n, 1.0 / n) if data.user_weight is None else data.user_weight
        self.share = weight / weight.sum()
        columns, rows = risk.list_rows()
        if columns.is_sparse:
            X: Any = columns.X
        else:  # levels have no matrix
            X = sparse.csr_array(columns.toarray())
        self.matrix = kernels.Matrix(X.data, X.indices, X.indptr)
        self.lists = kernels.UserLists(
            rows=rows,
            bounds=data.indptr,
            n_pos=data.n_pos,
            n_counted=risk.surrogate.negatives_counted(data.n_neg),
            steps=self.share / alpha,
        )
        self.gaps = np.full(n, np.inf)
        self._gaps = np.full(n, np.inf)  # of each user, not yet by its weight
        self._gains = np.zeros(n)
        self.primal = kernels.Primal(
            w=np.zeros(data.n_features),
            metric=None if data.units.scale is None else data.units.scale**-2,
            work=np.zeros(data.n_features),
        )
        self.active: Any = None
        self.atoms: Any = None
        self._make_room(np.minimum(self.lists.n_counted + room, data.n_neg))
        if start is not None:
            self._begin_with(self._started(start))

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Negatives that are active."""
        return int(self.active.used.sum())

    def sweep(self, blocks: Array, full: bool) -> float:  # noqa: D102
        active = self.active
        if full and active.wanted.any():
            most = active.room + np.maximum(active.wanted, active.room)
            most = np.minimum(most, self.risk.data.n_neg)
            room = np.where(active.wanted > 0, most, active.room)
            active.wanted[:] = 0
            self._make_room(room)
        visit = kernels.Visit(order=blocks, full=full, n_candidates=CANDIDATES, accuracy=ACCURACY)
        self.passes += full
        self.rows_scored += kernels.average_sweep(
            self.matrix, self.primal, self.lists, self.active, self.atoms,
            visit, self._gaps, self._gains,
        )  # fmt: skip
        self.gaps = self.share * self._gaps
        return float(self.share[blocks] @ self._gains[blocks])

    @property
    def duals(self) -> Duals:
        """The point of every user, inside its polytope whatever rounding did."""
        coef = np.zeros(self.risk.data.rows.size)
        sums = np.zeros(self.n_blocks)
        most = kernels.average_duals(self.lists, self.active, self.atoms, coef, sums)
        return Duals(self.risk, coef, sums, error_of_sum(most, sums))

    def certificate(self) -> DualPoint:  # noqa: D102
        duals = self.duals
        slope = self._pulled(duals.coef)
        w = -slope / self.alpha
        self._move_to(w)
        square = float(np.sum(slope * slope)) / (2.0 * self.alpha)
        off = self._slope_errors(duals)
        worse = float(np.sum(off * (np.abs(slope) + 0.5 * off))) / self.alpha
        worse += float(np.sum(self.share * duals.errors))
        worse += PAIRWISE * (float(np.sum(self.share * duals.sums)) + square)
        bound = float(np.sum(self.share * duals.sums)) - square
        bound -= (1.0 + PAIRWISE) * worse
        scores, values, objective, error = self._evaluated(w, bound)
        products = np.add.reduceat(duals.coef * scores, self.risk.data.indptr[:-1])
        self._gaps[:] = np.maximum(values - products - duals.sums, 0.0)
        self.gaps = self.share * self._gaps
        return DualPoint(w, objective, error, bound)

    def point(self, w: Array) -> DualPoint:  # noqa: D102
        _, _, objective, error = self._evaluated(w, -np.inf)
        return DualPoint(w, objective, error, -np.inf)

    def _evaluated(self, w: Array, bound: float) -> tuple[Array, Array, float, float]:
        """Scores, the users' losses, the objective and how far rounding may have put it off."""
        risk = self.risk
        self.passes += 1
        scores = risk.scores(w)
        tangents = risk.tangents(scores)
        square = 0.5 * self.alpha * float(np.sum(w * w))
        objective = risk.mean_over_users(tangents.values) + square
        error = risk.mean_over_users(tangents.errors)
        error += self._score_error(w, ROUNDING_SHARE * (objective - bound))
        return scores, tangents.values, objective, error + PAIRWISE * (abs(objective) + square)

    def _score_error(self, w: Array, allowed: float) -> float:
        """What rounding of the scores may do to the risk at w; more exactly where it matters."""
        risk = self.risk
        error = float(risk.rounding().scores @ np.abs(w))
        if error <= allowed:
            return error
        lists = self.lists
        largest = kernels.score_sizes(
            self.matrix, lists.rows, lists.bounds, risk.units.of_columns(w)
        )
        steep = risk.surrogate.l1_bound(lists.n_pos)
        n_terms = risk.data.spread().row_terms
        return float(error_of_sum(n_terms, risk.mean_over_users(steep * largest)))

    def _slope_errors(self, duals: Duals) -> Array:
        """How far rounding may have put the slope off, by feature: few rows have each of them."""
        risk = self.risk
        sizes = np.zeros(risk.n_features)
        counts = np.zeros(risk.n_features, dtype=np.int64)
        weights = duals.coef * np.repeat(self.share, risk.data.sizes)
        kernels.column_sizes(self.matrix, self.lists.rows, weights, sizes, counts)
        terms = counts + risk.edges.size
        return error_of_sum(terms, np.abs(risk.units.of_columns(sizes)))

    def _move_to(self, w: Array) -> None:
        """Let w be the point; kernels have it in the units of X."""
        self.primal.w[:] = self.risk.units.of_columns(w)

    def _pulled(self, coef: Array) -> Array:
        """``sum_u v_u X_u' c_u``."""
        return self.risk.slopes(coef).sum(axis=0)

    def cuts(self, n_blocks: int) -> BlockCuts | None:  # noqa: D102
        if self.n_blocks == 1:
            return None
        blocks: Any = self.risk.with_blocks(n_blocks)
        duals = self.duals
        first = blocks.user_bounds[:-1]
        intercepts = np.add.reduceat(self.share * (duals.sums - duals.errors), first)
        intercepts -= PAIRWISE * np.add.reduceat(self.share * duals.sums, first)
        return BlockCuts(
            slopes=blocks.slopes(duals.coef),
            intercepts=intercepts,
            blocks=np.arange(intercepts.size),
            n_blocks=blocks.n_blocks,
            layout=blocks.layout,
            risk=self.risk,
        )

    def _started(self, start: object) -> Array:
        """The weights of negatives of any start, scaled for the highest bound."""
        if isinstance(start, np.ndarray):
            coef = self.risk.tangents(self.risk.scores(start)).coef
        elif isinstance(start, Duals):
            coef = self._adopted(start)
        elif isinstance(start, Mapping):
            return self._restored(start)
        else:
            raise InputError(
                "the warm start's dual variables are not of users: give w_init=result.w"
            )
        slope = self._pulled(coef)
        sums = np.add.reduceat(np.maximum(coef, 0.0), self.risk.data.indptr[:-1])
        rise = self.alpha * float(self.share @ sums)
        square = float(slope @ slope)
        return coef if rise >= square else coef * (max(rise, 0.0) / square)

    def _adopted(self, given: Duals) -> Array:
        """Weights of the same lists, where a smaller depth is scaled to a larger one.

        The m largest terms add up to no more than the m' >= m largest, none of which is negative.
        """
        risk = self.risk
        other = given.risk
        same = risk.surrogate == replace(other.surrogate, depth=risk.surrogate.depth)
        lists = risk.data is other.data or risk.data.fingerprint() == other.data.fingerprint()
        if not (same and lists):
            raise InputError(
                "the warm start's dual variables are of another problem: data, surrogate, k differ"
            )
        old = other.surrogate.negatives_counted(other.data.n_neg)
        factor = np.minimum(1.0, old / self.lists.n_counted)
        return given.coef * np.repeat(factor, risk.data.sizes)

    def _restored(self, arrays: Mapping[str, Array]) -> Array:
        """Weights of this risk that were kept as arrays."""
        coef = np.zeros(self.risk.data.rows.size)
        try:
            coef[arrays["positions"]] = arrays["coef"]
        except (KeyError, IndexError, ValueError, TypeError):
            raise InputError("the dual variables that were kept do not fit the risk") from None
        if not np.isfinite(coef).all():
            raise InputError("the dual variables that were kept do not fit the risk")
        return coef

    def _make_room(self, room: Array) -> None:
        """Allocate slots for so many negatives of each user; keep what there is."""
        n = room.size
        old = self.active
        first = np.concatenate([[0], np.cumsum(room)])
        square = np.concatenate([[0], np.cumsum(room**2)])
        positions = np.zeros(first[-1], dtype=np.int64)
        theta = np.zeros(first[-1])
        gram = np.zeros(square[-1])
        if old is None:
            slot = np.full(self.risk.data.rows.size, -1, dtype=np.int32)
            used, wanted = np.zeros((2, n), dtype=np.int64)
        else:
            slot = old.slot
            used = old.used
            wanted = old.wanted
            single = np.ones_like(used)
            for source, out in ((old.positions, positions), (self.atoms.theta, theta)):
                kernels.move_blocks(source, old.first, single, out, first, single, single, used)
            kernels.move_blocks(
                self.atoms.gram, self.atoms.square, old.room, gram, square, room, used, used
            )
        self.active = kernels.Active(
            first=first, room=room, used=used, positions=positions, slot=slot, wanted=wanted
        )
        self.atoms = kernels.Weights(theta=theta, square=square, gram=gram)

    def _begin_with(self, coef: Array) -> None:
        data = self.risk.data
        negative = np.flatnonzero((coef > 0.0) & ~data.labels)
        user = np.searchsorted(data.indptr, negative, side="right") - 1
        counts = np.bincount(user, minlength=data.n_users)
        self._make_room(np.minimum(np.maximum(self.active.room, 2 * counts), data.n_neg))
        kernels.load_average(
            self.matrix,
            self.primal,
            self.lists,
            self.active,
            self.atoms,
            negative,
            coef,
            counts,
        )
        self._move_to(-self._pulled(self.duals.coef) / self.alpha)


def gram_bytes(risk: ListRisk) -> int:
    """About how much the Gram matrices of the active negatives of all users may take."""
    data = risk.data
    room = np.minimum(_ACTIVE * risk.surrogate.negatives_counted(data.n_neg), data.n_neg)
    return int(8 * np.sum(room.astype(np.float64) ** 2))
