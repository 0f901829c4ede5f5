"""Is the zero vector the optimum, and for which users?

Answers with certificates before any training. May import risks, data and surrogates.
"""

from structsvm_papk.diagnosis.critical_depth import CriticalDepth, critical_depth
from structsvm_papk.diagnosis.zero_test import Diagnosis, diagnose

__all__ = [
    "CriticalDepth",
    "Diagnosis",
    "critical_depth",
    "diagnose",
]
