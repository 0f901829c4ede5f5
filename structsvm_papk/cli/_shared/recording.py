"""The `run` object that every JSON output carries, and runs whose outputs go elsewhere."""

from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import get_args, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup

from structsvm_papk.cli._shared import _record as run_record
from structsvm_papk.data.svmlight import sidecar
from structsvm_papk.files.atomic import check_apart

_SCRATCH = "scratch"  # a folder for temporary files: neither read nor a result
OUTPUTS = ("output", "plot", "csv_file", "per_user", "html", "report", "results", "checkpoint")
_record = ContextVar("record", default=None)
_elsewhere = ContextVar("elsewhere", default=None)


class App(typer.Typer):
    """An application whose commands are recorded."""

    def command(self, *args, **settings):
        """Add a command."""
        return super().command(*args, **{"cls": RecordedCommand, **settings})


class RecordedGroup(TyperGroup):
    """A group of commands that remembers the command line."""

    def parse_args(self, ctx, args):
        """Keep the arguments for the record."""
        ctx.meta.setdefault("arguments", list(args))
        return super().parse_args(ctx, args)


class RecordedCommand(TyperCommand):
    """A command that notes what it was told and what it reads before it starts."""

    def invoke(self, ctx):
        """Run the command with its record at hand."""
        for name in _paths(self.callback):  # older releases of typer still have texts here
            if isinstance(ctx.params.get(name), str):
                ctx.params[name] = Path(ctx.params[name])
        no_input = (*OUTPUTS, _SCRATCH)
        settings = {name: value for name, value in ctx.params.items() if name not in no_input}
        token = _record.set(None)
        try:
            if ctx.params.get("as_json") or _writes_json(ctx.params.get("output")):
                arguments = ctx.meta.get("arguments", [])
                _record.set(run_record.record(arguments, settings, _inputs(settings)))
            outputs = [ctx.params[name] for name in OUTPUTS if _is_path(ctx.params.get(name))]
            check_apart(outputs, _inputs(settings))
            _move_outputs(ctx.params)
            return super().invoke(ctx)
        finally:
            _record.reset(token)


def _paths(command):
    """Names of the parameters of a command that are files or folders."""
    hints = get_type_hints(command)
    return [name for name, kind in hints.items() if Path in (kind, *get_args(kind))]


def add_record(content):
    """A JSON object with its `run`."""
    record = _record.get()
    return content if record is None else {**content, "run": record}


@contextmanager
def outputs_in(folder):
    """Let commands write their files into a folder, whatever they were told, and resume nothing."""
    token = _elsewhere.set(Path(folder))
    try:
        yield
    finally:
        _elsewhere.reset(token)


def _move_outputs(params):
    folder = _elsewhere.get()
    if folder is None:
        return
    for name in OUTPUTS:
        if _is_path(params.get(name)):
            params[name] = None if name == "checkpoint" else folder / params[name].name


def _is_path(value):
    return isinstance(value, Path)


def _writes_json(path):
    return path is not None and Path(path).suffix == ".json"


def _inputs(settings):
    """Every file or folder that is read; a file of counts beside it counts."""
    paths = [value for value in settings.values() if _is_path(value)]
    beside = [counts for path in paths if (counts := sidecar(path)) is not None]
    return [path for path in dict.fromkeys([*paths, *beside]) if path.exists()]
