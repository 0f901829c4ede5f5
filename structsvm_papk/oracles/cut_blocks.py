"""Users as blocks of the dual whose polytopes have too many corners: cuts stand for them.

A user's dual variables weigh cuts of its loss. They are made on the list of its active rows: all
its positives and some of its negatives, at least as many as count. On fewer negatives a loss is
nowhere larger, so a cut of the restricted list is one of the whole. As no loss is negative, the
weights add up to at most 1.
"""

from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.oracles import _dual_kernels as kernels
from structsvm_papk.oracles.user_blocks import MORE, SHARE, Duals, UserBlocks
from structsvm_papk.solvers.rounding import EPS, error_of_sum

_ROUNDS = 4  # cuts of a visit, at most
_FEWEST, _MOST = 32, 256  # cuts of a user: where they have to be merged, progress is slow
_BYTES = 1 << 29  # for all users' cuts and their inner products, about
_IDLE = 64  # active rows beyond 16 for each negative that counts, before idle ones are dropped


class _User:
    """The cuts ``c_i . s + b_i`` of a user, over its active rows; positives come first.

    Attributes change together, no call between them: an interrupt finds all of a cut or nothing.
    """

    def __init__(self, positions: Array, loss: Any) -> None:
        self.positions, self.loss, self.merged = positions, loss, 0
        self.coef, self.gram = np.zeros((0, positions.size)), np.zeros((0, 0))
        self.intercepts = self.errors = self.theta = np.zeros(0)

    def take(self, kept: Array) -> None:
        """Keep these cuts only."""
        coef, gram, theta = self.coef[kept], self.gram[np.ix_(kept, kept)], self.theta[kept]
        intercepts, errors = self.intercepts[kept], self.errors[kept]
        self.coef, self.gram, self.theta = coef, gram, theta
        self.intercepts, self.errors = intercepts, errors

    def merge(self) -> None:
        """Make the two cuts of least weight their weighted mean."""
        i, j = np.argsort(self.theta, kind="stable")[:2]
        total = self.theta[i] + self.theta[j]
        mix = np.eye(self.theta.size)
        mix[i, [i, j]] = self.theta[i] / total, self.theta[j] / total
        sizes = mix @ np.abs(self.intercepts)
        self.errors = mix @ self.errors + 4.0 * EPS * sizes
        self.intercepts, self.coef = mix @ self.intercepts, mix @ self.coef
        self.gram = mix @ self.gram @ mix.T
        self.theta[[i, j]] = total, 0.0
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
        coefs, gram = np.vstack([self.coef, coef]), np.pad(self.gram, (0, 1))
        gram[-1] = gram[:, -1] = coefs @ products
        intercepts, errors = np.append(self.intercepts, intercept), np.append(self.errors, error)
        theta = np.append(self.theta, 0.0)
        self.coef, self.gram, self.theta = coefs, gram, theta
        self.intercepts, self.errors = intercepts, errors


