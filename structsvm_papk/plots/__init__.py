"""Pictures of rankings and of runs (matplotlib), and the interactive page."""

from structsvm_papk.plots.convergence import (
    check_plot,
    convergence_figure,
    has_matplotlib,
    save_figure,
)
from structsvm_papk.plots.rankings import (
    CurveDisplay,
    PAPDisplay,
    RankStripDisplay,
    ScoreDisplay,
    SegmentDisplay,
)

__all__ = [
    "CurveDisplay",
    "PAPDisplay",
    "RankStripDisplay",
    "ScoreDisplay",
    "SegmentDisplay",
    "check_plot",
    "convergence_figure",
    "has_matplotlib",
    "save_figure",
]
