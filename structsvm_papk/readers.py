"""Ranking data from files: svmlight (``qid:`` or a ``.query`` sidecar), CSV, TSV and Parquet.

Files are parsed by fast compiled parsers; only when one of them refuses a file is the file read
again, line by line, to say where and why.
"""

import csv
import gzip
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import RankingData
from structsvm_papk.errors import InputError

FORMATS = ("svmlight", "csv", "tsv", "parquet")
_FORMAT_OF_SUFFIX = {".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet"}
_DELIMITER = {"csv": ",", "tsv": "\t"}
_LARGEST_INDEX = 2**31 - 2
_LONGEST_USER = 1000  # characters: numpy gives every label the room of the longest
_TRUTH = {"true": 1.0, "false": 0.0}


@dataclass(frozen=True)
class Table:
    """What a file holds, before grades become relevance.

    Attributes
    ----------
    source : str
        The file, for messages.
    X : ndarray or scipy CSR of shape (n_rows, n_features)
    labels : ndarray of float64, shape (n_rows,), or None
        Grades as they stand in the file; None where the file has no label column and none was
        required.
    groups : ndarray of shape (n_rows,), or None
        The user of each row; None where the file does not say.
    feature_names : tuple of str, or None
        Column names (CSV, TSV, Parquet).
    first_index : int or None
        0 or 1: the svmlight index of the first column of `X`.
    """

    source: str
    X: Any
    labels: np.ndarray | None
    groups: np.ndarray | None
    feature_names: tuple | None = None
    first_index: int | None = None

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return self.X.shape[1]

    def ranking_data(self, threshold: float | None = None, one_list: bool = False) -> RankingData:
        """Turn the table into `RankingData`.

        Parameters
        ----------
        threshold : float, optional
            ``label >= threshold`` is relevant; needed unless the labels are 0/1 or -1/1.
        one_list : bool
            Rank all rows against each other, whatever users the file names.

        Raises
        ------
        InputError
            Graded labels without a threshold, one class only, users that the file does not name.
        """
        if self.labels is None:
            raise InputError(f"{self.source}: no labels in the file")
        relevance = relevance_from(self.labels, threshold, self.source)
        if self.groups is None and not one_list:
            raise InputError(_who_are_the_users(self))
        groups = None if one_list else self.groups
        data = RankingData.from_groups(self.X, relevance, groups)
        data.feature_names = self.feature_names
        return data


def relevance_from(labels: Array, threshold: float | None, source: Any) -> Array:
    """Relevance of graded labels: ``label >= threshold``, or positive where they are binary."""
    if threshold is not None:
        relevance = labels >= threshold
        if relevance.all() or not relevance.any():
            raise InputError(
                f"{source}: at relevance threshold {threshold:g} all labels are of one class "
                f"(labels run from {labels.min():g} to {labels.max():g})"
            )
        return relevance
    values = np.unique(labels)
    if values.size == 1:
        raise InputError(f"{source}: all labels are of one class ({values[0]:g})")
    if values.size == 2 and np.isin(values, [-1, 0, 1]).all():
        return labels > values[0]
    shown = ", ".join(f"{value:g}" for value in values[:6]) + (", ..." if values.size > 6 else "")
    raise InputError(
        f"{source}: labels are not 0/1 or -1/1 ({values.size} values: {shown}); say from which "
        "label on a row is relevant with --relevance-threshold (threshold= in Python)"
    )


