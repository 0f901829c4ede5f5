"""Columns inside each user's list: a scale of their own, and what stands in for missing values.

First a column is scaled by what is there; then every hole takes the lowest of its column in its
list, and a further column for each one with holes says whether the value is there, 1 or 0. Scores
of retrievers that return their best hundred are the usual case: what one did not return, it ranked
below. ("There" and not "missing": weights that have to be >= 0 then count for what was returned.)

A list that has nothing in a column gets 0 there. Any other number would do: it is the same for all
rows of the list, so it moves none of them past another.

Where all rows are one list, those that are scored later are not this list but further cases of it,
a few at a time or one. Their columns are scaled and filled by what the list was in training, see
`OneListColumns`, and a score does not depend on which cases are asked for together.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.features import check_missing
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.validation import groups_or_none
from structsvm_papk.errors import InputError, check_choice

USER_SCALINGS = ("standardize", "rank", "minmax")
MOST_KNOTS = 256  # of the ranks of one list: every distinct value where there are no more
RESOLVED = 16  # of the last digits: a column that varies by less is constant


def check_user_scaling(how: Any) -> str | None:
    """The name of a scaling, or None; all else is refused."""
    if isinstance(how, list | tuple):
        raise InputError(f"user_scaling={how!r}: one is needed; PAPKRankerCV tries several")
    if how is not None:
        check_choice("user_scaling", how, USER_SCALINGS)
    return how


class Completed(NamedTuple):
    """Columns without holes, and a mask of where they were: None where none were looked for."""

    X: Any
    holes: Array | None

    @property
    def matrix(self) -> Any:
        """What is multiplied by `weights`: the columns, and behind each other the holes of all."""
        return self.X if self.holes is None else np.hstack([self.X, self.holes])

    def weights(self, coef: Array, missing_coef: Array | None) -> Array:
        """The weights of `matrix`."""
        return coef if missing_coef is None else np.concatenate([coef, missing_coef])


@dataclass(frozen=True)
class OneListColumns:
    """What the columns of one list were in training: by it further rows are scaled and filled.

    Attributes
    ----------
    lowest : ndarray of shape (n_features,)
        What a hole counts: the lowest of its column, as scaled; 0 where nothing was there.
    ranks : tuple of ndarray of shape (n_knots, 2), or None
        Of each column values and their ranks, ``(rank - (n + 1) / 2) / n`` between -1/2 and 1/2,
        ties with their mean rank. Between two knots the rank is linear, beyond the ends constant.
        Every distinct value is a knot, or of more than `MOST_KNOTS` so many at even ranks. None:
        the columns stay as they are.
    """

    lowest: Array
    ranks: tuple[Array, ...] | None = None

    @classmethod
    def of(cls, lists: RankingData, how: str | None, missing: str | None) -> Self | None:
        """Those of lists that are one; None for several lists, or where nothing is to be done.

        Raises
        ------
        InputError
            A scaling that moves all rows of one list alike, or X is sparse.
        """
        if not lists.one_list or (how is None and missing is None):
            return None
        if how is not None and how != "rank":
            raise InputError(
                f"user_scaling={how!r} of one list only divides and shifts its columns, which "
                "standardize does: leave it out, or give 'rank'"
            )
        _refuse_sparse(lists.X, how, missing)
        ranks = None if how is None else tuple(map(_knots, lists.X.T))
        if ranks is None:
            return cls(_lowest(lists.X, lists.rows, np.zeros(1, dtype=int))[0])
        return cls(np.array([column[0, 1] for column in ranks]), ranks)

    def completed(self, X: Array) -> Completed:
        """Rows scaled and filled as in training."""
        scaled = X
        if self.ranks is not None:
            scaled = np.empty(X.shape, X.dtype)
            for column, knots in enumerate(self.ranks):
                scaled[:, column] = np.interp(X[:, column], knots[:, 0], knots[:, 1])
        holes = np.isnan(X)
        return Completed(np.where(holes, self.lowest, scaled).astype(X.dtype, copy=False), holes)


def _knots(column: Array) -> Array:
    """Values of a column and their ranks, shape (n_knots, 2); NaN does not count."""
    values, counts = np.unique(column[~np.isnan(column)].astype(float), return_counts=True)
    if not values.size:
        return np.zeros((1, 2))
    below = np.cumsum(counts) - counts
    ranks = (below + (counts + 1) / 2 - (counts.sum() + 1) / 2) / counts.sum()
    if values.size > MOST_KNOTS:
        even = np.searchsorted(ranks, np.linspace(ranks[0], ranks[-1], MOST_KNOTS))
        kept = np.unique(even)
        values = values[kept]
        ranks = ranks[kept]
    return np.column_stack([values, ranks])


def completed_rows(
    X: Any,
    groups: Any,
    how: str | None,
    missing: str | None,
    one_list: OneListColumns | None = None,
) -> Completed:
    """A checked matrix, scaled and filled inside each user's rows, or as `one_list` was.

    Raises
    ------
    InputError
        No groups, or X is sparse: its zeros would not stay zeros.
    """
    how = check_user_scaling(how)
    if how is None and missing is None:
        return Completed(X, None)
    _refuse_sparse(X, how, missing)
    if one_list is not None:
        completed = one_list.completed(X)
        return completed if missing is not None else Completed(completed.X, None)
    if groups is None:
        setting = f"user_scaling={how!r} scales"
        if missing is not None:
            setting = f"missing={missing!r} fills"
        raise InputError(
            f"{setting} X inside each user's list: give groups=, the user of each row, or "
            "'one_list'"
        )
    users = groups_or_none(groups)
    codes = np.zeros(X.shape[0], dtype=np.int64)
    if users is not None:
        _, codes = validation.encode(validation.check_ids(users, X.shape[0]))
    scaled = X if how is None else _scaled(X, codes, how)
    if missing is None:
        return Completed(scaled, None)
    rows = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
    lowest = _lowest(scaled, rows, starts)  # a row each user, in the order of the codes
    holes = np.isnan(scaled)
    return Completed(np.where(holes, lowest[codes], scaled), holes)


def scaled_rows(X: Any, groups: Any, how: str | None) -> Any:
    """A checked matrix with each column scaled inside each user's rows, as `UserScaler` says."""
    return completed_rows(X, groups, how, None).X


