"""What is asked about features, whatever storage they are in.

A storage holds rows and stands for a matrix M with a column for each weight. List position p has
the row ``M[rows[p]]``. It is multiplied in two ways,

    scores[p] = M[rows[p]] . w        sum_p coef[p] M[rows[p]]

by kernels that read the rows in place, whatever their order. Sums are in float64 whatever the
storage, and never depend on the number of threads. Rows whose coefficient is zero are not touched:
with top-k surrogates that is most of them.

A surrogate that depends on differences within a user only does not change when one vector is
subtracted from all rows of a user. So where a column such as a time stamp shares most of its digits
within a user, risks multiply a copy of the lists less each user's first row (`less_first_rows`):
the subtraction of close numbers is exact or nearly so, and what all rows share is gone before
anything is rounded. See ``docs/math/certificate.md`` for the bounds of rounding.

In the kernels u counts users, p list positions, f columns, and e the entries that CSR stores.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from structsvm_papk._jit import kernel
from structsvm_papk._rounding import Rounding, error_of_sum
from structsvm_papk._types import Array
from structsvm_papk.data.columns.knots import Knots
from structsvm_papk.errors import InputError

_OFFSET = 1024.0  # how many times its spread a column's values must be for a copy to pay
_STEPS = 4  # steps of the storage type within a user that are too few to be more than rounding
_BLOCK_VALUES = 1 << 17  # of X that are scored at a time: the scores of a block stay in the cache
ROWS_AT_A_TIME = 1024  # of which columns are searched for what few have


class Columns(ABC):
    """Features of some rows, in one storage.

    Attributes
    ----------
    X : ndarray or CSR
        The matrix of the columns as they were given; levels have none.
    n_rows, n_weights : int
        Shape of M.
    dtype : dtype
        Of the values.
    n_entries : int
        Numbers that a product of all rows reads.
    nbytes : int
        Of the arrays.
    is_sparse : bool
        Whether zeros are not stored.
    """

    X: Any
    n_rows: int
    n_weights: int
    dtype: Any
    is_sparse: bool = False

    @property
    @abstractmethod
    def n_entries(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int: ...

    @property
    def n_columns(self) -> int:
        """Columns that the weights are of, as they were given."""
        return self.n_weights

    @property
    def knots(self) -> Knots | None:
        """Where curves may bend; None where there are none."""
        return None

    # --- products -------------------------------------------------------------------------------

    def add_scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        """Add ``M[rows[p]] . w`` to ``out[p]`` for ``start <= p < stop``.

        In any order: that of the columns, where another one is not faster.
        """
        self.add_in_order(rows[start:stop], w, out[start:stop])

    @abstractmethod
    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        """Add ``sum_p coef[p] M[rows[p]]`` to ``out[c]``.

        The sum is over the positions p in ``active[bounds[c]:bounds[c + 1]]``.
        """

    @abstractmethod
    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        """Add ``M[rows] . w`` to `out`: products in the order of the columns, each sum rounded."""

    def scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        """Write ``M[rows[p]] . w`` into ``out[p]`` for ``start <= p < stop``."""
        out[start:stop] = 0.0
        self.add_scores(rows, w, start, stop, out)

    def add_weighted_rows(self, rows: Array, coef: Array, edges: Array, out: Array) -> None:
        """Add ``sum_p coef[p] M[rows[p]]`` over ``edges[c] <= p < edges[c + 1]`` to ``out[c]``."""
        # of booleans the indices are found five times faster
        active = edges[0] + np.flatnonzero(coef[edges[0] : edges[-1]] != 0.0)
        self.add_active_rows(rows, coef, active, np.searchsorted(active, edges), out)

    @abstractmethod
    def combined_rows(self, rows: Array, coef: Array) -> Array:
        """``coef @ M[rows]`` in float64, for several rows of coefficients."""

    def reported_scores(self, w: Array, rows: Array | None = None, n_threads: int = 1) -> Array:
        """``M[rows] @ w`` in float64, of all rows by default: the scores that leave the package.

        Every score is ``((x_1 w_1 + x_2 w_2) + x_3 w_3) + ..``, each product and each sum rounded,
        in the order of the columns. So rows with the same values have the same score to the last
        bit, wherever they stand and however they are stored: BLAS promises nothing of the kind, and
        what ties would depend on it. Zeros that a CSR matrix does not store change no sum. Solvers
        use `scores`, which may add up in another order.
        """
        rows = np.arange(self.n_rows) if rows is None else rows
        out = np.zeros(rows.size)
        size = max(1, _BLOCK_VALUES // self.n_columns)
        starts = range(0, rows.size, size)

        def fill(start: int) -> None:
            self.add_in_order(rows[start : start + size], w, out[start : start + size])

        for_each(fill, starts, n_threads)
        return out

    # --- rows -----------------------------------------------------------------------------------

    @abstractmethod
    def take(self, rows: Any) -> Self:
        """Some rows, in this order, an array of indices or a mask."""

    @abstractmethod
    def join(self, others: Sequence[Self]) -> Self:
        """These rows, and below them those of others of the same storage."""

    def less_first_rows(self, rows: Array, indptr: Array, spread: Spread) -> ListRows:
        """The lists less each user's first row, a copy in float64, in the columns ``shifted``."""
        return ListRows(self, rows)

    @abstractmethod
    def toarray(self) -> Array:
        """M written out, in float64."""

    def inner_products(self, factors: Array) -> Array:
        """``Z Z'`` of all rows, where Z is M with the column of each weight times its factor."""
        written = self.toarray() * factors
        return written @ written.T

    def written_out(self, rows: Array) -> WrittenOut:
        """Some rows written out, an array of its own, in the columns that have entries there."""
        written = np.array(self.take(rows).toarray(), order="C")
        return WrittenOut(np.arange(self.n_weights), written)

    @abstractmethod
    def content(self) -> Iterator[Any]:
        """Texts and arrays that tell these features from others, for fingerprints."""

    @abstractmethod
    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        """Add up a number for each list, of the values of its rows, in any order, and of `gains`.

        The same whatever storage and type the values have; all are uint64.
        """

    # --- what the columns are like --------------------------------------------------------------

    def with_missing(self) -> Array:
        """Which columns hold NaN, a mask."""
        return np.zeros(self.n_columns, dtype=bool)

    @abstractmethod
    def spread(self, rows: Array, indptr: Array) -> Spread:
        """The `Spread` of the lists ``rows[indptr[u]:indptr[u + 1]]``, in one pass."""

    @abstractmethod
    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        """How the columns of M vary in the lists."""

    def term_deviations(self, w: Array, rows: Array, indptr: Array, deviation: Array) -> Array:
        """Pooled deviation within users of what each column adds to the scores, for weights w.

        `deviation` is that of the columns of M, see `variation`.
        """
        return np.asarray(np.abs(w) * deviation)

    def stiffness(self, stiffness: float) -> Array:
        """How many times stronger the penalty is on each weight than on that of a line."""
        return np.ones(self.n_weights)

    @abstractmethod
    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        """The column that a weight belongs to, what of it, and its values, for messages."""

    def text_of(self, weight: int, rows: Array, within: float, names: Sequence[str] | None) -> str:
        """A column with its mean, and its spread `within` a user, for messages."""
        column, which, values = self.values_of(weight, rows)
        name = f"column {column} of X (counted from 0)"
        if names is not None:
            name = f"column {names[column]!r}"
        mean = values.mean(dtype=np.float64)
        return f"{name}{which} has mean {mean:.6g}, and spreads over {within:.3g} within a user"

    def refuse_unresolved(self, rows: Array, spread: Spread, names: Sequence[str] | None) -> None:
        """Refuse a column whose values within a user differ by rounding of their storage only."""
        if not spread.shifted.any():
            return
        step = np.spacing(spread.largest.astype(self.dtype)).astype(np.float64)
        bad = (spread.within > 0.0) & (spread.within <= _STEPS * step)
        bad &= spread.shifted & (spread.largest > _OFFSET * spread.within)
        if not bad.any():
            return
        f = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"{self.text_of(f, rows, spread.within[f], names)}, which is at most {_STEPS} steps of "
            f"{self.dtype} at that size (one is {step[f]:.3g}): its digits do not suffice to rank "
            "by; subtract its offset before it is stored, keep it in float64, or leave it out"
        )


