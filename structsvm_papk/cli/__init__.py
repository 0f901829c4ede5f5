"""The command ``structsvm-papk``: parses, calls, prints.

Exit status: 0 done, 1 a solver did not reach its tolerance, 2 wrong input, 3 an error of the
program itself, 130 interrupted by Ctrl-C or SIGTERM.
"""

import errno
import io
import os
import signal
import sys
import threading
from contextlib import contextmanager, suppress

import typer

from structsvm_papk._version import __version__
from structsvm_papk.cli import (
    bound,
    compare,
    demo,
    diagnose,
    evaluate,
    fit,
    margins,
    predict,
    reproduce,
    rerun,
    verify,
)
from structsvm_papk.cli._shared import console, recording
from structsvm_papk.errors import InputError

NOT_CONVERGED, WRONG_INPUT, OWN_ERROR, INTERRUPTED = 1, 2, 3, 130
_ClickException = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")

app = recording.App(
    cls=recording.RecordedGroup,
    help="Train and evaluate rankers for the pAp@k metric, with certificates.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for _module in (
    *(demo, fit, predict, evaluate, compare, diagnose, verify, margins, bound),
    *(reproduce, rerun),
):
    _module.register(app)


def _print_version(wanted: bool):
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
):
    pass


def main(arguments=None):
    """Run the command line and return the exit status; no traceback reaches the user."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if sys.stdout is None:  # closed by whoever started the program
        sys.stdout = _ClosedOutput()
    try:
        with _termination_as_interrupt():
            status = app(args=arguments, prog_name="structsvm-papk", standalone_mode=False)
        sys.stdout.flush()
    except (InputError, _ClickException) as error:
        return _failed(arguments, _text(error), WRONG_INPUT)
    except MemoryError as error:
        return _failed(arguments, f"not enough memory: {error}", WRONG_INPUT)
    except BrokenPipeError:
        _give_up_stdout()
        return OWN_ERROR
    except OSError as error:
        if error.filename is None:  # a write that failed, and the next one would too
            _give_up_stdout()
        return _failed(arguments, _system_error(error), WRONG_INPUT)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        if "STRUCTSVM_PAPK_TRACEBACK" in os.environ:
            raise
        return _failed(
            arguments,
            f"internal error: {type(error).__name__}: {error} (set STRUCTSVM_PAPK_TRACEBACK=1 to "
            "see where)",
            OWN_ERROR,
        )
    if status == INTERRUPTED:
        return _failed(arguments, "interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


@contextmanager
def _termination_as_interrupt():
    """SIGTERM, as from a batch system whose time is up, ends a run as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class _ClosedOutput(io.TextIOBase):
    """A standard output that is not there: work is done, but nothing passes for printed."""

    def write(self, text):
        raise OSError(errno.EBADF, "standard output is closed")


def _give_up_stdout():
    """What is still in the buffer would fail again at exit."""
    if isinstance(sys.stdout, _ClosedOutput):
        sys.stdout = io.StringIO()
        return
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _system_error(error):
    if error.filename is None:
        return f"cannot write the output: {error.strerror}"
    return f"{error.filename}: {error.strerror}"


def _text(error):
    return error.format_message() if isinstance(error, _ClickException) else str(error)


def _failed(arguments, message, status):
    console.note(f"Error: {message}", style="red")
    if "--json" in arguments:
        console.print_json({"error": message})
    return status
