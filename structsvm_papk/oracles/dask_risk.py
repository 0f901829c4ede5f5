"""The risk of data that lies on the workers of a Dask cluster.

Partitions are Dask's futures: Dask loads and holds them, and loads them again after the loss of a
worker. An evaluation is one message to the workers and back (`Client.run`), which takes a fifth of
the time of tasks in the queue.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, wait
from functools import partial
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from structsvm_papk._version import __version__
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import (
    InputError,
    OracleFailure,
    as_names,
    check_number,
    check_type,
    whole_number,
)
from structsvm_papk.files.partitions import ArrayPartition
from structsvm_papk.oracles.list_risk import DEFAULTS, Partition, Thresholds, users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.parts import Parts, Summary, summarise
from structsvm_papk.solvers.solver import seconds_left

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
    thresholds : Thresholds
        As for `EmpiricalRisk`.

    Attributes
    ----------
    notes : tuple of str
        Which workers were lost, and what was loaded again.

    Raises
    ------
    InputError
        A custom surrogate that cannot be sent, a partition that cannot be loaded, no user that can
        be used, no partition at all; workers or a scheduler without this version of the package.
    OracleFailure
        In mid-course: the scheduler is gone, no worker is left, workers die again and again, or a
        partition is not what it was when it has to be loaded again.
    """

    def __init__(
        self,
        surrogate: Surrogate,
        partitions: Sequence[Any],
        client: Any,
        policy: str = "cap",
        retries: int = 5,
        patience: float = 60.0,
        user_weight: str | None = None,
        *,
        thresholds: Thresholds = DEFAULTS,
    ) -> None:
        partitions = as_names("partitions", partitions)
        check_number("patience", patience, above=0)
        check_type("thresholds", thresholds, Thresholds, "a Thresholds")
        retries = whole_number("retries", retries, least=0)
        if not hasattr(client, "scheduler"):
            raise TypeError(f"client must be a dask.distributed.Client, got {client!r}")
        if not len(partitions):
            raise InputError("there is no partition")
        parts = _DaskParts(
            surrogate,
            partitions,
            client,
            policy=policy,
            user_weight=user_weight,
            retries=retries,
            patience=patience,
            thresholds=thresholds,
        )
        super().__init__(surrogate, parts)


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

    wrong = InputError(f"no Dask scheduler answers at {address!r}: give tcp://host:port")
    scheme, _ = parse_address(address)
    spoke = b""
    if scheme not in _SCHEMES:
        raise wrong
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
        raise wrong from None
    except TimeoutError:
        pass
    except OSError:
        return  # it may be starting: the client tries for a while
    if not spoke:
        raise InputError(
            f"what answers at {address} is not a Dask scheduler (is it the dashboard?)"
        )


class _Held:
    """A partition on a worker: its users that are used, when it was loaded, what tasks leave."""

    def __init__(self, data: RankingData | None, summary: Summary, loaded: str) -> None:
        self.data = data
        self.summary = summary
        self.loaded = loaded
        self._memory: dict[str, Any] = {}
        self._lock = Lock()  # an evaluation that was given up may still be going on

    def __reduce__(self):
        return _Held, (self.data, self.summary, self.loaded)

    def __sizeof__(self):
        """Bytes of the arrays: Dask decides by them what may be moved."""
        if self.data is None:
            return 1000
        X = self.data.X
        arrays = (X,) if hasattr(X, "nbytes") else (X.data, X.indices, X.indptr)
        return sum(array.nbytes for array in (*arrays, self.data.rows, self.data.indptr))

    def run(self, task, share):
        """The task's result, and which data it is of."""
        with self._lock:
            result = task(Partition(self.data, share, n_threads=1, cache=self._memory))
        return self.loaded, self.summary.fingerprint, result


