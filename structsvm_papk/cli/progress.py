"""A live line while a solver works; silent where standard error is no terminal."""

from contextlib import contextmanager

from structsvm_papk.cli import console


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
            return lambda progress: status.update(line(solver, surrogate, progress))

        yield watch


def line(solver, surrogate, progress):
    """One line: where the run stands."""
    return (
        f"{surrogate} [bold]{solver}[/bold]  iteration {progress.iteration}"
        f"  objective {progress.objective:.8f}  lower bound {progress.lower_bound:.8f}"
        f"  gap {progress.gap:.1e}  passes {progress.data_passes:g}  {progress.seconds:.1f} s"
    )
