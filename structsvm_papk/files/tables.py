"""CSV, TSV and Parquet: which column is the label, the user or a feature, and its values.

A user or an item is text as it stands in the file, so that `007` and `7` are two; in Parquet, whose
columns have types, it is what the type says.
"""

import os
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import rows, validation
from structsvm_papk.data.columns import (
    ITEM_COLUMNS,
    USER_COLUMNS,
    is_named_as_id,
    label_column,
    listed,
    usual_column,
)
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.text import how_to_leave_out, place_of, read_text, text_names, texts_of

FORMATS = ("csv", "tsv", "parquet")
_FORMAT_OF_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
# whole numbers that may be ids
_ID_ROWS = 100_000  # that are looked at
_FEWEST_ID_ROWS = 50  # fewer say nothing
_ID_SHARE = 0.98  # of different values within lists, at least
_ID_SPAN = 5  # times the longest list, at least: ranks, which differ too, stay below


class Kind(Enum):
    """What a column holds: ids are never missing, other texts and numbers with holes may be."""

    NUMBER = "number"
    NUMBER_OR_HOLE = "number or hole"
    ID = "id"
    TEXT = "text"


@dataclass(frozen=True)
class Table:
    """What a file holds, before grades become relevance.

    Labels are the grades of the file, groups the user of each row; None where the file does not
    say. `place` says where a row stands. `first_index`, 0 or 1, is the svmlight index of the first
    column of X. `columns_used` is one line that says what was taken for what; `remarks` say what
    had to be assumed to match the features with those of `like`. With `missing` X may hold NaN.
    """

    source: str
    X: Any
    labels: Array | None
    groups: Array | None
    place: Callable[[int], str]
    columns_used: str
    remarks: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    first_index: int | None = None
    missing: str | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that are not finite, but for holes that are asked for."""
        labels = np.empty(0) if self.labels is None else self.labels
        bad = np.flatnonzero(~np.isfinite(labels))
        if bad.size:
            raise InputError(f"{self.place(bad[0])}: the label is {labels[bad[0]]}")
        feature = rows.first_non_finite(self.X, self.missing)
        if feature is not None:
            name = f"feature {feature.column + (self.first_index or 0)}"
            if self.feature_names is not None:
                name = f"column {self.feature_names[feature.column]!r}"
            advice = rows.what_to_do(feature.value, sparse.issparse(self.X))
            raise InputError(f"{self.place(feature.row)}: {name} is {feature.value}; {advice}")

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    def ranking_data(self, threshold: float | None = None, one_list: bool = False) -> RankingData:
        """Turn the table into `RankingData`; with `one_list` all rows are ranked against each
        other.
        """
        if self.labels is None:
            raise InputError(f"{self.source}: no labels in the file")
        relevant = self.labels >= validation.relevant_from(self.labels, threshold, self.source)
        if self.groups is None and not one_list:
            lacking = "no user column; name it with --group"
            if self.feature_names is None:  # svmlight
                lacking = "no qid: in the rows and no .query file beside it"
            raise InputError(
                f"{self.source} does not say which rows belong to which user ({lacking}); "
                "if all rows are one list, say so with --one-list (one_list=True in Python)"
            )
        groups = None if one_list else self.groups
        return RankingData.from_groups(
            self.X, relevant, groups, feature_names=self.feature_names, missing=self.missing
        )


class Columns(NamedTuple):
    """Which columns of a file are the features, the label and the user; None: there is none.

    `used` is one line that says so.
    """

    features: tuple[str, ...]
    label: str | None
    group: str | None
    used: str
    item: str | None = None


def format_of(path: Path) -> str | None:
    """The format of a table by its name; None where it is not the name of one."""
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return _FORMAT_OF_SUFFIX.get(suffixes[-1].lower() if suffixes else "")


# --- which column is what -------------------------------------------------------------------


def choose_columns(
    path: Any,
    names: list[str],
    index: Collection[str] = (),
    *,
    label: str = "label",
    group: str | None = None,
    ignore: Collection[str] = (),
    require_labels: bool = True,
    like: Any = None,
) -> Columns:
    """Find the label, the user and the features among the columns of a file, see `read_table`.

    Columns named as users, items or other ids usually are (`USER_COLUMNS`, `ITEM_COLUMNS`, names
    that end in `_id` or `Id`) are no features, nor is the index of a frame.
    Every step is linear in the number of columns.
    """
    places = _places(path, names)
    label = label_column(label, names)
    if "" in places:
        raise InputError(
            f"{path}: column {places[''] + 1} has no name (pandas writes its index so: "
            "use to_csv(index=False))"
        )
    if label == group and label in places:
        raise InputError(f"{path}: column {label!r} cannot be both the label and the user")
    if require_labels and label not in places:
        raise InputError(
            f"{path}: no column {label!r} for the label; the columns are {listed(names)}; "
            "choose one with --label"
        )
    absent = [name for name in ignore if name not in places]
    if absent:
        raise InputError(f"{path}: no column {absent[0]!r} to ignore; it has {listed(names)}")
    if group is None:
        group = usual_column(USER_COLUMNS, [name for name in places if name != label])
    elif group not in places:
        raise InputError(
            f"{path}: no column {group!r} for the user; it has {listed(names)}; "
            "name it with --group"
        )
    features = tuple(_feature_columns(path, places, {label, group, *index, *ignore}, like))
    item = usual_column(ITEM_COLUMNS, names)
    if item in features:
        item = None
    existing_label = label if label in places else None
    taken = {*features, existing_label, group, item}
    ignored = [name for name in names if name not in taken]
    used = (
        f"{path}: {len(features)} features ({listed(features)}), "
        f"label {_or_none(existing_label)}, user {_or_none(group)}, item {_or_none(item)}, "
        f"ignored {listed(ignored) if ignored else 'none'}"
    )
    return Columns(features=features, label=existing_label, group=group, used=used, item=item)


def _or_none(name):
    return "none" if name is None else repr(name)


def _places(path, names):
    """Where each name stands."""
    places = {name: c for c, name in enumerate(names)}
    if len(places) < len(names):
        repeated = next(name for c, name in enumerate(names) if places[name] != c)
        raise InputError(f"{path}: column {repeated!r} appears more than once")
    return places


def _feature_columns(path, places, others, like):
    """Those of `like`, by name; else all but the `others` and what is named as ids usually are."""
    wanted = getattr(like, "feature_names", None)
    if wanted is not None:
        absent = [name for name in wanted if name not in places]
        if absent:
            raise InputError(
                f"{path}: no column {absent[0]!r}, a feature of the model ({listed(wanted)})"
            )
        return wanted
    features = [name for name in places if name not in others and not is_named_as_id(name)]
    if not features:
        raise InputError(
            f"{path}: no feature column; the columns are {listed(list(places))}, and those of the "
            "label, users, items and other ids are none"
        )
    if like is not None and len(features) != like.n_features:
        raise InputError(f"{path}: {len(features)} features, but {like.n_features} are expected")
    return features


# --- reading --------------------------------------------------------------------------------


@contextmanager
def reading(path: PathLike) -> Iterator[None]:
    """Turn what the system says of a file into `InputError`."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None


