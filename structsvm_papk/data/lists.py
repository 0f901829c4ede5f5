"""Lists: who is ranked against whom, what is relevant, and what each list weighs."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.grades import SharedRows, gains_of_checked
from structsvm_papk.errors import InputError, check_choice, whole_number

POLICIES = ("exclude", "raise", "cap")


@dataclass(frozen=True)
class Exclusions:
    """How many users cannot be used, and why: no positive, or fewer negatives than needed."""

    needed: int
    n_users: int
    no_positive: np.ndarray
    few_negatives: np.ndarray
    setting: str = "k"  # or 'depth': where the needed number comes from

    @property
    def n_used(self) -> int:
        """Users that remain."""
        return self.n_users - self.n_excluded

    @property
    def n_excluded(self) -> int:
        """Excluded users."""
        return self.no_positive.size + self.few_negatives.size

    def __str__(self) -> str:
        if not self.n_excluded:
            return "1 user used" if self.n_users == 1 else f"all {self.n_users} users used"
        few = "without a negative"
        if self.needed > 1:
            few = f"with fewer than {self.setting}={self.needed} negatives"
        return (
            f"{self.n_used} of {self.n_users} users used; left out: {self.no_positive.size} "
            f"without a positive, {self.few_negatives.size} {few}"
        )


class Lists:
    """Users with their list positions: positives first, else in the order in which they came.

    Nothing here knows of features. Attributes are those of `RankingData`.
    """

    rows: Array
    indptr: Array
    n_pos: Array
    users: Array
    user_weight: Array | None = None
    one_list: bool = False
    grades: Array | None = None
    label_gain: str | Sequence[float] | None = None
    shared: SharedRows | None = None

    def to_change(self, *, same_rows: bool = False) -> Self:
        """A copy, to be given other attributes; nothing is checked.

        Which lists share rows is kept for the `same_rows`.
        """
        lists = copy.copy(self)
        if not same_rows:
            lists.shared = None
        return lists

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.users.size

    @property
    def weight_of_user(self) -> Array:
        """What each user counts, 1 where no weights were given."""
        return np.ones(self.n_users) if self.user_weight is None else self.user_weight

    @property
    def effective_users(self) -> float:
        """``(sum v)^2 / sum v^2`` of the users' weights v: their number, where they are equal."""
        if self.user_weight is None:
            return float(self.n_users)
        return effective_number(self.user_weight)

    @property
    def total_positives(self) -> float:
        """Positives of all users together.

        Of grades a row counts what its gain is above the lowest of its list as a share of what the
        highest is: that is the mean number of positives of the user's lists (u, t).
        """
        if self.grades is None:
            return int(self.n_pos.sum())
        gains = self.gains
        users = self.sizes > 0
        first = self.indptr[:-1][users]
        lowest = np.repeat(gains[self.indptr[1:][users] - 1], self.sizes[users])
        span = np.repeat(gains[first], self.sizes[users]) - lowest
        return float(((gains - lowest) / np.where(span > 0.0, span, 1.0)).sum())

    @property
    def n_neg(self) -> Array:
        """Negatives of each user."""
        return np.diff(self.indptr) - self.n_pos

    @property
    def most_negatives(self) -> int:
        """Negatives of the user with the most of them, for grades at the highest of them."""
        return int(self._negatives_at_most().max())

    def _negatives_at_most(self):
        """Negatives of each user, for grades at the user's highest."""
        if self.grades is None:
            return self.n_neg
        gains = self.gains
        first = np.minimum(self.indptr[:-1], gains.size - 1)  # of empty lists any
        lower = gains < np.repeat(gains[first], self.sizes)
        return np.diff(np.concatenate([[0], np.cumsum(lower)])[self.indptr])

    @property
    def gains(self) -> Array:
        """What the row at each list position counts: of binary labels 1 or 0."""
        if self.grades is None or self.label_gain is None:
            return self.labels.astype(np.float64)
        return gains_of_checked(self.grades, self.label_gain)

    def by_grade(self, needed: int = 1) -> Self:
        """The lists (u, t) of these graded lists, see `data.grades`; X and the rows are shared.

        Of every list u and gain t above its lowest at which it has `needed` negatives or more.
        Gains that no row of a list has add their weights to the next higher one of the list.
        """
        if self.grades is None:
            return self
        gains = self.gains
        user_of_position = self.user_of_position
        falls = np.flatnonzero(np.diff(gains) != 0.0) + 1  # here a list (u, t) has its first
        falls = falls[user_of_position[falls] == user_of_position[falls - 1]]  # negative
        user = user_of_position[falls]
        n_pos = falls - self.indptr[user]
        kept = self.sizes[user] - n_pos >= needed
        user = user[kept]
        falls = falls[kept]
        weight = gains[falls - 1] - gains[falls]
        if self.user_weight is not None:
            weight = weight * self.user_weight[user]
        shared = SharedRows(self, user, np.lexsort((self.rows, user_of_position)))
        lists = self.to_change()
        lists.rows = shared.handed_out(self.rows[shared.order])
        lists.indptr = np.concatenate([[0], np.cumsum(self.sizes[user])])
        lists.n_pos = n_pos[kept]
        lists.users = self.users[user]
        lists.user_weight = weight
        lists.grades = None
        lists.label_gain = None
        lists.shared = shared
        return lists

    @property
    def classes(self) -> Array:
        """The grades that occur; of binary labels False and True."""
        return np.array([False, True]) if self.grades is None else np.unique(self.grades)

    @property
    def labels(self) -> Array:
        """Relevance at each list position, as booleans."""
        first_negatives = self.indptr[:-1] + self.n_pos  # positives stand before them
        return np.arange(self.rows.size) < np.repeat(first_negatives, self.sizes)

    @property
    def sizes(self) -> Array:
        """Rows of each user."""
        return np.diff(self.indptr)

    @property
    def user_of_position(self) -> Array:
        """Index of the user at each list position."""
        return np.repeat(np.arange(self.n_users), self.sizes)

    def weighted(self, user_weight: str | ArrayLike | None) -> Self:
        """The same lists with other weights of users; everything else is shared."""
        lists = self.to_change(same_rows=True)
        lists.user_weight = validation.checked_weight(user_weight, self.users, self.n_pos)
        return lists

    def exclusions(self, needed: int, setting: str = "k") -> Exclusions:
        """Users that have no positive or fewer negatives than needed, as `Exclusions`."""
        needed = whole_number(setting, needed)
        no_positive = self.n_pos == 0
        few_negatives = ~no_positive & (self._negatives_at_most() < needed)
        return Exclusions(
            needed=needed,
            n_users=self.n_users,
            no_positive=np.flatnonzero(no_positive),
            few_negatives=np.flatnonzero(few_negatives),
            setting=setting,
        )

    def usable(self, needed: int, policy: str = "exclude") -> Self:
        """The users with a positive and as many negatives as needed: k, the training depth, or 1.

        `X` is shared; the object itself where no user is left out.

        Raises
        ------
        InputError
            needed < 1; no user remains; with ``policy='raise'``, some user cannot be used.
        """
        return self.without(self.checked_exclusions(needed, policy))

    def without(self, excluded: Exclusions) -> Self:
        """The users that are not left out; the object itself where none is."""
        if not excluded.n_excluded:
            return self
        keep = np.ones(self.n_users, dtype=bool)
        keep[excluded.no_positive] = False
        keep[excluded.few_negatives] = False
        return self.subset(keep)

    def checked_exclusions(self, needed: int, policy: str, setting: str = "k") -> Exclusions:
        """`exclusions`, refused where `usable` refuses."""
        check_policy(policy)
        excluded = self.exclusions(needed, setting)
        if excluded.n_used == 0:
            raise InputError(self._why_nothing_is_left(excluded))
        if excluded.n_excluded and policy == "raise":
            raise InputError(refusal(self.name_first(excluded), excluded))
        return excluded

    def subset(self, keep: Array) -> Self:
        """Restrict to the users where the boolean mask `keep` is true; `X` is shared."""
        keep = validation.as_array(keep, "keep")
        if keep.shape != (self.n_users,) or keep.dtype != bool:
            raise InputError(f"keep must be {self.n_users} booleans, one for each user")
        return self._part(
            positions=np.repeat(keep, self.sizes),
            users=keep,
            sizes=self.sizes,
            n_pos=self.n_pos,
        )

    def positions_of(self, users: Array, keys: Array | None = None) -> Array:
        """List positions of some users, one after the other; of equal gains by their `keys`."""
        sizes = self.sizes[users]
        place = np.repeat(np.arange(users.size), sizes)
        before = np.cumsum(sizes) - sizes
        positions = np.arange(sizes.sum()) + (self.indptr[users] - before)[place]
        if keys is None:
            return positions
        return positions[np.lexsort((keys[positions], -self.gains[positions], place))]

    def at_positions(self, keep: Array) -> Self:
        """Restrict to the list positions where `keep` is true, and to users who have any there."""
        n_before = np.concatenate([[0], np.cumsum(keep)])  # kept ones before each position
        positive = self.labels
        if self.grades is not None and keep.any():  # above the lowest of what is kept of a list
            last = np.flatnonzero(keep)[np.maximum(n_before[self.indptr[1:]] - 1, 0)]
            gains = self.gains
            positive = gains > np.repeat(gains[last], self.sizes)
        n_positive = np.concatenate([[0], np.cumsum(positive & keep)])
        n_pos = np.diff(n_positive[self.indptr])
        sizes = np.diff(n_before[self.indptr])
        return self._part(positions=keep, users=sizes > 0, sizes=sizes, n_pos=n_pos)

    def _part(self, *, positions: Array, users: Array, sizes: Array, n_pos: Array) -> Self:
        """Restrict to list positions and users, two masks, or arrays of indices in an order.

        `sizes` and `n_pos` are the rows and positives that remain of every user, shape (n_users,).
        """
        part = self.to_change()
        part.rows = self.rows[positions]
        part.indptr = np.concatenate([[0], np.cumsum(sizes[users])])
        part.n_pos = n_pos[users]
        part.users = self.users[users]
        if self.user_weight is not None:
            part.user_weight = self.user_weight[users]
        if self.grades is not None:
            part.grades = self.grades[positions]
        return part

    def _why_nothing_is_left(self, excluded):
        if excluded.no_positive.size == self.n_users:
            return "no user has a positive: all labels are of one class, or below the threshold"
        if self.n_neg.max() == 0:
            return "no user has a negative: all labels are of one class"
        if self.n_users == self.rows.size:
            return (
                "every user has one row, so no user has both a positive and a negative: is the "
                "column of users (groups=) the right one?"
            )
        largest = self._negatives_at_most()[self.n_pos > 0].max()
        if largest == 0:
            return "no user has both a positive and a negative"
        return (
            f"{excluded.setting}={excluded.needed} is larger than the number of negatives of every "
            f"user with a positive (at most {largest}); choose {excluded.setting} <= {largest}"
        )

    def name_first(self, excluded: Exclusions) -> str:
        """What is wrong with the first user that is left out; an empty text without one."""
        if excluded.no_positive.size:
            user = self.users[excluded.no_positive[:1]].tolist()[0]
            return f"user {user!r} has no positive"
        if excluded.few_negatives.size:
            u = excluded.few_negatives[0]
            user = self.users[[u]].tolist()[0]
            return (
                f"user {user!r} has {self.n_neg[u]} negatives, "
                f"fewer than {excluded.setting}={excluded.needed}"
            )
        return ""


