"""Scores, labels, ids, groups and weights: one rule each, for training, files and hooks.

====== =========================================================================================
scores numbers without NaN. Refused where rounding to double precision would make two differ no more
labels booleans, 0/1 or -1/1, of which True or 1 is relevant. With a threshold, any finite numbers
ids    of users and items: sortable, none missing. Two are the same when they are equal: numbers
       exactly and whatever their types, text to the letter. Text and numbers are never mixed
====== =========================================================================================

Masked arrays are taken where nothing is masked. Groups are asked for, and one list only where it is
said.
"""

from numbers import Number
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.errors import InputError, as_floats, check_number, is_one_of, warn

_SHOWN = 5
FEWEST_RESAMPLED = 10
EXACT = 2**53  # up to here every whole number is a double
ONE_LIST = "one_list"
_ROUTING = "sklearn.set_config(enable_metadata_routing=True)"
_BY_ESTIMATOR = (
    "cross_val_score(ranker, X, y, params={'groups': users}, cv=GroupKFold(5))"
    "  # or search.fit(X, y, groups=users)"
)
_BY_SCORER = "scorer.set_score_request(groups=True)  # and hand groups=users to the tool"
# of a user: only ratios matter, and sums of weights are to keep their digits
_LEAST_WEIGHT = 1e-100
_MOST_WEIGHT = 1e100


def as_array(values: Any, name: str) -> Array:
    """An array of anything array-like; unlike `numpy.asarray`, lists of mixed types stay exact."""
    is_arrow = hasattr(values, "to_pylist")  # whose `to_numpy` refuses what has to be copied
    if hasattr(values, "to_numpy") and not is_arrow:
        values = values.to_numpy()
    refuse_masked(values, name)
    try:
        array = np.asarray(values)
        if isinstance(values, (list, tuple)) and array.ndim == 1 and _was_changed(values, array):
            array = np.empty(len(values), dtype=object)
            array[:] = values
    except ValueError as error:
        raise InputError(f"{name} must be a regular array: {error}") from None
    return array


def refuse_masked(values: Any, name: str) -> None:
    """Raise where values of a masked array are masked, before something drops the mask."""
    if np.ma.is_masked(values):
        hidden = np.ma.getmaskarray(values)
        where = f" in {rows_of(hidden)}" if hidden.ndim == 1 else ""
        raise InputError(f"{name} has masked values{where}; remove or impute them first")


def _was_changed(values, array):
    """Whether whole numbers became floats in the array, or numbers text."""
    expected: Any = {"f": (float, np.floating), "U": str, "S": bytes}.get(array.dtype.kind)
    if expected is None:
        return False
    return not all(issubclass(kind, expected) for kind in set(map(type, values)))


def as_vector(values: Any, name: str, n_rows: int) -> Array:
    """`as_array` with one value per row."""
    array = as_array(values, name)
    if array.shape != (n_rows,):
        advice = "give one label per row"
        if array.ndim == 1 and array.dtype.kind in "iu" and array.sum() == n_rows:
            advice += "; of sizes of lists, np.repeat(np.arange(len(sizes)), sizes)"
        raise InputError(f"{name} has shape {array.shape}, but there are {n_rows} rows: {advice}")
    return array


def rows_of(mask: Array, groups: Any = None) -> str:
    """`row 3`, or `rows 3, 5, .. (12 rows)` for a message, with the users of the shown rows."""
    rows = np.flatnonzero(mask)
    shown = rows[:_SHOWN]
    listed = ", ".join(map(str, shown))
    of_users = ""
    if groups is not None and np.shape(groups) == np.shape(mask):
        users = dict.fromkeys(map(str, np.asarray(groups)[shown].tolist()))  # each once, in order
        of_users = f" of user{'s' if len(users) > 1 else ''} {', '.join(users)}"
    if rows.size == 1:
        return f"row {listed}{of_users}"
    more = ", .." if rows.size > _SHOWN else ""
    return f"rows {listed}{more}{of_users} ({rows.size} rows, from 0)"


