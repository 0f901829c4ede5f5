"""Scores that a command is given: those of a model file, or one number per line."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from structsvm_papk.cli._shared.options import READING
from structsvm_papk.errors import InputError
from structsvm_papk.files.model import load_model


@dataclass(frozen=True)
class Scorer:
    """What gives the rows their scores."""

    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Score with this model file.", rich_help_panel=READING),
    ] = None
    scores: Annotated[
        Path | None,
        typer.Option(
            metavar="SCORES", help="Scores of the rows, one per line.", rich_help_panel=READING
        ),
    ] = None

    def __post_init__(self):
        if self.model is not None and self.scores is not None:
            raise InputError("give --model or --scores, not both")

    @property
    def given(self):
        """Whether there is one."""
        return self.model is not None or self.scores is not None

    def load(self):
        """The model, or None."""
        return None if self.model is None else load_model(self.model)

    def of(self, table, model):
        """Scores of every row of a table, given the loaded model; None without a scorer."""
        if model is not None:
            return np.asarray(table.X @ model.coef)
        return None if self.scores is None else read_scores(self.scores, table.X.shape[0])


def read_scores(path, n_rows):
    """One number per line, infinite ones too, for each of `n_rows` rows; empty lines do not count.

    Raises
    ------
    InputError
        The file cannot be read, a line holds something else, or there are too few or too many.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from None
    scores = [_number(path, at, text.strip()) for at, text in enumerate(lines, 1) if text.strip()]
    if len(scores) != n_rows:
        raise InputError(f"{path}: {len(scores)} scores for {n_rows} rows")
    return np.array(scores)


def _number(path, line, text):
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if np.isnan(number):
        raise InputError(f"{path}: line {line} is {text!r}; one number per line is needed")
    return number
