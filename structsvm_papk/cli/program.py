"""All commands in the order of use, and what is said where one of them fails."""

import errno
import io
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import typer

from structsvm_papk._version import __version__
from structsvm_papk.cli._shared import console, recording
from structsvm_papk.errors import InputError, plain_interrupts

WRONG_INPUT, OWN_ERROR, INTERRUPTED = 2, 3, 128 + signal.SIGINT
_ClickException: type[Any] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)

app = recording.app_of(
    "Train and evaluate rankers for the pAp@k metric, with certificates.",
    {
        "Train and use a ranker": {
            "demo": "Rank the breast-cancer data of scikit-learn as one list, malignant first.",
            "example-data": "Write train.csv and new.csv: candidates with four scores each.",
            "tune": "Choose surrogate, depth and alpha on held-out users, and train with them.",
            "fit": "Train a ranker and write a model file.",
            "predict": "Score every row of a file with a model, or list the best of each user.",
        },
        "Measure": {
            "evaluate": "Ranking metrics per user, their means with intervals, and comparisons.",
            "compare": "Cutting plane against subgradient descent with the same data passes.",
            "bound": "How far can the risk on a sample be from the population's?",
        },
        "Understand": {
            "diagnose": "Is w = 0 optimal, so that a surrogate says nothing?",
            "margins": "Which margin conditions hold for scores, and for any linear scorer?",
            "verify": "Search the published claims for counterexamples.",
        },
    },
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Exit status of a command line; what went wrong is one line on standard error."""
    if sys.stdout is None:  # closed by whoever started the program
        sys.stdout = _ClosedOutput()
    try:
        with _termination_as_interrupt(), plain_interrupts(), console.compiling_noted():
            status = app(args=arguments, prog_name="structsvm-papk", standalone_mode=False)
        sys.stdout.flush()
    except InputError as error:
        return _failed(arguments, str(error), WRONG_INPUT)
    except _ClickException as error:
        return _failed(arguments, error.format_message(), WRONG_INPUT)
    except MemoryError as error:
        return _failed(arguments, f"not enough memory: {error}", WRONG_INPUT)
    except BrokenPipeError:
        _give_up_stdout()
        return OWN_ERROR
    except OSError as error:
        if error.filename is not None:
            return _failed(arguments, f"{error.filename}: {error.strerror}", WRONG_INPUT)
        _give_up_stdout()  # a write that failed, and the next one would too
        return _failed(arguments, f"cannot write the output: {error.strerror}", WRONG_INPUT)
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
def _termination_as_interrupt() -> Iterator[None]:
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

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _give_up_stdout() -> None:
    """What is still in the buffer would fail again at exit."""
    if isinstance(sys.stdout, _ClosedOutput):
        sys.stdout = io.StringIO()
        return
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _failed(arguments: list[str], message: str, status: int) -> int:
    console.note(f"Error: {message}", style="red")
    if "--json" in arguments:
        console.print_json({"error": message})
    return status
