"""The published claims as checks that search for their own counterexamples.

`verify` runs them; each `Check` says what was claimed, by whom, what was tried and the verdict. A
counterexample is made small enough to check by hand. Every check has a control, a variant whose
verdict must be the opposite. May import margins, plots, risks, solvers and generators.
"""

from structsvm_papk.propositions.running import verify

__all__ = [
    "verify",
]
