"""Tables: text, categories and booleans become whole numbers, the place of a value among levels.

A table is a data frame (pandas, Polars, Arrow), or an array of which some columns are said to be
categorical. What becomes of it is a matrix of numbers: in a column of levels the place of each
value among them, -1 for a value that is none of them, NaN for a missing one. Numbers stay.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import ONE_VALUE, YOUR_TABLE, what_to_do
from structsvm_papk.data.columns.levels import MOST_LEVELS
from structsvm_papk.data.roles import listed
from structsvm_papk.data.validation import as_array
from structsvm_papk.data.validation import missing as missing_values
from structsvm_papk.errors import InputError, warn

Levels = Mapping[int, tuple[Any, ...]]
FROM_DTYPE = "from_dtype"
_NUMBER = re.compile(r"\s*-?[$€£¥]?\s*-?\d+([.,]\d+)*\s*[$€£¥%]?\s*")
_SIGN_OR_COMMA = re.compile(r"[$€£¥%,]")
_DATE = re.compile(
    r"\d{4}[-/]\d{2}[-/]\d{2}"
    r"|\d{1,2}(/\d{1,2}/\d{2,4}|\.\d{1,2}\.\d{4})$"
    r"|\d{1,2}[- ]?(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*[- ]?\d{2,4}$"
    r"|-?\d+ days?\b",
    re.IGNORECASE,
)


def levels_of(X: Any, categorical: Any) -> dict[int, tuple[Any, ...]]:
    """The levels of each column of a table that is categorical, sorted.

    Parameters
    ----------
    X : pandas.DataFrame or array
    categorical : {'from_dtype', None} or array-like
        'from_dtype': columns of text, categories and booleans of a frame. Else a mask, numbers or
        names of columns. None: no column.

    Raises
    ------
    InputError
        More than 254 levels, or a column that X does not have.
    """
    if categorical is None:
        return {}
    if is_from_dtype(categorical):
        if not hasattr(X, "iloc"):
            return {}
        columns = [j for j in range(X.shape[1]) if _is_categorical(X.iloc[:, j])]
    elif sparse.issparse(X):
        raise InputError("categorical_features need a table or a dense array, not a sparse X")
    else:
        X = _table(X)
        columns = _numbers_of(categorical, X)
    return {j: levels_in(_column(X, j), name_of(X, j)) for j in columns}


def is_from_dtype(categorical: Any) -> bool:
    """Whether the types of columns say which are categorical; other words are refused."""
    if not isinstance(categorical, str):
        return False
    if categorical != FROM_DTYPE:
        raise InputError(
            f"categorical_features={categorical!r} must be 'from_dtype', None, or the columns: "
            "a mask, numbers or names"
        )
    return True


def _is_categorical(column: Any) -> bool:
    """Whether a series holds text, categories or booleans."""
    import pandas as pd

    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) or pd.api.types.is_bool_dtype(dtype):
        return True
    if isinstance(dtype, pd.StringDtype) or dtype.kind == "U":  # the latter of Arrow
        return True
    if dtype.kind != "O":
        return False
    kinds = {type(value) for value in column[~column.isna()]}
    if kinds & {str, np.str_}:  # `levels_in` says what is wrong with numbers beside text
        return all(issubclass(kind, str | Real | np.bool_) for kind in kinds)
    return bool(kinds) and kinds <= {bool, np.bool_}


def refuse_categories(frame: Any) -> None:
    """Refuse a frame of lists that are not in memory if it has columns of categories."""
    import pandas as pd

    kinds = getattr(frame, "dtypes", {}).items()
    names = [str(name) for name, kind in kinds if isinstance(kind, pd.CategoricalDtype)]
    if names:
        raise InputError(
            "categories have levels only where the lists are in memory, and column "
            f"{listed(names)} holds some: give a sample of the users, leave it out, or make "
            "numbers of it, X[column].astype(float), if the categories count as numbers"
        )


def _numbers_of(categorical: Any, X: Any) -> list[int]:
    """Numbers of the columns that are named, numbered or masked."""
    given = np.atleast_1d(as_array(categorical, "categorical_features"))
    n_columns = X.shape[1]
    if given.dtype == bool:
        if given.shape != (n_columns,):
            raise InputError(
                f"categorical_features has {given.size} booleans, but X has {n_columns} columns"
            )
        return [int(j) for j in np.flatnonzero(given)]
    names = [str(name) for name in getattr(X, "columns", ())]
    n_called = Counter(names)
    places: dict[Any, int] = {name: j for j, name in enumerate(names) if n_called[name] == 1}
    places |= {j: j for j in range(n_columns)}
    numbers = []
    for column in given.tolist():
        if column in list(places):
            numbers.append(places[column])
        else:
            have = listed(names) if names else f"{n_columns} columns, without names"
            raise InputError(
                f"categorical_features names column {column!r}, which X does not have: it has "
                f"{have}"
            )
    return sorted(set(numbers))


def name_of(X: Any, j: int) -> str:
    """The name of a column, else its number."""
    return str(X.columns[j]) if hasattr(X, "iloc") else str(j)


def _table(X: Any) -> Any:
    """A frame as it is; else an array of objects, a copy, as numpy makes text of mixed lists."""
    if hasattr(X, "iloc"):
        return X
    table = np.array(X, dtype=object)
    if table.ndim != 2:
        raise InputError(f"X must have two dimensions (rows, features), got shape {table.shape}")
    return table


def _column(X: Any, j: int) -> Array:
    """The values of a column as objects, in which None is a missing value."""
    values = X.iloc[:, j] if hasattr(X, "iloc") else X[:, j]
    values = np.array(values, dtype=object)
    values[missing_values(values)] = None
    return values


def levels_in(values: Array, name: str) -> tuple[Any, ...]:
    """The different values of a column that are not missing, which are None."""
    different = {_plain(value) for value in _told_apart(values, name)[1]}
    texts = [value for value in different if _kind_of(value) == "text"]
    if 0 < len(texts) < len(different):
        other = next(value for value in different if value not in texts)
        raise InputError(
            f"column {name!r} holds text ({min(texts)!r}) and {_kind_of(other)} ({other!r}): make "
            "all of them text, column.astype(str), or none, "
            f'pd.to_numeric(column, errors="coerce") {YOUR_TABLE}'
        )
    infinite = [value for value in different if value in (math.inf, -math.inf)]
    if infinite:
        raise InputError(
            f"column {name!r} of categories holds {infinite[0]}; {what_to_do(infinite[0])}"
        )
    dates = [value for value in different if _DATE.match(str(value))]
    if dates and len(dates) == len(different):
        raise InputError(
            f"column {name!r} holds dates or durations as text ({min(dates)!r}): give days, of "
            f"dates since a fixed one {YOUR_TABLE}"
        )
    marked = [value for value in different if _SIGN_OR_COMMA.search(str(value))]
    if marked and all(_NUMBER.fullmatch(str(value)) for value in different):
        raise InputError(
            f"column {name!r} holds numbers with a sign or a comma as text ({min(marked)!r}): give "
            'numbers, column.str.replace("[$€£¥% ]", "", regex=True).str.replace(",", ".")'
            f'.astype(float), with "" for commas that separate thousands {YOUR_TABLE}'
        )
    if len(different) > MOST_LEVELS:
        share = len(different) / max(sum(value is not None for value in values), 1)
        some = _plain(next(value for value in values if value is not None))
        hint = "is it an id? Then leave it out"
        if share < 0.5:
            hint = "join the rare ones, or give numbers that say what they mean"
        if all(map(is_number_text, different)):
            hint = "are they numbers? Then make numbers of them, pd.to_numeric(column)"
        raise InputError(
            f"column {name!r} has {len(different)} different values ({some!r}, ..), and a column "
            f"of text or categories has at most {MOST_LEVELS}: {hint} {YOUR_TABLE}"
        )
    return tuple(sorted(different, key=lambda value: (type(value).__name__, value)))


def _told_apart(values: Array, name: str) -> tuple[Array, Array]:
    """Which of the different values each value is, -1 where it is None; the different values."""
    import pandas as pd

    try:
        return pd.factorize(values)
    except TypeError:  # a list, which has no hash
        nested = next(value for value in values if not isinstance(value, Hashable))
        raise InputError(
            f"column {name!r} holds a {type(nested).__name__}: {ONE_VALUE} {YOUR_TABLE}"
        ) from None


def are_texts(levels: Sequence[Any]) -> bool:
    """Whether levels are text, not numbers or truth values."""
    return any(_kind_of(level) == "text" for level in levels)


def is_number_text(text: Any) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return isinstance(text, str)


def _kind_of(level: Any) -> str:
    """What messages call a level."""
    if isinstance(level, bool):
        return "True and False"
    return "text" if isinstance(level, str) else "numbers"


def numbers_with_none(values: Array) -> Array:
    """Numbers as objects, in which None is a missing value."""
    objects = values.astype(object)
    objects[np.isnan(values)] = None
    return objects


def _plain(value: Any) -> Any:
    """A value as Python has it, so that files can hold it."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, str | bool | int | float):
        return value
    return str(value)