def scaled_lists(
    lists: RankingData,
    how: str | None,
    missing: str | None = None,
    columns: Array | None = None,
    one_list: OneListColumns | None = None,
) -> RankingData:
    """Lists with the columns scaled and filled inside each of them; X is copied where they are.

    With `missing`, columns that say "is there" come behind the others, one for each of `columns`:
    by default those with holes, see `RankingData.with_holes`. `one_list`: what the columns were in
    training, where that was one list.
    """
    how = check_user_scaling(how)
    check_missing(missing)
    _refuse_sparse(lists.X, how, missing)
    if missing is None:
        lists.refuse_holes()
        columns = np.zeros(0, dtype=int)
    elif columns is None:
        columns = np.flatnonzero(lists.with_holes)
    if how is None and not (columns.size or lists.with_holes.any()):
        return lists
    if one_list is None:
        one_list = OneListColumns.of(lists, how, missing)
    if one_list is not None:
        completed = one_list.completed(lists.X)
        there = ~np.isnan(lists.X[:, columns])
        X = np.hstack([completed.X, there.astype(completed.X.dtype)])
    else:
        X = _scaled_and_filled(lists, how, missing, columns)
    names = lists.feature_names
    if names is not None:
        names = [*names, *(f"{names[c]} is there" for c in columns.tolist())]
    return RankingData.from_parts(
        X=X,
        rows=lists.rows,
        indptr=lists.indptr,
        n_pos=lists.n_pos,
        users=lists.users,
        user_weight=lists.user_weight,
        feature_names=names,
        one_list=lists.one_list,
        grades=lists.grades,
        label_gain=lists.label_gain,
    )


def _refuse_sparse(X: Any, how: str | None, missing: str | None) -> None:
    """Refuse a sparse matrix where columns are scaled or filled."""
    if not sparse.issparse(X):
        return
    if missing is not None:
        raise InputError(
            'missing="lowest" needs a dense X: of a sparse one all that is not stored is 0, and '
            "not missing. Give X.toarray(), or leave the setting out"
        )
    if how is not None:
        raise InputError(
            "user_scaling needs a dense X: zeros of a sparse one would not stay zeros. Give "
            "X.toarray(), or standardize=True alone, which divides columns and keeps zeros"
        )


def _scaled_and_filled(
    lists: RankingData, how: str | None, missing: str | None, columns: Array
) -> Array:
    """X of several lists, scaled and filled inside each, and columns "is there" for some."""
    X = lists.X
    user_of_row = np.full(X.shape[0], lists.n_users)  # rows of no list: one that nobody reads
    user_of_row[lists.rows] = lists.user_of_position
    if how is not None:
        X = _scaled(X, user_of_row, how)
    return X if missing is None else _filled(X, columns, lists, user_of_row)


def _filled(X: Array, columns: Array, lists: RankingData, user_of_row: Array) -> Array:
    """X with the lowest of column and list in its holes, and a column "is there" for some."""
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


def _scaled(X: Any, codes: Array, how: str) -> Array:
    """Each column scaled inside each user's rows by what is there; NaN stays."""
    import pandas as pd

    frame = pd.DataFrame(X).astype(np.float64)
    by_user = frame.groupby(codes)
    if how == "rank":
        n_values = by_user.transform("count").to_numpy()
        scaled = by_user.rank().to_numpy() - (n_values + 1) / 2  # around 0
        scaled /= np.maximum(n_values, 1)
        return np.ascontiguousarray(scaled, dtype=X.dtype)
    resolved = frame.abs().groupby(codes).transform("max") * np.finfo(X.dtype).eps * RESOLVED
    # halves do not overflow; from the user's first row on, so that large offsets do not cancel
    origin = by_user.transform("first" if how == "standardize" else "min")
    distance = frame * 0.5 - origin * 0.5
    largest = distance.abs().groupby(codes).transform("max")
    # from 0 to 1 for minmax; division by infinity makes 0 of a constant column
    distance /= largest.where(largest > resolved, np.inf)
    if how == "minmax":
        return np.ascontiguousarray(distance.to_numpy(), dtype=X.dtype)
    centred = distance - distance.groupby(codes).transform("mean")
    deviation = distance.groupby(codes).transform("std", ddof=0)
    scaled = centred / deviation.where(deviation > 0, np.inf)
    return np.ascontiguousarray(scaled.to_numpy(), dtype=X.dtype)
