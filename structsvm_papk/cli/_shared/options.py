"""Options that several commands share: what the command line shows, and what it makes of a text.

A command names them in its signature, ``alpha: options.Alpha = ALPHA``, and that is what typer
reads. Options that belong together are fields of a record, see `records`.
"""

import math
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.data.columns.knots import MOST_PIECES
from structsvm_papk.data.roles import ITEM_COLUMNS, USER_COLUMNS

# by the heading of the help that an option stands under
problem_option = partial(typer.Option, rich_help_panel="Problem")
reading_option = partial(typer.Option, rich_help_panel="Reading the data")
solver_option = partial(typer.Option, rich_help_panel="Solver")
output_option = partial(typer.Option, rich_help_panel="Output")


def number_or_name(text: str) -> int | float | str | None:
    """What a text means where a number or a name may stand; which ones may, the library checks."""
    if text == "none":
        return None
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def _depth(text: str) -> int | float | str | None:
    """The training depth that a text means; None for k."""
    return None if text == "k" else number_or_name(text)


def _label_gain(text: str) -> str | list[float]:
    """What grades count, as rankers take it; which texts may stand here, the library checks."""
    try:
        return [float(gain) for gain in text.split(",")] if "," in text else text
    except ValueError:
        return text


def _grades_of_labels(text: str) -> dict[str, float]:
    """Grades of labels, from E=3,S=2,.."""
    grades = {}
    for part in text.split(","):
        label, equals, grade = part.strip().partition("=")
        try:
            number = float(grade)
        except ValueError:
            number = math.nan
        if not equals or not label or not math.isfinite(number) or label in grades:
            raise typer.BadParameter(f"{text}: give a grade to each label, as E=3,S=2,C=1,I=0")
        grades[label] = number
    return grades


MODEL_FLAGS = ("--model", "--output", "-o")  # of a model that is written; the first is the name

ITEM_HELP = (
    f"Item column; by default the first of {', '.join(ITEM_COLUMNS[:7])} or a similar name "
    "(product_id, movieId, track, ..), else the only id beside the user's."
)

# --- the problem ----------------------------------------------------------------------------------

K = Annotated[
    int, problem_option("--k", help="Number of top places of a list (user or query) that count.")
]
Alpha = Annotated[
    Any,
    problem_option(
        parser=number_or_name,
        help="Regularization strength in alpha/2 ||w||^2 + risk: a number, or auto, which is "
        "12 (d/p)^1.5 for d columns and p positives.",
        metavar="NUMBER|auto",
    ),
]
Depth = Annotated[
    Any,
    problem_option(
        parser=_depth,
        help="How many of the best-scored negatives of a list count in training: a number of at "
        "least k, a share (0.9), auto (0.9; 0.5 with --missing), or k, as in the paper. With a "
        "small depth w = 0 may be the optimum.",
        metavar="DEPTH",
    ),
]
Pieces = Annotated[
    int | None,
    problem_option(
        "--curves",
        help="Piecewise linear curves of so many pieces for each column; by default straight "
        "lines.",
        metavar="NUMBER",
        min=1,
        max=MOST_PIECES,
    ),
]
Positive = Annotated[
    bool,
    problem_option(
        "--positive",
        help="Only weights >= 0; the certificate is for the problem with this constraint.",
    ),
]

# --- the data -------------------------------------------------------------------------------------

Data = Annotated[
    Path,
    typer.Argument(
        help="svmlight (qid: in the rows, or FILE.query beside it), CSV, TSV or Parquet; .gz too."
    ),
]
Label = Annotated[
    str,
    reading_option(
        help="Label column; if there is none of this name, relevant, target or y.", metavar="COLUMN"
    ),
]
Group = Annotated[
    str | None,
    reading_option(
        help="Column that names the list (user or query) of each row; by default the first of "
        f"{', '.join(USER_COLUMNS)} (or userId, ..).",
        metavar="COLUMN",
    ),
]
Item = Annotated[str | None, reading_option(help=ITEM_HELP, metavar="COLUMN")]
GradesOfLabels = Annotated[
    Any,
    reading_option(
        "--label-gain",
        parser=_grades_of_labels,
        help="Grade of each label of --qrels, where labels are letters or count otherwise.",
        metavar="E=3,S=2,..",
    ),
]
Ignore = Annotated[
    list[str] | None,
    reading_option(
        help="A column that is not a feature; repeat for more. Columns of items (item, docno, "
        "movieid, ..) and other ids (names ending in _id or Id) are always ignored.",
        metavar="COLUMN",
    ),
]
RelevanceThreshold = Annotated[
    float | None,
    reading_option(help="Rows with at least this label are relevant.", metavar="LABEL"),
]
LabelGain = Annotated[
    Any,
    reading_option(
        parser=_label_gain,
        help="Gains of graded labels: linear, exponential, or the gains of the grades 0, 1, 2, .. "
        "separated by commas.",
        metavar="GAINS",
    ),
]
OneList = Annotated[bool, reading_option("--one-list", help="Treat all rows as one list.")]


Pairs = Annotated[
    Any,
    problem_option(
        parser=number_or_name,
        help="Pairs of columns with a weight for each of their cells: auto, where folds choose "
        "none or 20; none; or how many.",
        metavar="NUMBER|auto|none",
    ),
]
Missing = Annotated[
    Any,
    reading_option(
        parser=number_or_name,
        help="What a missing value means. separate: it is not known, and has a weight of its own. "
        "lowest: the source did not return the item; the value becomes the lowest of its column in "
        "the list, with a weight of its own beside. none: it is an error.",
        metavar="separate|lowest|none",
    ),
]
ModelFile = Annotated[
    Path | None, reading_option("--model", help="Score with this model file.", metavar="MODEL")
]

# --- the solver -----------------------------------------------------------------------------------

Tol = Annotated[float, solver_option(help="Stop when the certified relative gap is at most this.")]

# --- what is written ------------------------------------------------------------------------------

Plot = Annotated[
    Path | None,
    output_option(
        help="Save a plot here (.png, .svg or .pdf); needs the extra 'plot'.", metavar="FILE"
    ),
]
Html = Annotated[
    Path | None,
    output_option(help="Write an HTML page here; needs the extra 'report'.", metavar="FILE"),
]
Json = Annotated[
    bool,
    output_option(
        "--json", help="Print one JSON object on standard output, and nothing else there."
    ),
]
