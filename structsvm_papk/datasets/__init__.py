"""Generators of data sets: recommender-like lists, the paper's synthetic data, digits.

Each returns plain arrays `X`, `y`, `groups`, the same ones for the same seed. May import `errors`
and `_types` only.
"""

from structsvm_papk.datasets.digits import digit_queries
from structsvm_papk.datasets.margin_conditions import margin_lists
from structsvm_papk.datasets.synthetic import (
    degenerate_lists,
    engagement_lists,
    linear_lists,
    two_gaussians,
)

__all__ = [
    "degenerate_lists",
    "digit_queries",
    "engagement_lists",
    "linear_lists",
    "margin_lists",
    "two_gaussians",
]
