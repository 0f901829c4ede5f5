"""One panel of a `CurvesDisplay`: a column's curve, where its rows lie, and axes to read it by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil
from typing import Any, Self

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.terms import Curve
from structsvm_papk.plots.figures import COLORS

DATA = "#7d8794"  # the colour of rows and of knots
SMALL_SIZE = 8.5  # of letters
_ON_DARK = "#74b3ee"
_ENDS = (0.005, 0.995)  # quantiles of rows between which a column is drawn
_MIDDLE = (0.25, 0.75)
_ROOM = 0.05  # share of an axis that the middle half of the rows should have
_CUT = 1 / 16  # of the rows at either end, where a logarithm does not help: one of 16 pieces
_POINTS = 200  # at which a curve is drawn, beside its knots
_MARGIN = 0.04  # of a panel on each side
_STRIP = 0.16  # of its height, for where the rows lie
_BINS = 30
_LEAST_BAR = 0.12  # of the strip: a single row is seen
_OVERHANG = 0.05  # of labels over the end of a panel, and their least distance, in inches
_ALIGNMENTS = {0.0: "left", 0.5: "center", 1.0: "right"}


@dataclass(frozen=True)
class Axis:
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

        return IdentityTransform() if self.threshold is None else AsinhTransform(self.threshold)

    def share(self, x: Array) -> Array:
        """Where values lie: 0 is the lower end, 1 the higher."""
        first, last = self.transform.transform([self.low, self.high])
        return (np.asarray(self.transform.transform(x)) - first) / (last - first)

    def points(self, n: int, margin: float = 0.0) -> Array:
        """Values at n evenly spaced places, from end to end and a share of it farther."""
        first, last = self.transform.transform([self.low, self.high])
        margin *= last - first
        places = np.linspace(first - margin, last + margin, n)
        return np.asarray(self.transform.inverted().transform(places))

    def ticks(self) -> Array:
        """Round numbers; powers of ten where it is logarithmic."""
        if self.threshold is None:
            return _round_numbers(self.low, self.high, 3)
        highest = np.floor(np.log10(max(-self.low, self.high)))
        lowest = np.ceil(np.log10(self.threshold))
        n_sides = 2 if self.low < -self.threshold and self.high > self.threshold else 1
        step = max(1, ceil(n_sides * (highest - lowest + 1) / 4))
        powers = 10.0 ** np.arange(highest, lowest - 1, -step)
        ticks = np.concatenate([-powers, [0.0], powers[::-1]])
        return ticks[(ticks >= self.low) & (ticks <= self.high)]


@dataclass(frozen=True)
class Panel:
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
        reach = 0.0
        if self.curve.slope:
            reach = 2 * self.curve.deviation / abs(self.curve.slope)
        return reach * np.array([-1.0, 0.0, 1.0])

    @cached_property
    def axis(self) -> Axis:
        """From the first to the last of nearly all rows."""
        if self.rows is not None:
            low, high = np.quantile(self.rows, _ENDS)
            if low < high:
                return Axis.of(self.rows, low, high)
        return Axis.of(self.sample, self.sample.min(), self.sample.max())

    @cached_property
    def x(self) -> Array:
        """Values of the column at which the curve is drawn, among them all where it bends."""
        knots = self.curve.knots
        inside = knots[(knots > self.axis.low) & (knots < self.axis.high)]
        between = self.axis.points(_POINTS)[1:-1]
        ends = [self.axis.low, self.axis.high]
        return np.unique(np.concatenate([ends, inside, between]))

    @cached_property
    def y(self) -> Array:
        """What the column adds there, less its mean over the sample."""
        start = self.curve.knots[0] if self.is_relative else 0.0
        return self.curve(start + self.x) - self.curve(start + self.sample).mean()

    def draw(self, axes: Any, scale: Scale) -> None:
        """The curve, and below it where rows lie."""
        if self.axis.threshold is not None:
            axes.set_xscale("asinh", linear_width=self.axis.threshold)
        axes.set_xlim(self.axis.points(2, _MARGIN))
        axes.set_ylim(scale.low, scale.high)
        color = _line_color(axes)
        axes.axhline(0, color=DATA, lw=0.7, zorder=1)
        axes.fill_between(self.x, self.y, color=color, alpha=0.15, lw=0)
        axes.plot(self.x, self.y, color=color, lw=1.8)
        strip = {"color": DATA, "transform": axes.get_xaxis_transform()}
        if self.rows is not None:
            edges, counts = _bars(self.rows, self.axis)
            heights = np.where(counts, np.maximum(counts / counts.max(), _LEAST_BAR), 0)
            axes.stairs(0.85 * _STRIP * heights, edges, fill=True, alpha=0.7, lw=0, **strip)
        elif not self.is_relative:
            axes.vlines(self.curve.knots, 0, 0.5 * _STRIP, lw=0.9, **strip)
        self._set_ticks(axes, scale)

    def _set_ticks(self, axes: Any, scale: Scale) -> None:
        """Ticks of x as far as their labels have room, and those of y that panels share."""
        width = axes.bbox.width / axes.figure.dpi
        ticks = self.axis.ticks()
        labels = labels_of(ticks, self.is_relative)
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
        axes.set_yticks(scale.ticks, scale.labels)
        is_first = axes.get_subplotspec().is_first_col()
        axes.tick_params(labelsize=SMALL_SIZE, length=2.5, pad=2)
        axes.tick_params(axis="y", left=is_first, labelleft=is_first)
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)


@dataclass(frozen=True)
class Scale:
    """The limits and ticks of y that panels share."""

    low: float
    high: float
    ticks: Array

    @property
    def labels(self) -> list[str]:
        """Of the ticks."""
        return labels_of(self.ticks)

    @classmethod
    def of(cls, panels: Sequence[Panel]) -> Self:
        """From the least to the largest value that is drawn; below it where rows lie."""
        low = min(float(panel.y.min()) for panel in panels)
        high = max(float(panel.y.max()) for panel in panels)
        if low == high:  # all of them are flat
            low = -1.0
            high = 1.0
        ticks = _round_numbers(low, high, 4)
        margin = 0.05 * (high - low)
        low -= margin
        high += margin
        if not all(panel.is_relative for panel in panels):
            low -= _STRIP / (1 - _STRIP) * (high - low)
        return cls(low, high, ticks)


def _bars(rows: Array, axis: Axis) -> tuple[Array, Array]:
    """Edges of bars and their counts: a bar around each value where they are few, else bins."""
    values, counts = np.unique(rows[(rows >= axis.low) & (rows <= axis.high)], return_counts=True)
    places = axis.share(values)
    if values.size > _BINS or (np.diff(places) < 1 / _BINS).any():
        edges = axis.points(_BINS + 1)
        edges[[0, -1]] = axis.low, axis.high  # to the last bit, so that no row falls out
        return edges, np.histogram(rows, edges)[0]
    first, last = axis.transform.transform([axis.low, axis.high])
    around = (places[:, None] + [-0.5 / _BINS, 0.5 / _BINS]).ravel()
    edges = axis.transform.inverted().transform(first + around * (last - first))
    return edges, np.column_stack([counts, np.zeros_like(counts)]).ravel()[:-1]


def _round_numbers(low: float, high: float, n: int) -> Array:
    """About n of them from low to high."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.asarray(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    margin = 1e-9 * (high - low)
    return ticks[(ticks >= low - margin) & (ticks <= high + margin)]


