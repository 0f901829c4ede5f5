"""Ranking data: a feature matrix, binary relevance, and which rows belong to which user."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import features, validation
from structsvm_papk.data.column_scale import ScaleRule, Variation, check_standardize
from structsvm_papk.data.content import digests_of_lists
from structsvm_papk.data.curves import Knots, knots_of, stiffened_scale
from structsvm_papk.data.features import (
    ListRows,
    Spread,
    check_matrix,
    columns_with_holes,
    refuse_non_finite,
)
from structsvm_papk.data.fingerprint import fingerprint_of
from structsvm_papk.data.grades import (
    SharedRows,
    check_label_gain,
    gains_of,
    gains_of_checked,
    remark_of_grades,
)
from structsvm_papk.data.piecewise import PiecewiseColumns
from structsvm_papk.data.value_counts import ValueCounts, counts_of_columns
from structsvm_papk.errors import InputError, as_floats, check_choice, whole_number

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


class _Layout(NamedTuple):
    """What stands at which list position: `rows`, `indptr` and `n_pos` of `RankingData`."""

    rows: Array
    indptr: Array
    n_pos: Array


class RankingData:
    """Rows of features with binary relevance, or grades, grouped by user.

    The matrix is kept as it is, in any row order: `rows` lists, user after user and positives
    first, where each list position lives in `X`. Nothing is copied, except a CSR matrix that holds
    an entry more than once or the entries of a row out of order: `X` is then its canonical form,
    with entries summed, and the caller's matrix stays as it was.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features) or scipy CSR
        float64 or float32, C or F order; other types are converted to float64, other sparse
        formats to CSR. CSR with 2**31 or more stored values is supported (SciPy then uses 64-bit
        indices).
    y : array-like of shape (n_rows,)
        Relevance: 0/1, -1/1 or booleans; with `label_gain` grades, whole numbers up to 30.
    indptr : array-like of shape (n_users + 1,)
        User u owns the rows ``indptr[u]:indptr[u + 1]``.
    users : array-like of shape (n_users,), optional
        The users' labels, for messages and reports; by default their indices.
    user_weight : {'equal', 'positives'} or array-like of shape (n_users,), optional
        What each user counts in means over users: the same (the paper), its number of positives,
        or numbers above zero. Only their ratios matter.
    feature_names : sequence of str, optional
        Names of the columns, for messages.
    missing : {None, 'lowest'}
        Whether X may hold NaN: lists for an estimator with the same setting, which fills them.
    label_gain : {'linear', 'exponential'} or sequence of float, optional
        Says that y are grades, and what a grade g counts: g, ``2**g - 1``, or entry g of a
        sequence.

    Attributes
    ----------
    rows : ndarray of int64, shape (n_rows,)
        Row of `X` at each list position.
    indptr : ndarray of int64, shape (n_users + 1,)
        Bounds of each user in list positions.
    n_pos, n_neg : ndarray of int64, shape (n_users,)
        Positives (the first list positions of a user) and negatives (the rest). Of grades all
        above the lowest gain of the list are positives here.
    grades : ndarray of shape (n_rows,), or None
        With `label_gain`, the grade at each list position, by decreasing gain in every list.
    label_gain : str, sequence of float, or None
        What grades count.
    shared : SharedRows or None
        Of the lists of `by_grade`: which of them have their rows in common.
    users : ndarray of shape (n_users,)
    user_weight : ndarray of float64, shape (n_users,), or None
        None where all users count the same.
    feature_names : sequence of str, or None
    column_scale : ndarray of shape (n_features,), or None
        What the columns of `X` are divided by wherever they are multiplied, see `standardized`:
        scores of weights and sums of rows are those of ``X / column_scale``, of which there is no
        copy.
    scale_rule : ScaleRule or None
        By what rule `standardized` chose these numbers.
    with_holes : ndarray of bool, shape (n_features,)
        Columns that hold NaN: lists with such columns have no scores and no risk.
    one_list : bool
        Whether all rows are one list because no groups were given: rows that come later are
        further cases of it, and not a list of their own.

    Raises
    ------
    InputError
        Empty data, lengths that differ, NaN or infinite features, labels that are not binary.
    """

    X: Any
    rows: Array
    indptr: Array
    n_pos: Array
    users: Array
    user_weight: Array | None = None
    feature_names: Sequence[str] | None = None
    column_scale: Array | None = None
    scale_rule: ScaleRule | None = None
    with_holes: Array
    one_list: bool = False
    grades: Array | None = None
    label_gain: str | Sequence[float] | None = None
    shared: SharedRows | None = None
    # these are computed once, when they are first asked for
    _spread: Spread | None = None
    _less_first_rows: ListRows | None = None
    _variation: Variation | None = None
    _fingerprint: str | None = None

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        indptr: ArrayLike,
        users: ArrayLike | None = None,
        user_weight: str | ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        missing: str | None = None,
        *,
        label_gain: str | Sequence[float] | None = None,
    ) -> None:
        X = check_matrix(X, feature_names, missing)
        bounds = validation.check_indptr(indptr, X.shape[0])
        n_users = bounds.size - 1
        labels = np.arange(n_users) if users is None else validation.as_array(users, "users")
        if labels.shape != (n_users,):
            raise InputError(
                f"users has {labels.size} labels, but indptr describes {n_users} users"
            )
        labels = validation.check_ids(labels, n_users, "users")
        user_of_row = np.repeat(np.arange(n_users), np.diff(bounds))
        self._lay_out(X, y, labels, user_of_row, user_weight, feature_names, label_gain)

    @classmethod
    def from_groups(
        cls,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        user_weight: str | ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        missing: str | None = None,
        *,
        label_gain: str | Sequence[float] | None = None,
    ) -> RankingData:
        """Build from one group label per row, of any type and in any order.

        Parameters
        ----------
        X, y, feature_names, missing, label_gain
            As for the class; data frames and series (pandas, polars) are taken as arrays.
        groups : array-like of shape (n_rows,), optional
            User label of each row; without it all rows are one list. Users are kept in sorted
            order of their labels.
        user_weight : {'equal', 'positives'} or array-like of shape (n_users,), optional
            As for the class, in the order of `users`.

        Raises
        ------
        InputError
            As for the class; also missing (None, NaN) group labels.
        """
        X = check_matrix(X, feature_names, missing)
        return cls.from_matrix(X, y, groups, user_weight, feature_names, label_gain)

    @classmethod
    def from_matrix(
        cls,
        X: Any,
        y: ArrayLike,
        groups: ArrayLike | None,
        user_weight: str | ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        label_gain: str | Sequence[float] | None = None,
    ) -> RankingData:
        """`from_groups`, of a matrix that `check_matrix` or `finite_matrix` has returned."""
        users, user_of_row = validation.encode_groups(groups, X.shape[0])
        data = cls.__new__(cls)
        data._lay_out(X, y, users, user_of_row, user_weight, feature_names, label_gain)
        data.one_list = groups is None
        return data

    def _lay_out(self, X, y, users, user_of_row, user_weight, feature_names, label_gain):
        grades = None
        if label_gain is None:
            positive = validation.check_labels(y, X.shape[0], name="labels y")
            layout = _laid_out(positive, user_of_row, users.size)
        else:
            labels = validation.check_grades(y, X.shape[0], name="labels y")
            layout = _laid_out_by_gain(gains_of(labels, label_gain), user_of_row, users.size)
            grades = labels[layout.rows]
            label_gain = check_label_gain(label_gain)
        self.X = X
        self.rows = layout.rows
        self.indptr = layout.indptr
        self.n_pos = layout.n_pos
        self.users = users
        self.user_weight = validation.checked_weight(user_weight, users, layout.n_pos)
        self.feature_names = feature_names
        self.with_holes = columns_with_holes(X)
        self.grades = grades
        self.label_gain = label_gain

    @classmethod
    def from_parts(
        cls,
        *,
        X: Any,
        rows: Array,
        indptr: Array,
        n_pos: Array,
        users: Array,
        user_weight: Array | None = None,
        feature_names: Sequence[str] | None = None,
        grades: Array | None = None,
        label_gain: str | Sequence[float] | None = None,
    ) -> RankingData:
        """Build from the attributes of checked data; nothing is checked again."""
        data = cls.__new__(cls)
        data.X = X
        data.rows = rows
        data.indptr = indptr
        data.n_pos = n_pos
        data.users = users
        data.user_weight = user_weight
        data.feature_names = feature_names
        data.with_holes = np.zeros(X.shape[1], dtype=bool)
        data.grades = grades
        data.label_gain = label_gain
        return data

    def to_change(self, *, same_rows: bool = False) -> RankingData:
        """A copy, X shared, to be given other attributes; nothing is checked.

        What is known of the columns, and which lists share rows, is kept for the `same_rows` of X.
        """
        lists = copy.copy(self)
        lists._fingerprint = None
        if not same_rows:
            lists.shared = None
            lists._spread = None
            lists._less_first_rows = None
            lists._variation = None
        return lists

    @property
    def n_users(self) -> int:
        """Number of users."""
        return self.users.size

    @property
    def n_features(self) -> int:
        """Number of columns of X: with curves of their straight parts and pieces."""
        return self.X.shape[1]

    @property
    def n_columns(self) -> int:
        """Number of columns as they were given."""
        return self.n_features if self.knots is None else self.knots.n_columns

    @property
    def n_entries(self) -> int:
        """Numbers of X that a product with weights reads."""
        return int(self.X.nnz) if self.is_sparse else self.rows.size * self.n_columns

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return bool(sparse.issparse(self.X))

    @property
    def effective_users(self) -> float:
        """``(sum v)^2 / sum v^2`` of the users' weights v: their number, where they are equal."""
        if self.user_weight is None:
            return float(self.n_users)
        return features.effective_number(self.user_weight)

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

    def by_grade(self, needed: int = 1) -> RankingData:
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
    def remarks(self) -> tuple[str, ...]:
        """What was made of the labels, where they are grades."""
        if self.grades is None:
            return ()
        return (remark_of_grades(self.grades, self.label_gain),)

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

    def fingerprint(self) -> str:
        """SHA-256 of the features and lists, see `fingerprint_of`; users' labels do not count.

        It is computed once: `X` must not be changed in place.
        """
        if self._fingerprint is None:
            parts = [self.X, self.rows, self.indptr, self.n_pos]
            if self.user_weight is not None:
                parts.append(self.user_weight)
            if self.column_scale is not None:
                parts.append(self.column_scale)
            if self.grades is not None:
                parts.append(self.gains)
            self._fingerprint = fingerprint_of(*parts)
        return self._fingerprint

    def spread(self) -> Spread:
        """Sizes and spreads of the columns, computed once in a pass over the rows of the lists.

        A column whose values within a user differ by no more than its storage resolves is refused.
        """
        if self.shared is not None:
            return self.shared.lists.spread()
        self.refuse_holes()
        if self._spread is None:
            spread = features.spread_of(self.X, self.rows, self.indptr)
            features.refuse_unresolved(self.X, self.rows, spread, self.feature_names)
            self._spread = spread
        return self._spread

    def list_rows(self, shift_invariant: bool) -> ListRows:
        """The rows to multiply: a copy less each user's first one where columns have large offsets.

        It is made once, for whoever is `shift_invariant`; else these are the rows of `X`.
        """
        if self.shared is not None:
            X, rows = self.multiplied_rows(shift_invariant)
            return ListRows(X, self.shared.handed_out(rows))
        spread = self.spread()
        if not (shift_invariant and spread.has_offsets):
            return ListRows(self.X, self.rows)
        if self._less_first_rows is None:
            self._less_first_rows = features.less_first_rows(
                self.X, self.rows, self.indptr, spread.shifted
            )
        return self._less_first_rows

    def multiplied_rows(self, shift_invariant: bool) -> ListRows:
        """`list_rows`, of rows that are shared each once, in the order of `SharedRows`."""
        if self.shared is None:
            return self.list_rows(shift_invariant)
        X, rows = self.shared.lists.list_rows(shift_invariant)
        return ListRows(X, rows[self.shared.order])

    def deviation(self) -> Array:
        """The pooled within-user standard deviation of each column of X; 0 for a constant one."""
        return self.variation().deviation

    def variation(self) -> Variation:
        """How the columns of X vary, computed once in passes over the rows of the lists."""
        if self.shared is not None:
            return self.shared.lists.variation()
        if self._variation is None:
            spread = self._spread or features.spread_of(self.X, self.rows, self.indptr)
            self._variation = Variation.of(self.X, self.rows, self.indptr, spread)
        return self._variation

    def standardized(self, how: bool | str = "auto") -> RankingData:
        """These lists in units of the columns' deviations within users; constant columns keep 1.

        Whoever divides the columns by `column_scale` beforehand has the same problem.

        Parameters
        ----------
        how : {'auto', True, False}
            True divides each column by its own deviation. 'auto' does so where X is dense, but
            divides columns of two values by half the difference of these, and all columns of a
            sparse X by one number, the root of their mean variance within users (constant columns
            left out). False gives these lists.
        """
        check_standardize(how)
        if not how:
            return self
        self.spread()  # which `variation` needs, and whoever minimises a risk of these lists
        variation = self.variation()
        rule = variation.rule(how)
        return self.scaled_by(variation.scale(rule), rule)

    def with_curves(self, knots: Knots) -> RankingData:
        """These lists, whose columns are straight parts and pieces between some knots.

        See `data.piecewise`; nothing of X is copied.

        Raises
        ------
        InputError
            X is sparse, or has missing values.
        """
        self._refuse_sparse_curves()
        self.spread()  # refuses missing values, and columns whose digits do not suffice
        lists = self.to_change()
        lists.X = PiecewiseColumns(self.X, knots)
        lists.with_holes = np.zeros(knots.n_weights, dtype=bool)
        lists.column_scale = None
        lists.scale_rule = None
        return lists

    def knots_at_quantiles(self, n_pieces: int) -> Knots:
        """Knots that cut each column into pieces of about as many rows of the lists."""
        return knots_of(self.value_counts(), n_pieces)

    def value_counts(self, most: int | None = None) -> list[ValueCounts]:
        """How often each value of each column occurs in the rows of the lists, in `most` bins."""
        self._refuse_sparse_curves()
        return counts_of_columns(self.X, self.rows, most)

    def _refuse_sparse_curves(self) -> None:
        if self.is_sparse:
            raise InputError(
                "curves need a dense X: of a sparse one nearly all values are 0, and lines are "
                "what fits. Give curves=None, or X.toarray()"
            )

    @property
    def knots(self) -> Knots | None:
        """Where the functions of the columns may change their slope; None where X is as it came."""
        return self.X.knots if isinstance(self.X, PiecewiseColumns) else None

    def stiffened(self, stiffness: float) -> RankingData:
        """These lists of curves, whose pieces the penalty holds so many times stronger."""
        if self.knots is None or stiffness == 1.0:
            return self
        scale = stiffened_scale(self.knots, self.column_scale, stiffness)
        return self.scaled_by(scale, self.scale_rule)

    def deviations_of_curves(self, w: Array, knots: Knots) -> Array:
        """Pooled deviation within users of what the first columns add to the scores."""
        X = self.X
        first = PiecewiseColumns(X.X[:, : knots.n_columns], knots, X.cells[:, : knots.n_columns])
        return first.deviations_of_curves(self.rows, self.indptr, w)

    def turned(self, columns: Array) -> RankingData:
        """These lists with the sign of some columns turned, a mask."""
        scale = np.ones(self.n_features) if self.column_scale is None else self.column_scale
        return self.scaled_by(np.where(columns, -scale, scale), self.scale_rule)

    def scaled_by(
        self, column_scale: Array | None, scale_rule: ScaleRule | None = None
    ) -> RankingData:
        """These lists with their columns divided by other numbers than now; nothing is copied.

        A negative number turns the sign of its column.
        """
        lists = self.to_change(same_rows=True)
        lists.column_scale = column_scale
        lists.scale_rule = scale_rule
        return lists

    def divided(self, values: Array) -> Array:
        """Weights in the units of `X`, or sums of rows of `X` in those of the scaled columns."""
        if self.column_scale is None:
            return values
        return values / self.column_scale

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions, shape (n_positions,), float64.

        Rows with the same values have the same score, see `features.reported_scores`.
        """
        self.refuse_holes()
        w = self.divided(checked_weights(w, self.n_features))
        return features.reported_scores(self.X, w, self.rows)

    def refuse_holes(self) -> None:
        """Refuse lists whose missing values nobody has filled."""
        if self.with_holes.any():
            refuse_non_finite(self.X, self.feature_names)

    def rmatvec(self, coef: Array) -> Array:
        """``X.T @ coef`` for coefficients at the list positions, shape (n_features,)."""
        out = np.zeros((1, self.n_features))
        features.add_weighted_rows(self.X, self.rows, coef, self.indptr[[0, -1]], out)
        return self.divided(out[0])

    def weighted(self, user_weight: str | ArrayLike | None) -> RankingData:
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

    def usable(self, needed: int, policy: str = "exclude", setting: str = "k") -> RankingData:
        """The users with a positive and as many negatives as needed: k, the training depth, or 1.

        `X` is shared; the object itself where no user is left out.

        Raises
        ------
        InputError
            needed < 1; no user remains; with ``policy='raise'``, some user cannot be used.
        """
        return self.without(self.checked_exclusions(needed, policy, setting))

    def without(self, excluded: Exclusions) -> RankingData:
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

    def with_own_rows(self) -> RankingData:
        """The same lists with a copy of their own rows of X, in the order of the lists."""
        users = np.arange(self.n_users)
        return self.rearranged(users, self.positions_of(users))

    def positions_of(self, users: Array, keys: Array | None = None) -> Array:
        """List positions of some users, one after the other; of equal gains by their `keys`."""
        sizes = self.sizes[users]
        place = np.repeat(np.arange(users.size), sizes)
        before = np.cumsum(sizes) - sizes
        positions = np.arange(sizes.sum()) + (self.indptr[users] - before)[place]
        if keys is None:
            return positions
        return positions[np.lexsort((keys[positions], -self.gains[positions], place))]

    def rearranged(self, users: Array, positions: Array) -> RankingData:
        """Some users in this order, with a copy of their rows of X at `positions_of` them."""
        lists = self.to_change()
        lists.X = self.X[self.rows[positions]]
        if isinstance(lists.X, np.ndarray):
            lists.X = np.ascontiguousarray(lists.X)
        lists.rows = np.arange(positions.size)
        lists.indptr = np.concatenate([[0], np.cumsum(self.sizes[users])])
        lists.n_pos = self.n_pos[users]
        lists.users = self.users[users]
        if self.user_weight is not None:
            lists.user_weight = self.user_weight[users]
        if self.grades is not None:
            lists.grades = self.grades[positions]
        return lists

    def of_matrix(self, X: Any) -> RankingData:
        """These lists with other columns, without names; X has the same rows."""
        lists = self.to_change()
        lists.X = X
        lists.feature_names = None
        lists.with_holes = columns_with_holes(X)
        lists.column_scale = None
        lists.scale_rule = None
        return lists

    def subset(self, keep: Array) -> RankingData:
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

    def one_of(self, n: int) -> RankingData:
        """About one of n users, by the digests of their lists: the same ones in any partition."""
        return self if n <= 1 else self.subset(digests_of_lists(self) < 2**64 // n)

    def some_of(self, n: int) -> RankingData:
        """`one_of` n users; of fewer, where those are none."""
        some = self.one_of(n)
        return some if some.n_users else self.some_of(n // 2)

    def at_positions(self, keep: Array) -> RankingData:
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

    def _part(self, *, positions: Array, users: Array, sizes: Array, n_pos: Array) -> RankingData:
        """Restrict to list positions and users, two masks.

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
                "column of users (--group, groups=) the right one?"
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


