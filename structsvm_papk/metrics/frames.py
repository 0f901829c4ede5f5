"""Metrics of pandas and polars frames: long tables, and recommendations beside interactions.

Frames are read column by column; the libraries themselves are never imported here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data import validation as _validation
from structsvm_papk.errors import InputError
from structsvm_papk.metrics import ranked_lists as lists
from structsvm_papk.metrics import table

if TYPE_CHECKING:
    from structsvm_papk.metrics.table import MetricTable

_SHOWN = 5
_NO_ERROR, _TWICE, _NOT_A_RANK = range(3)


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

    Returns
    -------
    MetricTable
    """
    labels = column(frame, label)
    groups, users = (None, None) if user is None else _groups_of(user, frame)
    if item is not None:
        _refuse_pairs_twice(frame, user, item)
    scores = column(frame, score) if rank is None else _scores_from_ranks(frame, rank, user)
    columns = [by] if isinstance(by, str) else list(by)
    segments = {name: column(frame, name) for name in columns}
    evaluated = table.evaluate(
        metrics, scores, labels, groups, segments=segments or None, **options
    )
    return evaluated if users is None else _renamed(evaluated, users)


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

    Returns
    -------
    MetricTable

    Notes
    -----
    Only listed negatives are known, so `few_negatives` refers to them, and `auc` is refused.
    """
    if unmatched not in ("raise", "count"):
        raise InputError(f"unmatched={unmatched!r} must be 'raise' or 'count'")
    user_codes, users = codes_of(user, recommendations, interactions)
    item_codes, items = codes_of(item, recommendations, interactions)
    n_shown = column(recommendations, user).shape[0]
    ranks = _whole_ranks(column(recommendations, rank), rank)
    shown = _Grouped(user_codes[:n_shown], users.size)
    liked = _Grouped(user_codes[n_shown:], users.size)
    if unmatched == "raise":
        _refuse_unmatched(users, shown, liked)
    relevant, hits, error = _match(
        shown.bounds, shown.taken(item_codes[:n_shown]), shown.taken(ranks),
        liked.bounds, liked.taken(item_codes[n_shown:]), items.size,
    )  # fmt: skip
    _raise_match_error(error, users, items, user, item)
    scores, labels, bounds = _joined(shown.bounds, shown.taken(ranks), relevant, liked.sizes - hits)
    evaluated = table.evaluate(
        metrics, scores, labels, indptr=bounds, preset=preset, list_length=shown.sizes, **options
    )
    return _renamed(evaluated, users)


def column(frame: Any, name: str) -> Array:
    """One column as an array."""
    names = list(frame) if isinstance(frame, dict) else list(frame.columns)
    if name not in names:
        shown = ", ".join(map(str, names))
        raise InputError(f"there is no column {name!r}; the frame has {shown}")
    return _validation.as_array(frame[name], f"column {name!r}")


def codes_of(name: str, *frames: Any) -> tuple[Array, Array]:
    """Code of each row's value over all frames in turn, and the sorted unique values."""
    arrays = [_ids(frame, name) for frame in frames]
    if not sum(array.size for array in arrays):
        raise InputError("there are no rows: the table is empty")
    if not _validation.same_kind(*arrays):
        raise InputError(f"column {name!r} holds numbers in one table and text in the other")
    values = _validation.joined(*arrays)
    if values.dtype.kind == "O" and isinstance(values[0], str):
        return _text_codes(name, frames, values)
    users, sorter, _ = lists.grouped(values)
    return sorter.codes, users


def _ids(frame: Any, name: str) -> Array:
    values = column(frame, name)
    return _validation.check_ids(values, values.size, f"column {name!r}")


def _text_codes(name: str, frames: Sequence[Any], values: Array) -> tuple[Array, Array]:
    """Hash with the frame's own library where sorting Python strings would be slow."""
    module = type(frames[0]).__module__.partition(".")[0]
    if module == "pandas":
        import pandas as pd

        codes, users = pd.factorize(values, sort=True)
        return codes.astype(np.int64), np.asarray(users)
    if module == "polars":
        import polars as pl

        series = pl.concat([frame[name].cast(pl.String) for frame in frames])
        users = series.unique().sort()
        codes = series.cast(pl.Enum(users)).to_physical().to_numpy()
        return codes.astype(np.int64), users.to_numpy()
    users, codes = _validation.encode(values)
    return codes, users


