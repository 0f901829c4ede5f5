"""Plots of a ranking, in the style of scikit-learn's displays.

Every display has `from_predictions(y_true=.., y_score=.., groups=..)` and `plot(ax)`; the axes
drawn on stay in `ax_`, their figure in `figure_`. matplotlib (the extra `plot`) is imported when
something is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from structsvm_papk import metrics
from structsvm_papk.data.validation import as_array
from structsvm_papk.errors import InputError
from structsvm_papk.metrics.significance import ends_of
from structsvm_papk.plots.figures import NEEDS_MATPLOTLIB, literal

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(ax: Axes | None = None, size: tuple[float, float] = (6.0, 4.2)) -> Axes:
    """The given axes, or new ones on a figure of this size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise InputError(NEEDS_MATPLOTLIB) from None
    return plt.subplots(figsize=size, layout="constrained")[1]


@dataclass
class PAPDisplay:
    """Mean pAp@k against k with a band from resampled users.

    Attributes
    ----------
    ks : ndarray of int
    mean, lower, upper : ndarray of float
    n_used : ndarray of int
        Users behind each point: the rule for few negatives changes them with k.
    name : str or None
        Label in the legend.
    """

    ks: np.ndarray
    mean: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    n_used: np.ndarray
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        *,
        y_true: ArrayLike,
        y_score: ArrayLike,
        groups: ArrayLike | None = None,
        ks: Sequence[int] | None = None,
        level: float = 0.95,
        n_resamples: int = 500,
        seed: int = 0,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Display of scores; `ks` default 1..20, `options` those of `metrics.evaluate`."""
        if ks is None:
            ks = range(1, 21)
        cutoffs = np.atleast_1d(as_array(ks, "ks"))
        names = [f"pap@{k}" for k in cutoffs]
        table = metrics.evaluate(names, y_score, y_true, groups, **options)
        how = {"level": level, "n_resamples": n_resamples, "seed": seed}
        ends = np.array([ends_of(table, metric, **how) for metric in names])
        display = cls(
            ks=cutoffs,
            mean=np.array([table.mean(metric) for metric in names]),
            lower=ends[:, 0],
            upper=ends[:, 1],
            n_used=np.array([table.used(metric).sum() for metric in names]),
            name=name,
        )
        return display.plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw on the axes; returns the display."""
        ax = new_axes(ax)
        label = None if self.name is None else literal(self.name)
        line = ax.plot(self.ks, self.mean, marker="o", markersize=3.5, label=label)[0]
        ax.fill_between(self.ks, self.lower, self.upper, color=line.get_color(), alpha=0.18, lw=0)
        ax.set(xlabel="k", ylabel="mean pAp@k")
        locator: Any = ax.xaxis.get_major_locator()
        locator.set_params(integer=True)
        if np.ptp(self.n_used):
            ax.set_title(
                f"users: {self.n_used.max()} at k = {self.ks[np.argmax(self.n_used)]}, "
                f"{self.n_used.min()} at k = {self.ks[np.argmin(self.n_used)]}",
                fontsize=9,
            )
        if self.name is not None:
            ax.legend(frameon=False)
        self.ax_ = ax
        self.figure_ = ax.figure
        return self