def column_names(path: Any, format: str) -> list[str]:
    """Names of the columns, each once."""
    names, _ = _names_and_index(Path(path), format)
    return names


def _names_and_index(path, format):
    """Names of the columns, each once, and of those among them that are a frame's index."""
    with reading(path):
        if format == "parquet":
            with open_parquet(path) as file:
                names = file.schema_arrow.names
                index = index_columns(file.schema_arrow)
        else:
            names = text_names(path, format)
            index = []
    _places(path, names)
    return names, index


def read_features(
    path: Path, format: str, like: Any = None, missing: str | None = None, **roles: Any
) -> Table:
    """The features, labels and users of a file with named columns, see `choose_columns`.

    With `missing` an empty cell, or a null of Parquet, is NaN.
    """
    names, index = _names_and_index(path, format)
    columns = choose_columns(path, names, index, like=like, **roles)
    number = Kind.NUMBER if missing is None else Kind.NUMBER_OR_HOLE
    kinds = dict.fromkeys(columns.features, number)
    if columns.label is not None:
        kinds[columns.label] = Kind.NUMBER
    if columns.group is not None:
        kinds[columns.group] = Kind.ID
    values = read_columns(path, format, kinds, columns.features)
    features = {name: values[name] for name in columns.features}
    place = partial(place_of, path, format)
    X = feature_matrix(features, place)
    labels = None if columns.label is None else values[columns.label].astype(float)
    users = None if columns.group is None else values[columns.group]
    remarks: tuple[str, ...] = ()
    if like is None:
        remarks = remark_of_ids(path, features, users)
    elif like.feature_names is None:
        remarks = (
            f"{path}: the model does not name its {X.shape[1]} features, so the columns are "
            f"taken in this order: {listed(columns.features)}",
        )
    return Table(
        source=str(path),
        X=X,
        labels=labels,
        groups=users,
        place=place,
        columns_used=columns.used,
        remarks=remarks,
        feature_names=columns.features,
        missing=missing,
    )


