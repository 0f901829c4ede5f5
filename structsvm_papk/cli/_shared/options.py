"""Options that several commands share, and what they mean in code.

Options that belong together are the fields of a dataclass such as `Reading`, of which a command
takes one object.
"""

import io
import math
from dataclasses import MISSING, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import typer

from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.declared import Use
from structsvm_papk.data.columns import ITEM_COLUMNS, USER_COLUMNS
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.data.user_scaling import USER_SCALINGS, scaled_lists
from structsvm_papk.errors import InputError
from structsvm_papk.files.atomic import check_writable, write_atomically
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.files.readers import read_table
from structsvm_papk.files.tables import Table
from structsvm_papk.oracles.list_risk import refuse_deeper_than_all
from structsvm_papk.plots.figures import has_matplotlib
from structsvm_papk.rankers import penalty, settings
from structsvm_papk.rankers.settings import as_depth
from structsvm_papk.surrogates import Surrogate, make_surrogate


def option(
    panel: str | None, default: Any, help: str, metavar: str | None = None, *, flags: str = "",
    kind: Any = typer.Option, use: Use = Use.READS, **more: Any,
) -> Any:  # fmt: skip
    """A default that is an option under a heading; one without (``...``) has to be given.

    `use` says what is done with a path.
    """
    info = kind(*flags.split(), help=help, metavar=metavar, rich_help_panel=panel, **more)
    declaration = {"option": info, "use": use}
    return field(default=MISSING if default is ... else default, metadata=declaration)


argument = partial(option, None, kind=typer.Argument)
PLAIN = partial(option, None)
PROBLEM = partial(option, "Problem")
READING = partial(option, "Reading the data")
SOLVER = partial(option, "Solver")
OUTPUT = partial(option, "Output")
WRITTEN = partial(OUTPUT, use=Use.WRITES)
TOL = "Relative certified gap to stop at."
ALPHA = (
    "Regularisation strength, alpha/2 ||w||^2 + risk: a number, or auto, 12 (d/p)^1.5 for d "
    "columns and p positives."
)
_FORMATS = "svmlight (qid: in the rows, or FILE.query beside it), CSV, TSV or Parquet; .gz too."
_USERS = (
    "Column of users or queries, one list each; by default the first of "
    f"{', '.join(USER_COLUMNS)} (or userId, ..)."
)
_NO_FEATURE = (
    "A column that is no feature; repeat for more. Items (item, docno, movieid, ..) and other ids "
    "(names that end in _id or Id) never are."
)
ITEM = (
    f"Item column; by default the first of {', '.join(ITEM_COLUMNS[:7])} and the like (product_id, "
    "movieId, track, ..)."
)
_FIRST_INDEX = (
    "From where an svmlight file counts features: 0 or 1; by default as the model does, and "
    "without one from 0 if the file uses index 0."
)
DEPTH = (
    "Negatives of a user that count: a number of at least k, a share (0.9), auto (0.9; 0.5 with "
    "--missing), or k, as in the paper. More keep w = 0 from being the optimum."
)
STANDARDIZE = (
    "Regularise columns in units of their standard deviation within users, so that their own units "
    "do not matter: yes; auto, which divides columns of two values by half their difference, and "
    "those of sparse data by one number; or no, as they are, which is the paper's problem."
)
SCALING_FLAGS = "--user-scaling --scaling"
USER_SCALING = (
    "Scale columns inside each user's list, in training and prediction: standardize, rank, minmax, "
    "or none."
)
HOLES = (
    "lowest: an empty cell means that a source did not return the item; it takes the lowest of its "
    "column in its list, and columns with holes get a weight for that. By default refused."
)
_POLICY = (
    "Users without a positive, or with fewer negatives than --depth (--k) counts: exclude leaves "
    "them out, raise refuses them; cap, for training and by default there, counts the negatives "
    "that they have, and leaves out those without any or without a positive."
)


def parse_scaling(text: str) -> str | None:
    """The user scaling that a text means; None for none."""
    if text not in ("none", *USER_SCALINGS):
        *others, last = USER_SCALINGS
        raise InputError(f"--user-scaling {text!r} must be none, {', '.join(others)} or {last}")
    return None if text == "none" else text


def parse_alpha(text: str) -> float | str:
    """The strength that a text means: a number, or 'auto'."""
    if text == penalty.AUTO:
        return text
    try:
        alpha = float(text)
    except ValueError:
        alpha = math.nan
    if not 0 < alpha < math.inf:
        raise InputError(f"--alpha {text}: a number above 0, or auto")
    return alpha


