"""Axes of a small panel: between which values they reach, and ticks that have room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any, Self

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.plots.figures import literal

SMALL_SIZE = 8.5  # of letters
_MIDDLE = (0.25, 0.75)  # quantiles of rows
_ROOM = 0.05  # share of an axis that the middle half of the rows should have
_CUT = 1 / 16  # of the rows at either end, where a logarithm does not help: one of 16 pieces
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

    def points(self, n: int, left: float = 0.0, right: float = 0.0) -> Array:
        """Values at n evenly spaced places, from end to end and shares of it farther."""
        first, last = self.transform.transform([self.low, self.high])
        width = last - first
        places = np.linspace(first - left * width, last + right * width, n)
        return np.asarray(self.transform.inverted().transform(places))

    def ticks(self) -> Array:
        """Round numbers; powers of ten where it is logarithmic."""
        if self.threshold is None:
            return round_numbers(self.low, self.high, 3)
        highest = np.floor(np.log10(max(-self.low, self.high)))
        lowest = np.ceil(np.log10(self.threshold))
        n_sides = 2 if self.low < -self.threshold and self.high > self.threshold else 1
        step = max(1, ceil(n_sides * (highest - lowest + 1) / 4))
        powers = 10.0 ** np.arange(highest, lowest - 1, -step)
        ticks = np.concatenate([-powers, [0.0], powers[::-1]])
        return ticks[(ticks >= self.low) & (ticks <= self.high)]


def round_numbers(low: float, high: float, n: int) -> Array:
    """About n of them from low to high."""
    from matplotlib.ticker import MaxNLocator

    ticks = np.asarray(MaxNLocator(n, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high))
    margin = 1e-9 * (high - low)
    return ticks[(ticks >= low - margin) & (ticks <= high + margin)]


def labels_of(ticks: Array, with_sign: bool = False, least: int = 5) -> list[str]:
    """Ticks as texts of so many digits, or as many more as keep them apart."""
    texts: list[str] = []
    for digits in range(least, 18):
        sign = "+" if with_sign else ""
        texts = [f"{tick:{sign if tick else ''}.{digits}g}" for tick in ticks]
        if len(set(texts)) == len(texts):
            break
    short = [text.replace("e+0", "e").replace("e+", "e").replace("e-0", "e-") for text in texts]
    return [text.replace("-", "\u2212") for text in short]


def widths(labels: Sequence[str]) -> Array:
    """Of labels of digits, in inches."""
    return np.array([0.64 * SMALL_SIZE / 72 * len(label) for label in labels])


def set_labels(axes: Any, ticks: Array, labels: Sequence[str], places: Array, width: float) -> None:
    """Ticks of x with as many of their labels as have room; places and width are in inches."""
    taken = widths(labels)
    anchors = _anchors(taken, places, width)
    while not _are_apart(taken, anchors, places):
        ticks = ticks[::2]
        labels = labels[::2]
        places = places[::2]
        anchors = anchors[::2]
        taken = taken[::2]
    axes.set_xticks(ticks, labels)
    axes.set_xticks([], minor=True)
    for text, anchor in zip(axes.get_xticklabels(), anchors, strict=True):
        text.set_horizontalalignment(_ALIGNMENTS[anchor])


def _anchors(taken: Array, places: Array, width: float) -> Array:
    """How much of a label is left of its tick: all or nothing of it at the ends of a panel."""
    over_left = places - taken / 2 < -_OVERHANG
    over_right = places + taken / 2 > width + _OVERHANG
    return np.where(over_left, 0.0, np.where(over_right, 1.0, 0.5))


def _are_apart(taken: Array, anchors: Array, places: Array) -> bool:
    starts = places - anchors * taken
    ends = starts + taken
    return bool((starts[1:] - ends[:-1] > _OVERHANG).all())


def column_name(name: str) -> str:
    """The name of a column without line breaks, and "column 3" where it has a number only."""
    name = one_line(name)
    return f"column {name}" if name.isdecimal() else name


def one_line(name: object) -> str:
    """A name without line breaks."""
    return " ".join(str(name).split())


def text_width(text: str, size: float = SMALL_SIZE) -> float:
    """As it is drawn, in inches."""
    from matplotlib.textpath import TextPath

    outline = TextPath((0, 0), literal(text), size=size).vertices
    return float(np.ptp(outline[:, 0])) / 72 if outline.size else 0.0


def shortened(name: str, room: float, size: float = SMALL_SIZE) -> str:
    """A name as matplotlib draws it to the letter, without its middle where it is too long."""
    for kept in range(len(name), 1, -1):
        text = name
        if kept < len(name):
            text = f"{name[: kept - kept // 2]}\u2026{name[len(name) - kept // 2 :]}"
        if text_width(text, size) <= room:
            return literal(text)
    return literal(name[:1])


def shortened_names(names: Sequence[str], room: float, size: float) -> list[str]:
    """Names that have some room together: what a short one leaves is for the others."""
    texts = list(names)
    taken = [text_width(name, size) for name in names]
    for n_left, i in zip(range(len(names), 0, -1), np.argsort(taken), strict=True):
        own = room / n_left
        texts[i] = shortened(names[i], own, size)
        room -= min(taken[i], own)
    return texts
