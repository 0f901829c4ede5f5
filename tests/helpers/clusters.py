"""What may happen to the workers of a cluster."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager

_SCHEDULER = """
import sys
from distributed import LocalCluster
options = {"processes": False, "protocol": "tcp", "dashboard_address": ":0"}
cluster = LocalCluster(n_workers=1, threads_per_worker=3, **options)
print(cluster.scheduler_address, flush=True)
sys.stdin.read()
"""


def kill_a_worker(client):
    """Kill the worker that holds most, as the system does when memory runs out; its address."""
    holds = client.has_what()
    full = max(holds, key=lambda worker: len(holds[worker]))
    os.kill(client.run(os.getpid, workers=[full])[full], signal.SIGKILL)
    return full


@contextmanager
def other_scheduler():
    """A process with a scheduler and a worker, to be stopped or killed, and its address."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", _SCHEDULER], text=True, **pipes) as process:
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()
