"""Ranking data from files: svmlight (``qid:`` or a ``.query`` sidecar), CSV, TSV and Parquet.

Files are parsed by fast compiled parsers; only when one of them refuses a file is the file read
again, line by line, to say where and why.
"""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data import tables
from structsvm_papk.data import validation as _validation
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError

FORMATS = ("svmlight", *tables.FORMATS)
_LARGEST_INDEX = 2**31 - 2


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
    columns_used : str
        One line that says what was taken for the features, the label and the user.
    remarks : tuple of str
        What had to be assumed to match the features with those of `like`.
    """

    source: str
    X: Any
    labels: np.ndarray | None
    groups: np.ndarray | None
    feature_names: tuple | None = None
    first_index: int | None = None
    columns_used: str = ""
    remarks: tuple = ()

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
    if _validation.is_binary(labels):
        return labels > 0
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
    group: str | None = None,
    ignore: Sequence[str] = (),
    query: PathLike | None = None,
    require_labels: bool = True,
    like: Any = None,
    first_index: int | None = None,
) -> Any:
    """Read a file of any supported format.

    Parameters
    ----------
    path : path-like
        A name ending in ``.gz`` is decompressed.
    format : {'svmlight', 'csv', 'tsv', 'parquet'}, optional
        By default told from the name; anything unknown is taken as svmlight.
    label : str
        Column of the label (CSV, TSV, Parquet).
    group : str, optional
        Column of the user (CSV, TSV, Parquet); by default the first of `tables.USER_COLUMNS`
        that the file has.
    ignore : sequence of str
        Columns that are no features (CSV, TSV, Parquet).
    query : path-like, optional
        Rows of each user, one count per line (svmlight); by default ``FILE.query`` where it exists.
    require_labels : bool
        Whether a CSV, TSV or Parquet file without the label column is an error.
    like : Table or Model, optional
        Take the features as this object has them: named columns by its `feature_names`, svmlight
        indices from its `first_index` on, `n_features` of them. Where it has no names, or the
        indices of the file could be meant otherwise, `Table.remarks` says what was assumed. By
        default every column is a feature but the label, those ignored, and those named as users
        or items usually are (`tables.USER_COLUMNS`, `tables.ITEM_COLUMNS`).
    first_index : {0, 1}, optional
        From where the file counts features (svmlight); by default as `like` does, else from 0 if
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
    format = format or tables.format_of(path) or "svmlight"
    if format not in FORMATS:
        raise InputError(f"unknown format {format!r}; choose one of {', '.join(FORMATS)}")
    if query is not None and format != "svmlight":
        raise InputError(f"{path}: a query file goes with svmlight only; use the group column")
    if first_index is not None and (format != "svmlight" or first_index not in (0, 1)):
        raise InputError(f"{path}: first_index={first_index} must be 0 or 1, for svmlight only")
    if format == "svmlight":
        with tables.reading(path):
            table = _read_svmlight(path, query, like, first_index)
            _refuse_non_finite(table, format)
            return table
    roles = tables.Roles(label, group, tuple(ignore), require_labels, like)
    X, labels, groups, columns = tables.read_features(path, format, roles)
    names = columns.feature_names
    remarks = _by_position(path, like, names)
    table = Table(str(path), X, labels, groups, names, None, columns.used(), remarks)
    _refuse_non_finite(table, format)
    return table


def _by_position(path, like, names):
    """What to say where a model does not name its features and the table does."""
    if like is None or like.feature_names is not None:
        return ()
    return (
        f"{path}: the model does not name its {len(names)} features, so the columns are taken in "
        f"this order: {tables.listed(names)}",
    )


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


def _open(path):
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


# --- svmlight -------------------------------------------------------------------------------


