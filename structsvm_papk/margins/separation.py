"""The convex questions: strong and beta margins, by linear and quadratic programmes.

With r = 1 (strong) or r = beta, per user,

    f(w) = min over users of ( mean of the r smallest w.p  -  largest w.q )

is concave. A w with ``f(w) > 0`` separates; otherwise weights lambda, mu >= 0 with
``lambda_i <= s_u/r``, ``sum lambda = sum mu = s_u`` per user and
``v = sum lambda_i p_i - sum mu_j q_j = 0`` prove that there is none, since for every w

    (sum_u s_u) f(w) <= v.w.                                                       (*)

Users and their rows enter the programmes only when the current solution violates them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import optimize, sparse

from structsvm_papk._types import Array, Matrix
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.margins.proofs import (
    ExactLists,
    HullProof,
    System,
    Weights,
    dense_rows,
    fill_to_share,
    fractions,
    solve_near,
)

MAX_ROUNDS = 500
LARGEST_SYSTEM = 300  # equations solved in rational arithmetic: half a minute or so
# that enter in one round: users, positives and negatives of each
USERS = 20
ROWS = 8
LARGEST_SECOND_CHANCE = 3000  # rows in dense matrices


@dataclass(frozen=True)
class Outcome:
    """Yes with a w, no with a proof, or undecided.

    Of a separation, `margin` is ``f(w)`` exactly, and `proof` bounds f above (with v = 0: by 0). In
    place of w may be a `choice` of positives that some w lifts.
    """

    answer: str
    w: Any = None
    margin: Fraction = Fraction(0)
    proof: Any = None
    choice: Array | None = None


class Multipliers(NamedTuple):
    """A model and the multipliers of its rows, of which lambda, mu and s_u are made; or None."""

    model: HullProgramme
    values: Array | None


class _Optimum(NamedTuple):
    """An optimum of the linear programme."""

    w: Array
    margin: float
    multipliers: Multipliers


class _Weights(NamedTuple):
    """Multipliers by what they belong to: lambda, mu, and s_u of all users."""

    pos: Array
    neg: Array
    shares: Array


class Separator:
    """Solve the two programmes on a working set of rows that grows, over the `chosen` positives."""

    def __init__(
        self,
        data: RankingData,
        n_lowest: Array,
        chosen: Array | None = None,
        deadline: float = np.inf,
    ) -> None:
        self.data = data
        self.n_lowest = np.asarray(n_lowest)
        self.deadline = deadline
        self.chosen = chosen
        usable = data.labels if chosen is None else data.labels & chosen
        # list positions of each user
        self._pos = positions_of_users(usable, data.indptr)
        self._neg = positions_of_users(~data.labels, data.indptr)
        self._user = data.user_of_position
        self.scale = _column_scale(data.X)
        self._in_work = np.zeros(len(data.rows), dtype=bool)
        self._grow(np.zeros(data.n_features))

    def solve(self, largest_margin: bool = True) -> Outcome:
        """Decide; with `largest_margin`, go on to the largest margin over the l2 ball."""
        for _ in range(MAX_ROUNDS):
            optimum: Any = None
            if time.monotonic() <= self.deadline:
                optimum = self._linear_programme()
            if optimum is None:
                return Outcome("undecided")
            if optimum.margin <= 1e-9:
                return self._infeasible(optimum.multipliers)
            if not self._grow(optimum.w):
                break
        proof = self._rounded_proof(optimum.multipliers)
        exact = self.exact_margin(optimum.w)
        if exact <= 0:
            return Outcome("undecided", proof=proof)
        separation = Outcome("yes", optimum.w, exact, proof)
        if not largest_margin:
            return separation
        return self._quadratic(separation)

    def _linear_programme(self) -> Any:
        """``max m`` over the working set, ``|w_j| <= 1`` in scaled features."""
        model = self._model()
        cost = np.zeros(model.n_variables)
        cost[model.margin] = -1.0
        x, duals = linear_programme(cost, model.matrix, model.bounds, self.deadline)
        if x is None:
            return None
        return _Optimum(
            w=x[: self.data.n_features] * self.scale,
            margin=x[model.margin],
            multipliers=Multipliers(model, duals),
        )

    def _model(self) -> HullProgramme:
        return HullProgramme(self, np.flatnonzero(self._in_work))

    def whole_model(self) -> HullProgramme:
        """Return the model of all rows, for questions that working sets do not answer."""
        self._in_work[:] = True
        return self._model()

    def _grow(self, w: Array) -> bool:
        """Add extreme rows of the users that w violates most; False when there are none."""
        scores = self.data.scores(w)
        level = np.inf  # the margin by the rows in work: none is violated that has as much
        margins = []
        for pos, neg, r in zip(self._pos, self._neg, self.n_lowest, strict=True):
            margins.append(_margin(scores[pos], scores[neg], r))
            pos_in_work = pos[self._in_work[pos]]
            neg_in_work = neg[self._in_work[neg]]
            if len(pos_in_work):
                level = min(level, _margin(scores[pos_in_work], scores[neg_in_work], r))
        if np.isfinite(level):
            level -= 1e-10 * (1 + abs(level))
        before = self._in_work.sum()
        for u in np.argsort(margins)[:USERS]:
            if margins[u] < level:
                pos = self._pos[u]
                neg = self._neg[u]
                self._in_work[pos[_lowest(scores[pos], max(ROWS, self.n_lowest[u]))]] = True
                self._in_work[neg[_lowest(-scores[neg], ROWS)]] = True
        return self._in_work.sum() > before

    def _quadratic(self, separation: Outcome) -> Outcome:
        """``min |w|^2/2`` with margin 1 on the working set: the largest margin over the l2 ball.

        In units of the heaviest column first, then of the best w: columns may be far apart.
        """
        target = float(separation.margin)
        best = self._rounds(separation, target, self.scale.min())
        return self._rounds(best, target, target / normalised(best.margin, best.w))

    def _rounds(self, best: Outcome, target: float, unit: float) -> Outcome:
        for _ in range(MAX_ROUNDS):
            if time.monotonic() > self.deadline:
                return best
            w, multipliers = self._quadratic_programme(target, unit)
            if w is None:
                return best
            exact = self.exact_margin(w)
            if exact > 0 and normalised(exact, w) >= normalised(best.margin, best.w):
                proof = self._rounded_proof(multipliers) or best.proof
                best = Outcome("yes", w, exact, proof)
            if not self._grow(w):
                return best
        return best

    def _quadratic_programme(
        self, target: float, unit: float
    ) -> tuple[Array | None, Multipliers | None]:
        import cvxpy as cp

        model = self._model()
        x = cp.Variable(model.n_variables)
        w = cp.multiply(self.scale / unit, x[: self.data.n_features])
        rows = model.matrix @ x <= 0
        slack = np.arange(model.slack_start, model.n_variables)
        rules = [rows, x[model.margin] == target]
        closed = model.bounds[slack, 1] == 0
        if not closed.all():
            rules.append(x[slack[~closed]] >= 0)
        if closed.any():
            rules.append(x[slack[closed]] == 0)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2), rules)
        try:
            seconds = seconds_to(self.deadline)
            problem.solve(solver=cp.CLARABEL, time_limit=seconds)
        except cp.SolverError:
            return None, None
        if problem.status not in ("optimal", "optimal_inaccurate"):
            return None, None
        solution: Any = x.value
        value = solution[: self.data.n_features] * self.scale
        return value, Multipliers(model, rows.dual_value)

    def exact_margin(self, w: Weights) -> Fraction:
        """``f(w)``, exactly."""
        lists = ExactLists(self.data, w)
        users = zip(self._pos, self._neg, self.n_lowest.tolist(), strict=True)
        return min(lists.margin(pos, neg, r) for pos, neg, r in users)

    def _infeasible(self, multipliers: Multipliers) -> Outcome:
        """Turn the programme's dual into an exact proof that no w separates."""
        proof = self.exact_proof(multipliers)
        if proof is None:
            proof = self.exact_proof(self._interior_multipliers())
        if proof is not None and not any(proof.vector(self.data)):
            return Outcome("no", proof=proof)
        return Outcome("undecided", proof=self._rounded_proof(multipliers))

    def exact_proof(self, multipliers: Multipliers | None) -> HullProof | None:
        """Weights with v = 0 exactly, near the float ones; None when that fails.

        Unknowns: the free lambda_i, the mu_j and ``c_u = s_u/r_u``; weights at their cap are c_u.
        """
        if multipliers is None or multipliers.values is None:
            return None
        # 1. the users and rows whose weights are more than rounding of the float ones
        model = multipliers.model
        pos, neg, shares = model.split(multipliers.values)
        has_share = shares > 1e-9 * shares.max(initial=0.0)
        users = np.flatnonzero(has_share)
        if not len(users) or self.data.n_features + 2 * len(users) > LARGEST_SYSTEM:
            return None
        rows = np.concatenate([model.pos, model.neg])
        weights = np.concatenate([pos, neg])
        is_used = (weights > 1e-10 * shares.max()) & has_share[self._user[rows]]
        rows = rows[is_used]
        weights = weights[is_used]
        # 2. which positives are at their cap: an unknown fewer each, and an inequality that holds
        is_pos = self.data.labels[rows]
        r = self.n_lowest
        cap = shares / r
        user = self._user[rows]
        place = np.searchsorted(users, user)
        at_cap = is_pos & (r[user] > 1) & (weights > cap[user] * (1 - 1e-7))
        # 3. an exact solution near the float one, which may break inequalities: `is_valid` looks
        columns = self._proof_columns(rows, at_cap, place, r[users])
        target = [Fraction(0)] * (len(columns[0]) - 1) + [Fraction(1)]
        near = np.concatenate([weights[~at_cap], cap[users]]) / shares[users].sum()
        x = solve_near(columns, target, near)
        if x is None:
            return None
        exact = np.empty(len(rows), dtype=object)
        n_free = len(x) - len(users)
        exact[~at_cap] = x[:n_free]
        exact[at_cap] = [x[n_free + p] for p in place[at_cap]]
        row_of_X = self.data.rows[rows]
        proof = HullProof(
            pos_weights=dict(zip(row_of_X[is_pos].tolist(), exact[is_pos], strict=True)),
            neg_weights=dict(zip(row_of_X[~is_pos].tolist(), exact[~is_pos], strict=True)),
            n_lowest=tuple(self.n_lowest.tolist()),
        )
        return proof if proof.is_valid(self.data, self.chosen) else None

    def _proof_columns(self, rows: Array, at_cap: Array, place: Array, r: Array) -> System:
        """Columns of the equations: v = 0; per user both sums equal s_u; all s_u add to 1.

        Of the rows below their cap, then of the caps of the users; `place`: the user of each row.
        """
        is_pos = self.data.labels[rows]
        d = self.data.n_features
        n_users = len(r)
        n_equations = d + 2 * n_users + 1
        values = dense_rows(self.data.X, self.data.rows[rows]) * self.scale
        of_rows = np.zeros((len(rows), n_equations))
        of_rows[:, :d] = np.where(is_pos, 1.0, -1.0)[:, None] * values
        of_rows[np.arange(len(rows)), d + place + n_users * ~is_pos] = 1.0
        # c_u stands for s_u = r_u c_u
        users = np.arange(n_users)
        of_caps = np.zeros((n_users, n_equations))
        of_caps[users, d + users] = -r
        of_caps[users, d + n_users + users] = -r
        of_caps[:, -1] = r
        columns = [fractions(row) for row in of_rows]
        caps = [fractions(row) for row in of_caps]
        # the weight of a row at its cap is c_u as well
        for i in np.flatnonzero(at_cap):
            caps[place[i]] = [a + b for a, b in zip(caps[place[i]], columns[i], strict=True)]
        return [columns[i] for i in np.flatnonzero(~at_cap)] + caps

    def _rounded_proof(self, multipliers: Multipliers | None) -> HullProof | None:
        """Make float weights satisfy their constraints exactly; v is then small, not zero."""
        if multipliers is None or multipliers.values is None:
            return None
        model = multipliers.model
        weights_pos, weights_neg, _ = model.split(multipliers.values)
        total = weights_neg.sum()
        if not total > 0:
            return None
        pos: dict[int, Fraction] = {}
        neg: dict[int, Fraction] = {}
        norm = Fraction(0)
        is_used = weights_neg > 1e-13 * total
        for u in np.unique(self._user[model.neg[is_used]]):
            # the negatives keep their weights, which say the user's share; the positives follow
            of_neg = np.flatnonzero(is_used & (self._user[model.neg] == u))
            of_pos = np.flatnonzero(self._user[model.pos] == u)
            exact_neg = fractions(weights_neg[of_neg])
            share = sum(exact_neg, Fraction(0))
            exact_pos = fill_to_share(weights_pos[of_pos], share, int(self.n_lowest[u]))
            if exact_pos is None:
                return None
            pos |= zip(self.data.rows[model.pos[of_pos]].tolist(), exact_pos, strict=True)
            neg |= zip(self.data.rows[model.neg[of_neg]].tolist(), exact_neg, strict=True)
            norm += share
        return HullProof(
            pos_weights={row: weight / norm for row, weight in pos.items() if weight},
            neg_weights={row: weight / norm for row, weight in neg.items() if weight},
            n_lowest=tuple(self.n_lowest.tolist()),
        )

    def _interior_multipliers(self) -> Multipliers | None:
        """Weights far from their bounds: a second chance when a vertex is too degenerate."""
        rng = np.random.default_rng(0)
        size = 4 * self.data.n_features
        for pos, neg in zip(self._pos, self._neg, strict=True):
            for positions in (pos, neg):
                if self._in_work[positions].any():
                    self._in_work[rng.permutation(positions)[:size]] = True
        if self._in_work.sum() > LARGEST_SECOND_CHANCE:
            return None
        model = self._model()
        return Multipliers(model, model.interior_weights(self.deadline))


