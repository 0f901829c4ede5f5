"""The same metrics on parts of the data: values, intervals and support per segment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk._types import Array
from structsvm_papk.data.validation import as_array, check_ids, encode, missing
from structsvm_papk.errors import InputError

_MAX_SEGMENTS = 1000


def split(
    column: str,
    values: ArrayLike,
    codes: Array,
    relevant: Array,
    whole: Any,
    restricted: Callable[[Array], Any],
) -> Iterator[tuple[Any, ...]]:
    """The fields of each `Segment` of one column, of which `whole` is the table.

    `restricted` gives the MetricTable of a mask of rows.
    """
    values = _as_rows(column, as_array(values, column), codes, whole.users.size)
    names, inverse = levels(values, column)
    kind = "user" if _constant_within(inverse, codes, whole.users.size) else "item"
    for level, name in enumerate(names):
        mask = inverse == level
        if kind == "user" and not whole.is_pooled:
            chosen = np.zeros(whole.users.size, dtype=bool)
            chosen[codes[mask]] = True
            table = whole.take(chosen)
        else:
            table = restricted(mask)
        yield column, name, kind, int(mask.sum()), int(relevant[mask].sum()), table


def _as_rows(column: str, values: Array, codes: Array, n_users: int) -> Array:
    if values.shape == codes.shape:
        return values
    if values.shape == (n_users,):
        return values[codes]
    raise InputError(
        f"segment column {column!r} has shape {values.shape}; give one value per row "
        f"({codes.size}) or per user ({n_users})"
    )


def levels(values: Array, column: str = "segments") -> tuple[list[Any], Array]:
    """Distinct values in order, `missing` last where some are, and the index of each row's value.

    As for ids, 1 and "1" are not the same; a column that holds both is refused.
    """
    gone = missing(values)
    present = values[~gone]
    known, codes = encode(check_ids(present, present.size, f"segment column {column!r}"))
    names, inverse = known.tolist(), np.full(values.size, known.size, dtype=np.int64)
    inverse[~gone] = codes
    if gone.any():
        names.append("missing" if "missing" not in names else "no value")
    if len(names) > _MAX_SEGMENTS:
        raise InputError(
            f"segment column {column!r} has {len(names)} different values, more than "
            f"{_MAX_SEGMENTS}; group them first"
        )
    return names, inverse


def _constant_within(inverse: Array, codes: Array, n_users: int) -> bool:
    first = np.zeros(n_users, dtype=inverse.dtype)
    first[codes] = inverse
    return bool((first[codes] == inverse).all())
