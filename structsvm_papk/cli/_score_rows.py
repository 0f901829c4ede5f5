"""The rows that `evaluate` looks at: a table with scores, or features with a model or scores."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from structsvm_papk.cli._shared.options import READING, Reading
from structsvm_papk.cli._shared.scores import read_scores
from structsvm_papk.data import tables
from structsvm_papk.data.tables import ITEM_COLUMNS, USER_COLUMNS, Kind
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import load_model
from structsvm_papk.metrics import curves
from structsvm_papk.metrics.frames import evaluate_frame


def _column(help):
    return typer.Option(metavar="COLUMN", help=help, rich_help_panel=READING)


@dataclass(frozen=True)
class Columns(Reading):
    """Which columns hold what."""

    score: Annotated[str, _column("Score column.")] = "score"
    rank: Annotated[str | None, _column("Rank column (1, 2, .. per user) in place of scores.")] = (
        None
    )
    item: Annotated[
        str | None,
        _column(
            "Item column, to refuse pairs that occur twice; by default "
            f"{' or '.join(ITEM_COLUMNS)}."
        ),
    ] = None
    by: Annotated[
        list[str] | None, _column("Split by this user or item column; repeat for more.")
    ] = None

    @property
    def splits(self):
        """Columns to split by."""
        return tuple(self.by or ())

    def features(self, path, like=None):
        """A file of features; the columns of items and those to split by are no features."""
        item = () if self.item is None else (self.item,)
        apart = [*(self.ignore or ()), *self.splits, *item]
        return replace(self, ignore=apart).table(path, like)

    def item_among(self, present):
        """The item column, or None."""
        return self.item or next((name for name in ITEM_COLUMNS if name in present), None)

    def user_among(self, path, present):
        """The user column; refused where there is none."""
        if self.group is not None:
            if self.group not in present:
                shown = tables.listed(list(present))
                raise InputError(f"{path}: no user column {self.group!r}; it has {shown}")
            return self.group
        usual = next((name for name in USER_COLUMNS if name in present), None)
        if usual is None:
            raise InputError(
                f"{path}: no user column ({', '.join(USER_COLUMNS)}); name it with --group, or "
                "give --one-list when all rows are one list"
            )
        return usual


@dataclass(frozen=True)
class Rows:
    """What is evaluated: a frame and the names of its columns."""

    frame: dict
    names: dict
    by: tuple
    source: str
    notes: tuple
    threshold: float | None = None

    def evaluated(self, metrics, rules):
        """The `MetricsTable`; errors name the file."""
        try:
            return evaluate_frame(self.frame, metrics, **self.names, by=self.by, **rules)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    def with_text_users(self):
        """The same rows; users that are whole numbers, as in Parquet, as text."""
        user = self.names["user"]
        if user is None or self.frame[user].dtype.kind not in "iu":
            return self
        return replace(self, frame=self.frame | {user: self.frame[user].astype(str)})

    def users_are_text(self):
        """Whether users are named by text, as in CSV."""
        user = self.names["user"]
        return user is not None and self.frame[user].dtype.kind == "U"

    @property
    def labels(self):
        """Label of each row."""
        return self.frame[self.names["label"]]

    @property
    def users(self):
        """User of each row, or None for one list."""
        return None if self.names["user"] is None else self.frame[self.names["user"]]

    @property
    def scores(self):
        """Score of each row; the larger the smaller the rank, where there are ranks."""
        rank = self.names.get("rank")
        return self.frame[self.names["score"]] if rank is None else -self.frame[rank].astype(float)

    def report(self, threshold):
        """All rows as one list."""
        return curves.report(self.scores, self.labels, relevance_threshold=threshold)


def load(file, scorer, second, columns):
    """Rows of the scorer, and of the second one where there is one."""
    if not scorer.given:
        rows = _of_scores(file, columns)
        other = None if second is None else _of_scores(second, columns)
        if other is not None and rows.users_are_text() != other.users_are_text():
            return rows.with_text_users(), other.with_text_users()
        return rows, other
    model = scorer.load()
    table = columns.features(file, model)
    threshold = None if model is None else model.relevance_threshold
    rows = _of_features(file, table, columns, scorer.of(table, model), threshold)
    if second is None:
        return rows, None
    if model is None:
        scores = read_scores(second, table.labels.size)
    else:
        scores = _second_scores(file, table, model, load_model(second), columns)
    return rows, _of_features(file, table, columns, scores, None)


def _second_scores(file, table, model, second, columns):
    for name in ("feature_names", "first_index", "n_features"):
        if getattr(model, name) != getattr(second, name):
            return columns.features(file, second).X @ second.coef
    return table.X @ second.coef


def _of_scores(path, columns):
    """A table that holds the scores."""
    format = columns.format or tables.format_of(Path(path))
    if format not in tables.FORMATS:
        raise InputError(
            f"{path}: not a CSV, TSV or Parquet table with scores; for a file of features give "
            "--model or --scores"
        )
    present = dict.fromkeys(tables.column_names(path, format))
    names = _names(path, columns, present)
    kinds = dict.fromkeys(columns.splits, Kind.TEXT)
    kinds |= dict.fromkeys((names["user"], names.get("item")), Kind.ID)
    kinds |= {columns.rank or columns.score: Kind.NUMBER, columns.label: Kind.LABEL}
    kinds.pop(None, None)
    frame = tables.read_columns(path, format, kinds)
    used = (f"{role} {name!r}" for role, name in names.items() if name is not None)
    return Rows(frame, names, columns.splits, str(path), (f"{path}: {', '.join(used)}",))


def _names(path, columns, present):
    """Which column has which role, all of them there."""
    names = {"user": None, "label": columns.label, "score": columns.score, "rank": columns.rank}
    if not columns.one_list:
        names["user"] = columns.user_among(path, present)
        names["item"] = columns.item_among(present)
    if columns.rank is not None:
        names.pop("score")
    for role in ("label", "rank", "score", "item"):
        if names.get(role) is not None and names[role] not in present:
            raise InputError(
                f"{path}: no {role} column {names[role]!r}; it has {tables.listed(list(present))}"
                + ("; for a file of features give --model" if role == "score" else "")
            )
    for name in columns.splits:
        if name not in present:
            shown = tables.listed(list(present))
            raise InputError(f"{path}: no column {name!r} to split by; it has {shown}")
    return names


def _of_features(path, table, columns, scores, threshold):
    if table.groups is None and not columns.one_list:
        raise InputError(
            f"{path}: nothing says which user a row belongs to; give --query or --group, or "
            "--one-list when all rows are one list"
        )
    # names that no column has: one to split by may be called like any of these
    names = {"user": None, "label": "the label", "score": "the score"}
    frame = {"the score": np.asarray(scores, dtype=float), "the label": table.labels}
    if not columns.one_list:
        names["user"] = "the user"
        frame["the user"] = np.asarray(table.groups)
    item, further = _further_columns(path, columns)
    if item is not None:
        names["item"] = item
    notes = (table.columns_used, *table.remarks)
    return Rows(frame | further, names, columns.splits, str(path), notes, threshold)


def _further_columns(path, columns):
    """Name of the item column, if there is one, and the columns of items and to split by."""
    format = columns.format or tables.format_of(Path(path))
    if format not in tables.FORMATS:
        if columns.splits or columns.item:
            option = "--by" if columns.splits else "--item"
            raise InputError(f"{path}: {option} needs a table with named columns")
        return None, {}
    present = tables.column_names(path, format)
    item = None if columns.one_list else columns.item_among(present)
    kinds = dict.fromkeys(columns.splits, Kind.TEXT) | ({} if item is None else {item: Kind.ID})
    return item, tables.read_columns(path, format, kinds) if kinds else {}
