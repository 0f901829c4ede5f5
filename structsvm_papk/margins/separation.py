"""The convex questions: strong and beta margins, by linear and quadratic programmes.

With r = 1 (strong) or r = beta, per user,

    f(w) = min over users of ( mean of the r smallest w.p  -  largest w.q )

is concave. A w with ``f(w) > 0`` separates; otherwise weights lambda, mu >= 0 with
``lambda_i <= s_u/r``, ``sum lambda = sum mu = s_u`` per user and
``v = sum lambda_i p_i - sum mu_j q_j = 0`` prove that there is none, since for every w

    (sum_u s_u) f(w) <= v.w.                                                       (*)

Users and their rows enter the programmes only when the current solution violates them.
"""

import time
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, pairwise

import numpy as np
from scipy import optimize, sparse

from structsvm_papk.margins.proofs import (
    ExactLists,
    HullProof,
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
class Separation:
    """A w with ``f(w) = margin`` exactly, or a proof that bounds f above (with v = 0: by 0)."""

    answer: str
    w: np.ndarray | None
    margin: Fraction
    proof: HullProof | None


class Separator:
    """Solve the two programmes on a working set of rows that grows, over the `chosen` positives."""

    def __init__(self, data, n_lowest, chosen=None, deadline=np.inf):
        self.data = data
        self.n_lowest = np.asarray(n_lowest)
        self.deadline = deadline
        self.chosen = chosen
        usable = data.labels if chosen is None else data.labels & chosen
        self._pos = [np.flatnonzero(usable[a:b]) + a for a, b in pairwise(data.indptr)]
        self._neg = [np.flatnonzero(~data.labels[a:b]) + a for a, b in pairwise(data.indptr)]
        self._user = data.user_of_position
        self.scale = _column_scale(data.X)
        self._in_work = np.zeros(len(data.rows), dtype=bool)
        self._grow(np.zeros(data.n_features))

    def solve(self, largest_margin=True):
        """Decide; with `largest_margin`, go on to the largest margin over the l2 ball."""
        for _ in range(MAX_ROUNDS):
            in_time = time.monotonic() <= self.deadline
            w, margin, duals = self._linear_programme() if in_time else (None, None, None)
            if w is None:
                return Separation("undecided", None, Fraction(0), None)
            if margin <= 1e-9:
                return self._infeasible(duals)
            if not self._grow(w):
                break
        exact = self.exact_margin(w)
        if exact <= 0:
            return Separation("undecided", None, Fraction(0), self._rounded_proof(duals))
        found = Separation("yes", w, exact, self._rounded_proof(duals))
        return self._quadratic(found) if largest_margin else found

    def _linear_programme(self):
        """``max m`` over the working set, ``|w_j| <= 1`` in scaled features."""
        model = self._model()
        cost = np.zeros(model.n_variables)
        cost[model.margin] = -1.0
        x, duals = linear_programme(cost, model.matrix, model.bounds, self.deadline)
        if x is None:
            return None, None, None
        return x[: self.data.n_features] * self.scale, x[model.margin], (model, duals)

    def _model(self):
        return _Model(self, np.flatnonzero(self._in_work))

    def whole_model(self):
        """Return the model of all rows, for questions that working sets do not answer."""
        self._in_work[:] = True
        return self._model()

    def _grow(self, w):
        """Add extreme rows of the users that w violates most; False when there are none."""
        scores = self.data.scores(w)
        level = np.inf
        margins = []
        for pos, neg, r in zip(self._pos, self._neg, self.n_lowest, strict=True):
            margins.append(_margin(scores[pos], scores[neg], r))
            known = pos[self._in_work[pos]], neg[self._in_work[neg]]
            if len(known[0]):
                level = min(level, _margin(scores[known[0]], scores[known[1]], r))
        level -= 1e-10 * (1 + abs(level)) if np.isfinite(level) else 0.0
        before = self._in_work.sum()
        for u in np.argsort(margins)[:USERS]:
            if margins[u] < level:
                pos = self._pos[u]
                neg = self._neg[u]
                self._in_work[pos[_lowest(scores[pos], max(ROWS, self.n_lowest[u]))]] = True
                self._in_work[neg[_lowest(-scores[neg], ROWS)]] = True
        return self._in_work.sum() > before

    def _quadratic(self, found):
        """``min |w|^2/2`` with margin 1 on the working set: the largest margin over the l2 ball.

        In units of the heaviest column first, then of the best w: columns may be far apart.
        """
        best = self._rounds(found, float(found.margin), self.scale.min())
        target = found.margin
        return self._rounds(best, float(target), float(target) / normalised(best.margin, best.w))

    def _rounds(self, best, target, unit):
        for _ in range(MAX_ROUNDS):
            if time.monotonic() > self.deadline:
                return best
            w, duals = self._quadratic_programme(target, unit)
            if w is None:
                return best
            exact = self.exact_margin(w)
            if exact > 0 and normalised(exact, w) >= normalised(best.margin, best.w):
                best = Separation("yes", w, exact, self._rounded_proof(duals) or best.proof)
            if not self._grow(w):
                return best
        return best

    def _quadratic_programme(self, target, unit):
        import cvxpy as cp

        model = self._model()
        x = cp.Variable(model.n_variables)
        w = cp.multiply(self.scale / unit, x[: self.data.n_features])
        rows = model.matrix @ x <= 0
        slack = np.arange(model.slack_start, model.n_variables)
        rules = [rows, x[model.margin] == target]
        closed = model.bounds[slack, 1] == 0
        rules += [] if closed.all() else [x[slack[~closed]] >= 0]
        rules += [x[slack[closed]] == 0] if closed.any() else []
        problem = cp.Problem(cp.Minimize(cp.sum_squares(w) / 2), rules)
        try:
            problem.solve(solver=cp.CLARABEL, time_limit=seconds_to(self.deadline))
        except cp.SolverError:
            return None, None
        if problem.status not in ("optimal", "optimal_inaccurate"):
            return None, None
        return x.value[: self.data.n_features] * self.scale, (model, rows.dual_value)

    def exact_margin(self, w):
        """``f(w)``, exactly."""
        lists = ExactLists(self.data, w)
        users = zip(self._pos, self._neg, self.n_lowest.tolist(), strict=True)
        return min(lists.margin(*user) for user in users)

    def _infeasible(self, duals):
        """Turn the programme's dual into an exact proof that no w separates."""
        proof = self.exact_proof(*duals) or self.exact_proof(*self._interior_weights())
        if proof is not None and not any(proof.vector(self.data)):
            return Separation("no", None, Fraction(0), proof)
        return Separation("undecided", None, Fraction(0), self._rounded_proof(duals))

    def exact_proof(self, model, duals):
        """Weights with v = 0 exactly, near the float ones; None when that fails.

        Unknowns: the free lambda_i, the mu_j and ``c_u = s_u/r_u``; weights at their cap are c_u.
        """
        if duals is None:
            return None
        # 1. the users and rows whose weights are more than rounding of the float ones
        *sides, shares = model.split(duals)
        counted = shares > 1e-9 * shares.max(initial=0.0)
        users = np.flatnonzero(counted)
        if not len(users) or self.data.n_features + 2 * len(users) > LARGEST_SYSTEM:
            return None
        rows = np.concatenate([model.pos, model.neg])
        weights = np.concatenate(sides)
        live = (weights > 1e-10 * shares.max()) & counted[self._user[rows]]
        rows = rows[live]
        weights = weights[live]
        # 2. which positives are at their cap: an unknown fewer each, and an inequality that holds
        is_pos = self.data.labels[rows]
        r = self.n_lowest
        cap = shares / self.n_lowest
        user = self._user[rows]
        place = np.searchsorted(users, self._user[rows])
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
        pos, neg = (
            dict(zip(self.data.rows[rows[side]].tolist(), exact[side], strict=True))
            for side in (is_pos, ~is_pos)
        )
        proof = HullProof(pos, neg, tuple(int(r) for r in self.n_lowest))
        return proof if proof.is_valid(self.data, self.chosen) else None

    def _proof_columns(self, rows, at_cap, place, r):
        """Columns of the equations: v = 0; per user both sums equal s_u; all s_u add to 1.

        Of the rows below their cap, then of the caps of the users; `place`: the user of each row.
        """
        is_pos = self.data.labels[rows]
        d = self.data.n_features
        n_users = len(r)
        of_rows, of_caps = (np.zeros((n, d + 2 * n_users + 1)) for n in (len(rows), n_users))
        values = dense_rows(self.data.X, self.data.rows[rows]) * self.scale
        of_rows[:, :d] = np.where(is_pos, 1.0, -1.0)[:, None] * values
        of_rows[np.arange(len(rows)), d + place + n_users * ~is_pos] = 1.0
        each = np.arange(n_users)
        of_caps[each, d + each] = of_caps[each, d + n_users + each] = -r
        of_caps[:, -1] = r
        columns, caps = ([fractions(row) for row in part] for part in (of_rows, of_caps))
        for i in np.flatnonzero(at_cap):
            caps[place[i]] = [a + b for a, b in zip(caps[place[i]], columns[i], strict=True)]
        return [columns[i] for i in np.flatnonzero(~at_cap)] + caps

    def _rounded_proof(self, duals):
        """Make float weights satisfy their constraints exactly; v is then small, not zero."""
        if duals is None or duals[1] is None:
            return None
        model, values = duals
        weights_pos, weights_neg, _ = model.split(values)
        total = weights_neg.sum()
        if not total > 0:
            return None
        pos = {}
        neg = {}
        norm = Fraction(0)
        live = weights_neg > 1e-13 * total
        for u in np.unique(self._user[model.neg[live]]):
            given = np.flatnonzero(live & (self._user[model.neg] == u))
            mine = np.flatnonzero(self._user[model.pos] == u)
            exact = fractions(weights_neg[given])
            filled = fill_to_share(weights_pos[mine], sum(exact), int(self.n_lowest[u]))
            if filled is None:
                return None
            pos |= zip(self.data.rows[model.pos[mine]].tolist(), filled, strict=True)
            neg |= zip(self.data.rows[model.neg[given]].tolist(), exact, strict=True)
            norm += sum(exact)
        pos, neg = ({row: v / norm for row, v in side.items() if v} for side in (pos, neg))
        return HullProof(pos, neg, tuple(int(r) for r in self.n_lowest))

    def _interior_weights(self):
        """Weights far from their bounds: a second chance when a vertex is too degenerate."""
        extra = np.random.default_rng(0)
        size = 4 * self.data.n_features
        for rows in chain(*zip(self._pos, self._neg, strict=True)):
            if self._in_work[rows].any():
                self._in_work[extra.permutation(rows)[:size]] = True
        if self._in_work.sum() > LARGEST_SECOND_CHANCE:
            return None, None
        model = self._model()
        return model, model.interior_weights()


class _Model:
    """Sparse matrix of ``z - h_i <= w.p_i``, ``t + m + sum h/r <= z``, ``w.q_j <= t`` per user.

    Then ``z - sum h/r`` is the mean of the r smallest scores at best. Variables: w (d), m, t and z
    (working users), h (working positives).
    """

    def __init__(self, separator, positions):
        data = separator.data
        self._users, user = np.unique(data.user_of_position[positions], return_inverse=True)
        self._all_users = data.n_users
        self.n_lowest = separator.n_lowest[self._users]
        is_pos = data.labels[positions]
        self.pos = positions[is_pos]
        self.neg = positions[~is_pos]
        self.x_pos, self.x_neg = (
            dense_rows(data.X, data.rows[at]) * separator.scale for at in (self.pos, self.neg)
        )
        n_users = len(self._users)
        n_pos = len(self.pos)
        self.margin = n_features = data.n_features
        self.slack_start = n_features + 1 + 2 * n_users
        self.n_variables = self.slack_start + n_pos

        def of_users(user):
            entries = np.ones(user.size), (np.arange(user.size), user)
            return sparse.csr_array(entries, (user.size, n_users))

        self.pick_pos = of_users(user[is_pos])
        self.pick_neg = of_users(user[~is_pos])
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
        self._sizes = n_pos, n_users
        ones = np.ones(n_features)
        free = np.full(2 * n_users, np.inf)
        most = np.where(self.n_lowest[user[is_pos]] == 1, 0.0, np.inf)
        low = [-ones, [0.0], -free, np.zeros(n_pos)]
        high = [ones, [np.inf], free, most]
        self.bounds = np.stack([np.concatenate(low), np.concatenate(high)], axis=1)

    def split(self, duals):
        """Weights of the positives, of the negatives, and shares of the users, clipped at zero."""
        n_pos, n_users = self._sizes
        duals = np.maximum(duals, 0.0)
        shares = np.zeros(self._all_users)
        shares[self._users] = duals[n_pos : n_pos + n_users]
        return duals[:n_pos], duals[n_pos + n_users :], shares

    def interior_weights(self):
        """Weights with v = 0 as far from their bounds as can be; None on failure."""
        matrix = self.matrix.toarray()
        (n_pos, n_users) = self._sizes
        equal = matrix[:, : self.slack_start].T
        caps = -matrix[:, self.slack_start :].T
        floors = -np.delete(np.eye(len(matrix)), np.s_[n_pos : n_pos + n_users], axis=0)
        several = caps.sum(axis=1, keepdims=True) > 0
        most = np.block([[caps, several], [floors, np.ones((len(floors), 1))]])
        x = optimize.linprog(
            -np.eye(len(matrix) + 1)[-1],
            A_ub=most,
            b_ub=np.zeros(len(most)),
            A_eq=np.pad(equal, ((0, 0), (0, 1))),
            b_eq=np.eye(len(equal))[self.margin],
            method="highs-ipm",
        ).x
        return None if x is None else x[:-1]


def linear_programme(cost, matrix, bounds, deadline):
    """``min cost.x`` with ``matrix x <= 0``: x and the multipliers; None without an optimum."""
    options = {"time_limit": seconds_to(deadline)}
    zeros = np.zeros(matrix.shape[0])
    result = optimize.linprog(cost, matrix, zeros, bounds=bounds, options=options)
    return (result.x, -result.ineqlin.marginals) if result.status == 0 else (None, None)


def seconds_to(deadline):
    """What is left of the time, as solvers take it."""
    return float(np.clip(deadline - time.monotonic(), 0.1, 1e6))


def _lowest(values, n):
    """Places of the n lowest values; all if there are no more."""
    return np.argpartition(values, n - 1)[:n] if n < len(values) else np.arange(len(values))


def _margin(pos, neg, r):
    """Mean of the r lowest scores of positives less the highest of negatives."""
    return pos[_lowest(pos, r)].mean() - neg.max()


def normalised(margin, w):
    """Margin over the l2 norm of w."""
    return float(margin) / float(np.linalg.norm(w))


def _column_scale(X):
    """Powers of two that bring the columns to size about one (exact in floats)."""
    size = abs(X).max(axis=0)
    size = np.asarray(size.toarray() if hasattr(size, "toarray") else size, dtype=float).ravel()
    return np.exp2(-np.rint(np.log2(np.where(size > 0, size, 1.0))))
