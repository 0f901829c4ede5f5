"""Ctrl-C at any time: the best point so far or nothing, and never anything half done."""

import json
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pandas as pd
import pytest

from helpers.interrupts import ctrl_c_after_call
from helpers.marks import POSIX, slow, some_of
from helpers.problems import objective, risk
from structsvm_papk import (
    CCCP,
    CuttingPlane,
    DualAscent,
    GlobalRamp,
    SubgradientDescent,
)
from structsvm_papk.datasets import linear_lists
from structsvm_papk.errors import interrupted, interrupts_noted
from structsvm_papk.files import load_model
from structsvm_papk.oracles.list_risk import ListRisk
from structsvm_papk.solvers.solver import Status

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


SOLVERS = {
    "bundle": (CuttingPlane(1e-3), risk("ts")),
    "one_slack": (CuttingPlane(1e-2, method="one_slack"), risk("ts")),
    "ascent": (DualAscent(1e-3), risk("avg")),
    "cccp": (CCCP(1e-2, tol=1e-3), risk("clipped_ramp")),
    "global": (GlobalRamp(1.0, tol=1e-2), risk("ramp", n_features=1)),
    "subgradient": (SubgradientDescent(1e-2, max_iter=20), risk("ts")),
    "average": (SubgradientDescent(1e-2, max_iter=20, keep="average"), risk("ts")),
}
LONG = ("one_slack",)
NAMES = [slow(name) if name in LONG else name for name in SOLVERS]


def check(result, solver, oracle, whole):
    """The point belongs to its objective, and the bound is one; early ends say so."""
    assert result.objective == pytest.approx(objective(oracle, solver.alpha, result.w), rel=1e-12)
    assert result.lower_bound <= min(result.objective, whole.objective * (1 + 1e-12))
    assert result.status in (Status.INTERRUPTED, whole.status)
    return result.status is Status.INTERRUPTED


@pytest.mark.parametrize("name", NAMES)
def test_after_any_call_a_solve_ends_at_its_best_point(name):
    solver, oracle = SOLVERS[name]
    whole = solver.solve(oracle)
    with ctrl_c_after_call(-1) as callers:
        solver.solve(oracle)
    n_ended = 0
    calls = np.unique(np.geomspace(100, 0.9 * len(callers), some_of(12)).astype(int))
    for n in calls:
        with ctrl_c_after_call(n):
            n_ended += check(solver.solve(oracle), solver, oracle, whole)
    assert n_ended >= len(calls) - 2  # the last steps may be all that was left


def test_the_step_that_runs_is_finished_and_a_second_ctrl_c_ends_it(monkeypatch):
    solver, oracle = SOLVERS["bundle"]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    cuts = ListRisk.cuts
    calls = []

    def pressed(self, w):
        calls.append(w)
        if len(calls) == 3:
            for _ in range(n_times):
                signal.raise_signal(signal.SIGINT)
        return cuts(self, w)

    monkeypatch.setattr(ListRisk, "cuts", pressed)
    try:
        n_times = 1
        assert solver.solve(oracle).status is Status.INTERRUPTED and len(calls) == 3
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler and not interrupted()
        calls.clear()
        n_times = 2
        with pytest.raises(KeyboardInterrupt):
            solver.solve(oracle)
        calls.clear()
        n_times = 0
        assert solver.solve(oracle).converged
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_handlers_and_threads_are_left_alone():
    mine = []
    before = signal.signal(signal.SIGINT, lambda *_: mine.append(1))
    try:
        with interrupts_noted():
            signal.raise_signal(signal.SIGINT)
            assert mine and not interrupted()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with interrupts_noted(), interrupts_noted():
            thread = threading.Thread(target=lambda: SOLVERS["bundle"][0].solve(risk("ts")))
            thread.start()
            thread.join()
            signal.raise_signal(signal.SIGINT)
            assert interrupted()
        assert not interrupted()
    finally:
        signal.signal(signal.SIGINT, before)


# --- commands -------------------------------------------------------------------------------------

PROGRAM = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from structsvm_papk.cli import main; sys.exit(main())"
)
COMMANDS = {
    "fit": ("rows.csv", "--surrogate", "ts", "--alpha", 1e-6, "--tol", 1e-9, "--model", "out"),
    "fit in pieces": ("folder", "--alpha", 1e-6, "--memory-budget", "8MB", "--model", "out"),
    "fit ramp": ("rows.csv", "--surrogate", "ramp", "--tol", 1e-9, "--model", "out"),
    "compare": ("rows.csv", "--alpha", 1e-5),
    "diagnose": ("rows.csv",),
    "verify": ("--check", "prop4"),
    "margins": ("rows.csv", "--time-limit", 5),  # of each search, which nothing interrupts
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("interrupts")
    lists = linear_lists(300, 40, 12, seed=1)
    frame = pd.DataFrame(lists.X).add_prefix("x").assign(group=lists.groups)
    frame.assign(label=lists.y.astype(int)).to_csv(folder / "rows.csv", index=False)
    (folder / "folder").mkdir()
    for name, values in (("X", lists.X), ("y", lists.y), ("groups", lists.groups)):
        np.save(folder / "folder" / f"{name}.npy", values)
    return folder


@pytest.mark.recovery
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("name", COMMANDS)
def test_by_the_clock_a_command_ends_with_a_result_or_with_130(name, how, folder):
    words = [name.split()[0], *COMMANDS[name], *(() if name == "verify" else ("--k", 5)), "--json"]
    command = [sys.executable, "-c", PROGRAM, *map(str, words)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    out = folder / "out"
    rng = np.random.default_rng([how, list(COMMANDS).index(name)])
    out.unlink(missing_ok=True)
    with subprocess.Popen(command, cwd=folder, **pipes) as started:
        time.sleep(rng.uniform(2.0, 6.0))
        started.send_signal(how)
        shown, said = started.communicate(timeout=120)
    # Python itself says so of one that comes in a callback of the import system, and goes on
    of_imports = r"Exception ignored in: <function _get_module_lock.*?^KeyboardInterrupt:? ?$"
    assert "Traceback" not in re.sub(of_imports, "", said, flags=re.DOTALL | re.MULTILINE)
    answer = json.loads(shown)
    assert started.returncode in (0, 1, 130)
    if started.returncode == 130:
        assert answer == {"error": "interrupted"} and said.endswith("Error: interrupted\n")
    if out.exists():
        assert load_model(out).certificate["objective"] > 0.0
    assert not list(folder.glob(".*.tmp"))


# --- processes of verify --------------------------------------------------------------------------


VERIFYING = """
from structsvm_papk.propositions import verify
if __name__ == "__main__":
    verify(n_jobs=2, progress=lambda check: print(check.id, flush=True))
"""


@POSIX
@pytest.mark.recovery
def test_ctrl_c_ends_the_processes_in_mid_task(tmp_path, ctrl_c):
    script = tmp_path / "program.py"
    script.write_text(VERIFYING)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, script], stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=100)  # until the last process that could write has ended
        assert process.returncode
