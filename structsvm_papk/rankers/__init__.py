"""Estimators in the manner of scikit-learn, and several solvers side by side.

`PAPKRanker` resolves names (`"ts"`, `"bundle"`), builds a risk, hands it to a solver and warns of
what it says; `compare` runs several solvers on one problem. The estimator is
imported on first use: scikit-learn costs a program that does not need it a second. May import all
of the library below: risks, solvers, metrics, files. Nothing here knows of commands.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from structsvm_papk.rankers.solver_race import compare

if TYPE_CHECKING:
    from structsvm_papk.rankers.ranker import PAPKRanker

__all__ = ["PAPKRanker", "compare"]


def __getattr__(name: str) -> object:
    if name != "PAPKRanker":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.ranker").PAPKRanker
