"""Margin conditions (Definitions 2-5): do given scores realise them, does any linear w?

`check_scores` and `check_users` answer for given scores; `find_scorer` and `find_scorers` look for
a linear w and return a certificate that `Existence.verify` re-checks in rational arithmetic.
"""

from structsvm_papk.margins.exact import exact_margins
from structsvm_papk.margins.existence import Existence, find_in_data, find_scorer, find_scorers
from structsvm_papk.margins.scores import (
    CONDITIONS,
    MarginReport,
    check_scores,
    check_users,
    join,
)
from structsvm_papk.margins.separation import HullProof
from structsvm_papk.margins.subsets import CommonProof, SubsetProof

__all__ = [
    "CONDITIONS",
    "CommonProof",
    "Existence",
    "HullProof",
    "MarginReport",
    "SubsetProof",
    "check_scores",
    "check_users",
    "exact_margins",
    "find_in_data",
    "find_scorer",
    "find_scorers",
    "join",
]
