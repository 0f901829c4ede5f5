"""Kill runs at random moments (SIGKILL), resume them, and check what is on the disk in between.

    python benchmarks/kill_resume.py --kills 200 --output benchmarks/results/kill_resume.json

Each scenario is run once without a break. Then it is started with a checkpoint folder, killed after
a random time, checked, started again, until it ends by itself, and all over again in a new folder.
After every kill all checkpoint files have to be readable, and the newest state of each solve may
not be behind the newest one of the kill before. At the end the result has to be that of the
uninterrupted run. The processes are forks of one that has loaded everything, so that kills fall
into the work and not into imports; `--processes 10` adds kills of commands that are started anew.
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

from structsvm_papk import PAPKRankerCV, cli
from structsvm_papk.checkpoint import Checkpoint, _read, unpack_history
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import InputError
from structsvm_papk.outputs import write_atomically
from structsvm_papk.run_record import differences

INTERVAL = 0.05
_MOST = 12  # kills of one run: it may be killed faster than it can load its data
_PROGRAM = "import sys; from structsvm_papk.cli import main; sys.exit(main())"
TOL = {"fit ts": 2e-6, "compare": 2e-6, "cross-validation": 2e-4}  # others: the same to the bit


@dataclass
class Scenario:
    """A run: `start(folder, output)` does it in this process, with or without a folder."""

    name: str
    start: object
    arguments: object = None


def command(name, *arguments):
    """A command line; the folder of checkpoints is added where there is one."""

    def full(folder):
        more = [] if folder is None else ["--checkpoint", folder]
        if folder is not None and "reproduce" not in arguments:
            more += ["--checkpoint-interval", INTERVAL]
        return [str(part) for part in (*arguments, *more, "--json")]

    def start(folder, output):
        with open(output, "w") as sys.stdout:
            cli.main(full(folder))

    return Scenario(name, start, full)


def cross_validation(data):
    def start(folder, output):
        model = PAPKRankerCV(
            k=5, surrogate="ts", alphas=(0.1, 0.01, 1e-3, 1e-4), n_folds=4,
            checkpoint=folder and Checkpoint(folder, INTERVAL),
        ).fit(data.X, data.y, groups=data.groups)  # fmt: skip
        told = {"alpha": model.alpha_, "objective": model.result_.objective}
        told["scores"] = np.round(model.cv_scores_, 2).tolist()
        Path(output).write_text(json.dumps(told))

    return Scenario("cross-validation", start)


def scenarios(place):
    data = linear_lists(n_users=300, n_items=60, n_features=60, seed=1)
    columns = np.column_stack([data.y, data.groups, data.X])
    header = "label,group," + ",".join(f"x{i}" for i in range(data.X.shape[1]))
    np.savetxt(place / "rows.csv", columns, "%.6g", ",", header=header, comments="")
    file, model = place / "rows.csv", place / "m.model"
    fit = ("fit", file, "-o", model, "--k", 5)
    return [
        command("fit ts", *fit, "--surrogate", "ts", "--alpha", 1e-6),
        command("fit clipped_ramp", *fit, "--surrogate", "clipped_ramp", "--alpha", 1e-3),
        command("fit subgradient", *fit, "--solver", "subgradient", "--max-iter", 1000),
        command("compare", "compare", file, "--k", 5, "--surrogate", "avg", "--surrogate", "ts",
                "--eta", 0.1, "--eta", 1, "--alpha", 1e-5),
        cross_validation(data),
        command("reproduce distinguishability", "reproduce", "distinguishability",
                "--replicates", 25, "--largest", 2000),
        command("reproduce coverage", "reproduce", "coverage", "--draws", 20, "--size", 200),
    ]  # fmt: skip


# ----------------------------------------------------------------- one process


def forked(scenario, folder, output):
    """Start a scenario in a fork; returns its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        scenario.start(folder, output)
        os._exit(0)
    except BaseException:
        os._exit(3)


def started(scenario, folder, output):
    """Start a scenario as a command of its own; returns its process id."""
    with open(output, "w") as out:
        program = [sys.executable, "-c", _PROGRAM, *scenario.arguments(folder)]
        return subprocess.Popen(program, stdout=out, stderr=subprocess.DEVNULL).pid


