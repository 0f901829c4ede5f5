"""The picture of a fusion: every ranking with its interval, and how far the fused one is ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk.plots.figures import COLORS, literal, refuse_without_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_OTHERS = "#7d8794"


def comparison_figure(report: Any) -> Figure:
    """Two panels of a `FusionReport`: means with intervals, and paired differences to the first."""
    refuse_without_matplotlib()
    from matplotlib.figure import Figure

    rankings = report.rankings
    height = 1.5 + 0.36 * len(rankings)
    figure = Figure(figsize=(8.4, height), layout="constrained")
    means, ahead = figure.subplots(1, 2, sharey=True)
    for row, ranking in enumerate(rankings):
        of_fused = row == 0
        _whisker(means, row, ranking.mean, ranking.lower, ranking.upper, _color(of_fused))
        if not of_fused:
            is_decided = ranking.ahead_lower > 0 or ranking.ahead_upper < 0
            color = _color(is_decided)
            _whisker(ahead, row, ranking.ahead, ranking.ahead_lower, ranking.ahead_upper, color)
    means.set_yticks(range(len(rankings)), [literal(ranking.name) for ranking in rankings])
    means.invert_yaxis()
    ahead.axvline(0, color="black", lw=0.8)
    level = f"{100 * report.level:g}%"
    means.set_xlabel(f"{report.metric}, {level} interval over {report.nouns[0]}")
    ahead.set_xlabel(f"fused ahead by, {level} interval, paired")
    for axes in (means, ahead):
        axes.grid(axis="x", alpha=0.25)
    figure.suptitle(
        f"{report.n_queries} judged {report.nouns[0]}, {report.n_folds} folds: each ranked by "
        "weights learned from the others",
        fontsize="medium",
    )
    return figure


def _color(is_marked: bool) -> str:
    """Of the fused lists, and of differences that are decided; of others another one."""
    return COLORS[0] if is_marked else _OTHERS


def _whisker(axes: Any, row: int, value: float, lower: float, upper: float, color: str) -> None:
    """A point and its interval, where it has one."""
    if not np.isnan(lower):
        axes.plot([lower, upper], [row, row], color=color, lw=2)
    axes.plot(value, row, "o", color=color, ms=6)
