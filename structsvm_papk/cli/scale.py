"""Options that say where the data of a fit lie: in memory, in files, or on a cluster."""

import json
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.grouped import Panel
from structsvm_papk.cli._shared.options import Reading, Weighting
from structsvm_papk.data.partitions import array_partitions, file_partitions, open_source
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.atomic import write_atomically
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.surrogates import Surrogate

_SCALE = Panel("Data larger than memory")
_RECORD = "partitions.json"  # in the folder of a checkpoint
_PATIENCE = 60  # seconds
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES |= {f"{letter}I": 1024**power for power, letter in enumerate("KMGT", start=1)}


@dataclass(frozen=True)
class Users:
    """Which users take part in training, and what each counts."""

    policy: str
    weighting: Weighting


@dataclass(frozen=True)
class Loaded:
    """A risk, the lists that it is of (for their fingerprint), and the features' names.

    `cut` says what the partitions depend on: a run can go on with the same ones only.
    """

    risk: Any
    lists: Any
    table: Any
    cut: dict[str, Any] = field(default_factory=dict)

    def remember(self, folder: Path | None) -> None:
        """Write into the folder of a checkpoint what the partitions depend on."""
        if folder is not None and self.cut:
            write_atomically(folder / _RECORD, json.dumps(self.cut).encode())


