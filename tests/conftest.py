"""What all tests share: one cluster, and what a system that is not POSIX leaves out."""

import sys

import pytest

collect_ignore = ["stress"] if sys.platform == "win32" else []  # limits that Windows has not


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


class Clock:
    """A clock that stands until a test moves it."""

    def __init__(self):
        self.now = 0.0

    def perf_counter(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock by which solvers know that their time is over."""
    clock = Clock()
    monkeypatch.setattr("structsvm_papk.solvers.solver.time", clock)
    return clock
