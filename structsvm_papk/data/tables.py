"""CSV, TSV and Parquet: which column is the label, the user or a feature, and its values.

This is the only place that reads tables. A user or an item is text as it stands in the file, so
that `007` and `7` are two; in Parquet, whose columns have types, it is what the type says.
"""

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.data.parquet import (
    feature_matrix,
    numbers,
    open_parquet,
    plain_numbers,
    values_of,
)
from structsvm_papk.errors import InputError

USER_COLUMNS = ("group", "user_id", "user", "qid", "query_id")
ITEM_COLUMNS = ("item_id", "item")
FORMATS = ("csv", "tsv", "parquet")
_FORMAT_OF_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_DELIMITER = {"csv": ",", "tsv": "\t"}
_LONGEST_ID = 1000  # characters: numpy gives every label the room of the longest
_TRUTH = {"true": 1.0, "false": 0.0}
_EXACT = 2.0**53  # above it, neighbouring whole numbers are one in double precision
_SHOWN = 8


class Kind(Enum):
    """What a column holds: ids are never missing, other texts may be."""

    NUMBER = "number"
    LABEL = "label"
    ID = "id"
    TEXT = "text"


_TEXTS = (Kind.ID, Kind.TEXT)


@dataclass(frozen=True)
class Roles:
    """What the caller says about named columns, see `readers.read_table`."""

    label: str = "label"
    group: str | None = None
    ignore: tuple = ()
    require_labels: bool = True
    like: Any = None


@dataclass(frozen=True)
class Columns:
    """Where the features, the label and the user stand in a file; None where there is none."""

    source: str
    names: list
    features: list
    label: int | None
    group: int | None

    @property
    def feature_names(self) -> tuple:
        """Names of the features."""
        return tuple(self.names[c] for c in self.features)

    def used(self) -> str:
        """One line that says which columns are what."""
        taken = {*self.features, self.label, self.group}
        left = [name for c, name in enumerate(self.names) if c not in taken]
        label, group = (
            "none" if c is None else repr(self.names[c]) for c in (self.label, self.group)
        )
        return (
            f"{self.source}: {len(self.features)} features ({listed(self.feature_names)}), "
            f"label {label}, user {group}, ignored {listed(left) if left else 'none'}"
        )


def format_of(path: Path) -> str | None:
    """The format of a table by its name; None where it is not the name of one."""
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return _FORMAT_OF_SUFFIX.get(suffixes[-1].lower() if suffixes else "")


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f", .. {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


# --- which column is what -------------------------------------------------------------------


def choose_columns(path: Any, names: list, roles: Roles) -> Columns:
    """Find the label, the user and the features among the columns of a file.

    Columns named as users or items usually are (`USER_COLUMNS`, `ITEM_COLUMNS`) are no features.
    Every step is linear in the number of columns.
    """
    places = _places(path, names)
    if "" in places:
        raise InputError(
            f"{path}: column {places[''] + 1} has no name (pandas writes its index so: "
            "use to_csv(index=False))"
        )
    if roles.label == roles.group and roles.label in places:
        raise InputError(f"{path}: column {roles.label!r} cannot be both the label and the user")
    if roles.require_labels and roles.label not in places:
        raise InputError(
            f"{path}: no column {roles.label!r} for the label; the columns are {listed(names)}; "
            "choose one with --label"
        )
    absent = [name for name in roles.ignore if name not in places]
    if absent:
        raise InputError(f"{path}: no column {absent[0]!r} to ignore; it has {listed(names)}")
    group = _user_column(path, places, roles)
    features = _feature_columns(path, places, roles, group)
    return Columns(str(path), names, features, places.get(roles.label), places.get(group))


def _places(path, names):
    """Where each name stands."""
    places = {name: c for c, name in enumerate(names)}
    if len(places) < len(names):
        twice = next(name for c, name in enumerate(names) if places[name] != c)
        raise InputError(f"{path}: column {twice!r} appears more than once")
    return places


def _user_column(path, places, roles):
    """Name of the user column; None where there is none and none was asked for."""
    if roles.group is None:
        usual = (name for name in USER_COLUMNS if name in places and name != roles.label)
        return next(usual, None)
    if roles.group not in places:
        raise InputError(
            f"{path}: no column {roles.group!r} for the user; it has {listed(list(places))}; "
            "name it with --group"
        )
    return roles.group


