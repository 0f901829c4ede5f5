"""The questions with a choice of positives: weak and moderate margins.

Weak: some beta positives of each user strictly above all negatives. Sets of positives that cannot
all be strictly above (each with an exact proof) are collected until every choice contains one.

Moderate: all positives at or above the negatives is a convex cone of w. If w1 lifts positive i
strictly above the negatives and w2 lifts j, both in the cone, ``w1 + w2`` lifts both. So *one*
linear programme finds all positives that can be lifted; only the largest margin needs integer
variables.
"""

import time
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy import sparse

from structsvm_papk.margins.proofs import (
    CommonProof,
    HullProof,
    SubsetProof,
    dense_rows,
    fractions,
    no_choice_avoids,
    of_rows,
    solve_near,
)
from structsvm_papk.margins.separation import Separator, linear_programme, seconds_to

NUMERICAL_ZERO = 1e-6
MOST_ENTRIES = 5_000_000  # rows times features that the integer programmes take


class SubsetSearch:
    """Decide weak and moderate for one w shared by all users of the data."""

    def __init__(self, data, k, deadline):
        self.data, self.deadline = data, deadline
        self.needed = np.minimum(data.n_pos, k)
        self._ones = np.ones(data.n_users, dtype=int)
        self._user = data.user_of_position
        self._positives = np.flatnonzero(data.labels)

    @property
    def is_small(self):
        """Whether programmes over all rows and positives at once are sensible."""
        entries = len(self._user) * (self.data.n_features + self.data.n_users)
        return entries <= MOST_ENTRIES and len(self._positives) <= 3000

    def weak_conflicts(self, deadline):
        """Return a SubsetProof, a choice of positives that can be lifted, or None (undecided)."""
        self.deadline = deadline
        conflicts, alive = self._single_conflicts()
        if conflicts is None:
            return None
        sets = [frozenset(c.pos_weights) for c in conflicts]
        while time.monotonic() < self.deadline:
            choice = self._choose(sets, alive)
            if choice is None:
                return self._finish(conflicts, sets)
            found, answer = self._conflicts_within(choice)
            if answer == "yes":
                return choice
            if not found:
                return None
            conflicts += found
            sets += [frozenset(c.pos_weights) for c in found]
        return None

    def _single_conflicts(self):
        """Positives that no w lifts on their own, with proofs; and the others."""
        conflicts, alive = [], np.zeros(len(self._user), dtype=bool)
        for u in range(self.data.n_users):
            one = self.data.subset(np.arange(self.data.n_users) == u)
            for i in range(int(one.n_pos[0])):
                if time.monotonic() > self.deadline:
                    return None, alive
                chosen = np.zeros(len(one.rows), dtype=bool)
                chosen[i] = True
                result = Separator(one, [1], chosen, self.deadline).solve(largest_margin=False)
                if result.answer == "no":
                    proof = result.proof
                    conflicts.append(
                        HullProof(proof.pos_weights, proof.neg_weights, (1,) * len(self._ones))
                    )
                else:
                    alive[self.data.indptr[u] + i] = True
        return conflicts, alive

    def _conflicts_within(self, choice, most=6):
        """Find proofs that parts of a choice cannot be lifted; drop one element and repeat."""
        found, chosen = [], choice.copy()
        while len(found) < most and time.monotonic() < self.deadline:
            result = Separator(self.data, self._ones, chosen, self.deadline).solve(False)
            if result.answer != "no":
                return found, result.answer if not found else "no"
            found.append(result.proof)
            heaviest = max(result.proof.pos_weights, key=result.proof.pos_weights.get)
            chosen[np.flatnonzero((self.data.rows == heaviest) & chosen)] = False
            if any(not chosen[a:b].any() for a, b in pairwise(self.data.indptr)):
                break
        return found, "no"

    def _choose(self, sets, alive):
        """Choose `needed` positives per user that contain none of the sets; None if none exist."""
        import cvxpy as cp

        places = np.flatnonzero(alive)
        row_place = {int(self.data.rows[p]): n for n, p in enumerate(places)}
        z = cp.Variable(max(1, len(places)), boolean=True)
        counts = 1.0 * (self._user[places] == np.arange(self.data.n_users)[:, None])
        if (counts.sum(axis=1) < self.needed).any():
            return None
        rules = [counts @ z == self.needed]
        inside = [s for s in sets if all(row in row_place for row in s)]
        if inside:
            member = np.zeros((len(inside), len(places)))
            for n, s in enumerate(inside):
                member[n, [row_place[row] for row in s]] = 1.0
            rules.append(member @ z <= member.sum(axis=1) - 1)
        problem = cp.Problem(cp.Minimize(0), rules)
        _solve(problem, self.deadline)
        if z.value is None:
            return None
        chosen = np.zeros(len(self._user), dtype=bool)
        chosen[places[z.value > 0.5]] = True
        return chosen

    def _finish(self, conflicts, sets):
        """Prove that every choice contains a conflict, in whole numbers."""
        try:
            closed = no_choice_avoids(sets, *of_rows(self.data, self.needed), self.deadline)
        except TimeoutError:
            return None
        return SubsetProof(tuple(conflicts), tuple(self.needed.tolist())) if closed else None

    def moderate(self):
        """Return (answer, w as Fractions or None, CommonProof or None)."""
        separator = Separator(self.data, self._ones, deadline=self.deadline)
        model = separator.whole_model()
        w, lifted, duals = self._lift_programme(model, separator.scale)
        if w is None:
            return "undecided", None, None
        enough = np.bincount(self._user[model.pos][lifted > 0.5], minlength=self.data.n_users)
        self._tying = model.pos[lifted <= 0.5]
        if (enough >= self.needed).all():
            w = self.with_exact_ties(w)
            return ("yes", w, None) if w is not None else ("undecided", None, None)
        identity = separator.exact_proof(model, duals)
        if identity is None or any(identity.vector(self.data)):
            return "undecided", None, None
        proof = CommonProof(identity, tuple(self.needed.tolist()))
        return ("no", None, proof) if proof.is_valid(self.data) else ("undecided", None, None)

    def _lift_programme(self, model, scale):
        """``max sum m_i``: ``w.p_i >= t + m_i``, ``w.q_j <= t``, ``0 <= m_i <= 1``, w free."""
        n_pos, d, n_users = len(model.pos), self.data.n_features, self.data.n_users
        matrix = sparse.block_array(
            [
                [sparse.csr_array(-model.x_pos), model.pick_pos, sparse.eye_array(n_pos)],
                [sparse.csr_array(model.x_neg), -model.pick_neg, None],
            ],
            format="csr",
        )
        cost = np.concatenate([np.zeros(d + n_users), -np.ones(n_pos)])
        bounds = [(None, None)] * (d + n_users) + [(0.0, 1.0)] * n_pos
        x, duals = linear_programme(cost, matrix, bounds, self.deadline)
        if x is None:
            return None, None, None
        user_neg = self._user[model.neg]
        share = np.bincount(user_neg, weights=duals[n_pos:], minlength=n_users)
        duals = np.concatenate([duals[:n_pos], share, duals[n_pos:]])
        return x[:d] * scale, x[d + n_users :], duals

    def with_exact_ties(self, w):
        """Rational w near the float one on which positives that must tie with max q do so exactly.

        Call `moderate` first: it finds those positives.
        """
        if w is None:
            return None
        if not len(self._tying):
            return fractions(w)
        d, scores = self.data.n_features, self.data.scores(np.asarray(w, dtype=float))
        size = 1e-6 * np.abs(scores).max()
        negatives = np.flatnonzero(~self.data.labels)
        tops = np.full(self.data.n_users, -np.inf)
        np.maximum.at(tops, self._user[negatives], scores[negatives])
        candidates = np.concatenate([self._tying, negatives])
        tied = candidates[np.abs(scores[candidates] - tops[self._user[candidates]]) <= size]
        values = dense_rows(self.data.X, self.data.rows[tied])
        columns = [fractions(values[:, j]) for j in range(d)]
        columns += [fractions(-1.0 * (self._user[tied] == u)) for u in range(self.data.n_users)]
        exact = solve_near(columns, [Fraction(0)] * len(tied), np.concatenate([w, tops]))
        return None if exact is None else exact[:d]

    def largest_margin(self, condition, deadline):
        """Mixed-integer programme for the largest margin over ``|w_j| <= 1``.

        ``max m: w.q_j <= t_u; w.p_i >= t_u + m - M_i (1 - z_i); sum z >= beta``, for moderate also
        ``w.p_i >= t_u``. Valid ``M_i``: the largest m for moderate, and for weak that plus
        ``max_j |q_j - p_i|_1``.

        Returns w or None, and the solver's numerical upper bound on m.
        """
        import cvxpy as cp

        pos, neg = self._positives, np.flatnonzero(~self.data.labels)
        x_pos = dense_rows(self.data.X, self.data.rows[pos])
        x_neg = dense_rows(self.data.X, self.data.rows[neg])
        in_user = [(self._user[pos] == u, self._user[neg] == u) for u in range(self.data.n_users)]
        near, far = np.empty(len(x_pos)), np.empty(len(x_pos))  # l1 distances to negatives
        for a, b in in_user:
            for i in np.flatnonzero(a):
                apart = np.abs(x_neg[b] - x_pos[i]).sum(axis=1)
                near[i], far[i] = apart.min(), apart.max()
        most = float(
            min(np.sort(near[a])[-n] for (a, _), n in zip(in_user, self.needed, strict=True))
        )
        size = most if condition == "moderate" else most + far
        w, t, m = cp.Variable(x_pos.shape[1]), cp.Variable(len(in_user)), cp.Variable(nonneg=True)
        z = cp.Variable(len(pos), boolean=True)
        t_pos, t_neg = t[self._user[pos]], t[self._user[neg]]
        rules = [cp.abs(w) <= 1, x_neg @ w <= t_neg, m <= most]
        rules += [x_pos @ w >= t_pos + m - cp.multiply(size, 1 - z)]
        rules += [
            cp.sum(z[np.flatnonzero(a)]) >= n
            for (a, _), n in zip(in_user, self.needed, strict=True)
        ]
        if condition == "moderate":
            rules.append(x_pos @ w >= t_pos)
        problem = cp.Problem(cp.Maximize(m), rules)
        try:
            _solve(problem, deadline)
        except cp.SolverError:
            return None, most
        info = problem.solver_stats.extra_stats if problem.solver_stats else None
        bound = -getattr(info, "mip_dual_bound", -np.inf)
        bound = min(most, bound) if np.isfinite(bound) else most
        return w.value, float(bound)


def _solve(problem, deadline):
    """Run HiGHS with a time limit; its warning about a stop before optimality is no news here."""
    import cvxpy as cp

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        problem.solve(solver=cp.HIGHS, time_limit=seconds_to(deadline))
