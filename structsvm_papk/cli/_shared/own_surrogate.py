"""A surrogate that a command is given as a class in a file, ``losses.py:PowerPairs``."""

from __future__ import annotations

import runpy
import traceback
from inspect import isclass
from typing import Any

from structsvm_papk.errors import InputError
from structsvm_papk.surrogates import Surrogate


def surrogate_of(given: str, k: int) -> str | Surrogate:
    """A name as it is; of ``FILE.py:NAME`` the surrogate, made with k where NAME is a class."""
    file, _, name = given.partition(".py:")
    if file == given:
        return given
    file += ".py"
    found = _defined(file).get(name)
    if isclass(found) and issubclass(found, Surrogate):
        made: Any = found  # whose arguments are its own
        try:
            return made(k=k)
        except TypeError as error:
            raise InputError(f"{file}: {name}(k={k}) failed: {error}") from None
    if not isinstance(found, Surrogate):
        raise InputError(f"{file} has no class of Surrogate, and no object of one, {name!r}")
    return found


def _defined(file: str) -> dict[str, Any]:
    """What a file defines; what it raises is said with the line."""
    try:
        return runpy.run_path(file, run_name="surrogate_of_your_own")
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}") from None
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise InputError(
            f"{place.filename}, line {place.lineno}: {type(error).__name__}: {error}"
        ) from None
