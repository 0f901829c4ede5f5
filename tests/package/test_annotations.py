"""The supported names are annotated; `mypy` holds the annotations against the code."""

import inspect
from typing import Any

import pytest

from helpers.policy import listed, supported

pytestmark = pytest.mark.portable


def functions_of(value):
    """A function, or the public methods and properties of a class of this package."""
    owners = [o for o in getattr(value, "__mro__", ()) if o.__module__.startswith("structsvm_papk")]
    for name, each in [("__call__", value), *(item for o in owners for item in vars(o).items())]:
        each = getattr(each, "__func__", getattr(each, "fget", each))  # class methods, properties
        if inspect.isfunction(each) and (name in ("__init__", "__call__") or name[0] != "_"):
            yield each


def missing(function):
    """Parameters without annotation, and "return" where the result has none, or is Any."""
    given = inspect.signature(function)
    names = [
        name
        for name, parameter in given.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    return names + ["return"] * (given.return_annotation in (given.empty, Any, "Any"))


def test_supported_names_are_annotated():
    functions = [f for p in listed() for v in supported(p).values() for f in functions_of(v)]
    assert len(functions) > 150
    assert not {f.__qualname__: missing(f) for f in functions if missing(f)}

    def vague(a: int, b) -> Any:
        return a

    assert missing(vague) == ["b", "return"]
