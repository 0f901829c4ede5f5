"""The risk of data that lies on the workers of a Dask cluster.

Partitions are Dask's futures: Dask loads and holds them, and loads them again after the loss of a
worker. An evaluation is a task for each partition, where it lies; what they give is gathered in
order.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import Callback
from structsvm_papk._version import __version__
from structsvm_papk.data.columns.knots import Knots, check_curves, knots_of
from structsvm_papk.data.columns.value_counts import MOST_BINS, ValueCounts, joined_counts
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, OracleFailure, as_names
from structsvm_papk.oracles.list_risk import Partition, users_needed
from structsvm_papk.oracles.partitioned import PartitionedRisk
from structsvm_papk.oracles.partitions import Partitions, PartitionSummary, summarise
from structsvm_papk.solvers.solver import seconds_left

if TYPE_CHECKING:
    from distributed import Client

    from structsvm_papk.surrogates import Surrogate

_TIMEOUT = 10.0  # seconds that a cluster has to answer, whatever the time limit
_JOINED = 8  # partitions whose counts are joined at a time
_SCHEMES = ("tcp", "tls", "ws", "wss", "ucx", "inproc")


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
    user_weight : {'equal', 'positives'}, optional
        Instead of the partitions' own weights.
    curves : int, optional
        Pieces of a curve for each column, between quantiles of all rows; by default the columns are
        lines.
    positive : bool
        Whether every curve has to rise, as of `StreamedRisk`.

    Raises
    ------
    InputError
        A partition that cannot be loaded, no user that can be used, no partition at all; workers
        without this version of the package.
    OracleFailure
        In mid-course: the scheduler is gone, workers die again and again, the time limit is over,
        a surrogate that workers cannot load, or a partition that is not what it was when it has to
        be loaded again.

    Notes
    -----
    Without a worker, Dask waits for one (its setting ``distributed.scheduler.no-workers-timeout``).
    """

    def __init__(
        self,
        surrogate: Surrogate,
        partitions: Sequence[Any],
        client: Any,
        policy: str = "cap",
        user_weight: str | None = None,
        *,
        curves: int | None = None,
        positive: bool = False,
    ) -> None:
        partitions = as_names("partitions", partitions)
        if not hasattr(client, "scheduler"):
            raise TypeError(f"client must be a dask.distributed.Client, got {client!r}")
        if not len(partitions):
            raise InputError("there is no partition")
        held = _DaskPartitions(
            surrogate,
            partitions,
            client,
            policy=policy,
            user_weight=user_weight,
            pieces=check_curves(curves),
            positive=positive,
        )
        super().__init__(surrogate, held)


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


def _check_address(address: str) -> None:
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
    """A partition on a worker: its users that are used, and what evaluations leave."""

    def __init__(self, data: RankingData | None, summary: PartitionSummary) -> None:
        self.data = data
        self.summary = summary
        self._cache: dict[str, Any] = {}
        self._lock = Lock()  # an evaluation that was given up may still be going on

    def __reduce__(self):
        return _Held, (self.data, self.summary)

    def __sizeof__(self):
        """Bytes of the arrays: Dask decides by them what may be moved."""
        if self.data is None:
            return 1000
        return self.data.columns.nbytes + self.data.rows.nbytes + self.data.indptr.nbytes

    def run(self, task: Callback, share: int) -> Any:
        """The task's result."""
        with self._lock:
            return task(Partition(self.data, share, n_threads=1, cache=self._cache))


