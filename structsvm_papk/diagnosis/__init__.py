"""Is the zero vector the optimum, and for which users?"""

from structsvm_papk.diagnosis.critical_depth import CriticalDepth, critical_depth
from structsvm_papk.diagnosis.zero_test import (
    SURROGATES,
    Diagnosis,
    Verdict,
    ZeroTest,
    degeneracy_figure,
    diagnose,
    diagnose_over_k,
)

__all__ = [
    "SURROGATES",
    "CriticalDepth",
    "Diagnosis",
    "Verdict",
    "ZeroTest",
    "critical_depth",
    "degeneracy_figure",
    "diagnose",
    "diagnose_over_k",
]
