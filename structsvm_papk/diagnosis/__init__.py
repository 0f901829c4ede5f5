"""Is the zero vector the optimum, and for which users?"""

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
    "Diagnosis",
    "Verdict",
    "ZeroTest",
    "degeneracy_figure",
    "diagnose",
    "diagnose_over_k",
]
