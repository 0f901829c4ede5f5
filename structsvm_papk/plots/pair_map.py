"""The panel of two columns that act together: a small map of what each of its cells adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, log10
from typing import Any, NamedTuple, Self

import numpy as np

from structsvm_papk._types import Array
from structsvm_papk.data.columns.terms import Cut, Pair
from structsvm_papk.plots.axis import (
    column_name,
    labels_of,
    one_line,
    shortened,
    text_width,
)
from structsvm_papk.plots.panel import MISSING, Panel, Scale, line_color

_SIZE = 7.5  # of letters
_LINE = 0.14  # inches that a line of text takes
_LETTER = 0.11  # inches that an upright text takes beside another
_MOST_LABELS = 0.55  # inches, for names of levels
_MOST_ACROSS = 0.4  # of the width of a panel, for columns of a map with upright names
_BAR = 0.06  # width of the bar of colours, in inches


@dataclass(frozen=True)
class PairPanel(Panel[Pair]):
    """A map of cells with colours of its own; names of levels go up, numbers to the right."""

    is_map = True

    @property
    def heights(self) -> Array:
        return np.zeros(0)

    @property
    def has_strip(self) -> bool:
        return False

    @cached_property
    def weights(self) -> Array:
        """What cells add, less the mean over the rows, or over the cells of values."""
        if self.values is not None:
            return self.term.weights - self.term.of(self.values).mean()
        known = self.term.weights[:-1, :-1]
        return self.term.weights - (known.mean() if known.size else 0.0)

    def draw(self, axes: Any, scale: Scale) -> None:
        """The map, its two sides, and what its colours mean."""
        width, height = axes.bbox.size / axes.figure.dpi
        across, up = self._sides(width, height)
        weights = self.weights if across.axis == 0 else self.weights.T
        cells = weights[np.ix_(across.cells, up.cells)].T
        most = np.abs(cells).max(initial=0.0) or 1.0
        ends = labels_of(np.array([-most, 0.0, most]), with_sign=True, least=2)
        labels, labels_width = _fitted(up.labels, min(_MOST_LABELS, 0.4 * width))
        left = _LINE + labels_width + 0.06
        right = 2 * _BAR + text_width(ends[0], _SIZE) + 0.05
        inside = max(width - left - right, 0.1)
        slot = inside / max(across.cells.size, 1)
        bottom = _LINE
        below, labels_width = _fitted(across.labels, min(_MOST_LABELS, 0.4 * height))
        is_upright = labels_width > slot - 0.04
        if is_upright:
            bottom += labels_width - 0.1
        axes.set(xticks=[], yticks=[])
        axes.set_axis_off()
        area = axes.inset_axes([left / width, bottom / height, inside / width, 1 - bottom / height])
        mesh = area.pcolormesh(cells, cmap=_colors(axes), vmin=-most, vmax=most)
        for side, line in ((across, area.axvline), (up, area.axhline)):
            if side.has_gap:  # a missing value is no neighbour of the largest
                line(side.cells.size - 1, color=axes.get_facecolor(), lw=2)
        places = across.places
        if is_upright:
            apart = _apart(places * slot, _LETTER)
            places = places[apart]
            below = [below[i] for i in apart]
        area.set_xticks(places, below, rotation=90 if is_upright else 0)
        area.set_yticks(up.places, labels)
        area.tick_params(labelsize=_SIZE, length=2, pad=2)
        area.spines[:].set_visible(False)
        style = {"fontsize": _SIZE, "transform": axes.transAxes}
        name = shortened(column_name(across.name), inside, _SIZE)
        middle = (left + inside / 2) / width
        axes.text(middle, -0.03 / height, name, ha="center", va="top", **style)
        name = shortened(column_name(up.name), height - bottom, _SIZE)
        middle = (1 + bottom / height) / 2
        axes.text(0, middle, name, rotation=90, ha="left", va="center", **style)
        place = [(left + inside + _BAR) / width, bottom / height, _BAR / width, 1 - bottom / height]
        bar = axes.figure.colorbar(mesh, cax=axes.inset_axes(place))
        bar.set_ticks([-most, 0, most], labels=ends)
        bar.ax.tick_params(labelsize=_SIZE, length=0, pad=2)
        bar.outline.set_visible(False)
        for text, anchor in zip(bar.ax.get_yticklabels(), ("bottom", "center", "top"), strict=True):
            text.set_verticalalignment(anchor)

    def _sides(self, width: float, height: float) -> list[Side]:
        """That which goes to the right, and that which goes up."""
        size = np.abs(self.term.weights)
        largest = [size.max(axis=1), size.max(axis=0)]
        cuts = self.term.cuts

        def names_need_room(axis: int) -> tuple[bool, bool, int]:
            return cuts[axis].edges is None, bool(largest[axis][-1]), cuts[axis].n_cells

        order = sorted((0, 1), key=names_need_room)
        most = (int(_MOST_ACROSS * width / _LINE), int((height - _LINE) / _LINE))
        return [
            Side.of(axis, self.term.names[axis], cuts[axis], largest[axis], most[place])
            for place, axis in enumerate(order)
        ]


class Side(NamedTuple):
    """One side of a map: the cells that it shows, and labels with their places, in cells."""

    axis: int
    name: str
    cells: Array
    places: Array
    labels: Sequence[str]
    has_gap: bool

    @classmethod
    def of(cls, axis: int, name: str, cut: Cut, size: Array, most: int) -> Self:
        """All cells, or of many levels those of the largest weights."""
        has_gap = bool(size[-1])
        cells = np.arange(cut.n_cells)
        if cut.edges is not None:
            places = np.arange(1.0, cut.n_cells)
            labels = labels_of(_rounded(cut.edges), least=4)
        else:
            if cells.size + has_gap > most:
                largest = np.argsort(-size[:-1], kind="stable")[: max(most - has_gap, 1)]
                name = f"{name} ({largest.size} of {cells.size})"
                cells = np.sort(largest)
            places = np.arange(cells.size) + 0.5
            labels = [one_line(cut.names[cell]) for cell in cells]
        if has_gap:
            places = np.append(places, cells.size + 0.5)
            cells = np.append(cells, cut.n_cells)
            labels = [*labels, "missing"]
        return cls(axis, name, cells, places, labels, has_gap)


def _rounded(edges: Array) -> Array:
    """Edges with one digit more than tells neighbours apart."""
    least = np.diff(edges).min(initial=np.inf)
    if not np.isfinite(least):
        return edges
    return np.round(edges, max(1 - floor(log10(least)), 0))


def _apart(places: Array, room: float) -> list[int]:
    """Which of some labels have so much room each, the last one among them."""
    kept: list[int] = []
    for i in range(places.size - 1, -1, -1):
        if not kept or places[kept[-1]] - places[i] >= room:
            kept.append(i)
    return kept[::-1]


def _fitted(labels: Sequence[str], room: float) -> tuple[list[str], float]:
    """Labels shortened to some inches, and the width of the widest."""
    width = max((text_width(label, _SIZE) for label in labels), default=0.0)
    return [shortened(label, room, _SIZE) for label in labels], min(width, room)


def _colors(axes: Any) -> Any:
    """From what cells take away over nothing, the colour of the panel, to what they add."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [MISSING, axes.get_facecolor(), line_color(axes)]
    return LinearSegmentedColormap.from_list("adds", ends)
