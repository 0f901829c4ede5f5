"""Kill runs at random moments, resume them, and check what is on the disk in between.

    python tests/stress/kill_resume.py --problems 75

A scenario is run once without a break. Then it is started with a checkpoint folder, killed after a
random time, checked, started again, until it ends by itself. After every kill all files have to be
readable, and the newest state of each solve may not be behind the newest one of the kill before,
nor older than the interval allows. At the end the result has to be that of the uninterrupted run.
Most processes are forks of one that has loaded everything, so that kills fall into the work and not
into imports; others are commands that are started anew. Some end by SIGTERM, which they survive for
long enough to save.
"""

import json
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from searching import main

from structsvm_papk import PAPKRankerCV, cli
from structsvm_papk.datasets import linear_lists
from structsvm_papk.files.checkpoint import Checkpoint, read_saved

INTERVALS = (0.0, 0.05)
_SLACK = 2.0  # seconds that a write and its rename may take on a busy machine
_MOST = 12  # kills of one run: it may be killed faster than it can load its data
_PROGRAM = "import sys; from structsvm_papk.cli import main; sys.exit(main())"
# relative, of the objective; the others have no certificate, and are no worse than at the last kill
TOL = {"fit ts": 2e-6, "fit out of core": 2e-6, "compare": 2e-6, "cross-validation": 2e-4}
_BOUND = 1e-4  # by which the bound that is made anew from the cuts may be behind the saved one
_FIT = {
    "fit ts": ("rows.csv", "--surrogate", "ts", "--alpha", 1e-6),
    "fit out of core": ("rows.parquet", "--alpha", 1e-5, "--memory-budget", "20MB"),
    "fit clipped_ramp": ("rows.csv", "--surrogate", "clipped_ramp", "--alpha", 1e-3),
    "fit subgradient": ("rows.csv", "--solver", "subgradient", "--max-iter", 1000),
}
_COMPARE = ("compare", "rows.csv", "--k", 5, "--surrogate", "avg", "--surrogate", "ts")
SCENARIOS = {
    **{name: ("fit", *given, "--k", 5, "-o", "m.model") for name, given in _FIT.items()},
    "compare": (*_COMPARE, "--eta", 0.1, "--eta", 1, "--alpha", 1e-5),
    "cross-validation": None,
}


@cache
def lists():
    return linear_lists(n_users=300, n_items=60, n_features=60, seed=1)


def write_lists():
    """As CSV and as Parquet, in this folder."""
    data = lists()
    frame = pd.DataFrame(data.X).add_prefix("x")
    frame.insert(0, "group", data.groups)
    frame.insert(0, "label", data.y.astype(int))
    frame.to_csv("rows.csv", index=False, float_format="%.6g")
    frame.to_parquet("rows.parquet", index=False, row_group_size=2000)


def run(name, folder, interval):
    """A scenario in this process; its answer is written to ``out.json``."""
    if SCENARIOS[name] is not None:
        with open("out.json", "w") as sys.stdout:
            return cli.main(arguments(name, folder, interval))
    data = lists()
    model = PAPKRankerCV(
        k=5, surrogates=("ts",), depths=(None, 20), user_weights=("equal",),
        alphas=(0.1, 0.01, 1e-3), cv=4, checkpoint=folder and Checkpoint(folder, interval),
    ).fit(data.X, data.y, groups=data.groups)  # fmt: skip
    scores = np.round(model.cv_results_["mean_test_score"], 2).tolist()
    answer = {**model.best_params_, "objective": model.result_.objective, "scores": scores}
    return Path("out.json").write_text(json.dumps(answer)) and 0


def arguments(name, folder, interval):
    more = ["--checkpoint", folder, "--checkpoint-interval", interval] if folder else []
    return [str(part) for part in (*SCENARIOS[name], *more, "--json")]


# ----------------------------------------------------------------- one process


def forked(name, folder, interval):
    """Start a scenario in a fork; returns its process id."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os._exit(run(name, folder, interval))
    except BaseException:
        os._exit(3)


def started(name, folder, interval):
    """Start a command in a new process; returns its process id."""
    program = [sys.executable, "-c", _PROGRAM, *arguments(name, folder, interval)]
    with open("out.json", "w") as out:
        return subprocess.Popen(program, stdout=out, stderr=subprocess.DEVNULL).pid


def stopped_after(pid, seconds, how):
    """Whether a process had to be stopped after that time; raises where it failed by itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        time.sleep(0.002)
    else:
        os.kill(pid, how)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == -how or (how == signal.SIGTERM and code in (1, 130)):
            return True  # else it ended just before
    code = os.waitstatus_to_exitcode(status)
    assert code in (0, 1), f"a resumed run failed: {code}"
    return False