class CutBlocks(UserBlocks):
    """Blocks of any convex surrogate of ours, and of the majorants."""

    def __init__(self, risk: Any, alpha: float, start: Any = None) -> None:
        super().__init__(risk, alpha)
        data = risk.data
        self._scores, self._coef = np.zeros((2, data.rows.size))
        self._values, self._terms = np.empty(data.n_users), risk.score_terms()
        self._roundings = 0
        self._most = int(np.clip(np.sqrt(_BYTES / (16 * data.n_users)), _FEWEST, _MOST))
        nothing = np.zeros((2, data.n_users))
        zero = Duals(risk, np.zeros(data.rows.size), nothing[0], nothing[1], 0)
        self._begin_with(zero if start is None else self._started(start))

    @property
    def n_atoms(self) -> int:  # type: ignore[override]
        """Cuts of all users."""
        return sum(user.theta.size for user in self._users)

    def _begin_with(self, duals: Duals) -> None:
        """One cut of weight 1 each."""
        data, self._roundings = self.risk.data, duals.roundings
        held = duals.coef != 0.0
        self._users = []
        for u in range(self.n_blocks):
            first, last = data.indptr[u : u + 2]
            middle, m = first + data.n_pos[u], self.lists.counted[u]
            own = middle + np.flatnonzero(held[middle:last])
            if own.size < m:
                others = middle + np.flatnonzero(~held[middle:last])
                own = np.concatenate([own, others[: m - own.size]])
            positions = np.concatenate([np.arange(first, middle), own])
            user = _User(positions, self.risk.surrogate.restricted(positions, m))
            coef = duals.coef[positions]
            products = self._products(user, coef)
            user.add(coef, duals.intercepts[u], duals.errors[u], products)
            user.theta[0] = 1.0
            self._users.append(user)
        self._move_to(-self._pulled(duals.coef) / self.alpha)

    def _products(self, user, coef):
        out = np.empty(coef.size)
        rows = self.lists.rows[user.positions]
        kernels.products(self.matrix, self.primal, rows, coef, out)
        return out

    def _visit(self, order: Array, full: bool) -> int:
        visited = 0
        for u in order.tolist():
            user, data = self._users[u], self.risk.data
            if full:
                first, last = data.indptr[u], data.indptr[u + 1]
                out = self._scores[first:last]
                kernels.scores(self.matrix, self.lists.rows[first:last], self.primal.w, out)
                self.risk.surrogate.evaluate(
                    self._scores, data.indptr, data.n_pos, u, u + 1, self._values, self._coef
                )
                self._activate(u, user)
                scores = self._scores[user.positions]
                held = user.theta @ (user.coef @ scores + user.intercepts)
                self._gaps[u] = max(self._values[u] - held, 0.0)
                visited += out.size
            else:
                scores = np.empty(user.positions.size)
                kernels.scores(self.matrix, self.lists.rows[user.positions], self.primal.w, scores)
                visited += scores.size
            self._gains[u], more = self._solve(u, user, scores)
            visited += more
        return visited

    def _activate(self, u, user):
        """Add the negatives that the subgradient has, and the highest that may come to have one."""
        data, m = self.risk.data, int(self.lists.counted[u])
        first, last = data.indptr[u], data.indptr[u + 1]
        middle = first + data.n_pos[u]
        negatives = self._scores[middle:last]
        wanted = self._coef[middle:last] != 0.0
        n_more = min(MORE * m, negatives.size)
        highest = np.argpartition(negatives, negatives.size - n_more)[negatives.size - n_more :]
        lowest = self._scores[first:middle].min() - 1.0
        wanted[highest[negatives[highest] > lowest]] = True
        wanted[user.positions[data.n_pos[u] :] - middle] = False
        new = middle + np.flatnonzero(wanted)
        if not new.size:
            return
        if user.positions.size - data.n_pos[u] > 16 * m + _IDLE:
            self._drop_idle(u, user)
        positions = np.concatenate([user.positions, new])
        coef = np.pad(user.coef, ((0, 0), (0, new.size)))
        loss = self.risk.surrogate.restricted(positions, m)
        user.positions, user.coef, user.loss = positions, coef, loss

    def _drop_idle(self, u, user):
        """Drop cuts without weight, then the negatives that no cut has, but for m of them."""
        n_pos, m = self.risk.data.n_pos[u], self.lists.counted[u]
        if np.count_nonzero(user.theta):
            user.take(np.flatnonzero(user.theta))
        keep = (user.coef != 0.0).any(axis=0)
        keep[:n_pos] = True
        missing = int(m - (np.count_nonzero(keep) - n_pos))
        keep[np.flatnonzero(~keep)[: max(missing, 0)]] = True
        user.positions, user.coef = user.positions[keep], user.coef[:, keep]

    def _solve(self, u, user, scores):
        """Maximise the dual over one block, cut after cut; the gain and the rows scored."""
        step, rows = self.lists.steps[u], self.lists.rows[user.positions]
        bounds, n_pos = np.array([0, rows.size]), self.risk.data.n_pos[u : u + 1]
        value, coef = np.empty(1), np.empty(rows.size)
        tol, gain, visited = SHARE * self._gaps[u], 0.0, 0
        for _ in range(_ROUNDS):
            user.loss.evaluate(scores, bounds, n_pos, 0, 1, value, coef)
            if value[0] - user.theta @ (user.coef @ scores + user.intercepts) <= tol:
                break
            terms = coef * scores
            size = abs(value[0]) + np.abs(terms).sum() + np.abs(coef).sum()
            error = error_of_sum(self._terms[u], size)
            user.make_room(self._most)
            user.add(coef, value[0] - terms.sum(), error, self._products(user, coef))
            before, heights = user.theta.copy(), user.coef @ scores + user.intercepts
            slack = max(1.0 - before.sum(), 0.0)
            rise = kernels.pairwise_ascent(
                user.theta, heights, user.gram, before.size, step, 1.0, slack, 0.1 * tol
            )
            gain += rise
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
        intercepts, errors = np.zeros((2, self.n_blocks))
        most = 0
        for u, user in enumerate(self._users):
            theta, n = kernels.inside(user.theta, 1.0), user.theta.size
            coef[user.positions] = theta @ user.coef
            intercepts[u] = theta @ user.intercepts
            sizes = user.errors + error_of_sum(n, np.abs(user.intercepts))
            errors[u] = theta @ sizes
            most = max(most, n + 4 * user.merged)
        return Duals(self.risk, coef, intercepts, errors, self._roundings + most)
