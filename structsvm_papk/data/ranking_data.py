"""Lists with the columns of their rows: `Parts`, whose one part in memory is `RankingData`.

Features with binary relevance or grades, and which rows belong to which user.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.columns.base import Columns, ColumnsBeside, ListRows, Spread, Variation
from structsvm_papk.data.columns.checks import check_matrix, columns_of, refuse_non_finite
from structsvm_papk.data.columns.knots import Knots
from structsvm_papk.data.columns.pieces import PiecewiseColumns
from structsvm_papk.data.columns.units import Units, check_standardize
from structsvm_papk.data.columns.value_counts import ValueCounts, counts_of_columns
from structsvm_papk.data.content import digests_of_lists, fingerprint_of
from structsvm_papk.data.grades import check_label_gain, gains_of, remark_of_grades
from structsvm_papk.data.lists import Lists, laid_out, laid_out_by_gain
from structsvm_papk.errors import InputError, as_floats


class Parts(ABC):
    """Lists with the columns of their rows: one part in memory, or many in files and on workers.

    What a fit asks of them, wherever they are. A risk is the mean over the lists of all parts.

    Attributes
    ----------
    units : Units
        What the columns are divided by.
    label_gain : {'linear', 'exponential'}, sequence of float, or None
        What grades count; None where labels are binary.
    feature_names : sequence of str, or None
    """

    units: Units = Units()
    label_gain: str | Sequence[float] | None = None
    feature_names: Sequence[str] | None = None

    @property
    @abstractmethod
    def n_columns(self) -> int:
        """Number of columns as they were given."""

    @property
    @abstractmethod
    def knots(self) -> Knots | None:
        """Where curves may bend; None where columns are lines."""

    @property
    @abstractmethod
    def is_sparse(self) -> bool:
        """Whether zeros are not stored."""

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users."""

    @property
    @abstractmethod
    def effective_users(self) -> float:
        """``(sum v)^2 / sum v^2`` of the users' weights v: their number, where they are equal."""

    @property
    @abstractmethod
    def total_positives(self) -> float:
        """Positives of all users together."""

    @property
    @abstractmethod
    def most_negatives(self) -> int:
        """Negatives of the user with the most of them."""

    @property
    @abstractmethod
    def classes(self) -> Array:
        """The grades that occur; of binary labels False and True."""

    @abstractmethod
    def variation(self) -> Variation:
        """How the columns vary within the lists."""

    @abstractmethod
    def stiffness(self, stiffness: float) -> Array:
        """How many times stronger the penalty is on each weight, see `Columns.stiffness`."""

    @abstractmethod
    def in_units(self, units: Units) -> Self:
        """The same in other units than now; nothing is copied."""

    @abstractmethod
    def term_deviations(self, w: Array) -> Array:
        """Deviation within lists of what each column adds to the scores, for weights of X."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What was made of the labels, where they are grades."""
        if self.label_gain is None:
            return ()
        return (remark_of_grades(self.classes, self.label_gain),)

    def deviation(self) -> Array:
        """The pooled within-user standard deviation of each column; 0 for a constant one."""
        return self.variation().deviation

    def standardized(self, how: bool | str = "auto") -> Self:
        """The same in units of the columns' deviations within users; constant columns keep 1.

        Whoever divides the columns by `units.scale` beforehand has the same problem.

        Parameters
        ----------
        how : {'auto', True, False}
            True divides each column by its own deviation. 'auto' does so where X is dense, but
            divides columns of two values by half the difference of these, and all columns of a
            sparse X by one number, the root of their mean variance within users (constant columns
            left out). False leaves the columns as they are.
        """
        check_standardize(how)
        return self.in_units(Units.of(self.variation(), how)) if how else self

    def stiffened(self, stiffness: float) -> Self:
        """The same, where the penalty is so many times stronger on pieces than on lines."""
        stiff = self.stiffness(stiffness)
        if (stiff == 1.0).all():
            return self
        return self.in_units(self.units.times(np.sqrt(stiff)))

    def turned(self, columns: Array) -> Self:
        """The same with the sign of some columns turned, a mask."""
        return self.in_units(self.units.times(np.where(columns, -1.0, 1.0)))


