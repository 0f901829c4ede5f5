"""Option groups: one parameter of a command for all the fields of a dataclass.

A field says its help in its metadata: ``k: int = PANEL(..., "Number of items.", flags="--k")``.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer


@dataclass(frozen=True)
class Panel:
    """A heading of the help page; called, it makes a field that is an option under it."""

    name: str

    def __call__(
        self, default: Any, help: str, metavar: str | None = None, *, flags: str = "", **more: Any
    ) -> Any:
        """A field with a help text; one without a default (``...``) has to be given."""
        more |= {"metavar": metavar, "rich_help_panel": self.name}
        metadata = {"option": typer.Option(*flags.split(), help=help, **more)}
        return field(default=MISSING if default is ... else default, metadata=metadata)


def grouped(command: Callable[..., Any]) -> Callable[..., Any]:
    """The command as the command line shows it: each group's fields are options in its place."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: p.annotation for name, p in signature.parameters.items() if is_dataclass(p.annotation)
    }

    def run(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{one.name: given.pop(one.name) for one in fields(group)})
        return command(**given)

    shown: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        shown += _parameters(groups[name]) if name in groups else [parameter]
    shown = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in shown]
    functools.update_wrapper(run, command)
    run.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def _parameters(group: Any) -> Iterator[inspect.Parameter]:
    kind, hints = inspect.Parameter.KEYWORD_ONLY, get_type_hints(group)
    for one in fields(group):
        default = inspect.Parameter.empty if one.default is MISSING else one.default
        annotation: Any = Annotated[hints[one.name], one.metadata["option"]]
        yield inspect.Parameter(one.name, kind, default=default, annotation=annotation)