def parse_standardize(text: str) -> bool | str:
    """What `--standardize` means to rankers."""
    if text not in _STANDARDIZE:
        raise InputError(f"--standardize {text!r} must be auto, yes or no")
    return _STANDARDIZE[text]


POSITIVE = PROBLEM(
    False, "Weights >= 0 only, with a certificate of that problem.", flags="--positive"
)
MODEL_FLAGS = "--model --output -o"  # of a model that is written; the first is the name
DATA = argument(..., _FORMATS)
K = PROBLEM(..., "Number of items of a list (user or query) that are shown.", flags="--k")
ONE_LIST = READING(False, "All rows are one ranked list.", flags="--one-list")
_STANDARDIZE: dict[str, bool | str] = {"auto": "auto", "yes": True, "no": False}
_PLOTS = (".png", ".svg", ".pdf")
JSON = OUTPUT(
    False, "Print one JSON object on standard output, nothing else there.", flags="--json"
)
PLOT = OUTPUT(
    None, "Save a plot here (.png, .svg or .pdf); needs the extra 'plot'.", "FILE", use=Use.DRAWS
)


def policy(default: str | None) -> Any:
    """The option of what is done with users whose list is too short."""
    return READING(default, _POLICY, "POLICY")


def check_plot(path: Path | None) -> None:
    """Refuse a plot that cannot be drawn or written, before any work starts."""
    if path is None:
        return
    if path.suffix.lower() not in _PLOTS:
        raise InputError(f"cannot draw {path}: the name must end in {', '.join(_PLOTS)}")
    if not has_matplotlib():
        raise InputError(
            f"cannot draw {path}: matplotlib is missing; pip install matplotlib (the extra 'plot')"
        )
    check_writable(path)


def save_plot(path: Path | None, figure: Any) -> None:
    """Write the figure that a function makes, where a plot is wanted."""
    if path is None:
        return
    content = io.BytesIO()
    format = path.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if format == "svg" else None  # the same figure is the same file
    figure().savefig(content, format=format, dpi=150, metadata=metadata)
    write_atomically(path, content.getvalue())
    console.note(f"plot written to {path}")


def say_columns(table: Any) -> None:
    """Say which columns of a file were taken for what."""
    console.note(table.columns_used)


def parse_depth(text: str, missing: str | None = None) -> int | float | None:
    """The training depth that a text means; None for k."""
    if text == "k":
        return None
    if text == "auto":
        return as_depth(text, missing)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise InputError(f"--depth {text}: a number of at least k, a share below 1, auto, or k")
    return int(value) if value >= 1 and value == int(value) else value


@dataclass(frozen=True)
class Weighting:
    """What counts in training, and how much: negatives and users."""

    depth: str = PROBLEM(settings.DEPTH, DEPTH, "DEPTH")
    user_weight: str = PROBLEM(
        "equal", "What users count: equal, or positives (as many as they have).", "NAME"
    )

    standardize: str = PROBLEM("auto", STANDARDIZE, "HOW")
    user_scaling: str = PROBLEM("none", USER_SCALING, "NAME", flags=SCALING_FLAGS)

    def __post_init__(self) -> None:
        parse_depth(self.depth)
        parse_scaling(self.user_scaling)
        parse_standardize(self.standardize)
        if self.user_weight not in ("equal", "positives"):
            raise InputError(f"--user-weight {self.user_weight!r} must be equal or positives")

    @property
    def content(self) -> dict[str, Any]:
        """The choices as JSON says them."""
        return {
            "depth": self.negatives,
            "user_weight": self.user_weight,
            "standardized": bool(self.units),
            "user_scaling": self.scaling,
        }

    def title(self, **more: float | str) -> str:
        """What was minimised, for the title of a table."""
        parts = []
        for name, value in more.items():
            text = value if isinstance(value, str) else f"{value:g}"
            parts.append(f"{name} = {text}")
        parts.append(f"depth {self.negatives or 'k'}")
        parts.append(f"users' weight {self.user_weight}")
        parts.append("standardized columns" if self.units else "columns as they are")
        if self.scaling:
            parts.append(f"user scaling {self.scaling}")
        return ", ".join(parts)

    @property
    def negatives(self) -> int | float | None:
        """The depth as surrogates take it."""
        return parse_depth(self.depth)

    @property
    def units(self) -> bool | str:
        """Whether columns are divided by their deviations, as rankers take it."""
        return parse_standardize(self.standardize)

    @property
    def scaling(self) -> str | None:
        """The user scaling as rankers take it."""
        return parse_scaling(self.user_scaling)

    def suited_to(self, missing: str | None) -> Self:
        """The same with the depth that 'auto' stands for where holes are filled."""
        return replace(self, depth=str(parse_depth(self.depth, missing) or "k"))

    def surrogate(self, name: str, k: int) -> Surrogate:
        """The surrogate called `name` at this depth."""
        return make_surrogate(name, k, self.negatives)

    def lists(
        self, lists: RankingData, surrogate: Surrogate, missing: str | None = None
    ) -> RankingData:
        """The lists as they are trained on, where the surrogate's depth suits them."""
        refuse_deeper_than_all(surrogate, lists.most_negatives)
        lists = scaled_lists(lists, self.scaling, missing)
        lists = lists.standardized(self.units)
        if self.user_weight == "equal":
            return lists
        return lists.weighted(self.user_weight)