@dataclass(frozen=True)
class Scale:
    """Where the data lie."""

    memory_budget: str | None = _SCALE(
        None,
        "Read the features from their file in every pass, within so much memory (500MB, 2GiB); "
        "Parquet, or a directory with X.npy, y.npy and groups.npy, every user's rows together.",
        "SIZE",
    )
    scratch: Path | None = _SCALE(
        None,
        "Where Parquet is unpacked for --memory-budget; by default the system's directory.",
        "DIR",
    )
    dask: str | None = _SCALE(
        None,
        "Compute on the workers of this Dask scheduler (tcp://host:8786); they read Parquet and "
        ".npy files themselves, other files are sent to them.",
        "ADDRESS",
    )
    partitions: int | None = _SCALE(
        None,
        "About how many partitions on the cluster; by default two for each thread of the workers, "
        "or what the checkpoint was begun with.",
        "N",
        min=1,
    )

    @contextmanager
    def risk(
        self,
        data: Path,
        reading: Reading,
        surrogate: Surrogate,
        users: Users,
        threads: int,
        folder: Path | None = None,
    ) -> Iterator[Loaded]:
        """The risk of a data file as `Loaded`, for as long as the context lasts.

        `folder` is where a checkpoint is, if there is one: partitions are cut as they were.

        Raises
        ------
        InputError
            Options that do not go together, or data that cannot be used in this way.
        """
        self._check(threads)
        try:
            if self.memory_budget is not None:
                yield self._streamed(data, reading, surrogate, users, threads, folder)
            elif self.dask is not None:
                with connect(self.dask) as client:
                    _quieten()
                    yield self._on_cluster(data, reading, surrogate, users, client, folder)
            else:
                yield _in_memory(data, reading, surrogate, users, threads)
        except OracleFailure as failure:
            raise InputError(str(failure)) from None

    def _check(self, threads: int) -> None:
        if self.memory_budget is not None and self.dask is not None:
            raise InputError("--memory-budget is for one machine, --dask for several: give one")
        if self.scratch is not None and self.memory_budget is None:
            raise InputError("--scratch is for --memory-budget")
        if self.partitions is not None and self.dask is None:
            raise InputError("--partitions is for --dask")
        if self.dask is not None and threads != 1:
            raise InputError("--threads is for this machine: workers have threads of their own")

    def _streamed(
        self,
        data: Path,
        reading: Reading,
        surrogate: Surrogate,
        users: Users,
        threads: int,
        folder: Path | None,
    ) -> Loaded:
        if not _in_pieces(data, reading):
            raise InputError(
                f"--memory-budget cannot read {data} in pieces: it needs Parquet, or a directory "
                "with X.npy, y.npy and groups.npy"
            )
        budget = size_in_bytes(str(self.memory_budget))
        threshold = reading.relevance_threshold
        cut = _as_begun(folder, "memory_budget", budget)
        source = _source(data, reading)
        risk = StreamedRisk(
            surrogate, source, budget, threshold, users.policy, threads, self.scratch,
            users.weighting.user_weight,
        )  # fmt: skip
        console.note(f"{risk.share_in_memory:.0%} of the features stay in memory")
        return Loaded(risk, risk, source, cut)

    def _on_cluster(
        self,
        data: Path,
        reading: Reading,
        surrogate: Surrogate,
        users: Users,
        client: Any,
        folder: Path | None,
    ) -> Loaded:
        self._wait_for_workers(client)
        cut = _as_begun(folder, "partitions", self.partitions)
        if cut["partitions"] is None:
            cut = {"partitions": 2 * sum(client.nthreads().values())}
        n = cut["partitions"]
        table: Any
        partitions: Any
        if _in_pieces(data, reading):
            source = _source(Path(data).resolve(), reading)
            piece = -(-source.n_rows * source.row_bytes // n)
            partitions = file_partitions(source, piece, reading.relevance_threshold)
            table = source
        else:
            table = reading.table(data)
            lists = users.weighting.lists(reading.lists(table), surrogate)
            partitions = array_partitions(lists, n)
        weight = users.weighting.user_weight
        risk = DaskRisk(surrogate, partitions, client, users.policy, user_weight=weight)
        console.note(f"{len(partitions)} partitions; workers: {len(client.nthreads())}")
        return Loaded(risk, risk, table, cut)

    def _wait_for_workers(self, client: Any) -> None:
        if client.nthreads():
            return
        console.note(f"no worker at {self.dask} yet: waiting for one")
        try:
            client.wait_for_workers(1, timeout=_PATIENCE)
        except TimeoutError:
            raise InputError(f"no worker came to {self.dask} within {_PATIENCE} s") from None


def _in_memory(
    data: Path, reading: Reading, surrogate: Surrogate, users: Users, threads: int
) -> Loaded:
    if Path(data).is_dir():
        raise InputError(f"{data} is a directory: give --memory-budget or --dask")
    table = reading.table(data)
    lists = users.weighting.lists(reading.lists(table), surrogate)
    risk = EmpiricalRisk(surrogate, lists, users.policy, n_threads=threads)
    return Loaded(risk, risk.data, table)


def size_in_bytes(text: str) -> int:
    """Bytes that a text such as 500MB, 1.5G or 2GiB means."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if not match or match[2] not in _BYTES or float(match[1]) == 0:
        raise InputError(f"--memory-budget must be a size such as 500MB or 2GiB, got {text!r}")
    return int(float(match[1]) * _BYTES[match[2]])


def _quieten() -> None:
    """A lost scheduler is reported as an error of ours, not by Dask's log with a traceback."""
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _as_begun(folder: Path | None, name: str, value: Any) -> dict[str, Any]:
    """The option that the partitions depend on; where it is None, as a run was begun that goes on.

    Raises
    ------
    InputError
        The run was begun with another value.
    """
    record = None if folder is None else folder / _RECORD
    if record is None or not record.is_file():
        return {name: value}
    try:
        begun: dict[str, Any] = json.loads(record.read_text())
        other = value is not None and begun.get(name) != value
    except (OSError, ValueError, AttributeError):
        raise InputError(f"{record} cannot be read; choose a new folder") from None
    if other or name not in begun:
        given = " ".join(f"--{key.replace('_', '-')} {was}" for key, was in begun.items())
        raise InputError(
            f"the run in {folder} was begun with {given}: its cuts are of the partitions that this "
            "gave; give the same, or choose a new folder"
        )
    return begun


def _in_pieces(data: Path, reading: Reading) -> bool:
    """Whether rows of the data can be read without the others."""
    path = Path(data)
    if reading.format is not None:
        return reading.format == "parquet"
    return path.is_dir() or path.suffix in (".parquet", ".pq")


def _source(data: Path, reading: Reading) -> Any:
    if reading.one_list:
        raise InputError(
            "--one-list: one list cannot be cut into partitions; it must fit in memory"
        )
    if reading.query is not None:
        raise InputError("--query: data that are read in pieces name the user in every row")
    if reading.first_index is not None:
        raise InputError("--first-index: it is for svmlight, which cannot be read in pieces")
    return open_source(
        data, label=reading.label, group=reading.group, ignore=tuple(reading.ignore or ())
    )
