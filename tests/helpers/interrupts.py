"""Ctrl-C at a chosen moment: after a number of calls, the same in every run, or by the clock."""

import signal
import sys
from contextlib import contextmanager


@contextmanager
def _sent():
    """SIGINT raises KeyboardInterrupt outside of solves, also where pytest was started without."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ctrl_c_after_call(n, place="structsvm_papk"):
    """Send SIGINT as the n-th call made by code of a file or function returns.

    What is yielded is a list of the names of the functions that made a call.
    """
    callers = []

    def profile(frame, event, _):
        if event not in ("c_return", "return"):
            return
        caller = frame if event == "c_return" else frame.f_back
        if caller is None or not _is_in(caller.f_code, place):
            return
        callers.append(caller.f_code.co_name)
        if len(callers) == n:
            sys.setprofile(None)
            signal.raise_signal(signal.SIGINT)

    with _sent():
        sys.setprofile(profile)
        try:
            yield callers
        finally:
            sys.setprofile(None)


@contextmanager
def ctrl_c_after(seconds):
    """Send SIGINT by the clock."""
    with _sent():
        before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds)
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _is_in(code, place):
    return place in code.co_filename or place == code.co_name
