"""Signatures of the reference show default values: ``alpha=0.01`` where the code says ``ALPHA``."""

import importlib
import inspect

import griffe


class DefaultValues(griffe.Extension):
    """Put the value of a constant in place of its name."""

    def on_function_instance(self, *, func, **_):
        """Look each default that is a name up in the module's own namespace."""
        for parameter in func.parameters:
            if isinstance(parameter.default, griffe.ExprName):
                module = importlib.import_module(func.module.path)
                value = getattr(module, parameter.default.name, inspect.Parameter.empty)
                if isinstance(value, (int, float, str, tuple)):
                    parameter.default = repr(value)
