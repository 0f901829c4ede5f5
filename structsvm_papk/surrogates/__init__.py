"""Losses of a user's scores that stand in for the pAp@k risk, and their convex majorants.

They see scores only, never features: kernels over list positions, classes that say what may be
relied on. May import the contract of `solvers`, and sorting.
"""

from structsvm_papk.surrogates.base import CONVEX, SURROGATES, Surrogate, make_surrogate

__all__ = [
    "CONVEX",
    "SURROGATES",
    "Surrogate",
    "make_surrogate",
]
