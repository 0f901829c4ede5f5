"""What moves on standard error while a command works.

Where that is no terminal, bars say every ten seconds where they stand; the rest is silent.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from rich.progress import Progress

from structsvm_papk.cli._shared import console

Watch = Callable[[str, str], Any]
_EVERY = 10.0  # seconds


@contextmanager
def bar(description: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Yield ``update(advance=.., completed=.., total=.., description=..)`` of a progress bar."""
    screen = console.notes()
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
            console.note(f"{state['description']}: {done} after {now - begun:.0f} s")

    return update


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
