"""How kernels are compiled and where the compiled code is kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher


class _Cache(FunctionCache):
    """numba's cache on disk, which is a help and never a condition: what cannot be kept is not."""

    def save_overload(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):  # the disk or a quota is full, the folder has gone
            super().save_overload(sig, data)


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile at the first call, without the interpreter's lock, and keep the code for later ones.

    Nothing is kept where neither the package's folder nor the user's cache can be written: every
    process then compiles what it needs. `options`: those of `numba.njit`.
    """
    if function is None:
        return partial(kernel, **options)
    compiled = njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if isinstance(compiled, Dispatcher):  # else numba is switched off by NUMBA_DISABLE_JIT
        with contextlib.suppress(RuntimeError):  # no folder can be written
            compiled._cache = _Cache(function)
    return compiled
