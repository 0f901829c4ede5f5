"""Solvers for ``min_w alpha/2 ||w||^2 + R(w)``: they know an oracle for R, nothing of ranking."""

from structsvm_papk.solvers.branch_and_bound import BranchAndBound, GlobalRamp
from structsvm_papk.solvers.cccp import CCCP
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.solvers.path import alpha_path
from structsvm_papk.solvers.subgradient import SubgradientDescent

__all__ = [
    "CCCP",
    "BranchAndBound",
    "CuttingPlane",
    "GlobalRamp",
    "SubgradientDescent",
    "alpha_path",
]