def _feature_columns(path, places, roles, group):
    wanted = getattr(roles.like, "feature_names", None)
    if wanted is not None:
        absent = [name for name in wanted if name not in places]
        if absent:
            raise InputError(f"{path}: no column {absent[0]!r}, a feature of the model")
        return [places[name] for name in wanted]
    others = {roles.label, group, *roles.ignore, *USER_COLUMNS, *ITEM_COLUMNS}
    features = [c for name, c in places.items() if name not in others]
    if not features:
        raise InputError(
            f"{path}: no feature column; the columns are {listed(list(places))}, and those of the "
            "label, users and items are none"
        )
    if roles.like is not None and len(features) != roles.like.n_features:
        raise InputError(
            f"{path}: {len(features)} features, but {roles.like.n_features} are expected"
        )
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


def column_names(path: Any, format: str) -> list:
    """Names of the columns, each once."""
    path = Path(path)
    with reading(path):
        if format == "parquet":
            with open_parquet(path) as file:
                names = file.schema_arrow.names
        else:
            names = _text_names(path, format)
    _places(path, names)
    return names


def read_features(path: Any, format: str, roles: Roles) -> tuple:
    """The feature matrix, the labels, the users (None where absent), and the `Columns`."""
    path = Path(path)
    with reading(path):
        if format == "parquet":
            return _parquet_features(path, roles)
        columns = choose_columns(path, _text_names(path, format), roles)
        kinds = dict.fromkeys(columns.features, Kind.NUMBER)
        kinds |= {columns.label: Kind.LABEL, columns.group: Kind.ID}
        kinds.pop(None, None)
        values, texts = _parse(path, format, columns.names, kinds)
        X = np.ascontiguousarray(np.take(values, columns.features, axis=1))
        labels = None if columns.label is None else values[:, columns.label].copy()
        groups = None if columns.group is None else _ids(path, values, columns.group, texts)
        return X, labels, groups, columns


def read_columns(path: Any, format: str, kinds: dict) -> dict:
    """Some columns of a file by name, which must be there; `kinds` says what they hold.

    In Parquet they are of the type of the file; else numbers are float64, or int64 where whole
    numbers reach beyond 2**53, and ids and texts are text.
    """
    path = Path(path)
    with reading(path):
        if format == "parquet":
            return _parquet_columns(path, kinds)
        names = _text_names(path, format)
        places = _places(path, names)
        at = {places[name]: kind for name, kind in kinds.items()}
        values, texts = _parse(path, format, names, at)
        columns = {}
        for name, kind in kinds.items():
            c = places[name]
            columns[name] = _ids(path, values, c, texts) if kind in _TEXTS else values[:, c]
            if kind not in _TEXTS and np.abs(values[:, c]).max() >= _EXACT:
                columns[name] = _whole_numbers(path, format, names, c, values[:, c])
        return columns


# --- CSV and TSV ----------------------------------------------------------------------------


def _open_text(path):
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


@contextmanager
def _decoding(path):
    try:
        yield
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a readable text file: {error}") from None


def _header(path, file, format):
    names = next(csv.reader(file, delimiter=_DELIMITER[format]), None)
    if not names:
        raise InputError(f"{path}: the first line must name the columns, but it is empty")
    return names


def _text_names(path, format):
    with _decoding(path), _open_text(path) as file:
        return _header(path, file, format)


def _parse(path, format, names, kinds):
    """All columns as one float matrix, and the texts of each id column in order of appearance.

    Columns without a kind are 0; ids are coded by the place of their text.
    """
    texts: dict = {c: {} for c, kind in kinds.items() if kind in _TEXTS}
    converters: dict = {c: _nothing for c in range(len(names)) if c not in kinds}
    converters |= {c: _label_value for c, kind in kinds.items() if kind is Kind.LABEL}
    converters |= {c: _coder(codes) for c, codes in texts.items()}
    form = {"delimiter": _DELIMITER[format], "quotechar": '"', "comments": None, "encoding": None}
    with _decoding(path), _open_text(path) as file:
        _header(path, file, format)
        try:
            rows = _after_blank_lines(path, file)
            values = np.loadtxt(rows, converters=converters, ndmin=2, **form)
        except UnicodeDecodeError:
            raise
        except ValueError as error:
            if isinstance(error.__cause__, KeyboardInterrupt):  # numpy takes Ctrl-C for a number
                raise error.__cause__ from None
            place = _first_bad_row(path, format, names, kinds)
            raise InputError(place or f"{path}: {error}") from None
        if values.shape[1] != len(names) or any(
            "" in codes for c, codes in texts.items() if kinds[c] is Kind.ID
        ):
            raise InputError(_first_bad_row(path, format, names, kinds))
    return values, texts


def _nothing(text):
    return 0.0


def _coder(codes):
    return lambda text: codes.setdefault(text, len(codes))


