"""The options of a command as they are declared: what program, help and "repeat" lines read."""

import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer


class Use(Enum):
    """What a command does with a path that it is given."""

    READS = auto()
    WRITES = auto()  # a file, refused before any work starts where it could not be written
    DRAWS = auto()  # a picture, which `check_plot` refuses, by its format too
    KEEPS = auto()  # a folder that belongs to the run
    UNPACKS = auto()  # a folder for temporary files: neither read nor a result


@dataclass(frozen=True)
class Declared:
    """One option or argument of a command.

    `name` is the parameter's in code, `info` is typer's; a `default` of MISSING: it has to be
    given.
    """

    name: str
    kind: Any
    default: Any
    info: Any
    use: Use

    @property
    def takes_path(self) -> bool:
        """Whether its value is a path."""
        return Path in (self.kind, *get_args(self.kind))

    @property
    def is_argument(self) -> bool:
        """Whether it is given by its place, without a flag."""
        return isinstance(self.info, typer.models.ArgumentInfo)

    @property
    def flag(self) -> str:
        """Its first flag: as declared, or made of the name as typer does."""
        # inside Annotated, typer takes the first flag where an option's default would stand
        words = [self.info.default, *(self.info.param_decls or ())]
        given = [word for word in words if isinstance(word, str) and word.startswith("--")]
        return given[0] if given else "--" + self.name.replace("_", "-")

    def words(self, value: Any) -> list[str]:
        """The words of a command line that set it; none for None."""
        if value is None:
            return []
        if self.is_argument:
            text = str(value)
            return [f"./{text}" if text.startswith("-") else text]  # it would pass for a flag
        if bool in (self.kind, *get_args(self.kind)) and isinstance(value, bool):
            return [self.flag if value else self.flag.replace("--", "--no-", 1)]
        words = []
        for single in value if isinstance(value, list | tuple) else [value]:
            words += [self.flag, str(single)]
        return words


def declared(command: Callable[..., Any]) -> dict[str, Declared]:
    """The options of a command by name; a group's fields stand in its place."""
    options: dict[str, Declared] = {}
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        if is_dataclass(parameter.annotation):
            kinds = get_type_hints(parameter.annotation)
            for field in fields(parameter.annotation):
                options[field.name] = _declared(field.name, kinds[field.name], field)
        else:
            # outside a group the field that `option` makes stands as the parameter's default
            options[name] = _declared(name, parameter.annotation, parameter.default)
    return options


def _declared(name: str, kind: Any, field: Field[Any]) -> Declared:
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    return Declared(
        name=name,
        kind=kind,
        default=default,
        info=field.metadata["option"],
        use=field.metadata["use"],
    )


def values_of(groups: Iterable[Any]) -> dict[str, Any]:
    """The values in groups of options, by name."""
    return {field.name: getattr(group, field.name) for group in groups for field in fields(group)}


def command_line(
    name: str, command: Callable[..., Any], chosen: Mapping[str, Any], asked: Mapping[str, Any]
) -> str:
    """The call of a command that gives its options these values.

    Of what was `asked` the command's own options count, where they are not as by default anyway;
    what was `chosen` goes before it and is always said.
    """
    words = ["structsvm-papk", name]
    for option in declared(command).values():
        if option.name in chosen:
            words += option.words(chosen[option.name])
        elif asked.get(option.name, option.default) != option.default:
            words += option.words(asked[option.name])
    return shlex.join(words)
