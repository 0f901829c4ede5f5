"""The questions with a choice of positives: weak and moderate margins.

Weak: some beta positives of each user strictly above all negatives. Sets of positives that cannot
all be strictly above (each with an exact proof) are collected until every choice contains one.

Moderate: all positives at or above the negatives is a convex cone of w. If w1 lifts positive i
strictly above the negatives and w2 lifts j, both in the cone, ``w1 + w2`` lifts both. So *one*
linear programme finds all positives that can be lifted; only the largest margin needs integer
variables.
"""

from __future__ import annotations

import time
from contextlib import nullcontext
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from structsvm_papk._types import Array
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.margins.highs_output import HIGHS_PRINTS, without_output
from structsvm_papk.margins.proofs import (
    CommonProof,
    ExactLists,
    HullProof,
    SubsetProof,
    Weights,
    dense_rows,
    fractions,
    no_choice_avoids,
    positives_of_users,
    solve_near,
    user_of_rows,
)
from structsvm_papk.margins.separation import (
    HullProgramme,
    Multipliers,
    Outcome,
    Separator,
    largest_in_columns,
    linear_programme,
    positions_of_users,
    seconds_to,
)

NUMERICAL_ZERO = 1e-6
_SMALLEST_UNIT = 2.0**-24  # beside the largest entry, which is 1e7 or so of these
_FAILED = 4  # what `milp` says of other ends than an optimum, a limit and no solution
MOST_ENTRIES = 5_000_000  # rows times features that the integer programmes take
MOST_POSITIVES = 3000  # each is an integer variable
_MOST_AT_ONCE = 6  # conflicts that are looked for in one choice


class _Lift(NamedTuple):
    """An optimum of `_lift_programme`: w, m_i of each positive, multipliers of the whole model."""

    w: Array
    lifted: Array
    duals: Array


