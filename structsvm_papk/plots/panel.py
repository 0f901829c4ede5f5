"""Panels of a `TermsDisplay`: a column's curve or the bars of its levels, and where its rows lie.

A missing value has a bar of its own, on the right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.terms import Curve, Levels, Term
from structsvm_papk.plots.axis import (
    SMALL_SIZE,
    Axis,
    labels_of,
    one_line,
    round_numbers,
    set_labels,
    shortened,
    widths,
)
from structsvm_papk.plots.figures import COLORS

DATA = "#7d8794"  # the colour of rows and of knots
MISSING = COLORS[1]  # of missing values, and of what cells take away
_ON_DARK = "#74b3ee"
_ENDS = (0.005, 0.995)  # quantiles of rows between which a column is drawn
_POINTS = 200  # at which a curve is drawn, beside its knots
_MARGIN = 0.04  # of a panel on each side
_STRIP = 0.16  # of its height, for where the rows lie
_BINS = 30
_LEAST_BAR = 0.12  # of the strip: a single row is seen
_SLOT = 0.28  # inches that a bar and an upright name take
_WIDEST_BAR = 0.3  # inches

SomeTerm = TypeVar("SomeTerm", bound=Term)


@dataclass(frozen=True)
class Panel(ABC, Generic[SomeTerm]):
    """A term, and the values that rows have in its columns, where they are known.

    `gap_is_extra` says that a missing value adds its `gap` beside the lowest value of its list.
    """

    is_map: ClassVar[bool] = False  # its colours, and not its heights, say what a term adds
    term: SomeTerm
    values: Sequence[Array] | None
    gap_is_extra: bool = False

    @property
    @abstractmethod
    def heights(self) -> Array:
        """What is drawn on the scale of y that panels share."""

    @property
    @abstractmethod
    def has_strip(self) -> bool:
        """Whether it shows below where rows lie."""

    @abstractmethod
    def draw(self, axes: Any, scale: Scale) -> None:
        """The term, where its rows lie, and ticks."""

    @property
    def is_relative(self) -> bool:
        """Whether only a slope is known, and not where on the axis rows lie."""
        return False

    @property
    def gap_is_beside_lowest(self) -> bool:
        """Whether what it shows of a missing value comes on top of what the lowest value adds."""
        return False

    @cached_property
    def rows(self) -> Array | None:
        """Values of the column that are not missing; None where none are known."""
        if self.values is None:
            return None
        rows = self.values[0][~np.isnan(self.values[0])]
        return rows if rows.size else None

    @property
    def n_missing(self) -> int:
        """Rows in which the value is missing."""
        return 0 if self.values is None else int(np.isnan(self.values[0]).sum())


@dataclass(frozen=True)
class CurvePanel(Panel[Curve]):
    """A curve or a line."""

    @property
    def is_relative(self) -> bool:
        return self.rows is None and self.term.is_line

    @property
    def gap_is_beside_lowest(self) -> bool:
        return self.gap_is_extra and self.term.gap is not None

    @property
    def has_strip(self) -> bool:
        return not self.is_relative

    @cached_property
    def sample(self) -> Array:
        """What is known of where rows lie: they, or knots, or only how far from each other."""
        if self.rows is not None:
            return self.rows
        if not self.is_relative:
            return self.term.knots
        reach = 0.0
        if self.term.slope:
            reach = 2 * self.term.deviation / abs(self.term.slope)
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
        knots = self.term.knots
        inside = knots[(knots > self.axis.low) & (knots < self.axis.high)]
        between = self.axis.points(_POINTS)[1:-1]
        ends = [self.axis.low, self.axis.high]
        return np.unique(np.concatenate([ends, inside, between]))

    @cached_property
    def y(self) -> Array:
        """What the column adds there, less its mean over the sample."""
        return self.term(self._start + self.x) - self._mean

    @property
    def _start(self) -> float:
        return float(self.term.knots[0]) if self.is_relative else 0.0

    @cached_property
    def _mean(self) -> float:
        return float(self.term(self._start + self.sample).mean())

    @property
    def gap(self) -> float | None:
        """The height of a missing value; None where it has no weight, or its place is unknown."""
        if self.term.gap is None or (self.is_relative and not self.gap_is_extra):
            return None
        return self.term.gap if self.gap_is_extra else self.term.gap - self._mean

    @property
    def heights(self) -> Array:
        return self.y if self.gap is None else np.append(self.y, self.gap)

    def draw(self, axes: Any, scale: Scale) -> None:
        if self.axis.threshold is not None:
            axes.set_xscale("asinh", linear_width=self.axis.threshold)
        width = _width(axes)
        slot = 0.0
        if self.gap is not None:
            slot = min(_SLOT / width, 0.4)
        total = (1 + 2 * _MARGIN) / (1 - slot)  # in widths of the axis
        axes.set_xlim(self.axis.points(2, _MARGIN, total - 1 - _MARGIN))
        color = line_color(axes)
        axes.fill_between(self.x, self.y, color=color, alpha=0.15, lw=0)
        axes.plot(self.x, self.y, color=color, lw=1.8)
        most = 0
        if self.rows is not None:
            edges, counts = _bars(self.rows, self.axis)
            most = max(counts.max(), self.n_missing)
            strip = {"color": DATA, "transform": axes.get_xaxis_transform()}
            axes.stairs(_strip_heights(counts, most), edges, fill=True, alpha=0.7, lw=0, **strip)
        elif not self.is_relative:
            strip = {"color": DATA, "transform": axes.get_xaxis_transform()}
            axes.vlines(self.term.knots, 0, 0.5 * _STRIP, lw=0.9, **strip)
        if self.gap is not None:
            bars = Bars.of_missing(self.gap, self.n_missing)
            bars.draw(axes, slot * width, 1 - slot, most)
        ticks = self.axis.ticks()
        places = (_MARGIN + self.axis.share(ticks)) / total * width
        set_labels(axes, ticks, labels_of(ticks, self.is_relative), places, width)
        scale.draw(axes)


@dataclass(frozen=True)
class LevelsPanel(Panel[Levels]):
    """A bar for each level, the largest first; where they are many, for those of most rows."""

    @property
    def has_strip(self) -> bool:
        return self.rows is not None

    @cached_property
    def counts(self) -> Array:
        """Rows of each level."""
        if self.rows is None:
            return np.zeros(self.term.weights.size, dtype=int)
        known = self.rows[self.rows >= 0].astype(int)
        return np.bincount(known, minlength=self.term.weights.size)

    @cached_property
    def _mean(self) -> float:
        """Over the rows, or over the levels."""
        if self.rows is not None:
            return float(self.term.of([self.rows]).mean())
        return float(self.term.weights.mean()) if self.term.weights.size else 0.0

    @property
    def bars(self) -> Bars:
        """Of all levels, and of missing values."""
        names = [one_line(level) for level in self.term.levels]
        bars = Bars(names, self.term.weights - self._mean, self.counts)
        if self.term.gap is None:
            return bars
        return bars + Bars.of_missing(self.term.gap - self._mean, self.n_missing)

    @property
    def heights(self) -> Array:
        return self.bars.heights

    def draw(self, axes: Any, scale: Scale) -> None:
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        scale.draw(axes)
        width = _width(axes)
        bars = self.bars.shown(max(int(width / _SLOT), 2), by_rows=self.rows is not None)
        bars.draw(axes, width, 0.0, bars.counts.max(initial=0))


class Bars(NamedTuple):
    """Bars beside each other: their names, heights, and how many rows they stand for."""

    names: list[str]
    heights: Array
    counts: Array
    n_others: int = 0
    has_missing: bool = False  # which is the last one

    @classmethod
    def of_missing(cls, height: float, count: int) -> Self:
        """That of missing values."""
        return cls(["missing"], np.array([height]), np.array([count]), has_missing=True)

    def __add__(self, last: Any) -> Bars:
        heights = np.concatenate([self.heights, last.heights])
        counts = np.concatenate([self.counts, last.counts])
        return Bars(self.names + last.names, heights, counts, has_missing=last.has_missing)

    def shown(self, most: int, by_rows: bool) -> Bars:
        """At most so many: those of most rows, or the farthest from 0; the highest come first."""
        n_levels = len(self.names) - self.has_missing
        n_kept = n_levels
        if len(self.names) > most:
            n_kept = max(most - 1 - self.has_missing, 1)  # one place is for "+12 others"
        size = np.abs(self.heights[:n_levels])
        rank = np.lexsort([-size, -self.counts[:n_levels]]) if by_rows else np.argsort(-size)
        kept = rank[:n_kept]
        kept = kept[np.argsort(-self.heights[kept], kind="stable")]
        kept = np.append(kept, np.arange(n_levels, len(self.names)))
        names = [self.names[i] for i in kept]
        n_others = n_levels - n_kept
        return Bars(names, self.heights[kept], self.counts[kept], n_others, self.has_missing)

    def draw(self, axes: Any, width: float, start: float, most: int) -> None:
        """Draw them in a part of the axes that begins at a share of it and is so many inches wide.

        Names stand below the axes where they have room, else upright beside their bars.
        """
        names = [*self.names]
        if self.n_others:
            names.insert(len(names) - self.has_missing, f"+{self.n_others} others")
        slot = width / max(len(names), 1)
        at = np.delete(np.arange(len(names)), self._place_of_others)
        share = slot / _width(axes)
        middles = start + share * (np.arange(len(names)) + 0.5)
        is_upright = start > 0 or widths(names).max(initial=0) > slot - 0.05
        bar = min(_WIDEST_BAR, (0.4 if is_upright else 0.6) * slot)
        x = middles[at] - is_upright * 0.22 * share
        colors = [line_color(axes)] * len(self.names)
        if self.has_missing:
            colors[-1] = MISSING
        upright = {"lw": 72 * bar, "capstyle": "butt"}
        axes.vlines(x, 0, self.heights, colors, transform=axes.get_yaxis_transform(), **upright)
        ends = (x - bar / _width(axes) / 2, x + bar / _width(axes) / 2)
        of_y = axes.get_yaxis_transform()
        # a bar of next to no height is seen, too
        axes.hlines(self.heights, *ends, colors, lw=1.5, capstyle="butt", transform=of_y)
        if most:
            high = _strip_heights(self.counts, most)
            strip = {"colors": DATA, "alpha": 0.7, "transform": axes.transAxes}
            axes.vlines(x, 0, high, **strip, **upright)
        height = axes.bbox.height / axes.figure.dpi
        for i, name in enumerate(names):
            is_level = i in at
            style: dict[str, Any] = {"fontsize": SMALL_SIZE, "transform": axes.transAxes}
            if not is_level:
                style["color"] = DATA
            if is_upright:
                bottom = _STRIP + 0.02
                name = shortened(name, (1 - bottom) * height)
                place = middles[i] + is_level * 0.22 * share
                axes.text(place, bottom, name, rotation=90, ha="center", va="bottom", **style)
            else:
                below = -0.045 / height
                axes.text(middles[i], below, shortened(name, slot), ha="center", va="top", **style)

    @property
    def _place_of_others(self) -> list[int]:
        return [len(self.names) - self.has_missing] if self.n_others else []


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
    def of(cls, panels: Sequence[Panel[Any]]) -> Self:
        """From the least to the largest value that is drawn; below it where rows lie."""
        heights = np.concatenate([np.zeros(1), *(panel.heights for panel in panels)])
        low = float(heights.min())
        high = float(heights.max())
        if low == high:  # all of them are flat
            low = -1.0
            high = 1.0
        ticks = round_numbers(low, high, 4)
        margin = 0.05 * (high - low)
        low -= margin
        high += margin
        if any(panel.has_strip for panel in panels):
            low -= _STRIP / (1 - _STRIP) * (high - low)
        return cls(low, high, ticks)

    def draw(self, axes: Any) -> None:
        """Limits, ticks and the line at 0 of one panel."""
        axes.set_ylim(self.low, self.high)
        axes.axhline(0, color=DATA, lw=0.7, zorder=1)
        axes.set_yticks(self.ticks, self.labels)
        is_first = axes.get_subplotspec().is_first_col()
        axes.tick_params(labelsize=SMALL_SIZE, length=2.5, pad=2)
        axes.tick_params(axis="y", left=is_first, labelleft=is_first)
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)


def _width(axes: Any) -> float:
    """In inches."""
    return float(axes.bbox.width / axes.figure.dpi)


def _strip_heights(counts: Array, most: int) -> Array:
    """Heights of bars that count rows."""
    heights = np.where(counts, np.maximum(counts / max(most, 1), _LEAST_BAR), 0)
    return np.asarray(0.85 * _STRIP * heights)


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


def line_color(axes: Any) -> str:
    """The colour of a curve, a lighter one on dark figures, which have light letters."""
    from matplotlib.colors import to_rgb

    is_dark = np.mean(to_rgb(axes.title.get_color())) > 0.5
    return _ON_DARK if is_dark else COLORS[0]
