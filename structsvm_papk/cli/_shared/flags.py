"""Settings in messages as options: ``missing="lowest"`` is ``--missing lowest`` for a command.

The package names settings as Python does; only commands know how theirs are called.
"""

from __future__ import annotations

import ast
import re
import shlex

_FLAGS = {
    "curves": "--curves",
    "depth": "--depth",
    "grade": "--label",
    "group": "--group",
    "groups": "--group",
    "ignore": "--ignore",
    "label": "--label",
    "missing": "--missing",
    "monotonic_cst": "--monotonic",
    "pairs": "--pairs",
    "policy": "--policy",
    "population": "--population",
    "relevance_threshold": "--relevance-threshold",
}
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_SETTING = re.compile(
    rf"(?<![\w.-])(?<!\w\()({'|'.join(_FLAGS)})=(\[{_TEXT}(?:, {_TEXT})*\]|{_TEXT}|[\w.]*)"
)


def in_flags(message: str) -> str:
    """A message with the options of commands in place of settings."""
    return _SETTING.sub(_as_flag, message)


def _as_flag(setting: re.Match[str]) -> str:
    name, value = setting.groups()
    if value in ("", "True"):
        return _FLAGS[name]
    try:
        known = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        known = value
    if known == "one_list":
        return "--one-list"
    if known is None:
        return f"{_FLAGS[name]} none"
    values = known if value.startswith("[") else [known]
    return " ".join(f"{_FLAGS[name]} {shlex.quote(str(each))}" for each in values)
