"""Solvers for ``min_w alpha/2 ||w||^2 + R(w)``: they know an oracle for R, nothing of ranking.

A solver is a frozen set of settings with ``solve(oracle, ..) -> SolverResult``; the state of a run
lives and dies with it. `oracle` says what may be asked of a risk.
"""

from structsvm_papk.solvers.averaged_subgradient import StochasticSubgradient
from structsvm_papk.solvers.branch_and_bound import GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.dual_ascent import DualAscent
from structsvm_papk.solvers.oracle import BlockOracle, Oracle
from structsvm_papk.solvers.solver import SolverResult
from structsvm_papk.solvers.subgradient import SubgradientDescent

__all__ = [
    "CCCP",
    "BlockOracle",
    "CuttingPlane",
    "DualAscent",
    "GlobalRamp",
    "Oracle",
    "SolverResult",
    "StochasticSubgradient",
    "SubgradientDescent",
]
