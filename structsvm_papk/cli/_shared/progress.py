"""What moves on standard error while a command works; silent where that is no terminal."""

from contextlib import contextmanager
from functools import partial

from rich.progress import Progress

from structsvm_papk.cli._shared import console


@contextmanager
def bar(description, total=None):
    """Yield ``update(advance=.., completed=.., total=.., description=..)`` of a progress bar."""
    screen = console.notes()
    with Progress(console=screen, transient=True, disable=not screen.is_terminal) as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


@contextmanager
def line(title):
    """Yield ``say(text)``, which shows one live line."""
    screen = console.notes()
    if not screen.is_terminal:
        yield lambda text: None
        return
    with screen.status(title) as status:
        yield status.update


@contextmanager
def live():
    """Yield ``watch(solver, surrogate)``, which returns the callback of one run.

    Where standard error is no terminal nothing is shown and the callbacks are None.
    """
    screen = console.notes()
    if not screen.is_terminal:
        yield lambda solver, surrogate: None
        return
    with screen.status("starting") as status:

        def watch(solver, surrogate):
            return lambda progress: status.update(lines(solver, surrogate, progress))

        yield watch


def lines(solver, surrogate, progress):
    """Where the run stands, in two lines that fit 80 columns."""
    return (
        f"{surrogate} {solver}  iteration {progress.iteration}"
        f"  passes {progress.data_passes}  {progress.seconds:.1f} s\n"
        f"  objective {progress.objective:.8f}  lower bound {progress.lower_bound:.8f}"
        f"  gap {progress.gap:.1e}"
    )
