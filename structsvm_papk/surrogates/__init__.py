"""Losses of a user's scores that stand in for the pAp@k risk, and their convex majorants.

They see scores only, never features: kernels over list positions, classes that declare what may be
relied on. May import `errors`, `_types` and `_sorting`.
"""

from structsvm_papk.surrogates.base import Surrogate
from structsvm_papk.surrogates.checking import check_surrogate
from structsvm_papk.surrogates.losses import CONVEX as CONVEX
from structsvm_papk.surrogates.losses import make_surrogate

__all__ = [
    "Surrogate",
    "check_surrogate",
    "make_surrogate",
]