@dataclass(frozen=True)
class Stopping:
    """When a solver stops, and with how many threads it works."""

    tol: float = SOLVER(1e-6, TOL)
    max_iter: int | None = SOLVER(None, "Largest number of iterations.")
    time_limit: float | None = SOLVER(None, "Stop a run after this long.", "SECONDS")
    threads: int = SOLVER(1, "Threads for each pass over the data.")

    def limits(self) -> dict[str, Any]:
        """The settings of a solver."""
        return {"tol": self.tol, "max_iter": self.max_iter, "time_limit": self.time_limit}


@dataclass(frozen=True)
class Saving:
    """Where and how often solvers save their result so far."""

    checkpoint: Path | None = OUTPUT(
        None,
        "Keep what is done so far, in this file (tune: folder); the same command goes on from "
        "there.",
        "PATH",
        use=Use.KEEPS,
    )
    checkpoint_interval: float = OUTPUT(60.0, "How often the result so far is written.", "SECONDS")

    def __post_init__(self) -> None:
        if self.checkpoint is not None:  # what is wrong here is said before the data are read
            Checkpoint(self.checkpoint, self.checkpoint_interval)

    def place(self) -> Checkpoint | None:
        """The `Checkpoint` of a command, or None."""
        if self.checkpoint is None:
            return None
        return Checkpoint(self.checkpoint, self.checkpoint_interval)


@dataclass(frozen=True)
class Columns:
    """How a file of features is read."""

    label: str = READING("label", "Label column; else relevant, target or y.", "COLUMN")
    group: str | None = READING(None, _USERS, "COLUMN")
    ignore: list[str] | None = READING(None, _NO_FEATURE, "COLUMN")
    format: str | None = READING(
        None, "svmlight, csv, tsv or parquet; by default as the file is called.", "FORMAT"
    )
    first_index: int | None = READING(None, _FIRST_INDEX, min=0, max=1)

    def table(self, path: Path, like: Any = None, **more: Any) -> Table:
        """The table in a file, see `read_table`."""
        return read_table(
            path, label=self.label, group=self.group, ignore=self.ignore or (), format=self.format,
            first_index=self.first_index, like=like, **more,
        )  # fmt: skip


@dataclass(frozen=True)
class Reading(Columns):
    """How a file becomes ranked lists."""

    relevance_threshold: float | None = READING(
        None, "Rows with at least this label are relevant; needed for graded labels.", "LABEL"
    )
    query: Path | None = READING(
        None,
        "Number of rows of each user, one per line; by default FILE.query if it exists.",
        "FILE",
    )
    one_list: bool = ONE_LIST

    def table(self, path: Path, like: Any = None, **more: Any) -> Table:
        """The table in a file, see `read_table`."""
        return super().table(path, like, query=self.query, **more)

    def lists(self, table: Table) -> RankingData:
        """The lists of a table."""
        return table.ranking_data(self.relevance_threshold, self.one_list)

    def second_table(self, path: Path, like: Table) -> Table:
        """The table in a second file with the features of the first."""
        # the first file's format and counts of rows say nothing of the second
        second = replace(self, query=None, format=None, first_index=None)
        return second.table(path, like)


@dataclass(frozen=True)
class TrainingRows(Reading):
    """How a file becomes lists to train on; what takes a model reads as the model did."""

    missing: str | None = READING(None, HOLES, "WAY")

    def table(self, path: Path, like: Any = None, **more: Any) -> Table:
        """The table in a file, see `read_table`."""
        return super().table(path, like, missing=self.missing, **more)
