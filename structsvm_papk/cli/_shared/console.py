"""What the commands print: results on standard output, everything else on standard error."""

import json
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from structsvm_papk.cli._shared.recording import add_record
from structsvm_papk.solvers.result import Status


def notes():
    """Console for notes, warnings and progress."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text, style="dim"):
    """Print one note on standard error."""
    notes().print(text, style=style, markup=False)


def print_json(content):
    """Print one JSON object."""
    sys.stdout.write(as_json(content) + "\n")


def as_json(content):
    """A JSON object with the `run` that made it; numbers that JSON does not know become null."""
    return json.dumps(_plain(add_record(content)), allow_nan=False)


def _plain(value):
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(title, columns, rows):
    """Print a table on standard output, never narrower than what it holds.

    Parameters
    ----------
    title : str
    columns : sequence of str
        Names; those of right-aligned columns begin with ``>``, as in format strings.
    rows : iterable of sequence of str
        Cells, which may hold markup; None is a line between rows.
    """
    _print(table_of(title, columns, rows))


def table_of(title, columns, rows, **style):
    """The table that `print_table` prints."""
    table = Table(title=title, title_justify="left", **style)
    for name in columns:
        justify = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=justify, no_wrap=True)
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*row)
    return table


def _print(table):
    console = Console(highlight=False)
    console.width = max(console.width, _needed_width(console, table))
    console.print(table)


def _needed_width(console, table):
    return console.measure(table, options=console.options.update(width=1000)).maximum


def print_runs(runs, title):
    """Print the table of runs, in its compact form where the terminal is narrow."""
    table, console = table_of_runs(runs, title), Console()
    if console.is_terminal and _needed_width(console, table) > console.width:
        table = table_of_runs(runs, title, compact=True)
    _print(table)


def table_of_runs(runs, title, compact=False):
    """Objective, bound, gap, effort, metric and status of each run.

    The compact form fits 80 columns: fewer digits, no status.
    """
    places = [place for place in ("train", "test") if place in runs[0].pap_at_k]
    if compact:
        numbers, end = ["objective", "bound", "gap", "passes", "s", *places], []
        style = {"box": None, "padding": (0, 1, 0, 0)}
    else:
        numbers = ["objective", "lower bound", "gap", "passes", "seconds"]
        numbers += [f"pAp@{runs[0].k} {place}" for place in places]
        end, style = ["status"], {}
    rows = []
    for before, run in zip([None, *runs], runs, strict=False):
        if before and before.surrogate != run.surrogate and not compact:
            rows.append(None)
        rows.append(_row(run, places, compact))
    columns = ["surrogate", "solver", *(f">{name}" for name in numbers), *end]
    return table_of(title, columns, rows, **style)


def _row(run, places, compact):
    result = run.result
    number = "{:.6f}" if compact else "{:.8f}"
    cells = [
        run.surrogate,
        _solver(run, compact),
        number.format(result.objective),
        _known(result.lower_bound, number),
        _known(result.gap, "{:.0e}" if compact else "{:.1e}"),
        f"{run.data_passes:g}",
        f"{run.seconds:.2f}",
        *(_known(run.pap_at_k[place], "{:.4f}") for place in places),
    ]
    return cells if compact else [*cells, str(result.status).replace("_", " ")]


def _solver(run, compact):
    name = run.solver.replace("_", " ")
    if "eta" not in run.settings:
        return name
    eta = f"{run.settings['eta']:g}"
    return f"descent {eta}" if compact else f"{name} (eta {eta})"


def _known(value, form):
    return form.format(value) if math.isfinite(value) else "-"


def explain(run):
    """Say on standard error what a status means, where it needs saying."""
    if run.result.status not in (Status.CONVERGED, Status.FINISHED):
        note(f"{run.surrogate}, {run.solver}: {run.result.message}", style="yellow")
    elif run.result.notes:
        note(f"{run.surrogate}, {run.solver}: {' '.join(run.result.notes)}")
