"""How kernels are compiled, and how the compiled code is kept for later processes."""

from __future__ import annotations

import contextlib
import gc
import hashlib
import inspect
import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache, partial
from multiprocessing import parent_process
from types import CodeType
from typing import Any

import numpy as np
from numba import config, njit
from numba.core.caching import FunctionCache, IndexDataCacheFile

_log = logging.getLogger(__name__)
# a sum may be taken in another order, which lets it run in vector registers, and a product be fused
# with its addition; of a zero the sign may be lost, of NaN and infinite values nothing
REORDERED_SUMS = {"reassoc", "contract", "nsz"}
_COMPILED_IN = (bool, int, float, complex, str, bytes, tuple, np.generic, np.ndarray)


def _parts(code: CodeType, known: dict[str, Any], doc: str | None = None) -> Iterator[Any]:
    """What machine code is made from: the function's own code and constants, and its callees.

    Docstring, comments, line numbers and what else stands in the file are not part of that.
    """
    nested = [const for const in code.co_consts if inspect.iscode(const)]
    constants = [const for const in code.co_consts if const not in nested and const != doc]
    yield code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars
    for inner in nested:
        yield from _parts(inner, known)
    for name in code.co_names:
        yield known.get(name)
        if inspect.ismodule(known.get(name)):  # module.name: one of the other names
            yield from (getattr(known[name], other, None) for other in code.co_names)


def _source_key(function: Callable[..., Any]) -> str:
    """SHA-256 of all that the machine code of a kernel is made from, through every file."""
    digest = hashlib.sha256()
    seen = {function}
    todo = [function]
    while todo:
        current = todo.pop()
        for part in _parts(current.__code__, current.__globals__, current.__doc__):
            if isinstance(part, _COMPILED_IN):
                digest.update(repr(part).encode())
            called = getattr(part, "py_func", None)  # of a kernel
            if called is not None and called not in seen:
                seen.add(called)
                todo.append(called)
    return digest.hexdigest()


class _Cache(FunctionCache):
    """numba's files, which are a help and no condition: without them, kernels compile again.

    numba itself looks at the time and length of the file that holds a function, and overlooks what
    the function calls in others. Here a file belongs to the kernel's own code and its callees'.
    """

    def __init__(self, function: Callable[..., Any], options: Any) -> None:
        super().__init__(function)
        line = f"-{function.__code__.co_firstlineno}."
        base = self._impl.filename_base.replace(line, ".", 1)  # a kernel may move within its file
        self._cache_file = IndexDataCacheFile(self._cache_path, base, None)
        plain = {k: sorted(v) if isinstance(v, set) else v for k, v in options.items()}
        self._options = repr(sorted(plain.items()))  # a set has another order in every process

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        if self._cache_file._source_stamp is None:  # not sooner: callees may stand below
            self._cache_file._source_stamp = self._options, _source_key(self._py_func)
        return super()._index_key(sig, codegen)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            compiled = super().load_overload(sig, target_context)
        except Exception:  # not readable, or cut off: unpickling raises anything
            with contextlib.suppress(Exception):
                self.flush()
            compiled = None
        # two processes that compile for other types at once can take one file's name
        if compiled is None or compiled.signature.args != tuple(sig):
            _say_once()
            _log.info("compiling %s", self._py_func.__qualname__)
            return None
        return compiled

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):  # no room, or the folder has gone
            super().save_overload(sig, data)


@cache
def _say_once() -> None:
    """Say on a terminal, and in a notebook, why the first run after an install takes longer."""
    is_watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if is_watched and parent_process() is None:
        print("compiling kernels, which takes a while; later runs reuse them", file=sys.stderr)


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait for the compiler, which crashes later if interrupted half-way.

    Nor is garbage collected: that takes a sixth of the compiler's time and frees little.
    """
    pressed: list[Any] = []
    before: dict[signal.Signals, Callable[..., Any]] = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if callable(handler):
                before[number] = handler
                signal.signal(number, lambda *args: pressed.append(args))
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
        for number, handler in before.items():
            signal.signal(number, handler)
        if pressed:
            first, frame = pressed[0]
            before[first](first, frame)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile at the first call, release the interpreter's lock, and keep the code on disk.

    Where neither the package's folder nor the user's cache can be written, nothing is kept and
    every process compiles what it needs. `options`: those of `numba.njit`. Kernels have no `**`:
    numba compiles it once a process, with the options of the kernel that came first, and the bits
    would depend on which that was.
    """
    if function is None:
        return partial(kernel, **options)
    settings: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, **options}
    compiled: Any = njit(**settings)(function)
    if not config.DISABLE_JIT:  # type: ignore[attr-defined]  # else it is the function
        compiled.compile = _undisturbed()(compiled.compile)
        with contextlib.suppress(RuntimeError):  # no folder can be written
            compiled._cache = _Cache(function, settings)
    return compiled


def read_only(array: Any) -> Any:
    """A view of an array through which it cannot be written.

    Kernels that get it are compiled once; else they would be compiled again for arrays that cannot
    be written, as memory maps and those of pandas.
    """
    view = array.view()
    view.flags.writeable = False
    return view
