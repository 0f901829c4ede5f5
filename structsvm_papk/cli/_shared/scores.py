"""Scores that a command is given: those of a model file, or one number per line."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.options import READING
from structsvm_papk.data.readers import Table
from structsvm_papk.data.tables import reading
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import Model, load_model


@dataclass(frozen=True)
class Scorer:
    """What gives the rows their scores."""

    model: Path | None = READING(None, "Score with this model file.", "MODEL")
    scores: Path | None = READING(None, "Scores of the rows, one per line.", "SCORES")

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

    def of(self, table: Table, model: Model | None) -> Array | None:
        """Scores of every row of a table, given the loaded model; None without a scorer."""
        if model is not None:
            return scores_of(model, table)
        return None if self.scores is None else read_scores(self.scores, table.X.shape[0])


def scores_of(model: Model, table: Table) -> Array:
    """Scores of every row of a table; says where they are all zero for want of weights."""
    if not model.coef.any():
        console.warn(
            f"warning: every score is 0: all weights of this model are, as w = 0 is the optimum of "
            f"{model.surrogate} at depth {model.depth or model.k} on its training data; fit with a "
            "larger --depth, or tune"
        )
    return np.asarray(table.X @ model.coef)


def read_scores(path: Path, n_rows: int) -> Array:
    """One number per line, infinite ones too, for each row; empty lines do not count."""
    try:
        with reading(path):
            lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file of scores, one per line") from None
    scores = [_number(path, at, text.strip()) for at, text in enumerate(lines, 1) if text.strip()]
    if len(scores) != n_rows:
        raise InputError(f"{path}: {len(scores)} scores for {n_rows} rows")
    return np.array(scores)


def _number(path: Path, line: int, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if np.isnan(number):
        raise InputError(f"{path}: line {line} is {text!r}; one number per line is needed")
    return number
