"""What tells the code of a surrogate of one's own from what it was before an edit.

No version tells that, and values on a few lists show some edits only. So the class is walked: the
byte code of its methods with their constants, defaults and closures, and whatever of a user's they
name: functions, numbers and tables of a module, other classes, kernels of numba. What is installed
(Python's library, packages, this one) counts by its name. What cannot be read, such as a function
of a compiled module, counts as itself: it is the same in this process only, and nothing that was
kept is taken for its own.
"""

import hashlib
import sys
from collections import deque
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import takewhile
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any
from uuid import uuid4

import numpy as np

_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, type(Ellipsis), np.generic)
_HERE = uuid4().hex  # this process
_PACKAGES = ("site-packages", "dist-packages")  # folders of what is installed
_NOT_CODE = {
    *("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__"),
    *("__annotate__", "__annotate_func__", "__annotations_cache__", "__type_params__"),
    *("__orig_bases__", "__parameters__", "__abstractmethods__", "_abc_impl", "__firstlineno__"),
    *("__static_attributes__", "__dataclass_fields__", "__dataclass_params__", "__match_args__"),
}

_Read = tuple[str, list[Any]]  # what something is, and its parts, which are read in turn


def code_digest(surrogate: Any) -> str:
    """SHA-256 over the fields of an object and all code of a user's that its class runs."""
    kinds = takewhile(lambda kind: not _is_known(kind.__module__), type(surrogate).__mro__)
    # of the user, though they may be installed
    packages = {_package(kind.__module__) for kind in kinds}
    digest = hashlib.sha256()
    todo: deque[Any] = deque([type(surrogate), vars(surrogate)])
    seen: dict[int, tuple[int, Any]] = {}  # by id; the object is held, so that its id stays its own
    while todo:
        part = todo.popleft()
        parts: list[Any] = []
        if isinstance(part, _PLAIN):
            text = f"{type(part).__name__} {part!r}"
        elif id(part) in seen:
            text = f"number {seen[id(part)][0]}"
        else:
            seen[id(part)] = len(seen), part
            text, parts = _read(part, packages)
        digest.update(f"{len(text)} {text} {len(parts)};".encode(errors="surrogatepass"))
        todo.extend(parts)
    return digest.hexdigest()


def _read(part: Any, packages: set[str]) -> _Read:
    if isinstance(part, ModuleType):
        return f"module {part.__name__}", []
    if isinstance(part, CodeType):
        return _code(part)
    if isinstance(part, FunctionType):
        return _function(part, packages)
    if isinstance(part, type):
        return _class(part, packages)
    if isinstance(part, list | tuple):
        return type(part).__name__, list(part)
    if isinstance(part, dict):
        return "dict", [half for item in part.items() for half in item]
    if isinstance(part, set | frozenset):
        return "set", sorted(part, key=repr)  # its order differs between processes
    if isinstance(part, np.ndarray) and part.dtype != object:
        content = hashlib.sha256(part.tobytes()).hexdigest()
        return f"array {part.dtype.str} {part.shape} {content}", []
    for kind, names in _HOLDERS:
        if isinstance(part, kind):
            return kind.__name__, [getattr(part, name) for name in names]
    for name in ("py_func", "__wrapped__"):  # a kernel of numba; a decorated function
        if isinstance(getattr(part, name, None), FunctionType):
            return type(part).__name__, [getattr(part, name)]
    return _instance(part, packages)


_HOLDERS: tuple[tuple[type, tuple[str, ...]], ...] = (
    (MethodType, ("__func__", "__self__")),
    (staticmethod, ("__func__",)),
    (classmethod, ("__func__",)),
    (property, ("fget", "fset", "fdel")),
    (cached_property, ("func",)),
    (partial, ("func", "args", "keywords")),
)


def _code(code: CodeType) -> _Read:
    """Its instructions and constants: neither the file and its lines nor the names of locals."""
    shape = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    table = code.co_exceptiontable.hex()
    text = f"code {code.co_code.hex()} {table} {shape} {code.co_names}"
    return text, list(code.co_consts)


def _function(function: FunctionType, packages: set[str]) -> _Read:
    closure = [_content(cell) for cell in function.__closure__ or ()]
    if _is_installed(function.__module__, packages):
        return f"{function.__module__}.{function.__qualname__}", closure
    code = function.__code__
    if code.co_consts[:1] == (function.__doc__,):
        code = code.replace(co_consts=(None, *code.co_consts[1:]))
    named = list(_named(_names(code), function.__globals__, packages))
    defaults = [function.__defaults__, function.__kwdefaults__]
    return "function", [code, *defaults, function.__dict__, *closure, *named]


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return "empty"


def _names(code: CodeType) -> list[str]:
    """Names that a function uses, those within it too."""
    names = list(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            names += _names(const)
    return names


def _named(names: list[str], known: dict[str, Any], packages: set[str]) -> Iterator[Any]:
    """What names stand for: in the module, as modules that the function itself imports."""
    modules = []
    for name in names:
        value = known.get(name, sys.modules.get(f"{known.get('__package__')}.{name}"))
        value = sys.modules.get(name) if value is None and name not in known else value
        if isinstance(value, ModuleType):
            modules.append(value)
        elif name in known:
            yield value
    looked_at = set()
    while modules:  # module.name: one of the other names
        module = modules.pop()
        if module.__name__ in looked_at or _is_installed(module.__name__, packages):
            continue
        looked_at.add(module.__name__)
        members = vars(module)
        for name in names:
            value = members.get(name)
            if isinstance(value, ModuleType):
                modules.append(value)
            else:
                yield value


def _class(kind: type, packages: set[str]) -> _Read:
    if _is_installed(kind.__module__, packages):
        return f"{kind.__module__}.{kind.__qualname__}", []
    members = {name: value for name, value in vars(kind).items() if name not in _NOT_CODE}
    parts = [half for item in sorted(members.items(), key=lambda item: item[0]) for half in item]
    return "class", [*parts, *kind.__mro__[1:]]


def _instance(value: Any, packages: set[str]) -> _Read:
    """What `pickle` would make it of; of what is installed and has a name, the name."""
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", getattr(value, "__name__", None))
    if callable(value) and isinstance(name, str):
        is_named = _is_installed(module or "builtins", packages)
        return (f"{module}.{name}", []) if is_named else _unknown(value)
    try:
        made = value.__reduce_ex__(4)
    except Exception:
        return _unknown(value)
    if isinstance(made, str):
        return f"{type(value).__module__} {made}", []
    return "object", [*made[:3], *(list(items) for items in made[3:5] if items is not None)]


def _unknown(value: Any) -> _Read:
    return f"{type(value).__qualname__} {id(value)} of process {_HERE}", []


def _package(module: str) -> str:
    return module.partition(".")[0]


def _is_installed(module: str | None, packages: set[str]) -> bool:
    """Whether a module is not a user's: nobody edits it without another version."""
    if module is None or _package(module) in packages:  # None: of code that was run from a text
        return False
    return _is_known(module) or any(folder in _file(module).parts for folder in _PACKAGES)


def _is_known(module: str) -> bool:
    """Whether a module is Python's or this package's."""
    return _package(module) in {"structsvm_papk", *sys.stdlib_module_names}


def _file(module: str) -> Path:
    """Of a module; an empty path where it was typed at a prompt or made by hand."""
    return Path(getattr(sys.modules.get(module), "__file__", None) or "")
