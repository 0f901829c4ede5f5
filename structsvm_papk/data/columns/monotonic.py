"""Which columns have to rise or to fall: scikit-learn's `monotonic_cst`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.roles import listed
from structsvm_papk.errors import InputError

_WHAT = "1 (rising), -1 (falling) or 0 (free)"


def signs_of_columns(
    monotonic_cst: Any, n_features: int, names: Sequence[str] | None
) -> Array | None:
    """1, -1 or 0 for each column, None where all are free, of a setting that is given.

    Parameters
    ----------
    monotonic_cst : array-like of shape (n_features,), or mapping of names of columns
        Columns that a mapping does not name are free. A series of pandas whose index is not 0, 1,
        .. is such a mapping.
    n_features : int
    names : sequence of str, or None
        Of the columns, where X was a data frame.

    Raises
    ------
    InputError
        Other values, another number of columns, or a name that X does not have.
    """
    if _has_names(monotonic_cst):
        if not monotonic_cst.index.is_unique:
            raise InputError("monotonic_cst is a series that names a column twice")
        monotonic_cst = monotonic_cst.to_dict()
    if isinstance(monotonic_cst, Mapping):
        given = _by_name(monotonic_cst, n_features, names)
    else:
        given = np.asarray(monotonic_cst, dtype=object)
        if given.shape != (n_features,):
            raise InputError(
                f"monotonic_cst has shape {given.shape}, but X has {n_features} columns: give one "
                f"of {_WHAT} for each, or a dict of column names"
            )
    for column, value in enumerate(given):
        if isinstance(value, bool | np.bool_) or value not in (1, -1, 0):
            name = column if names is None else repr(str(names[column]))
            raise InputError(f"monotonic_cst of column {name} is {value!r}: it must be {_WHAT}")
    signs = given.astype(np.float64)
    return signs if signs.any() else None


def _has_names(values: Any) -> bool:
    """Whether this is a series of pandas with an index of its own."""
    index: Any = getattr(values, "index", None)
    if not hasattr(index, "is_unique"):  # a list has a method of this name
        return False
    return list(index) != list(range(len(index)))


def _by_name(given: Mapping[Any, Any], n_features: int, names: Sequence[str] | None) -> Array:
    if names is None:
        raise InputError(
            "monotonic_cst names columns, but X has no names: give a data frame, or an array of "
            f"{n_features} numbers"
        )
    known = list(map(str, names))
    unknown = [name for name in given if name not in known]
    if unknown:
        raise InputError(
            f"monotonic_cst names column {unknown[0]!r}, which X does not have: it has "
            f"{listed(known)}"
        )
    return np.array([given.get(name, 0) for name in known], dtype=object)
