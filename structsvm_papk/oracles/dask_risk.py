"""The risk of data that lies on the workers of a Dask cluster.

One evaluation is one round trip of one message to each worker: w goes out, values and subgradients
of all its partitions come back. The message does not go through Dask's queue of tasks, which takes
longer than many an evaluation: on every worker an actor holds the partitions that are there, with
what they remember from one evaluation to the next. Workers compute without BLAS, so that they need
no further settings. A worker that is lost takes its partitions with it; they are loaded again
elsewhere, and the result is the same: it depends on the partitions only, not on who holds them.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from structsvm_papk._version import __version__
from structsvm_papk.data.partitions import ArrayPartition
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.oracles.list_risk import users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk, Summary, summarise
from structsvm_papk.solvers.run import seconds_left

if TYPE_CHECKING:
    from distributed import Client

    from structsvm_papk.surrogates import Surrogate

_TIMEOUT = 10.0  # seconds for a scheduler to answer
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")
_POLL = 5.0  # seconds between looks at the cluster while waiting


class DaskRisk(PartitionedRisk):
    """The risk of partitions that lie on the workers of a Dask cluster.

    Parameters
    ----------
    surrogate : Surrogate
    partitions : sequence
        Of `FilePartition` (read by the workers, which must see the files under the same path), of
        `ArrayPartition` (sent once by this process), or of futures of such objects.
    client : distributed.Client
    policy : {'exclude', 'raise', 'cap'}
        As for `EmpiricalRisk`.
    retries : int
        How many times an evaluation starts again after a worker was lost.
    patience : float
        Seconds to wait for a worker.
    user_weight : {'equal', 'positives'}, optional
        Instead of the partitions' own weights.

    Attributes
    ----------
    notes : tuple of str
        Which workers were lost, and what was loaded again.

    Raises
    ------
    InputError
        A partition that cannot be loaded, no user that can be used, no partition at all; workers
        or a scheduler without this version of the package.
    OracleFailure
        In mid-course: the scheduler is gone, no worker is left, workers die again and again, or a
        partition is not what it was when it has to be loaded again.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        partitions: Sequence[Any],
        client: Any,
        policy: str = "exclude",
        retries: int = 5,
        patience: float = 60.0,
        user_weight: str | None = None,
    ) -> None:
        if not len(partitions):
            raise InputError("there is no partition")
        *needed, policy = users_needed(surrogate, policy)
        users = (*needed, user_weight)
        parts = _DaskParts(list(partitions), client, users, retries, patience)
        super().__init__(surrogate, parts, policy)


def connect(address: str | None = None, **options: Any) -> Client:
    """A client of the scheduler at an address, such as ``tcp://10.0.0.1:8786``.

    Without an address, an own cluster in this process.

    Raises
    ------
    InputError
        Dask is not installed, or no scheduler answers.
    """
    try:
        from distributed import Client
    except ImportError:
        raise InputError(
            "clusters need Dask: pip install 'structsvm-papk[dask]' (dask and distributed)"
        ) from None
    if address is None:
        return Client(processes=False, dashboard_address=":0", set_as_default=False, **options)
    _check_address(address)
    try:
        return Client(address, timeout=_TIMEOUT, set_as_default=False, **options)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"no Dask scheduler answers at {address!r}: {error}") from None


def _check_address(address):
    """Refuse what makes a client wait for ever, or fail once more when the program ends."""
    from distributed.comm.addressing import get_address_host_port, parse_address
    from distributed.security import Security

    scheme = parse_address(address)[0]
    if scheme not in _SCHEMES:
        raise InputError(f"no Dask scheduler answers at {address!r}: give tcp://host:port")
    if scheme == "tls" and Security().get_connection_args("client")["ssl_context"] is None:
        raise InputError(
            f"{address}: name the certificates in Dask's settings distributed.comm.tls"
        )
    if scheme != "tcp":
        return
    try:
        with socket.create_connection(get_address_host_port(address), _TIMEOUT) as connection:
            spoke = connection.recv(1)  # a scheduler speaks first
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f"no Dask scheduler answers at {address!r}: give tcp://host:port"
        ) from None
    except TimeoutError:
        spoke = b""
    except OSError:
        return  # it may be starting: the client tries for a while
    if not spoke:
        raise InputError(
            f"what answers at {address} is not a Dask scheduler (is it the dashboard?)"
        )


@dataclass
class _Loaded:
    """A partition on a worker: its users that are used, and where and when it was loaded."""

    data: RankingData | None
    summary: Summary
    place: str

    def __sizeof__(self):
        """Bytes of the arrays: Dask decides by them what may be moved."""
        if self.data is None:
            return 1000
        X = self.data.X
        arrays = (X,) if hasattr(X, "nbytes") else (X.data, X.indices, X.indptr)
        return sum(array.nbytes for array in (*arrays, self.data.rows, self.data.indptr))