def read_table(
    path: PathLike,
    *,
    format: str | None = None,
    label: str = "label",
    group: str = "group",
    ignore: Sequence[str] = (),
    query: PathLike | None = None,
    require_labels: bool = True,
    like: Any = None,
) -> Any:
    """Read a file of any supported format.

    Parameters
    ----------
    path : path-like
        A name ending in ``.gz`` is decompressed.
    format : {'svmlight', 'csv', 'tsv', 'parquet'}, optional
        By default told from the name; anything unknown is taken as svmlight.
    label, group : str
        Columns of the label and of the user (CSV, TSV, Parquet).
    ignore : sequence of str
        Columns that are no features (CSV, TSV, Parquet).
    query : path-like, optional
        Rows of each user, one count per line (svmlight); by default ``FILE.query`` where it exists.
    require_labels : bool
        Whether a CSV, TSV or Parquet file without the label column is an error.
    like : Table or Model, optional
        Take the features as this object has them: named columns by its `feature_names`, svmlight
        indices from its `first_index` on, `n_features` of them. By default every column but
        label, group and ignored ones is a feature, and svmlight features are counted from 0 if
        the file uses index 0, else from 1.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        Anything that cannot be read, with file, line, and reason.
    """
    path = Path(path)
    if "\0" in str(path):
        raise InputError(f"cannot read {str(path)!r}: the name holds a null character")
    format = format or _format_of(path)
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    if query is not None and format != "svmlight":
        raise InputError(f"{path}: a query file goes with svmlight only; use the group column")
    roles = _Roles(label, group, tuple(ignore), require_labels, like)
    try:
        if format == "svmlight":
            table = _read_svmlight(path, query, like)
        elif format == "parquet":
            table = _read_parquet(path, roles)
        else:
            table = _read_text(path, _DELIMITER[format], roles)
        _refuse_non_finite(table, format)
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot read {path}: {reason}") from None
    return table


def read_ranking_data(
    path: PathLike, *, threshold: float | None = None, one_list: bool = False, **how: Any
) -> RankingData:
    """Read a file as `RankingData`; `how` as for `read_table`.

    Raises
    ------
    InputError
        As `read_table` and `Table.ranking_data`.
    """
    return read_table(path, **how).ranking_data(threshold, one_list)


def _format_of(path):
    suffixes = path.suffixes[:-1] if path.suffix == ".gz" else path.suffixes
    return _FORMAT_OF_SUFFIX.get(suffixes[-1].lower() if suffixes else "", "svmlight")


def _open(path):
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


# --- svmlight -------------------------------------------------------------------------------


