"""The supported names are annotated; `mypy` holds the annotations against the code."""

import inspect
from typing import Any

import pytest

from helpers.policy import listed, supported

pytestmark = pytest.mark.portable

PATHS = listed()


def functions_of(value):
    """A function, or the public methods and properties of a class of this package."""
    if inspect.isfunction(value):
        yield value
    elif inspect.isclass(value):
        for owner in value.__mro__:
            if owner.__module__.startswith("structsvm_papk"):
                yield from _methods(owner)


def _methods(owner):
    for name, value in vars(owner).items():
        value = getattr(value, "__func__", value)  # class methods
        value = getattr(value, "fget", value)
        if inspect.isfunction(value) and (name in ("__init__", "__call__") or name[0] != "_"):
            yield value


def missing(function):
    """Parameters without annotation, and "return" where the result has none, or is Any."""
    given = inspect.signature(function)
    names = [
        name
        for name, parameter in given.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    return names + ["return"] * (given.return_annotation in (given.empty, Any, "Any"))


@pytest.mark.parametrize("path", PATHS)
def test_supported_names_are_annotated(path):
    functions = [f for value in supported(path).values() for f in functions_of(value)]
    assert not {f.__qualname__: missing(f) for f in functions if missing(f)}


def test_there_is_something_to_check():
    functions = [f for path in PATHS for v in supported(path).values() for f in functions_of(v)]
    assert len(functions) > 150


def test_a_missing_annotation_is_noticed():
    def half(a: int, b) -> int:
        return a

    def vague(a: int) -> Any:
        return a

    assert missing(half) == ["b"] and missing(vague) == ["return"]
