"""Generators of data sets: recommender-like lists, the paper's synthetic data, digits."""

from structsvm_papk.datasets.digits import digit_queries
from structsvm_papk.datasets.synthetic import (
    Lists,
    degenerate_lists,
    engagement_lists,
    linear_lists,
    margin_lists,
    paper_figure1,
    paper_table2,
    two_gaussians,
)

__all__ = [
    "Lists",
    "degenerate_lists",
    "digit_queries",
    "engagement_lists",
    "linear_lists",
    "margin_lists",
    "paper_figure1",
    "paper_table2",
    "two_gaussians",
]