def _read_svmlight(path, query, like, first_index):
    from sklearn.datasets import load_svmlight_file  # half a second, and not of every program

    try:
        with _open(path) as file:
            X, labels, qid = load_svmlight_file(file, zero_based=True, query_id=True)
    except (ValueError, OverflowError) as error:
        raise InputError(_first_bad_line(path) or f"{path}: {error}") from None
    if labels.size == 0:
        raise InputError(f"{path}: the file has no data rows")
    base, remarks = _index_base(path, X, like, first_index)
    X = _shift_columns(path, X, base, None if like is None else like.n_features)
    counts = sidecar(path) if query is None else Path(query)
    groups = _svmlight_groups(path, qid, labels.size, counts)
    user = "qid" if qid.size else "none" if counts is None else repr(counts.name)
    used = (
        f"{path}: {X.shape[1]} features (indices {base} to {base + X.shape[1] - 1}, counted from "
        f"{base}), label the first number, user {user}"
    )
    return Table(str(path), X, labels, groups, None, base, used, remarks)


def _index_base(path, X, like, first_index):
    """From where the file counts its features, and what to say where it may be otherwise."""
    smallest = int(X.indices.min()) if X.nnz else 1
    largest = int(X.indices.max()) if X.nnz else 0
    if largest > _LARGEST_INDEX:
        raise InputError(_first_bad_line(path))
    own = getattr(like, "first_index", None)
    base = first_index if first_index is not None else own
    if base is None:
        base = 0 if smallest == 0 else 1
    if smallest < base:
        raise InputError(
            f"{path}: feature index 0, but the features are counted from 1 (--first-index 0 where "
            "this file counts them from 0)"
        )
    sure = like is None or first_index is not None or not X.nnz
    return base, () if sure else _assumed_indices(path, like, base, smallest, largest)


def _assumed_indices(path, like, base, smallest, largest):
    """What to say where the indices of a file could be matched with a model's otherwise."""
    say = f"they are taken as counted from {base} (--first-index says otherwise)"
    if like.feature_names is not None:
        return (
            f"{path}: the model names its features, this file numbers them: they are taken in the "
            f"order {tables.listed(like.feature_names)}; {say}",
        )
    if like.first_index is None:
        return (f"{path}: the model does not say from where features are counted: {say}",)
    if smallest >= 1 and largest < like.n_features:
        return (
            f"{path}: feature indices run from {smallest} to {largest}, where {like.n_features} "
            f"features may be counted from 0 or from 1: {say}",
        )
    return ()


def _shift_columns(path, X, base, n_expected):
    """Make column 0 the first feature, without copying the values."""
    largest = int(X.indices.max()) if X.nnz else 0
    shown = largest + 1 - base
    n_features = shown if n_expected is None else n_expected
    if shown > n_features:
        raise InputError(
            f"{path}: {shown} features (largest index {largest}), but {n_features} are expected"
        )
    if n_features == 0:
        raise InputError(f"{path}: no row has a feature")
    X.indices -= base
    arrays = (X.data, X.indices, X.indptr)
    return sparse.csr_matrix(arrays, shape=(X.shape[0], n_features))


def sidecar(path: Path) -> Path | None:
    """The file beside an svmlight file that counts the rows of each user; None without one."""
    plain = path.with_suffix("") if path.suffix == ".gz" else path
    candidates = [Path(f"{path}.query"), Path(f"{plain}.query"), Path(f"{plain}.query.gz")]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _svmlight_groups(path, qid, n_rows, counted):
    if qid.size not in (0, n_rows):
        line = _first_line_without_qid(path)
        raise InputError(f"{path}, line {line}: no qid, though other rows have one")
    if counted is None:
        return qid if qid.size else None
    counts = _read_counts(counted)
    if sum(counts) != n_rows:  # of Python's integers: a sum in int64 could wrap around
        raise InputError(
            f"{counted}: its {len(counts)} counts add up to {sum(counts)}, "
            f"but {path} has {n_rows} rows"
        )
    groups = np.repeat(np.arange(len(counts)), counts)
    if qid.size and not _same_partition(groups, qid):
        raise InputError(
            f"{path} names its users by qid, and {counted} divides the rows differently; "
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


# --- checks common to all formats -----------------------------------------------------------


def _who_are_the_users(table):
    where = (
        "no qid: in the rows and no .query file beside it"
        if table.feature_names is None
        else "no user column; name it with --group"
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
    if format != "svmlight":
        return tables.place(table.source, row, format)
    path = Path(table.source)
    lines = (number for number, _ in _data_lines(path))
    return f"{path}, line {next((line for n, line in enumerate(lines) if n == row), '?')}"
