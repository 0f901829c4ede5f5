"""The functions of a ranker's columns as small multiples, in the style of scikit-learn's displays.

matplotlib (the extra `plot`) and scikit-learn are imported where they are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.curves import Curve
from structsvm_papk.data.features import check_matrix
from structsvm_papk.errors import InputError, as_names, check_number
from structsvm_papk.plots.figures import COLORS, literal
from structsvm_papk.plots.rankings import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure
    from matplotlib.gridspec import GridSpec

_ENDS = (0.005, 0.995)  # quantiles of X between which a column is drawn
_MIDDLE = (0.25, 0.75)
_ROOM = 0.05  # share of an axis that the middle half of the rows should have
_CUT = 1 / 16  # of the rows at either end, where a logarithm does not help: one of 16 pieces
_MARGIN = 0.04  # of a panel on each side
_STRIP = 0.16  # of its height, for where the rows lie
_LEAST_BAR = 0.12  # of the strip: a single row is seen
_BINS = 30
_OVERHANG = 0.05  # of labels over the end of a panel, and their least distance, in inches
_ALIGNMENTS = {0.0: "left", 0.5: "center", 1.0: "right"}
_POINTS = 200  # at which a curve is drawn, beside its knots
_NAME_SIZE = 10.0  # of letters
_SMALL_SIZE = 8.5
_ON_DARK = "#74b3ee"
_DATA = "#7d8794"
_NOTHING = "All curves are flat: this ranker adds\nthe same to every score, and ranks nothing."


@dataclass
class CurvesDisplay:
    """What each column adds to a score: a small panel for each, all with one scale of y.

    Columns that move scores most within lists come first; in the corner stands the share of a
    column in the sum of these deviations. 0 is what a column adds in the mean, over the rows of `X`
    or, without them, over the knots.

    Grey bars at the bottom show how many rows of `X` have which value. Without `X` grey lines are
    the knots: quantiles of the rows in training. A panel reaches from the 0.5% to the 99.5%
    quantile of `X`, or from the first to the last knot; its axis is logarithmic on both sides of
    zero (matplotlib's 'symlog') where that is more than twenty times as wide as the middle half.
    Of a straight line only the slope is known without `X`. It is drawn from two standard deviations
    within lists below its knot to two above it.

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
            numbers = [*curve.knots, *curve.values, curve.slope, curve.deviation]
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
        cls, ranker: Any, X: Any = None, *, n_columns: int = 12, ax: Axes | None = None
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

        from structsvm_papk.rankers.linear import validated

        check_is_fitted(ranker)
        if not hasattr(ranker, "curves_"):
            raise InputError(f"{type(ranker).__name__} has no curves: give a PAPKRanker")
        if X is not None:
            X = validated(ranker, X, missing=ranker.missing, reset=False)
        return cls(ranker.curves_, X).plot(ax, n_columns=n_columns)

    def plot(self, ax: Axes | None = None, *, n_columns: int = 12) -> Self:
        """Draw in the place of the axes, or in a figure of its own; returns the display."""
        check_number("n_columns", n_columns, least=1)
        deviations = np.array([curve.deviation for curve in self.curves])
        order = np.argsort(-deviations, kind="stable")[: int(n_columns)]
        if not any(np.ptp(curve.values) or curve.slope for curve in self.curves):
            order = order[:0]
        n_beside = _n_beside(order.size)
        n_below = ceil(order.size / n_beside)
        if ax is None:
            ax = new_axes(size=_figure_size(n_beside, n_below))
            ax.figure.set_layout_engine("none")  # of hundreds of panels it takes minutes
        ax.set_axis_off()
        self.figure_ = ax.figure
        if not order.size:
            ax.text(0.5, 0.5, _NOTHING, ha="center", va="center", transform=ax.transAxes)
            self.axes_ = np.array([], dtype=object)
            return self
        panels = [_Panel(self.curves[j], self._column(j)) for j in order]
        scale = _Scale.of(panels)
        area = ax.figure.add_subfigure(ax.get_subplotspec())
        width, height = area.bbox.size / ax.figure.dpi
        caption = fill(self._caption(panels), round(14 * width), break_long_words=False)
        places = _places(area, n_below, n_beside, scale.label_width, 1 + caption.count("\n"))
        self.axes_ = np.array([area.add_subplot(places[i]) for i in range(order.size)])
        shares = deviations / (deviations.sum() or 1.0)
        for axes, panel, share in zip(self.axes_, panels, shares[order], strict=True):
            panel.draw(axes, scale)
            _write_title(axes, panel.curve.name, share, axes.bbox.width / ax.figure.dpi)
        middle = (places.bottom + places.top) / 2
        area.supylabel("adds to the score", fontsize=_NAME_SIZE, x=0.05 / width, y=middle)
        area.supxlabel(caption, fontsize=_SMALL_SIZE, color=_DATA, y=0.05 / height)
        return self

    def _caption(self, panels: Sequence[_Panel]) -> str:
        """What percentages and the strip mean."""
        parts = ["%: share of the spread within lists."]
        if len(panels) < len(self.curves):
            parts.insert(0, f"{len(panels)} of {len(self.curves)} columns.")
        if self.X is not None:
            parts.append("Bars: rows.")
        elif any(not panel.is_relative for panel in panels):
            parts.append("Grey lines: knots (quantiles).")
        if any(panel.is_relative for panel in panels):
            parts.append("Straight lines: x is a difference.")
        return " ".join(part.replace(" ", "\u00a0") for part in parts)  # lines are whole sentences

    def _column(self, j: int) -> Array | None:
        """Values of a column; None where there are none."""
        if self.X is None:
            return None
        column = self.X[:, [j]]
        column = column.toarray() if sparse.issparse(column) else column
        values = column[~np.isnan(column)].astype(np.float64)
        return values if values.size else None


def _n_beside(n_panels: int) -> int:
    """How many panels stand beside each other: up to three, more where there are many."""
    if n_panels in (1, 2, 4):
        return min(n_panels, 2)
    return max(3, round((n_panels / 3) ** 0.5))


def _figure_size(n_beside: int, n_below: int) -> tuple[float, float]:
    """Of a figure, in inches: as wide as a column of text, wider from four panels on."""
    panel = max(1.85, 5.5 / n_beside)
    height = 0.42 + min(0.75 * panel, 2.6)
    return 0.65 + n_beside * panel, 0.25 + max(n_below * height, 1.0)


def _places(area: SubFigure, n_below: int, n_beside: int, labels: float, caption: int) -> GridSpec:
    """Places of panels, with room for labels of y (in inches) and a caption (in lines)."""
    width, height = area.bbox.size / area.figure.dpi
    left = 0.3 + labels
    right = 0.12
    top = 0.26
    bottom = 0.32 + 0.15 * caption
    beside = 0.14
    below = 0.46
    panel_width = max((width - left - right - (n_beside - 1) * beside) / n_beside, 0.2)
    panel_height = max((height - top - bottom - (n_below - 1) * below) / n_below, 0.2)
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


@dataclass(frozen=True)
class _Scale:
    """The limits and ticks of y that panels share."""

    low: float
    high: float
    ticks: Array

    @property
    def label_width(self) -> float:
        """Of the labels of its ticks, in inches."""
        return float(_widths(_labels(self.ticks)).max())

    @classmethod
    def of(cls, panels: Sequence[_Panel]) -> Self:
        low = min(float(panel.y.min()) for panel in panels)
        high = max(float(panel.y.max()) for panel in panels)
        if low == high:  # all of them are flat
            low, high = -1.0, 1.0
        ticks = _ticks(low, high, 4)
        margin = 0.05 * (high - low)
        low -= margin
        high += margin
        if not all(panel.is_relative for panel in panels):
            low -= _STRIP / (1 - _STRIP) * (high - low)
        return cls(low, high, ticks)


@dataclass(frozen=True)
class _Axis:
    """The ends of an axis, and up to where it is linear if it is logarithmic farther out."""

    low: float
    high: float
    threshold: float | None = None

    @classmethod
    def of(cls, sample: Array, low: float, high: float) -> Self:
        """The first on which the middle half of a sample has room: linear, logarithmic, cut."""
        if sample.min() == sample.max():
            return cls(low - 1.0, high + 1.0)
        middle = np.quantile(sample, _MIDDLE)
        if middle[0] == middle[1]:  # most are one value
            sample = np.unique(sample)
            middle = np.quantile(sample, _MIDDLE)
        size = np.abs(sample[sample != 0])
        for axis in (cls(low, high), cls(low, high, float(np.quantile(size, 0.25)))):
            if np.ptp(axis.share(middle)) >= _ROOM:
                return axis
        first = np.quantile(sample, _CUT, method="higher")
        return cls(first, np.quantile(sample, 1 - _CUT, method="lower"))

    @property
    def transform(self) -> Any:
        """From values to places on the axis."""
        from matplotlib.scale import AsinhTransform
        from matplotlib.transforms import IdentityTransform

        if self.threshold is None:
            return IdentityTransform()
        return AsinhTransform(self.threshold)

    def points(self, n: int, margin: float = 0.0) -> Array:
        """Values at n evenly spaced places, from end to end and a share of it farther."""
        first, last = self.transform.transform([self.low, self.high])
        margin *= last - first
        places = np.linspace(first - margin, last + margin, n)
        return np.asarray(self.transform.inverted().transform(places))

    def share(self, x: Array) -> Array:
        """Where values lie, from 0 at the lower to 1 at the higher end."""
        first, *places, last = self.transform.transform([self.low, *x, self.high])
        return (np.array(places) - first) / (last - first)

    def ticks(self) -> Array:
        """Round numbers; powers of ten where it is logarithmic."""
        if self.threshold is None:
            return _ticks(self.low, self.high, 3)
        highest = np.floor(np.log10(max(-self.low, self.high)))
        lowest = np.ceil(np.log10(self.threshold))
        n_sides = 2 if self.low < -self.threshold and self.high > self.threshold else 1
        step = max(1, ceil(n_sides * (highest - lowest + 1) / 4))
        powers = 10.0 ** np.arange(highest, lowest - 1, -step)
        ticks = np.array([*-powers, 0.0, *powers[::-1]])
        return ticks[(ticks >= self.low) & (ticks <= self.high)]


@dataclass(frozen=True)
class _Panel:
    """A column: its curve, and the values that rows have in it, where they are known."""

    curve: Curve
    rows: Array | None

    @property
    def is_relative(self) -> bool:
        """Whether only a slope is known, and not where on the axis rows lie."""
        return self.rows is None and self.curve.knots.size == 1

    @cached_property
    def sample(self) -> Array:
        """What is known of where rows lie: they, or knots, or only how far from each other."""
        if self.rows is not None:
            return self.rows
        if not self.is_relative:
            return self.curve.knots
        slope = abs(self.curve.slope)
        reach = 2 * self.curve.deviation / slope if slope else 0.0
        return reach * np.array([-1.0, 0.0, 1.0])

    @cached_property
    def axis(self) -> _Axis:
        """From the first to the last of nearly all rows."""
        ends = self.sample.min(), self.sample.max()
        if self.rows is not None:
            inner = np.quantile(self.rows, _ENDS)
            ends = inner if inner[0] < inner[1] else ends
        return _Axis.of(self.sample, *ends)

    @cached_property
    def x(self) -> Array:
        """Values of the column at which the curve is drawn: it bends at knots only."""
        knots = self.curve.knots
        inside = knots[(knots > self.axis.low) & (knots < self.axis.high)]
        between = self.axis.points(_POINTS)[1:-1]
        return np.unique([self.axis.low, *inside, *between, self.axis.high])

    @cached_property
    def y(self) -> Array:
        """What the column adds there, less its mean over the sample."""
        start = self.curve.knots[0] if self.is_relative else 0.0
        return self.curve(start + self.x) - self.curve(start + self.sample).mean()

    def draw(self, axes: Axes, scale: _Scale) -> None:
        """The curve, and below it where rows lie."""
        if self.axis.threshold is not None:
            axes.set_xscale("asinh", linear_width=self.axis.threshold)
        axes.set_xlim(self.axis.points(2, _MARGIN))
        axes.set_ylim(scale.low, scale.high)
        color = _line_color(axes)
        axes.axhline(0, color=_DATA, lw=0.7, zorder=1)
        axes.fill_between(self.x, self.y, color=color, alpha=0.15, lw=0)
        axes.plot(self.x, self.y, color=color, lw=1.8)
        if self.rows is not None:
            self._draw_bars(axes)
        elif not self.is_relative:
            top = _STRIP / 2
            knots = axes.get_xaxis_transform()
            axes.vlines(self.curve.knots, 0, top, color=_DATA, lw=0.9, transform=knots)
        self._set_ticks(axes, scale)

    def _draw_bars(self, axes: Axes) -> None:
        """How many rows lie where, at the bottom."""
        edges, counts = _bars(self.rows, self.axis)
        tall = np.where(counts, np.maximum(counts / counts.max(), _LEAST_BAR), 0) * 0.85 * _STRIP
        strip = axes.get_xaxis_transform()
        axes.stairs(tall, edges, fill=True, color=_DATA, alpha=0.7, lw=0, transform=strip)

    def _set_ticks(self, axes: Axes, scale: _Scale) -> None:
        """Ticks of x as far as their labels have room, and those of y that panels share."""
        width = axes.bbox.width / axes.figure.dpi
        ticks = self.axis.ticks()
        labels = _labels(ticks, self.is_relative)
        places = (_MARGIN + self.axis.share(ticks)) / (1 + 2 * _MARGIN) * width
        anchors = _anchors(labels, places, width)
        while not _are_apart(labels, anchors, places):
            ticks = ticks[::2]
            labels = labels[::2]
            places = places[::2]
            anchors = anchors[::2]
        axes.set_xticks(ticks, labels)
        axes.set_xticks([], minor=True)
        for text, anchor in zip(axes.get_xticklabels(), anchors, strict=True):
            text.set_horizontalalignment(_ALIGNMENTS[anchor])
        axes.set_yticks(scale.ticks, _labels(scale.ticks))
        is_first = axes.get_subplotspec().is_first_col()
        axes.tick_params(labelsize=_SMALL_SIZE, length=2.5, pad=2)
        axes.tick_params(axis="y", left=is_first, labelleft=is_first)
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)


