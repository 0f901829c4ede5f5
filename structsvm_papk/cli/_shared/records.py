"""Options that belong together are the fields of a record, and a command takes the record."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from typing import Any, get_type_hints


def with_records(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose records are taken apart: an option for each of their fields."""
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, type[Any]] = {}
    for parameter in signature.parameters.values():
        record: Any = parameter.annotation
        if hasattr(record, "__dataclass_fields__"):
            records[parameter.name] = record
            parameters += _of_fields(record)
        else:
            parameters.append(parameter)

    @wraps(command)
    def called(**given: Any) -> None:
        for name, made in records.items():
            given[name] = made(**{each.name: given.pop(each.name) for each in fields(made)})
        command(**given)

    called.__annotations__ = {}
    called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return called


def _of_fields(record: type[Any]) -> list[inspect.Parameter]:
    types = get_type_hints(record, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(each.name, kind, default=each.default, annotation=types[each.name])
        for each in fields(record)
    ]
