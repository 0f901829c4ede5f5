"""For how many users w = 0 is the optimum on its own, drawn (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from structsvm_papk.plots.convergence import literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from structsvm_papk.diagnosis.zero_test import Diagnosis

COLORS = ("#1b5e9b", "#dd6b1f", "#2a8a57", "#8f2d16", "#7a4fa3", "#555555")
_MARKERS = {"degenerate": ("o", True), "informative": ("o", False), "undecided": ("X", True)}


def degeneracy_figure(diagnoses: Sequence[Diagnosis]) -> Figure:
    """Share of the users for whom w = 0 is optimal on its own, against k, for each surrogate.

    Filled markers say that w = 0 is optimal for all users jointly, open ones that it is not, a
    cross that it is undecided.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.4), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(one.surrogate for one in diagnoses))
    ks = sorted({one.k for one in diagnoses})
    for place, name in enumerate(names):
        own = [one for one in diagnoses if one.surrogate == name]
        shift = 0.08 * (place - (len(names) - 1) / 2)  # lines that coincide stay visible
        color, x = COLORS[place % len(COLORS)], [ks.index(one.k) + shift for one in own]
        axes.plot(x, [one.share() for one in own], "-", color=color, label=literal(name))
        for at, one in zip(x, own, strict=True):
            marker, fill = _MARKERS[one.joint.verdict]
            face = color if fill else "white"
            axes.plot(at, one.share(), marker, color=color, mfc=face, ms=7, zorder=3)
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
