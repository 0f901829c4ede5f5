"""The numeric and documentation tests as other machines would run them, and on other Pythons.

    python tools/machines.py                        every machine, Python 3.12 and 3.13
    python tools/machines.py --machines Prescott --pythons
    python tools/machines.py -- -k surrogates       arguments of pytest

A machine is made of environment variables: which kernels OpenBLAS takes, for which CPU numba
compiles, which instructions NumPy and the C library may use, how many threads BLAS has. Each has to
pass the everyday tests but those marked portable, and the pages; without arguments of pytest, some
run the examples too, whose output has to be the same text.
What this computer cannot be, and what cannot be obtained, is skipped with a line that says so.
Run it with the interpreter of an environment that has the extra ``test``.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1800  # seconds of one command
NUMERIC = "not (portable or slow or study or scale or stress or recovery)"
GENERIC = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}  # x86-64 of 2003: SSE2 only
NO_AVX = {
    "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F",
}
_ARCHITECTURES = """
import numpy, scipy.linalg, threadpoolctl
blas = [one for one in threadpoolctl.threadpool_info() if one["internal_api"] == "openblas"]
print(",".join(sorted({one["architecture"] for one in blas})))
"""


@dataclass(frozen=True)
class Machine:
    """One emulated computer; `architectures` are OpenBLAS's own names for what `blas` gives."""

    blas: str
    architectures: tuple
    threads: int
    needs: tuple = ()
    extra: dict = field(default_factory=dict)
    examples: bool = False

    @property
    def environment(self):
        """Its environment variables."""
        threads = {f"{name}_NUM_THREADS": str(self.threads) for name in ("OPENBLAS", "OMP")}
        return {"OPENBLAS_CORETYPE": self.blas, **threads, **self.extra}


# Each lane runs in turn, so that its machines share numba's cache; lanes run side by side.
LANES = (
    (
        Machine("SkylakeX", ("SkylakeX",), 1, ("avx512f", "avx512dq", "avx512bw", "avx512vl")),
        Machine("Haswell", ("Haswell",), 2, ("avx2", "fma"), examples=True),
    ),
    (
        Machine("Prescott", ("Prescott", "Katmai"), 1, (), GENERIC | NO_AVX, examples=True),
        Machine("Nehalem", ("Nehalem",), 1, ("sse4_2",), GENERIC),
        Machine("Zen", ("Zen", "Haswell"), 2, ("avx2", "fma"), GENERIC),
    ),
)
PYTHONS = ("3.12", "3.13")


def _call(command, log, environment, cwd=ROOT):
    """Run with the output appended to a file; the exit status. What hangs is told to say where."""
    environment = os.environ | environment | {"PYTHONFAULTHANDLER": "1"}
    options = {"cwd": cwd, "env": environment, "stderr": subprocess.STDOUT}
    command = [str(part) for part in command]
    with log.open("a") as out, subprocess.Popen(command, stdout=out, **options) as process:
        try:
            return process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGABRT)
            return process.wait()


def _answer(*command, environment=None):
    """What a command prints, or None where it is not there or fails."""
    try:
        environment = os.environ | (environment or {})
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _outcome(log, status):
    """The last line of a log; a status below zero is the signal that ended the process."""
    lines = [line for line in log.read_text().splitlines() if line.strip()]
    ended = f"ended by signal {-status}: " if status < 0 else ""
    return ended + (lines[-1] if lines else "no output")


def why_not(machine):
    """Why this computer cannot be `machine`, or None."""
    cpuinfo = Path("/proc/cpuinfo")
    flags = cpuinfo.read_text().split() if cpuinfo.exists() else []
    missing = [flag for flag in machine.needs if flag not in flags]
    if missing:
        return f"this CPU has no {', '.join(missing)}"
    environment = machine.environment
    seen = _answer(sys.executable, "-c", _ARCHITECTURES, environment=environment)
    if not seen or not set(seen.split(",")) <= set(machine.architectures):
        return f"OpenBLAS answers {seen!r}"
    return None