def _bars(rows: Array, axis: _Axis) -> tuple[Array, Array]:
    """Edges of bars and their counts: a bar around each value where they are few, else bins."""
    values, counts = np.unique(rows[(rows >= axis.low) & (rows <= axis.high)], return_counts=True)
    places = axis.transform.transform(values)
    ends = axis.transform.transform([axis.low, axis.high])
    width = (ends[1] - ends[0]) / _BINS
    if values.size > _BINS or (np.diff(places) < width).any():
        edges = axis.points(_BINS + 1)
        edges[[0, -1]] = axis.low, axis.high  # to the last bit, so that no row falls out
        return edges, np.histogram(rows, edges)[0]
    around = np.column_stack([places - width / 2, places + width / 2]).ravel()
    with_gaps = np.column_stack([counts, np.zeros_like(counts)]).ravel()[:-1]
    return axis.transform.inverted().transform(around), with_gaps


def _ticks(low: float, high: float, n: int) -> Array:
    """About n round numbers from low to high."""
    from matplotlib.ticker import MaxNLocator

    ticks = MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    margin = 1e-9 * (high - low)
    return ticks[(ticks >= low - margin) & (ticks <= high + margin)]


def _labels(ticks: Array, with_sign: bool = False) -> list[str]:
    """Ticks as texts of as many digits as keep them apart."""
    sign = "+" if with_sign else ""
    for digits in range(5, 18):
        texts = [f"{tick:{sign if tick else ''}.{digits}g}" for tick in ticks]
        if len(set(texts)) == len(texts):
            break
    return [
        text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-").replace("-", "\u2212")
        for text in texts
    ]


