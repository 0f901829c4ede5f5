"""Runs and judgments in files of any form: the lines of TREC, or a table with named columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.data.roles import Kind, pair_columns
from structsvm_papk.errors import InputError, as_path
from structsvm_papk.files import tables, trec
from structsvm_papk.files.text import place_of

if TYPE_CHECKING:
    import pandas as pd

SCORE = "score"
GRADE = "grade"


@dataclass(frozen=True)
class ReadPairs:
    """A run or judgments: columns called as the roles, and a line that says what was read."""

    frame: pd.DataFrame
    used: str


def read_pairs(
    path: PathLike,
    number: str,
    on: tuple[str, str] = ("query", "document"),
    given: tuple[str | None, str | None, str | None] = (None, None, None),
) -> ReadPairs:
    """Lists and their members in columns called `on`, and the `number` of each pair.

    Parameters
    ----------
    path : path-like
        A table by its name, else lines of TREC.
    number : {'score', 'grade'}
        Whether the file is a run or judgments. Pairs of judgments without grades have grade 1.
    on, given
        As for `data.columns.pair_columns`.
    """
    import pandas as pd

    path = as_path(path)
    format = tables.format_of(path)
    if format is None:
        frame = trec.read_run(path) if number == SCORE else trec.read_judgments(path)
        kind = trec.RUN.kind if number == SCORE else trec.JUDGMENTS.kind
        n_lists = frame["query"].cat.categories.size
        used = f"{path}: {kind} of {len(frame)} documents for {n_lists} queries"
        return ReadPairs(frame.set_axis([*on, number], axis=1), used)
    columns = pair_columns(tables.column_names(path, format), path, on, number, given)
    kinds = dict.fromkeys((columns.lists, columns.members), Kind.ID)
    if columns.number is not None:
        kinds[columns.number] = Kind.NUMBER
    values = tables.read_columns(path, format, kinds)
    numbers = np.ones(values[columns.lists].size)
    if columns.number is not None:
        numbers = values[columns.number]
    bad = ~np.isfinite(numbers.astype(float))
    if number == GRADE and bad.any():
        place = place_of(path, format, int(np.argmax(bad)))
        raise InputError(f"{place}: the grade is not finite")
    frame = {on[0]: values[columns.lists], on[1]: values[columns.members], number: numbers}
    return ReadPairs(pd.DataFrame(frame), columns.used)