def _renamed(evaluated: MetricTable, users: Array) -> MetricTable:
    """The table with the frame's own user labels."""
    from dataclasses import replace

    segments = tuple(
        replace(s, table=replace(s.table, users=users[s.table.users])) for s in evaluated.segments
    )
    return replace(evaluated, users=users[evaluated.users], segments=segments)


class _Grouped:
    """Rows brought together by user; keeps the order within a user."""

    def __init__(self, codes: Array, n_users: int) -> None:
        sorter, in_order = lists.count_codes(codes, n_users)
        self.bounds = sorter.bounds
        self.order = None if in_order else sorter.order()

    @property
    def sizes(self) -> Array:
        return np.diff(self.bounds)

    def taken(self, values: Array) -> Array:
        return values if self.order is None else values[self.order]


def _whole_ranks(ranks: Array, name: str) -> Array:
    if ranks.dtype.kind == "f":
        whole = np.isfinite(ranks) & (ranks == np.floor(ranks))
        if not whole.all():
            raise InputError(f"column {name!r} is no whole number in {_validation.rows_of(~whole)}")
    elif ranks.dtype.kind not in "iu":
        raise InputError(f"column {name!r} must hold whole numbers, not {ranks.dtype}")
    return ranks.astype(np.int64, copy=False)


def _groups_of(user: str, frame: Any) -> tuple[Array, Array | None]:
    """Labels that `evaluate` groups by, and the users they stand for (None: they are the users)."""
    if column(frame, user).dtype.kind in "iu":
        return column(frame, user), None
    return codes_of(user, frame)


def _by_user(frame: Any, user: str | None, n_rows: int) -> tuple[_Grouped, Array]:
    """Rows grouped by user, and the users."""
    if user is None:
        return _Grouped(np.zeros(n_rows, dtype=np.int64), 1), np.zeros(1, dtype=int)
    codes, users = codes_of(user, frame)
    return _Grouped(codes, users.size), users


def _scores_from_ranks(frame: Any, rank: str, user: str | None) -> Array:
    ranks = _whole_ranks(column(frame, rank), rank)
    grouped, users = _by_user(frame, user, ranks.size)
    bad = _bad_rank(grouped.bounds, grouped.taken(ranks))
    if bad >= 0:
        owner = users[np.searchsorted(grouped.bounds, bad, side="right") - 1]
        row = bad if grouped.order is None else grouped.order[bad]
        raise InputError(
            f"column {rank!r} of user {owner} has the rank {ranks[row]} in row {row}: ranks must "
            "be 1, 2, .. without gaps or ties"
        )
    return -ranks.astype(np.float64)


def _refuse_pairs_twice(frame: Any, user: str | None, item: str) -> None:
    codes, items = codes_of(item, frame)
    grouped, users = _by_user(frame, user, codes.size)
    first, second = _pair_twice(grouped.bounds, grouped.taken(codes), items.size)
    if second < 0:
        return
    rows = (first, second) if grouped.order is None else grouped.order[[first, second]]
    owner = users[np.searchsorted(grouped.bounds, first, side="right") - 1]
    whose = "" if user is None else f" of user {owner}"
    raise InputError(
        f"item {items[codes[rows[0]]]}{whose} occurs in row {rows[0]} and in row {rows[1]}; give "
        "every pair (user, item) once"
    )


def _refuse_unmatched(users: Array, shown: _Grouped, liked: _Grouped) -> None:
    for some, other, have, lack in (
        (shown, liked, "recommendations", "interactions"),
        (liked, shown, "interactions", "recommendations"),
    ):
        only = users[(some.sizes > 0) & (other.sizes == 0)]
        if only.size:
            names = ", ".join(map(str, only[:_SHOWN])) + (", .." if only.size > _SHOWN else "")
            raise InputError(
                f"{only.size} users have {have} but no {lack} ({names}); "
                "unmatched='count' counts them by the rules"
            )


