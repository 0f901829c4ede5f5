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
from structsvm_papk.plots.axis import column_name, cut_short, labels_of, shortened
from structsvm_papk.plots.panel import MISSING, Panel, Scale, line_color

_SIZE = 7.5  # of letters
_MOST = (8, 10)  # levels to the right, and up
_BESIDE = 16  # letters that stand beside each other below a map


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
        across, up = self._sides()
        weights = self.weights if across.axis == 0 else self.weights.T
        cells = weights[np.ix_(across.cells, up.cells)].T
        most = np.abs(cells).max(initial=0.0) or 1.0
        mesh = axes.pcolormesh(cells, cmap=_colors(axes), vmin=-most, vmax=most)
        for side, line in ((across, axes.axvline), (up, axes.axhline)):
            if side.has_gap:  # a missing value is no neighbour of the largest
                line(side.cells.size - 1, color=axes.get_facecolor(), lw=2)
        is_upright = sum(map(len, across.labels)) > _BESIDE
        axes.set_xticks(across.places, across.labels, rotation=90 if is_upright else 0)
        axes.set_yticks(up.places, up.labels)
        axes.tick_params(labelsize=_SIZE, length=2, pad=2)
        axes.spines[:].set_visible(False)
        width, height = axes.bbox.size / axes.figure.dpi
        axes.set_xlabel(shortened(across.name, width, _SIZE), fontsize=_SIZE, labelpad=2)
        axes.set_ylabel(shortened(up.name, height, _SIZE), fontsize=_SIZE, labelpad=2)
        bar = axes.figure.colorbar(mesh, ax=axes, aspect=25, pad=0.03)
        ends = np.array([-most, 0.0, most])
        bar.set_ticks(ends, labels=labels_of(ends, with_sign=True, least=2))
        bar.ax.tick_params(labelsize=_SIZE, length=0, pad=2)
        bar.outline.set_visible(False)

    def _sides(self) -> list[Side]:
        """That which goes to the right, and that which goes up."""
        size = np.abs(self.term.weights)
        largest = [size.max(axis=1), size.max(axis=0)]
        cuts = self.term.cuts

        def names_need_room(axis: int) -> tuple[bool, bool, int]:
            return cuts[axis].edges is None, bool(largest[axis][-1]), cuts[axis].n_cells

        order = sorted((0, 1), key=names_need_room)
        return [
            Side.of(
                axis, column_name(self.term.names[axis]), cuts[axis], largest[axis], _MOST[place]
            )
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
            labels = [cut_short(cut.names[cell]) for cell in cells]
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


def _colors(axes: Any) -> Any:
    """From what cells take away over nothing, the colour of the panel, to what they add."""
    from matplotlib.colors import LinearSegmentedColormap

    ends = [MISSING, axes.get_facecolor(), line_color(axes)]
    return LinearSegmentedColormap.from_list("adds", ends)
