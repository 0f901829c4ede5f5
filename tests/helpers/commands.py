"""Commands run within this process."""

import json
from inspect import signature

from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from structsvm_papk import cli
from structsvm_papk.cli import program

# before click 8.2 what goes to standard error was mixed with the output unless forbidden
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def commands():
    """All commands with their names, those of ``bound`` one by one."""
    group = get_command(program.app)
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "commands"):
            yield from ((f"{name} {part}", own) for part, own in command.commands.items())
        else:
            yield name, command


def invoke(*arguments, app=program.app):
    """The result of ``structsvm-papk ARGUMENTS``: output, exit code, exception."""
    return CliRunner(**_APART).invoke(app, [str(each) for each in arguments])


def run(*arguments):
    return cli.main([str(argument) for argument in arguments])


def run_json(capsys, *arguments):
    """Exit status and the one object on standard output."""
    status = run(*arguments, "--json")
    return status, json.loads(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert run(*arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("Error: ")
    return shown.err