class _DaskParts(Parts):
    """Partitions on the workers."""

    def __init__(
        self,
        surrogate,
        partitions,
        client,
        *,
        policy,
        user_weight,
        retries,
        patience,
        thresholds,
    ):
        need = users_needed(surrogate, policy)
        self.notes: list[str] = []
        self.client = client
        self._partitions = partitions
        self._how_used = (need.negatives, need.setting, user_weight)
        self._address = client.scheduler.address
        self._retries = retries
        self._patience = patience
        self._answered = False
        self._loaded = None
        self._sample = None
        self._check_packages()
        self._n_worker_threads = sum(self._patiently(client.nthreads).values())
        self._name = f"load-partition-{uuid4().hex[:8]}"
        self._held = [self._place(p) for p in range(len(partitions))]
        summaries = self._repeated(self._first_load)
        self._with_users = [p for p, each in enumerate(summaries) if each.exclusions.n_used]
        if surrogate.is_custom:
            self.check_sent(surrogate)
        super().__init__(summaries, surrogate, need.policy, thresholds)

    def sample_lists(self, surrogate):
        """The lists of few of the users, for which many workers do not wait for long."""
        n_bytes = 8 * self.n_features * self.n_rows
        n_users = self.exclusions.n_used
        least = self.thresholds.sample_every
        room = self.thresholds.sample_bytes
        wanted = max(least, 10 * self._n_worker_threads, n_bytes // room)
        step = self.thresholds.sample_step(n_users, self.n_rows, self.n_features, wanted)
        if step is None or n_bytes // step > 4 * room:
            return None
        if self._sample is None:
            self._sample = self.every_nth(step)
        return self._sample

    def run(self, task, shares):
        """The task's result for each partition with users; notes which were loaded again."""
        answers = self._repeated(partial(self._ask, task, shares))
        self._answered = True
        for p, (_, fingerprint, _) in zip(self._with_users, answers, strict=True):
            if fingerprint != self.summaries[p].fingerprint:
                raise OracleFailure(
                    f"partition {p} ({self._partitions[p]}) had to be loaded again and holds other "
                    "data now"
                )
        loaded = [each for each, _, _ in answers]
        again = 0 if self._loaded is None else len(set(loaded).difference(self._loaded))
        self._loaded = loaded
        if again:
            self.notes.append(
                f"A worker was lost: {again} of {len(answers)} partitions were loaded again, with "
                "the same data."
            )
        return [result for _, _, result in answers]

    def _check_packages(self):
        """Refuse workers that would compute with another version of this package, or without it."""
        # a lambda goes over by value: a worker without the package could not load a function of it
        ask = lambda: import_module("structsvm_papk._version").__version__  # noqa: E731
        versions = self._patiently(self.client.run, ask, on_error="return")
        for worker, version in versions.items():
            if isinstance(version, str | ImportError) and version != __version__:
                what = f"is {version}" if isinstance(version, str) else "cannot be imported"
                raise InputError(
                    f"structsvm-papk {what} on the worker {worker}; workers and scheduler need "
                    f"version {__version__}, as in this process"
                )

    def check_sent(self, surrogate):
        """Refuse a surrogate whose class workers cannot have."""
        from distributed.protocol.pickle import dumps, loads

        try:
            sent = dumps(surrogate)
        except Exception as error:  # whatever the class holds
            raise InputError(
                f"surrogate {surrogate.label} cannot be sent to workers: {_in_a_line(error)}"
            ) from None
        answers = self._patiently(self.client.run, loads, sent, on_error="return")
        for worker, answer in answers.items():
            if isinstance(answer, Exception) and not isinstance(answer, OSError):
                raise InputError(
                    f"the worker {worker} cannot load surrogate {surrogate.label} "
                    f"({_in_a_line(answer)}): its module has to be there; "
                    "`client.upload_file` sends one"
                )

    def _place(self, p):
        """A future of a partition on some worker."""
        partition = self._partitions[p]
        if isinstance(partition, ArrayPartition):
            held = _hold(partition, *self._how_used)
            return self._patiently(self.client.scatter, held, hash=False)
        key = f"{self._name}-{p}"
        return self.client.submit(_hold, partition, *self._how_used, key=key, pure=False)

    def _first_load(self):
        try:
            futures = self.client.map(summary_of, self._held, pure=False)
            return self._patiently(self.client.gather, futures)
        except _lost():
            raise
        except (InputError, OSError) as error:
            raise InputError(f"on a worker: {error}") from None
        except RuntimeError as error:
            if isinstance(error, OracleFailure):
                raise
            raise InputError(
                "the scheduler needs the same packages as this process and the workers: "
                f"{_in_a_line(error)}"
            ) from None

    def _repeated(self, call):
        """The call's result; it is repeated where workers are lost."""
        for attempt in range(self._retries + 1):
            try:
                if attempt:
                    self._place_again()
                return call()
            except _lost():
                time.sleep(min(0.1 * 2**attempt, 5.0))
                self._check_cluster()
        raise OracleFailure(
            f"workers were lost {self._retries + 1} times during one evaluation; they may be short "
            "of memory"
        )

    def _place_again(self):
        """Give workers what Dask cannot load again; a cluster that restarts may refuse it."""
        for p, future in enumerate(self._held):
            if future.status in ("cancelled", "lost"):
                self._held[p] = self._place(p)

    def _ask(self, task, shares):
        """One message to every worker, and the answers in the order of the partitions."""
        held = self._ready()
        asked = [(future.key, share) for future, share in zip(held, shares, strict=True)]
        answers = self._patiently(self.client.run, _evaluate, task, asked, on_error="return")
        found: dict[str, Any] = {}
        for worker, answer in answers.items():
            if isinstance(answer, OSError):
                continue  # the worker cannot be reached
            results = answer if isinstance(answer, dict) else {"": answer}
            _raise_first(results.values(), worker)
            found |= results
        if len(found) < len(held):
            raise CancelledError
        return [found[future.key] for future in held]

    def _ready(self):
        """The futures of partitions with users, when all are loaded."""
        from distributed import wait as finished

        held = [self._held[p] for p in self._with_users]
        if any(future.status != "finished" for future in held):
            self._patiently(finished, held)
        for p, future in zip(self._with_users, held, strict=True):
            if future.status == "error":
                raise OracleFailure(f"partition {p} cannot be loaded again: {future.exception()}")
        return held

    def _patiently(self, call, *args, **options):
        """What the client answers to ``call(..)``, while it has workers and the solver has time.

        The first answer of all has some seconds in any case: without it there is no result.
        """

        async def answer():
            with self.client.as_current():
                return await call(*args, **options)

        self._check_client()
        start = time.monotonic()
        least = 0.0 if self._answered else _TIMEOUT
        pending = asyncio.run_coroutine_threadsafe(answer(), self.client.loop.asyncio_loop)
        try:
            while True:
                left = max(seconds_left(), least - (time.monotonic() - start))
                if left <= 0.0:
                    raise OracleFailure(
                        f"the time limit is over, and the cluster at {self._address} has not "
                        "answered"
                    )
                if wait([pending], min(left, _POLL)).done:
                    return pending.result()
                self._check_cluster()
        finally:
            pending.cancel()

    def _check_client(self):
        if self.client.status in ("closing", "closed"):
            raise OracleFailure(f"the client of the scheduler at {self._address} is closed")

    def _check_cluster(self):
        """Wait for a worker, where there is none; give up without one, or without scheduler."""
        patience = min(self._patience, max(seconds_left(), 0.0))
        deadline = time.monotonic() + patience
        try:
            while self.client.status == "running":
                seconds = min(_POLL, max(patience, 0.1))
                ask = self.client.scheduler.ncores
                if self.client.sync(ask, callback_timeout=seconds):
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
        self._check_client()
        raise OracleFailure(f"the scheduler at {self._address} is gone")


def _hold(partition, needed, setting, user_weight):
    """Load a partition; runs on a worker, or here for what is sent."""
    return _Held(*summarise(partition.load(), needed, setting, user_weight), uuid4().hex)


def summary_of(held: _Held) -> Summary:
    """What the risk has to know of a partition; a task of this name shows on Dask's dashboard."""
    return held.summary


async def _evaluate(task, asked, dask_worker):
    """The results for those of the partitions that this worker has, by key, on its threads."""
    data = dask_worker.data
    threads = dask_worker.executor
    loop = asyncio.get_running_loop()
    runs = {
        key: loop.run_in_executor(threads, data[key].run, task, share)
        for key, share in asked
        if key in data
    }
    results = await asyncio.gather(*runs.values(), return_exceptions=True)
    return dict(zip(runs, results, strict=True))


def _raise_first(results, worker):
    """Raise the first exception among the results of a worker."""
    for result in results:
        if isinstance(result, InputError):
            raise result
        if isinstance(result, Exception):
            what = f"{type(result).__name__}: {result}"
            raise OracleFailure(f"the worker {worker} cannot compute: {what}") from result


def _in_a_line(error):
    return " ".join(str(error).split())


def _lost():
    """Exceptions that tell of a lost worker or scheduler."""
    from distributed import KilledWorker
    from distributed.client import ClosedClientError
    from distributed.comm import CommClosedError

    return CancelledError, asyncio.CancelledError, KilledWorker, ClosedClientError, CommClosedError
