"""Scores that a command is given: by a model, or in a table or a run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console, options
from structsvm_papk.cli._shared.reading import Reading
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.roles import (
    LABEL_COLUMNS,
    RECOMMENDED,
    Kind,
    column_of,
    label_column,
    list_nouns,
    listed,
    needed_column,
)
from structsvm_papk.data.validation import ONE_LIST, is_binary
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files import tables, trec
from structsvm_papk.files.lists import GRADE, SCORE, checked_label_gain, read_pairs
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.files.tables import Table
from structsvm_papk.metrics.by_grade import evaluate_by_grade
from structsvm_papk.metrics.frames import evaluate_frame
from structsvm_papk.metrics.relevant import Pairs, match, pairs_of
from structsvm_papk.metrics.table import MetricTable

if TYPE_CHECKING:
    import pandas as pd

_WHOSE = "; name it with --group, or give --one-list when all rows are one list"


def scores_of(model: Model, table: Table, one_list: bool = False) -> Array:
    """Scores of every row of a table; says where they are all zero for want of weights."""
    if model.needs_lists and not one_list:
        refuse_unknown_users(table)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", DegenerateOptimumWarning)
        rows = model.filled(table.X, ONE_LIST if one_list else table.groups)
        scores = model.scores(rows)
    for warning in raised:
        console.warn(f"warning: {warning.message}; fit with a larger --depth")
    return scores


def contributions_of(model: Model, table: Table, one_list: bool = False) -> pd.DataFrame:
    """What each column adds to the score of each row, after `scores_of`, which warns."""
    import pandas as pd

    rows = model.filled(table.X, ONE_LIST if one_list else table.groups)
    terms = model.function.contributions(rows)
    return pd.DataFrame(terms, columns=[f"from {term.name}" for term in model.function.terms])


def refuse_unknown_users(table: Table) -> None:
    """Refuse a table that does not say whose rows are whose."""
    if table.groups is None:
        raise InputError(
            f"{table.source}: no column names the list (user or query) of each row; give --group, "
            "or --one-list if all rows are one list"
        )


def item_column(path: Path, format: str, given: str | None, group: str | None) -> str | None:
    """Name of a table's item column: the one asked for, a usual one, or the only other id."""
    names = [name for name in tables.column_names(path, format) if name != group]
    return column_of("item", names, path, given, " (--item)")


@dataclass(frozen=True, kw_only=True)
class Scoring(Reading):
    """How a file becomes scored rows with labels."""

    item: Annotated[
        str | None,
        options.reading_option(
            help=f"{options.ITEM_HELP} Each pair may occur only once.", metavar="COLUMN"
        ),
    ] = None
    score: Annotated[str, options.reading_option(help="Score column.", metavar="COLUMN")] = "score"
    model: options.ModelFile = None
    qrels: Annotated[
        Path | None,
        options.reading_option(
            help="All relevant pairs: TREC judgments, or a table of users, items and grades. "
            "Labels are taken from here (--label may name the column), and relevant items in no "
            "list count in NDCG and recall.",
            metavar="FILE",
        ),
    ] = None
    label_gain: options.GradesOfLabels = None

    def __post_init__(self) -> None:
        if self.label_gain is not None and self.qrels is None:
            raise InputError("--label-gain gives grades to labels of --qrels FILE: give both")
        if self.qrels is not None and self.one_list:
            raise InputError("--qrels needs users and items, which --one-list does not have")

    def pairs(self) -> Pairs | None:
        """The relevant pairs, or None; a label column that is named may be theirs."""
        if self.qrels is None:
            return None
        format = tables.format_of(self.qrels)
        if trec.form_of(self.qrels) is not None:
            format = None
        grade = None
        if format is not None and self.label != LABEL_COLUMNS[0]:
            present = tables.column_names(self.qrels, format)
            grade = self.label if self.label in present else None
        given = (self.group, self.item, grade)
        read = read_pairs(
            self.qrels, GRADE, RECOMMENDED, given, label_gain=checked_label_gain(self.label_gain)
        )
        return replace(pairs_of(read.frame), used=read.used)

    def is_run(self, path: Path) -> bool:
        """Whether a file is a run of TREC, or of ranks as MS MARCO has them."""
        return trec.is_run(path)

    def features(self, path: Path, like: Model | None = None) -> Table:
        """A file of features; the column of items is no feature."""
        if self.is_run(path):
            raise InputError(
                f"{path} is a run: it has scores of its own, and no features for a model. A model "
                f"of runs fuses them (fuse --model MODEL RUN .. --output FILE)"
            )
        if tables.format_of(path) is None:
            if self.item:
                raise InputError(f"{path}: --item needs a table with named columns")
            return self.table(path, like)
        no_features = list(self.ignore or ())
        if self.item:
            no_features.append(self.item)
        reading = replace(self, ignore=no_features)
        return reading.table(path, like, require_labels=self.qrels is None)

    def roles(self, path: Path, present: list[str]) -> dict[str, str | None]:
        """Which column has which role, all of them there."""
        names: dict[str, str | None] = {"user": None}
        names["label"] = label_column(self.label, present)
        if self.qrels is not None and names["label"] not in present:
            names["label"] = None
        names["score"] = self.score
        if not self.one_list:
            names["user"] = needed_column("user", present, path, self.group, _WHOSE)
            others = [name for name in present if name != names["user"]]
            names["item"] = column_of("item", others, path, self.item, " (--item)")
        hints = {
            "score": " (--score; for a file of features give --model)",
        }
        purposes = [(name, f"for the {role}{hints.get(role, '')}") for role, name in names.items()]
        for name, purpose in purposes:
            if name is not None and name not in present:
                raise InputError(f"{path}: no column {name!r} {purpose}; it has {listed(present)}")
        return names


