"""Options that say where the data of a fit lie: in memory, in files, or on a cluster."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from structsvm_papk.cli._shared import console
from structsvm_papk.cli._shared.reading import GradedReading
from structsvm_papk.data.columns.knots import check_curves
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.errors import InputError, OracleFailure
from structsvm_papk.files.atomic import resolved
from structsvm_papk.files.lines import errors_name
from structsvm_papk.files.partitions import (
    SOURCES,
    array_partitions,
    file_partitions,
    is_source,
    open_source,
)
from structsvm_papk.oracles.dask_risk import DaskRisk, connect
from structsvm_papk.oracles.streamed import StreamedRisk
from structsvm_papk.rankers import PAPKRanker
from structsvm_papk.rankers.solver_race import train_gain

_scale_option = partial(typer.Option, rich_help_panel="Data larger than memory")
_PATIENCE = 60  # seconds
_PARTITIONS_OF_A_THREAD = 2
_BYTES = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BYTES |= {f"{letter}I": 1024**power for power, letter in enumerate("KMGT", start=1)}


@dataclass(frozen=True)
class Loaded:
    """What names the features, and lists in memory or the risk of data that are elsewhere."""

    table: Any
    lists: RankingData | None = None
    risk: Any = None

    def train(self, ranker: PAPKRanker) -> None:
        """Train a ranker on them."""
        if self.lists is None:
            ranker.fit_risk(self.risk)
        else:
            ranker.fit_lists(self.lists)

    @property
    def matrix(self) -> Any:
        """The features, where they are in memory; None where they are not."""
        return None if self.lists is None else self.lists.X

    def gain(self, ranker: PAPKRanker) -> float:
        """Mean pAp@k of a trained ranker on them."""
        if self.lists is None:
            return train_gain(self.risk, ranker.result_.w)
        return ranker.gain_on(self.lists)


def _size_in_bytes(text: str) -> int:
    """Bytes that a text such as 500MB, 1.5G or 2GiB means."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", text.upper())
    number, unit = match.groups() if match else ("0", "")
    if float(number) == 0 or unit not in _BYTES:
        raise typer.BadParameter(f"{text!r} must be a size such as 500MB or 2GiB")
    return int(float(number) * _BYTES[unit])


MemoryBudget = Annotated[
    Any,
    _scale_option(
        parser=_size_in_bytes,
        help="Read the features from their file in every pass and use at most this much memory "
        f"(500MB, 2GiB); {SOURCES}, with the rows of each list together.",
        metavar="SIZE",
    ),
]
Dask = Annotated[
    str | None,
    _scale_option(
        help="Compute on the workers of this Dask scheduler (tcp://host:8786); they read Parquet "
        "and .npy files themselves, other files are sent to them.",
        metavar="ADDRESS",
    ),
]


@dataclass(frozen=True, kw_only=True)
class Loading:
    """Where the data lie: in memory by default, in files within a budget of bytes, or on Dask."""

    memory_budget: MemoryBudget = None
    dask: Dask = None

    @contextmanager
    def loaded(self, data: Path, reading: GradedReading, ranker: PAPKRanker) -> Iterator[Loaded]:
        """The data as `Loaded`, for as long as the context lasts."""
        self._check(ranker)
        dense = check_curves(ranker.curves) is not None
        try:
            if self.memory_budget is not None:
                yield self._streamed(data, reading, ranker, self.memory_budget)
            elif self.dask is not None:
                with connect(self.dask) as client:
                    # that a scheduler is lost is said by an error of ours
                    for name in ("distributed", "distributed.client"):
                        logging.getLogger(name).setLevel(logging.CRITICAL)
                    yield self._on_cluster(data, reading, ranker, client)
            elif data.is_dir():
                raise InputError(f"{data} is a directory: give --memory-budget or --dask")
            else:
                table = reading.table(data, dense=dense)
                yield Loaded(table, lists=reading.lists(table))
        except OracleFailure as failure:
            raise InputError(str(failure)) from None

    def _check(self, ranker: PAPKRanker) -> None:
        if self.memory_budget is not None and self.dask is not None:
            raise InputError("--memory-budget is for one machine, --dask for several: give one")
        if self.memory_budget is not None or self.dask is not None:
            ranker.refuse_outside_memory("with --memory-budget or --dask")
        if self.dask is not None and ranker.n_threads != 1:
            raise InputError("--threads is for this machine: workers have threads of their own")

    def _streamed(
        self, data: Path, reading: GradedReading, ranker: PAPKRanker, budget: int
    ) -> Loaded:
        if not is_source(data):
            raise InputError(f"--memory-budget cannot read {data}: it needs {SOURCES}")
        source = _source(data, reading)
        risk = StreamedRisk(
            ranker.make_surrogate(),
            source,
            memory_budget=budget,
            relevance_threshold=ranker.relevance_threshold,
            label_gain=reading.label_gain,
            policy=ranker.policy,
            n_threads=ranker.n_threads,
            curves=check_curves(ranker.curves),
            positive=ranker.positive,
        )
        console.note(f"{risk.share_in_memory:.0%} of the features stay in memory")
        return Loaded(source, risk=risk)

    def _on_cluster(
        self, data: Path, reading: GradedReading, ranker: PAPKRanker, client: Any
    ) -> Loaded:
        if not client.nthreads():
            console.note(f"no worker at {self.dask} yet: waiting for one")
            try:
                client.wait_for_workers(1, timeout=_PATIENCE)
            except TimeoutError:
                raise InputError(
                    f"no worker connected to {self.dask} within {_PATIENCE} s"
                ) from None
        partitions: Any
        n_partitions = _PARTITIONS_OF_A_THREAD * sum(client.nthreads().values())
        if is_source(data):
            table = _source(resolved(data), reading)  # workers have other folders
            partition_bytes = -(-table.n_rows * table.row_bytes // n_partitions)  # rounded up
            partitions = file_partitions(
                table, partition_bytes, ranker.relevance_threshold, label_gain=reading.label_gain
            )
        else:
            table = reading.table(data)
            with errors_name(data):
                partitions = array_partitions(reading.lists(table), n_partitions)
        risk = DaskRisk(
            ranker.make_surrogate(),
            partitions,
            client,
            policy=ranker.policy,
            curves=check_curves(ranker.curves),
            positive=ranker.positive,
        )
        console.note(f"{len(partitions)} partitions; workers: {len(client.nthreads())}")
        return Loaded(table, risk=risk)


def _source(data: Path, reading: GradedReading) -> Any:
    """The data as a source."""
    if reading.one_list:
        raise InputError(
            "--one-list: one list cannot be cut into partitions; it must fit in memory"
        )
    ignore = tuple(reading.ignore or ())
    return open_source(data, label=reading.label, group=reading.group, ignore=ignore)