def _after_blank_lines(path, file):
    """The file from its first row on; numpy only warns where there is none."""
    for line in file:
        if line.strip():
            return _chain(line, file)
    raise InputError(f"{path}: the file has a header, but no data rows")


def _chain(first, rest):
    yield first
    yield from rest


def _label_value(text):
    known = _TRUTH.get(text.strip().lower())
    return float(text) if known is None else known


def _ids(path, values, c, texts):
    """The texts of an id column, row by row."""
    return _checked_ids(path, list(texts[c]))[values[:, c].astype(np.int64)]


def _checked_ids(path, texts):
    for text in texts:
        if len(text) > _LONGEST_ID or "\0" in text:
            raise InputError(
                f"{path}: the user or item {text[:40]!r}.. is longer than {_LONGEST_ID} "
                "characters or holds a null character; name them by short texts or numbers"
            )
    return np.array(texts)


def _whole_numbers(path, format, names, c, values):
    """A column that reached beyond 2**53 as int64; as it was where it does not hold such."""
    codes, texts = _parse(path, format, names, {c: Kind.ID})
    try:
        return np.array([int(text) for text in texts[c]], np.int64)[codes[:, c].astype(np.int64)]
    except (ValueError, OverflowError):
        return values


def _first_bad_row(path, format, names, kinds):
    with _open_text(path) as file:
        rows = csv.reader(file, delimiter=_DELIMITER[format])
        next(rows)
        for row in rows:
            reason = row and _what_is_wrong(row, names, kinds)
            if reason:
                return f"{path}, line {rows.line_num}: {reason}"
    return None


def _what_is_wrong(row, names, kinds):
    if len(row) != len(names):
        return f"{len(row)} fields, but the first line names {len(names)} columns"
    for c, kind in kinds.items():
        if kind is Kind.ID and row[c] == "":
            return f"column {names[c]!r} is empty: every row needs its user and its item"
        if kind is Kind.NUMBER and not _is_number(float, row[c]):
            return f"column {names[c]!r} holds {row[c][:40]!r}, which is not a number"
        if kind is Kind.LABEL and not _is_number(_label_value, row[c]):
            return f"the label {row[c][:40]!r} is not a number"
    return None


def _is_number(convert, text):
    try:
        convert(text)
    except (ValueError, OverflowError):
        return False
    return True


def place_of(path: PathLike, row: int, format: str) -> str:
    """Where a row stands, for a message: its line, or its number where there are no lines."""
    if format == "parquet":
        return f"{path}, row {row} (counted from 0)"
    with _open_text(Path(path)) as file:
        rows = csv.reader(file, delimiter=_DELIMITER[format])
        lines = (rows.line_num for fields in rows if fields)
        try:
            line = next((line for n, line in enumerate(lines) if n == row + 1), "?")
        except csv.Error:  # it limits the length of a field, numpy does not
            return f"{path}, row {row} (counted from 0)"
    return f"{path}, line {line}"


# --- Parquet --------------------------------------------------------------------------------


def _frame(path, file, names=None):
    frame = file.read(names, use_threads=False)
    if frame.num_rows == 0:
        raise InputError(f"{path}: the file has no data rows")
    return frame


def _parquet_features(path, roles):
    with open_parquet(path) as file:
        frame = _frame(path, file)
        columns = choose_columns(path, frame.column_names, roles)
        return (
            feature_matrix(path, frame, columns.features),
            None if columns.label is None else numbers(path, frame, columns.label),
            None if columns.group is None else _arrow_ids(path, frame, columns.group),
            columns,
        )


def _parquet_columns(path, kinds):
    take = {Kind.ID: _arrow_ids, Kind.TEXT: _arrow_texts}
    with open_parquet(path) as file:
        frame = _frame(path, file, list(kinds))
        places = _places(path, frame.column_names)
        return {
            name: take.get(kind, plain_numbers)(path, frame, places[name])
            for name, kind in kinds.items()
        }


def _arrow_texts(path, frame, c):
    """Values of the column's own type, missing ones as None."""
    column = frame.column(c)
    if column.null_count:
        return np.array(column.to_pylist(), dtype=object)
    return _arrow_ids(path, frame, c)


def _arrow_ids(path, frame, c):
    """Ids of the column's own type; text, and types that numpy does not have, as text."""
    values = values_of(path, frame, c)
    if values.dtype.kind != "O":
        return values
    texts = (value if isinstance(value, str) else str(value) for value in values)
    codes: dict = {}
    rows = np.fromiter((codes.setdefault(t, len(codes)) for t in texts), np.int64, values.size)
    return _checked_ids(path, list(codes))[rows]