def in_numbers(X: Any, levels: Levels) -> Any:
    """X with the place among the levels in every column that has some; X itself without any.

    Raises
    ------
    InputError
        A column that was text in training and holds numbers now, or the other way round; X is
        sparse.
    """
    if not levels:
        return X
    if sparse.issparse(X):
        raise InputError(
            f"column {min(levels)} (counted from 0) held text or categories in training, which a "
            "sparse X does not have: give a table"
        )
    X = _table(X)
    places = {j: places_in(_column(X, j), known, name_of(X, j)) for j, known in levels.items()}
    if not hasattr(X, "iloc"):
        for j, place in places.items():
            X[:, j] = place
        return X
    import pandas as pd

    columns = {j: places.get(j, X.iloc[:, j]) for j in range(X.shape[1])}  # names may repeat
    frame = pd.DataFrame(columns, index=X.index)
    frame.columns = X.columns
    return frame


def places_in(values: Array, levels: Sequence[Any], name: str) -> Array:
    """The place of each value among the levels, -1 for none, NaN where it is missing.

    Where most values are no level, there is a warning.
    """
    place_of = {level: float(place) for place, level in enumerate(levels)}
    codes, different = _told_apart(values, name)
    plain = [_plain(value) for value in different]
    of_values = [place_of.get(value, -1.0) for value in plain]
    places = np.array([*of_values, np.nan])[codes]  # -1, the last, is a missing value
    was_text = are_texts(levels)
    for value in plain:
        if are_texts([value]) != was_text and levels:
            raise InputError(
                f"column {name!r} holds {_kind_of(value)} ({value!r}), and in training it held "
                f"{_kind_of(levels[0])} ({levels[0]!r}): its values must be of the "
                f"same kind {YOUR_TABLE}"
            )
    n_known = np.count_nonzero(places >= 0)
    if np.count_nonzero(places < 0) > n_known:
        new = [value for value, place in zip(plain, of_values, strict=True) if place < 0]
        rows = " in most of its rows" if n_known else ""
        warn(
            f"column {name!r} holds {_first(new)}{rows}, of which training knew none: each adds 0. "
            f"It had {_first(levels)}: are they spelled as there? {YOUR_TABLE}"
        )
    return places


def _first(values: Sequence[Any]) -> str:
    """The first values for a message."""
    return ", ".join(map(repr, values[:3])) + (", .." if len(values) > 3 else "")
