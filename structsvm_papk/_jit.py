"""How kernels are compiled, and how the compiled code is kept for later processes."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core.caching import FunctionCache


@cache
def _sources() -> str:
    """Hash of the package: compiled code holds what it calls, which other files may define."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


class _Cache(FunctionCache):
    """numba's files, which are a help and no condition: without them, kernels compile again."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file._source_stamp = self._cache_file._source_stamp, _sources()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            compiled = super().load_overload(sig, target_context)
        except Exception:  # not readable, or cut off: unpickling raises anything
            with contextlib.suppress(Exception):
                self.flush()
            return None
        # two processes that compile for other types at once can take one file's name
        return compiled if compiled is None or compiled.signature.args == tuple(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):  # no room, or the folder has gone
            super().save_overload(sig, data)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C wait for the compiler, which crashes later if it is broken off half-way.

    Nor is garbage collected: that takes a sixth of the compiler's time and frees little.
    """
    pressed: list[Any] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        before = signal.getsignal(signal.SIGINT)
    if callable(before):
        signal.signal(signal.SIGINT, lambda *args: pressed.append(args))
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        if callable(before):
            signal.signal(signal.SIGINT, before)
            if pressed:
                before(*pressed[0])


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile at the first call, release the interpreter's lock, and keep the code on disk.

    Where neither the package's folder nor the user's cache can be written, nothing is kept and
    every process compiles what it needs. `options`: those of `numba.njit`.
    """
    if function is None:
        return partial(kernel, **options)
    settings: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **options}
    compiled: Any = njit(**settings)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]  # else it is the function
        compiled.compile = _undisturbed()(compiled.compile)
        with contextlib.suppress(RuntimeError):  # no folder can be written
            compiled._cache = _Cache(function)
    return compiled
