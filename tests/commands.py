"""Commands run within this process."""

from inspect import signature

from typer.testing import CliRunner

from structsvm_papk.cli import program

# before click 8.2 what goes to standard error was mixed with the output unless forbidden
_APART = {"mix_stderr": False} if "mix_stderr" in signature(CliRunner).parameters else {}


def invoke(*arguments):
    """The result of ``structsvm-papk ARGUMENTS``: output, exit code, exception."""
    return CliRunner(**_APART).invoke(program.app, [str(each) for each in arguments])
