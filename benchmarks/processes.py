"""Measurements in fresh processes of one thread."""

import json
import os
import subprocess
import sys

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def output(*arguments, env=None, cwd=None):
    """What a Python process with these arguments prints."""
    env = os.environ | dict.fromkeys(THREADS, "1") | (env or {})
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=env, cwd=cwd)
    return done.stdout


def answer(*arguments):
    """The JSON that the second of two such processes prints: the first may have to compile."""
    return json.loads([output(*arguments) for _ in range(2)][1])
