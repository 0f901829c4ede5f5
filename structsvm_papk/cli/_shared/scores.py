"""Scores that a command is given: by a model, as `predict` wrote them, or one per line."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.options import READING
from structsvm_papk.data import tables
from structsvm_papk.data.groups import ONE_LIST
from structsvm_papk.data.readers import Table
from structsvm_papk.errors import DegenerateOptimumWarning, InputError
from structsvm_papk.files.model import Model, load_model


@dataclass(frozen=True)
class Scorer:
    """What gives the rows their scores."""

    model: Path | None = READING(None, "Score with this model file.", "MODEL")
    scores: Path | None = READING(
        None, "Scores of the rows: what predict wrote, or one per line.", "SCORES"
    )

    def __post_init__(self) -> None:
        if self.model is not None and self.scores is not None:
            raise InputError("give --model or --scores, not both")

    @property
    def given(self) -> bool:
        """Whether there is one."""
        return self.model is not None or self.scores is not None

    def load(self) -> Model | None:
        """The model, or None."""
        return None if self.model is None else load_model(self.model)

    def of(self, table: Table, model: Model | None, one_list: bool) -> Array | None:
        """Scores of every row of a table, given the loaded model; None without a scorer."""
        if model is not None:
            return scores_of(model, table, one_list)
        return None if self.scores is None else read_scores(self.scores, table.X.shape[0])


def scores_of(model: Model, table: Table, one_list: bool = False) -> Array:
    """Scores of every row of a table; says where they are all zero for want of weights."""
    if model.user_scaling is not None and not one_list:
        refuse_unknown_users(table)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always", DegenerateOptimumWarning)
        scores = model.predict(table.X, ONE_LIST if one_list else table.groups)
    for warning in raised:
        console.warn(f"warning: {warning.message}; fit with a larger --depth, or tune")
    return scores


def refuse_unknown_users(table: Table) -> None:
    """Refuse a table that does not say whose rows are whose."""
    if table.groups is None:
        raise InputError(
            f"{table.source}: nothing says which user a row belongs to; give --query or --group, "
            "or --one-list when all rows are one list"
        )


def item_column(path: Path, format: str, given: str | None) -> str | None:
    """Name of a table's item column: the one asked for, or a usual one."""
    present = tables.column_names(path, format)
    if given is not None and given not in present:
        raise InputError(
            f"{path}: no column {given!r} for the item (--item); it has {tables.listed(present)}"
        )
    return given or tables.usual_column(tables.ITEM_COLUMNS, present)


def read_scores(path: Path, n_rows: int) -> Array:
    """What `predict` wrote, or one number per line; infinite ones too, empty lines do not count."""
    try:
        with tables.reading(path):
            lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file of scores, one per line") from None
    head = lines[0] if lines else ""
    if "score" in head.replace("\t", ",").split(","):
        format = "tsv" if "\t" in head else "csv"
        kinds = {"score": tables.Kind.NUMBER}
        scores = tables.read_columns(path, format, kinds)["score"].astype(float)
    else:
        texts = ((at, text.strip()) for at, text in enumerate(lines, 1))
        scores = np.array([_number(path, at, text) for at, text in texts if text])
    if scores.size != n_rows:
        raise InputError(f"{path}: {scores.size} scores for {n_rows} rows")
    return scores


def _number(path: Path, line: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if np.isnan(number):
        raise InputError(f"{path}: line {line} is {text!r}; one number per line is needed")
    return number
