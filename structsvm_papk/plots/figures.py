"""Plots of runs, depths and diagnoses; matplotlib (the extra `plot`) is imported to draw one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from structsvm_papk.errors import InputError, as_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from structsvm_papk.diagnosis.zero_test import Diagnosis

_LOWEST_GAP = 1e-16
_AXES = {"data_passes": "passes over the data", "seconds": "seconds"}
_CERTIFIED = "#1b5e9b"
_DESCENT = ("#f2b134", "#dd6b1f", "#8f2d16", "#8a8a8a")
COLORS = ("#1b5e9b", "#dd6b1f", "#2a8a57", "#8f2d16", "#7a4fa3", "#555555")


class _Marker(NamedTuple):
    shape: str
    is_filled: bool


_MARKERS = {  # by what is known of all users jointly
    "degenerate": _Marker("o", is_filled=True),
    "informative": _Marker("o", is_filled=False),
    "undecided": _Marker("X", is_filled=True),
}


def has_matplotlib() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def literal(text: object) -> str:
    """A text as matplotlib has to be given it: $ begins no formula, _ hides it from no legend."""
    text = str(text).replace("$", r"\$")
    if text.startswith("_"):
        return f" {text}"
    return text


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
        of_surrogate = [run for run in runs if run.surrogate == name]
        for axes, effort in zip(panels[:, column], _AXES, strict=True):
            highest = max(highest, _draw_panel(axes, of_surrogate, effort))
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


def _draw_panel(axes: Axes, runs: Sequence[Any], effort: str) -> float:
    """Draw the runs of one surrogate against an effort; return the largest gap of a solid line."""
    bound = max(run.result.lower_bound for run in runs)
    scale = max(min(run.result.objective for run in runs), 1e-3)
    descents = iter(_DESCENT)
    highest = _LOWEST_GAP
    for run in runs:
        result = run.result
        certified = np.isfinite(result.lower_bound)
        color = _CERTIFIED if certified else next(descents, _DESCENT[-1])
        spent = result.curve(effort)
        gap = np.maximum((result.curve("objective") - bound) / scale, _LOWEST_GAP)
        best_of = "etas_tried" in run.settings  # another step size in each panel
        label = literal(run.solver if best_of else run.label)
        axes.step(spent, gap, where="post", color=color, label=label, zorder=3 if certified else 2)
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


def degeneracy_figure(diagnoses: Sequence[Diagnosis]) -> Figure:
    """Share of the users for whom w = 0 is optimal on its own, against k, for each surrogate.

    Filled markers say that w = 0 is optimal for all users jointly, open ones that it is not, a
    cross that it is undecided.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(diagnosis.surrogate for diagnosis in diagnoses))
    ks = sorted({diagnosis.k for diagnosis in diagnoses})
    for number, name in enumerate(names):
        of_surrogate = [diagnosis for diagnosis in diagnoses if diagnosis.surrogate == name]
        shift = 0.08 * (number - (len(names) - 1) / 2)  # lines that coincide stay visible
        color = COLORS[number % len(COLORS)]
        xs = [ks.index(diagnosis.k) + shift for diagnosis in of_surrogate]
        shares = [diagnosis.share() for diagnosis in of_surrogate]
        axes.plot(xs, shares, "-", color=color, label=literal(name))
        for x, share, diagnosis in zip(xs, shares, of_surrogate, strict=True):
            marker = _MARKERS[diagnosis.joint.verdict]
            face = color if marker.is_filled else "white"
            axes.plot(x, share, marker.shape, color=color, mfc=face, ms=7, zorder=3)
    axes.set_xticks(range(len(ks)), [str(k) for k in ks])
    axes.set(
        xlabel="k",
        ylabel="share of users for whom\nw = 0 is optimal",
        ylim=(-0.04, 1.04),
        title="filled: w = 0 is optimal for all users jointly; cross: undecided",
    )
    axes.grid(alpha=0.25)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure


Place: TypeAlias = tuple[str, int | float | None]  # surrogate and depth


def depth_figure(points: Mapping[Place, tuple[float, float]], chosen: Place, metric: str) -> Figure:
    """Each surrogate's means, with bars of one standard error; `chosen` gets a ring.

    `points` holds mean and standard error.

    Settings that rank nothing (w = 0: a mean of 0 without spread) are named, not drawn: they would
    squeeze the others together.
    """
    if not has_matplotlib():
        raise InputError("cannot draw: matplotlib is missing; pip install 'structsvm-papk[plot]'")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.subplots()
    empty = [place for place, point in points.items() if tuple(point) == (0, 0)]
    if len(empty) == len(points):  # better drawn than no figure
        empty = []
    drawn = [place for place in points if place not in empty]
    depths = list(dict.fromkeys(depth for _, depth in drawn))
    names = sorted({name for name, _ in drawn})
    for number, name in enumerate(names):
        places = [place for place in drawn if place[0] == name]
        x = np.array([float(depths.index(depth)) for _, depth in places])
        x += 0.06 * (number - (len(names) - 1) / 2)  # bars that coincide stay visible
        mean = np.array([points[place][0] for place in places])
        error = np.array([points[place][1] for place in places])
        color = COLORS[number % len(COLORS)]
        axes.errorbar(x, mean, error, color=color, marker="o", ms=5, capsize=3, label=literal(name))
        if chosen in places:
            ring = places.index(chosen)
            axes.plot(x[ring], mean[ring], "o", ms=12, mfc="none", mec=color)
    axes.set_xticks(range(len(depths)), [_written(m) for m in depths])
    axes.set(xlabel="training depth", ylabel=f"{literal(metric)} of held-out users")
    title = "ring: chosen; bars: one standard error over users"
    if empty:
        named = ", ".join(f"{literal(name)} at {_written(depth)}" for name, depth in empty)
        title += "\n" + fill(f"not drawn, since they rank nothing (w = 0): {named}", 72)
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.25)
    figure.legend(loc="outside right center")
    return figure


def _written(depth: int | float | None) -> str:
    return "k" if depth is None else f"{depth:g}"