def run_machine(machine, cache, folder, pytest_args):
    """Tests and examples on one machine; what came of it, and whether it is well."""
    name = f"{machine.blas}, {machine.extra.get('NUMBA_CPU_NAME', 'this')} numba CPU"
    name = f"{name}, {machine.threads} BLAS thread(s)"
    reason = why_not(machine)
    if reason:
        return f"{name}: skipped, {reason}", True
    start = time.monotonic()
    log = folder / f"{machine.blas}.log"
    environment = machine.environment | {"NUMBA_CACHE_DIR": str(cache), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", NUMERIC]
    status = _call([*command, *pytest_args], log, environment)
    outcome = _outcome(log, status)
    scripts = sorted((ROOT / "examples").glob("*.py"))
    for script in scripts if machine.examples and not pytest_args else ():
        place = folder / f"{machine.blas}-examples"
        place.mkdir(exist_ok=True)
        status = status or _call([sys.executable, script], place / script.stem, environment, place)
    if status:
        print((log.read_text())[-20000:])
    return f"{name}: {outcome} ({time.monotonic() - start:.0f} s)", status == 0


def find_python(version):
    """An interpreter of this version: on PATH, known to uv, or to pyenv; or None."""
    candidates = [shutil.which(f"python{version}"), _answer("uv", "python", "find", version)]
    full = _answer("pyenv", "latest", version)
    prefix = full and _answer("pyenv", "prefix", full)
    candidates.append(prefix and str(Path(prefix) / "bin" / "python"))
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    usable = (path for path in candidates if path and _answer(path, "-c", code) == version)
    return next(usable, None)


def run_python(version, folder, pytest_args):
    """The tests in a fresh environment of another Python, with the newest libraries."""
    python = find_python(version)
    if python is None:
        return f"Python {version}: skipped, not on PATH, nor known to uv or pyenv", True
    start = time.monotonic()
    log = folder / f"py{version}.log"
    place = folder / f"py{version}"
    new = place / "bin"
    environment = {"NUMBA_CACHE_DIR": str(folder / f"cache-{version}"), "PYTHONPATH": ""}
    pip = [new / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    tests = [new / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", NUMERIC]
    commands = ([python, "-m", "venv", place], [*pip, ".[test]"], [*tests, *pytest_args])
    status = next((bad for one in commands if (bad := _call(one, log, environment))), 0)
    if status:
        print((log.read_text())[-20000:])
    return (
        f"Python {version}: {_outcome(log, status)} ({time.monotonic() - start:.0f} s)",
        status == 0,
    )


def differences(folder):
    """Examples that printed another text on one machine than on another."""
    first, *others = sorted(folder.glob("*-examples")) or [None]
    for other in others:
        for text in sorted(first.iterdir()):
            same = text.suffix == ".png" or text.read_text() == (other / text.name).read_text()
            if not same:
                yield f"examples/{text.name}.py prints other text on {first.name} and {other.name}"


def run_all(given, folder):
    """Two lanes side by side; the outcomes in the order in which they come."""
    well = True

    def lane(jobs):
        nonlocal well
        for job in jobs:
            sentence, good = job()
            well = well and good
            print(sentence, flush=True)

    lanes = []
    for number, machines in enumerate(LANES):
        jobs = [
            lambda one=one, cache=folder / f"cache-{number}": run_machine(
                one, cache, folder, given.pytest
            )
            for one in machines
            if one.blas in given.machines
        ]
        jobs += [
            lambda version=version: run_python(version, folder, given.pytest)
            for version in PYTHONS[number::2]
            if version in given.pythons
        ]
        lanes.append(jobs)
    with ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(lane, lanes))
    faults = list(differences(folder))
    print(*faults, sep="\n", end="\n" if faults else "")
    return well and not faults


def main():
    """Print a line for each machine; status 1 if one failed."""
    names = [machine.blas for lane in LANES for machine in lane]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--machines", nargs="*", default=names, choices=names)
    parser.add_argument("--pythons", nargs="*", default=PYTHONS, choices=PYTHONS)
    parser.add_argument("pytest", nargs="*", metavar="-- arguments of pytest")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return 0 if run_all(given, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
