"""Commands that are killed at random moments and started again until they end by themselves."""

import json
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from structsvm_papk.datasets import linear_lists
from structsvm_papk.files.checkpoint import read_saved

pytestmark = pytest.mark.stress

PROGRAM = "import sys; from structsvm_papk.cli import main; sys.exit(main())"
COMMANDS = {
    "fit": ("--surrogate", "ts", "--alpha", 1e-6, "-o", "m.model"),
    "fit out of core": ("--alpha", 1e-5, "--memory-budget", "20MB", "-o", "m.model"),
    "compare": ("--surrogate", "avg", "--surrogate", "ts", "--eta", 0.1, "--alpha", 1e-5),
}


def started(name, folder, *more):
    words = name.split()[0], "rows.parquet", "--k", 5, *COMMANDS[name], "--json", *more
    program = [sys.executable, "-c", PROGRAM, *map(str, words)]
    return subprocess.Popen(program, cwd=folder, stdout=-1, stderr=subprocess.DEVNULL)


def objectives(process):
    """Of the certified results; None where the process was killed."""
    out, _ = process.communicate()
    if process.returncode == -9:
        return None
    answer = json.loads(out)
    return [run["objective"] for run in answer.get("runs", [answer]) if run["converged"]]


def on_the_disk(folder):
    """Newest result of every solve; every file has to be sound."""
    return {path.parent: read_saved(path)[1] for path in folder.rglob("*.checkpoint")}


def length(results):
    return sum(len(result.history) for result in results.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_ends_where_it_would_have(name, tmp_path):
    data, rng, before = linear_lists(300, 60, 60, seed=1), np.random.default_rng(0), {}
    frame = pd.DataFrame(data.X).add_prefix("x").assign(group=data.groups, label=data.y.astype(int))
    frame.to_parquet(tmp_path / "rows.parquet", index=False, row_group_size=2000)
    whole, kept = objectives(started(name, tmp_path)), ("--checkpoint", "c")
    by_kills = set()
    for _ in range(2):
        process = started(name, tmp_path, *kept, "--checkpoint-interval", 0)
        while process.poll() is None and length(on_the_disk(tmp_path)) <= length(before):
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.05))  # anywhere in the next iterations, and before the end
        process.kill()
        now = on_the_disk(tmp_path)
        assert now and objectives(process) is None
        for place, old in before.items():
            assert len(now[place].history) >= len(old.history)
            assert now[place].objective <= old.objective * (1 + 1e-12)
        before = now
        left = {path for path in tmp_path.rglob("*.tmp") if path.parent == tmp_path}
        assert len(left - by_kills) <= 1 and all(p.name.startswith(".m.model.") for p in left)
        by_kills = left
    assert objectives(started(name, tmp_path, *kept)) == pytest.approx(whole, rel=2e-6)
    # a run that ends by itself leaves nothing; a kill, the file that was being written: that of a
    # checkpoint is removed by the next run, which alone has the folder
    assert set(tmp_path.rglob("*.tmp")) == by_kills
