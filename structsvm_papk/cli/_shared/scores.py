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
from structsvm_papk.files.lines import errors_name
from structsvm_papk.files.model import Model, load_model
from structsvm_papk.files.tables import Table
from structsvm_papk.files.trec import GRADE, SCORE, checked_label_gain, read_pairs
from structsvm_papk.metrics.relevant import Pairs, match, pairs_of
from structsvm_papk.metrics.table import MetricTable, evaluate_by_grade, evaluate_frame

if TYPE_CHECKING:
    import pandas as pd

_WHOSE = "; name it with --group, or give --one-list when all rows are one list"


def scores_of(model: Model, table: Table, one_list: bool = False) -> Array:
    """Scores of every row of a table; says where they are all zero for want of weights."""
    if model.needs_lists and not one_list:
        refuse_unknown_users(table)
    with warnings.catch_warnings(record=True) as raised, errors_name(table.source):
        warnings.simplefilter("always", DegenerateOptimumWarning)
        rows = model.filled(table.X, ONE_LIST if one_list else table.groups)
        scores = model.scores(rows)
    for warning in raised:
        is_zero = issubclass(warning.category, DegenerateOptimumWarning)
        advice = "; fit with a larger --depth" if is_zero else ""
        console.warn(f"warning: {warning.message}{advice}")
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

    def features(self, path: Path, like: Model | None = None) -> Table:
        """A file of features; the column of items is no feature."""
        if trec.is_run(path):
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
        for role, name in names.items():
            if name is not None and name not in present:
                hint = " (--score; for a file of features give --model)" * (role == "score")
                raise InputError(
                    f"{path}: no column {name!r} for the {role}{hint}; it has {listed(present)}"
                )
        return names


@dataclass(frozen=True)
class Rows:
    """What is evaluated: arrays of one value a row; None for one list, without items or labels.

    Attributes
    ----------
    model : Model or None
        That scores the rows; it says what labels mean where nothing else does.
    lists : str
        What its lists are called, as far as the file says so.
    """

    scores: Array
    users: Array | None
    items: Array | None
    own_labels: Array | None
    source: str
    notes: tuple[str, ...]
    lists: str
    model: Model | None = None
    relevant: Pairs | None = None
    is_run: bool = False

    @property
    def members(self) -> str:
        """What the members of its lists are called."""
        return "documents" if self.is_run else "items"

    def evaluated(self, metrics: list[str], rules: dict[str, Any]) -> MetricTable:
        """The `MetricTable`; errors name the file.

        Graded labels that a model was trained for count as its gains say, where no relevance
        threshold is given.
        """
        label_gain = None if self.model is None else self.model.label_gain
        by_grade = label_gain is not None and self.relevant is None
        by_grade = by_grade and self.own_labels is not None and not is_binary(self.own_labels)
        with errors_name(self.source):
            if by_grade and rules["relevance_threshold"] is None:
                lists = RankingData.from_matrix(
                    self.scores[:, None], self.labels, self.users, label_gain=label_gain
                )
                rules = {name: rules[name] for name in rules if name != "relevance_threshold"}
                return evaluate_by_grade(metrics, self.scores[lists.rows], lists, **rules)
            columns = {"user": self.users, "item": self.items, "label": self.own_labels}
            frame = {name: column for name, column in columns.items() if column is not None}
            return evaluate_frame(
                frame | {"score": self.scores},
                metrics,
                user=None if self.users is None else "user",
                item=None if self.items is None else "item",
                relevant=self.relevant,
                **rules | {"gains": rules["gains"] or "linear"},
            )

    def with_text_ids(self) -> Rows:
        """The same rows; users and items that are whole numbers, as in Parquet, as text."""
        return replace(self, users=_as_text(self.users), items=_as_text(self.items))

    def beside(self, pairs: Pairs | None) -> Rows:
        """The same rows beside all relevant pairs, with ids of one kind."""
        if pairs is None:
            return self
        if self.items is None:
            raise InputError(f"{self.source}: --qrels needs a column of items; name it with --item")
        rows = self
        are_numbers = (_are_whole(self.users), _are_whole(self.items))
        if are_numbers != (_are_whole(pairs.users), _are_whole(pairs.items)):
            rows = self.with_text_ids()
            pairs = replace(pairs, users=_as_text(pairs.users), items=_as_text(pairs.items))
        return replace(rows, relevant=pairs, notes=(*rows.notes, pairs.used))

    @cached_property
    def labels(self) -> Array:
        """Label of each row; the grade of its pair, where there are pairs."""
        if self.relevant is None:
            return np.asarray(self.own_labels)
        return match(np.asarray(self.users), np.asarray(self.items), self.relevant).grades