def _read_svmlight(path, query, like):
    try:
        with _open(path) as file:
            X, labels, qid = load_svmlight_file(file, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        raise InputError(_first_bad_line(path) or f"{path}: {error}") from None
    if labels.size == 0:
        raise InputError(f"{path}: the file has no data rows")
    X, first_index = _shift_columns(path, X, like)
    groups = _svmlight_groups(path, qid, labels.size, _sidecar(path, query))
    return Table(str(path), X, labels, groups, first_index=first_index)


def _shift_columns(path, X, like):
    """Make column 0 the first feature, without copying the values."""
    smallest = X.indices.min() if X.nnz else 1
    largest = int(X.indices.max()) if X.nnz else 0
    first_index = getattr(like, "first_index", None)
    if first_index is None:
        first_index = 0 if smallest == 0 else 1
    if smallest < first_index:
        raise InputError(f"{path}: feature index 0, but the features are counted from 1")
    if largest > _LARGEST_INDEX:
        raise InputError(_first_bad_line(path))
    shown = largest + 1 - first_index
    n_features = shown if like is None else like.n_features
    if shown > n_features:
        raise InputError(
            f"{path}: {shown} features (largest index {largest}), but {n_features} are expected"
        )
    if n_features == 0:
        raise InputError(f"{path}: no row has a feature")
    X.indices -= first_index
    arrays = (X.data, X.indices, X.indptr)
    return sparse.csr_matrix(arrays, shape=(X.shape[0], n_features)), first_index


def _sidecar(path, query):
    if query is not None:
        return Path(query)
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    candidates = [Path(f"{path}.query"), Path(f"{plain}.query"), Path(f"{plain}.query.gz")]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _svmlight_groups(path, qid, n_rows, sidecar):
    if qid.size not in (0, n_rows):
        line = _first_line_without_qid(path)
        raise InputError(f"{path}, line {line}: no qid, though other rows have one")
    if sidecar is None:
        return qid if qid.size else None
    counts = _read_counts(sidecar)
    if sum(counts) != n_rows:  # of Python's integers: a sum in int64 could wrap around
        raise InputError(
            f"{sidecar}: its {len(counts)} counts add up to {sum(counts)}, "
            f"but {path} has {n_rows} rows"
        )
    groups = np.repeat(np.arange(len(counts)), counts)
    if qid.size and not _same_partition(groups, qid):
        raise InputError(
            f"{path} names its users by qid, and {sidecar} divides the rows differently; "
            "remove the one that is wrong"
        )
    return qid if qid.size else groups


def _same_partition(first, second):
    pairs = np.unique(np.column_stack([first, second]), axis=0).shape[0]
    return pairs == np.unique(first).size == np.unique(second).size


def _read_counts(path):
    counts = []
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if not text:
                continue
            if not text.isdigit() or len(text) > 18:
                shown = text[:40].decode(errors="replace")
                raise InputError(f"{path}, line {number}: expected a number of rows, got {shown!r}")
            counts.append(int(text))
    return counts


def _data_lines(path):
    """Numbered lines of an svmlight file that hold data, without their comments, split."""
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            parts = line.split(b"#", 1)[0].split()
            if parts:
                yield number, parts


def _first_bad_line(path):
    for number, parts in _data_lines(path):
        reason = _what_is_wrong(parts)
        if reason:
            return f"{path}, line {number}: {reason}"
    return None


def _what_is_wrong(parts):
    """Why these parts are no svmlight row, or None."""
    if not _is_a(float, parts[0]):
        return f"the label {_shown(parts[0])} is not a number"
    features = parts[1:]
    if features and features[0].startswith(b"qid:"):
        if not _is_a(np.int64, features[0][4:]):
            return f"the query {_shown(features[0])} is not a whole number"
        features = features[1:]
    previous = -1
    for feature in features:
        index, colon, value = feature.partition(b":")
        if not colon or not _is_a(np.int64, index) or not _is_a(float, value):
            return f"expected 'index:value', got {_shown(feature)}"
        if int(index) < 0:
            return f"negative feature index {int(index)}"
        if int(index) <= previous:
            return f"feature index {int(index)} after {previous}: indices must rise"
        if int(index) > _LARGEST_INDEX:
            return f"feature index {int(index)} is above the limit {_LARGEST_INDEX}"
        previous = int(index)
    return None


def _is_a(number_type, text):
    try:
        number_type(text)
    except (ValueError, OverflowError):
        return False
    return True


def _shown(text):
    return repr(text[:40].decode(errors="replace"))


def _first_line_without_qid(path):
    return next(
        number
        for number, parts in _data_lines(path)
        if len(parts) < 2 or not parts[1].startswith(b"qid:")
    )


# --- CSV and TSV ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Roles:
    """What the caller says about named columns."""

    label: str
    group: str
    ignore: tuple
    require_labels: bool
    like: object


@dataclass(frozen=True)
class _Columns:
    """Where the features, the label and the user stand; None for a column that is absent."""

    names: list
    features: list
    label: int | None
    group: int | None


def _choose_columns(path, names, roles):
    _check_names(path, names)
    if roles.label == roles.group and roles.label in names:
        raise InputError(f"{path}: column {roles.label!r} cannot be both the label and the user")
    if roles.require_labels and roles.label not in names:
        raise InputError(
            f"{path}: no column {roles.label!r} for the label; the columns are {_names(names)}; "
            "choose one with --label"
        )
    absent = [name for name in roles.ignore if name not in names]
    if absent:
        raise InputError(f"{path}: no column {absent[0]!r} to ignore; it has {_names(names)}")
    return _Columns(
        names,
        _feature_columns(path, names, roles),
        names.index(roles.label) if roles.label in names else None,
        names.index(roles.group) if roles.group in names else None,
    )


def _check_names(path, names):
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        raise InputError(f"{path}: column {twice[0]!r} appears more than once")
    if "" in names:
        raise InputError(
            f"{path}: column {names.index('') + 1} has no name (pandas writes its index so: "
            "use to_csv(index=False))"
        )


def _feature_columns(path, names, roles):
    wanted = getattr(roles.like, "feature_names", None)
    if wanted is not None:
        absent = [name for name in wanted if name not in names]
        if absent:
            raise InputError(f"{path}: no column {absent[0]!r}, a feature of the model")
        return [names.index(name) for name in wanted]
    others = {roles.label, roles.group, *roles.ignore}
    features = [c for c, name in enumerate(names) if name not in others]
    if not features:
        raise InputError(f"{path}: no feature column; the columns are {_names(names)}")
    if roles.like is not None and len(features) != roles.like.n_features:
        raise InputError(
            f"{path}: {len(features)} features, but {roles.like.n_features} are expected"
        )
    return features


def _names(header):
    return ", ".join(repr(name) for name in header[:8]) + (", ..." if len(header) > 8 else "")


def _text(path):
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", newline="")
    return open(path, encoding="utf-8-sig", newline="")


def _read_text(path, delimiter, roles):
    users = {}
    try:
        with _text(path) as file:
            names = next(csv.reader(file, delimiter=delimiter), None)
            if not names:
                raise InputError(f"{path}: the first line must name the columns, but it is empty")
            columns = _choose_columns(path, names, roles)
            values = _parse_rows(path, file, delimiter, columns, users)
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} is not a readable text file: {error}") from None
    X = np.ascontiguousarray(np.take(values, columns.features, axis=1))
    labels = None if columns.label is None else values[:, columns.label].copy()
    groups = None
    if columns.group is not None:
        groups = _natural(path, list(users))[values[:, columns.group].astype(np.int64)]
    return Table(str(path), X, labels, groups, tuple(names[c] for c in columns.features))


