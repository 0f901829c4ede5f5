"""Missing values: what stands in for them while terms are computed.

``separate``: a missing value has a weight of its own, and nothing else of its column counts. In
training the median of the column stands in for it, which `plan` takes back.

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
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.columns.checks import LOWEST, SEPARATE, check_missing
from structsvm_papk.data.columns.terms import AdditiveFunction, FilledRows
from structsvm_papk.data.validation import groups_or_none
from structsvm_papk.errors import InputError

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData


@dataclass(frozen=True, eq=False)
class Filling:
    """What stands in for missing values.

    Attributes
    ----------
    missing : {None, 'separate', 'lowest'}
    falling : sequence of int
        Columns of which the highest of a list stands in, not the lowest.
    constant : ndarray of shape (n_columns,), or None
        What stands in for missing values of each column in every list; None: no one number does.
    """

    missing: str | None
    falling: Sequence[int] = ()
    constant: Array | None = None

    @classmethod
    def of(cls, lists: RankingData, missing: str | None, falling: Sequence[int] = ()) -> Filling:
        """What stands in while lists train."""
        check_missing(missing)
        constant = None
        if lists.is_sparse:
            return cls(missing, falling)
        every = np.arange(lists.n_columns)
        if missing == SEPARATE and lists.with_holes.any():
            constant = _or_zero(np.median, lists, np.flatnonzero(lists.with_holes))
        elif missing == LOWEST and lists.one_list:  # also for holes of later rows alone
            lowest = _or_zero(np.min, lists, every)
            highest = _or_zero(np.max, lists, every)
            constant = np.where(np.isin(every, falling), highest, lowest)
        return cls(missing, falling, constant)

    def of_rows(self, X: Any, groups: Any, levels: Collection[int] = ()) -> FilledRows:
        """A checked matrix, filled with the lowest of each list, or with the constants.

        With ``missing="separate"`` nothing is filled: terms know what a missing value adds. Nor are
        columns of `levels`.

        Raises
        ------
        InputError
            With ``missing="lowest"``: no groups, or X is sparse.
        """
        check_missing(self.missing)
        if self.missing != LOWEST:
            return FilledRows(X)
        _refuse_sparse(X)
        if self.constant is not None:
            return self._with_constants(X, levels)
        if groups is None:
            raise InputError(
                f"missing={self.missing!r} fills X inside each user's list: give groups=, the user "
                "of each row, or 'one_list'"
            )
        users = groups_or_none(groups)
        codes = np.zeros(X.shape[0], dtype=np.int64)
        if users is not None:
            _, codes = validation.encode(validation.check_ids(users, X.shape[0]))
        rows = np.argsort(codes, kind="stable")
        starts = np.flatnonzero(np.diff(codes[rows], prepend=-1))
        return self._with_lowest(X, levels, rows, starts, codes)

    def of_lists(self, lists: RankingData, levels: Collection[int] = ()) -> FilledRows:
        """The rows of lists, filled as by `of_rows`, while they train by constants, too."""
        check_missing(self.missing)
        if self.missing == LOWEST:
            _refuse_sparse(lists.X)
        if self.missing is None:
            lists.refuse_holes()
        if lists.is_sparse or not lists.with_holes.any():
            return FilledRows(lists.X)
        if self.constant is not None:
            return self._with_constants(lists.X, levels)
        users = np.flatnonzero(lists.sizes)  # who have rows
        list_of_row = np.full(lists.X.shape[0], users.size)  # rows of no list: one that is not read
        list_of_row[lists.rows] = np.repeat(np.arange(users.size), lists.sizes[users])
        return self._with_lowest(lists.X, levels, lists.rows, lists.indptr[users], list_of_row)

    def _with_constants(self, X: Array, levels: Collection[int]) -> FilledRows:
        assert self.constant is not None
        holes = _holes(X, levels)
        return FilledRows(np.where(holes, self.constant.astype(X.dtype), X), holes)

    def _with_lowest(
        self, X: Array, levels: Collection[int], rows: Array, starts: Array, list_of_row: Array
    ) -> FilledRows:
        """X with the lowest of each list, the rows of which begin at `starts`."""
        lowest = _lowest(X, rows, starts, self.falling)
        lowest = np.vstack([lowest, np.zeros((1, X.shape[1]), dtype=X.dtype)])
        holes = _holes(X, levels)
        filled = X.copy()
        where, columns = np.nonzero(holes)
        filled[where, columns] = lowest[list_of_row[where], columns]
        return FilledRows(filled, holes)

    def rows_for(
        self, function: AdditiveFunction, X: Any, groups: Any, names: Sequence[str] | None
    ) -> FilledRows:
        """A checked matrix as a fitted function takes it; refused where a gap is new to it.

        Of a column of levels there is a warning, where it has nothing else.
        """
        if self.missing != LOWEST:
            function.refuse_new_gaps(X, names)
        function.warn_of_new_gaps(X, names)
        return self.of_rows(X, groups, function.levels)

    def scores(self, function: AdditiveFunction, lists: RankingData) -> Array:
        """The scores of lists at their positions."""
        if self.missing != LOWEST:
            function.refuse_new_gaps(lists.X, lists.feature_names)
            return function.scores(FilledRows(lists.X))[lists.rows]
        rows = self.of_lists(lists, function.levels)
        if rows.holes is None:
            rows = rows._replace(holes=np.zeros(lists.X.shape, dtype=bool))
        return function.scores(rows)[lists.rows]


def _holes(X: Array, levels: Collection[int]) -> Array:
    """Where numbers are missing."""
    holes = np.isnan(X)
    holes[:, list(levels)] = False
    return holes


def _refuse_sparse(X: Any) -> None:
    """Refuse a sparse matrix, in which nothing can be missing."""
    if sparse.issparse(X):
        raise InputError(
            f'missing="{LOWEST}" needs a dense X: of a sparse one all that is not stored is 0, '
            "and not missing. Give X.toarray(), or leave the setting out"
        )


def _or_zero(function: Any, lists: RankingData, columns: Array) -> Array:
    """A function of the values of some columns that are there; 0 where none is, and of others."""
    fill = np.zeros(lists.n_columns)
    for j in columns:
        values = lists.X[:, j][lists.rows]
        known = values[~np.isnan(values)]
        if known.size:
            fill[j] = function(known)
    return fill


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