def missing(values: Array) -> Array:
    """Mask of the values that are NaN, NaT, None or pandas' NA."""
    import pandas as pd

    if values.dtype.kind in "biuUS":  # which have no value for it
        return np.zeros(values.shape, dtype=bool)
    return pd.isna(values)


# --- numbers ----------------------------------------------------------------------------------


def as_numbers(values: Array, name: str) -> Array:
    """Numbers and booleans, of their own type or as float64; missing objects are NaN."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype.kind != "O":
        kind = "text" if values.dtype.kind in "USTV" else str(values.dtype)
        raise InputError(f"{name} must be numbers or booleans, not {kind}")
    is_missing = missing(values)
    if is_missing.any():
        values = np.where(is_missing, np.nan, values)
    for other in set(map(type, values.flat)):
        if not is_number(other):
            kind = "text" if other in (str, bytes) else other.__name__
            raise InputError(f"{name} must be numbers or booleans, not {kind}")
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers or booleans: {error}") from None


# --- scores -----------------------------------------------------------------------------------


def check_scores(scores: Any, groups: Any = None, name: str = "scores") -> Array:
    """Scores as a contiguous vector of float64 that orders rows as the scores do."""
    values = as_array(scores, name)
    if values.ndim != 1:
        raise InputError(f"{name} must have one dimension, not shape {values.shape}")
    if values.size == 0:
        raise InputError(f"there are no rows: {name} is empty")
    doubles = np.ascontiguousarray(as_numbers(values, name), dtype=np.float64)
    bad = np.isnan(doubles)
    if bad.any():
        raise InputError(f"{name} contain NaN in {rows_of(bad, groups)}; give every row a score")
    if _may_round(values) and len(set(values.tolist())) > np.unique(doubles).size:
        row = int(np.argmax([float(value) != value for value in values.tolist()]))
        raise InputError(
            f"{name} are more precise than double precision ({values[row]} in row {row}), and "
            "different ones would tie; give their ranks instead"
        )
    return doubles


def _may_round(values):
    """Whether values of this type, and of this size, may change as they become doubles."""
    if values.dtype.kind in "iu":
        return int(values.max()) > EXACT or int(values.min()) < -EXACT
    return values.dtype.kind == "O" or values.dtype.itemsize > 8


# --- labels -----------------------------------------------------------------------------------


def check_labels(labels: Any, n_rows: int, name: str = "labels") -> Array:
    """Relevance of each row, as booleans; the labels must be binary."""
    return relevance(check_grades(labels, n_rows, name=name), name=name)


def check_grades(labels: Any, n_rows: int, *, groups: Any = None, name: str = "labels") -> Array:
    """Labels as finite numbers or booleans, of any number of values."""
    values = as_vector(labels, name, n_rows)
    if values.dtype.kind in "biu":
        return values
    values = as_numbers(values, name).astype(np.float64, copy=False)
    bad = ~np.isfinite(values)
    if bad.any():
        raise InputError(f"{name} are NaN or infinite in {rows_of(bad, groups)}")
    return values


def relevance(grades: Array, threshold: float | None = None, name: str = "labels") -> Array:
    """Relevance of checked grades, as booleans."""
    if threshold is not None:
        check_number("relevance_threshold", threshold)
        return grades >= threshold
    if grades.dtype == bool:
        return grades
    if not is_binary(grades):
        bad = ~np.isin(grades, (0, 1))
        raise InputError(
            f"{name} are not binary: {grades[bad][0]} in {rows_of(bad)}; give 0/1, -1/1 or "
            "booleans, or say with relevance_threshold= from which label on a row is relevant"
        )
    return grades > 0


def is_binary(grades: Array) -> bool:
    """Whether checked grades are booleans, 0/1 or -1/1; one of the two may be absent."""
    return is_zero_one(grades) or bool(((grades == 1) | (grades == -1)).all())


def is_zero_one(grades: Array) -> bool:
    """Whether checked grades are all 0 or 1; whole numbers need only their range."""
    if grades.dtype == bool or not grades.size:
        return True
    if grades.min() < 0 or grades.max() > 1:
        return False
    return grades.dtype.kind in "iu" or bool(((grades == 0) | (grades == 1)).all())


def relevant_from(values: Array, threshold: float | None, source: Any) -> float:
    """From which label on a row of a file is relevant; a threshold is needed unless they are
    binary.

    `values` are the labels, or the distinct ones among them.
    """
    if threshold is not None:
        check_number("relevance_threshold", threshold)
        if values.min() >= threshold or not values.max() >= threshold:
            raise InputError(
                f"{source}: at relevance threshold {threshold:g} all labels are of one class "
                f"(labels run from {values.min():g} to {values.max():g})"
            )
        return threshold
    if values.min() == values.max():
        raise InputError(f"{source}: all labels are of one class ({values[0]:g})")
    if is_binary(values):
        return 0.5
    values = np.unique(values)
    shown = ", ".join(f"{value:g}" for value in values[:6])
    if values.size > 6:
        shown += ", ..."
    raise InputError(
        f"{source}: labels are not 0/1 or -1/1 (found {shown}); say from which "
        "label on a row is relevant with relevance_threshold="
    )


# --- users and items --------------------------------------------------------------------------


def check_ids(values: Any, n_rows: int, name: str = "groups") -> Array:
    """Ids of users or items, one per row; none missing, none of another kind than the rest.

    Floating-point ids so large that neighbouring whole numbers are the same float are refused.
    """
    ids = as_vector(values, name, n_rows)
    if ids.dtype.kind in "biuUS":
        return ids
    is_missing = missing(ids)
    if is_missing.any():
        raise InputError(f"{name} is missing in {rows_of(is_missing)}; give every row its id")
    if ids.dtype.kind == "O":
        return _checked_objects(ids, name)
    if ids.dtype.kind == "f":
        # floats of so many binary digits hold every whole number up to 2**digits
        digits = min(np.finfo(ids.dtype).nmant, 52) + 1
        _refuse_rounded(np.abs(ids) >= 2.0**digits, name, f"2**{digits}")
    return ids


def _checked_objects(ids, name):
    types: set[Any] = set(map(type, ids))
    if len(set(map(family, types))) > 1:
        names = ", ".join(sorted(kind.__name__ for kind in types))
        raise InputError(f"{name} mix types that have no order: {names}; use one type")
    if not any(map(is_number, types)):
        return ids
    floats = (float, np.floating)
    if any(issubclass(kind, floats) for kind in types):
        large = (isinstance(value, floats) and abs(float(value)) >= EXACT for value in ids)
        _refuse_rounded(np.fromiter(large, bool, ids.size), name, "2**53")
    return _fewest_bytes(ids)


def _refuse_rounded(bad, name, limit):
    if bad.any():
        raise InputError(
            f"{name} holds floating-point ids of {limit} or more in {rows_of(bad)}, where whole "
            "numbers are no longer told apart; read the ids as whole numbers or as text"
        )


def is_number(kind: type) -> bool:
    """Whether objects of this type are numbers or truth values."""
    return issubclass(kind, Number | np.bool_) and not issubclass(kind, np.timedelta64)


def family(kind: type) -> str:
    """What ids of a type can be compared with: numbers, text, or else their own type only."""
    if issubclass(kind, str):
        return "text"
    return "numbers" if is_number(kind) else kind.__name__


def same_kind(*columns: Array) -> bool:
    """Whether the ids of several tables can be compared: all numbers, or all text, or .."""
    return len({kind_of(column) for column in columns if column.size}) < 2


def kind_of(ids: Any) -> str:
    """What checked ids are: numbers, text, or the name of another type."""
    kind = ids.dtype.kind
    if kind == "O":
        return family(type(ids[0]))
    if kind in "UT":
        return "text"
    if kind == "S":
        return "bytes"
    return "numbers" if kind in "biuf" else kind


def joined(*columns: Array) -> Array:
    """Checked ids of several tables as one array that holds each of them exactly."""
    columns = tuple(column for column in columns if column.size) or columns  # the empty ones go
    if len({column.dtype for column in columns}) == 1 or kind_of(columns[0]) != "numbers":
        return np.concatenate(columns)
    return _fewest_bytes(np.concatenate([column.astype(object) for column in columns]))


def _fewest_bytes(ids):
    """Objects that are numbers as int64 or uint64 where all of them are such."""
    for exact in (np.int64, np.uint64):
        try:
            with catch_warnings():
                simplefilter("error", DeprecationWarning)  # NumPy 1 lets -1 overflow
                whole = ids.astype(exact)
        except (TypeError, ValueError, OverflowError, DeprecationWarning):
            continue
        if (whole.astype(object) == ids).all():
            return whole
    return ids


def encode(ids: Array) -> tuple[Array, Array]:
    """Sorted distinct ids of checked ones, and the index of each row's id, as int64."""
    if ids.dtype.kind == "O" and ids.size and kind_of(ids) == "text":
        import pandas as pd  # hashes texts, which are slow to sort

        codes, users = pd.factorize(ids, sort=True)
        return np.asarray(users), codes.astype(np.int64, copy=False)
    try:
        users, codes = np.unique(ids, return_inverse=True)
    except TypeError as error:
        raise InputError(f"ids that have no order cannot be sorted: {error}") from None
    return users, codes.astype(np.int64, copy=False)


