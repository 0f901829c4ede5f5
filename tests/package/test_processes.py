"""Workers go when they should: after their tasks, on an exception, with their parent, at once."""

import os
import signal
import subprocess
import sys
import time
from multiprocessing import active_children

import pytest

from helpers.marks import POSIX
from structsvm_papk.errors import InputError
from structsvm_papk.propositions.running import workers

pytestmark = pytest.mark.portable

PARENT = """
import time
from structsvm_papk.propositions.running import workers
if __name__ == "__main__":
    with workers(1) as pool:
        pool.submit(print, "at work", flush=True).result()
        pool.submit(time.sleep, 3000).result()
"""


def test_failures_of_tasks_come_back_and_an_exception_ends_workers_in_mid_task():
    with pytest.raises(KeyboardInterrupt), workers(1) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result()
        pid = pool.submit(os.getpid).result()
        worker = next(child for child in active_children() if child.pid == pid)
        task = pool.submit(time.sleep, 3000)
        while not task.running():
            time.sleep(0.01)
        raise KeyboardInterrupt
    worker.join(100)
    assert worker.exitcode is not None


@pytest.mark.recovery
@POSIX
def test_a_worker_that_is_killed_is_told():
    with pytest.raises(InputError, match="fewer jobs"), workers(1) as pool:
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()


@pytest.mark.recovery
def test_workers_do_not_survive_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "at work\n"
        parent.kill()
        assert parent.stdout.read() == ""  # it ends with the last process that could write
