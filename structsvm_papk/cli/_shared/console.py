"""What the commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from structsvm_papk._version import commit, versions
from structsvm_papk.cli._shared.flags import in_flags

if TYPE_CHECKING:
    from structsvm_papk.plots.page import Section

run: ContextVar[dict[str, Any] | None] = ContextVar("run", default=None)
answered: ContextVar[bool] = ContextVar("answered", default=False)  # a JSON object is printed


@cache
def notes() -> Console:
    """Console for notes, warnings and progress: one, so that notes stand above what moves."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def note(text: str, style: str = "dim") -> None:
    """Print one note on standard error; where that is full, work goes on without notes."""
    try:
        notes().print(text, style=style, markup=False)
    except OSError:
        give_up(sys.stderr)


def give_up(stream: Any) -> None:
    """What is still in the buffer of a stream would fail again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def warnings_as_ours() -> Iterator[None]:
    """Show warnings of Python, such as of what is read, as the commands' own."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(f"warning: {in_flags(str(message))}")
        yield


def warn(text: str) -> None:
    """Print what should not be overlooked on standard error."""
    note(text, style="yellow")


def answer(as_json: bool, content: dict[str, Any], show: Callable[..., None], *shown: Any) -> None:
    """Print a result: as one JSON object, or by ``show(*shown)``."""
    if as_json:
        print_json(content)
    else:
        show(*shown)


def print_json(content: dict[str, Any]) -> None:
    """Print a JSON object with the `run` that made it; numbers that JSON cannot say become null."""
    record = run.get()
    if record is not None:
        content = {**content, "run": record}
    text = json.dumps(content, default=_plain)
    known = json.loads(text, parse_constant=lambda infinite_or_nan: None)
    sys.stdout.write(json.dumps(known) + "\n")
    answered.set(True)


def write_data(text: str) -> None:
    """Print data on standard output; `UnicodeEncodeError` where its encoding would change them."""
    text.encode(sys.stdout.encoding or "utf-8")
    sys.stdout.write(text)


def run_of(arguments: Sequence[str]) -> dict[str, Any]:
    """The `run` of a JSON output: what was run, where, when and with what."""
    return {
        "command": ["structsvm-papk", *arguments],
        "directory": os.getcwd(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "versions": versions(),
        "commit": commit(),
    }


def _plain(value: Any) -> Any:
    """A number of numpy as one of Python; of anything else its text."""
    return value.item() if hasattr(value, "item") else str(value)


def known(value: float, form: str) -> str:
    """A number in a form of `format`; a dash for one that is not known."""
    return f"{value:{form}}" if math.isfinite(value) else "-"


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str] | None], **style: Any
) -> None:
    """Print a table on standard output, never narrower than what it holds.

    Names of right-aligned columns begin with ``>``; cells may hold markup; a row that is None is a
    line between rows.
    """
    table = Table(title=title, title_justify="left", **style)
    screen = Console(highlight=False)
    for name in columns:
        side: Any = "right" if name.startswith(">") else "left"
        table.add_column(name.removeprefix(">"), justify=side, no_wrap=True)
    for row in rows:
        if row is None:
            table.add_section()
        else:
            table.add_row(*row)
    needed = screen.measure(table, options=screen.options.update(width=1000)).maximum
    screen.width = max(screen.width, needed)
    screen.print(table)


def print_section(section: Section) -> None:
    """Print the table of a section below its sentence, without drawings of intervals."""
    print_text(f"{section.heading}. {section.text}".rstrip())
    section = section.placed()
    names = []
    shown = []
    for column, cells in zip(section.columns, zip(*section.rows, strict=True), strict=True):
        texts = [escape(str(cell or "")) for cell in cells]
        if any(texts):
            names.append(f">{column.name}" if column.numbers else column.name)
            shown.append(texts)
    print_table("", names, zip(*shown, strict=True), box=None, padding=(0, 1, 0, 0))
    print()


def print_text(text: str) -> None:
    """Print sentences on standard output, in lines of 79 characters."""
    print(textwrap.fill(text, 79))


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``update(advance=.., completed=.., total=.., description=..)`` of a progress bar.

    Where standard error is no terminal nothing is shown.
    """
    from rich.progress import Progress  # not of every command

    screen = notes()
    if not screen.is_terminal:
        yield lambda **changes: None
        return
    with Progress(console=screen, transient=True) as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


@contextmanager
def live() -> Iterator[Callable[[str, str], Any]]:
    """Yield ``watch(solver, surrogate)``, which returns the callback of one run.

    Where standard error is no terminal nothing is shown and the callbacks are None.
    """
    screen = notes()
    if not screen.is_terminal:
        yield lambda solver, surrogate: None
        return
    with screen.status("starting") as status:

        def watch(solver: str, surrogate: str) -> Callable[[Any], None]:
            def callback(progress: Any) -> None:
                status.update(lines(solver, surrogate, progress))

            return callback

        yield watch


def lines(solver: str, surrogate: str, progress: Any) -> str:
    """Where the run stands, in two lines that fit 80 columns; what is not known yet is left out."""
    values = []
    if math.isfinite(progress.objective):
        values.append(f"objective {progress.objective:.8f}")
    if math.isfinite(progress.lower_bound):
        values.append(f"lower bound {progress.lower_bound:.8f}")
    if math.isfinite(progress.gap):
        values.append(f"gap {progress.gap:.1e}")
    return (
        f"{surrogate} {solver}  iteration {progress.iteration}"
        f"  passes {progress.data_passes}  {progress.seconds:.1f} s\n  {'  '.join(values)}"
    )
