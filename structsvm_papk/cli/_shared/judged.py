"""Relevant pairs and runs that a command is given: judgments or a table, and a run of TREC."""

from pathlib import Path
from typing import Any

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns import (
    GRADE_COLUMNS,
    ITEM_COLUMNS,
    USER_COLUMNS,
    listed,
    usual_column,
)
from structsvm_papk.errors import InputError
from structsvm_papk.files import tables, trec
from structsvm_papk.files.tables import Kind
from structsvm_papk.files.text import place_of
from structsvm_papk.metrics.relevant import Pairs


def read_pairs(path: Path, user: str | None = None, item: str | None = None) -> Pairs:
    """All relevant pairs: judgments of TREC, or a table with users, items and perhaps grades.

    `user` and `item` are what the lists call these columns: a table may call them the same.
    """
    format = tables.format_of(path)
    if format is None:
        judgments = trec.read_judgments(path)
        grades = np.maximum(judgments["grade"].to_numpy(dtype=float), 0.0)
        return Pairs(texts(judgments["query"]), texts(judgments["document"]), grades)
    present = tables.column_names(path, format)
    user = user if user in present else _column(path, "user", USER_COLUMNS, present)
    item = item if item in present else _column(path, "item", ITEM_COLUMNS, present)
    grade = usual_column(GRADE_COLUMNS, present)
    kinds = {user: Kind.ID, item: Kind.ID}
    if grade is not None:
        kinds[grade] = Kind.NUMBER
    columns = tables.read_columns(path, format, kinds)
    grades = np.ones(columns[user].size)
    if grade is not None:
        grades = np.maximum(columns[grade].astype(float), 0.0)
        if not np.isfinite(grades).all():
            row = int(np.argmin(np.isfinite(grades)))
            raise InputError(f"{place_of(path, format, row)}: the grade is not finite")
    return Pairs(columns[user], columns[item], grades)


def _column(path: Path, role: str, usual: tuple[str, ...], present: list[str]) -> str:
    name = usual_column(usual, present)
    if name is None:
        raise InputError(
            f"{path}: no column of {role}s for the relevant pairs; it has "
            f"{listed(present)}: rename that of the {role}s to {role!r}"
        )
    return name


def read_run(path: Path) -> dict[str, Array]:
    """A run as columns query, document and score."""
    run = trec.read_run(path)
    return {
        "query": texts(run["query"]),
        "document": texts(run["document"]),
        "score": run["score"].to_numpy(),
    }


def texts(column: Any) -> Array:
    """A column of categories as an array of text, each text held once."""
    known = np.array(column.cat.categories, dtype=object)
    return known[column.cat.codes.to_numpy()]
