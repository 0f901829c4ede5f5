"""All commands in the order of use, how each is called, and what is said where one fails."""

import errno
import functools
import inspect
import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from structsvm_papk._version import __version__
from structsvm_papk.cli._shared import console
from structsvm_papk.errors import InputError, plain_interrupts

WRONG_INPUT, OWN_ERROR, INTERRUPTED = 2, 3, 128 + signal.SIGINT
_ClickException: type[Any] = next(
    c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException"
)

_SCRATCH = "scratch"  # a folder for temporary files: neither read nor a result
_FILES = ("output", "csv_file", "per_user", "html", "report", "model_file")
_OUTPUTS = (*_FILES, "plot", "checkpoint")
_PANELS = {
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
        name = cmd_name.replace("-", "_")
        function = getattr(import_module(f"structsvm_papk.cli.{name}"), name)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        alone.command(cmd_name, cls=RecordedCommand)(grouped(function))
        return typer.main.get_command(alone)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        TyperGroup(
            name=self.name, commands=dict(self.commands), help=self.help, params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)  # fmt: skip


class RecordedCommand(TyperCommand):
    """A command that notes how it was called, and refuses outputs before any work starts."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its record at hand."""
        from structsvm_papk.files.atomic import check_apart, check_writable

        callback: Any = self.callback
        for name, kind in get_type_hints(callback).items():
            is_path = Path in (kind, *get_args(kind))
            if is_path and isinstance(ctx.params.get(name), str):  # in older releases of typer
                ctx.params[name] = Path(ctx.params[name])
        paths = {name: path for name, path in ctx.params.items() if isinstance(path, Path)}
        inputs = [path for name, path in paths.items() if name not in (*_OUTPUTS, _SCRATCH)]
        outputs = {name: path for name, path in paths.items() if name in _OUTPUTS}
        check_apart(list(outputs.values()), _with_counts(inputs))
        for name in outputs.keys() & _FILES:
            check_writable(outputs[name])
        as_json, arguments = ctx.params.get("as_json"), ctx.meta.get("arguments", [])
        token = console.run.set(console.run_of(arguments) if as_json else None)
        try:
            return super().invoke(ctx)
        finally:
            console.run.reset(token)


def _with_counts(paths: Sequence[Path]) -> list[Path]:
    """The files and folders that are there, and the files of counts beside them."""
    from structsvm_papk.data.readers import sidecar

    beside = [counts for path in paths if (counts := sidecar(path)) is not None]
    return [path for path in dict.fromkeys([*paths, *beside]) if path.exists()]


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as the command line shows it: each group's fields are options in its place."""
    signature = inspect.signature(command, eval_str=True)
    kinds = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    groups: dict[str, Any] = {name: kind for name, kind in kinds.items() if is_dataclass(kind)}

    def run(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        return command(**given)

    shown: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            hints = get_type_hints(groups[name])
            shown += [_shown(one.name, hints[one.name], one) for one in fields(groups[name])]
        else:
            shown.append(_shown(name, kinds[name], parameter.default))
    functools.update_wrapper(run, command)
    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _shown(name: str, kind: Any, one: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if one.default is MISSING else one.default
    annotation: Any = Annotated[kind, one.metadata["option"]]
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


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
