"""Kill runs at random moments (SIGKILL), resume them, and check what is on the disk in between.

    python tests/stress/kill_resume.py --kills 220 --output tests/stress/results/kill_resume.json

Each scenario is run once without a break. Then it is started with a checkpoint folder, killed after
a random time, checked, started again, until it ends by itself, and all over again in a new folder.
After every kill all files have to be readable, and the newest state of each solve may not be behind
the newest one of the kill before, nor older than the interval allows. At the end the result has to
be that of the uninterrupted run. The processes are forks of one that has loaded everything, so that
kills fall into the work and not into imports; `--processes` adds kills of commands that are started
anew, `--terminations` ends commands by SIGTERM, which they survive for long enough to save.
"""

import argparse
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow
from pyarrow import parquet

from structsvm_papk import PAPKRankerCV, cli
from structsvm_papk.datasets import linear_lists
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.files.checkpoint import Checkpoint, read_saved

INTERVALS = (0.0, 0.05)
_SLACK = 2.0  # seconds that a write and its rename may take on a busy machine
_MOST = 12  # kills of one run: it may be killed faster than it can load its data
_PROGRAM = "import sys; from structsvm_papk.cli import main; sys.exit(main())"
# relative, of the objective; the others have no certificate, and are no worse than at the last kill
TOL = {"fit ts": 2e-6, "fit out of core": 2e-6, "compare": 2e-6, "cross-validation": 2e-4}
_BOUND = 1e-4  # by which the bound that is made anew from the cuts may be behind the saved one


@dataclass
class Scenario:
    """A run: `start(folder, interval, output)` does it here, with or without a folder."""

    name: str
    start: object
    arguments: object = None


def command(name, *arguments):
    """A command line; the folder is added where there is one."""

    def full(folder, interval):
        more = ["--checkpoint", folder, "--checkpoint-interval", interval] if folder else []
        return [str(part) for part in (*arguments, *more, "--json")]

    def start(folder, interval, output):
        with open(output, "w") as sys.stdout:
            return cli.main(full(folder, interval))

    return Scenario(name, start, full)


def cross_validation(data):
    def start(folder, interval, output):
        model = PAPKRankerCV(
            k=5, surrogates=("ts",), depths=(None, 20), user_weights=("equal",),
            alphas=(0.1, 0.01, 1e-3), cv=4,
            checkpoint=folder and Checkpoint(folder, interval),
        ).fit(data.X, data.y, groups=data.groups)  # fmt: skip
        told = {**model.best_params_, "objective": model.result_.objective}
        told["scores"] = np.round(model.cv_results_["mean_test_score"], 2).tolist()
        Path(output).write_text(json.dumps(told))

    return Scenario("cross-validation", start)


def written(data, place):
    """The data as CSV and as Parquet; returns both paths."""
    columns = np.column_stack([data.y, data.groups, data.X])
    names = ["label", "group", *(f"x{i}" for i in range(data.X.shape[1]))]
    np.savetxt(place / "rows.csv", columns, "%.6g", ",", header=",".join(names), comments="")
    whole = pyarrow.table(dict(zip(names, columns.T, strict=True)))
    parquet.write_table(whole, place / "rows.parquet", row_group_size=2000)
    return place / "rows.csv", place / "rows.parquet"


def scenarios(place):
    data = linear_lists(n_users=300, n_items=60, n_features=60, seed=1)
    (file, pieces), model = written(data, place), place / "m.model"
    fit = ("--k", 5, "-o", model)
    return [
        command("fit ts", "fit", file, *fit, "--surrogate", "ts", "--alpha", 1e-6),
        command("fit out of core", "fit", pieces, *fit, "--alpha", 1e-5, "--memory-budget", "20MB"),
        command("fit clipped_ramp", "fit", file, *fit, "--surrogate", "clipped_ramp",
                "--alpha", 1e-3),
        command("fit subgradient", "fit", file, *fit, "--solver", "subgradient",
                "--max-iter", 1000),
        command("compare", "compare", file, "--k", 5, "--surrogate", "avg", "--surrogate", "ts",
                "--eta", 0.1, "--eta", 1, "--alpha", 1e-5),
        cross_validation(data),
    ]  # fmt: skip


# ----------------------------------------------------------------- one process


def forked(scenario, folder, interval, output):
    """Start a scenario in a fork; returns its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os._exit(scenario.start(folder, interval, output) or 0)
    except BaseException:
        os._exit(3)


def started(scenario, folder, interval, output):
    """Start a scenario as a command of its own; returns its process id."""
    with open(output, "w") as out:
        program = [sys.executable, "-c", _PROGRAM, *scenario.arguments(folder, interval)]
        return subprocess.Popen(program, stdout=out, stderr=subprocess.DEVNULL).pid


def stopped_after(pid, seconds, how):
    """Whether a process had to be stopped after that time; raises where it failed by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if finished(pid, os.WNOHANG):
            return False
        time.sleep(0.002)
    os.kill(pid, how)
    _, status = os.waitpid(pid, 0)
    if how == signal.SIGTERM and os.waitstatus_to_exitcode(status) in (1, 130, -signal.SIGTERM):
        return True
    if not os.WIFSIGNALED(status):  # it ended just before
        check_exit(status)
        return False
    return True


def finished(pid, flags=0):
    found, status = os.waitpid(pid, flags)
    if found:
        check_exit(status)
    return bool(found)


def check_exit(status):
    if os.waitstatus_to_exitcode(status) not in (0, 1):
        raise AssertionError(f"a resumed run failed: {os.waitstatus_to_exitcode(status)}")