class MatrixColumns(Columns):
    """The columns of a matrix, which is not copied: a weight for each."""

    def __init__(self, X: Any) -> None:
        self.X = X
        self.n_rows, self.n_weights = X.shape
        self.dtype = X.dtype

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        return np.asarray(coef @ self.X[rows], dtype=np.float64)

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        """The deviations are taken from the user's first row, in units of the largest of them.

        So neither a common offset nor values of 1e-100 or 1e100 cost digits. Offsets between users
        do not count, as they do not to a ranking.
        """
        unit = np.where(spread.within > 0.0, spread.within, 1.0)
        squares = np.zeros(unit.size)
        self.add_squares(rows, indptr, 1.0 / unit, squares)
        low, high = self.two_values(rows)
        return Variation(
            deviation=unit * np.sqrt(squares / max(rows.size, 1)),
            low=low,
            high=high,
            n_rows=rows.size,
            is_sparse=self.is_sparse,
        )

    @abstractmethod
    def add_squares(self, rows: Array, indptr: Array, inverse: Array, squares: Array) -> None:
        """Add the squared distances from the means of the users, of values times `inverse`."""

    def two_values(self, rows: Array) -> tuple[Array, Array]:
        """The two values of each column, NaN where it has more, or nobody looks."""
        unknown = np.full(self.n_weights, np.nan)
        return unknown, unknown


