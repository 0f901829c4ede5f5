"""What may happen to the workers of a cluster."""

import os
import signal


def kill_a_worker(client):
    """Kill the worker that holds most, as the system does when memory runs out; its address."""
    holds = client.has_what()
    full = max(holds, key=lambda worker: len(holds[worker]))
    os.kill(client.run(os.getpid, workers=[full])[full], signal.SIGKILL)
    return full
