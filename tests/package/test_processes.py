"""Workers go when they should: after their tasks, on an exception, with their parent, at once."""

import os
import signal
import subprocess
import sys
import time

import pytest

from helpers.marks import POSIX
from structsvm_papk.errors import InputError
from structsvm_papk.propositions.running import workers

pytestmark = pytest.mark.portable

PARENT = """
import time
from structsvm_papk.propositions.running import workers
import os
if __name__ == "__main__":
    with workers(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 300).result()
"""


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_for_end(pid):
    for _ in range(2000):
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_failures_of_tasks_come_back_and_an_exception_ends_workers_in_mid_task():
    with pytest.raises(KeyboardInterrupt), workers(1) as pool:
        assert list(pool.map(abs, [-1, 2])) == [1, 2]
        with pytest.raises(ZeroDivisionError):
            pool.submit(divmod, 1, 0).result()
        pid = pool.submit(os.getpid).result()
        pool.submit(time.sleep, 300)
        raise KeyboardInterrupt
    assert wait_for_end(pid)


@POSIX
def test_a_worker_that_is_killed_is_told():
    with pytest.raises(InputError, match="fewer jobs"), workers(1) as pool:
        pool.submit(os.kill, pool.submit(os.getpid).result(), signal.SIGKILL).result()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks at /proc")
def test_workers_do_not_survive_their_parent(tmp_path):
    script = tmp_path / "parent.py"
    script.write_text(PARENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        assert is_alive(pid)
        parent.kill()
    assert wait_for_end(pid)
