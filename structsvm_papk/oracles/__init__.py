"""Risks made of a surrogate and data, as oracles for the solvers: in memory, in files, on Dask.

The mean over users of a surrogate of their scores; what differs is where the rows are. Those larger
than memory are imported on first use: they score with `metrics`, which costs a program that does
not need them a tenth of a second. May import `metrics`, `data`, `surrogates` and the contract of
`solvers`.
"""

from typing import TYPE_CHECKING

from structsvm_papk.oracles.empirical_risk import EmpiricalRisk

if TYPE_CHECKING:
    from structsvm_papk.oracles.dask_risk import DaskRisk, connect
    from structsvm_papk.oracles.streamed import StreamedRisk

__all__ = ["DaskRisk", "EmpiricalRisk", "StreamedRisk", "connect"]


def __getattr__(name: str) -> object:
    if name == "StreamedRisk":
        from structsvm_papk.oracles import streamed

        return streamed.StreamedRisk
    if name in ("DaskRisk", "connect"):
        from structsvm_papk.oracles import dask_risk

        return getattr(dask_risk, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