def _anchors(labels: Sequence[str], places: Array, width: float) -> Array:
    """How much of a label is left of its tick: all or nothing of it at the ends of a panel."""
    half = _widths(labels) / 2
    over_left = places - half < -_OVERHANG
    over_right = places + half > width + _OVERHANG
    return np.where(over_left, 0.0, np.where(over_right, 1.0, 0.5))


def _are_apart(labels: Sequence[str], anchors: Array, places: Array) -> bool:
    starts = places - anchors * _widths(labels)
    ends = starts + _widths(labels)
    return bool((starts[1:] - ends[:-1] > _OVERHANG).all())


def _widths(labels: Sequence[str]) -> Array:
    """Of labels of digits, in inches."""
    return np.array([0.64 * _SMALL_SIZE / 72 * len(label) for label in labels])


def _line_color(axes: Axes) -> str:
    """The colour of a curve, a lighter one on dark figures, which have light letters."""
    from matplotlib.colors import to_rgb

    is_dark = np.mean(to_rgb(axes.title.get_color())) > 0.5
    return _ON_DARK if is_dark else COLORS[0]


def _write_title(axes: Axes, name: str, share: float, width: float) -> None:
    """The name of a column on the left, its share of the spread on the right."""
    corner = f"{share:.0%}" if share >= 0.005 or share == 0 else "<1%"
    axes.set_title(corner, loc="right", fontsize=_SMALL_SIZE, color=_DATA, pad=3)
    name = f"column {name}" if name.isdecimal() else " ".join(name.split())
    shown = _shortened(name, 72 * width - 3 * _SMALL_SIZE)
    axes.set_title(shown, loc="left", fontsize=_NAME_SIZE, pad=3)


def _shortened(name: str, room: float) -> str:
    """A name as matplotlib draws it to the letter, its middle left out where it is too long."""
    from matplotlib.textpath import TextPath

    for kept in range(len(name), 1, -1):
        text = name
        if kept < len(name):
            text = f"{name[: kept - kept // 2]}\u2026{name[len(name) - kept // 2 :]}"
        outline = TextPath((0, 0), literal(text), size=_NAME_SIZE).vertices
        if outline.size == 0 or np.ptp(outline[:, 0]) <= room:
            return literal(text)
    return literal(name[:1])
