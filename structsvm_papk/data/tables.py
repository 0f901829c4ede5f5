"""CSV, TSV and Parquet: which column is the label, the user or a feature, and its values.

This is the only place that reads tables. A user or an item is text as it stands in the file, so
that `007` and `7` are two; in Parquet, whose columns have types, it is what the type says.
"""

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import Array, PathLike
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
_SEPARATORS = {"csv": ",;\t", "tsv": "\t;,"}  # the usual one first
_ID_NAME = re.compile(r"(?i:(^|[_\W])ids?$)|[a-z]I[dD]s?$|^Unnamed: \d+$")  # the last: of pandas
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
    ignore: tuple[str, ...] = ()
    require_labels: bool = True
    like: Any = None


@dataclass(frozen=True)
class Columns:
    """Where the features, the label and the user stand in a file; None where there is none."""

    source: str
    names: list[str]
    features: list[int]
    label: int | None
    group: int | None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.names[c] for c in self.features)

    def used(self) -> str:
        """One line that says which columns are what."""
        item = usual_column(ITEM_COLUMNS, self.names)
        roles = {
            "label": None if self.label is None else self.names[self.label],
            "user": None if self.group is None else self.names[self.group],
            "item": None if item in self.feature_names else item,
        }
        left = [n for n in self.names if n not in {*self.feature_names, *roles.values()}]
        said = ", ".join(f"{r} {'none' if n is None else repr(n)}" for r, n in roles.items())
        return (
            f"{self.source}: {len(self.features)} features ({listed(self.feature_names)}), {said}, "
            f"ignored {listed(left) if left else 'none'}"
        )


def format_of(path: Path) -> str | None:
    """The format of a table by its name; None where it is not the name of one."""
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return _FORMAT_OF_SUFFIX.get(suffixes[-1].lower() if suffixes else "")


def usual_column(usual: Sequence[str], names: Collection[str]) -> str | None:
    """The column called like the first of some usual names, in any case and with any `_` or `-`."""
    spelled = {_plain(name): name for name in reversed(list(names))} | {n: n for n in names}
    return next((spelled[n] for u in usual for n in (u, _plain(u)) if n in spelled), None)


def _plain(name):
    return name.replace("_", "").replace("-", "").lower()


def listed(names: Sequence[str]) -> str:
    """Names for a message, the first ones of many."""
    more = f", .. {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(repr(name) for name in names[:_SHOWN]) + more


# --- which column is what -------------------------------------------------------------------


