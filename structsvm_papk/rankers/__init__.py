"""Estimators in the manner of scikit-learn, and several solvers side by side.

`PAPKRanker` and `PAPKRankerCV` resolve names (`"ts"`, `"bundle"`), build a risk, hand it to a
solver and warn of what it says; `compare` runs several solvers on one problem. May import all of
the library below: risks, solvers, metrics, files. Nothing here knows of commands or experiments.
"""

from structsvm_papk.rankers.ranker import PAPKRanker
from structsvm_papk.rankers.ranker_cv import PAPKRankerCV
from structsvm_papk.rankers.solver_race import compare

__all__ = [
    "PAPKRanker",
    "PAPKRankerCV",
    "compare",
]