class HullProgramme:
    """Sparse matrix of ``z - h_i <= w.p_i``, ``t + m + sum h/r <= z``, ``w.q_j <= t`` per user.

    Then ``z - sum h/r`` is the mean of the r smallest scores at best. Variables: w (d), m, t and z
    (working users), h (working positives).
    """

    def __init__(self, separator: Separator, positions: Array) -> None:
        data = separator.data
        self._users, user = np.unique(data.user_of_position[positions], return_inverse=True)
        self._n_all_users = data.n_users
        self.n_lowest = separator.n_lowest[self._users]
        is_pos = data.labels[positions]
        self.pos = positions[is_pos]
        self.neg = positions[~is_pos]
        self.x_pos = dense_rows(data.X, data.rows[self.pos]) * separator.scale
        self.x_neg = dense_rows(data.X, data.rows[self.neg]) * separator.scale
        n_features = data.n_features
        n_users = len(self._users)
        n_pos = len(self.pos)
        self._n_users = n_users
        self._n_pos = n_pos
        self.margin = n_features  # m stands behind w
        self.slack_start = n_features + 1 + 2 * n_users
        self.n_variables = self.slack_start + n_pos
        self.pick_pos = _indicators(user[is_pos], n_users)
        self.pick_neg = _indicators(user[~is_pos], n_users)
        spread = sparse.csr_array((1.0 / self.n_lowest)[:, None] * self.pick_pos.T)
        eye = sparse.eye_array(n_users)
        slack = -sparse.eye_array(n_pos)
        self.matrix = sparse.block_array(
            [
                [sparse.csr_array(-self.x_pos), None, None, self.pick_pos, slack],
                [None, sparse.csr_array(np.ones((n_users, 1))), eye, -eye, spread],
                [sparse.csr_array(self.x_neg), None, -self.pick_neg, None, None],
            ],
            format="csr",
        )
        ones = np.ones(n_features)
        free = np.full(2 * n_users, np.inf)
        # with r = 1 the lowest score itself counts: slack only where r is more
        most = np.where(self.n_lowest[user[is_pos]] == 1, 0.0, np.inf)
        low = np.concatenate([-ones, [0.0], -free, np.zeros(n_pos)])
        high = np.concatenate([ones, [np.inf], free, most])
        self.bounds = np.stack([low, high], axis=1)

    def split(self, duals: Array) -> _Weights:
        """Weights of the positives, of the negatives, and shares of the users, clipped at zero."""
        duals = np.maximum(duals, 0.0)
        pos, of_users, neg = np.split(duals, [self._n_pos, self._n_pos + self._n_users])
        shares = np.zeros(self._n_all_users)
        shares[self._users] = of_users
        return _Weights(pos=pos, neg=neg, shares=shares)

    def interior_weights(self, deadline: float) -> Array | None:
        """Weights with v = 0 as far from their bounds as can be; None on failure or out of time.

        Variables: the multipliers, and their distance from the bounds, which is made large.
        """
        matrix = self.matrix.toarray()
        n_rows = len(matrix)
        of_users = np.s_[self._n_pos : self._n_pos + self._n_users]
        # the columns of w, m, t and z make equations: v = 0, shares add to 1, sums equal shares
        equations = matrix[:, : self.slack_start].T
        target = np.eye(len(equations))[self.margin]
        # columns of slack make lambda_i <= s_u/r; with r = 1 the sums imply it, without room
        caps = -matrix[:, self.slack_start :].T
        has_room = caps.sum(axis=1, keepdims=True) > 0
        floors = -np.delete(np.eye(n_rows), of_users, axis=0)
        limits = np.block([[caps, has_room], [floors, np.ones((len(floors), 1))]])
        x = optimize.linprog(
            -np.eye(n_rows + 1)[-1],
            A_ub=limits,
            b_ub=np.zeros(len(limits)),
            A_eq=np.pad(equations, ((0, 0), (0, 1))),
            b_eq=target,
            method="highs-ipm",
            options={"time_limit": seconds_to(deadline)},
        ).x
        return None if x is None else x[:-1]


