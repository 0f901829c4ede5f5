"""SVM-pAUC: the structural surrogate of the partial AUC, minimised with a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from structsvm_papk._types import Callback
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.surrogates import PAUC

if TYPE_CHECKING:
    from structsvm_papk.data.ranking_data import RankingData
    from structsvm_papk.solvers.result import SolverResult


@dataclass(frozen=True)
class SVMPAUC:
    """Certified minimiser of ``alpha/2 ||w||^2 + mean_u pAUC surrogate`` over [0, k/n_neg].

    `alpha`: regularisation strength, > 0; `tol`: certified relative gap.

    Narasimhan and Agarwal, "A structural SVM based approach for optimizing partial AUC", ICML
    2013.
    """

    alpha: float
    tol: float = 1e-6
    max_iter: int = 2000

    def solve(self, data: RankingData, k: int, callback: Callback | None = None) -> SolverResult:
        """Minimise on `RankingData`; returns a `SolverResult` with its certificate."""
        risk = EmpiricalRisk(PAUC(k), data)
        return CuttingPlane(self.alpha, self.tol, self.max_iter).solve(risk, callback=callback)