class _Crew:
    """The partitions of one worker, as an actor there."""

    def __init__(self, n_threads, *held):
        self._held = held
        self._memories: list[dict[str, Any]] = [{} for _ in held]
        self._pool = ThreadPoolExecutor(n_threads)

    def run(self, task, shares):
        """The task's result for each of the partitions."""
        return list(self._pool.map(partial(_run, task), self._held, shares, self._memories))


class _DaskParts:
    """Partitions on the workers, for `PartitionedRisk`."""

    def __init__(self, partitions, client, users, retries, patience):
        self.notes = []
        self.client, self._partitions = client, partitions
        self._address = client.scheduler.address
        self._which, self._retries, self._patience = users, retries, patience
        self._crews = None  # see _call_up; partitions by their places in _used
        self._places, self._answered = None, False
        _check_packages(client)
        self._held = [self._place(partition) for partition in partitions]
        self.summaries = self._first_load()
        self._used = [p for p, each in enumerate(self.summaries) if each.n_used]

    def run(self, task, shares):
        """The task's result for each partition with users, in order."""
        for attempt in range(self._retries + 1):
            try:
                answers = self._ask(task, shares)
            except _lost():
                self._recover(attempt)
            except (InputError, OSError) as error:
                raise OracleFailure(f"a partition cannot be loaded again: {error}") from None
            else:
                self._answered = True
                return self._checked(answers)
        raise OracleFailure(
            f"workers were lost {self._retries + 1} times during one evaluation; they may be short "
            "of memory"
        )

    def _ask(self, task, shares):
        """One message to every crew, and their answers in the order of the partitions."""
        if self._crews is None:
            self._crews = self._call_up()
        pending = []
        with self.client.as_current():
            for crew, *_, mine in self._crews:
                try:
                    pending.append(crew.run(task, [shares[i] for i in mine]))
                except (RuntimeError, ValueError) as error:  # the worker is known to be lost
                    raise CancelledError from error
        answers = [None] * len(self._used)
        for future, (_, key, home, mine) in zip(pending, self._crews, strict=True):
            found = self._patiently(partial(self._answer, future, key, home))
            for i, answer in zip(mine, found, strict=True):
                answers[i] = answer
        return answers

    def _answer(self, future, key, home, seconds):
        """What an actor answers that was made at `home`."""
        try:
            return future.result(seconds)
        except TimeoutError:  # nobody answers for an actor that is lost or was made elsewhere
            if self._homes([key], seconds=seconds) != [home]:
                raise CancelledError from None
            raise
        except OSError as error:  # its worker cannot be reached
            raise CancelledError from error

    def _homes(self, keys, seconds):
        """Where the scheduler knows each of these to be."""
        where = self._scheduler("who_has", seconds, keys=keys)
        return [where.get(key) for key in keys]

    def _call_up(self):
        """For each worker with partitions an actor, its key and place, and which partitions."""
        held = [self._held[p] for p in self._used]
        self._wait(held)
        crews: dict[str, list[int]] = {}
        for i, workers in enumerate(self._patiently(self._homes, [one.key for one in held])):
            if not workers:
                raise CancelledError
            crews.setdefault(min(workers), []).append(i)
        threads = self._patiently(self._scheduler, "ncores")
        actors = [
            self.client.submit(
                _Crew, threads.get(worker, 1), *(held[i] for i in mine),
                actor=True, pure=False, workers=[worker], allow_other_workers=True,
            )
            for worker, mine in crews.items()
        ]  # fmt: skip
        made, keys = self._results(actors), [actor.key for actor in actors]
        homes = self._patiently(self._homes, keys)
        return list(zip(made, keys, homes, crews.values(), strict=True))

    def _place(self, partition):
        """A future of the partition on some worker."""
        if isinstance(partition, ArrayPartition):
            held = _hold(partition, *self._which)
            return self.client.scatter(held, hash=False)
        return self.client.submit(_hold, partition, *self._which, pure=False)

    def _first_load(self):
        for attempt in range(self._retries + 1):
            try:
                return self._results(self.client.map(_summary, self._held, pure=False))
            except _lost():
                self._recover(attempt)
            except (InputError, OSError) as error:
                raise InputError(f"on a worker: {error}") from None
            except RuntimeError as error:
                if isinstance(error, OracleFailure):
                    raise
                raise InputError(
                    "the scheduler needs the same packages as this process and the workers: "
                    f"{' '.join(str(error).split())}"
                ) from None
        raise OracleFailure("workers were lost again and again while they loaded their partitions")

    def _results(self, futures):
        """The results of some futures."""
        self._wait(futures)

        def gathered(seconds):
            with self.client.as_current():
                call = partial(self.client.gather, asynchronous=True)
                return self.client.sync(call, futures, callback_timeout=seconds)

        return self._patiently(gathered)

    def _wait(self, futures):
        from distributed import wait

        def waited(seconds):
            with self.client.as_current():
                wait(futures, timeout=seconds)

        self._patiently(waited)

    def _patiently(self, call, *args, **options):
        """``call(.., seconds=..)`` until it does not time out.

        Refuses to wait for a cluster without workers, and longer than the solver may take. The
        first answer of all has some seconds in any case: without it there is no result.
        """
        least = 0.0 if self._answered else _TIMEOUT
        start = time.monotonic()
        while True:
            left = max(seconds_left(), least - (time.monotonic() - start))
            if left <= 0.0:
                raise OracleFailure(
                    f"the time limit is over, and the cluster at {self._address} has not answered"
                )
            try:
                return call(*args, **options, seconds=min(left, _POLL))
            except TimeoutError:
                self._check_cluster()

    def _scheduler(self, method, seconds, **options):
        """The scheduler's answer to a question."""
        ask = getattr(self.client.scheduler, method)
        return self.client.sync(ask, callback_timeout=seconds, **options)

    def _checked(self, answers):
        """Results of an evaluation; notes which partitions had to be loaded again."""
        for _, _, result in answers:
            if isinstance(result, InputError):
                raise result
        places = [place for place, _, _ in answers]
        moved = [p for p, old, new in zip(self._used, self._places or places, places) if old != new]  # noqa: B905
        self._places = places
        for p, (_, fingerprint, _) in zip(self._used, answers, strict=True):
            if fingerprint != self.summaries[p].fingerprint:
                raise OracleFailure(
                    f"partition {p} ({self._partitions[p]}) had to be loaded again and holds other "
                    "data now"
                )
        if moved:
            self.notes.append(
                f"A worker was lost: {len(moved)} of {len(places)} partitions were loaded again, "
                "with the same data."
            )
        return [result for _, _, result in answers]

    def _recover(self, attempt):
        """Make lost partitions anew, or give up."""
        time.sleep(min(0.1 * 2**attempt, 5.0))
        self._crews = None
        self._check_cluster()
        for p, future in enumerate(self._held):
            if future.status == "error":
                raise OracleFailure(f"partition {p} cannot be loaded again: {future.exception()}")
            if future.status in ("cancelled", "lost"):
                self._held[p] = self._place(self._partitions[p])

    def _check_cluster(self):
        """Wait for a worker, where there is none; give up without one, or without scheduler."""
        patience = min(self._patience, max(seconds_left(), 0.0))
        deadline = time.monotonic() + patience
        try:
            while self.client.status == "running":
                if self._scheduler("ncores", seconds=min(_POLL, max(patience, 0.1))):
                    return
                if time.monotonic() > deadline:
                    raise OracleFailure(
                        f"the cluster at {self._address} has had no worker for {patience:g} s"
                    )
                time.sleep(0.2)
        except TimeoutError:
            return  # it may be busy: who asks it goes on to wait
        except OSError:
            pass
        raise OracleFailure(f"the scheduler at {self._address} is gone")


def _check_packages(client):
    """Refuse workers that would compute with another version of this package, or without it."""
    # a lambda goes over by value: a worker without the package could not load a function of it
    versions = client.run(
        lambda: import_module("structsvm_papk._version").__version__, on_error="return"
    )
    for worker, version in versions.items():
        if isinstance(version, str | ImportError) and version != __version__:
            what = f"is {version}" if isinstance(version, str) else "cannot be imported"
            raise InputError(
                f"structsvm-papk {what} on the worker {worker}; workers and scheduler need version "
                f"{__version__}, as in this process"
            )


def _hold(partition, needed, setting, user_weight):
    """Load a partition; runs on a worker, or here for what is sent."""
    data, summary = summarise(partition.load(), needed, setting, user_weight)
    return _Loaded(data, summary, uuid4().hex)


def _summary(held):
    return held.summary


def _run(task, held, share, memory):
    """The task's result; input that it refuses comes back too: what is raised is of the loading."""
    try:
        result = task(held.data, share, 1, memory)
    except InputError as error:
        result = error
    return held.place, held.summary.fingerprint, result


def _lost():
    """Exceptions that tell of a lost worker or scheduler."""
    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    return CancelledError, KilledWorker, ClosedClientError, CommClosedError