def places_of(ids: Any) -> Array:
    """The place of each id in the order of trec_eval, that of their text's bytes (`strcmp`).

    The text of a whole number is its digits: 10 is before 9.
    """
    texts = np.empty(len(ids), dtype=object)
    texts[:] = [str(each) for each in ids]
    places = np.empty(texts.size, dtype=np.int64)
    places[np.argsort(texts, kind="stable")] = np.arange(texts.size)
    return places


def single(scores: Array) -> Array:
    """Scores in single precision, in which trec_eval compares them: closer ones are equal."""
    with np.errstate(over="ignore"):
        return scores.astype(np.float32).astype(np.float64)


def places_in_lists(list_of_row: Array, *keys: Array) -> Array:
    """Place of each row in its list, from 0: by the first of the keys, then by the next one.

    Keys increase; `list_of_row` are codes.
    """
    order = np.lexsort((*reversed(keys), list_of_row))
    sizes = np.bincount(list_of_row)
    starts = np.cumsum(sizes) - sizes
    places = np.empty(order.size, dtype=np.int64)
    places[order] = np.arange(order.size) - starts[list_of_row[order]]
    return places


def second_of_a_pair(first: Array, second: Array, n_second: int) -> int | None:
    """The first row whose pair of codes an earlier row has; None where every pair occurs once."""
    import pandas as pd

    pairs = first.astype(np.int64) * n_second + second
    in_order = np.sort(pairs)  # a tenth of the time of a hash table
    if (in_order[1:] > in_order[:-1]).all():
        return None
    return int(np.argmax(pd.Series(pairs).duplicated().to_numpy()))


