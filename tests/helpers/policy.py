"""The supported names, from the page that promises them."""

import re
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| `([\w.]+)` \| (.*) \|$", re.MULTILINE)


def listed():
    """Names that the policy page lists, by the path to import them from."""
    rows = _ROW.findall((ROOT / "docs" / "policy.md").read_text())
    return {path: re.findall(r"`(\w+)`", names) for path, names in rows}


def supported(path):
    """Supported classes, functions and constants of one import path, by name."""
    module = import_module(path)
    return {name: getattr(module, name) for name in listed()[path]}
