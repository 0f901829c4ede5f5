"""Runs and judgments in files of any form: the lines of TREC, or a table with named columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.data.roles import Kind, pair_columns
from structsvm_papk.errors import InputError, as_path
from structsvm_papk.files import tables, trec
from structsvm_papk.files.lines import place_of

if TYPE_CHECKING:
    import pandas as pd

SCORE = "score"
GRADE = "grade"


@dataclass(frozen=True)
class ReadPairs:
    """A run or judgments: columns called as the roles, and a line that says what was read.

    `is_rank`: the file has ranks and no scores, and the score is minus the rank.
    """

    frame: pd.DataFrame
    used: str
    is_rank: bool = False


def read_pairs(
    path: PathLike,
    number: str,
    on: tuple[str, str] = ("query", "document"),
    given: tuple[str | None, str | None, str | None] = (None, None, None),
    *,
    repeated: bool = False,
) -> ReadPairs:
    """Lists and their members in columns called `on`, and the `number` of each pair.

    Parameters
    ----------
    path : path-like
        Lines of TREC or of MS MARCO, or else a table by its name.
    number : {'score', 'grade'}
        Whether the file is a run or judgments. Pairs of judgments without grades have grade 1.
    on, given
        As for `data.roles.pair_columns`.
    repeated : bool
        Whether a run may hold a pair more than once.
    """
    import pandas as pd

    path = as_path(path)
    format = tables.format_of(path)
    if format is None or trec.form_of(path) is not None:
        return _lines_as_pairs(path, number, on, repeated)
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
        place = place_of(path, int(np.argmax(bad)))
        raise InputError(f"{place}: the grade is not finite")
    if columns.is_rank:
        numbers = -numbers.astype(float)
    frame = {on[0]: values[columns.lists], on[1]: values[columns.members], number: numbers}
    return ReadPairs(pd.DataFrame(frame), columns.used, columns.is_rank)


def _lines_as_pairs(
    path: Path,
    number: str,
    on: tuple[str, str],
    repeated: bool,
) -> ReadPairs:
    """The lines of a run, of ranks, or of judgments."""
    form = trec.JUDGMENTS
    if number == SCORE:
        form = trec.RANKED if trec.form_of(path) is trec.RANKED else trec.RUN
    frame = trec.read_lines(path, form, repeated=repeated and form is trec.RUN)
    if form is trec.RANKED:
        frame["rank"] = -frame["rank"]
    n_lists = frame["query"].cat.categories.size
    used = f"{path}: {form.kind} of {len(frame)} documents for {n_lists} queries"
    return ReadPairs(frame.set_axis([*on, number], axis=1), used, form is trec.RANKED)