def check_indptr(indptr: Any, n_rows: int) -> Array:
    """Bounds of users whose rows stand together: int64, from 0 to the number of rows."""
    bounds = as_array(indptr, "indptr")
    if bounds.ndim != 1 or bounds.size < 2 or bounds.dtype.kind not in "iu":
        raise InputError("indptr must be a vector of at least two whole numbers")
    bounds = bounds.astype(np.int64)  # differences of unsigned numbers are never negative
    if bounds[0] != 0 or bounds[-1] != n_rows or (np.diff(bounds) < 0).any():
        raise InputError(
            f"indptr must rise from 0 to the number of rows ({n_rows}); it goes from "
            f"{bounds[0]} to {bounds[-1]}"
        )
    return bounds


def too_few_to_resample(n_users: int) -> str | None:
    """Why no interval can be made by resampling so few users; None where it can."""
    if n_users >= FEWEST_RESAMPLED:
        return None
    return (
        f"a bootstrap interval needs at least {FEWEST_RESAMPLED} users, here there are {n_users}: "
        "too few to see how much users differ (one alone gives an interval of width 0); the "
        "methods kl, hoeffding and bernstein hold for any number of users"
    )


# --- groups and weights -------------------------------------------------------------------------


def required_groups(groups: Any, scorer: bool = False) -> Any:
    """The groups of the rows, or None for one list, which has to be asked for by 'one_list'.

    `scorer`: whether a scorer asks, which does not request groups by itself.
    """
    if groups is None:
        request = _BY_SCORER if scorer else _BY_ESTIMATOR
        raise InputError(
            "groups= is missing: give the user of each row, or groups='one_list' if all rows are "
            "one list. scikit-learn's cross-validation hands groups to the splitter only, unless "
            f"you enable metadata routing:\n    {_ROUTING}\n"
            f"    {request}"
        )
    return groups_or_none(groups)


