"""Is the zero vector the optimum, and for which users?

Answers with certificates before any training. May import risks, data and surrogates.
"""

from structsvm_papk.diagnosis.zero_test import critical_depth, diagnose

__all__ = [
    "critical_depth",
    "diagnose",
]
