"""Proofs that no w realises a margin condition, checked in rational arithmetic.

Whoever found the weights is not trusted: every proof looks at the data again.
"""

import time
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from structsvm_papk.margins.exact import dense_rows, fractions


@dataclass(frozen=True)
class HullProof:
    """Exact weights for the inequality (*) of `separation`: ``f(w) <= v.w`` for every w.

    `pos_weights`, `neg_weights`: row of X to weight; both sides of a user add to the same share,
    all shares to 1; `n_lowest`: r of each user.
    """

    pos_weights: dict
    neg_weights: dict
    n_lowest: tuple

    def vector(self, data):
        """Return v, exactly."""
        v = [Fraction(0)] * data.n_features
        for sign, weights in ((1, self.pos_weights), (-1, self.neg_weights)):
            rows = np.fromiter(weights, dtype=np.int64, count=len(weights))
            for row, values in zip(rows.tolist(), dense_rows(data.X, rows), strict=True):
                filled = np.flatnonzero(values)
                for j, value in zip(filled, fractions(values[filled]), strict=True):
                    v[j] += sign * weights[row] * value
        return v

    def is_valid(self, data, chosen=None):
        """Whether the weights satisfy their constraints on this data, checked exactly."""
        user, positive = _owners(data, chosen)
        shares = [Fraction(0)] * data.n_users
        balance = [Fraction(0)] * data.n_users
        for row, weight in self.neg_weights.items():
            if weight < 0 or positive.get(row, True):
                return False
            balance[user[row]] -= weight
        for row, weight in self.pos_weights.items():
            if weight < 0 or not positive.get(row, False):
                return False
            balance[user[row]] += weight
            shares[user[row]] += weight
        capped = all(
            weight * self.n_lowest[user[row]] <= shares[user[row]]
            for row, weight in self.pos_weights.items()
        )
        return capped and not any(balance) and sum(shares) == 1

    def bound(self, data, norm):
        """Upper bound on f over the unit ball of "l2" or "linf"; 0.0 only when v is zero."""
        v = self.vector(data)
        if not any(v):
            return 0.0
        size = float(sum(abs(x) for x in v)) if norm == "linf" else _root(sum(x * x for x in v))
        return np.nextafter(size * (1 + 1e-15), np.inf)


def _root(value):
    """Square root of a Fraction that may be far below the range of floats."""
    shift = max(0, (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    return float(value * 4**shift) ** 0.5 * 0.5**shift


def _owners(data, chosen):
    """User of each row, and whether it is an (allowed) positive; other positives are left out."""
    user = dict(zip(data.rows.tolist(), data.user_of_position.tolist(), strict=True))
    usable = data.labels if chosen is None else data.labels & chosen
    known = usable | ~data.labels
    rows = data.rows[known].tolist()
    return user, dict(zip(rows, data.labels[known].tolist(), strict=True))


@dataclass(frozen=True)
class SubsetProof:
    """Exact proof that no w puts beta positives of each user strictly above its negatives.

    `conflicts`: each with v = 0: the positives in it cannot all be strictly above; `needed`: beta
    of each user.
    """

    conflicts: tuple
    needed: tuple

    def is_valid(self, data):
        """Check every conflict exactly, then that no choice of positives avoids all of them."""
        proven = [p for p in self.conflicts if p.is_valid(data) and not any(p.vector(data))]
        row_user = dict(zip(data.rows.tolist(), data.user_of_position.tolist(), strict=True))
        sets = [frozenset(p.pos_weights) for p in proven]
        groups = positive_rows(data)
        return no_choice_avoids(sets, groups, self.needed, row_user)


@dataclass(frozen=True)
class CommonProof:
    """Exact proof for moderate: whenever all positives reach ``max q``, those in it tie with it.

    `identity`: with v = 0; `needed`: beta of each user; one user keeps fewer positives than that.
    """

    identity: HullProof
    needed: tuple

    def is_valid(self, data):
        """Check the identity exactly, and count the positives that remain."""
        if not self.identity.is_valid(data) or any(self.identity.vector(data)):
            return False
        stuck = {row for row, weight in self.identity.pos_weights.items() if weight > 0}
        groups = positive_rows(data)
        return any(len(set(g) - stuck) < n for g, n in zip(groups, self.needed, strict=True))


def positive_rows(data):
    """The rows of X that are positives, user by user."""
    return [
        data.rows[start : start + n].tolist()
        for start, n in zip(data.indptr[:-1], data.n_pos, strict=True)
    ]


def no_choice_avoids(sets, groups, needed, group_of, deadline=np.inf):
    """Whether every choice of ``needed[g]`` elements from each group contains one of the sets.

    Exhaustive search over removals: in each set still complete, some element must go.

    Raises TimeoutError: after the deadline.
    """
    spare = [len(g) - n for g, n in zip(groups, needed, strict=True)]
    if min(spare) < 0:
        return True
    ordered = sorted(set(sets), key=len)

    def dead(kept, removed, spare):
        if time.monotonic() > deadline:
            raise TimeoutError
        complete = next((s for s in ordered if not s & removed), None)
        if complete is None:
            return False
        if _disjoint_excess(ordered, removed, kept, spare, group_of):
            return True
        for element in sorted(complete - kept):
            group = group_of[element]
            if spare[group] > 0:
                fewer = list(spare)
                fewer[group] -= 1
                if not dead(kept, removed | {element}, fewer):
                    return False
            kept = kept | {element}
        return True

    return dead(frozenset(), frozenset(), spare)


def _disjoint_excess(sets, removed, kept, spare, group_of):
    """More disjoint complete sets than elements that may still go."""
    used, count = set(), 0
    for s in sets:
        free = s - kept
        if not s & removed and not free & used:
            if not free:
                return True
            used |= free
            count += 1
    return count > sum(spare)
