"""Two live lines while a solver works; silent where standard error is no terminal."""

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
