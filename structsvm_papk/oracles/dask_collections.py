"""Dask arrays and data frames as partitions of whole users on the workers.

A block of a collection may hold some of a user's rows. Every user goes to the block that holds
most of them; only the rows that are elsewhere move. Nothing but the users' labels and counts comes
to this process.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk.data import validation as _validation
from structsvm_papk.data.columns.base import joined
from structsvm_papk.data.columns.checks import (
    SEPARATE,
    check_matrix,
    columns_of,
    refuse_non_finite,
)
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.oracles.dask_risk import connect


def is_dask(values: object) -> bool:
    """Whether this is a Dask array or data frame; Dask need not be installed."""
    return hasattr(values, "__dask_graph__")


def current_client() -> AbstractContextManager[Any]:
    """The current Dask client, or an own one in this process for as long as the context lasts."""
    try:
        from distributed import get_client

        return nullcontext(get_client())
    except (ImportError, ValueError):
        return connect()


class _BlockRows(NamedTuple):
    """Some rows of a collection, in memory."""

    X: Any
    y: np.ndarray
    groups: np.ndarray


class _Overview(NamedTuple):
    """What this process learns of a block: its classes, and how many rows of which user it has."""

    classes: np.ndarray
    users: np.ndarray
    counts: np.ndarray


class _UsersPartition(NamedTuple):
    """Rows of whole users on a worker, to be loaded by `DaskRisk`."""

    rows: _BlockRows
    relevant_from: float
    label_gain: Any

    def load(self):
        rows = self.rows
        y = rows.y if self.label_gain is not None else rows.y >= self.relevant_from
        return RankingData.from_groups(rows.X, y, rows.groups, label_gain=self.label_gain)


class DaskLists:
    """X, y and groups of Dask collections, in blocks on the workers.

    Blocks of X, an array or a data frame, may be dense or CSR; y and groups are anything
    array-like. Chunk sizes that are not known are computed where they are needed to bring the
    blocks in line. `sample` is what X looks like, without rows; `classes` are the labels that occur
    in y.
    """

    def __init__(self, client: Any, X: Any, y: Any, groups: Any) -> None:
        if groups is None:
            raise InputError(
                "Dask collections need groups: without them all rows are one list, which cannot be "
                "spread over workers"
            )
        self.client = client
        self.sample = _sample(X)
        blocks = client.compute(_row_blocks(X, y, groups))
        overviews = client.gather(client.map(count_users, blocks, pure=False))
        filled = [pair for pair in zip(blocks, overviews, strict=True) if pair[1].users.size]
        if not filled:
            raise InputError("X has no rows")
        self._blocks, self._overviews = zip(*filled, strict=True)
        self.classes = np.unique(np.concatenate([each.classes for each in self._overviews]))
        if not _validation.same_kind(*(each.users for each in self._overviews)):
            raise _other_types("some blocks hold text, others numbers")

    def partitions(self, relevant_from: float, label_gain: Any = None) -> list[Any]:
        """Futures of partitions of whole users.

        With `label_gain` the labels are grades; else those from `relevant_from` on are relevant.

        Only the rows of users in several blocks move: `DataFrame.shuffle` moves all rows, in four
        times the time, and none of CSR blocks.
        """
        block, owner, users = self._owners()
        away = block != owner
        arrivals: list[list[Any]] = [[] for _ in self._blocks]
        for source, target in np.unique(np.column_stack([block[away], owner[away]]), axis=0):
            moved = users[away & (block == source) & (owner == target)]
            arrivals[target].append(self._submit(take_users, self._blocks[source], moved))
        bounds = np.flatnonzero(np.diff(block)) + 1
        gone = map(np.ndarray.__getitem__, np.split(users, bounds), np.split(away, bounds))
        how = relevant_from, label_gain
        return [
            self._submit(join_users, how, left, self._blocks[b], *arrivals[b])
            for b, left in enumerate(gone)
            if left.size < self._overviews[b].users.size
        ]

    def _submit(self, *task):
        return self.client.submit(*task, pure=False)

    def _owners(self):
        """Block, owning block and label of every (block, user) that occurs."""
        block = np.repeat(
            np.arange(len(self._overviews)), [each.users.size for each in self._overviews]
        )
        counts = np.concatenate([each.counts for each in self._overviews])
        users = _validation.joined(*(each.users for each in self._overviews))
        _, codes = _sorted(users, return_inverse=True)
        # most rows first; where blocks hold as many, they take turns
        order = np.lexsort(((block - codes) % len(self._overviews), -counts, codes))
        first = np.append(True, np.diff(codes[order]) > 0)
        return block, block[order[first]][codes], users


def _sample(X):
    """What X looks like, without rows."""
    if X.ndim != 2:
        raise InputError(f"X must have two dimensions (rows, features), got {X.ndim}")
    if hasattr(X, "columns"):
        return X._meta
    if np.isnan(X.shape[1]):
        raise InputError("the number of columns of X is not known: call X.compute_chunk_sizes()")
    return np.empty((0, X.shape[1]))


def _row_blocks(X, y, groups):
    """Delayed `_BlockRows`, block by block."""
    import dask

    X = X.to_dask_array() if hasattr(X, "to_dask_array") else X
    X, y = _aligned(X, y, "y")
    X, groups = _aligned(X, groups, "groups")
    X, y = _aligned(X, y, "y")  # X may have learned its sizes
    columns = [values.to_delayed().ravel() for values in (X.rechunk({1: -1}), y, groups)]
    return [
        dask.delayed(check_block, pure=False)(b, *block)
        for b, block in enumerate(zip(*columns, strict=True))
    ]


def _aligned(X, values, name):
    """X, and values with its blocks of rows; sizes are computed only where they must be known."""
    import dask
    import dask.array as da

    if hasattr(values, "to_dask_array"):  # a series: of text, too, which its own method warns of
        blocks = [dask.delayed(np.asarray)(block) for block in values.to_delayed()]
        kind = {"shape": (np.nan,), "dtype": object}
        values = da.concatenate([da.from_delayed(block, **kind) for block in blocks])
    if not is_dask(values):
        values = np.asarray(values)
        values = da.from_array(values, chunks=values.shape)
    if values.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {values.shape}")
    same_number = X.numblocks[0] == values.numblocks[0]
    known = not np.isnan([*X.chunks[0], *values.chunks[0]]).any()
    if same_number and (not known or X.chunks[0] == values.chunks[0]):
        return X, values
    if not known:
        X = X.compute_chunk_sizes()
        values = values.compute_chunk_sizes()
    if values.shape[0] != X.shape[0]:
        raise InputError(f"{name} has {values.shape[0]} entries, but X has {X.shape[0]} rows")
    return X, values.rechunk((X.chunks[0],))


def check_block(b, X, y, groups):
    """Check the rows of block b; runs on a worker."""
    X = X.tocsr() if sparse.issparse(X) else np.asarray(X)
    y = np.asarray(y)
    groups = np.asarray(groups)
    if y.ndim != 1 or groups.ndim != 1:
        raise InputError("y and groups must have one dimension: give series, not frames")
    if not X.shape[0] == y.size == groups.size:
        raise InputError(
            f"block {b}: X has {X.shape[0]} rows, y {y.size} and groups {groups.size}; call "
            "compute_chunk_sizes() on all of them, so that their blocks can be brought in line"
        )
    try:
        y = _validation.check_grades(y, y.size, name="y")
        groups = _validation.check_ids(groups, groups.size)
        X = _numbers_without_gaps(X)
    except InputError as error:
        raise InputError(f"block {b}: {error}") from None
    return _BlockRows(X, y, groups)


def _numbers_without_gaps(X):
    """X, of objects that are numbers as floats."""
    if X.dtype.kind in "OUST":
        text = next((value for value in X.flat if isinstance(value, str)), None)
        if text is not None:
            raise InputError(
                f"X holds text ({text!r}), which has levels only where the lists are in memory: "
                "give a sample of the users, or leave its column out"
            )
    if X.dtype.kind not in "biuf" and X.size:
        X = check_matrix(X, missing=SEPARATE)
    if X.dtype.kind == "f":
        refuse_non_finite(X, in_parts=True)
    return X


def count_users(rows: _BlockRows) -> _Overview:
    """What this process learns of a block; tasks of these names show on Dask's dashboard."""
    users, counts = _sorted(rows.groups, return_counts=True)
    return _Overview(np.unique(rows.y), users, counts)


def _sorted(users, **wanted):
    """`numpy.unique` of the users' labels."""
    try:
        return np.unique(users, **wanted)
    except TypeError as error:
        raise _other_types(error) from None


def _other_types(why):
    return InputError(f"groups: labels of different types cannot be sorted ({why}); use one type")


def take_users(rows, users, others=False):
    """The rows of some users, or of all the others."""
    ids = _validation.joined(rows.groups, users)
    mine = np.isin(ids[: rows.groups.size], ids[rows.groups.size :], invert=others)
    return _BlockRows(*(values[mine] for values in rows))


def join_users(how, gone, rows, *arrivals):
    """A block without the users that are gone, with the rows that came from other blocks."""
    if gone.size:
        rows = take_users(rows, gone, others=True)
    if arrivals:
        X, y, groups = zip(rows, *arrivals, strict=True)
        rows = _BlockRows(
            joined([columns_of(part) for part in X]).X,
            np.concatenate(y),
            _validation.joined(*groups),
        )
    return _UsersPartition(rows, *how)
