"""Several storages side by side: columns of numbers, and those of levels behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.base import Columns, ColumnValues, ListRows, Spread, Variation
from structsvm_papk.data.columns.knots import Knots


class ColumnsBeside(Columns):
    """The columns of some storages, one after the other; each has all rows.

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
