"""Losses of a user's scores that stand in for the pAp@k risk, and their convex majorants.

They see scores only, never features. Imports nothing of the package but `errors` and `_types`.
"""

from structsvm_papk.surrogates.base import (
    CONVEX,
    PAUC,
    SURROGATES,
    TS,
    Avg,
    ClippedRamp,
    Max,
    Ramp,
    Surrogate,
    TSAlg2,
    check_scores,
    make_surrogate,
)

__all__ = [
    "CONVEX",
    "PAUC",
    "SURROGATES",
    "TS",
    "Avg",
    "ClippedRamp",
    "Max",
    "Ramp",
    "Surrogate",
    "TSAlg2",
    "check_scores",
    "make_surrogate",
]
