"""Metrics of pandas and polars frames: long tables, and recommendations beside interactions.

Frames are read column by column; pairs of users and items are matched by pandas.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data import validation as _validation
from structsvm_papk.errors import InputError, check_choice
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics import table

if TYPE_CHECKING:
    from structsvm_papk.metrics.table import MetricTable

_SHOWN = 5


def evaluate_frame(
    frame: Any,
    metrics: str | Sequence[str],
    *,
    user: str | None = "user_id",
    item: str | None = None,
    score: str = "score",
    rank: str | None = None,
    label: str = "label",
    by: str | Sequence[str] = (),
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
        Item column; only to refuse a pair (user, item) that occurs twice.
    score : str
        Score column; ignored when `rank` is given.
    rank : str, optional
        Column of ranks 1, 2, .. per user, without gaps or ties.
    label : str
    by : str or sequence of str
        User or item columns to split by, see `segments` of `evaluate`.
    **options
        Of `evaluate`.
    """
    labels = column(frame, label)
    groups = None if user is None else _ids(frame, user)
    if item is not None:
        _refuse_pairs_twice(*_by_user(frame, user, labels.size), *codes_of(item, frame))
    if rank is None:
        scores = column(frame, score)
    else:
        scores = -_checked_ranks(frame, rank, *_by_user(frame, user, labels.size))
    columns = [by] if isinstance(by, str) or not isinstance(by, Iterable) else list(by)
    segments = {name: column(frame, name) for name in columns}
    return table.evaluate(metrics, scores, labels, groups, segments=segments or None, **options)


def evaluate_recommendations(
    recommendations: Any,
    interactions: Any,
    metrics: str | Sequence[str],
    *,
    user: str = "user_id",
    item: str = "item_id",
    rank: str = "rank",
    preset: str = "rectools",
    unmatched: str = "raise",
    **options: Any,
) -> MetricTable:
    """Metrics of recommended lists against a table of what users liked, as RecTools takes them.

    Parameters
    ----------
    recommendations : frame
        Columns `user`, `item` and `rank` (1, 2, .. per user without gaps or ties).
    interactions : frame
        Columns `user` and `item`: the relevant pairs.
    metrics : str or sequence of str
        Those of `evaluate` but `auc`.
    user, item, rank : str
        Column names in both frames.
    preset : see `evaluate`
    unmatched : {"raise", "count"}
        Users in one frame and not in the other. `count`: without recommendations all their items
        are missed; without interactions the rule `no_positives` decides.
    **options
        Of `evaluate`, without groups and list lengths.

    Notes
    -----
    Only listed negatives are known, so `few_negatives` refers to them, and `auc` is refused.
    """
    import pandas as pd

    check_choice("unmatched", unmatched, ("raise", "count"))
    users, whose = codes_of(user, recommendations, interactions)
    items, which = codes_of(item, recommendations, interactions)
    n_shown = column(recommendations, rank).size
    shown, liked = slice(n_shown), slice(n_shown, None)
    for part in (shown, liked):
        _refuse_pairs_twice(users, whose[part], items, which[part])
    lengths = np.bincount(whose[shown], minlength=users.size)
    if unmatched == "raise":
        _refuse_unmatched(users, lengths, np.bincount(whose[liked], minlength=users.size))
    ranks = _checked_ranks(recommendations, rank, users, whose[shown])
    pairs = whose * items.size + which
    at = pd.Index(pairs[liked]).get_indexer(pairs[shown])
    relevant, missed = at >= 0, np.ones(pairs[liked].size, dtype=bool)
    missed[at[relevant]] = False  # of the liked pairs, those that are not shown
    evaluated = table.evaluate(
        metrics,
        np.concatenate([-ranks, np.full(missed.sum(), -np.inf)]),  # the missed ones come last
        np.concatenate([relevant, np.ones(missed.sum(), bool)]),
        np.concatenate([whose[shown], whose[liked][missed]]),
        preset=preset, list_length=lengths, **options,
    )  # fmt: skip
    named = [replace(s, table=replace(s.table, users=users[s.table.users]))
             for s in evaluated.segments]  # fmt: skip
    return replace(evaluated, users=users[evaluated.users], segments=tuple(named))


def column(frame: Any, name: str) -> Array:
    """One column as an array."""
    if not isinstance(frame, dict) and not hasattr(frame, "columns"):
        raise TypeError(
            f"a pandas or polars frame, or a dict of columns, is needed, not {type(frame).__name__}"
        )
    names = list(frame) if isinstance(frame, dict) else list(frame.columns)
    if not isinstance(name, Hashable) or name not in names:
        shown = ", ".join(map(str, names))
        raise InputError(f"there is no column {name!r}; the frame has {shown}")
    return _validation.as_array(frame[name], f"column {name!r}")


def codes_of(name: str, *frames: Any) -> tuple[Array, Array]:
    """The sorted distinct values of a column of all frames in turn, and the code of each row's."""
    arrays = [_ids(frame, name) for frame in frames]
    if not sum(array.size for array in arrays):
        raise InputError("there are no rows: the table is empty")
    if not _validation.same_kind(*arrays):
        raise InputError(f"column {name!r} holds numbers in one table and text in the other")
    return lists.grouped(_validation.joined(*arrays))[:2]


def _ids(frame: Any, name: str) -> Array:
    values = column(frame, name)
    return _validation.check_ids(values, values.size, f"column {name!r}")


def _by_user(frame: Any, user: str | None, n_rows: int) -> tuple[Array, Array]:
    if user is None:
        return np.array(["the only user"]), np.zeros(n_rows, dtype=np.int64)
    return codes_of(user, frame)


def _checked_ranks(frame: Any, name: str, users: Array, whose: Array) -> Array:
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


def _refuse_pairs_twice(users: Array, whose: Array, items: Array, which: Array) -> None:
    import pandas as pd

    pairs = pd.Series(whose * items.size + which)
    twice = pairs.duplicated()
    if twice.any():
        second = int(twice.argmax())
        first = int((pairs == pairs[second]).argmax())
        raise InputError(
            f"item {items[which[second]]} of user {users[whose[second]]} occurs in row {first} and "
            f"in row {second}; give every pair (user, item) once"
        )


def _refuse_unmatched(users: Array, shown: Array, liked: Array) -> None:
    for some, other, have, lack in (
        (shown, liked, "recommendations", "interactions"),
        (liked, shown, "interactions", "recommendations"),
    ):
        only = users[(some > 0) & (other == 0)]
        if only.size:
            names = ", ".join(map(str, only[:_SHOWN])) + (", .." if only.size > _SHOWN else "")
            raise InputError(
                f"{only.size} users have {have} but no {lack} ({names}); "
                "unmatched='count' counts them by the rules"
            )
