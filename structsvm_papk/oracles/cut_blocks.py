"""Users as blocks of the dual whose polytopes have too many corners: cuts stand for them.

A user's dual variables weigh cuts of its loss. They are made on the list of its active rows: all
its positives and some of its negatives, at least as many as count. On fewer negatives a loss is
nowhere larger, so a cut of the restricted list is one of the whole. As no loss is negative, the
weights add up to at most 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from structsvm_papk._rounding import EPS, error_of_sum
from structsvm_papk._types import Array
from structsvm_papk.oracles import _dual_kernels as kernels
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.oracles.user_blocks import ACCURACY, CANDIDATES, Duals, UserBlocks

_ROUNDS = 4  # cuts of a visit, at most
_FEWEST = 32  # cuts that a user may have: where they have to be merged, progress is slow
_MOST = 256
_BYTES = 1 << 29  # for all users' cuts and their inner products, about
_ROWS = 16  # active rows for each negative that counts, before idle ones are dropped


class _User:
    """The cuts ``c_i . s + b_i`` of a user, over its active rows; positives come first."""

    def __init__(self, positions: Array, loss: Any) -> None:
        self.positions = positions
        self.loss = loss
        self.merged = 0
        self.coef = np.zeros((0, positions.size))
        self.gram = np.zeros((0, 0))
        self.intercepts = np.zeros(0)
        self.errors = np.zeros(0)
        self.theta = np.zeros(0)

    def take(self, kept: Array) -> None:
        """Keep these cuts only."""
        self.coef = self.coef[kept]
        self.gram = self.gram[np.ix_(kept, kept)]
        self.theta = self.theta[kept]
        self.intercepts = self.intercepts[kept]
        self.errors = self.errors[kept]

    def merge(self) -> None:
        """Make the two cuts of least weight their weighted mean.

        It is below the loss as they are, and with their whole weight it leaves the point where it
        was: only the directions in which the two differ are lost.
        """
        i, j = np.argsort(self.theta, kind="stable")[:2]
        total = self.theta[i] + self.theta[j]
        mix = np.eye(self.theta.size)  # the other cuts stay as they are
        mix[i, i] = self.theta[i] / total
        mix[i, j] = self.theta[j] / total
        sizes = mix @ np.abs(self.intercepts)
        self.errors = (
            mix @ self.errors + 4.0 * EPS * sizes
        )  # the two shares and the sum are rounded
        self.intercepts = mix @ self.intercepts
        self.coef = mix @ self.coef
        self.gram = mix @ self.gram @ mix.T
        self.theta[i] = total
        self.theta[j] = 0.0
        self.merged += 1
        self.take(np.delete(np.arange(self.theta.size), j))

    def make_room(self, most: int) -> None:
        """Have less cuts than `most`."""
        if self.theta.size >= most:
            self.take(np.flatnonzero(self.theta))
        if self.theta.size >= most:
            self.merge()

    def add(self, coef: Array, intercept: float, error: float, products: Array) -> None:
        """Add a cut of weight 0; `products` are the active rows times ``X' coef``."""
        self.coef = np.vstack([self.coef, coef])
        n = self.theta.size
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self.gram
        gram[-1] = self.coef @ products
        gram[:, -1] = gram[-1]
        self.gram = gram
        self.intercepts = np.append(self.intercepts, intercept)
        self.errors = np.append(self.errors, error)
        self.theta = np.append(self.theta, 0.0)


