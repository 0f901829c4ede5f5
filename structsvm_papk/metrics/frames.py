"""Metrics of pandas and polars frames: long tables, alone or beside all relevant pairs.

Frames are read column by column; pairs of users and items are matched by pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array, Frame
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics import table
from structsvm_papk.metrics.ranked_lists import column
from structsvm_papk.metrics.relevant import ids, pairs_of, refuse_pairs_twice

if TYPE_CHECKING:
    from structsvm_papk.metrics.table import MetricTable


def evaluate_frame(
    frame: Frame,
    metrics: str | Sequence[str],
    *,
    user: str | None = "user_id",
    item: str | None = None,
    score: str = "score",
    rank: str | None = None,
    label: str = "label",
    relevant: Frame | None = None,
    grade: str | None = None,
    **options: Any,
) -> MetricTable:
    """`metrics.evaluate` on a long frame, one row per user and item, in any order.

    Parameters
    ----------
    frame : pandas or polars frame, or dict of arrays
    metrics : str or sequence of str
    user : str or None
        User column; None: all rows are one list.
    item : str, optional
        Item column; a pair (user, item) that occurs twice is refused.
    score : str
        Score column; ignored when `rank` is given.
    rank : str, optional
        Column of ranks 1, 2, .. per user, without gaps or ties.
    label : str
        Beside relevant pairs none is read.
    relevant : frame, optional
        All relevant pairs, in the columns `user`, `item` and `grade`, so that what no list holds
        counts in ideals and recalls; see `evaluate`.
    grade : str, optional
        Column of grades in `relevant`; by default one of a usual name (grade, relevance, label,
        rating, score, ..). Without a column that could be the grade every pair has grade 1.
    **options
        Of `evaluate`.
    """
    scores = column(frame, score if rank is None else rank)
    groups = None if user is None else ids(frame, user)
    if item is not None:
        options["items"] = ids(frame, item)
        if relevant is None:  # else they are compared when they are matched
            refuse_pairs_twice(*_by_user(frame, user, scores.size), *codes_of(item, frame))
    if rank is not None:
        scores = -_checked_ranks(frame, rank, *_by_user(frame, user, scores.size))
    labels = None
    if relevant is None:
        labels = column(frame, label)
    else:
        if user is None or item is None:
            raise InputError("relevant pairs need the columns of users and items: user=, item=")
        options["relevant"] = pairs_of(relevant, user, item, grade)
    return table.evaluate(metrics, scores, labels, groups, **options)


def codes_of(name: str, frame: Frame) -> tuple[Array, Array]:
    """The sorted distinct values of a column, and the code of each row's."""
    values = ids(frame, name)
    if not values.size:
        raise InputError("there are no rows: the table is empty")
    return lists.grouped(values)[:2]


def _by_user(frame: Frame, user: str | None, n_rows: int) -> tuple[Array, Array]:
    if user is None:
        return np.array(["the only user"]), np.zeros(n_rows, dtype=np.int64)
    return codes_of(user, frame)


def _checked_ranks(frame: Frame, name: str, users: Array, whose: Array) -> Array:
    """Ranks as float64, which have to be 1, 2, .. for every user."""
    import pandas as pd

    ranks = column(frame, name)
    if ranks.dtype.kind not in "iuf":
        raise InputError(f"column {name!r} must hold whole numbers, not {ranks.dtype}")
    lengths = np.bincount(whose, minlength=users.size)
    places = (np.cumsum(lengths) - lengths)[whose] + ranks
    good = (ranks >= 1) & (ranks <= lengths[whose]) & (ranks == np.floor(ranks))
    bad = ~good | pd.Series(places).duplicated().to_numpy()
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"column {name!r} of user {users[whose[row]]} has the rank {ranks[row]} in row {row}: "
            "ranks must be 1, 2, .. without gaps or ties"
        )
    return ranks.astype(np.float64)