def is_one_list(groups: Any) -> bool:
    """Whether groups are the word that all rows are one list."""
    return is_one_of(groups, [ONE_LIST])


def groups_or_none(groups: Any) -> Any:
    """The groups of the rows, None for 'one_list'."""
    if not isinstance(groups, str):
        return groups
    if not is_one_list(groups):
        raise InputError(
            f"groups={groups!r}: give an array with the user of each row, or 'one_list'"
        )
    return None


def checked_weight(user_weight: Any, users: Array, n_pos: Array) -> Array | None:
    """Weights as an array, or None where all users weigh the same."""
    if user_weight is None:
        return None
    if isinstance(user_weight, str):
        if user_weight == "equal":
            return None
        if user_weight == "positives":
            return n_pos.astype(np.float64)
        raise InputError(
            f"unknown user_weight {user_weight!r}; choose 'equal', 'positives' or numbers"
        )
    weight = as_floats("user_weight, where it is not 'equal' or 'positives',", user_weight)
    if weight.shape != (users.size,):
        raise InputError(f"user_weight has shape {weight.shape}, but there are {users.size} users")
    refuse_weights(weight, users)
    return weight


def refuse_weights(weight: Array, users: Array, name: str = "the weight") -> None:
    """Refuse weights of users that are not above zero, or whose shares would lose their digits."""
    bad = np.flatnonzero(~((weight >= _LEAST_WEIGHT) & (weight <= _MOST_WEIGHT)))
    if bad.size:
        user = users[bad[:1]].tolist()[0]
        raise InputError(
            f"{name} of user {user!r} is {weight[bad[0]]:g}; weights must be above zero, between "
            f"{_LEAST_WEIGHT:g} and {_MOST_WEIGHT:g} (leave users out by leaving out their rows)"
        )


def encode_groups(groups: Any, n_rows: int) -> tuple[Array, Array]:
    """Users, and the user of each row as their index; without groups a single one."""
    if groups is None:
        return np.zeros(1, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
    return encode(check_ids(groups, n_rows))


def warn_of_other_order(**columns: Any) -> None:
    """Warn of frames and series whose index has the rows of the first one in another order."""
    indexed = {
        name: values.index
        for name, values in columns.items()
        if hasattr(values, "iloc") and not hasattr(values, "__dask_graph__")
    }
    for name, index in indexed.items():
        first = next(iter(indexed))
        if _permuted(indexed[first], index):
            warn(
                f"the index of {name} has the rows of {first} in another order, and rows are taken "
                f"by their places: give {name}.loc[{first}.index], or {name}.to_numpy() if that is "
                "meant"
            )


def _permuted(index: Any, other: Any) -> bool:
    """Whether two indices without duplicates have the same entries in another order."""
    if index.equals(other) or index.size != other.size:
        return False
    return bool(index.is_unique and other.is_unique and other.isin(index).all())
