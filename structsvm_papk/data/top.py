"""The best rows of each user, with their ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation
from structsvm_papk.data.roles import USER_COLUMNS, column_of
from structsvm_papk.data.validation import ONE_LIST, groups_or_none
from structsvm_papk.errors import InputError, is_number

if TYPE_CHECKING:
    import pandas as pd


def ids_of(X: Any, groups: Any) -> tuple[Any, Any]:
    """User of each row, None for one list, and item of each row, None where X names no items.

    Items keep the name of their column.
    """
    if is_number(groups):
        raise InputError(
            f"groups={groups}: give the user of each row; how many items is n={groups}"
        )
    names = [str(name) for name in getattr(X, "columns", ())]
    user = column_of("user", names, "X")
    item = column_of("item", [name for name in names if name != user], "X")
    if groups is None and user is None:
        raise InputError(
            f"groups= is missing: give the user of each row, or {ONE_LIST!r} if all rows are one "
            f"list, or a frame with a column {' or '.join(USER_COLUMNS)}"
        )
    users = X[user] if groups is None else groups_or_none(groups)
    return users, None if item is None else X[item]


def scored_rows(
    scores: Array, users: Any, items: Any, contributions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """Ids and scores: user (None: no such column), item (None: the row's number), score.

    The column of items is called as the series `items` is; `item` where it has no name, or that of
    another column. Behind them comes what each column of X contributes, where it is given.
    """
    import pandas as pd

    columns = {}
    if users is not None:
        columns["user"] = validation.check_ids(users, scores.size)
    if items is None:
        columns["row"] = np.arange(scores.size)
    else:
        name = getattr(items, "name", None)
        if name in (None, "user", "score", "rank"):
            name = "item"
        columns[name] = validation.check_ids(items, scores.size, "items")
    columns["score"] = scores
    frame = pd.DataFrame(columns)
    return frame if contributions is None else pd.concat([frame, contributions], axis=1)


def top_rows(
    scores: Array, users: Any, items: Any, n: int, contributions: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`scored_rows` of the n best of each user, with their rank from 1; users as they come."""
    frame = scored_rows(scores, users, items, contributions)
    user = frame["user"] if "user" in frame else np.zeros(len(frame))
    rank = frame.groupby(user)["score"].rank(method="first", ascending=False).astype(int)
    frame.insert(frame.columns.get_loc("score") + 1, "rank", rank)
    place_of_user = frame.groupby(user, sort=False).ngroup()
    order = np.lexsort((frame["rank"], place_of_user))  # the last key sorts first
    is_best = frame["rank"].to_numpy()[order] <= n
    return frame.iloc[order[is_best]].reset_index(drop=True)