def _parse_rows(path, file, delimiter, columns, users):
    """All columns as one float matrix: ignored ones are 0, users are coded as they appear."""
    width = len(columns.names)
    used = {*columns.features, columns.label, columns.group}
    converters = {c: _nothing for c in range(width) if c not in used}
    if columns.group is not None:
        converters[columns.group] = lambda text: users.setdefault(text, len(users))
    if columns.label is not None:
        converters[columns.label] = _label_value
    form = {"delimiter": delimiter, "quotechar": '"', "comments": None, "encoding": None}
    try:
        rows = _after_blank_lines(path, file)
        values = np.loadtxt(rows, converters=converters, ndmin=2, **form)
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # numpy takes Ctrl-C for a bad number
            raise error.__cause__ from None
        place = _first_bad_row(path, delimiter, columns)
        raise InputError(place or f"{path}: {error}") from None
    if values.shape[1] != width or "" in users:
        raise InputError(_first_bad_row(path, delimiter, columns))
    return values


def _nothing(text):
    return 0.0


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


def _natural(path, labels):
    """Users as whole numbers where they all are, else as text."""
    for label in labels:
        if len(label) > _LONGEST_USER or "\0" in label:
            raise InputError(
                f"{path}: the user {label[:40]!r}.. is longer than {_LONGEST_USER} characters or "
                "holds a null character; name users by short texts or numbers"
            )
    try:
        numbers = [int(text) for text in labels]
        if len(set(numbers)) == len(labels):
            return np.array(numbers, dtype=np.int64)
    except (ValueError, OverflowError):
        pass
    return np.array(labels)


def _first_bad_row(path, delimiter, columns):
    with _text(path) as file:
        rows = csv.reader(file, delimiter=delimiter)
        next(rows)
        for row in rows:
            reason = row and _what_is_wrong_in_row(row, columns)
            if reason:
                return f"{path}, line {rows.line_num}: {reason}"
    return None


def _what_is_wrong_in_row(row, columns):
    names = columns.names
    if len(row) != len(names):
        return f"{len(row)} fields, but the first line names {len(names)} columns"
    if columns.group is not None and row[columns.group] == "":
        return f"the user is missing (column {names[columns.group]!r})"
    for c in columns.features:
        if not _is_a(float, row[c]):
            return f"column {names[c]!r} holds {row[c][:40]!r}, which is not a number"
    if columns.label is not None and not _is_a(_label_value, row[columns.label]):
        return f"the label {row[columns.label][:40]!r} is not a number"
    return None


# --- Parquet --------------------------------------------------------------------------------


