"""Estimators in the manner of scikit-learn, and several solvers side by side.

`PAPKRanker` and `PAPKRankerCV` resolve names (`"ts"`, `"bundle"`), build a risk, hand it to a
solver and warn of what it says; `compare` runs several solvers on one problem. The estimators are
imported on first use: scikit-learn costs a program that does not need it a second. May import all
of the library below: risks, solvers, metrics, files. Nothing here knows of commands.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from structsvm_papk.rankers.solver_race import compare

if TYPE_CHECKING:
    from structsvm_papk.rankers.ranker import PAPKRanker
    from structsvm_papk.rankers.ranker_cv import PAPKRankerCV
    from structsvm_papk.rankers.user_scaler import UserScaler

__all__ = ["PAPKRanker", "PAPKRankerCV", "UserScaler", "compare"]


_LATER = {"PAPKRanker": "ranker", "PAPKRankerCV": "ranker_cv", "UserScaler": "user_scaler"}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
