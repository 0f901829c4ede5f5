"""What the commands print: results on standard output, everything else on standard error."""

import json
import logging
import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from structsvm_papk.cli._shared.recording import add_record

Watch = Callable[[str, str], Any]
_EVERY = 10.0  # seconds


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
    """Print a JSON object with the `run` that made it; numbers that JSON cannot say become null."""
    sys.stdout.write(json.dumps(_plain(add_record(content)), allow_nan=False) + "\n")


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


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``update(advance=.., completed=.., total=.., description=..)`` of a progress bar."""
    from rich.progress import Progress  # not of every command

    screen = notes()
    if not screen.is_terminal:
        yield _reporter(description, total)
        return
    with Progress(console=screen, transient=True) as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


def _reporter(description: str, total: int | None) -> Callable[..., None]:
    """A bar's update, as a line from time to time."""
    state: dict[str, Any] = {"description": description, "total": total, "completed": 0}
    begun = said = time.monotonic()

    def update(advance: float = 0, **changes: Any) -> None:
        nonlocal said
        state.update(changes)
        state["completed"] += advance
        if (now := time.monotonic()) - said >= _EVERY:
            said, total = now, state["total"]
            done = f"{state['completed']:g}" + (f" of {total:g}" if total else "")
            note(f"{state['description']}: {done} after {now - begun:.0f} s")

    return update


@contextmanager
def live() -> Iterator[Watch]:
    """Yield ``watch(solver, surrogate)``, which returns the callback of one run.

    Where standard error is no terminal nothing is shown and the callbacks are None.
    """
    screen = notes()
    if not screen.is_terminal:
        yield lambda solver, surrogate: None
        return
    with screen.status("starting") as status:
        yield lambda solver, surrogate: lambda at: status.update(lines(solver, surrogate, at))


def lines(solver: str, surrogate: str, at: Any) -> str:
    """Where the run stands, in two lines that fit 80 columns; what is not known yet is left out."""
    known = {
        "objective": (at.objective, ".8f"),
        "lower bound": (at.lower_bound, ".8f"),
        "gap": (at.gap, ".1e"),
    }
    values = [f"{name} {v:{form}}" for name, (v, form) in known.items() if math.isfinite(v)]
    return (
        f"{surrogate} {solver}  iteration {at.iteration}"
        f"  passes {at.data_passes}  {at.seconds:.1f} s\n  {'  '.join(values)}"
    )
