"""What the commands of `paper` and `studies` share: options, tables, JSON, progress, errors."""

import json
import math
import platform
import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress
from rich.table import Table

from benchmarks.common.cells import Cells
from structsvm_papk import __version__
from structsvm_papk.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint", metavar="DIR", help="Keep finished parts here; a new run goes on from them."
    ),
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Save a plot here (.png, .svg or .pdf).")
]
K = Annotated[int, typer.Option("--k", help="Number of items that a user is shown.")]
Seed = Annotated[int, typer.Option(help="Seed of the first draw.")]
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "cvxpy", "piqp", "lightgbm")


def app_of(help):
    """An application for `main`."""
    return typer.Typer(
        help=help, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
    )


def main(app, program):
    """Run a command line; wrong input is one line on standard error and exit status 2."""
    try:
        app(prog_name=f"python -m {program}")
    except InputError as error:
        note(f"Error: {error}", "red")
        sys.exit(2)


def cells(folder, study):
    """Where a study keeps its finished parts; nowhere without a folder."""
    return Cells(folder, {"study": study, "version": __version__})


def note(text, style="dim"):
    """Print one note on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(text, style=style, markup=False)


def answer(as_json, content, show, *shown):
    """Print a result: as one JSON object that says what made it, or by ``show(*shown)``."""
    if as_json:
        print(json.dumps(_plain({**content, "run": _record()}), allow_nan=False))
    else:
        show(*shown)


def print_rows(title, rows, without=()):
    """Print a table with a line for each dict, but for some names; numbers stand to the right."""
    names = [*dict.fromkeys(name for row in rows for name in row if name not in without)]
    table = Table(title=title, title_justify="left")
    for name in names:
        is_number = any(isinstance(row.get(name), int | float) for row in rows)
        side = "right" if is_number else "left"
        table.add_column(name.replace("_", " "), justify=side, no_wrap=True)
    for row in rows:
        table.add_row(*(_text(row.get(name)) for name in names))
    screen = Console(highlight=False)
    wide = screen.options.update(width=1000)  # never narrower than what it holds
    screen.width = max(screen.width, screen.measure(table, options=wide).maximum)
    screen.print(table)


def _text(value):
    value = _plain(value)
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else escape(str(value))


def _record():
    versions = {"structsvm-papk": __version__}
    for name in _PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    date = datetime.now(UTC).isoformat(timespec="seconds")
    where = {"python": platform.python_version(), "platform": platform.platform()}
    return {"arguments": sys.argv[1:], "date": date, **where, "versions": versions}


def _plain(value):
    """Of what JSON can say; numbers that it cannot become null."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value


def save_plot(path, figure):
    """Write the figure that a function makes, where a plot is wanted."""
    if path is not None:
        figure().savefig(path, dpi=130)
        note(f"plot written to {path}")


@contextmanager
def progress(total=None):
    """Yield ``step(text, done=None, total=None)``, shown where standard error is a terminal."""
    screen = Console(stderr=True)
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as shown:
        task = shown.add_task("starting", total=total)

        def step(text, done=None, total=None):
            one = {"advance": 1} if done is None else {"completed": done}
            total = {} if total is None else {"total": total}
            shown.update(task, description=text, **one, **total)

        yield step
