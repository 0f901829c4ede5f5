"""The command ``structsvm-papk``: parses, calls, prints.

Exit status: 0 done, 1 a solver did not reach its tolerance, 2 wrong input, 3 an error of the
program itself, 130 interrupted.
"""

import os
import sys

import typer

from structsvm_papk import __version__
from structsvm_papk.cli import (
    compare,
    console,
    demo,
    evaluate,
    fit,
    nonconvex,
    predict,
    recording,
    reproduce,
    rerun,
    theory,
)
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
for group in (demo, compare, fit, predict, evaluate, nonconvex, theory, reproduce, rerun):
    group.register(app)


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
    try:
        status = app(args=arguments, prog_name="structsvm-papk", standalone_mode=False)
        sys.stdout.flush()
    except (InputError, _ClickException) as error:
        return _failed(arguments, _text(error), WRONG_INPUT)
    except MemoryError as error:
        return _failed(arguments, f"not enough memory: {error}", WRONG_INPUT)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OWN_ERROR
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


def _text(error):
    return error.format_message() if isinstance(error, _ClickException) else str(error)


def _failed(arguments, message, status):
    console.note(f"Error: {message}", style="red")
    if "--json" in arguments:
        console.print_json({"error": message})
    return status