class RankingData(Lists, Parts):
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
    columns : Columns
        The storage of the features, see `data.columns`: everything about X is asked there.
    units : Units
        What the columns are divided by wherever they are multiplied, see `standardized`: scores of
        weights and sums of rows are those of ``X / units.scale``, of which there is no copy.
    with_holes : ndarray of bool, shape (n_features,)
        Columns that hold NaN: lists with such columns have no scores and no risk.
    levels : mapping of int to tuple
        The levels of each column that was text or a category: X holds their places.
    one_list : bool
        Whether all rows are one list because no groups were given: rows that come later are
        further cases of it, and not a list of their own.

    Raises
    ------
    InputError
        Empty data, lengths that differ, NaN or infinite features, labels that are not binary.
    """

    columns: Columns
    with_holes: Array
    levels: Mapping[int, tuple[Any, ...]] = {}
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
        validation.warn_of_other_order(X=X, y=y, groups=groups)
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
            layout = laid_out(positive, user_of_row, users.size)
        else:
            labels = validation.check_grades(y, X.shape[0], name="labels y")
            layout = laid_out_by_gain(gains_of(labels, label_gain), user_of_row, users.size)
            grades = labels[layout.rows]
            label_gain = check_label_gain(label_gain)
        self.columns = columns_of(X)
        self.rows = layout.rows
        self.indptr = layout.indptr
        self.n_pos = layout.n_pos
        self.users = users
        self.user_weight = validation.checked_weight(user_weight, users, layout.n_pos)
        self.feature_names = feature_names
        self.with_holes = self.columns.with_missing()
        self.grades = grades
        self.label_gain = label_gain

    @classmethod
    def from_parts(
        cls,
        *,
        columns: Columns,
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
        data.columns = columns
        data.rows = rows
        data.indptr = indptr
        data.n_pos = n_pos
        data.users = users
        data.user_weight = user_weight
        data.feature_names = feature_names
        data.with_holes = np.zeros(columns.n_columns, dtype=bool)
        data.grades = grades
        data.label_gain = label_gain
        return data

    def to_change(self, *, same_rows: bool = False) -> RankingData:
        """A copy, features shared, to be given other attributes; nothing is checked.

        What is known of the columns, and which lists share rows, is kept for the `same_rows`.
        """
        lists = super().to_change(same_rows=same_rows)
        lists._fingerprint = None
        if not same_rows:
            lists._spread = None
            lists._less_first_rows = None
            lists._variation = None
        return lists

    def with_columns(
        self, columns: Columns, feature_names: Sequence[str] | None = None
    ) -> RankingData:
        """These lists with other columns for the same rows, as they are."""
        lists = self.to_change()
        lists.columns = columns
        lists.feature_names = feature_names
        lists.units = Units()
        lists.with_holes = columns.with_missing()
        lists.levels = {}
        return lists

    def beside(self, columns: Columns, feature_names: Sequence[str]) -> RankingData:
        """These lists with further columns behind their own, of which nothing is computed anew.

        `feature_names` are those of all; none of the further columns has an offset.
        """
        lists = self.with_columns(ColumnsBeside([self.columns, columns]), feature_names)
        spread = columns.spread(self.rows, self.indptr)
        variation = columns.variation(self.rows, self.indptr, spread)
        lists._spread = Spread.beside([self.spread(), spread])
        lists._variation = Variation.beside([self.variation(), variation])
        return lists

    @property
    def X(self) -> Array | sparse.csr_array:
        """The matrix of a dense or sparse storage."""
        return self.columns.X

    @property
    def n_features(self) -> int:
        """Number of weights: of a matrix one for each column."""
        return self.columns.n_weights

    @property
    def n_columns(self) -> int:
        """Number of columns as they were given."""
        return self.columns.n_columns

    @property
    def knots(self) -> Knots | None:
        """Where curves may bend; None where columns are lines."""
        return self.columns.knots

    @property
    def n_entries(self) -> int:
        """Numbers that a product with weights reads, of dense columns in the rows of the lists."""
        if self.is_sparse:
            return self.columns.n_entries
        return self.rows.size * (self.columns.n_entries // max(self.columns.n_rows, 1))

    @property
    def is_sparse(self) -> bool:
        """Whether X is a sparse matrix."""
        return self.columns.is_sparse

    def fingerprint(self) -> str:
        """SHA-256 of the features and lists, see `fingerprint_of`; users' labels do not count.

        It is computed once: `X` must not be changed in place.
        """
        if self._fingerprint is None:
            parts = [*self.columns.content(), self.rows, self.indptr, self.n_pos]
            if self.user_weight is not None:
                parts.append(self.user_weight)
            if self.units.scale is not None:
                parts.append(self.units.scale)
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
            spread = self.columns.spread(self.rows, self.indptr)
            self.columns.refuse_unresolved(self.rows, spread, self.feature_names)
            self._spread = spread
        return self._spread

    def list_rows(self, shift_invariant: bool) -> ListRows:
        """The rows to multiply: a copy less each user's first one where columns have large offsets.

        It is made once, for whoever is `shift_invariant`; else these are the rows as they are.
        """
        if self.shared is not None:
            columns, rows = self.multiplied_rows(shift_invariant)
            return ListRows(columns, self.shared.handed_out(rows))
        spread = self.spread()
        if not (shift_invariant and spread.has_offsets):
            return ListRows(self.columns, self.rows)
        if self._less_first_rows is None:
            self._less_first_rows = self.columns.less_first_rows(self.rows, self.indptr, spread)
        return self._less_first_rows

    def multiplied_rows(self, shift_invariant: bool) -> ListRows:
        """`list_rows`, of rows that are shared each once, in the order of `SharedRows`."""
        if self.shared is None:
            return self.list_rows(shift_invariant)
        columns, rows = self.shared.lists.list_rows(shift_invariant)
        return ListRows(columns, rows[self.shared.order])

    def variation(self) -> Variation:
        """How the columns vary, computed once in passes over the rows of the lists."""
        if self.shared is not None:
            return self.shared.lists.variation()
        if self._variation is None:
            spread = self.spread()
            self._variation = self.columns.variation(self.rows, self.indptr, spread)
        return self._variation

    def stiffness(self, stiffness: float) -> Array:
        """How many times stronger the penalty is on each weight, see `Columns.stiffness`."""
        return self.columns.stiffness(stiffness)

    def term_deviations(self, w: Array) -> Array:
        """Deviation within lists of what each column adds to the scores, for weights of X."""
        return self.columns.term_deviations(w, self.rows, self.indptr, self.deviation())

    def in_units(self, units: Units) -> RankingData:
        """These lists with their columns divided by other numbers than now; nothing is copied."""
        lists = self.to_change(same_rows=True)
        lists.units = units
        return lists

    def with_curves(self, knots: Knots) -> RankingData:
        """These lists, whose columns are curves between some knots; nothing of X is copied.

        Raises
        ------
        InputError
            X is sparse, or has missing values.
        """
        self.refuse_sparse_curves()
        self.spread()  # refuses missing values, and columns whose digits do not suffice
        return self.with_columns(PiecewiseColumns(self.X, knots), self.feature_names)

    def value_counts(
        self, most: int | None = None, columns: Array | None = None
    ) -> Iterator[ValueCounts]:
        """How often each value of columns, or of some, occurs in the rows of the lists.

        `most`: in so many bins at most.
        """
        self.refuse_sparse_curves()
        return counts_of_columns(self.X, self.rows, most, columns)

    def refuse_sparse_curves(self) -> None:
        """Refuse a sparse X, whose columns are lines."""
        if self.is_sparse:
            raise InputError(
                "curves need a dense X: of a sparse one nearly all values are 0, and lines are "
                "what fits. Give curves=None, or X.toarray()"
            )

    def scores(self, w: Array) -> Array:
        """``X @ w`` at the list positions, shape (n_positions,), float64.

        Rows with the same values have the same score, see `Columns.reported_scores`.
        """
        self.refuse_holes()
        w = self.units.of_columns(checked_weights(w, self.n_features))
        return self.columns.reported_scores(w, self.rows)

    def refuse_holes(self) -> None:
        """Refuse lists whose missing values nobody has filled, and columns of levels."""
        if self.with_holes.any():
            refuse_non_finite(self.X, self.feature_names)
        if self.levels:
            raise InputError(
                f"{len(self.levels)} columns are text or categories, which have no scores before a "
                "ranker has given them weights: give the lists to PAPKRanker.fit_lists"
            )

    def rmatvec(self, coef: Array) -> Array:
        """``X.T @ coef`` for coefficients at the list positions, shape (n_features,)."""
        out = np.zeros((1, self.n_features))
        self.columns.add_weighted_rows(self.rows, coef, self.indptr[[0, -1]], out)
        return self.units.of_columns(out[0])

    def with_own_rows(self) -> RankingData:
        """The same lists with a copy of their own rows in the order of the lists."""
        users = np.arange(self.n_users)
        return self.rearranged(users, self.positions_of(users))

    def rearranged(self, users: Array, positions: Array) -> RankingData:
        """Some users in this order, with a copy of their rows of X at `positions_of` them."""
        lists = self._part(positions=positions, users=users, sizes=self.sizes, n_pos=self.n_pos)
        lists.columns = self.columns.take(lists.rows)
        lists.rows = np.arange(positions.size)
        return lists

    def one_of(self, n: int) -> RankingData:
        """About one of n users, by the digests of their lists: the same ones in any partition."""
        return self if n <= 1 else self.subset(digests_of_lists(self) < 2**64 // n)

    def some_of(self, n: int) -> RankingData:
        """`one_of` n users; of fewer, where those are none."""
        some = self.one_of(n)
        return some if some.n_users else self.some_of(n // 2)


def checked_weights(w: ArrayLike, n_features: int) -> Array:
    """Weights of the features, one for each, contiguous."""
    w = np.ascontiguousarray(as_floats("w", w))
    if w.shape != (n_features,):
        raise InputError(f"w has shape {w.shape}, but X has {n_features} features")
    return w