class SubsetSearch:
    """Decide weak and moderate for one w shared by all users of the data."""

    def __init__(self, data: RankingData, k: int, deadline: float) -> None:
        self.data = data
        self.deadline = deadline
        self.needed = np.minimum(data.n_pos, k)
        self._ones = np.ones(data.n_users, dtype=int)
        self._user = data.user_of_position
        self._positives = np.flatnonzero(data.labels)
        # the tolerances of the integer solver are absolute, so entries are in units of the column
        # that has the smallest ones, or nearly
        size = largest_in_columns(data.X)
        largest = size.max() or 1.0
        smallest = size.min(initial=largest, where=size > 0)
        self.unit = np.exp2(np.floor(np.log2(max(smallest, _SMALLEST_UNIT * largest))))

    @property
    def is_small(self) -> bool:
        """Whether programmes over all rows and positives at once are sensible."""
        entries = len(self._user) * (self.data.n_features + self.data.n_users)
        return entries <= MOST_ENTRIES and len(self._positives) <= MOST_POSITIVES

    def weak_conflicts(self, deadline: float | None = None) -> Outcome:
        """Weak: a choice of positives that some w lifts, or a proof that there is none."""
        self.deadline = deadline or self.deadline
        conflicts, alive = self._single_conflicts()
        if conflicts is None:
            return Outcome("undecided")
        sets = [frozenset(conflict.pos_weights) for conflict in conflicts]
        while time.monotonic() < self.deadline:
            choice = self._choose(sets, alive)
            if choice is None:
                return self._finish(conflicts, sets)
            further, answer = self._conflicts_within(choice)
            if answer == "yes":
                return Outcome("yes", choice=choice)
            if not further:
                return Outcome("undecided")
            conflicts += further
            sets += [frozenset(conflict.pos_weights) for conflict in further]
        return Outcome("undecided")

    def _single_conflicts(self) -> tuple[list[HullProof] | None, Array]:
        """Positives that no w lifts on their own, with proofs; and the others."""
        conflicts = []
        alive = np.zeros(len(self._user), dtype=bool)
        for u in range(self.data.n_users):
            list_of_user = self.data.subset(np.arange(self.data.n_users) == u)
            for i in range(int(list_of_user.n_pos[0])):
                if time.monotonic() > self.deadline:
                    return None, alive
                chosen = np.zeros(len(list_of_user.rows), dtype=bool)
                chosen[i] = True
                separator = Separator(list_of_user, np.ones(1, int), chosen, self.deadline)
                separation = separator.solve(largest_margin=False)
                if separation.answer == "no" and separation.proof is not None:
                    conflicts.append(separation.proof.of_all_users(self._ones))
                else:
                    alive[self.data.indptr[u] + i] = True
        return conflicts, alive

    def _conflicts_within(self, choice: Array) -> tuple[list[HullProof], str]:
        """Find proofs that parts of a choice cannot be lifted; drop one element and repeat."""
        conflicts: list[HullProof] = []
        chosen = choice.copy()
        while len(conflicts) < _MOST_AT_ONCE and time.monotonic() < self.deadline:
            separator = Separator(self.data, self._ones, chosen, self.deadline)
            separation = separator.solve(largest_margin=False)
            if separation.answer != "no" or separation.proof is None:
                # what is left of a choice with a conflict says nothing of the choice
                return conflicts, "no" if conflicts else separation.answer
            conflicts.append(separation.proof)
            weights = separation.proof.pos_weights
            heaviest = max(weights, key=lambda row: weights[row])
            chosen[(self.data.rows == heaviest) & chosen] = False
            if any(not chosen[first:last].any() for first, last in pairwise(self.data.indptr)):
                break
        return conflicts, "no"

    def _choose(self, sets: list[frozenset[int]], alive: Array) -> Array | None:
        """Choose `needed` positives per user that contain none of the sets; None if none exist.

        ``z`` in {0, 1} for each positive: of each user as many as needed, of each set one is left
        out.
        """
        positions = np.flatnonzero(alive)
        place = {int(row): n for n, row in enumerate(self.data.rows[positions])}  # of a row in z
        of_user = 1.0 * (self._user[positions] == np.arange(self.data.n_users)[:, None])
        if (of_user.sum(axis=1) < self.needed).any():
            return None
        rules = [LinearConstraint(of_user, self.needed, self.needed)]
        inside = [conflict for conflict in sets if all(row in place for row in conflict)]
        if inside:
            member = np.zeros((len(inside), len(positions)))
            for n, conflict in enumerate(inside):
                member[n, [place[row] for row in conflict]] = 1.0
            rules.append(LinearConstraint(member, ub=member.sum(axis=1) - 1))
        ones = np.ones(len(positions))
        z = _integer_programme(
            cost=0 * ones,
            integral=ones,
            low=0 * ones,
            high=ones,
            rules=rules,
            deadline=self.deadline,
        ).x
        if z is None:
            return None
        chosen = np.zeros(len(self._user), dtype=bool)
        chosen[positions[z > 0.5]] = True
        return chosen

    def _finish(self, conflicts: list[HullProof], sets: list[frozenset[int]]) -> Outcome:
        """Prove that every choice contains a conflict, in whole numbers."""
        try:
            closed = no_choice_avoids(
                sets,
                positives_of_users(self.data),
                self.needed,
                user_of_rows(self.data),
                self.deadline,
            )
        except TimeoutError:
            closed = False
        if not closed:
            return Outcome("undecided")
        proof = SubsetProof(tuple(conflicts), tuple(self.needed.tolist()))
        return Outcome("no", proof=proof)

    def moderate(self) -> Outcome:
        """Moderate: a w of Fractions, or a proof that there is none."""
        separator = Separator(self.data, self._ones, deadline=self.deadline)
        model = separator.whole_model()
        lift = self._lift_programme(model, separator.scale)
        if lift is None:
            return Outcome("undecided")
        is_lifted = lift.lifted > 0.5  # w is free to grow, so at the optimum each m_i is 0 or 1
        n_lifted = np.bincount(self._user[model.pos][is_lifted], minlength=self.data.n_users)
        self._tying = model.pos[~is_lifted]
        if (n_lifted >= self.needed).all():
            w = self.with_exact_ties(lift.w)
            return Outcome("undecided") if w is None else Outcome("yes", w)
        identity = separator.exact_proof(Multipliers(model, lift.duals))
        if identity is None or any(identity.vector(self.data)):
            return Outcome("undecided")
        proof = CommonProof(identity, tuple(self.needed.tolist()))
        if not proof.is_valid(self.data):
            return Outcome("undecided")
        return Outcome("no", proof=proof)

    def _lift_programme(self, model: HullProgramme, scale: Array) -> _Lift | None:
        """``max sum m_i``: ``w.p_i >= t + m_i``, ``w.q_j <= t``, ``0 <= m_i <= 1``, w free."""
        n_pos = len(model.pos)
        d = self.data.n_features
        n_users = self.data.n_users
        matrix = sparse.block_array(
            [
                [sparse.csr_array(-model.x_pos), model.pick_pos, sparse.eye_array(n_pos)],
                [sparse.csr_array(model.x_neg), -model.pick_neg, None],
            ],
            format="csr",
        )
        cost = np.concatenate([np.zeros(d + n_users), -np.ones(n_pos)])
        bounds = np.repeat([[-np.inf, np.inf], [0.0, 1.0]], [d + n_users, n_pos], axis=0)
        x, duals = linear_programme(cost, matrix, bounds, self.deadline)
        if x is None or duals is None:
            return None
        # the whole model has rows of users between both sides; their share is the negatives' sum
        of_pos, of_neg = np.split(duals, [n_pos])
        shares = np.bincount(self._user[model.neg], weights=of_neg, minlength=n_users)
        return _Lift(
            w=x[:d] * scale,
            lifted=x[d + n_users :],
            duals=np.concatenate([of_pos, shares, of_neg]),
        )

    def with_exact_ties(self, w: Weights) -> list[Fraction] | None:
        """Rational w near the float one on which positives that must tie with max q do so exactly.

        Call `moderate` first: it finds those positives.
        """
        if not len(self._tying):
            return fractions(w)
        d = self.data.n_features
        scores = self.data.scores(np.asarray(w, dtype=float))
        size = 1e-6 * np.abs(scores).max()
        negatives = np.flatnonzero(~self.data.labels)
        tops = np.full(self.data.n_users, -np.inf)
        np.maximum.at(tops, self._user[negatives], scores[negatives])
        candidates = np.concatenate([self._tying, negatives])
        tied = candidates[np.abs(scores[candidates] - tops[self._user[candidates]]) <= size]
        # unknown are w and the users' highest scores t_u: all rows that tie have w.x - t_u = 0
        values = dense_rows(self.data.X, self.data.rows[tied])
        columns = [fractions(values[:, j]) for j in range(d)]
        columns += [fractions(-1.0 * (self._user[tied] == u)) for u in range(self.data.n_users)]
        exact = solve_near(columns, [Fraction(0)] * len(tied), np.concatenate([w, tops]))
        return None if exact is None else exact[:d]

    def moved_inside(self, w: Array | None, inside: Weights | None) -> list[Fraction] | None:
        """``w + s inside`` with the smallest s that puts every positive at ``max q`` or above.

        Solvers keep ``w.p_i >= w.q_j`` up to rounding only. `inside`, the w of `moderate`, keeps it
        exactly, and strictly for every positive that need not tie.
        """
        exact = None if w is None else self.with_exact_ties(w)
        if exact is None or inside is None:
            return None
        scores = ExactLists(self.data, exact)
        scores_inside = ExactLists(self.data, inside)
        step = Fraction(0)
        for pos, neg in zip(*self._free_positives_and_negatives(), strict=True):
            room = scores_inside.margin(pos, neg, 1) if len(pos) else 0
            if room > 0:
                step = max(step, -scores.margin(pos, neg, 1) / room)
        return [a + step * b for a, b in zip(exact, fractions(inside), strict=True)]

    def _free_positives_and_negatives(self) -> tuple[list[Array], list[Array]]:
        """List positions, user by user; without the positives that tie with max q under any w."""
        is_free = self.data.labels.copy()
        is_free[self._tying] = False
        indptr = self.data.indptr
        return positions_of_users(is_free, indptr), positions_of_users(~self.data.labels, indptr)

    def largest_margin(self, condition: str, deadline: float) -> tuple[Array | None, float]:
        """Mixed-integer programme for the largest margin over ``|w_j| <= 1``.

        ``max m: w.q_j <= t_u; w.p_i >= t_u + m - M_i (1 - z_i); sum z >= beta``, for moderate also
        ``w.p_i >= t_u``. Valid ``M_i``: the largest m for moderate, and for weak that plus
        ``max_j |q_j - p_i|_1``.

        Returns w or None, and the solver's numerical upper bound on m.
        """
        pos = self._positives
        neg = np.flatnonzero(~self.data.labels)
        x_pos = dense_rows(self.data.X, self.data.rows[pos]) / self.unit
        x_neg = dense_rows(self.data.X, self.data.rows[neg]) / self.unit
        users = np.arange(self.data.n_users)
        of_pos = 1.0 * (self._user[pos][:, None] == users)  # rows of positives, columns of users
        of_neg = 1.0 * (self._user[neg][:, None] == users)
        near, far = _distances(x_pos, x_neg, self._user[pos], self._user[neg])
        # w.(p_i - q_j) <= |p_i - q_j|_1, so that m is at most near_i of each positive above
        most = np.inf
        for user, needed in zip(users, self.needed, strict=True):
            nearest = np.sort(near[self._user[pos] == user])
            most = min(most, float(nearest[-needed]))
        size = np.full(len(pos), most) if condition == "moderate" else most + far  # M_i
        # the variables: w, t, m, z
        column = np.ones((len(pos), 1))
        below = sparse.block_array([[x_neg, -of_neg, _none(neg, 1), _none(neg, len(pos))]])
        above = sparse.block_array([[x_pos, -of_pos, -column, -sparse.diags_array(size)]])
        nothing = sparse.csr_array((len(users), x_pos.shape[1] + len(users) + 1))
        counts = sparse.block_array([[nothing, of_pos.T]])
        rules = [
            LinearConstraint(below, ub=0.0),
            LinearConstraint(above, lb=-size),
            LinearConstraint(counts, lb=self.needed),
        ]
        if condition == "moderate":
            at_least = sparse.block_array([[x_pos, -of_pos, 0 * column, _none(pos, len(pos))]])
            rules.append(LinearConstraint(at_least, lb=0.0))
        lengths = [x_pos.shape[1], len(users), 1, len(pos)]
        result = _integer_programme(
            cost=np.repeat([0.0, 0.0, -1.0, 0.0], lengths),
            integral=np.repeat([0, 0, 0, 1], lengths),
            low=np.repeat([-1.0, -np.inf, 0.0, 0.0], lengths),
            high=np.repeat([1.0, np.inf, most, 1.0], lengths),
            rules=rules,
            deadline=deadline,
        )
        bound = most
        if result.mip_dual_bound is not None:
            bound = min(most, -result.mip_dual_bound)  # of a minimum: the cost is -m
        w = None if result.x is None else result.x[: lengths[0]]
        return w, float(bound) * self.unit


