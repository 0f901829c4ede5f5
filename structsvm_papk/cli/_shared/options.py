"""Options that several commands share, and what they mean in code.

Options that belong together are the fields of a dataclass such as `Reading`, of which a command
takes one object.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk._version import __version__
from structsvm_papk.cli._shared import console
from structsvm_papk.data.readers import read_table
from structsvm_papk.data.tables import ITEM_COLUMNS, USER_COLUMNS
from structsvm_papk.errors import InputError
from structsvm_papk.experiments._cells import Cells, check_folder, claim
from structsvm_papk.files.atomic import check_writable
from structsvm_papk.files.checkpoint import Checkpoint
from structsvm_papk.plots import convergence as plots
from structsvm_papk.rankers.settings import refuse_deeper_than_all
from structsvm_papk.surrogates import make_surrogate

READING = "Reading the data"
PROBLEM = "Problem"
STOPPING = "Stopping"
OUTPUT = "Output"

DataFile = Annotated[
    Path,
    typer.Argument(
        help="svmlight (qid: in the rows, or FILE.query beside it), CSV, TSV or Parquet; .gz too."
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--relevance-threshold",
        metavar="LABEL",
        help="Rows with at least this label are relevant; needed for graded labels.",
        rich_help_panel=READING,
    ),
]
Label = Annotated[
    str, typer.Option(metavar="COLUMN", help="Label column.", rich_help_panel=READING)
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help=f"User column; by default the first of {', '.join(USER_COLUMNS)}.",
        rich_help_panel=READING,
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that is no feature; repeat for more. "
        f"{', '.join((*USER_COLUMNS, *ITEM_COLUMNS))} never are.",
        rich_help_panel=READING,
    ),
]
FirstIndex = Annotated[
    int | None,
    typer.Option(
        "--first-index",
        min=0,
        max=1,
        help="From where an svmlight file counts features: 0 or 1; by default as the model does, "
        "and without one from 0 if the file uses index 0.",
        rich_help_panel=READING,
    ),
]
Query = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Number of rows of each user, one per line; by default FILE.query if it exists.",
        rich_help_panel=READING,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="svmlight, csv, tsv or parquet; by default told from the file name.",
        rich_help_panel=READING,
    ),
]
OneList = Annotated[
    bool,
    typer.Option("--one-list", help="All rows are one ranked list.", rich_help_panel=READING),
]
Policy = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="Users without a positive or with too few negatives: exclude or raise; cap, in fit: "
        "few negatives count as they are.",
        rich_help_panel=READING,
    ),
]
K = Annotated[
    int,
    typer.Option("--k", help="Number of items that a user is shown.", rich_help_panel=PROBLEM),
]
Alpha = Annotated[
    float,
    typer.Option(help="Regularisation strength: alpha/2 ||w||^2 + risk.", rich_help_panel=PROBLEM),
]
Depth = Annotated[
    float | None,
    typer.Option(
        metavar="DEPTH",
        help="Negatives of a user that count: a number of at least k, or a share below 1 (0.9); by "
        "default k, as in the paper. More keep w = 0 from being the optimum.",
        rich_help_panel=PROBLEM,
    ),
]
UserWeight = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="What users count: equal, or positives (as many as they have).",
        rich_help_panel=PROBLEM,
    ),
]
Tol = Annotated[
    float, typer.Option(help="Relative certified gap to stop at.", rich_help_panel=STOPPING)
]
MaxIter = Annotated[
    int | None, typer.Option(help="Largest number of iterations.", rich_help_panel=STOPPING)
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop a run after this long.", rich_help_panel=STOPPING),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads", help="Threads for each pass over the data.", rich_help_panel=STOPPING
    ),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object on standard output and nothing else there.",
        rich_help_panel=OUTPUT,
    ),
]
CheckpointFolder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        metavar="DIR",
        help="Keep what is done in this folder; the same command goes on from there.",
        rich_help_panel=OUTPUT,
    ),
]
CheckpointInterval = Annotated[
    float,
    typer.Option(
        "--checkpoint-interval",
        metavar="SECONDS",
        help="How often the state of a solver is written.",
        rich_help_panel=OUTPUT,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Save the convergence plot here (.png, .svg or .pdf); needs the extra 'plot'.",
        rich_help_panel=OUTPUT,
    ),
]


def check_outputs(*paths):
    """Refuse paths that cannot be written, before any work starts."""
    for path in paths:
        if path is not None:
            check_writable(path)


def check_plot(path):
    """Refuse a plot that cannot be drawn or written, before any work starts."""
    if path is not None:
        plots.check_plot(path)
        check_writable(path)


def cells(folder, experiment):
    """Where an experiment keeps its finished parts; nowhere without a folder."""
    if folder is None:
        return Cells()
    return Cells(folder, {"command": f"reproduce {experiment}", "version": __version__})


def say_columns(table):
    """Say which columns of a file were taken for what, and what was assumed about them."""
    console.note(table.columns_used)
    for remark in getattr(table, "remarks", ()):
        console.note(remark, style="yellow")


@dataclass(frozen=True)
class Weighting:
    """What counts in training, and how much: negatives and users."""

    depth: Depth = None
    user_weight: UserWeight = "equal"

    def __post_init__(self):
        if self.depth is not None and not 0 < self.depth < math.inf:
            raise InputError(f"--depth {self.depth:g} must be positive and finite")
        if self.user_weight not in ("equal", "positives"):
            raise InputError(f"--user-weight {self.user_weight!r} must be equal or positives")

    def surrogate(self, name, k):
        """The surrogate called `name` at this depth."""
        return make_surrogate(name, k, self.depth)

    def lists(self, lists, surrogate):
        """The lists with the weights of their users, where the surrogate's depth suits them."""
        refuse_deeper_than_all(surrogate, lists)
        return lists if self.user_weight == "equal" else lists.weighted(self.user_weight)


