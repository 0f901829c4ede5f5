"""Ranking data from files of any supported format."""

from collections.abc import Sequence
from typing import Any

from structsvm_papk._types import PathLike
from structsvm_papk.data import svmlight, tables
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.tables import Table
from structsvm_papk.errors import InputError, as_names, as_path, check_choice, check_type

FORMATS = ("svmlight", *tables.FORMATS)


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
            return svmlight.read_svmlight(path, query, like, first_index).checked()
    check_type("label", label, str, "the name of a column")
    check_type("group", group, str, "the name of a column", optional=True)
    ignore = as_names("ignore", ignore, str)
    roles = {"label": label, "group": group, "ignore": ignore, "require_labels": require_labels}
    return tables.read_features(path, format, like, **roles).checked()


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
    check_type("one_list", one_list, bool, "True or False")
    return read_table(path, **how).ranking_data(relevance_threshold, one_list)
