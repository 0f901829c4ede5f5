"""Plots of runs; matplotlib (the extra `plot`) is imported only here, when one is drawn."""

from __future__ import annotations

import io
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from structsvm_papk._types import PathLike
from structsvm_papk.errors import InputError, as_names
from structsvm_papk.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
_LOWEST_GAP = 1e-16
_AXES = {"data_passes": "passes over the data", "seconds": "seconds"}
_CERTIFIED = "#1b5e9b"
_DESCENT = ("#f2b134", "#dd6b1f", "#8f2d16", "#8a8a8a")


def check_plot(path: PathLike) -> None:
    """Refuse a plot that could not be drawn, before the work starts."""
    if Path(path).suffix.lower() not in FORMATS:
        raise InputError(f"cannot draw {path}: the name must end in {', '.join(FORMATS)}")
    if not has_matplotlib():
        raise InputError(
            f"cannot draw {path}: matplotlib is missing; pip install matplotlib (the extra 'plot')"
        )


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def literal(text: object) -> str:
    """A text as matplotlib has to be given it: $ begins no formula, _ hides it from no legend."""
    text = str(text).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def convergence_figure(runs: Sequence[Any], title: str = "") -> Figure:
    """Gap to the best known lower bound, against data passes and against seconds.

    One column of panels per surrogate. Solid lines show ``(objective - best bound) /
    max(best objective, 1e-3)`` of the best w so far; the dashed line shows the gap that the
    cutting plane had certified by then.

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
    for column, name in enumerate(names):
        same = [run for run in runs if run.surrogate == name]
        for axes, x in zip(panels[:, column], _AXES, strict=True):
            highest = max(highest, _draw_panel(axes, same, x))
        panels[0, column].set_title(literal(name))
    for row in panels[:, 0]:
        row.set_ylabel("relative gap to the\nbest known lower bound")
    panels[0, 0].set_ylim(top=3 * highest)  # the first certified gaps may be far above
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 1 + len(names))
    )
    figure.suptitle(literal(fill(title, round(11 * width))), fontsize="medium")
    return figure


def save_figure(figure: Figure, path: PathLike) -> None:
    """Write a figure in one step; the suffix of `path` is the format."""
    content = io.BytesIO()
    suffix = Path(path).suffix.lower().lstrip(".")
    metadata = {"Date": None} if suffix == "svg" else None
    figure.savefig(content, format=suffix, dpi=150, metadata=metadata)
    write_atomically(path, content.getvalue())


def _draw_panel(axes: Axes, runs: Sequence[Any], x: str) -> float:
    """Draw the runs of one surrogate; return the largest gap of a solid line."""
    bound = max(run.result.lower_bound for run in runs)
    scale = max(min(run.result.objective for run in runs), 1e-3)
    descents = iter(_DESCENT)
    highest = _LOWEST_GAP
    for run in runs:
        result = run.result
        certified = np.isfinite(result.lower_bound)
        color = _CERTIFIED if certified else next(descents, _DESCENT[-1])
        at = result.curve(x)
        gap = np.maximum((result.curve("objective") - bound) / scale, _LOWEST_GAP)
        label = _label(run)
        axes.step(at, gap, where="post", color=color, label=label, zorder=3 if certified else 2)
        if certified:
            proven = (result.curve("objective") - result.curve("lower_bound")) / scale
            proven = np.maximum(proven, _LOWEST_GAP)
            axes.step(
                at, proven, "--", where="post", color=color, lw=1, label=label + ", certified"
            )
        highest = max(highest, gap.max())
    axes.set(xscale="log", yscale="log", xlabel=_AXES[x])
    axes.grid(alpha=0.25)
    return highest


def _label(run: Any) -> str:
    name = literal(run.solver.replace("_", " "))
    return f"{name} (eta {run.settings['eta']:g})" if "eta" in run.settings else name
