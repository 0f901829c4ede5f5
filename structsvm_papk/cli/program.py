"""All commands in the order of use, how each is called, and what is said where one fails."""

import errno
import io
import mmap
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from structsvm_papk._version import __version__, commit
from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.flags import in_flags
from structsvm_papk.cli._shared.records import with_records
from structsvm_papk.errors import InputError, plain_interrupts

WRONG_INPUT = 2
OWN_ERROR = 3
INTERRUPTED = 128 + signal.SIGINT
_COMMAND_BYTES = 800_000_000  # beside the interpreter: libraries and kernels of a small fit
_THREAD_BYTES = 80_000_000  # stack and buffers of a thread of the BLAS libraries
_LESS = "take fewer rows or columns, or read them with --memory-budget"
# of click, or of the copy of it that newer releases of typer have
_ClickException: type[Any] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_PANELS = {
    "Train and use a ranker": {
        "demo": "Solve four surrogates on example data; compare with descent.",
        "example-data": "Write train.csv, new.csv and liked.csv: candidates with four scores each.",
        "fit": "Train a ranker and write a model file.",
        "fuse": "Combine the ranked lists of retrievers or recommenders.",
        "predict": "Score rows with a model, or print the top of each list.",
    },
    "Measure": {
        "evaluate": "Compute ranking metrics with intervals; --compare: two rankers.",
        "compare": "Compare solvers on a file (two rankers: evaluate --compare).",
        "bound": "Bound the risk in the population by the risk on a sample.",
    },
    "Understand": {
        "diagnose": "Check whether w = 0, which ranks nothing, is optimal.",
        "margins": "Check margin conditions for scores and for linear scorers.",
        "verify": "Search for counterexamples to the claims of the paper.",
    },
}


class Commands(TyperGroup):
    """A group that imports a command when it is asked for."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None."""
        if cmd_name not in self.commands:
            return None
        name = cmd_name.replace("-", "_")
        _refuse_little_memory()
        command = getattr(import_module(f"structsvm_papk.cli.{name}"), name)
        if not isinstance(command, typer.Typer):  # a function, and not commands of its own
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(cmd_name)(with_records(command))
            command = alone
        return typer.main.get_command(command)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        TyperGroup(
            name=self.name, commands=dict(self.commands), help=self.help, params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)  # fmt: skip


app = typer.Typer(
    cls=Commands,
    help="Train and evaluate rankers for the top k places of a list, with certificates.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip
for panel, commands in _PANELS.items():
    for name, sentence in commands.items():  # what they do is imported when they are called
        app.command(name, help=sentence, rich_help_panel=panel)(lambda: None)


def _refuse_little_memory() -> None:
    """Raise `MemoryError` where a command would not have the address space for its libraries.

    With less of it (``ulimit -v``) OpenBLAS aborts the process, or waits for memory without end,
    and then no signal is answered.
    """
    n_threads = os.cpu_count() or 1
    with suppress(ValueError):
        n_threads = min(n_threads, int(os.environ.get("OMP_NUM_THREADS", n_threads)))
    needed = _COMMAND_BYTES + n_threads * _THREAD_BYTES
    try:
        mmap.mmap(-1, needed).close()  # reserved, not used
    except OSError:
        raise MemoryError(
            f"a command needs {needed / 1e6:.0f} MB of address space; raise the limit (ulimit -v)"
        ) from None


def _print_version(wanted: bool) -> None:
    if wanted:
        known = commit()
        print(__version__ if known is None else f"{__version__} (commit {known})")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print version and commit.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Exit status of a command line; what went wrong is one line on standard error."""
    console.answered.set(False)
    console.run.set(console.run_of(arguments) if "--json" in arguments else None)
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # while another end was being reported
        return _failed(arguments, "interrupted", INTERRUPTED)


def _run(arguments: list[str]) -> int:
    if sys.stdout is None:  # closed by whoever started the program
        sys.stdout = _ClosedOutput()
    try:
        with (
            _standard_output(),
            _termination_as_interrupt(),
            plain_interrupts(),
            console.warnings_as_ours(),
        ):
            status = app(args=arguments, prog_name="structsvm-papk", standalone_mode=False)
            sys.stdout.flush()
    except InputError as error:
        return _failed(arguments, in_flags(str(error)), WRONG_INPUT)
    except _ClickException as error:
        return _failed(arguments, error.format_message(), WRONG_INPUT)
    except MemoryError as error:
        return _failed(arguments, f"not enough memory: {str(error) or _LESS}", WRONG_INPUT)
    except UnicodeEncodeError as error:
        text = error.object[error.start : error.end]
        what_to_do = "set PYTHONIOENCODING=utf-8, or write to a file"
        if error.encoding == "utf-8":  # a name of a file that is no text
            what_to_do = "rename the file"
        said = f"{text!a} cannot be written in {error.encoding}: {what_to_do}"
        return _failed(arguments, said, WRONG_INPUT)
    except (BrokenPipeError, SystemExit):  # typer and rich make the latter of the former
        _give_up_stdout()
        return WRONG_INPUT
    except OSError as error:
        if error.errno == errno.ENOMEM:
            return _failed(arguments, f"not enough memory: {_LESS}", WRONG_INPUT)
        if error.filename is not None:
            return _failed(arguments, f"{error.filename}: {error.strerror}", WRONG_INPUT)
        _give_up_stdout()  # a write that failed, and the next one would too
        return _failed(
            arguments, f"cannot write the output: {error.strerror or error}", WRONG_INPUT
        )
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
    return status or 0


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


@contextmanager
def _standard_output() -> Iterator[None]:
    """Standard output that writes all or fails, and shows what its encoding lacks.

    An unbuffered one (PYTHONUNBUFFERED) would write a part of a text where the disk is full, and
    not say so. What is data and no message goes by `console.write_data`, which loses nothing.
    """
    stream = sys.stdout
    if not isinstance(stream, io.TextIOWrapper):
        yield
        return
    errors = stream.errors
    if errors == "strict":
        stream.reconfigure(errors="backslashreplace")
    if isinstance(stream.buffer, io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115
            os.dup(stream.fileno()), "w", 1, encoding=stream.encoding, errors=stream.errors
        )
    try:
        yield
    finally:
        if sys.stdout is not stream:
            whole = sys.stdout
            sys.stdout = stream
            with suppress(OSError):  # said before
                whole.close()
        stream.reconfigure(errors=errors)


class _ClosedOutput(io.TextIOBase):
    """A standard output that is not there: work is done, but nothing passes for printed."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "standard output is closed")


def _give_up_stdout() -> None:
    """What is still in the buffer would fail again at exit."""
    if isinstance(sys.stdout, _ClosedOutput):
        sys.stdout = io.StringIO()
        return
    console.give_up(sys.stdout)


def _failed(arguments: list[str], message: str, status: int) -> int:
    if message:  # nothing is wrong with a command line that asks for nothing but help
        console.note(f"Error: {message}", style="red")
    if "--json" in arguments and not console.answered.get():
        console.run.set(None)
        try:
            console.print_json({"error": message})
            sys.stdout.flush()
        except OSError:
            _give_up_stdout()
    return status
