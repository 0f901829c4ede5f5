"""Signatures of the reference show default values: ``alpha=0.01`` where the code says ``ALPHA``."""

import importlib
import inspect

import griffe


class DefaultValues(griffe.Extension):
    """Put the value of a constant in place of its name."""

    def on_function_instance(self, *, func, **_):
        """Look each default that is a name up in the module's own namespace."""
        for parameter in func.parameters:
            parameter.default = _written(parameter.default, func.module)

    def on_attribute_instance(self, *, attr, **_):
        """The same for fields of dataclasses."""
        if attr.parent is not None and attr.parent.is_class:
            attr.value = _written(attr.value, attr.module)


def _written(default, module):
    if not isinstance(default, griffe.ExprName):
        return default
    value = getattr(importlib.import_module(module.path), default.name, inspect.Parameter.empty)
    return repr(value) if isinstance(value, (int, float, str, tuple)) else default
