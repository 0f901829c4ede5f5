"""Ranking data from files of any supported format, and the reader of svmlight.

Users of svmlight rows stand in ``qid:``, or else in a ``.query`` file beside them. scikit-learn's
compiled parser reads the rows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from structsvm_papk._types import PathLike
from structsvm_papk.data.columns.checks import LOWEST, check_missing
from structsvm_papk.data.roles import listed
from structsvm_papk.errors import InputError, as_names, as_path, check_choice, check_type
from structsvm_papk.files import tables
from structsvm_papk.files.lines import open_bytes, without_gz
from structsvm_papk.files.tables import Table

FORMATS = ("svmlight", *tables.FORMATS)
_LARGEST_INDEX = 2**31 - 2


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
    missing: str | None = None,
) -> Table:
    """Read a file as a `Table`; what was taken for what is in `Table.columns_used`.

    Parameters
    ----------
    path : path-like
        A name ending in ``.gz`` is decompressed.
    format : {'svmlight', 'csv', 'tsv', 'parquet'}, optional
        By default recognised by the name; anything unknown is taken as svmlight.
    label : str
        Column of the label (CSV, TSV, Parquet).
    group : str, optional
        Column of the user (CSV, TSV, Parquet); by default the first of group, user_id, user, qid
        and query_id that the file has, in any case and with any underscores.
    ignore : sequence of str
        Columns that are not features (CSV, TSV, Parquet), beside the label and those named as
        users, items (item, document, docno, movieid, ..) or other ids (names that end in ``_id`` or
        ``Id``) are.
    query : path-like, optional
        Rows of each user, one count per line (svmlight without ``qid:``); by default ``FILE.query``
        where it exists.
    require_labels : bool
        Whether a table without the label column is an error.
    like : Table or Model, optional
        Take the features as it has them, with its rule for `missing` values, named columns by its
        `feature_names`, svmlight indices from its `first_index` on, `n_features` of them.
    first_index : {0, 1}, optional
        From where the file counts features (svmlight); by default 0 if it uses index 0, else 1.
    missing : {None, 'lowest'}
        Whether cells may be empty or null, for an estimator with the same setting (CSV, TSV,
        Parquet).

    Raises
    ------
    InputError
        Anything that cannot be read, with file, line, and reason.
    """
    path = as_path(path)
    if format is None:
        format = tables.format_of(path) or "svmlight"
    check_choice("format", format, FORMATS)
    missing = missing or getattr(like, "missing", None)
    check_missing(missing)
    if format == "svmlight":
        if group is not None or ignore:
            raise InputError(
                f"{path}: svmlight has no named columns, so none can be the user or ignored"
            )
        if first_index not in (None, 0, 1):
            raise InputError(f"{path}: first_index={first_index} must be 0 or 1")
        if missing == LOWEST:
            raise InputError(
                f"{path}: missing={missing!r} is for tables: in svmlight a feature that is left "
                "out is 0, and not missing"
            )
        with tables.reading(path):
            return _read_svmlight(path, query, like, first_index)
    if query is not None or first_index is not None:
        raise InputError(
            f"{path}: query and first_index are for svmlight only; users stand in a column here"
        )
    check_type("label", label, str, "the name of a column")
    check_type("group", group, str, "the name of a column", optional=True)
    ignore = as_names("ignore", ignore, str)
    return tables.read_features(
        path,
        format,
        like,
        missing,
        label=label,
        group=group,
        ignore=ignore,
        require_labels=require_labels,
    )


# --- svmlight -------------------------------------------------------------------------------------


def _read_svmlight(path, query, like, first_index):
    from sklearn.datasets import load_svmlight_file  # half a second, and not of every program

    with open_bytes(path) as file:
        lines = _Lines(file)
        try:
            X, labels, qid = load_svmlight_file(lines, zero_based=True, query_id=True)
        except InputError:
            raise
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"{path}, line {lines.number}: no row of svmlight, as '1 qid:7 2:0.5 9:3' ({error})"
                "; a table is read by its format, csv, tsv or parquet, if that ends its name"
            ) from None
    if labels.size == 0:
        raise InputError(f"{path}: the file has no data rows")
    first = _first_index(path, X, like, first_index)
    X = _numbered_features(path, X, like, first)
    query_file = sidecar(path) if query is None else Path(query)
    groups = _groups(path, qid, labels.size, query_file)
    user = "none"
    if qid.size:
        user = "qid"
    elif query_file is not None:
        user = repr(query_file.name)
    n_features = X.shape[1]
    used = (
        f"{path}: {n_features} features (indices {first} to {first + n_features - 1}, counted from "
        f"{first}), label the first number, user {user}"
    )
    return Table(
        source=str(path),
        X=X,
        labels=labels,
        groups=groups,
        columns_used=used,
        first_index=first,
    )


class _Lines:
    """The lines of a file, counted, without those in which Python reads `1_0` as 10."""

    def __init__(self, file):
        self.file = file
        self.read = file.read
        self.number = 0

    def __iter__(self):
        for line in self.file:
            self.number += 1
            if b"_" in line and b"_" in line.split(b"#", 1)[0]:
                raise ValueError("an underscore")
            yield line


def _first_index(path, X, like, given):
    """From where the file counts features; X has a column for each index from 0 on."""
    smallest = int(X.indices.min(initial=1))  # 0 or 1
    first = given
    if first is None:
        first = getattr(like, "first_index", None)
    if first is None:
        first = smallest
    if smallest < first:
        raise InputError(
            f"{path}: feature index 0, but the features are counted from 1: add 1 to all indices "
            "of this file where it counts them from 0"
        )
    return first


def _numbered_features(path, X, like, first):
    """X with the feature of index `first` in column 0."""
    largest = int(X.indices.max(initial=0))
    if largest > _LARGEST_INDEX:
        raise InputError(f"{path}: feature index {largest} is above the limit {_LARGEST_INDEX}")
    names = getattr(like, "feature_names", None)
    if names is not None:
        raise InputError(
            f"{path} numbers its features, and the model names them: give a table with the columns "
            f"{listed(names)}"
        )
    n_seen = largest + 1 - first
    n_features = n_seen if like is None else like.n_features
    if n_seen > n_features:
        raise InputError(
            f"{path}: {n_seen} features (largest index {largest}), but {n_features} are expected"
        )
    if n_features == 0:
        raise InputError(f"{path}: no row has a feature")
    X.indices -= first
    return sparse.csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def sidecar(path: Path) -> Path | None:
    """The file beside an svmlight file that counts the rows of each user; None without one."""
    plain = without_gz(path)
    candidates = [Path(f"{path}.query"), Path(f"{plain}.query"), Path(f"{plain}.query.gz")]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _groups(path, qid, n_rows, query_file):
    """The user of each row, by its qid or by the counts of a file; None where neither says."""
    if qid.size not in (0, n_rows):
        raise InputError(f"{path}: {n_rows - qid.size} of {n_rows} rows have no qid, the others do")
    if qid.size or query_file is None:
        return qid if qid.size else None
    counts = _read_counts(query_file)
    if sum(counts) != n_rows:  # of Python's integers: a sum in int64 could wrap around
        raise InputError(
            f"{query_file}: its {len(counts)} counts add up to {sum(counts)}, "
            f"but {path} has {n_rows} rows"
        )
    return np.repeat(np.arange(len(counts)), counts)


def _read_counts(path):
    counts = []
    with open_bytes(path) as file:
        for number, line in enumerate(file, start=1):
            text = line.strip()
            if not text:
                continue
            if not text.isdigit() or len(text) > 18:
                shown = repr(text[:40].decode(errors="replace"))
                raise InputError(f"{path}, line {number}: expected a number of rows, got {shown}")
            counts.append(int(text))
    return counts
