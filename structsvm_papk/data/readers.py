"""Ranking data from files of any supported format."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.data import rows, svmlight, tables, validation
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, as_names, as_path, check_choice, check_type

FORMATS = ("svmlight", *tables.FORMATS)


@dataclass(frozen=True)
class Table:
    """What a file holds, before grades become relevance.

    Labels are the grades of the file, groups the user of each row; None where the file does not
    say. `first_index`, 0 or 1, is the svmlight index of the first column of X. `columns_used` is
    one line that says what was taken for what; `remarks` say what had to be assumed to match the
    features with those of `like`.
    """

    source: str
    X: Any
    labels: np.ndarray | None
    groups: np.ndarray | None
    feature_names: tuple[str, ...] | None = None
    first_index: int | None = None
    columns_used: str = ""
    remarks: tuple[str, ...] = ()

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
        relevant_from = validation.relevant_from(self.labels, threshold, self.source)
        if self.groups is None and not one_list:
            raise InputError(_who_are_the_users(self))
        groups = None if one_list else self.groups
        relevant = self.labels >= relevant_from
        return RankingData.from_groups(self.X, relevant, groups, feature_names=self.feature_names)


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
) -> Table:
    """Read a file of any supported format.

    Parameters
    ----------
    path : path-like
        A name ending in ``.gz`` is decompressed.
    format : {'svmlight', 'csv', 'tsv', 'parquet'}, optional
        By default recognised by the name; anything unknown is taken as svmlight.
    label : str
        Column of the label (CSV, TSV, Parquet).
    group : str, optional
        Column of the user (CSV, TSV, Parquet); by default the first of `tables.USER_COLUMNS`
        that the file has, in any case and with any underscores.
    ignore : sequence of str
        Columns that are not features (CSV, TSV, Parquet).
    query : path-like, optional
        Rows of each user, one count per line (svmlight); by default ``FILE.query`` where it exists.
    require_labels : bool
        Whether a CSV, TSV or Parquet file without the label column is an error.
    like : Table or Model, optional
        Take the features as this object has them: named columns by its `feature_names`, svmlight
        indices from its `first_index` on, `n_features` of them. Where it has no names, or the
        indices of the file could be meant otherwise, `Table.remarks` says what was assumed. By
        default every column is a feature but the label, those ignored, and those named as users,
        items or other ids usually are (`tables.USER_COLUMNS`, `tables.ITEM_COLUMNS`, names that
        end in ``_id`` or ``Id``).
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
    path = as_path(path)
    format = (tables.format_of(path) or "svmlight") if format is None else format
    check_choice("format", format, FORMATS)
    if format == "svmlight" and (group is not None or ignore):
        raise InputError(
            f"{path}: svmlight has no named columns, so none can be the user or ignored"
        )
    if query is not None and format != "svmlight":
        raise InputError(f"{path}: a query file goes with svmlight only; use the group column")
    if first_index is not None and (format != "svmlight" or first_index not in (0, 1)):
        raise InputError(f"{path}: first_index={first_index} must be 0 or 1, for svmlight only")
    if format == "svmlight":
        with tables.reading(path):
            X, labels, groups, base, used, remarks = svmlight.read_svmlight(
                path, query, like, first_index
            )
            return _checked(Table(str(path), X, labels, groups, None, base, used, remarks), format)
    check_type("label", label, str, "the name of a column")
    check_type("group", group, str, "the name of a column", optional=True)
    roles = tables.Roles(label, group, as_names("ignore", ignore, str), require_labels, like)
    X, labels, groups, columns = tables.read_features(path, format, roles)
    names = columns.features
    remarks = _by_position(path, like, names)
    table = Table(str(path), X, labels, groups, names, None, columns.used(), remarks)
    return _checked(table, format)


def _by_position(path, like, names):
    """What to say where a model does not name its features and the table does."""
    if like is None or like.feature_names is not None:
        return ()
    return (
        f"{path}: the model does not name its {len(names)} features, so the columns are taken in "
        f"this order: {tables.listed(names)}",
    )


def read_ranking_data(
    path: PathLike,
    *,
    relevance_threshold: float | None = None,
    one_list: bool = False,
    **how: Any,
) -> RankingData:
    """Read a file as `RankingData`; `how` as for `read_table`.

    Labels from `relevance_threshold` on are relevant; without it they are 0/1, -1/1 or booleans.

    Raises
    ------
    InputError
        As `read_table` and `Table.ranking_data`.
    """
    return read_table(path, **how).ranking_data(relevance_threshold, one_list)


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


def _checked(table, format):
    """The table, whose numbers have to be finite."""
    bad = np.empty(0, int) if table.labels is None else np.flatnonzero(~np.isfinite(table.labels))
    if bad.size:
        value = table.labels[bad[0]]
        raise InputError(f"{_place(table, bad[0], format)}: the label is {value}")
    feature = rows.first_non_finite(table.X)
    if feature is not None:
        row, column, value = feature
        name = (
            f"feature {column + table.first_index}"
            if table.feature_names is None
            else f"column {table.feature_names[column]!r}"
        )
        raise InputError(
            f"{_place(table, row, format)}: {name} is {value}; remove or impute such values first"
        )
    return table


def _place(table, row, format):
    if format == "svmlight":
        return svmlight.line_of(Path(table.source), row)
    return tables.place_of(table.source, row, format)
