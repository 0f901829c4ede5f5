"""Options that several commands share, and what they mean in code."""

from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.outputs import check_writable
from structsvm_papk.readers import read_table

_DATA = "Reading the data"
_PROBLEM = "Problem"
_STOP = "Stopping"
_OUTPUT = "Output"

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
        rich_help_panel=_DATA,
    ),
]
Label = Annotated[str, typer.Option(metavar="COLUMN", help="Label column.", rich_help_panel=_DATA)]
Group = Annotated[str, typer.Option(metavar="COLUMN", help="User column.", rich_help_panel=_DATA)]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="A column that is no feature; repeat for more.",
        rich_help_panel=_DATA,
    ),
]
Query = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Number of rows of each user, one per line; by default FILE.query if it exists.",
        rich_help_panel=_DATA,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="svmlight, csv, tsv or parquet; by default told from the file name.",
        rich_help_panel=_DATA,
    ),
]
OneList = Annotated[
    bool,
    typer.Option("--one-list", help="All rows are one ranked list.", rich_help_panel=_DATA),
]
Policy = Annotated[
    str,
    typer.Option(
        metavar="POLICY",
        help="Users without a positive or with fewer than k negatives: exclude or raise.",
        rich_help_panel=_DATA,
    ),
]
K = Annotated[
    int,
    typer.Option("--k", help="Number of items that a user is shown.", rich_help_panel=_PROBLEM),
]
Alpha = Annotated[
    float,
    typer.Option(help="Regularisation strength: alpha/2 ||w||^2 + risk.", rich_help_panel=_PROBLEM),
]
Tol = Annotated[
    float, typer.Option(help="Relative certified gap to stop at.", rich_help_panel=_STOP)
]
MaxIter = Annotated[
    int | None, typer.Option(help="Largest number of iterations.", rich_help_panel=_STOP)
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="Stop a run after this long.", rich_help_panel=_STOP),
]
Threads = Annotated[
    int,
    typer.Option("--threads", help="Threads for each pass over the data.", rich_help_panel=_STOP),
]
Json = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print one JSON object on standard output and nothing else there.",
        rich_help_panel=_OUTPUT,
    ),
]
Plot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Save the convergence plot here (.png, .svg or .pdf); needs the extra 'plot'.",
        rich_help_panel=_OUTPUT,
    ),
]


def check_outputs(*paths):
    """Refuse paths that cannot be written, before any work starts."""
    for path in paths:
        if path is not None:
            check_writable(path)


def read_both(train, test, threshold, one_list, **how):
    """Training data, and test data with the same features where there is a test file."""
    table = read_table(train, **how)
    data = table.ranking_data(threshold, one_list)
    if test is None:
        return table, data, None
    how = {key: value for key, value in how.items() if key in ("label", "group", "ignore")}
    return table, data, read_table(test, like=table, **how).ranking_data(threshold, one_list)