class CutBlocks(UserBlocks):
    """Blocks of any convex surrogate of ours, and of the majorants.

    A user has at most `most_cuts` cuts, by default as many as fit in half a gigabyte, and up to
    `idle_rows` active rows beside 16 for each negative that counts, before idle ones are dropped.
    """

    def __init__(
        self,
        risk: ListRisk,
        alpha: float,
        start: Any = None,
        *,
        most_cuts: int | None = None,
        idle_rows: int = 64,
    ) -> None:
        super().__init__(risk, alpha)
        data = risk.data
        if most_cuts is None:  # each has a row of coefficients and one of inner products
            most_cuts = int(np.clip(np.sqrt(_BYTES / (16 * data.n_users)), _FEWEST, _MOST))
        self._most_cuts = most_cuts
        self._idle_rows = idle_rows
        self._scores = np.zeros(data.rows.size)
        self._coef = np.zeros(data.rows.size)
        self._values = np.empty(data.n_users)
        self._terms = risk.score_terms
        self._roundings = 0
        if start is None:
            duals = Duals(
                risk=risk,
                coef=np.zeros(data.rows.size),
                intercepts=np.zeros(data.n_users),
                errors=np.zeros(data.n_users),
                roundings=0,
            )
        else:
            duals = self._started(start)
        self._begin_with(duals)

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Cuts of all users."""
        return sum(user.theta.size for user in self._users)

    def _begin_with(self, duals: Duals) -> None:
        """One cut of weight 1 each."""
        data = self.risk.data
        self._roundings = duals.roundings
        weighed = duals.coef != 0.0
        self._users = []
        for u in range(self.n_blocks):
            first, last = data.indptr[u : u + 2]
            middle = first + data.n_pos[u]
            m = self.lists.n_counted[u]
            negatives = middle + np.flatnonzero(weighed[middle:last])
            if negatives.size < m:  # the loss on a part of the list needs as many as count
                others = middle + np.flatnonzero(~weighed[middle:last])
                negatives = np.concatenate([negatives, others[: m - negatives.size]])
            positions = np.concatenate([np.arange(first, middle), negatives])
            user = _User(positions, self.risk.surrogate.restricted(positions, m))
            coef = duals.coef[positions]
            products = self._products(user, coef)
            user.add(coef, duals.intercepts[u], duals.errors[u], products)
            user.theta[0] = 1.0
            self._users.append(user)
        self._move_to(-self._pulled(duals.coef) / self.alpha)

    def _products(self, user: _User, coef: Array) -> Array:
        out = np.empty(coef.size)
        rows = self.lists.rows[user.positions]
        kernels.products(self.matrix, self.primal, rows, coef, out)
        return out

    def _visit(self, order: Array, full: bool) -> int:
        data = self.risk.data
        visited = 0
        for u in order.tolist():
            user = self._users[u]
            if full:
                first = data.indptr[u]
                last = data.indptr[u + 1]
                out = self._scores[first:last]
                kernels.scores(self.matrix, self.lists.rows[first:last], self.primal.w, out)
                self.risk.surrogate.evaluate(
                    self._scores, data.indptr, data.n_pos, u, u + 1, self._values, self._coef
                )
                self._activate(u, user)
                scores = self._scores[user.positions]
                point = user.theta @ (user.coef @ scores + user.intercepts)
                self._gaps[u] = max(self._values[u] - point, 0.0)
                visited += out.size
            else:
                scores = np.empty(user.positions.size)
                kernels.scores(self.matrix, self.lists.rows[user.positions], self.primal.w, scores)
                visited += scores.size
            self._gains[u], n_scored = self._solve(u, user, scores)
            visited += n_scored
        return visited

    def _activate(self, u: int, user: _User) -> None:
        """Add the negatives that the subgradient has, and the highest that may come to have one."""
        data = self.risk.data
        m = int(self.lists.n_counted[u])
        first = data.indptr[u]
        last = data.indptr[u + 1]
        middle = first + data.n_pos[u]
        negatives = self._scores[middle:last]
        wanted = self._coef[middle:last] != 0.0
        n_more = min(CANDIDATES * m, negatives.size)
        highest = np.argpartition(negatives, negatives.size - n_more)[negatives.size - n_more :]
        lowest = self._scores[first:middle].min() - 1.0  # farther down no pair costs anything
        wanted[highest[negatives[highest] > lowest]] = True
        wanted[user.positions[data.n_pos[u] :] - middle] = False
        new = middle + np.flatnonzero(wanted)
        if not new.size:
            return
        if user.positions.size - data.n_pos[u] > _ROWS * m + self._idle_rows:
            self._drop_idle(u, user)
        user.positions = np.concatenate([user.positions, new])
        user.coef = np.pad(user.coef, ((0, 0), (0, new.size)))
        user.loss = self.risk.surrogate.restricted(user.positions, m)

    def _drop_idle(self, u: int, user: _User) -> None:
        """Drop cuts without weight, then the negatives that no cut has, but for m of them."""
        n_pos = self.risk.data.n_pos[u]
        m = self.lists.n_counted[u]
        if np.count_nonzero(user.theta):
            user.take(np.flatnonzero(user.theta))
        keep = (user.coef != 0.0).any(axis=0)
        keep[:n_pos] = True
        missing = int(m - (np.count_nonzero(keep) - n_pos))
        keep[np.flatnonzero(~keep)[: max(missing, 0)]] = True
        user.positions = user.positions[keep]
        user.coef = user.coef[:, keep]

    def _solve(self, u: int, user: _User, scores: Array) -> tuple[float, int]:
        """Maximise the dual over one block, cut after cut; the gain and the rows scored."""
        step = self.lists.steps[u]
        rows = self.lists.rows[user.positions]
        bounds = np.array([0, rows.size])
        n_pos = self.risk.data.n_pos[u : u + 1]
        value = np.empty(1)
        coef = np.empty(rows.size)
        tol = ACCURACY * self._gaps[u]
        gain = 0.0
        visited = 0
        for _ in range(_ROUNDS):
            # 1. the loss of the active rows at w; enough where the cuts nearly reach it
            user.loss.evaluate(scores, bounds, n_pos, 0, 1, value, coef)
            if value[0] - user.theta @ (user.coef @ scores + user.intercepts) <= tol:
                break
            # 2. its cut there: the intercept is a difference, which rounding may have put off
            terms = coef * scores
            size = abs(value[0]) + np.abs(terms).sum() + np.abs(coef).sum()
            error = error_of_sum(self._terms[u], size)
            user.make_room(self._most_cuts)
            user.add(coef, value[0] - terms.sum(), error, self._products(user, coef))
            # 3. the best weights of the cuts; what they lack to 1 is that of the cut 0
            before = user.theta.copy()
            heights = user.coef @ scores + user.intercepts
            slack = max(1.0 - before.sum(), 0.0)
            rise = kernels.pairwise_ascent(
                user.theta, heights, user.gram, before.size, step, 1.0, slack, 0.1 * tol
            )
            gain += rise
            # 4. the w that belongs to them, and the scores there
            change = -step * ((user.theta - before) @ user.coef)
            kernels.move(self.matrix, self.primal, rows, change)
            kernels.scores(self.matrix, rows, self.primal.w, scores)
            visited += scores.size
            if rise <= 0.0:
                break
        return gain, visited

    @property
    def duals(self) -> Duals:  # noqa: D102
        coef = np.zeros(self.risk.data.rows.size)
        intercepts = np.zeros(self.n_blocks)
        errors = np.zeros(self.n_blocks)
        most = 0
        for u, user in enumerate(self._users):
            n = user.theta.size
            theta = kernels.inside(user.theta, 1.0)
            coef[user.positions] = theta @ user.coef
            intercepts[u] = theta @ user.intercepts
            sizes = user.errors + error_of_sum(n, np.abs(user.intercepts))
            errors[u] = theta @ sizes
            most = max(most, n + 4 * user.merged)
        return Duals(self.risk, coef, intercepts, errors, self._roundings + most)
