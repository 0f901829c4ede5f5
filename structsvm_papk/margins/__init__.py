"""Margin conditions (Definitions 2-5): do given scores realise them, does any linear w?

`check_scores` answers for given scores; `find_scorer` looks for a linear w and
returns a certificate that `Existence.verify` re-checks in rational arithmetic. May import `data`
and below.
"""

from structsvm_papk.margins.conditions import check_scores, find_scorer

__all__ = [
    "check_scores",
    "find_scorer",
]
