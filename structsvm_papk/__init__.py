"""Certified cutting-plane training and evaluation of rankers for the pAp@k metric.

The names that most programs need, and their subpackages, are imported on first use, so
that a program pays for what it uses: compiled kernels, cvxpy and scikit-learn take a second.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from structsvm_papk._version import __version__ as __version__

if TYPE_CHECKING:
    from structsvm_papk.data import RankingData
    from structsvm_papk.oracles import EmpiricalRisk
    from structsvm_papk.rankers import PAPKRanker
    from structsvm_papk.solvers import (
        CCCP,
        CuttingPlane,
        DualAscent,
        GlobalRamp,
        SolverResult,
        SubgradientDescent,
    )
    from structsvm_papk.surrogates import make_surrogate

__all__ = [
    "CCCP",
    "CuttingPlane",
    "DualAscent",
    "EmpiricalRisk",
    "GlobalRamp",
    "PAPKRanker",
    "RankingData",
    "SolverResult",
    "SubgradientDescent",
    "make_surrogate",
]

_SUBPACKAGE_OF = {
    "EmpiricalRisk": "oracles",
    "PAPKRanker": "rankers",
    "RankingData": "data",
    "make_surrogate": "surrogates",
}
_SUBPACKAGES = (
    *("bounds", "cli", "data", "datasets", "diagnosis", "errors", "files", "fusion"),
    *("integrations", "margins", "metrics", "oracles", "plots", "propositions", "rankers"),
    *("solvers", "surrogates"),
)


def __getattr__(name: str) -> object:
    if name in _SUBPACKAGES:
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        value: object = getattr(
            import_module(f"{__name__}.{_SUBPACKAGE_OF.get(name, 'solvers')}"), name
        )
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBPACKAGES})