# ----------------------------------------------------------------- what is on the disk


def progress_on_disk(folder):
    """Newest result of every solve and its age, and finished parts; every file has to be sound."""
    states, finished, now = {}, set(), time.time()
    for path in folder.rglob("*"):
        if path.suffix == ".checkpoint":
            states[path.parent] = read_saved(path)[1], now - path.stat().st_mtime
        elif path.suffix == ".json":
            json.loads(path.read_text())
            finished.add(path)
    return states, finished


def check_no_loss(before, now, ran, interval):
    """Nothing on the disk is behind what was there at the last kill, or older than it may be."""
    assert before[1] <= now[1], "a finished part is gone"
    for place, (old, _) in before[0].items():
        new = now[0][place][0]
        assert len(new.history) >= len(old.history), f"{place}: lost progress"
        if old.history:
            last, old = new.history[-1], old.history[-1]
            assert last.objective <= old.objective * (1 + 1e-12), f"{place}: a worse point"
            assert not old.lower_bound - last.lower_bound > _BOUND, f"{place}: a worse bound"
    for result, age in now[0].values() if len(now[0]) == 1 else ():
        if result.status == "interrupted" and age <= ran:  # written since the start
            seconds = np.diff([0.0, *(entry.seconds for entry in result.history)])
            limit = interval + 2 * seconds.max(initial=0.0) + _SLACK
            assert age <= limit, f"unsaved for {age:.2f} s"


# ----------------------------------------------------------------- the search


@cache
def undisturbed(name):
    """The answer of a run without a break, and how many seconds it takes."""
    for _ in range(2):  # the first may have to compile
        began = time.monotonic()
        stopped_after(forked(name, None, 60.0), math.inf, None)
    return json.loads(Path("out.json").read_text()), time.monotonic() - began


def check(seed, report, only=None):
    """One run, killed several times; the scenario follows from the seed."""
    rng = np.random.default_rng(seed)
    name = only or list(SCENARIOS)[seed % len(SCENARIOS)]
    anew = SCENARIOS[name] is not None and rng.random() < 0.1
    how = signal.SIGTERM if rng.random() < 0.1 else signal.SIGKILL
    report.problem = f"{name}, {how.name}, {'new processes' if anew else 'forks'}"
    whole, alone = undisturbed(name)
    with tempfile.TemporaryDirectory() as place:
        folder, before = Path(place) / "checkpoint", ({}, set())
        for turn in range(_MOST + 1):
            seconds = math.inf if turn == _MOST else rng.uniform(0.0, alone)
            interval, at = float(rng.choice(INTERVALS)), time.monotonic()
            start = started if anew else forked
            if not stopped_after(start(name, folder, interval), seconds, how):
                break
            report.counts[f"kills: {report.problem}"] += 1
            now = progress_on_disk(folder)
            check_no_loss(before, now, time.monotonic() - at, interval)
            report.counts["kills with a checkpoint"] += bool(now[0] or len(now[1]) > 1)
            before = now
        check_result(name, whole, json.loads(Path("out.json").read_text()), report)
        assert not list(folder.rglob("*.tmp")), "a temporary file is left"


def check_result(name, whole, last, report):
    """Numbers that have to be the same are."""
    if name not in TOL:
        assert last["status"] == whole["status"], name
        return
    pairs = [(whole, last)]
    if name == "compare":
        pairs = [p for p in zip(whole["runs"], last["runs"], strict=True) if p[0]["converged"]]
    for one, other in pairs:
        one, other = one["objective"], other["objective"]
        deviation = abs(one - other) / max(one, 1e-3)
        report.figures[name].append(deviation)
        assert deviation <= TOL[name], deviation
    assert whole.get("alpha") == last.get("alpha")


def in_a_folder():
    """Everything in a temporary folder."""
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        write_lists()
        return main(check, __doc__, list(SCENARIOS), 75)


if __name__ == "__main__":
    sys.exit(in_a_folder())
