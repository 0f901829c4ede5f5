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
_ROOM_OF_TICKS = 18  # letters below a panel, and a blank behind each label
_LONGEST_NAME = 10  # letters of a level


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


def with_room(ticks: Array, labels: Sequence[str]) -> tuple[Array, Sequence[str]]:
    """Ticks of x whose labels have room, all or every other one, ..."""
    while len(labels) > 1 and sum(len(label) + 1 for label in labels) > _ROOM_OF_TICKS:
        ticks = ticks[::2]
        labels = labels[::2]
    return ticks, labels


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
        text = _without_middle(name, kept)
        if text_width(text, size) <= room:
            return literal(text)
    return literal(name[:1])


def cut_short(level: object) -> str:
    """The name of a level, without its middle where it is long."""
    name = one_line(level)
    return literal(_without_middle(name, min(_LONGEST_NAME, len(name))))


def _without_middle(name: str, kept: int) -> str:
    """A name with so many of its letters."""
    if kept == len(name):
        return name
    return f"{name[: kept - kept // 2]}\u2026{name[len(name) - kept // 2 :]}"
