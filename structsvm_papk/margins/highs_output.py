"""Integer programmes without the lines that some releases of HiGHS print."""

import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import scipy

# HiGHS 1.12, which is in SciPy 1.17, leaves a line of its developers on standard output in some
# integer programmes; later releases of HiGHS do not (ERGO-Code/HiGHS, issue 2783).
HIGHS_PRINTS = scipy.__version__.startswith("1.17.")
_LOCK = threading.Lock()


@contextmanager
def without_output() -> Iterator[None]:
    """Drop what compiled code prints on standard output within.

    The file descriptor belongs to the whole process: what another thread prints meanwhile may be
    dropped too, so this is for calls that print. What was printed before is written first.
    """
    library = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    with _LOCK:
        if sys.stdout is not None:
            sys.stdout.flush()
        library.fflush(None)
        try:
            standard_output = os.dup(1)
        except OSError:  # standard output is closed: nothing can be printed there
            yield
            return
        try:
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), 1)
            yield
        finally:
            library.fflush(None)
            os.dup2(standard_output, 1)
            os.close(standard_output)
