"""Compiled code is kept where that is possible; where it is not, everything still works."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from structsvm_papk import _jit

LOW = "from mini._jit import kernel\n\n\n@kernel\ndef low(x):\n    return x + {}\n"
HIGH = LOW.replace("low", "high").format(0).replace("x +", "low(x) +")
HIGH = "from mini.low import low\n" + HIGH.replace(
    "@kernel", '@kernel(fastmath={"nsz", "contract", "reassoc"})'
)
LOG = "import logging\nlogging.basicConfig(format='%(message)s', level='INFO')\n"
CALL = "print(high({}), sum(high.stats.cache_hits.values()), high.stats.cache_path)"


@pytest.fixture
def mini(tmp_path):
    """A package with the same decorator and two kernels, of which one calls the other."""
    folder = tmp_path / "mini"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "low.py").write_text(LOW.format(1))
    (folder / "high.py").write_text(HIGH)
    shutil.copy(_jit.__file__, folder / "_jit.py")
    return folder


def start(mini, code, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "COV", "XDG"))}
    kept |= {"PYTHONPATH": str(mini.parent), "PYTHONDONTWRITEBYTECODE": "1"} | env
    command = [sys.executable, "-c", "from mini.high import high\n" + code]
    return subprocess.Popen(
        command, env=kept, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def finished(process):
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, err
    return out.split()


def run(mini, code, **env):
    return finished(start(mini, code, **env))


def _with_other_words(text):
    """A module of which no machine code changes."""
    documented = text.replace("(x):\n", '(x):\n    """Doc."""\n')
    return '"""A docstring."""\n# a comment\n\n' + documented + "\n\nUNUSED = 1\n"


def test_a_second_process_takes_what_the_first_has_compiled_until_machine_code_would_differ(mini):
    kept = str(mini / "__pycache__")
    low = LOW.format("ONE").replace("\n\n\n@", "\n\nONE = 1\n\n\n@")
    (mini / "low.py").write_text(low)
    for seed in range(2):  # sets of options come in another order
        hits = str(int(seed > 0))
        process = start(mini, LOG + CALL.format(1), PYTHONHASHSEED=str(seed))
        out, err = process.communicate(timeout=500)
        assert out.split() == ["2", hits, kept]
        assert err.splitlines() == ([] if seed else ["compiling high", "compiling low"])
        (mini / "command.py").write_text("# another file of the package\n")
        for name, text in (("low", low), ("high", HIGH)):
            (mini / f"{name}.py").write_text(_with_other_words(text))
    (mini / "low.py").write_text(low.replace("ONE = 1", "ONE = 10"))  # a constant of a callee
    assert run(mini, CALL.format(1))[:2] == ["11", "0"]


@pytest.mark.slow
def test_a_notebook_is_told_that_compiling_takes_a_while_once(mini):
    watched = "import sys; sys.modules['ipykernel'] = sys\n"
    for said in (1, 0):
        process = start(mini, watched + CALL.format(1))
        assert process.communicate(timeout=500)[1].count("later runs reuse them") == said


@pytest.mark.slow
@pytest.mark.parametrize("anywhere", [True, False])
def test_a_package_that_cannot_be_written_keeps_code_in_the_users_cache_or_compiles_every_time(
    mini, tmp_path, anywhere
):
    (mini / "__pycache__").touch()  # a file: no folder can be made there, not even by root
    nowhere = str(mini / "low.py")
    env = {"HOME": str(tmp_path / "home")} if anywhere else {"HOME": nowhere}
    env |= {} if anywhere else {"NUMBA_CACHE_DIR": nowhere}
    for hits in "01" if anywhere else "00":
        value, found, folder = run(mini, CALL.format(1), **env)
        assert (value, found) == ("2", hits)
        assert Path(folder).is_relative_to(tmp_path / "home") if anywhere else folder == "None"


def test_numba_may_be_switched_off(mini):
    printed = run(mini, "print(high(1), type(high).__name__)", NUMBA_DISABLE_JIT="1")
    assert printed == ["2", "function"]


@pytest.mark.slow
def test_a_full_disk_is_no_error(mini):
    pytest.importorskip("resource")
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
    assert run(mini, f"{full}high(1)\nimport os; os.write(1, b'through')") == ["through"]
    assert not list(mini.glob("__pycache__/*.nbc"))


@pytest.mark.slow
def test_files_that_were_cut_off_are_written_anew(mini):
    run(mini, CALL.format(1))
    for suffix in ("nbi", "nbc"):
        for file in mini.glob(f"__pycache__/*.{suffix}"):
            file.write_bytes(file.read_bytes()[:20])
        for hits in "01":
            assert run(mini, CALL.format(1))[:2] == ["2", hits]


@pytest.mark.slow
def test_several_processes_may_compile_at_once(mini):
    calls = ["1", "1.5", "True", "2j", "1", "1.5"]
    for _ in range(2):
        running = [start(mini, CALL.format(x)) for x in calls]
        assert [finished(p)[0] for p in running] == ["2", "2.5", "2", "(1+2j)", "2", "2.5"]


@pytest.mark.slow
def test_an_interrupt_while_compiling_leaves_nothing_behind(mini):
    code = """
import signal
if hasattr(signal, "setitimer"):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background of a shell
    signal.signal(signal.SIGALRM, lambda *args: signal.raise_signal(signal.SIGINT))
    interrupted = 0
    for i in range(40):
        signal.setitimer(signal.ITIMER_REAL, 0.004 * (i + 1))
        try:
            high(1)
        except KeyboardInterrupt:
            interrupted += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert interrupted, "never"
print(high(1), high(1.5))
"""
    assert run(mini, code) == ["2", "2.5"]
    assert run(mini, CALL.format(1))[0] == "2"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_wait_for_the_compiler(number):
    before = signal.signal(number, signal.default_int_handler)
    reached = []
    try:
        with pytest.raises(KeyboardInterrupt), _jit._undisturbed():
            signal.raise_signal(number)
            reached.append(number)
        assert reached and signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)


@pytest.mark.slow
def test_bits_do_not_depend_on_what_was_compiled_before(tmp_path):
    before = "from structsvm_papk._jit import kernel\nkernel(lambda x: x**2)(1.5)\n"
    code = (
        "import numpy as np\n"
        "from structsvm_papk.solvers.cut_model import block_sweeps\n"
        "rng = np.random.default_rng(0)\n"
        "slopes, heights, v = rng.normal(size=(80, 7)), rng.normal(size=80), np.zeros(7)\n"
        "theta = np.tile([1.0, 0.0, 0.0, 0.0], 20)\n"
        "block_sweeps(slopes, heights, np.arange(0, 80, 4), theta, v, 30, 0.0)\n"
        "print(v.tobytes().hex())"
    )
    bits = set()
    for name, first in (("alone", ""), ("after", before)):
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / name)}
        command = [sys.executable, "-c", first + code]
        run = subprocess.run(command, env=env, capture_output=True, check=True, timeout=500)
        bits.add(run.stdout)
    assert len(bits) == 1


def test_only_a_terminal_is_told_once_why_the_first_run_takes_longer(monkeypatch, capsys):
    _jit._say_once.cache_clear()
    _jit._say_once()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    _jit._say_once.cache_clear()
    for _ in range(2):
        _jit._say_once()
    assert capsys.readouterr().err.count("compiling kernels") == 1
