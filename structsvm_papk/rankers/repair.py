"""What to set instead where the optimum is w = 0."""

from dataclasses import replace
from typing import Any

from structsvm_papk.data.ranking_data import RankingData
from structsvm_papk.diagnosis.critical_depth import CriticalDepth, critical_depth
from structsvm_papk.diagnosis.zero_test import has_test
from structsvm_papk.errors import DegenerateOptimumWarning
from structsvm_papk.oracles.empirical_risk import EmpiricalRisk
from structsvm_papk.rankers.settings import AUTO_DEPTH
from structsvm_papk.solvers.cutting_plane import CuttingPlane
from structsvm_papk.surrogates import Surrogate

_CLEARLY = 1e-4  # share by which an objective has to be below that of w = 0
_FEW_STEPS = 25


def warning_of_zero(
    surrogate: Surrogate,
    alpha: float,
    risk: EmpiricalRisk | None = None,
    everyone: RankingData | None = None,
    max_seconds: float = 1.0,
) -> DegenerateOptimumWarning:
    """The warning that a surrogate's optimum is zero, and the settings that leave zero.

    `risk` is what was minimised, `everyone` the lists that it was made of, those that it leaves out
    included; without them nothing is tried, and the settings are the usual ones. `max_seconds` are
    for the search of the critical depth, which may cost more than the fit.
    """
    settings: dict[str, Any] = {}
    text = (
        f"w = 0 is the optimum of {surrogate.label} at depth {surrogate.depth or surrogate.k}, to "
        "within the tolerance, and ranks nothing"
    )
    if risk is None or everyone is None:
        settings = {} if surrogate.depth == AUTO_DEPTH else {"depth": "auto"}
    elif has_test(surrogate):  # of others no critical depth is known
        answer = critical_depth(risk, max_seconds=max_seconds)
        text += f": {str(answer).partition(': ')[2]}"
        settings = _deeper(risk, everyone, alpha, answer)
    if not settings and surrogate.name != "clipped_ramp":
        settings = {"surrogate": "clipped_ramp"}
    elif surrogate.is_custom:
        settings = {"surrogate": replace(surrogate, depth=None)} | settings
    return DegenerateOptimumWarning(f"{text}.", settings)


def _deeper(
    risk: EmpiricalRisk, everyone: RankingData, alpha: float, answer: CriticalDepth
) -> dict[str, Any]:
    """Settings with a larger depth whose optimum is not zero; none where there are none."""
    least = answer.informative_from
    if not risk.convex or (least is None and not answer.out_of_time):
        return {}
    lists = everyone.scaled_by(risk.column_scale)
    tried: list[tuple[Any, dict[str, Any]]] = [(AUTO_DEPTH, {"depth": "auto"})]
    if least is not None:
        tried += [(depth, {"depth": depth, "policy": "cap"}) for depth in (least, answer.deepest)]
    for depth, settings in tried:
        policy = settings.get("policy", "exclude")
        deeper = EmpiricalRisk(replace(risk.surrogate, depth=depth), lists, policy)
        solver = CuttingPlane(alpha, tol=_CLEARLY, max_iter=_FEW_STEPS)
        if solver.solve(deeper).objective < 1.0 - _CLEARLY:
            return settings
    return {}
