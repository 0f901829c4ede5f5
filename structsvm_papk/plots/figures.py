"""Plots of runs; matplotlib (the extra `plot`) is imported to draw one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import cycle
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk.errors import InputError, as_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_LOWEST_GAP = 1e-16
_AXES = {"data_passes": "passes over the data", "seconds": "seconds"}
# colours and marks of solvers, those with a certificate and the others, to be told apart in grey
_CERTIFIED = (("#1b5e9b", "o"), ("#2a8a57", "s"), ("#7a4fa3", "^"), ("#555555", "D"))
_DESCENT = (("#f2b134", "v"), ("#dd6b1f", "X"), ("#8f2d16", "P"), ("#8a8a8a", "*"))
_MARKS = 0.12  # of the width of a panel, from one mark to the next
NEEDS_MATPLOTLIB = "plots need matplotlib: pip install matplotlib, or 'structsvm-papk[plot]'"
COLORS = ("#1b5e9b", "#dd6b1f", "#2a8a57", "#8f2d16", "#7a4fa3", "#555555")


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def refuse_without_matplotlib() -> None:
    """Raise `InputError` where matplotlib is not installed."""
    if not has_matplotlib():
        raise InputError(NEEDS_MATPLOTLIB)


def literal(text: object) -> str:
    """A text as matplotlib has to be given it: $ begins no formula, _ hides it from no legend."""
    text = str(text).replace("$", r"\$")
    if text.startswith("_"):
        return f" {text}"
    return text


def convergence_figure(runs: Sequence[Any], title: str = "") -> Figure:
    """Gap to the best known lower bound, against data passes and against seconds.

    One column of panels per surrogate. Solid lines show ``(objective - best bound) /
    max(best objective, 1e-3)`` of the best w so far; a dashed line shows the gap that a solver had
    certified by then. Each solver has its colour and its mark.

    Parameters
    ----------
    runs : list of Run
        At least one with a lower bound for every surrogate.
    title : str

    Returns
    -------
    matplotlib.figure.Figure
    """
    from matplotlib.figure import Figure

    runs = as_names("runs", runs)
    if not runs or not all(hasattr(run, "surrogate") for run in runs):
        raise InputError("runs must be what rankers.compare returns, at least one of them")
    names = list(dict.fromkeys(run.surrogate for run in runs))
    width = max(6.4, 0.9 + 3.1 * len(names))
    figure = Figure(figsize=(width, 6.2), layout="constrained")
    panels = figure.subplots(2, len(names), squeeze=False, sharey=True)
    highest = _LOWEST_GAP
    styles = _styles(runs)
    for column, name in enumerate(names):
        of_surrogate = [run for run in runs if run.surrogate == name]
        for axes, effort in zip(panels[:, column], _AXES, strict=True):
            highest = max(highest, _draw_panel(axes, of_surrogate, effort, styles))
        panels[0, column].set_title(literal(name))
    for row in panels[:, 0]:
        row.set_ylabel("relative gap to the\nbest known lower bound")
    panels[0, 0].set_ylim(top=3 * highest)  # the first certified gaps may be far above
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), 1 + len(names)),
        fontsize="small",
    )
    figure.suptitle(literal(fill(title, round(11 * width))), fontsize="medium")
    return figure


def _styles(runs: Sequence[Any]) -> dict[str, tuple[str, str]]:
    """Colour and mark of each solver, in every panel the same."""
    certified = {run.solver: np.isfinite(run.result.lower_bound) for run in runs}
    styles: dict[str, tuple[str, str]] = {}
    for group, has_bound in ((_CERTIFIED, True), (_DESCENT, False)):
        names = [name for name in certified if certified[name] == has_bound]
        styles |= dict(zip(names, cycle(group), strict=False))
    return styles


def _draw_panel(
    axes: Axes, runs: Sequence[Any], effort: str, styles: dict[str, tuple[str, str]]
) -> float:
    """Draw the runs of one surrogate against an effort; return the largest gap of a solid line."""
    bound = max(run.result.lower_bound for run in runs)
    scale = max(min(run.result.objective for run in runs), 1e-3)
    highest = _LOWEST_GAP
    for run in runs:
        result = run.result
        certified = np.isfinite(result.lower_bound)
        color, mark = styles[run.solver]
        spent = result.curve(effort)
        gap = np.maximum((result.curve("objective") - bound) / scale, _LOWEST_GAP)
        tried = run.settings.get("etas_tried")  # the best one is another in each panel
        label = literal(f"{run.solver} (best of {tried})" if tried else run.label)
        axes.step(
            spent,
            gap,
            where="post",
            color=color,
            marker=mark,
            markevery=_MARKS,
            markersize=5,
            label=label,
            zorder=3 if certified else 2,
        )
        if certified:
            proven = (result.curve("objective") - result.curve("lower_bound")) / scale
            proven = np.maximum(proven, _LOWEST_GAP)
            axes.step(
                spent, proven, "--", where="post", color=color, lw=1, label=label + ", certified"
            )
        highest = max(highest, gap.max())
    axes.set(xscale="log", yscale="log", xlabel=_AXES[effort])
    axes.grid(alpha=0.25)
    return highest
