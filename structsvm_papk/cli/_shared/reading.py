"""How a file becomes ranked lists, or a surrogate, and what of lists counts in training."""

import runpy
import traceback
from dataclasses import dataclass, replace
from inspect import isclass
from pathlib import Path
from typing import Any

from scipy import sparse

from structsvm_papk.cli._shared import console, options
from structsvm_papk.data.columns.checks import LOWEST, SEPARATE
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.tables import Table
from structsvm_papk.surrogates import Surrogate, make_surrogate


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file becomes ranked lists; commands have its fields as options."""

    label: options.Label = "label"
    group: options.Group = None
    ignore: options.Ignore = None
    relevance_threshold: options.RelevanceThreshold = None
    one_list: options.OneList = False

    def __post_init__(self) -> None:
        if self.one_list and self.group is not None:
            raise InputError("--one-list and --group contradict each other: give one of them")

    def table(self, path: Path, like: Any = None, *, dense: bool = False, **more: Any) -> Table:
        """The table in a file, see `read_table`; `dense` where columns are curves."""
        table = read_table(
            path, label=self.label, group=self.group, ignore=self.ignore or (), like=like, **more
        )
        if dense and sparse.issparse(table.X):
            return replace(table, X=table.X.toarray())
        return table

    def lists(self, table: Table, label_gain: Any = None) -> RankingData:
        """The lists of a table."""
        return table.ranking_data(self.relevance_threshold, self.one_list, label_gain)


@dataclass(frozen=True, kw_only=True)
class TrainingReading(Reading):
    """As `Reading`, with missing values."""

    missing: options.Missing = SEPARATE

    def table(self, path: Path, like: Any = None, **more: Any) -> Table:
        """As of `Reading`, with missing values."""
        return super().table(path, like, missing=self.missing, **more)


@dataclass(frozen=True, kw_only=True)
class GradedReading(TrainingReading):
    """As `TrainingReading`, with what grades count."""

    label_gain: options.LabelGain = "linear"

    def lists(self, table: Table, label_gain: Any = None) -> RankingData:
        """As of `Reading`, with these gains."""
        return super().lists(table, self.label_gain)


def say_columns(table: Any, lists: RankingData | None = None) -> None:
    """Say which columns of a file were taken for what, and what its labels were taken for."""
    console.note(table.columns_used)
    for remark in () if lists is None else lists.remarks:
        console.note(remark)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is minimised, beside the surrogate and k: training depth, curves, units of columns."""

    depth: int | float | None
    pieces: int | None = None
    standardized: bool = True

    @property
    def content(self) -> dict[str, Any]:
        """The choices as JSON says them."""
        return {"depth": self.depth, "standardized": self.standardized, "curves": self.pieces}

    def title(self, positive: bool = False, missing: str | None = None, **more: float) -> str:
        """What was minimised, for the title of a table."""
        parts = [f"{name} = {value:g}" for name, value in more.items()]
        parts.append(f"depth {self.depth or 'k'}")
        parts.append("standardized columns" if self.standardized else "columns as they are")
        if self.pieces is not None:
            parts.append(f"curves of {self.pieces} pieces")
        if positive:
            parts.append("weights >= 0")
        if missing == LOWEST:
            parts.append(f"missing {missing}")
        return ", ".join(parts)

    def surrogate(self, given: str | Surrogate, k: int) -> Surrogate:
        """The surrogate of a name, or an object, at this depth."""
        if isinstance(given, Surrogate):
            return replace(given, depth=self.depth)
        return make_surrogate(given, k, self.depth)


# --- surrogates of your own -----------------------------------------------------------------------


def surrogate_of(given: str, k: int) -> str | Surrogate:
    """A name as it is; of ``FILE.py:NAME`` the surrogate, made with k where NAME is a class."""
    file, _, name = given.partition(".py:")
    if file == given:
        return given
    file += ".py"
    found = _defined(file).get(name)
    if isclass(found) and issubclass(found, Surrogate):
        made: Any = found  # whose arguments are its own
        try:
            return made(k=k)
        except TypeError as error:
            raise InputError(f"{file}: {name}(k={k}) failed: {error}") from None
    if not isinstance(found, Surrogate):
        raise InputError(f"{file} has no class of Surrogate, and no object of one, {name!r}")
    return found


def _defined(file: str) -> dict[str, Any]:
    """What a file defines; what it raises is said with the line."""
    try:
        return runpy.run_path(file, run_name="surrogate_of_your_own")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{place.filename}, line {place.lineno}: {type(error).__name__}: {error}"
        ) from None
