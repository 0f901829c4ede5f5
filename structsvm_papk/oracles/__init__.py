"""Risks made of a surrogate and data, as oracles for the solvers: in memory, in files, on Dask.

The mean over users of a surrogate of their scores; what differs is where the rows are:

                 lists in memory    partitions elsewhere, see `Partitions`
    gives cuts   `ListRisk`         `PartitionedCuts`, of the `ListRisk` of each
    the risk     `EmpiricalRisk`    `PartitionedRisk`: `StreamedRisk` and `DaskRisk`
    majorants    `MajorantRisk`     `PartitionedMajorant`

A solve of a single list takes its cuts from `one_list`. Risks larger than memory are imported on
first use: they score with `metrics`, which costs a program that does not need them a tenth of a
second. May import `metrics`, `data`, `surrogates` and the contract of `solvers`.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from structsvm_papk.oracles.empirical_risk import EmpiricalRisk

if TYPE_CHECKING:
    from structsvm_papk.oracles.streamed import StreamedRisk

__all__ = ["EmpiricalRisk", "StreamedRisk"]


def __getattr__(name: str) -> object:
    if name != "StreamedRisk":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.streamed").StreamedRisk