def _laid_out(positive: Array, user_of_row: Array, n_users: int) -> _Layout:
    """Rows sorted by user, positives first, else in the order they are given."""
    sizes = np.bincount(user_of_row, minlength=n_users)
    # one stable sort of whole numbers: 2u for the positives of user u, 2u + 1 for the negatives
    order = 2 * user_of_row + ~positive
    return _Layout(
        rows=np.argsort(order, kind="stable"),
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        n_pos=np.bincount(user_of_row[positive], minlength=n_users),
    )


def _laid_out_by_gain(gains: Array, user_of_row: Array, n_users: int) -> _Layout:
    """Rows sorted by user and decreasing gain; positives are all above a user's lowest gain."""
    rows = np.lexsort((-gains, user_of_row))
    sizes = np.bincount(user_of_row, minlength=n_users)
    lowest = np.full(n_users, np.inf)
    np.minimum.at(lowest, user_of_row, gains)
    positive = gains > lowest[user_of_row]
    return _Layout(
        rows=rows,
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        n_pos=np.bincount(user_of_row[positive], minlength=n_users),
    )


def checked_weights(w: ArrayLike, n_features: int) -> Array:
    """Weights of the features, one for each, contiguous."""
    w = np.ascontiguousarray(as_floats("w", w))
    if w.shape != (n_features,):
        raise InputError(f"w has shape {w.shape}, but X has {n_features} features")
    return w


def check_policy(policy: str) -> None:
    """Refuse an unknown policy about users that cannot be used."""
    check_choice("policy", policy, POLICIES)


def refusal(first: str, excluded: Exclusions) -> str:
    """What the policy 'raise' says; `first` tells of the first user that cannot be used."""
    return f"{first} ({excluded}); use policy='exclude' to go on"
