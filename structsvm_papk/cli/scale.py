"""Options that say where the data of a fit lie: in memory, in files, or on a cluster."""

import logging
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from structsvm_papk.cli import console
from structsvm_papk.cluster import DaskRisk, connect
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.partitions import array_partitions, file_partitions, open_source
from structsvm_papk.risk import EmpiricalRisk
from structsvm_papk.streaming import StreamedRisk

_SCALE = "Data larger than memory"
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES |= {f"{letter}I": 1024**power for power, letter in enumerate("KMGT", start=1)}

MemoryBudget = Annotated[
    str | None,
    typer.Option(
        "--memory-budget",
        metavar="SIZE",
        help="Read the features from their file in every pass, within so much memory (500MB, 2GiB);"
        " Parquet, or a directory with X.npy, y.npy and groups.npy, every user's rows together.",
        rich_help_panel=_SCALE,
    ),
]
Scratch = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Where Parquet is unpacked for --memory-budget; by default the system's directory.",
        rich_help_panel=_SCALE,
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Compute on the workers of this Dask scheduler (tcp://host:8786); they read Parquet "
        "and .npy files themselves, other files are sent to them.",
        rich_help_panel=_SCALE,
    ),
]
Partitions = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Partitions on the cluster; by default two for each thread of the workers.",
        rich_help_panel=_SCALE,
    ),
]


@dataclass(frozen=True)
class Problem:
    """A risk, the lists that it is of (for their fingerprint), and the features' names."""

    risk: object
    lists: object
    table: object


@dataclass(frozen=True)
class Scale:
    """Where the data lie."""

    memory_budget: MemoryBudget = None
    scratch: Scratch = None
    dask: Dask = None
    partitions: Partitions = None

    @contextmanager
    def problem(self, data, reading, surrogate, policy, threads):
        """The `Problem` of a data file, for as long as the context lasts.

        Raises
        ------
        InputError
            Options that do not go together, or data that cannot be used in this way.
        """
        if self.memory_budget is not None and self.dask is not None:
            raise InputError("--memory-budget is for one machine, --dask for several: give one")
        try:
            if self.memory_budget is not None:
                yield self._streamed(data, reading, surrogate, policy, threads)
            elif self.dask is not None:
                with connect(self.dask) as client:
                    _quieten()
                    yield self._on_cluster(data, reading, surrogate, policy, client)
            else:
                table = reading.table(data)
                risk = EmpiricalRisk(surrogate, reading.lists(table), policy, n_threads=threads)
                yield Problem(risk, risk.data, table)
        except OracleFailure as failure:
            raise InputError(str(failure)) from None

    def _streamed(self, data, reading, surrogate, policy, threads):
        if not _in_pieces(data, reading):
            raise InputError(
                f"--memory-budget cannot read {data} in pieces: it needs Parquet, or a directory "
                "with X.npy, y.npy and groups.npy"
            )
        budget, threshold = size_in_bytes(self.memory_budget), reading.relevance_threshold
        source = _source(data, reading)
        risk = StreamedRisk(surrogate, source, budget, threshold, policy, threads, self.scratch)
        console.note(f"{risk.share_in_memory:.0%} of the features stay in memory")
        return Problem(risk, risk, source)

    def _on_cluster(self, data, reading, surrogate, policy, client):
        n = self.partitions or 2 * max(1, sum(client.nthreads().values()))
        if _in_pieces(data, reading):
            source = _source(Path(data).resolve(), reading)
            piece = -(-source.n_rows * source.row_bytes // n)
            partitions = file_partitions(source, piece, reading.relevance_threshold)
            table = source
        else:
            table = reading.table(data)
            partitions = array_partitions(reading.lists(table), n)
        risk = DaskRisk(surrogate, partitions, client, policy)
        console.note(f"{len(partitions)} partitions on {len(client.nthreads())} workers")
        return Problem(risk, risk, table)


def size_in_bytes(text):
    """Bytes that a text such as 500MB, 1.5G or 2GiB means."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    if not match or match[2] not in _BYTES or float(match[1]) == 0:
        raise InputError(f"--memory-budget must be a size such as 500MB or 2GiB, got {text!r}")
    return int(float(match[1]) * _BYTES[match[2]])


def _quieten():
    """A lost scheduler is told as an error of ours, not by Dask's log with a traceback."""
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _in_pieces(data, reading):
    """Whether rows of the data can be read without the others."""
    path = Path(data)
    return path.is_dir() or reading.format == "parquet" or path.suffix in (".parquet", ".pq")


def _source(data, reading):
    if reading.one_list:
        raise InputError(
            "--one-list: one list cannot be cut into partitions; it must fit in memory"
        )
    return open_source(data, label=reading.label, group=reading.group, ignore=reading.ignore or ())
