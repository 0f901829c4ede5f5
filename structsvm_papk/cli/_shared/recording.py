"""Commands that are imported when they are called, and the `run` that every JSON output carries."""

import os
import platform
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from structsvm_papk._version import versions
from structsvm_papk.cli._shared.grouped import grouped

_SCRATCH = "scratch"  # a folder for temporary files: neither read nor a result
OUTPUTS = (
    *("output", "plot", "csv_file", "per_user", "html", "report", "checkpoint"),
    "model_file",
)
_record: ContextVar[dict[str, Any] | None] = ContextVar("record", default=None)


def app_of(package: str, help: str, panels: Mapping[str, Mapping[str, str]]) -> typer.Typer:
    """An application whose commands are functions of their names, in modules of their names.

    `panels` holds, under each heading, the commands with the first sentence of their help.
    """
    settings: dict[str, Any] = {"no_args_is_help": True, "add_completion": False}
    kind = type("Commands", (Commands,), {"package": package})
    app = typer.Typer(cls=kind, help=help, pretty_exceptions_enable=False, **settings)
    for panel, commands in panels.items():
        for name, sentence in commands.items():
            app.command(name, help=sentence, rich_help_panel=panel)(_not_imported)
    return app


def _not_imported() -> None:
    pass


class Commands(TyperGroup):
    """A group that imports a command when it is asked for, and keeps the command line."""

    package = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Keep the arguments for the record."""
        ctx.meta.setdefault("arguments", list(args))
        return super().parse_args(ctx, args)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a name, or None."""
        if cmd_name not in self.commands:
            return None
        module = import_module(f"{self.package}.{cmd_name.replace('-', '_')}")
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        function = getattr(module, cmd_name.replace("-", "_"))
        alone.command(cmd_name, cls=RecordedCommand)(grouped(function))
        return typer.main.get_command(alone)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        TyperGroup(
            name=self.name, commands=dict(self.commands), help=self.help, params=self.params,
            rich_markup_mode=self.rich_markup_mode,
        ).format_help(ctx, formatter)  # fmt: skip


class RecordedCommand(TyperCommand):
    """A command that notes how it was called, and refuses to write over what it reads."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command with its record at hand."""
        from structsvm_papk.files.atomic import check_apart

        for name in _paths(self.callback):  # older releases of typer still have texts here
            if isinstance(ctx.params.get(name), str):
                ctx.params[name] = Path(ctx.params[name])
        no_input = (*OUTPUTS, _SCRATCH)
        settings = {name: value for name, value in ctx.params.items() if name not in no_input}
        token = _record.set(None)
        try:
            if ctx.params.get("as_json") or Path(ctx.params.get("output") or "").suffix == ".json":
                _record.set(_record_of(ctx.meta.get("arguments", [])))
            outputs = [ctx.params[name] for name in OUTPUTS if _is_path(ctx.params.get(name))]
            check_apart(outputs, _inputs(settings))
            return super().invoke(ctx)
        finally:
            _record.reset(token)


def _paths(command: Any) -> list[str]:
    """Names of the parameters of a command that are files or folders."""
    hints = get_type_hints(command)
    return [name for name, kind in hints.items() if Path in (kind, *get_args(kind))]


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


def _is_path(value: object) -> bool:
    return isinstance(value, Path)


def _inputs(settings: dict[str, Any]) -> list[Path]:
    """Every file or folder that is read; a file of counts beside it counts."""
    from structsvm_papk.data.svmlight import sidecar

    paths = [value for value in settings.values() if _is_path(value)]
    beside = [counts for path in paths if (counts := sidecar(path)) is not None]
    return [path for path in dict.fromkeys([*paths, *beside]) if path.exists()]
