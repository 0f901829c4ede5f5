"""The public interface is annotated; `mypy` holds the annotations against the code."""

import inspect
from importlib import import_module

import pytest

import structsvm_papk

MODULES = (
    *(
        "baselines",
        "bounds.interval",
        "cuts",
        "data",
        "datasets",
        "estimator",
        "metrics.comparison",
    ),
    *("metrics.frames", "metrics.named", "metrics.table", "model_file", "model_selection"),
    *("readers", "result", "risk", "solvers.cccp", "solvers.cutting_plane", "solvers.global_ramp"),
    *("solvers.path", "solvers.subgradient", "surrogates"),
)


def functions_of(owner):
    """Public functions of a module or class, methods and properties of its classes included."""
    for name, value in vars(owner).items():
        value = getattr(value, "__func__", value)  # class methods
        value = getattr(value, "fget", value)
        home = owner.__name__ if inspect.ismodule(owner) else owner.__module__
        inside = getattr(value, "__module__", "").startswith(home)
        if not inside or (name.startswith("_") and name not in ("__init__", "__call__")):
            continue
        if inspect.isfunction(value):
            yield value
        elif inspect.isclass(value) and inspect.ismodule(owner):
            yield from functions_of(value)


def missing(function):
    given = inspect.signature(function)
    names = [
        name
        for name, parameter in given.parameters.items()
        if parameter.annotation is parameter.empty and name not in ("self", "cls")
    ]
    return names + ["return"] * (given.return_annotation is given.empty)


@pytest.mark.parametrize("module", MODULES)
def test_public_functions_are_annotated(module):
    found = import_module(f"structsvm_papk.{module}")
    lacking = {f.__qualname__: missing(f) for f in functions_of(found) if missing(f)}
    inherited = {name for name in lacking if name.endswith(".evaluate")}  # as Surrogate.evaluate
    assert {name: lacking[name] for name in lacking.keys() - inherited} == {}


def test_what_the_package_exports_is_annotated():
    exported = [getattr(structsvm_papk, name) for name in structsvm_papk.__all__]
    functions = [f for item in exported if inspect.isclass(item) for f in functions_of(item)]
    functions += [item for item in exported if inspect.isfunction(item)]
    assert len(functions) > 40
    assert not {f.__qualname__: missing(f) for f in functions if missing(f)}


def test_a_missing_annotation_is_noticed():
    def half(a: int, b) -> int:
        return a

    assert missing(half) == ["b"]