def _are_whole(ids: Array | None) -> bool:
    """Whether ids are whole numbers."""
    return ids is not None and ids.dtype.kind in "iu"


def _as_text(ids: Any) -> Any:
    return ids.astype(str) if _are_whole(ids) else ids


def load(file: Path, second: Path | None, columns: Scoring) -> tuple[Rows, Rows | None]:
    """Rows of the scorer, and of the second one where there is one: a file, or a column."""
    pairs = columns.pairs()
    column = _second_column(file, second, columns)
    if columns.model is None:
        rows = _of_table(file, columns)
    else:
        model = load_model(columns.model)
        table = columns.features(file, model)
        rows = _of_features(file, table, columns, model)
    other = None
    if column is not None and columns.model is not None:
        read = tables.read_columns(file, str(tables.format_of(file)), {column: Kind.NUMBER})
        other = replace(rows, scores=read[column])
    elif column is not None:
        other = _of_table(file, replace(columns, score=column))
    elif second is not None and columns.model is not None:
        second_model = load_model(second)
        features = columns.features(file, second_model)
        other = replace(rows, scores=scores_of(second_model, features, columns.one_list))
    elif second is not None:
        other = _of_table(second, columns)
        if _are_whole(rows.users) != _are_whole(other.users):
            rows = rows.with_text_ids()
            other = other.with_text_ids()
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


def _of_table(path: Path, columns: Scoring) -> Rows:
    """A table that holds the scores, or a run.

    Of a table no other columns are read: what its features hold does not matter.
    """
    if trec.is_run(path):
        return _of_run(path, columns)
    format = tables.format_of(path)
    if format is None:
        with tables.reading(path):
            fault = trec.first_bad_line(path, trec.RUN)
        raise InputError(
            f"{fault}: this is no run of TREC; a table of scores ends in .csv, .tsv or .parquet, "
            "and a file of features needs --model"
        )
    present = tables.column_names(path, format)
    names = columns.roles(path, present)
    user = names.get("user")
    item = names.get("item")
    kinds: dict[Any, Kind] = dict.fromkeys((user, item), Kind.ID)
    kinds |= dict.fromkeys((names["score"], names["label"]), Kind.NUMBER)
    kinds.pop(None, None)
    frame: dict[Any, Array] = tables.read_columns(path, format, kinds)
    unused = [name for name in present if name not in kinds]
    used = ", ".join(f"{role} {name!r}" for role, name in names.items() if name is not None)
    return Rows(
        scores=frame[names["score"]],
        users=frame.get(user),
        items=frame.get(item),
        own_labels=frame.get(names["label"]),
        source=str(path),
        notes=(f"{path}: {used}, ignored {listed(unused) if unused else 'none'}",),
        lists=list_nouns(user),
    )


def _of_run(path: Path, columns: Scoring) -> Rows:
    if columns.qrels is None:
        raise InputError(f"{path}: a run has no relevance labels; give judgments with --qrels FILE")
    run = read_pairs(path, SCORE)
    return Rows(
        scores=np.asarray(run.frame["score"]),
        users=np.asarray(run.frame["query"]),
        items=np.asarray(run.frame["document"]),
        own_labels=None,
        source=str(path),
        notes=(run.used,),
        lists="queries",
        is_run=True,
    )


def _of_features(path: Path, table: Table, columns: Scoring, model: Model) -> Rows:
    """Rows of features with the scores of a model."""
    if not columns.one_list:
        refuse_unknown_users(table)
    items = None
    format = tables.format_of(path)
    if format is not None and not columns.one_list:
        name = item_column(path, format, columns.item, columns.group)
        if name is not None:
            items = tables.read_columns(path, format, {name: Kind.ID})[name]
    return Rows(
        scores=scores_of(model, table, columns.one_list),
        users=None if columns.one_list else table.groups,
        items=items,
        own_labels=table.labels,
        source=str(path),
        notes=(table.columns_used,),
        lists=list_nouns(None if columns.one_list else table.list_column),
        model=model,
    )