def positions_of_users(mask: Array, indptr: Array) -> list[Array]:
    """Where the mask is True, user by user."""
    return [np.flatnonzero(mask[a:b]) + a for a, b in pairwise(indptr)]


def _indicators(user: Array, n_users: int) -> sparse.csr_array:
    """Of each row, a one in the column of its user."""
    entries = (np.ones(user.size), (np.arange(user.size), user))
    return sparse.csr_array(entries, (user.size, n_users))


def linear_programme(
    cost: Array, matrix: Matrix, bounds: Array, deadline: float
) -> tuple[Array | None, Array | None]:
    """``min cost.x`` with ``matrix x <= 0``: x and the multipliers; None without an optimum."""
    options = {"time_limit": seconds_to(deadline)}
    zeros = np.zeros(matrix.shape[0])
    result = optimize.linprog(cost, matrix, zeros, bounds=bounds, options=options)
    if result.status != 0:
        return None, None
    return result.x, -result.ineqlin.marginals


def seconds_to(deadline: float) -> float:
    """What is left of the time, as solvers take it."""
    return float(np.clip(deadline - time.monotonic(), 0.1, 1e6))


def _lowest(values: Array, n: int) -> Array:
    """Places of the n lowest values; all if there are no more."""
    if n >= len(values):
        return np.arange(len(values))
    return np.argpartition(values, n - 1)[:n]


def _margin(pos: Array, neg: Array, r: int) -> float:
    """Mean of the r lowest scores of positives less the highest of negatives."""
    return pos[_lowest(pos, r)].mean() - neg.max()


def normalised(margin: Fraction | float, w: Array) -> float:
    """Margin over the l2 norm of w."""
    return float(margin) / float(np.linalg.norm(w))


def largest_in_columns(X: Matrix) -> Array:
    """Largest absolute value of each column, shape (n_features,)."""
    size = abs(X).max(axis=0)
    return np.asarray(size.toarray() if hasattr(size, "toarray") else size, dtype=float).ravel()


def _column_scale(X: Matrix) -> Array:
    """Powers of two that bring the columns to size about one (exact in floats)."""
    size = largest_in_columns(X)
    return np.exp2(-np.rint(np.log2(np.where(size > 0, size, 1.0))))