class Layout(NamedTuple):
    """What stands at which list position: `rows`, `indptr` and `n_pos` of `RankingData`."""

    rows: Array
    indptr: Array
    n_pos: Array


def laid_out(positive: Array, user_of_row: Array, n_users: int) -> Layout:
    """Rows sorted by user, positives first, else in the order they are given."""
    # one stable sort of whole numbers: 2u for the positives of user u, 2u + 1 for the negatives
    rows = np.argsort(2 * user_of_row + ~positive, kind="stable")
    return _layout(rows, positive, user_of_row, n_users)


def laid_out_by_gain(gains: Array, user_of_row: Array, n_users: int) -> Layout:
    """Rows sorted by user and decreasing gain; positives are all above a user's lowest gain."""
    lowest = np.full(n_users, np.inf)
    np.minimum.at(lowest, user_of_row, gains)
    rows = np.lexsort((-gains, user_of_row))
    return _layout(rows, gains > lowest[user_of_row], user_of_row, n_users)


def _layout(rows: Array, positive: Array, user_of_row: Array, n_users: int) -> Layout:
    sizes = np.bincount(user_of_row, minlength=n_users)
    return Layout(
        rows=rows,
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        n_pos=np.bincount(user_of_row[positive], minlength=n_users),
    )


def check_policy(policy: str) -> None:
    """Refuse an unknown policy about users that cannot be used."""
    check_choice("policy", policy, POLICIES)


def refusal(first: str, excluded: Exclusions) -> str:
    """What the policy 'raise' says; `first` tells of the first user that cannot be used."""
    return f"{first} ({excluded}); use policy='exclude' to go on"


def effective_number(weight: Array) -> float:
    """``(sum v)^2 / sum v^2``: how many equal weights have a mean as certain as these weights'."""
    share = weight / weight.max()  # squares of weights could be too large or too small for a float
    return float(share.sum() ** 2 / np.square(share).sum())