@dataclass(frozen=True)
class Rows:
    """What is evaluated: a frame and the names of its columns."""

    frame: dict[str, Array]
    names: dict[str, str | None]
    source: str
    notes: tuple[str, ...]
    threshold: float | None = None
    label_gain: Any = None
    relevant: Pairs | None = None
    is_run: bool = False
    k: int | None = None  # of the model that scores the rows
    whose: str | None = None  # the column of lists in the file

    @property
    def nouns(self) -> str:
        """What its lists are, as far as the column says so."""
        return list_nouns(self.whose or self.names["user"])

    def evaluated(self, metrics: list[str], rules: dict[str, Any]) -> MetricTable:
        """The `MetricTable`; errors name the file.

        Graded labels that a model was trained for count as `label_gain` says, where no relevance
        threshold is given.
        """
        if self.by_grade and rules["relevance_threshold"] is None:
            return self._evaluated_by_grade(metrics, dict(rules))
        rules = rules | {"gains": rules["gains"] or "linear"}
        columns: Any = self.names | {"label": self.names["label"] or "no label"}
        try:
            return evaluate_frame(self.frame, metrics, **columns, relevant=self.relevant, **rules)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    @property
    def by_grade(self) -> bool:
        """Whether labels are grades for a model of such."""
        return (
            self.label_gain is not None
            and self.relevant is None
            and self.names["label"] is not None
            and not is_binary(self.labels)
        )

    def _evaluated_by_grade(self, metrics: list[str], rules: dict[str, Any]) -> MetricTable:
        del rules["relevance_threshold"]
        try:
            lists = RankingData.from_matrix(
                self.scores[:, None], self.labels, self.users, label_gain=self.label_gain
            )
            return evaluate_by_grade(metrics, self.scores[lists.rows], lists, **rules)
        except InputError as error:
            raise InputError(f"{self.source}: {error}") from None

    def with_text_ids(self) -> Rows:
        """The same rows; users and items that are whole numbers, as in Parquet, as text."""
        names = [name for name in (self.names["user"], self.names.get("item")) if name is not None]
        texts = {name: _as_text(self.frame[name]) for name in names}
        return replace(self, frame=self.frame | texts)

    def beside(self, pairs: Pairs | None) -> Rows:
        """The same rows beside all relevant pairs, with ids of one kind."""
        if pairs is None:
            return self
        if self.names.get("item") is None:
            raise InputError(f"{self.source}: --qrels needs a column of items; name it with --item")
        rows = self
        user = str(self.names["user"])
        item = str(self.names["item"])
        are_numbers = (_are_whole(self.frame[user]), _are_whole(self.frame[item]))
        if are_numbers != (_are_whole(pairs.users), _are_whole(pairs.items)):
            rows = self.with_text_ids()
            pairs = replace(pairs, users=_as_text(pairs.users), items=_as_text(pairs.items))
        return replace(rows, relevant=pairs, notes=(*rows.notes, pairs.used))

    @cached_property
    def labels(self) -> Array:
        """Label of each row; the grade of its pair, where there are pairs."""
        if self.relevant is None:
            return self.frame[str(self.names["label"])]
        users = self.frame[str(self.names["user"])]
        items = self.frame[str(self.names["item"])]
        return match(users, items, self.relevant).grades

    @property
    def users(self) -> Array | None:
        """User of each row, or None for one list."""
        return None if self.names["user"] is None else self.frame[self.names["user"]]

    @property
    def users_are_text(self) -> bool:
        """Whether there are users, with names."""
        return self.users is not None and self.users.dtype.kind == "U"

    @property
    def scores(self) -> Array:
        """Score of each row."""
        return self.frame[str(self.names["score"])]


def _are_whole(ids: Array) -> bool:
    """Whether ids are whole numbers."""
    return ids.dtype.kind in "iu"


def _as_text(ids: Array) -> Array:
    return ids.astype(str) if _are_whole(ids) else ids


def load(file: Path, second: Path | None, columns: Scoring) -> tuple[Rows, Rows | None]:
    """Rows of the scorer, and of the second one where there is one: a file, or a column."""
    pairs = columns.pairs()
    column = _second_column(file, second, columns)
    if columns.model is None:
        rows, other = _of_tables(file, second, column, columns)
    else:
        model = load_model(columns.model)
        rows, other = _of_rows_with_features(file, model, second, column, columns)
    rows = rows.beside(pairs)
    return rows, None if other is None else other.beside(pairs)


