"""Generators of data sets: recommender-like lists, interactions, the paper's data, digits.

Most return plain arrays `X`, `y`, `groups`; each the same ones for the same seed. May import
`errors` and `_types` only.
"""

from structsvm_papk.datasets.digits import digit_queries
from structsvm_papk.datasets.margin_conditions import margin_lists
from structsvm_papk.datasets.synthetic import (
    engagement_lists,
    interaction_pairs,
    linear_lists,
    recommender_lists,
    two_gaussians,
)

__all__ = [
    "digit_queries",
    "engagement_lists",
    "interaction_pairs",
    "linear_lists",
    "margin_lists",
    "recommender_lists",
    "two_gaussians",
]
