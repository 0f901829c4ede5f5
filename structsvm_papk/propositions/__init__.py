"""The published claims as checks that search for their own counterexamples.

`verify` runs them; each `Check` says what was claimed, by whom, what was tried and the verdict. A
counterexample is made small enough to check by hand. Every check has a control, a variant whose
verdict must be the opposite.
"""

from structsvm_papk.propositions.claims import CLAIMS, Claim
from structsvm_papk.propositions.optimising import (
    OPTIMUM_CLAIMS,
    OptimumClaim,
    regimes,
    search_optima,
)
from structsvm_papk.propositions.running import ALL_IDS, EFFORTS, Check, run_check, verify

__all__ = [
    "ALL_IDS",
    "CLAIMS",
    "EFFORTS",
    "OPTIMUM_CLAIMS",
    "Check",
    "Claim",
    "OptimumClaim",
    "regimes",
    "run_check",
    "search_optima",
    "verify",
]