@dataclass(frozen=True)
class Stopping:
    """When a solver stops, and with how many threads it works."""

    tol: Tol = 1e-6
    max_iter: MaxIter = None
    time_limit: TimeLimit = None
    threads: Threads = 1

    def limits(self):
        """The settings of a solver."""
        return {"tol": self.tol, "max_iter": self.max_iter, "time_limit": self.time_limit}


@dataclass(frozen=True)
class Saving:
    """Where and how often solvers keep their state."""

    checkpoint: CheckpointFolder = None
    checkpoint_interval: CheckpointInterval = 60.0

    def __post_init__(self):
        if self.checkpoint is not None:  # what is wrong here is said before the data are read
            Checkpoint(self.checkpoint, self.checkpoint_interval)
            check_folder(self.checkpoint)

    def open(self, command, lists):
        """The `Checkpoint` of a command on some lists, whose folder is then its own, or None."""
        if self.checkpoint is None:
            return None
        claim(self.checkpoint, {"command": command, "data": lists.fingerprint()})
        return Checkpoint(self.checkpoint, self.checkpoint_interval, console.note)


@dataclass(frozen=True)
class Columns:
    """How a file of features is read."""

    label: Label = "label"
    group: Group = None
    ignore: Ignore = None
    format: Format = None
    first_index: FirstIndex = None

    def table(self, path, like=None, **more):
        """The table in a file, see `read_table`."""
        return read_table(
            path,
            label=self.label,
            group=self.group,
            ignore=self.ignore or (),
            format=self.format,
            first_index=self.first_index,
            like=like,
            **more,
        )


@dataclass(frozen=True)
class Reading(Columns):
    """How a file becomes ranked lists."""

    relevance_threshold: Threshold = None
    query: Query = None
    one_list: OneList = False

    def table(self, path, like=None, **more):
        """The table in a file, see `read_table`."""
        return super().table(path, like, query=self.query, **more)

    def lists(self, table):
        """The lists of a table."""
        return table.ranking_data(self.relevance_threshold, self.one_list)

    def second_table(self, path, like):
        """The table in a second file with the features of the first; None without a file."""
        if path is None:
            return None
        # the first file's format and counts of rows say nothing of the second
        second = replace(self, query=None, format=None, first_index=None)
        return second.table(path, like)