def choose_columns(path: Any, names: list[str], roles: Roles) -> Columns:
    """Find the label, the user and the features among the columns of a file.

    Columns named as users, items or other ids usually are (`USER_COLUMNS`, `ITEM_COLUMNS`, names
    that end in `_id` or `Id`) are no features.
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
    """Name of the user column; None where the file has no such column."""
    if roles.group is None:
        return usual_column(USER_COLUMNS, [name for name in places if name != roles.label])
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
    others = {roles.label, group, *roles.ignore}
    ids = {_plain(name) for name in (*USER_COLUMNS, *ITEM_COLUMNS)}
    features = [
        c
        for name, c in places.items()
        if name not in others and _plain(name) not in ids and not _ID_NAME.search(name)
    ]
    if not features:
        raise InputError(
            f"{path}: no feature column; the columns are {listed(list(places))}, and those of the "
            "label, users, items and other ids are none"
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


def column_names(path: Any, format: str) -> list[str]:
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


def read_features(path: Any, format: str, roles: Roles) -> tuple[Any, Any, Any, Columns]:
    """The feature matrix, the labels, the users (None where absent), and the `Columns`."""
    path = Path(path)
    with reading(path):
        if format == "parquet":
            return _parquet_features(path, roles)
        columns = choose_columns(path, _text_names(path, format), roles)
        kinds = dict.fromkeys(columns.features, Kind.NUMBER)
        others = {columns.label: Kind.LABEL, columns.group: Kind.ID}
        kinds |= {c: kind for c, kind in others.items() if c is not None}
        values, texts = _parse(path, format, columns.names, kinds)
        X = np.ascontiguousarray(np.take(values, columns.features, axis=1))
        labels = None if columns.label is None else values[:, columns.label].copy()
        groups = None if columns.group is None else _ids(path, values, columns.group, texts)
        return X, labels, groups, columns


def read_columns(path: Any, format: str, kinds: Mapping[str, Kind]) -> dict[str, Array]:
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
    except UnicodeDecodeError as error:
        utf16 = error.object[:2] in (b"\xff\xfe", b"\xfe\xff")
        kind, of = ("is UTF-16 text", "utf-16") if utf16 else ("is not UTF-8 text", "latin1")
        raise InputError(
            f"{path} {kind} (byte {error.object[error.start]:#04x}): save it as UTF-8, for example "
            f"with iconv -f {of} -t utf-8"
        ) from None
    except csv.Error as error:
        raise InputError(f"{path} is not a readable text file: {error}") from None


def _separator(path, format):
    """What separates the columns: the usual character of the format where the first line has it."""
    with _decoding(path), _open_text(path) as file:
        first = re.sub(r'"[^"]*"', "", file.readline())
    return next((s for s in _SEPARATORS[format] if s in first), _SEPARATORS[format][0])


def _header(path, file, separator):
    names = next(csv.reader(file, delimiter=separator), None)
    if not names:
        raise InputError(f"{path}: the first line must name the columns, but it is empty")
    return names


def _text_names(path, format):
    separator = _separator(path, format)
    with _decoding(path), _open_text(path) as file:
        return _header(path, file, separator)


def _parse(path, format, names, kinds):
    """All columns as one float matrix, and the texts of each id column in order of appearance.

    Columns without a kind are 0; ids are coded by the place of their text.
    """
    texts: dict[int, dict[str, int]] = {c: {} for c, kind in kinds.items() if kind in _TEXTS}
    converters: dict[int, Any] = {c: _nothing for c in range(len(names)) if c not in kinds}
    converters |= {c: _label_value for c, kind in kinds.items() if kind is Kind.LABEL}
    converters |= {c: _coder(codes) for c, codes in texts.items()}
    separator = _separator(path, format)
    form: Any = {"delimiter": separator, "quotechar": '"', "comments": None}
    form |= {"converters": converters, "encoding": None, "ndmin": 2}
    with _decoding(path), _open_text(path) as file:
        _header(path, file, separator)
        try:
            rows: Any = _after_blank_lines(path, file)
            values = np.loadtxt(rows, **form)
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
    separator = _separator(path, format)
    with _open_text(path) as file:
        rows = csv.reader(file, delimiter=separator)
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
        if kind is Kind.NUMBER and not is_a(float, row[c]):
            point = "; write decimals with a point" if is_a(_with_point, row[c]) else ""
            return f"column {names[c]!r} holds {row[c][:40]!r}, which is not a number{point}"
        if kind is Kind.LABEL and not is_a(_label_value, row[c]):
            return f"the label {row[c][:40]!r} is neither a number nor True or False"
    return None


def _with_point(text):
    return float(text.replace(",", "."))


def is_a(convert: Callable[[Any], object], text: str | bytes) -> bool:
    """Whether a text is a number, or what else is made of it."""
    try:
        convert(text)
    except (ValueError, OverflowError):
        return False
    return True


def place_of(path: PathLike, row: int, format: str) -> str:
    """Where a row stands, for a message: its line, or its number where there are no lines."""
    if format == "parquet":
        return f"{path}, row {row} (counted from 0)"
    separator = _separator(Path(path), format)
    with _open_text(Path(path)) as file:
        rows = csv.reader(file, delimiter=separator)
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
    codes: dict[str, int] = {}
    rows = np.fromiter((codes.setdefault(t, len(codes)) for t in texts), np.int64, values.size)
    return _checked_ids(path, list(codes))[rows]
