"""What the commands print: results on standard output, everything else on standard error."""

import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from structsvm_papk.cli._shared.recording import add_record


@cache
def notes() -> Console:
    """Console for notes, warnings and progress: one, so that notes stand above what moves."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str, style: str = "dim") -> None:
    """Print one note on standard error."""
    notes().print(text, style=style, markup=False)


def warn(text: str) -> None:
    """Print what should not be overlooked on standard error."""
    note(text, style="yellow")


@contextmanager
def compiling_noted() -> Iterator[None]:
    """Say once, on a terminal, why the first run after an install takes longer."""
    log = logging.getLogger("structsvm_papk._jit")
    before = log.level

    def say(record: logging.LogRecord) -> bool:
        log.removeFilter(say)
        note("compiling kernels, once: the next run has them")
        return True

    if notes().is_terminal:
        log.addFilter(say)
        log.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeFilter(say)
        log.setLevel(before)


def answer(as_json: bool, content: dict[str, Any], show: Callable[..., None], *shown: Any) -> None:
    """Print a result: as one JSON object, or by ``show(*shown)``."""
    if as_json:
        print_json(content)
    else:
        show(*shown)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object."""
    sys.stdout.write(as_json(content) + "\n")


def as_json(content: dict[str, Any]) -> str:
    """A JSON object with the `run` that made it; numbers that JSON does not know become null."""
    return json.dumps(_plain(add_record(content)), allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str] | None]) -> None:
    """Print a table on standard output, never narrower than what it holds.

    Names of right-aligned columns begin with ``>``; cells may hold markup; a row that is None is a
    line between rows.
    """
    print_rich(table_of(title, columns, rows))


def table_of(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str] | None], **style: Any
) -> Table:
    """The table that `print_table` prints."""
    table = Table(title=title, title_justify="left", **style)
    for name in columns:
        table.add_column(
            name.removeprefix(">"), justify="right" if name[:1] == ">" else "left", no_wrap=True
        )
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*row)
    return table


def print_rich(table: Table) -> None:
    """Print a table that `table_of` made."""
    screen = Console(highlight=False)
    screen.width = max(screen.width, needed_width(screen, table))
    screen.print(table)


def needed_width(screen: Console, table: Table) -> int:
    """Columns of a terminal that a table fills."""
    return screen.measure(table, options=screen.options.update(width=1000)).maximum
