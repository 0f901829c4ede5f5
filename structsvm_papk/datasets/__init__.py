"""Data sets: generators of lists, interactions and digits; and runs of real retrievers.

Most generators return plain arrays `X`, `y`, `groups`; each the same ones for the same seed. What
is not generated has its source and licence in a notice beside it. May import `errors` and `_types`
only.
"""

from structsvm_papk.datasets.generators import (
    digit_queries,
    engagement_lists,
    interaction_pairs,
    linear_lists,
)
from structsvm_papk.datasets.margin_conditions import margin_lists
from structsvm_papk.datasets.retrieval import retrieval_runs

__all__ = [
    "digit_queries",
    "engagement_lists",
    "interaction_pairs",
    "linear_lists",
    "margin_lists",
    "retrieval_runs",
]
