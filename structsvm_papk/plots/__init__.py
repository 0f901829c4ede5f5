"""Plots of rankings and of runs (matplotlib), and the pages of `evaluate` and `fuse`.

matplotlib and jinja2 are extras, imported where they are used. May import all of
the layer of estimators and below.
"""

from structsvm_papk.plots.figures import convergence_figure
from structsvm_papk.plots.rankings import (
    PAPDisplay,
)
from structsvm_papk.plots.terms import TermsDisplay

__all__ = [
    "PAPDisplay",
    "TermsDisplay",
    "convergence_figure",
]
