"""Certified cutting-plane training and evaluation of rankers for the pAp@k metric.

The names that most programs need, from their rooms. The estimators are imported on first use, as
scikit-learn alone takes a second.
"""

from typing import TYPE_CHECKING

from structsvm_papk._version import __version__
from structsvm_papk.data import RankingData
from structsvm_papk.oracles import EmpiricalRisk
from structsvm_papk.solvers import (
    CCCP,
    CuttingPlane,
    DualAscent,
    GlobalRamp,
    SolverResult,
    Status,
    SubgradientDescent,
    alpha_path,
)
from structsvm_papk.surrogates import make_surrogate

if TYPE_CHECKING:
    from structsvm_papk.rankers import PAPKRanker, PAPKRankerCV

__all__ = [
    "CCCP",
    "CuttingPlane",
    "DualAscent",
    "EmpiricalRisk",
    "GlobalRamp",
    "PAPKRanker",
    "PAPKRankerCV",
    "RankingData",
    "SolverResult",
    "Status",
    "SubgradientDescent",
    "__version__",
    "alpha_path",
    "make_surrogate",
]


def __getattr__(name: str) -> object:
    if name in ("PAPKRanker", "PAPKRankerCV"):
        from structsvm_papk import rankers

        return getattr(rankers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
