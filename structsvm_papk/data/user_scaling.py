"""Features on a scale of their own inside each user's list: query-level normalisation."""

from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.rows import one_list_or
from structsvm_papk.errors import InputError, check_choice

USER_SCALINGS = ("standardise", "rank")
_RESOLVED = 16  # of the last digits: a column that varies by less is constant


def check_user_scaling(how: Any) -> None:
    """Refuse what is neither None nor the name of a scaling."""
    if isinstance(how, list | tuple):
        raise InputError(f"user_scaling={how!r}: one is needed; PAPKRankerCV tries several")
    if how is not None:
        check_choice("user_scaling", how, USER_SCALINGS)


def scaled_rows(X: Any, groups: Any, how: str | None) -> Any:
    """A checked matrix with each column scaled inside each user's rows, as `UserScaler` says.

    Raises
    ------
    InputError
        No groups, or X is sparse: its zeros would not stay zeros.
    """
    if how is None:
        return X
    if groups is None:
        raise InputError(
            f"user_scaling={how!r} scales X inside each user's list: give groups=, the user of "
            "each row, or 'one_list'"
        )
    users = one_list_or(groups)
    codes = np.zeros(X.shape[0], dtype=np.int64)
    if users is not None:
        _, codes = validation.encode(validation.check_ids(users, X.shape[0]))
    return _scaled(X, codes, how)


def scaled_lists(lists: RankingData, how: str | None) -> RankingData:
    """Lists with the columns scaled inside each of them, see `scaled_rows`; X is copied."""
    check_user_scaling(how)
    if how is None:
        return lists
    codes = np.full(lists.X.shape[0], lists.n_users)  # rows of no list form one that nobody reads
    codes[lists.rows] = lists.user_of_position
    return RankingData.from_parts(
        _scaled(lists.X, codes, how), lists.rows, lists.indptr, lists.n_pos, lists.users,
        lists.user_weight, lists.feature_names,
    )  # fmt: skip


def _scaled(X: Any, codes: Array, how: str) -> Array:
    import pandas as pd

    if sparse.issparse(X):
        raise InputError(
            "user_scaling needs a dense X: zeros of a sparse one would not stay zeros. Give "
            "X.toarray(), or standardize=True alone, which divides columns and keeps zeros"
        )
    frame = pd.DataFrame(X).astype(np.float64)
    of_user = frame.groupby(codes)
    size = of_user.transform("size").to_numpy()[:, None]
    if how == "rank":
        scaled = (of_user.rank().to_numpy() - (size + 1) / 2) / size
    else:  # from each user's first row on, so that large offsets do not cancel
        away = frame * 0.5 - of_user.transform("first") * 0.5  # halves do not overflow
        largest = away.abs().groupby(codes).transform("max")
        least = frame.abs().groupby(codes).transform("max") * np.finfo(X.dtype).eps * _RESOLVED
        away /= largest.where(largest > least, np.inf)
        centred = away - away.groupby(codes).transform("mean")
        deviation = away.groupby(codes).transform("std", ddof=0)
        scaled = (centred / deviation.where(deviation > 0, np.inf)).to_numpy()
    return np.ascontiguousarray(scaled, dtype=X.dtype)