def remark_of_ids(path: Any, columns: Mapping[str, Array], users: Array | None) -> tuple[str, ...]:
    """What to say of features that may be ids: whole numbers, nearly all different in every list.

    Ranks differ as well, but go no further than a list is long.
    """
    names = may_be_ids(columns, users)
    if not names:
        return ()
    columns_hold = "column holds" if len(names) == 1 else "columns hold"
    return (
        f"{path}: the {columns_hold} whole numbers that are nearly all different within lists, as "
        f"ids are: {listed(names)}; if they are ids, leave them out with --ignore (ignore= in "
        "Python)",
    )


def remark_of_frame(X: Any, groups: Any) -> str | None:
    """What to say of a frame of features with columns that are ids, by their names or values."""
    if not hasattr(X, "columns"):
        return None
    names = [str(name) for name in X.columns]
    ids = [name for name in names if is_named_as_id(name)]
    whole_numbers = {}
    for name, column_name in zip(names, X.columns, strict=True):
        column = X[column_name]
        if name not in ids and "int" in str(getattr(column, "dtype", "")).lower():
            whole_numbers[name] = np.asarray(column)
    users = None if groups is None or isinstance(groups, str) else np.asarray(groups)
    if whole_numbers and (users is None or len(users) == len(X)):
        ids += may_be_ids(whole_numbers, users)
    if not ids:
        return None
    return (
        f"X has columns that look like ids, and every column is a feature: {listed(ids)}; leave "
        "them out, as X.drop(columns=..), unless they are meant"
    )


def may_be_ids(columns: Mapping[str, Array], users: Array | None) -> list[str]:
    """Names of the columns of whole numbers that are nearly all different within lists."""
    import pandas as pd

    if not columns:
        return []
    n_rows = min(len(next(iter(columns.values()))), _ID_ROWS)
    codes = np.zeros(n_rows, dtype=np.int64)  # of the users
    if users is not None:
        codes, _ = pd.factorize(users[:n_rows])
    if codes.size < _FEWEST_ID_ROWS:
        return []
    longest = int(np.bincount(codes).max())
    if longest < 2:
        return []
    names = []
    for name, values in columns.items():
        if values.dtype.kind not in "iu":
            continue
        values = values[:n_rows]
        span = int(values.max()) - int(values.min())  # Python's integers: it may be beyond int64
        pairs = pd.DataFrame({"user": codes, "value": values})
        if span > _ID_SPAN * longest and 1.0 - pairs.duplicated().mean() >= _ID_SHARE:
            names.append(name)
    return names


def feature_matrix(columns: Mapping[str, Array], place: Callable[[int], str]) -> Array:
    """Columns of numbers as one matrix, float32 where every one of them is, else float64.

    `place` says where a row stands, for a message.
    """
    arrays = list(columns.values())
    all_float32 = all(values.dtype == np.float32 for values in arrays)
    dtype = np.float32 if all_float32 else np.float64
    X = np.empty((arrays[0].size, len(arrays)), dtype)
    for c, (name, values) in enumerate(columns.items()):
        X[:, c] = values
        row = rows.first_rounded(values)
        if row is not None:
            raise InputError(f"{place(row)}: column {name!r} holds {values[row]}: {rows.ROUNDED}")
    return X


def read_columns(
    path: Any, format: str, kinds: Mapping[str, Kind], features: Collection[str] = ()
) -> dict[str, Array]:
    """Some columns of a file by name, which must be there; `kinds` says what they hold.

    Of text in one of the `features` the message says how to leave the column out.

    In Parquet they are of the type of the file; else numbers are of the type that pandas finds, and
    ids and texts are text.
    """
    path = Path(path)
    with reading(path):
        if format == "parquet":
            return _parquet_columns(path, kinds, features)
        return _text_columns(path, format, kinds, features)


