"""Missing values: what stands in for them while terms are computed.

``separate``: a missing value has a weight of its own, and nothing else of its column counts. In
training the median of the column stands in for it, which `columns.plan` takes back.

``lowest``: it takes the lowest value of its column in its list, and has a weight of its own beside.
Scores of retrievers that return their best hundred are the usual case: what one did not return, it
ranked below. In a column that has to fall, low values are the good ones, and the highest stands in:
a missing value is never the best of its list. A list that has nothing in a column gets 0 there. Any
other number would do: it is the same for all rows of the list, so it moves none of them past
another. Where all rows are one list, those that are scored later are not this list but further
cases of it, a few at a time or one. Their missing values take the lowest values of training, and a
score does not depend on which cases are asked for together.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.columns.additive import AdditiveFunction, FilledRows
from structsvm_papk.data.columns.checks import LOWEST, SEPARATE, check_missing
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.validation import groups_or_none
from structsvm_papk.errors import InputError


def constant_fill(
    lists: RankingData, missing: str | None, falling: Collection[int] = ()
) -> Array | None:
    """What stands in for missing values of each column in every list; None: no one number does."""
    if lists.is_sparse or not lists.with_holes.any():
        return None
    if missing == SEPARATE:
        return _or_zero(np.median, lists, np.flatnonzero(lists.with_holes))
    if missing == LOWEST and lists.one_list:
        every = np.arange(lists.n_columns)
        lowest = _or_zero(np.min, lists, every)
        highest = _or_zero(np.max, lists, every)
        return np.where(np.isin(np.arange(lists.n_columns), list(falling)), highest, lowest)
    return None


def _or_zero(function: Any, lists: RankingData, columns: Array) -> Array:
    """A function of the values of some columns that are there; 0 where none is, and of others."""
    fill = np.zeros(lists.n_columns)
    for j in columns:
        values = lists.X[:, j][lists.rows]
        known = values[~np.isnan(values)]
        if known.size:
            fill[j] = function(known)
    return fill


def filled_rows(
    X: Any,
    groups: Any,
    missing: str | None,
    fill: Array | None = None,
    levels: Collection[int] = (),
    falling: Collection[int] = (),
) -> FilledRows:
    """A checked matrix, filled with the lowest of each list, or with the numbers of `fill`.

    With ``missing="separate"`` nothing is filled: terms know what a missing value adds. Nor are
    columns of `levels`. Columns that are `falling` are filled with the highest of each list.

    Raises
    ------
    InputError
        With ``missing="lowest"``: no groups, or X is sparse.
    """
    check_missing(missing)
    if missing != LOWEST:
        return FilledRows(X)
    refuse_sparse(X, missing)
    holes = np.isnan(X)
    holes[:, list(levels)] = False
    if fill is not None:
        return FilledRows(np.where(holes, fill.astype(X.dtype), X), holes)
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
    lowest = _lowest(X, rows, starts, falling)  # a row each user, in the order of the codes
    return FilledRows(np.where(holes, lowest[codes], X), holes)


def filled_lists(
    lists: RankingData,
    missing: str | None,
    fill: Array | None = None,
    levels: Collection[int] = (),
    falling: Collection[int] = (),
) -> FilledRows:
    """The rows of lists, filled as by `filled_rows`; copied where any is."""
    check_missing(missing)
    if missing == LOWEST:
        refuse_sparse(lists.X, missing)
    if missing is None:
        lists.refuse_holes()
    if lists.is_sparse or not lists.with_holes.any():
        return FilledRows(lists.X)
    X = lists.X
    holes = np.isnan(X)
    holes[:, list(levels)] = False
    if fill is not None:
        return FilledRows(np.where(holes, fill.astype(X.dtype), X), holes)
    user_of_row = np.full(X.shape[0], lists.n_users)  # rows of no list: one that nobody reads
    user_of_row[lists.rows] = lists.user_of_position
    users = np.flatnonzero(lists.sizes)  # who have rows
    lowest = np.zeros((lists.n_users + 1, X.shape[1]), dtype=X.dtype)
    lowest[users] = _lowest(X, lists.rows, lists.indptr[users], falling)
    filled = X.copy()
    rows, columns = np.nonzero(holes)
    filled[rows, columns] = lowest[user_of_row[rows], columns]
    return FilledRows(filled, holes)


def refuse_sparse(X: Any, missing: str) -> None:
    """Refuse a sparse matrix, in which nothing can be missing."""
    if sparse.issparse(X):
        raise InputError(
            f'missing="{missing}" needs a dense X: of a sparse one all that is not stored is 0, '
            "and not missing. Give X.toarray(), or leave the setting out"
        )


def falling_columns(signs: Sequence[float] | Array | None) -> list[int]:
    """The columns that have to fall."""
    if signs is None:
        return []
    return np.flatnonzero(np.asarray(signs) < 0).tolist()


def _lowest(X: Array, rows: Array, starts: Array, falling: Collection[int]) -> Array:
    """The lowest of each column in each list, the rows of which begin at `starts`; 0: none.

    Of columns that are `falling` the highest.
    """
    lowest = np.fmin.reduceat(X[rows], starts, axis=0)
    for j in falling:
        lowest[:, j] = np.fmax.reduceat(X[rows, j], starts)
    return np.where(np.isnan(lowest), 0.0, lowest)


def scores_of_lists(
    function: AdditiveFunction,
    lists: RankingData,
    missing: str | None,
    fill: Array | None = None,
    falling: Collection[int] = (),
) -> Array:
    """The scores of lists at their positions."""
    if missing != LOWEST:
        function.refuse_new_gaps(lists.X, lists.feature_names)
        return function.scores(FilledRows(lists.X))[lists.rows]
    rows = filled_lists(lists, missing, fill, function.levels, falling)
    if rows.holes is None:
        rows = rows._replace(holes=np.zeros(lists.X.shape, dtype=bool))
    return function.scores(rows)[lists.rows]
