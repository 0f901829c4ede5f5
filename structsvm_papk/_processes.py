"""Worker processes that leave when they are not needed any more."""

import os
import signal
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from threading import Thread

from threadpoolctl import threadpool_limits

from structsvm_papk.errors import InputError


@contextmanager
def workers(jobs):
    """Yield a pool of processes; tasks that have not begun when its block is left are dropped.

    Ctrl-C ends the workers at once and silently, and so does the end of the process that started
    them, even a violent one: otherwise they would wait for tasks for ever.
    """
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_set_up)
    try:
        yield pool
    except BrokenProcessPool:
        raise InputError(
            "a worker process was ended from outside, perhaps for lack of memory; try fewer jobs"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _set_up():
    threadpool_limits(1)  # the workers share the processors
    signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent():
    parent_process().join()
    os._exit(1)