def _text_columns(path, format, kinds, features):
    with_holes = [name for name, kind in kinds.items() if kind is Kind.NUMBER_OR_HOLE]
    numeric = [*with_holes, *(name for name, kind in kinds.items() if kind is Kind.NUMBER)]
    texts = [name for name, kind in kinds.items() if kind in (Kind.ID, Kind.TEXT)]
    columns = read_text(path, format, numeric, texts, with_holes, features)
    for name, kind in kinds.items():
        if kind is Kind.ID and "" in columns[name]:
            place = place_of(path, format, int(np.argmax(columns[name] == "")))
            raise InputError(
                f"{place}: column {name!r} is empty: every row needs its user and its item"
            )
    return columns


def _parquet_columns(path, kinds, features):
    with open_parquet(path) as file:
        frame = file.read(list(kinds), use_threads=False)
        if frame.num_rows == 0:
            raise InputError(f"{path}: the file has no data rows")
        return {
            name: _parquet_values(path, frame, name, kind, name in features)
            for name, kind in kinds.items()
        }


def _parquet_values(path, frame, name, kind, is_feature):
    """Values of the column's own type; those that numpy does not have as text, or None."""
    import pandas as pd

    if kind in (Kind.NUMBER, Kind.NUMBER_OR_HOLE):
        try:
            return numbers(path, frame, name, with_holes=kind is Kind.NUMBER_OR_HOLE)
        except InputError as error:
            if not is_feature or "not text" not in str(error):
                raise
            raise InputError(f"{error}; {how_to_leave_out(name)}") from None
    if kind is Kind.TEXT and frame.column(name).null_count:
        return np.array(frame.column(name).to_pylist(), dtype=object)
    values = values_of(path, frame, name)
    if values.dtype.kind != "O":
        return values
    return texts_of(path, pd.Series(values, dtype=object).map(str))


# --- Parquet, read without Arrow's threads, which can abort a process as it ends ------------------


@contextmanager
def open_parquet(path: PathLike, buffer_bytes: int = 0) -> Iterator[Any]:
    """An open ``pyarrow.parquet.ParquetFile``; `buffer_bytes` are read at a time, 0: all of a
    chunk.
    """
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(
            f"reading Parquet ({path}) needs pyarrow: pip install pyarrow (the extra 'frames')"
        ) from None
    try:
        try:
            file = parquet.ParquetFile(os.fspath(path), buffer_size=buffer_bytes, pre_buffer=False)
        except OSError as error:
            # Arrow's own text is longer
            reason = os.strerror(error.errno) if error.errno else error
            raise InputError(f"cannot read {path}: {reason}") from None
        with file:
            yield file
    except (ArrowException, UnicodeDecodeError) as error:  # text is decoded as it is taken out
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def index_columns(schema: Any) -> list[str]:
    """The columns that a frame of pandas had as its index."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return [name for name in index if isinstance(name, str)]


def numbers(
    path: PathLike, frame: Any, name: str, first: int = 0, with_holes: bool = False
) -> Array:
    """A column of an Arrow table as numbers or truth values of its type, or float64."""
    if frame.column(name).null_count and not with_holes:
        row = first + np.flatnonzero(frame.column(name).is_null().to_numpy())[0]
        raise InputError(
            f"{path}: column {name!r} is missing at row {row} of the data (counted from 0); "
            f"{rows.what_to_do(np.nan)}"
        )
    values = values_of(path, frame, name, first, with_holes)
    return validation.as_numbers(values, f"{path}: column {name!r}")


def values_of(
    path: PathLike, frame: Any, name: str, first: int = 0, with_holes: bool = False
) -> Array:
    """A column of an Arrow table as an array; nested values are refused, and missing ones unless
    there may be holes.

    Rows are counted from `first` on, for messages.
    """
    column = frame.column(name)
    if column.type.num_fields and not str(column.type).startswith("dictionary"):
        raise InputError(
            f"{path}: column {name!r} has type {column.type}: nested values are neither features "
            "nor users"
        )
    if column.null_count and not with_holes:
        row = first + np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(
            f"{path}: column {name!r} is missing at row {row} of the data (counted from 0)"
        )
    values = column.to_numpy()
    if values.dtype.kind == "O" and isinstance(values[0], bytes):  # text of older writers
        try:
            values = np.array([value.decode() for value in values], dtype=object)
        except UnicodeDecodeError:
            raise InputError(
                f"{path}: column {name!r} has type {column.type} and is no UTF-8 text; write it as "
                "text or whole numbers"
            ) from None
    return values
