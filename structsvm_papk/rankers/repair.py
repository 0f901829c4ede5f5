"""What to call instead where the optimum is w = 0."""

from __future__ import annotations

from dataclasses import replace

from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.critical_depth import critical_depth
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.settings import AUTO_DEPTH
from structsvm_papk.solvers.cutting_plane import CuttingPlane

_CLEARLY = 1e-4  # share by which an objective has to be below that of w = 0
_FEW_STEPS = 25


def repair_of_zero(risk: EmpiricalRisk, everyone: RankingData, alpha: float) -> str:
    """Which depth keeps w = 0 from being the optimum of a risk, and a call that leaves zero.

    Parameters
    ----------
    risk : EmpiricalRisk
        Whose optimum is zero.
    everyone : RankingData
        The users that were given, those among them that the risk leaves out.
    alpha : float
    """
    answer = critical_depth(risk)
    text = f"{str(answer)[0].upper()}{str(answer)[1:]}."
    if answer.informative_from is not None:
        text += " Counting more negatives in training repairs it"
        for call, depth, policy in (
            ("depth='auto'", AUTO_DEPTH, "exclude"),
            (f"depth={answer.informative_from}, policy='cap'", answer.informative_from, "cap"),
            (f"depth={answer.deepest}, policy='cap'", answer.deepest, "cap"),
        ):
            deeper = replace(risk.surrogate, depth=depth)
            if _leaves_zero(EmpiricalRisk(deeper, everyone, policy), alpha):
                return f"{text}: {call}; or let PAPKRankerCV choose."
        text += ", but with a smaller alpha or tolerance only"
    return f"{text}. Try surrogate='clipped_ramp', or let PAPKRankerCV choose."


def _leaves_zero(risk: EmpiricalRisk, alpha: float) -> bool:
    """Whether a few steps show that the optimum is not zero, even to a tolerance of 1e-4."""
    if not risk.convex:
        return False
    solver = CuttingPlane(alpha, tol=_CLEARLY, max_iter=_FEW_STEPS)
    return solver.solve(risk).objective < 1.0 - _CLEARLY
