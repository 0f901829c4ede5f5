"""What all tests share: two processes, a cluster, what a system that is not POSIX leaves out."""

import signal
import sys
from types import SimpleNamespace

import pytest

collect_ignore = ["stress"] if sys.platform == "win32" else []  # limits that Windows has not


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Run everyday tests of all folders in two processes, if nothing else is asked for.

    More would compile the same kernels at the same time. Tests of one file stay together: they
    share fixtures. `pytest -n 0`, `-p no:xdist`, files and other markers run in one process.
    """
    if hasattr(config, "workerinput"):  # it is one of the two
        return
    options, whole = config.option, config.args_source is config.ArgsSource.TESTPATHS
    everyday = options.markexpr.startswith("not (slow")
    apart = getattr(options, "numprocesses", 0) is None  # pytest-xdist is there, without -n
    if whole and everyday and apart and not (options.usepdb or options.collectonly):
        options.numprocesses, options.dist = 2, "loadfile"


@pytest.fixture(scope="session")
def cluster():
    """The address of a scheduler with two workers, processes of one thread each."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster:
        yield cluster.scheduler_address


@pytest.fixture(scope="session")
def client(cluster):
    """A client of it, which is not the current one."""
    from structsvm_papk.oracles.dask_risk import connect

    with connect(cluster) as client:
        yield client


@pytest.fixture
def ctrl_c():
    """SIGINT raises KeyboardInterrupt, here and in processes that a test starts.

    By itself it does nothing where pytest was started with it ignored, as by `nohup` and by `&` in
    a script; a test that sends it asks for this fixture.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def clock(monkeypatch):
    """The clock by which solvers know that their time is over; it stands until a test moves it."""
    clock = SimpleNamespace(now=0.0, perf_counter=lambda: clock.now)
    monkeypatch.setattr("structsvm_papk.solvers.solver.time", clock)
    return clock
