"""Ctrl-C as a wish that solvers look at between their steps: nothing is ever left half done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_wish = threading.Event()
_noting = threading.Lock()  # held by the outermost block that notes interrupts


def interrupted() -> bool:
    """Whether Ctrl-C came in the block of `interrupts_noted` that is running."""
    return _wish.is_set()


@contextmanager
def interrupts_noted() -> Iterator[None]:
    """Note the first Ctrl-C of a block, for `interrupted`; a second one raises as ever.

    The same holds for SIGTERM where it raises `KeyboardInterrupt`, as in commands. Nothing changes
    in other threads, which get no signals, and where somebody else handles them.
    """
    numbers = []
    if threading.current_thread() is threading.main_thread() and _noting.acquire(blocking=False):
        usual = signal.default_int_handler
        numbers = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) is usual]
        if not numbers:
            _noting.release()
    if not numbers:
        yield
        return

    def note(*_: Any) -> None:
        _wish.set()
        handle(signal.default_int_handler)

    def handle(handler: Any) -> None:
        for number in numbers:
            signal.signal(number, handler)

    try:
        handle(note)
        yield
    finally:
        handle(signal.default_int_handler)
        _wish.clear()
        _noting.release()
