"""Is the zero vector the optimum, and for which users?

Answers with certificates before any training. May import risks, data and surrogates.
"""

from structsvm_papk.diagnosis.critical_depth import critical_depth
from structsvm_papk.diagnosis.zero_test import diagnose

__all__ = [
    "critical_depth",
    "diagnose",
]
