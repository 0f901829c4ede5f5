"""All commands in the order of use, how each is called, and what is said where one fails."""

import errno
import functools
import inspect
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from structsvm_papk._version import __version__
from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.declared import Declared, Use, declared
from structsvm_papk.errors import InputError, plain_interrupts

WRONG_INPUT = 2
OWN_ERROR = 3
INTERRUPTED = 128 + signal.SIGINT
# of click, or of the copy of it that newer releases of typer have
_ClickException: type[Any] = next(
    base for base in typer.BadParameter.__mro__ if base.__name__ == "ClickException"
)

_PANELS = {
    "Train and use a ranker": {
        "demo": "Rank the breast-cancer data of scikit-learn as one list, malignant first.",
        "example-data": "Write train.csv, new.csv and liked.csv: candidates with four scores each.",
        "tune": "Choose surrogate, depth and alpha on held-out users, and train with them.",
        "fit": "Train a ranker and write a model file.",
        "fuse": "Put the lists of several retrievers or recommenders into one.",
        "predict": "Score rows with a model, or print the top of each list (user or query).",
    },
    "Measure": {
        "evaluate": "Ranking metrics per list (user or query), means with intervals, comparisons.",
        "compare": "Solvers side by side: cutting plane and subgradient descent, same data passes.",
        "bound": "How far can the risk on a sample be from the population's?",
    },
    "Understand": {
        "diagnose": "Is w = 0 optimal, so that a surrogate says nothing?",
        "margins": "Which margin conditions hold for scores, and for any linear scorer?",
        "verify": "Search the published claims for counterexamples.",
    },
}


class Commands(TyperGroup):
    """A group that imports a command when it is asked for, and keeps the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments for the record."""
        ctx.meta.setdefault("arguments", list(args))
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None."""
        if cmd_name not in self.commands:
            return None
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name, cls=RecordedCommand)(grouped(self.function(cmd_name)))
        return typer.main.get_command(alone)

    @staticmethod
    def function(cmd_name: str) -> Callable[..., Any]:
        """What a command does: a function of the same name in a file of the same name."""
        name = cmd_name.replace("-", "_")
        function: Callable[..., Any] = getattr(import_module(f"structsvm_papk.cli.{name}"), name)
        return function

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        TyperGroup(
            name=self.name, commands=dict(self.commands), help=self.help, params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)  # fmt: skip


class RecordedCommand(TyperCommand):
    """A command that notes how it was called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Let an option that is described as ``NAME ..`` take all words up to the next option."""
        flags: set[str] = set()
        for parameter in self.params:
            if str(parameter.metavar or "").endswith(" .."):
                flags |= {flag for flag in parameter.opts if flag.startswith("-")}
        spread: list[str] = []  # with the flag before each of its words, as typer wants it
        flag = None
        for word in args:
            if word.startswith("-"):
                flag = word if word in flags else None
            elif flag is not None and spread[-1] != flag:
                spread.append(flag)
            spread.append(word)
        return super().parse_args(ctx, spread)

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its record at hand."""
        as_json = ctx.params.get("as_json")
        arguments = ctx.meta.get("arguments", [])
        token = console.run.set(console.run_of(arguments) if as_json else None)
        try:
            return super().invoke(ctx)
        finally:
            console.run.reset(token)


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as the command line shows it: each group's fields are options in its place.

    Outputs that cannot be written, or would destroy an input, are refused before any work starts.
    """
    options = declared(command)
    signature = inspect.signature(command, eval_str=True)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}

    def run(**given: Any) -> Any:
        for name, option in options.items():
            if option.takes_path and isinstance(given[name], str):  # in older releases of typer
                given[name] = Path(given[name])
        _check_paths(options, given)
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    shown = [_shown(option) for option in options.values()]
    functools.update_wrapper(run, command)
    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _shown(option: Declared) -> inspect.Parameter:
    default = inspect.Parameter.empty if option.default is MISSING else option.default
    annotation: Any = Annotated[option.kind, option.info]
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def _check_paths(options: Mapping[str, Declared], given: Mapping[str, Any]) -> None:
    """Refuse outputs that cannot be written, and those that are read as well."""
    from structsvm_papk.files.atomic import check_apart, check_writable

    paths: dict[Use, list[Path]] = {use: [] for use in Use}
    for name, option in options.items():
        values = given[name] if isinstance(given[name], list | tuple) else [given[name]]
        paths[option.use] += [value for value in values if isinstance(value, Path)]
    outputs = [*paths[Use.WRITES], *paths[Use.DRAWS], *paths[Use.KEEPS]]
    check_apart(outputs, _with_counts(paths[Use.READS]))
    for path in paths[Use.WRITES]:
        check_writable(path)


def _with_counts(paths: Sequence[Path]) -> list[Path]:
    """The files and folders that are there, and the files of counts beside them."""
    from structsvm_papk.files.readers import sidecar

    beside = [counts for path in paths if (counts := sidecar(path)) is not None]
    return [path for path in dict.fromkeys([*paths, *beside]) if path.exists()]


app = typer.Typer(
    cls=Commands, help="Train and evaluate rankers for the pAp@k metric, with certificates.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
)  # fmt: skip
for panel, commands in _PANELS.items():
    for name, sentence in commands.items():  # what they do is imported when they are called
        app.command(name, help=sentence, rich_help_panel=panel)(lambda: None)


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
    console.answered.set(False)
    try:
        return _run(arguments)
    except KeyboardInterrupt:  # while another end was being reported
        return _failed(arguments, "interrupted", INTERRUPTED)


def _run(arguments: list[str]) -> int:
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
    except (BrokenPipeError, SystemExit):  # typer and rich make the latter of the former
        _give_up_stdout()
        return WRONG_INPUT
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
    if "--json" in arguments and not console.answered.get():
        try:
            console.print_json({"error": message})
            sys.stdout.flush()
        except OSError:
            _give_up_stdout()
    return status
