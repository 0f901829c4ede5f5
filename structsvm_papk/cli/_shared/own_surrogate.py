"""A surrogate that a command is given as a class in a file, ``losses.py:PowerPairs``."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import Surrogate


def surrogate_of(given: str, k: int) -> str | Surrogate:
    """A name as it is; of ``FILE.py:NAME`` the surrogate, made with k where NAME is a class."""
    file, colon, name = given.rpartition(":")
    if not colon or not file.endswith(".py"):
        file, name = given, ""
    if not file.endswith(".py"):
        return given
    found = _member(_module(Path(file)), Path(file), name)
    if isinstance(found, Surrogate):
        return found
    try:
        made: Surrogate = found(k=k)
    except TypeError as error:
        raise InputError(f"{file}: {found.__name__}(k={k}) failed: {error}") from None
    return made


def _module(file: Path) -> ModuleType:
    """The file as a module; what it raises is said with its line."""
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    name = f"_given_to_structsvm_papk_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == str(file)]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else None)
        where = f"{file}, line {line}" if line else str(file)
        raise InputError(f"{where}: {type(error).__name__}: {error}") from None
    return module


def _member(module: ModuleType, file: Path, name: str) -> Any:
    """The class, or object, of that name; without a name the only class that the file defines."""
    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Surrogate)
        if value.__module__ == module.__name__
    }
    if not name and len(own) == 1:
        return next(iter(own.values()))
    found = own.get(name, getattr(module, name, None) if name else None)
    if isinstance(found, Surrogate) or found in own.values():
        return found
    known = f"{file} has {', '.join(own) or 'none'}"
    if not name:
        raise InputError(f"{file}: say which class of Surrogate, {file}:NAME; {known}")
    raise InputError(f"{file} has no class of Surrogate, and no object of one, {name!r}; {known}")
