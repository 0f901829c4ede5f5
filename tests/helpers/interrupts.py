"""Ctrl-C at a chosen moment, the same one in every run."""

import sys
from contextlib import contextmanager


@contextmanager
def ctrl_c_after_call(n, place="structsvm_papk"):
    """Raise KeyboardInterrupt as the n-th call made by code of a file or function returns.

    Signals arrive there, too: Python looks for them after calls and at the ends of loops. What is
    yielded is a list of the names of the functions that made a call.
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
            raise KeyboardInterrupt

    sys.setprofile(profile)
    try:
        yield callers
    finally:
        sys.setprofile(None)


def _is_in(code, place):
    return place in code.co_filename or place == code.co_name
