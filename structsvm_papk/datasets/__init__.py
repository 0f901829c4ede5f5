"""Generators of data sets: recommender-like lists, interactions, the paper's data, digits.

Most return plain arrays `X`, `y`, `groups`; each the same ones for the same seed. May import
`errors` and `_types` only.
"""

from structsvm_papk.datasets.generators import (
    digit_queries,
    engagement_lists,
    interaction_pairs,
    linear_lists,
    recommender_lists,
    two_gaussians,
)
from structsvm_papk.datasets.margin_conditions import margin_lists

__all__ = [
    "digit_queries",
    "engagement_lists",
    "interaction_pairs",
    "linear_lists",
    "margin_lists",
    "recommender_lists",
    "two_gaussians",
]
