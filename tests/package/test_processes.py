"""The processes of `verify` end with it."""

import signal
import subprocess
import sys

import pytest

from helpers.marks import POSIX

pytestmark = [pytest.mark.recovery, pytest.mark.portable, POSIX]

PROGRAM = """
from structsvm_papk.propositions import verify
if __name__ == "__main__":
    verify(n_jobs=2, progress=lambda check: print(check.id, flush=True))
"""


def test_ctrl_c_ends_the_processes_in_mid_task(tmp_path, ctrl_c):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)  # until the last process that could write has ended
        assert process.returncode
