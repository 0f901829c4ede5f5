"""The page of the command line, written from the commands themselves by Typer's `utils docs`."""

import subprocess
import sys

from mkdocs.structure.files import File

_NAMES = ["--name", "structsvm-papk", "--title", "Commands"]


def on_files(files, config):
    """Add commands.md."""
    call = [sys.executable, "-m", "typer", "structsvm_papk.cli.program", "utils", "docs", *_NAMES]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    files.append(File.generated(config, "commands.md", content=done.stdout))
    return files