class ColumnsBeside(Columns):
    """The columns of some storages side by side, as numbers and levels; each has all rows.

    Parameters
    ----------
    parts : sequence of Columns
        Two or more, none of them sparse.
    """

    def __init__(self, parts: Sequence[Columns]) -> None:
        self.parts = tuple(parts)
        self.n_rows = parts[0].n_rows
        self.n_weights = sum(part.n_weights for part in parts)
        self.dtype = parts[0].dtype

    @cached_property
    def slices(self) -> tuple[slice, ...]:
        """The weights of each part."""
        ends = np.cumsum([part.n_weights for part in self.parts]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def _each(self) -> Iterator[tuple[Columns, slice]]:
        return zip(self.parts, self.slices, strict=True)

    @property
    def n_entries(self) -> int:
        return sum(part.n_entries for part in self.parts)

    @property
    def nbytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    @property
    def n_columns(self) -> int:
        return sum(part.n_columns for part in self.parts)

    @property
    def knots(self) -> Knots | None:
        return self.parts[0].knots

    def add_scores(self, rows: Array, w: Array, start: int, stop: int, out: Array) -> None:
        for part, own in self._each():
            part.add_scores(rows, w[own], start, stop, out)

    def add_active_rows(
        self, rows: Array, coef: Array, active: Array, bounds: Array, out: Array
    ) -> None:
        for part, own in self._each():
            part.add_active_rows(rows, coef, active, bounds, out[:, own])

    def combined_rows(self, rows: Array, coef: Array) -> Array:
        return np.hstack([part.combined_rows(rows, coef) for part in self.parts])

    def add_in_order(self, rows: Array, w: Array, out: Array) -> None:
        for part, own in self._each():
            part.add_in_order(rows, w[own], out)

    def take(self, rows: Any) -> ColumnsBeside:
        return ColumnsBeside([part.take(rows) for part in self.parts])

    def join(self, others: Sequence[ColumnsBeside]) -> ColumnsBeside:
        return ColumnsBeside(
            [part.join([other.parts[i] for other in others]) for i, part in enumerate(self.parts)]
        )

    def less_first_rows(self, rows: Array, indptr: Array, spread: Spread) -> ListRows:
        shifted = []
        for part, own in self._each():
            if spread.shifted[own].any():
                copied = part.less_first_rows(rows, indptr, spread.of(own)).columns
            else:
                copied = part.take(rows)
            shifted.append(copied)
        return ListRows(ColumnsBeside(shifted), np.arange(rows.size))

    def toarray(self) -> Array:
        return np.hstack([part.toarray() for part in self.parts])

    def inner_products(self, factors: Array) -> Array:
        products = np.zeros((self.n_rows, self.n_rows))
        for part, own in self._each():
            products += part.inner_products(factors[own])
        return products

    def content(self) -> Iterator[Any]:
        for part in self.parts:
            yield from part.content()

    def digest(self, rows: Array, indptr: Array, gains: Array, digests: Array) -> None:
        for part in self.parts:
            part.digest(rows, indptr, gains, digests)

    def spread(self, rows: Array, indptr: Array) -> Spread:
        return Spread.beside([part.spread(rows, indptr) for part in self.parts])

    def variation(self, rows: Array, indptr: Array, spread: Spread) -> Variation:
        return Variation.beside(
            [part.variation(rows, indptr, spread.of(own)) for part, own in self._each()]
        )

    def term_deviations(self, w: Array, rows: Array, indptr: Array, deviation: Array) -> Array:
        parts = [
            part.term_deviations(w[own], rows, indptr, deviation[own]) for part, own in self._each()
        ]
        return np.concatenate(parts)

    def stiffness(self, stiffness: float) -> Array:
        return np.concatenate([part.stiffness(stiffness) for part in self.parts])

    def values_of(self, weight: int, rows: Array) -> ColumnValues:
        before = 0
        for part, own in self._each():
            if weight < own.stop:
                break
            before += part.n_columns
        inner = part.values_of(weight - own.start, rows)
        return inner._replace(column=before + inner.column)


class ListRows(NamedTuple):
    """Rows of the lists: list position p has the row ``columns.take(rows[p])``."""

    columns: Columns
    rows: Array


class WrittenOut(NamedTuple):
    """Entries of some rows, and the weights that their columns belong to."""

    weights: Array
    values: Array


class ColumnValues(NamedTuple):
    """A column, what part of it a weight is of, and values of that column."""

    column: int
    which: str
    values: Array


@dataclass(frozen=True)
class Spread:
    """How large the values of each column are, and how far apart within a user.

    `within` is the largest distance to the user's first row (`largest` for columns that are not
    shifted); `shifted` are the columns from which that row may be subtracted: for sparse X those
    that are stored in every row. A row's score adds up at most `row_terms` values, and an entry of
    a sum of rows at most `column_terms` besides those of the rows.
    """

    largest: Array
    within: Array
    shifted: Array
    row_terms: int
    column_terms: int = 0

    @classmethod
    def beside(cls, parts: Sequence[Spread]) -> Spread:
        """Of columns that stand beside each other."""
        return cls(
            largest=np.concatenate([part.largest for part in parts]),
            within=np.concatenate([part.within for part in parts]),
            shifted=np.concatenate([part.shifted for part in parts]),
            row_terms=sum(part.row_terms for part in parts),
            column_terms=max(part.column_terms for part in parts),
        )

    def of(self, weights: slice) -> Spread:
        """That of some of the columns."""
        return replace(
            self,
            largest=self.largest[weights],
            within=self.within[weights],
            shifted=self.shifted[weights],
        )

    @cached_property
    def has_offsets(self) -> bool:
        """Whether subtracting the user's first row pays."""
        # a constant column moves no row past another, but its offset rounds the scores: it is
        # compared with the column that spreads the most
        within = np.where(self.within > 0.0, self.within, self.within.max())
        return bool((self.shifted & (self.largest > _OFFSET * within)).any())

    def rounding(self, shifted: bool, l1_bound: float, chain: int) -> Rounding:
        """The `Rounding` of a risk, whose rows may be less their user's first one (`shifted`).

        A user's absolute subgradients add up to `l1_bound` at most, in the mean over the users; at
        most `chain` rows are added up one after the other in a slope.
        """
        largest_entry = self.within if shifted else self.largest
        sizes = l1_bound * largest_entry  # of all terms together, in absolute value
        return Rounding(
            scores=error_of_sum(self.row_terms, sizes),
            slopes=error_of_sum(chain + self.column_terms, sizes),
        )


@dataclass(frozen=True)
class Variation:
    """How the columns of some lists vary.

    Attributes
    ----------
    deviation : ndarray of shape (n_weights,)
        Pooled within users, ``sqrt(sum_u sum_{i of u} (x_if - mean_uf)^2 / n_rows)``; 0 for a
        column that is constant there.
    low, high : ndarray of shape (n_weights,)
        The two values of a column in all rows, the same for a constant one; NaN where a column
        takes more values than two, and where nobody looked: in a sparse X.
    n_rows : int
    is_sparse : bool
    """

    deviation: Array
    low: Array
    high: Array
    n_rows: int
    is_sparse: bool = False

    @classmethod
    def pooled(cls, parts: Sequence[Variation]) -> Variation:
        """Of several sets of users together."""
        filled = [part for part in parts if part.n_rows] or list(parts[:1])
        lows = np.array([part.low for part in filled])
        highs = np.array([part.high for part in filled])
        low = lows.min(axis=0)  # NaN where one of them is
        high = highs.max(axis=0)
        known = ((lows == low) | (lows == high)) & ((highs == low) | (highs == high))
        two = known.all(axis=0)
        return cls(
            deviation=_pooled_deviation(filled),
            low=np.where(two, low, np.nan),
            high=np.where(two, high, np.nan),
            n_rows=sum(part.n_rows for part in filled),
            is_sparse=any(part.is_sparse for part in filled),
        )

    @classmethod
    def beside(cls, parts: Sequence[Variation]) -> Variation:
        """Of columns that stand beside each other."""
        return cls(
            deviation=np.concatenate([part.deviation for part in parts]),
            low=np.concatenate([part.low for part in parts]),
            high=np.concatenate([part.high for part in parts]),
            n_rows=parts[0].n_rows,
            is_sparse=any(part.is_sparse for part in parts),
        )

    @property
    def half_difference(self) -> Array:
        """Of the two values of a column; NaN where it takes more."""
        return self.high / 2 - self.low / 2  # which does not overflow


def _pooled_deviation(parts: Sequence[Variation]) -> Array:
    each = np.array([part.deviation for part in parts])
    n_rows = np.array([part.n_rows for part in parts])
    share = n_rows / max(n_rows.sum(), 1)
    unit = np.where(each.any(axis=0), each.max(axis=0), 1.0)
    return np.asarray(unit * np.sqrt(share @ np.square(each / unit)))


def for_each(task: Callable[[int], None], starts: range, n_threads: int) -> None:
    """The task at each start of a block of rows, on so many threads."""
    if n_threads == 1 or len(starts) < 2:
        for start in starts:
            task(start)
        return
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(task, starts))


def joined(parts: Sequence[Columns]) -> Columns:
    """The rows of several parts of one storage."""
    return parts[0].join(parts[1:])


@kernel
def difference(value: float, origin: float) -> float:
    """In float64, and rounded by itself: the sums' freedom to reorder must not undo it."""
    return np.float64(value) - np.float64(origin)


_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


@kernel
def mix(x: np.uint64) -> np.uint64:
    """A bijection that keeps 0: high digits onto low ones, times an odd number, three times."""
    for _ in range(3):
        x = (x ^ (x >> np.uint64(32))) * _ODD
    return x ^ (x >> np.uint64(32))


@kernel
def digest_of_entry(x: float, f: int, one: Array) -> np.uint64:
    """What an entry adds to its row: nothing, if it is 0."""
    one[0] = x
    if one[0] == 0.0:
        return np.uint64(0)
    return mix(one.view(np.uint64)[0]) * mix(np.uint64(2 * f + 1))
