"""What moves on standard error while a command works; silent where that is no terminal."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.progress import Progress

from structsvm_papk.cli._shared import console

Watch = Callable[[str, str], Any]


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``update(advance=.., completed=.., total=.., description=..)`` of a progress bar."""
    screen = console.notes()
    if not screen.is_terminal:
        yield lambda **changes: None
        return
    with Progress(console=screen, transient=True) as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


@contextmanager
def line(title: str) -> Iterator[Callable[[str], None]]:
    """Yield ``say(text)``, which shows one live line."""
    screen = console.notes()
    if not screen.is_terminal:
        yield lambda text: None
        return
    with screen.status(title) as status:
        yield status.update


@contextmanager
def live() -> Iterator[Watch]:
    """Yield ``watch(solver, surrogate)``, which returns the callback of one run.

    Where standard error is no terminal nothing is shown and the callbacks are None.
    """
    if not console.notes().is_terminal:
        yield lambda solver, surrogate: None
        return
    with line("starting") as say:
        yield lambda solver, surrogate: lambda at: say(lines(solver, surrogate, at))


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