def arrow_parquet(path: object) -> tuple[Any, Any]:
    """The module ``pyarrow.parquet`` and Arrow's exception; refuses the file where it is absent."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise InputError(
            f"reading Parquet ({path}) needs pyarrow: pip install pyarrow (the extra 'frames')"
        ) from None
    return parquet, ArrowException


def _read_parquet(path, roles):
    parquet, ArrowException = arrow_parquet(path)
    try:
        with open(path, "rb") as file:
            # Arrow's own threads can abort the process when it ends
            frame = parquet.read_table(file, use_threads=False, pre_buffer=False)
            return _parquet_table(path, frame, roles)
    except (ArrowException, UnicodeDecodeError) as error:  # text is decoded as it is taken out
        raise InputError(f"{path} is not a readable Parquet file: {error}") from None


def _parquet_table(path, frame, roles):
    if frame.num_rows == 0:
        raise InputError(f"{path}: the file has no data rows")
    columns = _choose_columns(path, frame.column_names, roles)
    return Table(
        str(path),
        _feature_matrix(path, frame, columns.features),
        None if columns.label is None else _numbers(path, frame, columns.label),
        None if columns.group is None else _arrow_values(path, frame, columns.group),
        tuple(frame.column_names[c] for c in columns.features),
    )


def _feature_matrix(path, frame, features):
    narrow = all(str(frame.schema.types[c]) == "float" for c in features)
    X = np.empty((frame.num_rows, len(features)), dtype=np.float32 if narrow else np.float64)
    for position, c in enumerate(features):
        X[:, position] = _numbers(path, frame, c)
    return X


def _numbers(path, frame, c):
    values = _arrow_values(path, frame, c)
    try:
        if values.dtype.kind in "mM":
            raise TypeError("a time is no number: its unit would decide the value")
        return values if values.dtype == np.float32 else values.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{path}: column {frame.column_names[c]!r} has type {frame.schema.types[c]}, "
            "not numbers; drop or encode it first"
        ) from None


def _arrow_values(path, frame, c):
    column = frame.column(c)
    if column.type.num_fields and not str(column.type).startswith("dictionary"):
        raise InputError(
            f"{path}: column {frame.column_names[c]!r} has type {column.type}: nested values "
            "are neither features nor users"
        )
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(
            f"{path}: column {frame.column_names[c]!r} is missing at row {row} (counted from 0)"
        )
    return column.to_numpy()


# --- checks common to all formats -----------------------------------------------------------


def _who_are_the_users(table):
    where = (
        "no qid: in the rows and no .query file beside it"
        if table.feature_names is None
        else "no group column; name it with --group"
    )
    return (
        f"{table.source} does not say which rows belong to which user ({where}); "
        "if all rows are one list, say so with --one-list (one_list=True in Python)"
    )


def _refuse_non_finite(table, format):
    if table.labels is not None and not np.isfinite(table.labels).all():
        row = np.flatnonzero(~np.isfinite(table.labels))[0]
        raise InputError(f"{_place(table, row, format)}: the label is {table.labels[row]}")
    if sparse.issparse(table.X):
        bad = np.flatnonzero(~np.isfinite(table.X.data))[:1]
        if bad.size:
            row = np.searchsorted(table.X.indptr, bad[0], side="right") - 1
            index = table.X.indices[bad[0]] + table.first_index
            raise InputError(
                f"{_place(table, row, format)}: feature {index} is {table.X.data[bad[0]]}; "
                "remove or impute such values first"
            )
        return
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = np.flatnonzero(~np.isfinite(table.X.sum(axis=1, dtype=np.float64)))
    for row in suspect:  # a sum of finite values may overflow
        column = np.flatnonzero(~np.isfinite(table.X[row]))
        if column.size:
            raise InputError(
                f"{_place(table, row, format)}: column {table.feature_names[column[0]]!r} is "
                f"{table.X[row, column[0]]}; remove or impute such values first"
            )


def _place(table, row, format):
    path = Path(table.source)
    if format == "parquet":
        return f"{path}, row {row} (counted from 0)"
    if format == "svmlight":
        lines = (number for number, _ in _data_lines(path))
        return f"{path}, line {_nth(lines, row)}"
    with _text(path) as file:
        rows = csv.reader(file, delimiter="," if format == "csv" else "\t")
        lines = (rows.line_num for fields in rows if fields)
        try:
            return f"{path}, line {_nth(lines, row + 1)}"
        except csv.Error:  # it limits the length of a field, numpy does not
            return f"{path}, row {row} (counted from 0)"


def _nth(items, n):
    return next((item for position, item in enumerate(items) if position == n), "?")