def killed_after(pid, seconds):
    """Whether a process had to be killed after that time; raises where it failed by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if finished(pid, os.WNOHANG):
            return False
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
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


def progress_on_disk(folder):
    """Newest state of every solve, and the finished parts; every file has to be sound."""
    states, parts = {}, set()
    for path in folder.rglob("*"):
        if path.suffix == ".checkpoint":
            description, arrays = _read(path)
            history = arrays["history"]
            last = unpack_history(history)[-1] if len(history) else None
            entry = (description["sequence"], len(history), last)
            states[path.parent] = max(states.get(path.parent, entry), entry, key=lambda e: e[0])
        elif path.suffix == ".json":
            json.loads(path.read_text())
            parts.add(path)
    return states, parts


def check_no_loss(before, now):
    """Nothing on the disk is behind what was there at the last kill."""
    assert before[1] <= now[1], "a finished part is gone"
    for place, (sequence, n_iter, last) in before[0].items():
        found = now[0][place]
        assert found[0] >= sequence and found[1] >= n_iter, f"{place}: progress was lost"
        if last is not None:
            assert found[2].objective <= last.objective, f"{place}: a worse point"
            assert found[2].lower_bound >= last.lower_bound, f"{place}: a worse bound"


def result_of(output):
    text = Path(output).read_text()
    return json.loads(text.replace("\n", ""))


# ----------------------------------------------------------------- the harness


def run(scenario, kills, rng, place, start=forked):
    """Kill a scenario so many times; returns what was seen."""
    output = place / "out.json"
    began = time.monotonic()
    finished(start(scenario, None, output))
    whole, alone = result_of(output), time.monotonic() - began
    seen = {"scenario": scenario.name, "kills": 0, "completed": 0, "with_checkpoint": 0,
            "seconds_alone": round(alone, 2), "largest_deviation": 0.0}  # fmt: skip
    while seen["kills"] < kills:
        folder = place / "checkpoint"
        shutil.rmtree(folder, ignore_errors=True)
        before = ({}, set())
        for turn in count():
            enough = turn == _MOST or seen["kills"] == kills
            seconds = math.inf if enough else rng.uniform(0.0, alone)
            if not killed_after(start(scenario, folder, output), seconds):
                break
            seen["kills"] += 1
            now = progress_on_disk(folder) if folder.exists() else ({}, set())
            check_no_loss(before, now)
            seen["with_checkpoint"] += bool(now[0] or len(now[1]) > 1)
            before = now
        deviation = check_result(scenario.name, whole, result_of(output))
        seen["largest_deviation"] = max(seen["largest_deviation"], deviation)
        seen["completed"] += 1
        assert not list(folder.rglob("*.tmp")), "a temporary file is left"
    return seen


def check_result(name, whole, found):
    """Largest relative deviation of a number that has to be the same."""
    if name not in TOL:
        assert not differences(whole, found, 0.0), (name, differences(whole, found, 0.0)[:3])
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


def full_disk(scenario, place):
    """Checkpoints on a disk of 300 kB, and on one that is read-only, where mounting is allowed."""
    disk = place / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", disk]).returncode:
        return None
    try:
        output = place / "out.json"
        arguments = scenario.arguments(disk / "c")
        status, told = _captured(arguments, output)
        states = progress_on_disk(disk / "c")[0]
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        refused, why = _captured(scenario.arguments(disk / "c"), place / "none.json")
        kept = progress_on_disk(disk / "c")[0]
        return {
            "full": {"status": status, "message": told, "readable_states": len(states)},
            "read_only": {"status": refused, "message": why, "kept": kept == states},
        }
    finally:
        subprocess.run(["umount", disk], check=True)


def _captured(arguments, output):
    with open(output, "w") as out:
        program = [sys.executable, "-c", _PROGRAM, *arguments]
        done = subprocess.run(program, stdout=out, stderr=subprocess.PIPE, text=True)
    lines = [line for line in done.stderr.splitlines() if "cannot write" in line]
    return done.returncode, lines[0] if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=10, help="Further kills of new processes.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path)
    args = parser.parse_args()
    rng = random.Random(args.seed)
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        every = scenarios(place)
        for scenario in every:
            rows.append(run(scenario, -(-args.kills // len(every)), rng, place))
            print(json.dumps(rows[-1]), flush=True)
        if args.processes:
            row = run(every[0], args.processes, rng, place, started)
            rows.append({**row, "scenario": f"{row['scenario']}, new processes"})
            print(json.dumps(rows[-1]), flush=True)
        try:
            disks = full_disk(every[0], place)
        except InputError as error:
            disks = {"error": str(error)}
    found = {
        "kills": sum(row["kills"] for row in rows),
        "completed": sum(row["completed"] for row in rows),
        "corrupt": 0,  # a single one would have ended this
        "seconds": round(time.monotonic() - began, 1),
        "rows": rows,
        "disks": disks,
    }
    print(json.dumps({**found, "rows": len(rows)}, indent=1))
    if args.output is not None:
        write_atomically(args.output, json.dumps(found, indent=1).encode())


if __name__ == "__main__":
    main()