def _second_column(file: Path, second: Path | None, columns: Scoring) -> str | None:
    """The column of the same table that `second` names; None where it is a file."""
    format = tables.format_of(file)
    if second is None or second.exists() or format is None:
        return None
    name = str(second)
    present = tables.column_names(file, format)
    if name not in present:
        raise InputError(
            f"--compare {name}: there is no such file, and no such column in {file}, which has "
            f"{listed(present)}"
        )
    if columns.model is None and name == columns.score:
        raise InputError(f"--compare {name} is the column that is evaluated: name another one")
    return name


def _of_tables(
    file: Path, second: Path | None, column: str | None, columns: Scoring
) -> tuple[Rows, Rows | None]:
    """Rows of a table, or of a run."""
    rows = _of_table(file, columns)
    if second is None:
        return rows, None
    if column is not None:
        return rows, _of_table(file, replace(columns, score=column))
    other = _of_table(second, columns)
    if rows.users_are_text == other.users_are_text:
        return rows, other
    return rows.with_text_ids(), other.with_text_ids()


def _of_rows_with_features(
    file: Path, model: Model, second: Path | None, column: str | None, columns: Scoring
) -> tuple[Rows, Rows | None]:
    """Rows that a model scores."""
    table = columns.features(file, model)
    scores = scores_of(model, table, columns.one_list)
    rows = _of_features(file, table, columns, scores, model)
    if second is None:
        return rows, None
    if column is not None:
        read = tables.read_columns(file, str(tables.format_of(file)), {column: Kind.NUMBER})
        return rows, _of_features(file, table, columns, read[column], model)
    second_model = load_model(second)
    is_read_alike = (
        model.feature_names == second_model.feature_names
        and model.first_index == second_model.first_index
        and model.n_features == second_model.n_features
    )
    features = table if is_read_alike else columns.features(file, second_model)
    scores = scores_of(second_model, features, columns.one_list)
    return rows, _of_features(file, table, columns, scores, model)


def _of_table(path: Path, columns: Scoring) -> Rows:
    """A table that holds the scores, or a run.

    Of a table no other columns are read: what its features hold does not matter.
    """
    if columns.is_run(path):
        return _of_run(path, columns)
    format = tables.format_of(path)
    if format is None:
        raise InputError(
            f"{path}: neither a table (CSV, TSV, Parquet) with scores nor a run of TREC; for a "
            "file of features give --model"
        )
    present = tables.column_names(path, format)
    names = columns.roles(path, present)
    kinds: dict[Any, Kind] = dict.fromkeys((names["user"], names.get("item")), Kind.ID)
    kinds |= dict.fromkeys((names["score"], names["label"]), Kind.NUMBER)
    kinds.pop(None, None)
    frame = tables.read_columns(path, format, kinds)
    unused = [name for name in present if name not in kinds]
    used = ", ".join(f"{role} {name!r}" for role, name in names.items() if name is not None)
    note = f"{path}: {used}, ignored {listed(unused) if unused else 'none'}"
    return Rows(
        frame=frame,
        names=names,
        source=str(path),
        notes=(note,),
    )


def _of_run(path: Path, columns: Scoring) -> Rows:
    if columns.qrels is None:
        raise InputError(f"{path}: a run has no relevance labels; give judgments with --qrels FILE")
    run = read_pairs(path, SCORE)
    frame = {name: np.asarray(run.frame[name]) for name in ("query", "document", "score")}
    names = {"user": "query", "item": "document", "score": "score", "label": None}
    return Rows(
        frame=frame,
        names=names,
        source=str(path),
        notes=(run.used,),
        is_run=True,
    )


def _of_features(path: Path, table: Table, columns: Scoring, scores: Any, model: Model) -> Rows:
    """Rows of features with scores; the model says what labels mean where nothing else does."""
    if not columns.one_list:
        refuse_unknown_users(table)
    names: dict[str, str | None] = {"user": None, "label": "the label", "score": "the score"}
    frame = {"the score": np.asarray(scores, dtype=float)}
    if table.labels is None:
        names["label"] = None
    else:
        frame["the label"] = np.asarray(table.labels)
    if not columns.one_list:
        names["user"] = "the user"
        frame["the user"] = np.asarray(table.groups)
    names["item"] = None
    format = tables.format_of(path)
    kinds = {}
    if format is not None and not columns.one_list:
        names["item"] = item_column(path, format, columns.item, columns.group)
    if names["item"] is not None:
        kinds[names["item"]] = Kind.ID
    if format is not None and kinds:
        frame |= tables.read_columns(path, format, kinds)
    return Rows(
        frame=frame,
        names=names,
        source=str(path),
        notes=(table.columns_used,),
        threshold=model.relevance_threshold,
        label_gain=model.label_gain,
        k=model.k,
        whose=None if columns.one_list else table.list_column,
    )
