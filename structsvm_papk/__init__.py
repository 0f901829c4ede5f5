"""Certified cutting-plane training and evaluation of rankers for the pAp@k metric."""

from structsvm_papk._version import __version__
from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.path import alpha_path
from structsvm_papk.solvers.result import SolverResult, Status
from structsvm_papk.solvers.subgradient import SubgradientDescent
from structsvm_papk.surrogates.base import make_surrogate

__all__ = [
    "CCCP",
    "CuttingPlane",
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


def __getattr__(name):
    """Import the estimators on first use: scikit-learn alone takes a second."""
    if name == "PAPKRanker":
        from structsvm_papk.rankers.ranker import PAPKRanker

        return PAPKRanker
    if name == "PAPKRankerCV":
        from structsvm_papk.rankers.ranker_cv import PAPKRankerCV

        return PAPKRankerCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
