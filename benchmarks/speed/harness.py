"""What measurements of speed share: options, clocks, fresh processes, memory, files of results.

Seconds are of the processor unless a function says otherwise: other programs on the machine change
them little. What is compared takes turns, and of several runs the fastest counts. `python -m
benchmarks` gives BLAS one thread, here and in the processes that are started here. Another Python,
without the package, can import this file.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MB = 1e6


# ----------------------------------------------------------------- options and results


def parser(doc):
    """The options of every measurement, to which a script adds its own."""
    options = argparse.ArgumentParser(description=doc.splitlines()[0])
    options.add_argument("--small", action="store_true", help="small problems: shows that it runs")
    options.add_argument("--json", type=Path, metavar="FILE", help="keep the numbers in this file")
    return options


def parsed(options, **small):
    """What is asked for; with ``--small`` the defaults are the small ones."""
    if "--small" in sys.argv:
        options.set_defaults(**small)
    return options.parse_args()


def save(path, content):
    """Keep numbers; parts of an object in the file that were not measured now stay."""
    if path is None:
        return
    if isinstance(content, dict) and path.exists():
        content = json.loads(path.read_text()) | content
    path.write_text(json.dumps(content, indent=1) + "\n")


def verdict(met):
    """How a target is reported."""
    return "met" if met else "MISSED"


def machine(libraries):
    """Processor, Python and versions."""
    about = {"python": platform.python_version(), "processor": _processor()}
    for name in libraries:
        try:
            about[name] = version(name)
        except PackageNotFoundError:
            continue
    return about


def _processor():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = (line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    return next(models, "unknown")


# ----------------------------------------------------------------- clocks


class Timed(NamedTuple):
    """What a call gave, and its seconds."""

    result: Any
    seconds: float


def timed(call, clock=time.process_time):
    """One call, without a warm-up."""
    started = clock()
    result = call()
    return Timed(result=result, seconds=clock() - started)


def median_seconds(call, repeats=11, clock=time.process_time):
    """Median seconds of a call; one call before warms up."""
    call()
    return statistics.median(timed(call, clock).seconds for _ in range(repeats))


def in_turns(calls, repeats, enough=float("inf"), clock=time.process_time):
    """The fastest run of each of several calls, by name; one round after the other.

    No further round begins after `enough` seconds.
    """
    best: dict[str, Timed] = {}
    began = time.perf_counter()
    for _ in range(repeats):
        for name, call in calls.items():
            run = timed(call, clock)
            if name not in best or run.seconds < best[name].seconds:
                best[name] = run
        if time.perf_counter() - began > enough:
            break
    return best


class Steps:
    """Seconds of one step of a program after the other: of clock, processor and this thread."""

    def __init__(self):
        self.seconds = {}
        self.processor = {}
        self.thread = {}
        self._begin()

    def _begin(self):
        self._clock = time.perf_counter()
        self._processor = time.process_time()
        self._thread = time.thread_time()

    def done(self, name):
        """What was done since the step before was this one."""
        self.seconds[name] = time.perf_counter() - self._clock
        self.processor[name] = time.process_time() - self._processor
        self.thread[name] = time.thread_time() - self._thread
        self._begin()


# ----------------------------------------------------------------- processes


def output(*arguments, env=None, cwd=ROOT, python=sys.executable):
    """What a fresh Python process with these arguments prints."""
    command = [python, *map(str, arguments)]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | (env or {}),
        cwd=cwd,
    )
    return done.stdout


def in_fresh_process(name, *arguments):
    """The JSON that ``python -m benchmarks NAME ARGUMENTS`` prints in a process of its own.

    Of two runs the second counts: the first may have to compile.
    """
    answers = [output("-m", "benchmarks", name, *arguments) for _ in range(2)]
    return json.loads(answers[-1])


def seconds_of_processes():
    """Processor seconds of the processes that were started from here and have ended."""
    times = os.times()
    return times.children_user + times.children_system


# ----------------------------------------------------------------- memory


def peak_mb():
    """Peak resident set of this process; `getrusage` would count the parent's before the exec."""
    if Path("/proc/self/status").exists():
        return memory_mb("VmHWM")
    scale = 1 if sys.platform == "darwin" else 1024  # bytes there, kibibytes elsewhere
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale / MB


def memory_mb(name):
    """A line of this process's status, ``VmRSS`` now or ``VmHWM`` at its peak, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024 / MB


def reset_peak():
    """Let the peak be what comes from now on (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
