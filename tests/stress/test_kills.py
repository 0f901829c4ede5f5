"""Commands that are killed at random moments and started again until they end by themselves."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from structsvm_papk.datasets import linear_lists
from structsvm_papk.files.checkpoint import _FILE

pytestmark = pytest.mark.stress

PROGRAM = """
import sys
from functools import partial
from structsvm_papk.cli import fit, main
fit.Checkpoint = partial(fit.Checkpoint, interval=0.0)  # each iteration is written
sys.exit(main())
"""
COMMANDS = {
    "fit": ("--surrogate", "ts", "--alpha", 1e-6, "--curves", "none", "-o", "m.model"),
    "fit of curves": ("--alpha", 1e-3, "--curves", 4, "-o", "m.model"),
    "fit out of core": (
        *("--alpha", 1e-5, "--curves", "none"),
        *("--memory-budget", "20MB", "-o", "m.model"),
    ),
}


def started(name, folder, *more):
    words = name.split()[0], "rows.parquet", "--k", 5, *COMMANDS[name], "--json", *more
    program = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(program, cwd=folder, stdout=-1, stderr=subprocess.DEVNULL)


def objective(process):
    """Of the certified result; None where the process was killed."""
    out, _ = process.communicate()
    if process.returncode == -9:
        return None
    answer = json.loads(out)
    assert answer["converged"]
    return answer["objective"]


def written(path):
    """When the checkpoint was written."""
    return path.stat().st_mtime_ns if path.exists() else 0


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_ends_where_it_would_have(name, tmp_path):
    data = linear_lists(300, 60, 60, seed=1)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(data.X).add_prefix("x").assign(group=data.groups, label=data.y.astype(int))
    frame.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=2000)
    whole = objective(started(name, tmp_path))
    kept = tmp_path / "kept"
    for _ in range(2):
        before = written(kept)
        process = started(name, tmp_path, "--checkpoint", kept)
        while process.poll() is None and written(kept) <= before:
            time.sleep(0.002)
        _FILE.read(kept)  # a file that is there is sound, whoever is writing the next
        time.sleep(rng.uniform(0, 0.05))  # anywhere in the next iterations, and before the end
        process.kill()
        assert objective(process) is None and written(kept) > before
        _FILE.read(kept)
    assert objective(started(name, tmp_path, "--checkpoint", kept)) == pytest.approx(
        whole, rel=2e-6
    )
    assert not list(tmp_path.glob("*.tmp"))  # nor what the killed runs were writing