class _DaskPartitions(Partitions):
    """Partitions on the workers."""

    def __init__(
        self,
        surrogate: Surrogate,
        partitions: Sequence[Any],
        client: Any,
        *,
        policy: str,
        user_weight: str | None,
        pieces: int | None,
        positive: bool,
    ) -> None:
        import dask

        need = users_needed(surrogate, policy)
        self.client = client
        self._address = client.scheduler.address
        self._check_packages()
        if pieces is not None:
            counts = self._counts_of_all(partitions)
            self.knots = knots_of(counts, pieces, np.full(len(counts), positive))
        how_used = need.negatives, need.setting, user_weight, self.knots
        # one by one: a partition of arrays goes over with its task, which Dask would warn of
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            self._held = [
                client.submit(load_partition, partition, *how_used, pure=False)
                for partition in partitions
            ]
        summaries = self._loaded(summary_of, self._held)
        loaded = zip(self._held, summaries, strict=True)
        self._with_users = [future for future, each in loaded if each.exclusions.n_used]
        super().__init__(summaries, surrogate, need.policy)

    def _counts_of_all(self, partitions: Sequence[Any]) -> list[ValueCounts]:
        """How often each value of a column occurs in all rows, joined on the workers."""
        self._held = [
            self.client.submit(count_values, partition, pure=False) for partition in partitions
        ]
        self._loaded(is_counted, self._held)  # or refuse
        joined = self._held
        while len(joined) > 1:
            groups = [joined[i : i + _JOINED] for i in range(0, len(joined), _JOINED)]
            joined = [self.client.submit(join_counts, group, pure=False) for group in groups]
        return self._gathered(copy_of, joined)[0]

    def _loaded(self, function: Callback, futures: Sequence[Any]) -> list[Any]:
        """What a function gives of partitions that are loaded for the first time."""
        try:
            return self._gathered(function, futures)
        except OracleFailure as failure:
            raise InputError(str(failure)) from failure.__cause__

    def run(self, task: Callback, shares: Sequence[int]) -> list[Any]:
        """The task's result for each partition with users."""
        answers = self._gathered(evaluate_partition, self._with_users, shares, task=task)
        for summary, (fingerprint, _) in zip(self.used, answers, strict=True):
            if fingerprint != summary.fingerprint:
                raise OracleFailure(
                    "a partition had to be loaded again and holds other data now: "
                    f"{summary.exclusions.n_used} users, {summary.n_rows} rows at first"
                )
        return [result for _, result in answers]

    def _check_packages(self) -> None:
        """Refuse workers that would compute with another version of this package, or without it."""
        # a lambda goes over by value: a worker without the package could not load a function of it
        ask = lambda: import_module("structsvm_papk._version").__version__  # noqa: E731
        for worker, version in self.client.run(ask, on_error="return").items():
            if isinstance(version, str | ImportError) and version != __version__:
                what = f"is {version}" if isinstance(version, str) else "cannot be imported"
                raise InputError(
                    f"structsvm-papk {what} on the worker {worker}; workers and scheduler need "
                    f"version {__version__}, as in this process"
                )

    def _gathered(self, function: Callback, *futures: Any, **settings: Any) -> Any:
        """What a function gives of each of the futures, in order, while the solver has time."""
        from distributed import wait

        seconds = max(seconds_left(), _TIMEOUT)
        try:
            with self.client.as_current():
                tasks = self.client.map(function, *futures, pure=False, **settings)
                wait(tasks, None if math.isinf(seconds) else seconds)
                return self.client.gather(tasks)
        except TimeoutError:
            raise OracleFailure(
                f"the time limit is over, and the cluster at {self._address} has not answered"
            ) from None
        except (CancelledError, asyncio.CancelledError):
            raise OracleFailure(
                f"the cluster at {self._address} has dropped this fit: its scheduler is gone, or "
                "all of it was restarted"
            ) from None
        except Exception as error:  # whatever Dask, the network or a worker raises
            loaded = all(future.status == "finished" for future in self._held)
            if isinstance(error, InputError) and loaded:
                raise
            what = " ".join(f"{type(error).__name__}: {error}".split())
            raise OracleFailure(f"the cluster at {self._address} cannot compute: {what}") from error


# tasks of these names show on Dask's dashboard


def count_values(partition: Any) -> list[ValueCounts]:
    """How often each value occurs in the columns of a partition; runs on a worker."""
    lists: RankingData = partition.load()
    return list(lists.value_counts(MOST_BINS))


def is_counted(counts: list[ValueCounts]) -> bool:
    """Whether a partition could be loaded and counted."""
    return bool(counts)


def join_counts(parts: list[list[ValueCounts]]) -> list[ValueCounts]:
    """The counts of several partitions together."""
    widths = sorted({len(part) for part in parts})
    if len(widths) > 1:
        raise InputError(f"partitions differ in their number of features: {widths}")
    return joined_counts(parts)


def copy_of(held: Any) -> Any:
    """What lies on a worker, for this process."""
    return held


def load_partition(
    partition: Any, needed: int, setting: str, user_weight: str | None, knots: Knots | None
) -> _Held:
    """Load a partition; runs on a worker."""
    lists = partition.load()
    if knots is not None:
        lists = lists.with_curves(knots)
    return _Held(*summarise(lists, needed, setting, user_weight))


def summary_of(held: _Held) -> PartitionSummary:
    """What the risk has to know of a partition."""
    return held.summary


def evaluate_partition(held: _Held, share: int, *, task: Callback) -> tuple[str, Any]:
    """The fingerprint of a partition, and what a task gives of it."""
    return held.summary.fingerprint, held.run(task, share)
