"""Runs and judgments in files of any form: the lines of TREC, or a table with named columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Array, PathLike
from structsvm_papk.data.roles import Kind, pair_columns
from structsvm_papk.errors import InputError, as_path, check_number, check_type
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
    label_gain: Mapping[str, float] | None = None,
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
    label_gain : dict of str to float, optional
        Grade of each label of judgments.
    repeated : bool
        Whether a run may hold a pair more than once.
    """
    import pandas as pd

    path = as_path(path)
    format = tables.format_of(path)
    if format is None or trec.form_of(path) is not None:
        return _lines_as_pairs(path, number, on, label_gain, repeated)
    columns = pair_columns(tables.column_names(path, format), path, on, number, given)
    kinds = dict.fromkeys((columns.lists, columns.members), Kind.ID)
    if columns.number is not None:
        kinds[columns.number] = Kind.NUMBER if label_gain is None else Kind.ID
    values = tables.read_columns(path, format, kinds)
    numbers = np.ones(values[columns.lists].size)
    if columns.number is not None:
        numbers = values[columns.number]
        if label_gain is not None:
            numbers = gains_of_labels(numbers, label_gain, str(path))
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
    label_gain: Mapping[str, float] | None,
    repeated: bool,
) -> ReadPairs:
    """The lines of a run, of ranks, or of judgments."""
    form = trec.JUDGMENTS
    if number == SCORE:
        form = trec.RANKED if trec.form_of(path) is trec.RANKED else trec.RUN
    frame = trec.read_lines(path, form, repeated=repeated and form is trec.RUN)
    if form is trec.RANKED:
        frame["rank"] = -frame["rank"]
    if form is trec.JUDGMENTS and label_gain is not None:
        frame["grade"] = gains_of_labels(frame["grade"], label_gain, str(path))
    n_lists = frame["query"].cat.categories.size
    used = f"{path}: {form.kind} of {len(frame)} documents for {n_lists} queries"
    return ReadPairs(frame.set_axis([*on, number], axis=1), used, form is trec.RANKED)


def gains_of_labels(labels: Any, label_gain: Mapping[str, float], source: str) -> Array:
    """The grade of each label, a text or a number; refuses one that is not named."""
    import pandas as pd

    codes, known = pd.factorize(np.asarray(labels))
    names = [str(int(label)) if _is_whole(label) else str(label) for label in known]
    unknown = [name for name in names if name not in label_gain]
    if unknown or (codes < 0).any():
        raise InputError(
            f"{source}: no grade is given for the label {unknown[0] if unknown else 'NaN'!r}; "
            f"there are {', '.join(label_gain)} (label_gain=, --label-gain)"
        )
    grades: Array = np.array([float(label_gain[name]) for name in names])[codes]
    return grades


def _is_whole(label: Any) -> bool:
    return isinstance(label, float | np.floating) and float(label).is_integer()


def checked_label_gain(label_gain: Any) -> dict[str, float] | None:
    """Grades of labels: a dict of numbers, by the text of each label."""
    if label_gain is None:
        return None
    check_type("label_gain", label_gain, Mapping, "a dict {label: grade}")
    for label, grade in label_gain.items():
        check_number(f"the grade of label {label!r}", grade)
    return {str(label): float(grade) for label, grade in label_gain.items()}
