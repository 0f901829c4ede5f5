"""Tasks in several processes, each with one thread."""

import signal
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from threadpoolctl import threadpool_limits


def in_processes(function, tasks, jobs):
    """``map(function, tasks)`` in order, by `jobs` processes; Ctrl-C ends them."""
    context = get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_set_up) as pool:
        try:
            yield from pool.map(function, tasks)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _set_up():
    threadpool_limits(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started them
