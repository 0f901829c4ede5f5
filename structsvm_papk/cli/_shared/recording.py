"""Commands that are imported when they are called, and the `run` that every JSON output carries."""

import functools
import inspect
import os
import platform
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from structsvm_papk._version import versions

_SCRATCH = "scratch"  # a folder for temporary files: neither read nor a result
_FILES = ("output", "csv_file", "per_user", "html", "report", "model_file")
OUTPUTS = (*_FILES, "plot", "checkpoint")
_record: ContextVar[dict[str, Any] | None] = ContextVar("record", default=None)


def app_of(help: str, panels: Mapping[str, Mapping[str, str]]) -> typer.Typer:
    """An application whose commands are functions of their names, in modules of their names.

    `panels` holds, under each heading, the commands with the first sentence of their help.
    """
    how: dict[str, Any] = {"no_args_is_help": True, "add_completion": False}
    app = typer.Typer(cls=Commands, help=help, pretty_exceptions_enable=False, **how)
    for panel, commands in panels.items():
        for name, sentence in commands.items():  # what they do is imported when they are called
            app.command(name, help=sentence, rich_help_panel=panel)(lambda: None)
    return app


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
        no_input = (*OUTPUTS, _SCRATCH)
        settings = {name: value for name, value in ctx.params.items() if name not in no_input}
        token = _record.set(None)
        try:
            if ctx.params.get("as_json") or Path(ctx.params.get("output") or "").suffix == ".json":
                _record.set(_record_of(ctx.meta.get("arguments", [])))
            given = {name: ctx.params[name] for name in OUTPUTS if ctx.params.get(name)}
            outputs = {name: path for name, path in given.items() if isinstance(path, Path)}
            check_apart(list(outputs.values()), _inputs(settings))
            for name in outputs.keys() & _FILES:
                check_writable(outputs[name])
            return super().invoke(ctx)
        finally:
            _record.reset(token)


def add_record(content: dict[str, Any]) -> dict[str, Any]:
    """A JSON object with its `run`."""
    record = _record.get()
    return content if record is None else {**content, "run": record}


def _record_of(arguments: list[str]) -> dict[str, Any]:
    """The `run` of a JSON output: what was run, where, when and with what."""
    return {
        "command": ["structsvm-papk", *arguments],
        "directory": os.getcwd(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "versions": versions(),
    }


def _inputs(settings: dict[str, Any]) -> list[Path]:
    """Every file or folder that is read; a file of counts beside it counts."""
    from structsvm_papk.data.readers import sidecar

    paths = [value for value in settings.values() if isinstance(value, Path)]
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
