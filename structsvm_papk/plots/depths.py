"""The validated metric against the training depth, drawn (matplotlib)."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from structsvm_papk.errors import InputError
from structsvm_papk.plots.convergence import has_matplotlib, literal
from structsvm_papk.plots.degeneracy import COLORS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Place: TypeAlias = tuple[str, int | float | None]  # surrogate and depth


def depth_figure(points: Mapping[Place, tuple[float, float]], chosen: Place, metric: str) -> Figure:
    """Each surrogate's means, with bars of one standard error; `chosen` gets a ring.

    Settings that rank nothing (w = 0: a mean of 0 without spread) are named, not drawn: they would
    squeeze the others together.
    """
    if not has_matplotlib():
        raise InputError("cannot draw: matplotlib is missing; pip install 'structsvm-papk[plot]'")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.subplots()
    drawn = {place: value for place, value in points.items() if tuple(value) != (0, 0)} or points
    empty, points = [place for place in points if place not in drawn], drawn
    depths = list(dict.fromkeys(depth for _, depth in points))
    names = sorted({name for name, _ in points})
    for place, name in enumerate(names):
        own = [(depths.index(depth), *value) for (n, depth), value in points.items() if n == name]
        at, mean, error = np.array(own).T
        at = at + 0.06 * (place - (len(names) - 1) / 2)  # bars that coincide stay visible
        color = COLORS[place % len(COLORS)]
        axes.errorbar(
            at, mean, error, color=color, marker="o", ms=5, capsize=3, label=literal(name)
        )
        if chosen in points and name == chosen[0]:
            ring = [depth for n, depth in points if n == name].index(chosen[1])
            axes.plot(at[ring], mean[ring], "o", ms=12, mfc="none", mec=color)
    axes.set_xticks(range(len(depths)), [_written(m) for m in depths])
    axes.set(xlabel="training depth", ylabel=f"{literal(metric)} of held-out users")
    title = "ring: chosen; bars: one standard error over users"
    if empty:
        named = ", ".join(f"{literal(name)} at {_written(depth)}" for name, depth in empty)
        title += "\n" + fill(f"not drawn, since they rank nothing (w = 0): {named}", 72)
    axes.set_title(title, fontsize="medium")
    axes.grid(alpha=0.25)
    axes.legend()
    return figure


def _written(depth: int | float | None) -> str:
    return "k" if depth is None else f"{depth:g}"
