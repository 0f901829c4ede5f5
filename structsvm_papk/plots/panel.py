"""Panels of a `TermsDisplay`: a column's curve or the bars of its levels, and where its rows lie.

A missing value has a bar of its own, on the right.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.terms import Curve, Levels, Term
from structsvm_papk.plots.axis import (
    SMALL_SIZE,
    Axis,
    cut_short,
    labels_of,
    round_numbers,
    with_room,
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
_GAP = 0.24  # of the axis, for a bar beside it
_MOST_BARS = 8
_BESIDE = 16  # letters that stand beside each other below a panel

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
        beside = _MARGIN if self.gap is None else _GAP
        axes.set_xlim(self.axis.points(2, _MARGIN, beside))
        color = line_color(axes)
        axes.fill_between(self.x, self.y, color=color, alpha=0.15, lw=0)
        axes.plot(self.x, self.y, color=color, lw=1.8)
        most = 0
        strip = {"color": DATA, "transform": axes.get_xaxis_transform()}
        if self.rows is not None:
            edges, counts = _bars(self.rows, self.axis)
            most = max(counts.max(), self.n_missing)
            axes.stairs(_strip_heights(counts, most), edges, fill=True, alpha=0.7, lw=0, **strip)
        elif not self.is_relative:
            axes.vlines(self.term.knots, 0, 0.5 * _STRIP, lw=0.9, **strip)
        if self.gap is not None:
            place, after = self.axis.points(2, -1 - _GAP / 3, 0.7 * _GAP)
            axes.vlines(place, 0, self.gap, MISSING, lw=8)
            axes.plot(place, self.gap, "_", color=MISSING, ms=8)  # a flat bar is seen, too
            high = _strip_heights(np.array([self.n_missing]), most)
            axes.vlines(place, 0, high, lw=8, alpha=0.7, **strip)
            where = {"transform": axes.get_xaxis_transform(), "fontsize": SMALL_SIZE}
            axes.text(
                after, _STRIP + 0.02, "missing", rotation=90, ha="center", va="bottom", **where
            )
        ticks = self.axis.ticks()
        axes.set_xticks(*with_room(ticks, labels_of(ticks, self.is_relative)))
        axes.set_xticks([], minor=True)
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
    def heights(self) -> Array:
        """Of all levels, and of missing values."""
        weights = self.term.weights
        if self.term.gap is not None:
            weights = np.append(weights, self.term.gap)
        return weights - self._mean

    @property
    def shown(self) -> Array:
        """Levels of most rows, or those farthest from 0; the highest come first."""
        heights = self.heights[: self.counts.size]
        by_size = np.abs(heights) if self.rows is None else self.counts + 1e-9 * np.abs(heights)
        kept = np.argsort(-by_size, kind="stable")[:_MOST_BARS]
        return kept[np.argsort(-heights[kept], kind="stable")]

    def draw(self, axes: Any, scale: Scale) -> None:
        shown = self.shown
        names = [cut_short(self.term.levels[i]) for i in shown]
        heights = self.heights[shown]
        counts = self.counts[shown]
        colors = [line_color(axes)] * shown.size
        if self.term.gap is not None:
            names.append("missing")
            heights = np.append(heights, self.heights[-1])
            counts = np.append(counts, self.n_missing)
            colors.append(MISSING)
        x = np.arange(heights.size)
        axes.bar(x, heights, 0.5, color=colors, edgecolor=colors)  # a flat bar is seen, too
        if self.rows is not None:
            high = _strip_heights(counts, counts.max(initial=0))
            axes.bar(x, high, 0.5, color=DATA, alpha=0.7, transform=axes.get_xaxis_transform())
        if shown.size < self.counts.size:
            names.append(f"+{self.counts.size - shown.size} others")
        is_upright = sum(map(len, names)) > _BESIDE
        axes.set_xticks(np.arange(len(names)), names, rotation=90 if is_upright else 0)
        axes.set_xlim(-0.6, len(names) - 0.4)
        scale.draw(axes)
        axes.tick_params(axis="x", length=0)
        axes.grid(visible=False, axis="x")


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
