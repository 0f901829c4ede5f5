"""The package's own errors and warnings."""

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any

__all__ = ["DegenerateOptimumWarning", "InputError", "OracleFailure"]


class InputError(ValueError):
    """Input that cannot be used; the message says what is wrong, where, and what to do."""


class OracleFailure(RuntimeError):
    """The risk cannot be evaluated any more, through no fault of its input.

    An oracle raises it, with the reason as its message, when what it depends on is gone: its
    workers, its files. Solvers then return the best point so far.
    """


class DegenerateOptimumWarning(UserWarning):
    """The minimiser is zero to within the tolerance: the surrogate says nothing about this data.

    Attributes
    ----------
    what : str
        What is wrong, in a sentence.
    settings : dict
        What to set instead, if that is known.
    """

    def __init__(self, what: str, settings: dict[str, Any] | None = None) -> None:
        self.what, self.settings = what, settings or {}
        super().__init__(what, self.settings)

    def __str__(self) -> str:
        call = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.what}\nTry {call}, or let PAPKRankerCV choose." if call else self.what


def check_number(
    name: str,
    value: Any,
    above: float | None = None,
    least: float | None = None,
    optional: bool = False,
) -> None:
    """Raise `InputError` unless a setting is a finite number above one bound or at least the other.

    With a `least` that is an int it counts something and has to be whole.
    """
    if optional and value is None:
        return
    whole = isinstance(least, int)
    fits = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    fits = fits and (above is None or value > above) and (least is None or value >= least)
    if fits and not (whole and value != int(value)):
        return
    kind = "a whole number" if whole else "a number"
    end = f" of at least {least}" * (least is not None) + f" above {above}" * (above is not None)
    raise InputError(f"{name} must be {kind}{end}, got {value!r}")


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Raise `InputError` unless a setting is one of the names it may have."""
    choices = tuple(choices)
    if not (isinstance(value, str) and value in choices):
        raise InputError(f"{name}={value!r} is not known; choose one of {', '.join(choices)}")


def whole_number(name: str, value: Any, least: int = 1) -> int:
    """A setting as an int; 3.0 counts as 3, True and 3.5 raise `InputError`."""
    check_number(name, value, least=least)
    return int(value)
