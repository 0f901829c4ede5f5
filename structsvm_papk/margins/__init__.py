"""Margin conditions (Definitions 2-5): do given scores realise them, does any linear w?

`check_scores` and `check_users` answer for given scores; `find_scorer` looks for a linear w and
returns a certificate that `Existence.verify` re-checks in rational arithmetic. May import `data`
and below.
"""

from structsvm_papk.margins.conditions import check_scores, check_users, find_scorer

__all__ = [
    "check_scores",
    "check_users",
    "find_scorer",
]