def _raise_match_error(
    error: tuple[int, int, int], users: Array, items: Array, user: str, item: str
) -> None:
    kind, owner, value = error
    if kind == _TWICE:
        raise InputError(
            f"item {items[value]} occurs twice for user {users[owner]}; give every pair "
            f"({user}, {item}) once"
        )
    if kind == _NOT_A_RANK:
        raise InputError(
            f"user {users[owner]} has the rank {value}, but ranks must be 1, 2, .. without gaps "
            "or ties"
        )


@kernel
def _pair_twice(bounds: Array, items: Array, n_items: int) -> tuple[int, int]:
    """The first two rows of one user with the same item; (-1, -1) if none."""
    seen = np.full(n_items, -1, dtype=np.int64)
    for u in range(bounds.size - 1):
        for row in range(bounds[u], bounds[u + 1]):
            if seen[items[row]] >= bounds[u]:
                return seen[items[row]], row
            seen[items[row]] = row
    return -1, -1


@kernel
def _bad_rank(bounds: Array, ranks: Array) -> int:
    """First row whose rank is repeated or outside 1..length of its list; -1 if none."""
    seen = np.full(ranks.size + 1, -1, dtype=np.int64)
    for u in range(bounds.size - 1):
        size = bounds[u + 1] - bounds[u]
        for row in range(bounds[u], bounds[u + 1]):
            if ranks[row] < 1 or ranks[row] > size or seen[ranks[row]] == u:
                return row
            seen[ranks[row]] = u
    return -1


@kernel
def _match(
    shown_bounds: Array,
    shown_items: Array,
    ranks: Array,
    liked_bounds: Array,
    liked_items: Array,
    n_items: int,
) -> tuple[Array, Array, tuple[Any, Any, Any]]:
    """Relevance of each shown row, hits per user, and the first error (kind, user, value)."""
    relevant = np.zeros(shown_items.size, dtype=np.uint8)
    hits = np.zeros(shown_bounds.size - 1, dtype=np.int64)
    liked_by = np.full(n_items, -1, dtype=np.int64)
    shown_to = np.full(n_items, -1, dtype=np.int64)
    bad = _bad_rank(shown_bounds, ranks)
    if bad >= 0:
        owner = np.searchsorted(shown_bounds, bad, side="right") - 1
        return relevant, hits, (_NOT_A_RANK, owner, ranks[bad])
    for u in range(hits.size):
        for row in range(liked_bounds[u], liked_bounds[u + 1]):
            if liked_by[liked_items[row]] == u:
                return relevant, hits, (_TWICE, u, liked_items[row])
            liked_by[liked_items[row]] = u
        for row in range(shown_bounds[u], shown_bounds[u + 1]):
            item = shown_items[row]
            if shown_to[item] == u:
                return relevant, hits, (_TWICE, u, item)
            shown_to[item] = u
            relevant[row] = liked_by[item] == u
            hits[u] += relevant[row]
    return relevant, hits, (_NO_ERROR, np.int64(0), np.int64(0))


@kernel
def _joined(
    shown_bounds: Array, ranks: Array, relevant: Array, missed: Array
) -> tuple[Array, Array, Array]:
    """Shown rows of each user, then one row of score -inf per relevant item that was not shown."""
    n_users = missed.size
    bounds = np.zeros(n_users + 1, dtype=np.int64)
    for u in range(n_users):
        bounds[u + 1] = bounds[u] + shown_bounds[u + 1] - shown_bounds[u] + missed[u]
    scores = np.empty(bounds[n_users])
    labels = np.ones(bounds[n_users], dtype=np.uint8)
    for u in range(n_users):
        target = bounds[u]
        for row in range(shown_bounds[u], shown_bounds[u + 1]):
            scores[target] = -ranks[row]
            labels[target] = relevant[row]
            target += 1
        scores[target : bounds[u + 1]] = -np.inf
    return scores, labels, bounds
