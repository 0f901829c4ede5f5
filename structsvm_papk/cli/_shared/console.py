"""What the commands print: results on standard output, everything else on standard error."""

import json
import math
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from structsvm_papk.cli._shared.recording import add_record


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
    print_rich(table_of(title, columns, rows))


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


def print_rich(table):
    console = Console(highlight=False)
    console.width = max(console.width, needed_width(console, table))
    console.print(table)


def needed_width(console, table):
    return console.measure(table, options=console.options.update(width=1000)).maximum
