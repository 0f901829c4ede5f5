"""The risk of data on the workers of a Dask cluster, and what happens when they die."""

import os
import re
import signal
import socket
import time
from pathlib import Path

import numpy as np
import pytest

from helpers.clusters import kill_a_worker, other_scheduler
from helpers.marks import POSIX
from helpers.sources import N_FEATURES, in_memory, lists, npy_source
from structsvm_papk import RankingData, make_surrogate
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.partitions import array_partitions, file_partitions
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.solver import Status

PARTITION = 500 * N_FEATURES * 8
W = np.arange(N_FEATURES) / 10


@pytest.fixture
def threads():
    """A cluster in this process, for this test only."""
    with connect(n_workers=1, threads_per_worker=2) as client:
        yield client


def partitions(kind, directory):
    if kind == "arrays":
        return array_partitions(RankingData.from_groups(*lists()), 8)
    return file_partitions(npy_source(directory, *lists()), PARTITION)


def risk(client, directory, kind="npy", name="ts", **options):
    return DaskRisk(make_surrogate(name, 4), partitions(kind, directory), client, **options)


@pytest.mark.recovery
@pytest.mark.parametrize("kind", ["arrays", "npy"])
def test_a_worker_that_is_retired_hands_its_partitions_on(tmp_path, kind):
    with connect(n_workers=2, threads_per_worker=1) as client:
        oracle = risk(client, tmp_path, kind)
        expected = oracle(W)[0]
        first = next(worker for worker, keys in client.has_what().items() if keys)
        client.retire_workers([first])
        assert oracle(W)[0] == expected


@pytest.mark.recovery
@POSIX
@pytest.mark.parametrize("kind", ["arrays", "npy"])
def test_partitions_of_a_worker_that_is_killed_are_loaded_again(client, tmp_path, kind):
    solver = CuttingPlane(1e-2, tol=1e-8)
    expected = solver.solve(risk(client, tmp_path, kind))

    def kill(progress):
        if progress.iteration == 3:
            kill_a_worker(client)

    found = solver.solve(risk(client, tmp_path, kind), callback=kill)
    assert found.converged and np.array_equal(found.w, expected.w)


@pytest.mark.recovery
def test_a_cluster_that_forgets_its_partitions_ends_a_fit_with_the_best_point(threads, tmp_path):
    oracle = risk(threads, tmp_path)

    def forget(progress):
        if progress.iteration == 3:
            threads.cancel(oracle.partitions._held, force=True)  # as a restart does

    result = CuttingPlane(1e-2, tol=1e-8).solve(oracle, callback=forget)
    assert result.status is Status.FAILED and result.n_iter == 3
    assert "all of it was restarted" in result.message
    value = in_memory()(result.w)[0] + 5e-3 * (result.w @ result.w)
    assert result.objective == pytest.approx(value, rel=1e-12)


@pytest.mark.scale
def test_many_fits_on_one_client_leave_nothing(threads, tmp_path):
    cut = partitions("npy", tmp_path)
    objectives = set()
    for _ in range(15):
        oracle = DaskRisk(make_surrogate("avg", 4), cut, threads)
        objectives.add(CuttingPlane(1e-2, tol=1e-4).solve(oracle).objective)
    del oracle
    assert len(objectives) == 1
    late = time.monotonic() + 20.0
    while any(threads.has_what().values()) and time.monotonic() < late:
        time.sleep(0.1)
    kept = [key for keys in threads.has_what().values() for key in keys]
    assert not kept, f"after 20 s the worker still has {kept}"


@pytest.mark.recovery
@POSIX
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: np.save(path, lists()[0] * 2.0), "holds other data now"),
        (Path.unlink, r"cannot compute: InputError: .*cannot read .*X\.npy"),
    ],
)
def test_data_that_changed_when_they_have_to_be_loaded_again(client, tmp_path, change, message):
    oracle = risk(client, tmp_path)
    oracle(W)
    change(tmp_path / "X.npy")
    kill_a_worker(client)
    with pytest.raises(OracleFailure, match=message):
        oracle(W)


@pytest.mark.recovery
@pytest.mark.parametrize(
    ("name", "how", "status", "words"),
    [
        ("ts", "closed", Status.FAILED, "Client is closed"),
        ("ts", "killed", Status.FAILED, "its scheduler is gone"),
        ("ts", "hangs", Status.TIME_LIMIT, r"cluster at tcp://127\.0\.0\.1.* has not answered"),
        ("ramp", "hangs", Status.TIME_LIMIT, r"cluster at tcp://127\.0\.0\.1.* has not answered"),
    ],
)
def test_what_ends_a_fit_leaves_the_best_point(name, how, status, words, tmp_path, monkeypatch):
    monkeypatch.setattr("structsvm_papk.oracles.dask_risk._TIMEOUT", 3.0)
    with other_scheduler() as (process, address), connect(address) as client:
        oracle = risk(client, tmp_path, name=name)
        oracle(W)

        def callback(progress):
            if progress.iteration == 2 and how == "closed":
                client.close()
            elif progress.iteration == 2 and how == "killed":
                process.kill()
            elif progress.iteration == 2:
                process.send_signal(signal.SIGSTOP)
                os.waitpid(process.pid, os.WUNTRACED)  # until it has stopped

        solver = CuttingPlane(1e-2, tol=1e-8, time_limit=8.0)
        outer = CCCP(1e-2, tol=1e-8, time_limit=8.0, starts=["zero"]) if name == "ramp" else solver
        result = outer.solve(oracle, callback=callback)
        assert result.status == status and result.history[-1].iteration == 2
        assert re.search(words, result.message)
        value = in_memory(name)(result.w)[0] + 5e-3 * (result.w @ result.w)
        assert result.objective == pytest.approx(value, rel=1e-12)
        assert result.lower_bound <= result.objective
        with pytest.raises(OracleFailure, match=words):  # there is no best point yet
            solver.solve(oracle.majorant(W) if name == "ramp" else oracle)


def test_what_is_refused(threads, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="user 3 has no positive"):
        risk(threads, tmp_path, policy="raise")
    with pytest.raises(InputError, match="no partition"):
        DaskRisk(make_surrogate("avg", 4), [], threads)
    with pytest.raises(InputError, match="not finite"):
        risk(threads, tmp_path)(np.full(N_FEATURES, 1e308))
    parts = partitions("npy", tmp_path)
    (tmp_path / "X.npy").unlink()
    with pytest.raises(InputError, match=r"cannot read .*X\.npy"):
        DaskRisk(make_surrogate("avg", 4), parts, threads)
    monkeypatch.setattr("structsvm_papk.oracles.dask_risk.__version__", "0.0.0")
    with pytest.raises(InputError, match=r"is \d.* on the worker .* need version 0\.0\.0"):
        risk(threads, tmp_path)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nonsense://x", "no Dask scheduler answers at 'nonsense://x'"),
        *((address, "give tcp://host:port") for address in ("", "tcp://", "http://127.0.0.1:8787")),
        ("tls://127.0.0.1:1", "name the certificates"),
        (None, r"what answers at tcp://127\.0\.0\.1:\d+ is not a Dask scheduler"),
    ],
)
def test_addresses_that_are_none(address, words, monkeypatch):
    monkeypatch.setattr("structsvm_papk.oracles.dask_risk._TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        if address is None:
            address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(InputError, match=words):
            connect(address)