def labels_of(ticks: Array, with_sign: bool = False) -> list[str]:
    """Ticks as texts of as many digits as keep them apart."""
    texts: list[str] = []
    for digits in range(5, 18):
        sign = "+" if with_sign else ""
        texts = [f"{tick:{sign if tick else ''}.{digits}g}" for tick in ticks]
        if len(set(texts)) == len(texts):
            break
    short = [text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-") for text in texts]
    return [text.replace("-", "\u2212") for text in short]


def widths(labels: Sequence[str]) -> Array:
    """Of labels of digits, in inches."""
    return np.array([0.64 * SMALL_SIZE / 72 * len(label) for label in labels])


def _anchors(labels: Sequence[str], places: Array, width: float) -> Array:
    """How much of a label is left of its tick: all or nothing of it at the ends of a panel."""
    half = widths(labels) / 2
    over_left = places - half < -_OVERHANG
    over_right = places + half > width + _OVERHANG
    return np.where(over_left, 0.0, np.where(over_right, 1.0, 0.5))


def _are_apart(labels: Sequence[str], anchors: Array, places: Array) -> bool:
    starts = places - anchors * widths(labels)
    ends = starts + widths(labels)
    return bool((starts[1:] - ends[:-1] > _OVERHANG).all())


def _line_color(axes: Any) -> str:
    """The colour of a curve, a lighter one on dark figures, which have light letters."""
    from matplotlib.colors import to_rgb

    is_dark = np.mean(to_rgb(axes.title.get_color())) > 0.5
    return _ON_DARK if is_dark else COLORS[0]
