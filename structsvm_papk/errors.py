"""The package's own errors and warnings, what modules check of their arguments, and Ctrl-C."""

from __future__ import annotations

import math
import reprlib
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Real
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structsvm_papk._types import Array

__all__ = ["DegenerateOptimumWarning", "InputError"]


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
        self.what = what
        self.settings = settings or {}
        super().__init__(what, self.settings)

    def __str__(self) -> str:
        call = ", ".join(f"{name}={value!r}" for name, value in self.settings.items())
        return f"{self.what}\nTry {call}." if call else self.what


def _package_of(frame: FrameType) -> str:
    """The package whose code runs; empty for code that is in no module, as `exec` may run it."""
    module: str = frame.f_globals.get("__name__", "")
    return module.partition(".")[0]


def warn(message: str | Warning, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the package, through however many of its functions."""
    package = __name__.partition(".")[0]
    frame = sys._getframe()
    level = 1
    while frame.f_back is not None and _package_of(frame) == package:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


_LARGEST_COUNT = 2**53  # what is added to it or multiplied has room in 64 bits, or is refused


AUTO = "auto"  # a setting that is left to a rule, or to the data


def is_one_of(value: object, names: Iterable[str]) -> bool:
    """Whether a setting is one of these names; with an array `in` would not say."""
    return isinstance(value, str) and value in names


def is_auto(value: object) -> bool:
    """Whether a setting is left to its rule."""
    return is_one_of(value, [AUTO])


def check_number(
    name: str,
    value: object,
    above: float | None = None,
    least: float | None = None,
    optional: bool = False,
    *,
    below: float | None = None,
    most: float | None = None,
) -> None:
    """Raise `InputError` unless a setting is a finite number within its bounds.

    With a `least` that is an int it counts something and has to be whole, up to 2^53.
    """
    if optional and value is None:
        return
    whole = isinstance(least, int)
    if whole and most is None and isinstance(value, int) and value > _LARGEST_COUNT:
        most = _LARGEST_COUNT
    number: Any = value
    fits = is_number(value)
    fits = fits and (above is None or number > above) and (least is None or number >= least)
    fits = fits and (below is None or number < below) and (most is None or number <= most)
    if fits and not (whole and number != int(number)):
        return
    kind = "a whole number" if whole else "a number"
    ends = {"of at least": least, "above": above, "below": below, "of at most": most}
    end = " and ".join(f"{word} {value}" for word, value in ends.items() if value is not None)
    raise InputError(f"{name} must be {kind} {end}".rstrip() + f", got {reprlib.repr(value)}")


def is_number(value: object) -> bool:
    """Whether a setting is a finite number; True and False are none."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(float(value))
    except OverflowError:  # a whole number above all doubles
        return False


def check_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """Raise `InputError` unless a setting is one of the names it may have."""
    choices = tuple(choices)
    if not is_one_of(value, choices):
        shown = reprlib.repr(value)
        raise InputError(f"{name}={shown} is not known; choose one of {', '.join(choices)}")


def check_type(name: str, value: object, kind: Any, what: str, optional: bool = False) -> None:
    """Raise `TypeError` unless an argument is of a type, which `what` says in words."""
    if not (isinstance(value, kind) or (optional and value is None)):
        raise TypeError(f"{name} must be {what}, got {reprlib.repr(value)}")


def check_callback(value: object, name: str = "callback") -> None:
    """Raise `TypeError` unless an argument is None or can be called."""
    check_type(name, value, Callable, "a function", optional=True)


def as_path(value: str | PathLike[str], name: str = "path") -> Path:
    """A path, of text or a path-like object."""
    check_type(name, value, str | PathLike, "text or a pathlib.Path")
    if "\0" in str(value):
        raise InputError(f"the {name} {str(value)!r} holds a null character")
    return Path(value)


def as_names(name: str, values: Iterable[Any], kind: type = object) -> tuple[Any, ...]:
    """The entries of a sequence, of names say, as a tuple; a single text is none."""
    check_type(name, values, Iterable, "a sequence")
    if isinstance(values, str | bytes):
        raise TypeError(f"{name} must be a sequence such as [{values!r}], got {values!r}")
    for value in values:
        check_type(f"each of {name}", value, kind, f"a {kind.__name__}")
    return tuple(values)


def as_floats(name: str, values: object) -> Array:
    """A float64 array of numbers, not copied where it is one."""
    import numpy as np

    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biufO":
            raise TypeError(f"not {array.dtype}")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} must be numbers ({error}), got {reprlib.repr(values)}") from None


def whole_number(name: str, value: float | None) -> int:
    """A setting of at least 1 as an int; 3.0 counts as 3, True, 3.5 and None raise `InputError`."""
    check_number(name, value, least=1)
    number: Any = value
    return int(number)


def count_or_auto(name: str, value: Any, what: str) -> int | None:
    """A setting that counts `what`; None where there is none of it, and where it is 'auto'."""
    if value is None or is_auto(value):
        return None
    if isinstance(value, str):
        raise InputError(f"{name}={value!r} must be 'auto', None, or {what}")
    return whole_number(name, value)


# --- Ctrl-C -------------------------------------------------------------------------------------

# A wish that solvers look at between their steps: nothing is ever left half done.

_wish = threading.Event()
_noting = False  # whether a block of the main thread notes interrupts


def interrupted() -> bool:
    """Whether Ctrl-C came in the block of `interrupts_noted` that is running."""
    return _wish.is_set()


@contextmanager
def interrupts_noted() -> Iterator[None]:
    """Note the first Ctrl-C of a block, for `interrupted`; a second one raises as ever.

    The same holds for SIGTERM where it raises `KeyboardInterrupt`, as in commands. Nothing changes
    in other threads, which get no signals, and where somebody else handles them.
    """
    global _noting
    usual = signal.default_int_handler
    numbers = []
    if threading.current_thread() is threading.main_thread() and not _noting:
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is usual]
    if not numbers:
        yield
        return

    def note(*_: Any) -> None:
        _wish.set()
        handle(usual)

    def handle(handler: Any) -> None:
        for number in numbers:
            signal.signal(number, handler)

    # an interrupt may come between any two lines: whichever of them it ends, the next block begins
    # as the first one did
    try:
        _noting = True
        _wish.clear()
        handle(note)
        yield
    finally:
        _noting = False
        handle(usual)
        _wish.clear()


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """Let Ctrl-C end a block as `KeyboardInterrupt`, wherever in a kernel's call it came.

    While a kernel takes its arguments, a SystemError is made of it, with the interrupt among its
    causes, two deep where an array's type was being unpickled.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__
        if cause is None:
            raise
        raise KeyboardInterrupt from error
