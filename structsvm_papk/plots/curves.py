"""The functions of a ranker's columns as small multiples, in the style of scikit-learn's displays.

matplotlib (the extra `plot`) and scikit-learn are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import check_matrix
from structsvm_papk.data.columns.terms import Curve
from structsvm_papk.errors import InputError, as_names, check_number
from structsvm_papk.plots.figures import literal
from structsvm_papk.plots.panel import DATA, SMALL_SIZE, Panel, Scale, widths
from structsvm_papk.plots.rankings import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_N_COLUMNS = 12  # that are drawn, if not asked for more
_NAME_SIZE = 10.0  # of letters
_LEAST_SIZE = 0.4  # of a panel, in inches
_NOTHING = "All curves are flat: this ranker adds\nthe same to every score, and ranks nothing."


@dataclass
class CurvesDisplay:
    """What each column adds to a score: a small panel for each column, all with one scale of y.

    Columns that move scores most within lists come first. In the corner stands the share of a
    column in the sum of their standard deviations within lists, in training. 0 is what a column
    adds in the mean, over the rows of `X`, or over the knots without `X`.

    Grey bars show how many rows of `X` have which value. Without `X` grey lines show the knots,
    which are quantiles of the rows in training. Of a straight line only the slope is known then:
    it is drawn over differences of up to two standard deviations within lists.

    A panel reaches from the 0.5% to the 99.5% quantile of `X`, or from the first to the last knot.
    Where the middle half of the rows would have less than a twentieth of it, the axis is
    logarithmic far from zero (matplotlib's 'asinh'). If it still has less, because values are large
    and nearly the same, a sixteenth of the rows at either end is not shown.

    Attributes
    ----------
    curves : sequence of Curve
        One for each column.
    X : array of shape (n_rows, n_curves), data frame or sparse matrix, optional
        Rows; NaN is left out.
    figure_ : Figure
    axes_ : ndarray of Axes
        The panels in order; none where all curves are flat, which a sentence says.
    """

    curves: Sequence[Curve]
    X: Any = None

    def __post_init__(self) -> None:
        self.curves = as_names("curves", self.curves, Curve)
        if not self.curves:
            raise InputError("there are no curves to draw")
        for curve in self.curves:
            numbers = np.concatenate([curve.knots, curve.values, [curve.slope, curve.deviation]])
            if not np.isfinite(numbers).all():
                raise InputError(f"the curve of column {curve.name} holds NaN or infinite numbers")
        if self.X is None:
            return
        self.X = check_matrix(self.X, missing="lowest")
        if self.X.shape[1] != len(self.curves):
            raise InputError(
                f"X has {self.X.shape[1]} columns, but there are {len(self.curves)} curves"
            )

    @classmethod
    def from_estimator(
        cls, ranker: Any, X: Any = None, *, n_columns: int = _N_COLUMNS, ax: Axes | None = None
    ) -> Self:
        """Display of a fitted ranker.

        Parameters
        ----------
        ranker : PAPKRanker
        X : array of shape (n_rows, n_features), data frame or sparse matrix, optional
            Rows that show where the data lie, such as those of training.
        n_columns : int
            How many columns are shown at most.
        ax : Axes, optional
            The panels are drawn in its place; by default in a figure of their own.

        Returns
        -------
        CurvesDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        from structsvm_papk.rankers.additive import validated

        check_is_fitted(ranker)
        if not hasattr(ranker, "curves_"):
            raise InputError(f"{type(ranker).__name__} has no curves: give a PAPKRanker")
        if X is not None:
            X = validated(ranker, X, missing=ranker.missing, reset=False)
        return cls(ranker.curves_, X).plot(ax, n_columns=n_columns)

    def plot(self, ax: Axes | None = None, *, n_columns: int = _N_COLUMNS) -> Self:
        """Draw in the place of the axes, or in a figure of its own; returns the display."""
        check_number("n_columns", n_columns, least=1)
        deviations = np.array([curve.deviation for curve in self.curves])
        shown = np.argsort(-deviations, kind="stable")[: int(n_columns)]
        if not any(np.ptp(curve.values) or curve.slope for curve in self.curves):
            shown = shown[:0]
        is_own = ax is None
        ax = new_axes(ax, _figure_size(shown.size))
        place = ax.get_subplotspec()
        if place is None:
            raise InputError("ax must be one of plt.subplots(..), whose place panels can divide")
        figure: Any = ax.figure
        if is_own:
            figure.set_layout_engine("none")  # with hundreds of panels it takes minutes
        ax.set_axis_off()
        self.figure_ = figure
        self.axes_ = np.empty(shown.size, dtype=object)
        if not shown.size:
            ax.text(0.5, 0.5, _NOTHING, ha="center", va="center", transform=ax.transAxes)
            return self
        panels = [Panel(self.curves[j], self._column(j)) for j in shown]
        scale = Scale.of(panels)
        area = figure.add_subfigure(place)
        width = area.bbox.width / area.figure.dpi
        caption = fill(self._caption(panels), round(14 * width), break_long_words=False)
        places = _places(area, shown.size, widths(scale.labels).max(), 1 + caption.count("\n"))
        shares = deviations / (deviations.sum() or 1.0)
        for i, panel in enumerate(panels):
            self.axes_[i] = area.add_subplot(places[i])
            panel.draw(self.axes_[i], scale)
            _write_title(self.axes_[i], panel.curve.name, shares[shown[i]])
        of_y = area.supylabel("adds to the score", fontsize=_NAME_SIZE)
        of_x = area.supxlabel(caption, fontsize=SMALL_SIZE, color=DATA)
        if not _is_constrained(area):
            of_y.set_position((0.05 / width, (places.bottom + places.top) / 2))
            of_x.set_y(0.06 * area.figure.dpi / area.bbox.height)
        return self

    def _column(self, j: int) -> Array | None:
        """Values of a column; None where there are none."""
        if self.X is None:
            return None
        column = self.X[:, [j]]
        if sparse.issparse(column):
            column = column.toarray()
        values = column[~np.isnan(column)].astype(np.float64)
        if not values.size:
            return None
        return values

    def _caption(self, panels: Sequence[Panel]) -> str:
        """What percentages and the grey bars or lines mean."""
        parts = ["%: share of the variation of scores within lists."]
        if len(panels) < len(self.curves):
            parts.insert(0, f"{len(panels)} of {len(self.curves)} columns.")
        if self.X is not None:
            parts.append("Bars: number of rows.")
        elif not all(panel.is_relative for panel in panels):
            parts.append("Grey lines: knots (quantiles).")
        if any(panel.is_relative for panel in panels):
            parts.append("Straight lines: x is a difference.")
        return " ".join(part.replace(" ", "\u00a0") for part in parts)  # lines are whole sentences


def curves_figure(curves: Sequence[Curve], X: Any = None) -> Figure:
    """The picture of a `CurvesDisplay`, in a figure that is not one of pyplot's."""
    from matplotlib.figure import Figure

    display = CurvesDisplay(curves, X)
    figure = Figure(figsize=_figure_size(min(len(display.curves), _N_COLUMNS)))
    display.plot(figure.add_subplot())
    return figure


def _n_beside(n_panels: int) -> int:
    """How many panels stand beside each other: up to three, more where there are many."""
    if n_panels in (0, 1, 2, 4):
        return max(1, min(n_panels, 2))
    return max(3, round((n_panels / 3) ** 0.5))


def _figure_size(n_panels: int) -> tuple[float, float]:
    """In inches: as wide as a column of text, wider where more than three stand beside another."""
    n_beside = _n_beside(n_panels)
    panel = max(1.85, 5.5 / n_beside)
    height = ceil(n_panels / n_beside) * (0.42 + min(0.75 * panel, 2.6))
    return 0.65 + n_beside * panel, 0.25 + max(height, 1.0)


def _places(area: Any, n_panels: int, labels: float, caption: int) -> Any:
    """A grid of places, with room for labels of y (in inches) and a caption (in lines)."""
    n_beside = _n_beside(n_panels)
    n_below = ceil(n_panels / n_beside)
    if _is_constrained(area):  # which sees to that room
        return area.add_gridspec(n_below, n_beside)
    width, height = area.bbox.size / area.figure.dpi
    left = 0.3 + labels
    right = 0.12
    top = 0.26
    bottom = 0.32 + 0.15 * caption
    beside = 0.14
    below = 0.46
    panel_width = (width - left - right - (n_beside - 1) * beside) / n_beside
    panel_height = (height - top - bottom - (n_below - 1) * below) / n_below
    if min(panel_width, panel_height) < _LEAST_SIZE:
        raise InputError(
            f"{n_panels} panels do not fit into {width:.1f} by {height:.1f} inches: give larger "
            "axes, or fewer n_columns"
        )
    return area.add_gridspec(
        n_below,
        n_beside,
        left=left / width,
        right=1 - right / width,
        bottom=bottom / height,
        top=1 - top / height,
        wspace=beside / panel_width,
        hspace=below / panel_height,
    )


def _is_constrained(area: Any) -> bool:
    """Whether matplotlib places panels by the room that their texts take."""
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    return isinstance(area.get_layout_engine(), ConstrainedLayoutEngine)


def _write_title(axes: Any, name: str, share: float) -> None:
    """The name of a column on the left, its share of the spread on the right."""
    corner = f"{share:.0%}"
    if 0 < share < 0.005:
        corner = "<1%"
    axes.set_title(corner, loc="right", fontsize=SMALL_SIZE, color=DATA, pad=3)
    name = " ".join(name.split())
    if name.isdecimal():
        name = f"column {name}"
    room = axes.bbox.width / axes.figure.dpi - widths([corner + "  "])[0]
    axes.set_title(_shortened(name, 0.96 * room), loc="left", fontsize=_NAME_SIZE, pad=3)


def _shortened(name: str, room: float) -> str:
    """A name as matplotlib draws it to the letter, without its middle where it is too long."""
    from matplotlib.textpath import TextPath

    for kept in range(len(name), 1, -1):
        text = name
        if kept < len(name):
            text = f"{name[: kept - kept // 2]}\u2026{name[len(name) - kept // 2 :]}"
        outline = TextPath((0, 0), literal(text), size=_NAME_SIZE).vertices
        if outline.size == 0 or np.ptp(outline[:, 0]) <= 72 * room:
            return literal(text)
    return literal(name[:1])
