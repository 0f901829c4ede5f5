"""What data are known by: a fingerprint, and an order that follows from their values alone.

`fingerprint_of` tells whether two problems are the same. For the order rows i, columns j and lists
u get numbers mod 2^64, two rounds after each other, from c_j = 1 on:

    r_i = mix(gain_i + sum_j code_ij c_j)
    l_u = mix(weight_u + sum_{i of u} r_i),        r_i = mix(r_i + l_u)
    c_j = mix(sum_i code_ij r_i)

where code_ij is a mix of how many different values of column j lie below x_ij. So they do not
depend on where a row, a list or a column stands, on the unit of a column, or on whether zeros are
stored. What has the same numbers is the same, or plays the same part.

For samples of many lists `digests_of_lists` is enough, one pass over the values as they are.
"""

from __future__ import annotations

import hashlib
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._jit import kernel
from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import mix

_ROUNDS = 2


def fingerprint_of(*parts: Any, chunk_bytes: int = 1 << 24) -> str:
    """SHA-256 over texts, whole numbers, and arrays, as 64 hexadecimal digits.

    Arrays count with dtype, shape and every value; whether they lie in rows or in columns makes no
    difference. They are read in pieces of `chunk_bytes`: nothing of their size is copied.
    """
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part, chunk_bytes)
    return digest.hexdigest()


def _add(digest: Any, part: Any, chunk_bytes: int) -> None:
    if isinstance(part, np.ndarray):
        digest.update(f"array {part.dtype.str} {part.shape};".encode())
        rows_at_once = max(1, chunk_bytes * len(part) // max(part.nbytes, 1))
        for first in range(0, len(part), rows_at_once):
            digest.update(np.ascontiguousarray(part[first : first + rows_at_once]))
    else:
        text = str(part).encode()
        # the length keeps "ab" and "c" apart from "a" and "bc"
        digest.update(f"{type(part).__name__} {len(text)};".encode() + text)


# --- numbers that follow from the content ---------------------------------------------------------


class Digests(NamedTuple):
    """Numbers that follow from the content, uint64: of list positions, lists and columns."""

    rows: Array
    lists: Array
    columns: Array


def digests_of(lists: Any) -> Digests:
    """Those of `RankingData`, where all missing values are one."""
    codes = _Codes(lists.X[lists.rows])
    user = lists.user_of_position
    gains = _bits(lists.gains)
    weights = _codes_of_weights(lists)
    columns = np.ones(codes.n_columns, dtype=np.uint64)
    for _ in range(_ROUNDS):
        rows = _mixed(gains + codes.rows_of(columns))
        of_lists = weights.copy()
        np.add.at(of_lists, user, rows)
        of_lists = _mixed(of_lists)
        rows = _mixed(rows + of_lists[user])
        columns = _mixed(codes.columns_of(rows))
    return Digests(rows, of_lists, columns)


class _Codes:
    """The matrix of code_ij, as ``base_j`` and a sparse matrix of what entries other than 0 add."""

    def __init__(self, X: Any) -> None:
        entries = _in_columns(X)
        n_rows, self.n_columns = entries.shape
        with_zeros = np.diff(entries.indptr) < n_rows
        below = np.empty(entries.nnz, dtype=np.uint64)
        below_zero = np.zeros(self.n_columns, dtype=np.uint64)
        order = _order_in_columns(entries.data, entries.indptr)
        _count_below(entries.data, order, entries.indptr, with_zeros, below, below_zero)
        self.base = np.where(with_zeros, _mixed(below_zero + _ONE), np.uint64(0))
        added = _mixed(below + _ONE) - np.repeat(self.base, np.diff(entries.indptr))
        parts = added, entries.indices, entries.indptr
        self.added: Any = sparse.csc_array(parts, shape=(n_rows, self.n_columns))

    def rows_of(self, columns: Array) -> Array:
        """``sum_j code_ij c_j``."""
        return self.added @ columns + (self.base * columns).sum()

    def columns_of(self, rows: Array) -> Array:
        """``sum_i code_ij r_i``."""
        return self.added.T @ rows + self.base * rows.sum()


_ONE = np.uint64(1)


def _in_columns(X: Any) -> Any:
    """The entries column by column: all of a dense matrix, those of a sparse one but zeros."""
    if sparse.issparse(X):
        entries: Any = sparse.csc_array(X)
        entries.eliminate_zeros()
        return entries
    n_rows, n_columns = X.shape
    rows = np.tile(np.arange(n_rows), n_columns)
    return sparse.csc_array((X.T.ravel(), rows, n_rows * np.arange(n_columns + 1)), X.shape)


def _order_in_columns(values: Array, bounds: Array) -> Array:
    """The entries column by column, the smallest of each first and missing ones last."""
    ends = pairwise(bounds.tolist())
    return np.concatenate([start + np.argsort(values[start:stop]) for start, stop in ends])


@kernel
def _count_below(values, order, bounds, with_zeros, below, below_zero):
    """How many different values of its column lie below each entry, and below a zero."""
    for f in range(with_zeros.size):
        different = 0
        last = -np.inf
        for i in order[bounds[f] : bounds[f + 1]]:
            x = values[i]
            if x != last and not (np.isnan(x) and np.isnan(last)):  # missing ones are one value
                different += 1
            if x < 0.0:
                below_zero[f] = different
            below[i] = different - 1 + (with_zeros[f] and not x < 0.0)
            last = x


def _codes_of_weights(lists: Any) -> Array:
    """A number of the weight of each list, whose unit does not count."""
    if lists.user_weight is None:
        return np.zeros(lists.n_users, dtype=np.uint64)
    _, place = np.unique(lists.user_weight, return_inverse=True)
    return _mixed(place.astype(np.uint64))


def _bits(values: Array) -> Array:
    """The digits of numbers; 0 of 0."""
    return (values + 0.0).astype(np.float64).view(np.uint64)


@kernel
def _mix_all(values):
    for i in range(values.size):
        values[i] = mix(values[i])


def _mixed(values: Array) -> Array:
    mixed = values.copy()
    _mix_all(mixed)
    return mixed


# --- of the values as they are ------------------------------------------------------------------


def digests_of_lists(lists: Any) -> Array:
    """A number of each list, uint64, of the values and gains of its rows, in any order."""
    digests = np.zeros(lists.n_users, dtype=np.uint64)
    lists.columns.digest(lists.rows, lists.indptr, _bits(lists.gains), digests)
    return digests
