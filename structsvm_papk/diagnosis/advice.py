"""What to say where w = 0 is the optimum of a fit: why, and which settings leave it.

Up to three further models are fitted, a few steps each; that never costs the fit its result.
"""

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
    positive: bool = False,
) -> DegenerateOptimumWarning:
    """The warning that a surrogate's optimum is zero, and the settings that leave zero.

    `risk` is what was minimised, `everyone` the lists that it was made of, those that it leaves out
    included; without them nothing is tried, and the settings are the usual ones. `max_seconds` are
    for the search of the critical depth, which may cost more than the fit; there is none where the
    optimum is among `positive` weights, since the test at zero knows of no signs.
    """
    text = (
        f"w = 0 is the optimum of {surrogate.label} at depth {surrogate.depth or surrogate.k}"
        f"{' among weights >= 0' if positive else ''}, to within the tolerance, and ranks nothing"
    )
    settings: dict[str, Any] = {} if surrogate.depth == AUTO_DEPTH else {"depth": AUTO_DEPTH}
    if risk is not None and everyone is not None:
        try:
            answer, settings = _what_leaves_zero(risk, everyone, alpha, max_seconds, positive)
            text += answer
        except (Exception, KeyboardInterrupt) as error:  # the fit is done: that is worth more
            text += f" (the search for other settings ended in {type(error).__name__}: {error})"
    if not settings and surrogate.name != "clipped_ramp":
        settings = {"surrogate": "clipped_ramp"}
    elif surrogate.is_custom:
        settings = {"surrogate": replace(surrogate, depth=None)} | settings
    return DegenerateOptimumWarning(f"{text}.", settings)


def _what_leaves_zero(
    risk: EmpiricalRisk, everyone: RankingData, alpha: float, max_seconds: float, positive: bool
) -> tuple[str, dict[str, Any]]:
    """What the critical depth is, for the text, and settings whose optimum is not zero."""
    surrogate = risk.surrogate
    if positive:
        deeper = [(AUTO_DEPTH, {"depth": AUTO_DEPTH})] if surrogate.depth != AUTO_DEPTH else []
        signed: list[Any] = [(surrogate.depth, {"positive": False})]
        return "", _first_not_zero(risk, everyone, alpha, [*deeper, *signed], positive)
    if not has_test(surrogate):  # no critical depth is known
        return "", {}
    answer = critical_depth(risk, max_seconds=max_seconds)
    return f": {str(answer).partition(': ')[2]}", _deeper(risk, everyone, alpha, answer)


def _deeper(
    risk: EmpiricalRisk, everyone: RankingData, alpha: float, answer: CriticalDepth
) -> dict[str, Any]:
    """Settings with a larger depth whose optimum is not zero; none where there are none."""
    least = answer.informative_from
    if not risk.convex or (least is None and not answer.out_of_time):
        return {}
    tried: list[tuple[Any, dict[str, Any]]] = [(AUTO_DEPTH, {"depth": AUTO_DEPTH})]
    if least is not None:
        tried += [(depth, {"depth": depth, "policy": "cap"}) for depth in (least, answer.deepest)]
    return _first_not_zero(risk, everyone, alpha, tried)


def _first_not_zero(
    risk: EmpiricalRisk, everyone: RankingData, alpha: float, tried: Any, positive: bool = False
) -> dict[str, Any]:
    """The first of some settings, each with its depth, whose optimum is not zero; else none."""
    if not risk.convex:
        return {}
    lists = everyone.scaled_by(risk.column_scale)
    for depth, settings in tried:
        deeper = EmpiricalRisk(replace(risk.surrogate, depth=depth), lists, "cap")
        signs = settings.get("positive", positive)
        solver = CuttingPlane(alpha, tol=_CLEARLY, max_iter=_FEW_STEPS, positive=signs)
        if solver.solve(deeper).objective < 1.0 - _CLEARLY:
            return settings
    return {}