def _distances(
    x_pos: Array, x_neg: Array, user_of_pos: Array, user_of_neg: Array
) -> tuple[Array, Array]:
    """l1 distances of each positive to the nearest and the farthest negative of its user."""
    near = np.empty(len(x_pos))
    far = np.empty(len(x_pos))
    for user in np.unique(user_of_pos):
        negatives = x_neg[user_of_neg == user]
        for i in np.flatnonzero(user_of_pos == user):
            distances = np.abs(negatives - x_pos[i]).sum(axis=1)
            near[i] = distances.min()
            far[i] = distances.max()
    return near, far


def _none(rows: Array, n_columns: int) -> sparse.csr_array:
    """Zeros of these rows, for a part of a matrix."""
    return sparse.csr_array((len(rows), n_columns))


def _integer_programme(
    cost: Array,
    integral: Array,
    low: Array,
    high: Array,
    rules: list[LinearConstraint],
    deadline: float,
) -> Any:
    """``min cost.x`` by HiGHS within the time that is left; x is None where it has none."""
    printed = without_output if HIGHS_PRINTS else nullcontext
    bounds = Bounds(low, high)
    for presolve in (True, False):  # after some presolves HiGHS ends in a "solve error"
        options = {"time_limit": seconds_to(deadline), "presolve": presolve}
        with printed():
            result = milp(
                cost, integrality=integral, bounds=bounds, constraints=rules, options=options
            )
        if result.status != _FAILED:
            break
    return result
