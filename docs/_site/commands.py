"""The page of the command line, written from the commands themselves by Typer's `utils docs`."""

import re
import subprocess
import sys

from mkdocs.structure.files import File
from typer import Context
from typer.main import get_command

from structsvm_papk.cli.program import app

_NAMES = ["--name", "structsvm-papk", "--title", "Commands"]
_CUT = re.compile(r"^\* `(?P<name>[\w-]+)`: (?P<text>.*)\.\.\.$", re.MULTILINE)


def on_files(files, config):
    """Add commands.md."""
    call = [sys.executable, "-m", "typer", "structsvm_papk.cli.program", "utils", "docs", *_NAMES]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    sentences = dict(_sentences(get_command(app)))

    def whole(match):  # Typer cuts what a command does after 45 characters
        return f"* `{match['name']}`: {sentences[match['name']]}"

    files.append(File.generated(config, "commands.md", content=_CUT.sub(whole, done.stdout)))
    return files


def _sentences(group):
    """Names of all commands, and the first sentence of what each does."""
    context = Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield name, command.get_short_help_str(limit=1000)
        if hasattr(command, "list_commands"):
            yield from _sentences(command)
