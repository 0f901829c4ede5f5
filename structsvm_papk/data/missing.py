"""Missing values, filled inside each list.

A missing value (NaN) takes the lowest value of its column in its list, and a further column for
each one with missing values says whether the value is there, 1 or 0. Scores of retrievers that
return their best hundred are the usual case: what one did not return, it ranked below. ("There" and
not "missing": weights that have to be >= 0 then count for what was returned.)

A list that has nothing in a column gets 0 there. Any other number would do: it is the same for all
rows of the list, so it moves none of them past another.

Where all rows are one list, those that are scored later are not this list but further cases of it,
a few at a time or one. Their missing values are filled with the lowest values of training, see
`LowestInTraining`, and a score does not depend on which cases are asked for together.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.curves import Knots
from structsvm_papk.data.features import check_missing
from structsvm_papk.data.piecewise import PiecewiseColumns
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.validation import groups_or_none
from structsvm_papk.errors import InputError


class Completed(NamedTuple):
    """Columns without holes, and a mask of where they were: None where none were looked for."""

    X: Any
    holes: Array | None

    def columns(self, knots: Knots | None) -> Any:
        """What is multiplied by `weights`: the columns, as lines or curves, and those of holes."""
        X = self.X
        if self.holes is not None:
            X = np.hstack([X, self.holes])
        if knots is None:
            return X
        if sparse.issparse(X):
            X = X.toarray()
        return PiecewiseColumns(X, knots.with_lines(X.shape[1] - knots.n_columns))

    def weights(self, w: Array, missing_coef: Array | None) -> Array:
        """The weights of `columns`: those of pieces come last."""
        if missing_coef is None:
            return w
        n_features = missing_coef.size
        return np.concatenate([w[:n_features], missing_coef, w[n_features:]])

    def contributions(self, knots: Knots | None, w: Array, missing_coef: Array | None) -> Array:
        """What each column adds to the score of each row."""
        added: Array
        if knots is not None:
            added = PiecewiseColumns(self.X, knots).contributions(w)
        elif sparse.issparse(self.X):
            added = self.X.multiply(w).toarray()
        else:
            added = self.X * w
        return added if self.holes is None else added + self.holes * missing_coef


@dataclass(frozen=True)
class LowestInTraining:
    """The lowest value of each column of one list in training, which fills holes of further rows.

    Attributes
    ----------
    lowest : ndarray of shape (n_features,)
        0 where nothing was there.
    """

    lowest: Array

    @classmethod
    def of(cls, lists: RankingData, missing: str | None) -> Self | None:
        """That of lists that are one; None for several lists, or where nothing is filled.

        Raises
        ------
        InputError
            X is sparse.
        """
        if not lists.one_list or missing is None:
            return None
        _refuse_sparse(lists.X, missing)
        return cls(_lowest(lists.X, lists.rows, np.zeros(1, dtype=int))[0])

    def completed(self, X: Array) -> Completed:
        """Rows filled as in training."""
        holes = np.isnan(X)
        return Completed(np.where(holes, self.lowest, X).astype(X.dtype, copy=False), holes)


def completed_rows(
    X: Any, groups: Any, missing: str | None = None, one_list: LowestInTraining | None = None
) -> Completed:
    """A checked matrix, filled inside each user's rows, or as `one_list` was.

    Raises
    ------
    InputError
        With `missing`: no groups, or X is sparse.
    """
    check_missing(missing)
    if missing is None:
        return Completed(X, None)
    _refuse_sparse(X, missing)
    if one_list is not None:
        return one_list.completed(X)
    if groups is None:
        raise InputError(
            f"missing={missing!r} fills X inside each user's list: give groups=, the user of each "
            "row, or 'one_list'"
        )
    users = groups_or_none(groups)
    codes = np.zeros(X.shape[0], dtype=np.int64)
    if users is not None:
        _, codes = validation.encode(validation.check_ids(users, X.shape[0]))
    rows = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
    lowest = _lowest(X, rows, starts)  # a row each user, in the order of the codes
    holes = np.isnan(X)
    return Completed(np.where(holes, lowest[codes], X), holes)


def filled_lists(
    lists: RankingData,
    missing: str | None = None,
    columns: Array | None = None,
    one_list: LowestInTraining | None = None,
) -> RankingData:
    """Lists with the holes filled inside each of them; X is copied where there are any.

    With `missing`, columns that say "is there" come behind the others, one for each of `columns`:
    by default those with holes, see `RankingData.with_holes`. `one_list`: the lowest values of
    training, where that was one list.
    """
    check_missing(missing)
    if missing is None:
        lists.refuse_holes()
        return lists
    _refuse_sparse(lists.X, missing)
    if columns is None:
        columns = np.flatnonzero(lists.with_holes)
    if not (columns.size or lists.with_holes.any()):
        return lists
    if one_list is None:
        one_list = LowestInTraining.of(lists, missing)
    if one_list is not None:
        completed = one_list.completed(lists.X)
        there = ~np.isnan(lists.X[:, columns])
        X = np.hstack([completed.X, there.astype(completed.X.dtype)])
    else:
        X = _filled(lists, columns)
    filled = lists.to_change()
    filled.X = X
    filled.with_holes = np.zeros(X.shape[1], dtype=bool)
    names = lists.feature_names
    if names is not None:
        filled.feature_names = [*names, *(f"{names[c]} is there" for c in columns.tolist())]
    return filled


def _refuse_sparse(X: Any, missing: str) -> None:
    """Refuse a sparse matrix, in which nothing can be missing."""
    if sparse.issparse(X):
        raise InputError(
            f'missing="{missing}" needs a dense X: of a sparse one all that is not stored is 0, '
            "and not missing. Give X.toarray(), or leave the setting out"
        )


def _filled(lists: RankingData, columns: Array) -> Array:
    """X with the lowest of column and list in its holes, and a column "is there" for some."""
    X = lists.X
    user_of_row = np.full(X.shape[0], lists.n_users)  # rows of no list: one that nobody reads
    user_of_row[lists.rows] = lists.user_of_position
    n_features = X.shape[1]
    holes = np.isnan(X)
    out = np.empty((X.shape[0], n_features + columns.size), X.dtype)
    out[:, :n_features] = X
    out[:, n_features:] = ~holes[:, columns]
    users = np.flatnonzero(lists.sizes)  # who have rows
    lowest = np.zeros((lists.n_users + 1, n_features))  # the last: of the rows of no list
    lowest[users] = _lowest(X, lists.rows, lists.indptr[users])
    rows, columns_of_holes = np.nonzero(holes)
    out[rows, columns_of_holes] = lowest[user_of_row[rows], columns_of_holes]
    return out


def _lowest(X: Array, rows: Array, starts: Array) -> Array:
    """The lowest of each column in each list, the rows of which begin at `starts`; 0: none."""
    lowest = np.fmin.reduceat(X[rows], starts, axis=0)
    return np.where(np.isnan(lowest), 0.0, lowest)
