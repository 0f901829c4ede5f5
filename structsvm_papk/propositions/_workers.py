"""Worker processes that leave when they are not needed any more."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from threading import Thread

from threadpoolctl import threadpool_limits

from structsvm_papk.errors import InputError


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of processes; leaving its block with an exception ends them in mid-task.

    They hold one end of a pipe. Its other end closes when they are to leave, and also when the
    process that started them is killed: otherwise they would wait for tasks for ever.
    """
    context = get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_set_up, initargs=(theirs,))
    try:
        yield pool
    except BrokenProcessPool:
        raise InputError(
            "a worker process was ended from outside, perhaps for lack of memory; try fewer jobs"
        ) from None
    except BaseException:
        ours.close()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
        ours.close()
        theirs.close()


def _set_up(pipe: Connection) -> None:
    threadpool_limits(1)  # the workers share the processors
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started them
    Thread(target=_leave_when_closed, args=(pipe,), daemon=True).start()


def _leave_when_closed(pipe: Connection) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)
