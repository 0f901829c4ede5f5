"""Runs and judgments in files of any form: the lines of TREC, or a table with named columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.data.roles import Kind, column_of, needed_column
from structsvm_papk.errors import InputError, as_path
from structsvm_papk.files import tables, trec
from structsvm_papk.files.text import place_of

if TYPE_CHECKING:
    import pandas as pd

SCORE = "score"
GRADE = "grade"


def read_pairs(
    path: PathLike,
    number: str,
    on: tuple[str, str] = ("query", "document"),
    given: tuple[str | None, str | None] = (None, None),
) -> pd.DataFrame:
    """Lists and their members in columns called `on`, and the `number` of each pair.

    Parameters
    ----------
    path : path-like
        A table by its name, else lines of TREC.
    number : {'score', 'grade'}
        Whether the file is a run or judgments. A table may hold no grades.
    on : pair of str
        Roles of the columns, see `data.roles`.
    given : pair of str or None
        What these columns are called elsewhere: a table may call them the same.
    """
    import pandas as pd

    path = as_path(path)
    format = tables.format_of(path)
    if format is None:
        frame = trec.read_run(path) if number == SCORE else trec.read_judgments(path)
        return frame.set_axis([*on, number], axis=1)
    present = tables.column_names(path, format)
    columns = {}  # of the file, by their names in the frame
    for role, name in zip(on, given, strict=True):
        columns[role] = needed_column(role, present, path, name if name in present else None)
    kinds = dict.fromkeys(columns.values(), Kind.ID)
    find = needed_column if number == SCORE else column_of
    of_number = find(number, present, path)
    if of_number is not None:
        columns[number] = of_number
        kinds[of_number] = Kind.NUMBER
    values = tables.read_columns(path, format, kinds)
    if of_number is not None and number == GRADE:
        bad = ~np.isfinite(values[of_number])
        if bad.any():
            place = place_of(path, format, int(np.argmax(bad)))
            raise InputError(f"{place}: the grade is not finite")
    return pd.DataFrame({name: values[column] for name, column in columns.items()})