# ----------------------------------------------------------------- what is on the disk


@dataclass
class State:
    """The newest state of one solve on the disk."""

    result: object
    age: float

    @property
    def last(self):
        return self.result.history[-1] if self.result.history else None

    @property
    def longest(self):
        """Seconds of an iteration."""
        seconds = np.diff([0.0, *(entry.seconds for entry in self.result.history)])
        return float(seconds.max(initial=0.0))


def progress_on_disk(folder):
    """Newest state of every solve, and the finished parts; every file has to be sound."""
    states, parts, now = {}, set(), time.time()
    for path in folder.rglob("*"):
        if path.suffix == ".checkpoint":
            states[path.parent] = State(read_saved(path)[1], now - path.stat().st_mtime)
        elif path.suffix == ".json":
            json.loads(path.read_text())
            parts.add(path)
    return states, parts


def check_no_loss(before, now, ran, interval):
    """Nothing on the disk is behind what was there at the last kill, or older than it may be.

    Returns the largest age, in seconds, of the newest state of a fit that was going on.
    """
    assert before[1] <= now[1], "a finished part is gone"
    for place, old in before[0].items():
        new = now[0][place]
        assert len(new.result.history) >= len(old.result.history), f"{place}: lost progress"
        if old.last is not None:
            assert new.last.objective <= old.last.objective * (1 + 1e-12), f"{place}: a worse point"
            behind = old.last.lower_bound - new.last.lower_bound
            assert not behind > _BOUND, f"{place}: a worse bound"
    if len(now[0]) != 1:
        return 0.0
    (state,) = now[0].values()
    if (
        state.result.status != "interrupted" or state.age > ran
    ):  # nothing was written since the start
        return 0.0
    assert state.age <= interval + 2 * state.longest + _SLACK, f"unsaved for {state.age:.2f} s"
    return state.age


def result_of(output):
    return json.loads(Path(output).read_text())


# ----------------------------------------------------------------- the harness


def run(scenario, kills, rng, place, start=forked, how=signal.SIGKILL):
    """Stop a scenario so many times; returns what was seen."""
    output, folder = place / "out.json", place / "checkpoint"
    for _ in range(2):  # the first may have to compile
        began = time.monotonic()
        finished(start(scenario, None, 60.0, output))
        whole, alone = result_of(output), time.monotonic() - began
    seen = {"scenario": scenario.name, "kills": 0, "completed": 0, "with_checkpoint": 0,
            "seconds_alone": round(alone, 2), "oldest_state_seconds": 0.0,
            "largest_deviation": 0.0}  # fmt: skip
    while seen["kills"] < kills:
        shutil.rmtree(folder, ignore_errors=True)
        before = ({}, set())
        for turn in count():
            enough = turn == _MOST or seen["kills"] == kills
            seconds = math.inf if enough else rng.uniform(0.0, alone)
            interval, at = rng.choice(INTERVALS), time.monotonic()
            if not stopped_after(start(scenario, folder, interval, output), seconds, how):
                break
            seen["kills"] += 1
            now = progress_on_disk(folder) if folder.exists() else ({}, set())
            age = check_no_loss(before, now, time.monotonic() - at, interval)
            seen["oldest_state_seconds"] = max(seen["oldest_state_seconds"], round(age, 3))
            seen["with_checkpoint"] += bool(now[0] or len(now[1]) > 1)
            before = now
        deviation = check_result(scenario.name, whole, result_of(output))
        seen["largest_deviation"] = max(seen["largest_deviation"], deviation)
        seen["completed"] += 1
        states = [path.parent for path in folder.rglob("*.checkpoint")]
        assert not any(list(state.glob("*.tmp")) for state in states), "a temporary file is left"
    return seen


def check_result(name, whole, found):
    """Largest relative deviation of a number that has to be the same."""
    if name not in TOL:
        assert found["status"] == whole["status"], name
        return 0.0
    if name == "compare":
        pairs = list(zip(whole["runs"], found["runs"], strict=True))
        pairs = [(a["objective"], b["objective"]) for a, b in pairs if a["converged"]]
    else:
        pairs = [(whole["objective"], found["objective"])]
    deviation = max(abs(a - b) / max(a, 1e-3) for a, b in pairs)
    assert deviation <= TOL[name], (name, deviation)
    assert whole.get("alpha") == found.get("alpha")
    return deviation


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=220)
    parser.add_argument("--processes", type=int, default=10, help="Further kills of new processes.")
    parser.add_argument("--terminations", type=int, default=20, help="Further ends by SIGTERM.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    found = {"rows": []}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        for label, row in rows(args, rng, place):
            print(label, json.dumps(row), flush=True)
            found["rows"].append({**row, "scenario": label})
            found |= {key: sum(row[key] for row in found["rows"]) for key in ("kills", "completed")}
            found["corrupt"] = 0  # a single one would have ended this
            if args.output is not None:
                write_atomically(args.output, json.dumps(found, indent=1).encode())


def rows(args, rng, place):
    """What was seen, labelled, one after the other."""
    every = scenarios(place)
    for scenario in every:
        yield scenario.name, run(scenario, -(-args.kills // len(every)), rng, place)
    first = every[0]
    if args.processes:
        yield f"{first.name}, new processes", run(first, args.processes, rng, place, started)
    if args.terminations:
        row = run(first, args.terminations, rng, place, forked, signal.SIGTERM)
        yield f"{first.name}, SIGTERM", row


if __name__ == "__main__":
    main()
