"""What the terms of a ranker add as small multiples, in the style of scikit-learn's displays.

matplotlib (the extra `plot`) and scikit-learn are imported where they are used.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from textwrap import fill
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import sparse

from structsvm_papk._types import Array
from structsvm_papk.data.columns.checks import (
    LOWEST,
    SEPARATE,
    as_frame,
    check_matrix,
    check_missing,
)
from structsvm_papk.data.columns.tables import in_numbers
from structsvm_papk.data.columns.terms import Curve, Levels, Pair, Term
from structsvm_papk.errors import InputError, as_names, check_number
from structsvm_papk.plots.axis import (
    SMALL_SIZE,
    column_name,
    shortened,
    text_width,
)
from structsvm_papk.plots.pair_map import PairPanel
from structsvm_papk.plots.panel import DATA, CurvePanel, LevelsPanel, Panel, Scale
from structsvm_papk.plots.rankings import new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PANELS: dict[type[Term], Callable[..., Panel[Any]]] = {
    Curve: CurvePanel,
    Levels: LevelsPanel,
    Pair: PairPanel,
}
_N_COLUMNS = 12  # terms that are drawn, if not asked for more
_NAME_SIZE = 10.0  # of letters
_AND = " x "  # between the names of two columns
_NOTHING = "All terms are flat: this ranker adds\nthe same to every score, and ranks nothing."


@dataclass
class TermsDisplay:
    """What each term adds to a score: a small panel for each, the most important first.

    Columns of numbers are curves or lines, text and categories are bars, and both have one scale
    of y. 0 is what a column adds in the mean, over the rows of `X` that have a value, or over the
    knots or levels without `X`. The orange bar, "missing", is what a missing value adds. Of many
    levels the eight of most rows are shown, or those farthest from 0 without `X`.

    Two columns that act together are a map: the colour is what a cell adds, blue above the mean
    and orange below. The cells of numbers lie between the values on its edge. Each map has its own
    scale of colours, beside it. In a row of panels maps come last.

    Terms that move scores most within lists come first. In the corner stands the share of a term in
    the sum of their standard deviations within lists, in training.

    Grey bars show how many rows of `X` have which value. Without `X` grey lines show the knots,
    which are quantiles of the rows in training. Of a straight line only the slope is known then:
    it is drawn over differences of up to two standard deviations within lists.

    A panel reaches from the 0.5% to the 99.5% quantile of `X`, or from the first to the last knot.
    Where the middle half of the rows would have less than a twentieth of it, the axis is
    logarithmic far from zero (matplotlib's 'asinh'). If it still has less, because values are large
    and nearly the same, a sixteenth of the rows at either end is not shown.

    Attributes
    ----------
    terms : sequence of Curve, Levels or Pair
    X : array of shape (n_rows, n_features), data frame or sparse matrix, optional
        Rows as they were given to `fit`; the display keeps numbers, of levels their places.
    missing : {'separate', 'lowest'}
        As of `PAPKRanker`: with 'lowest' the weight of a missing number counts beside what the
        lowest value of its list adds.
    figure_ : Figure
    axes_ : ndarray of Axes
        The panels, the most important first; none where all terms are flat, which a sentence says.
    """

    terms: Sequence[Term]
    X: Any = None
    missing: str = SEPARATE

    def __post_init__(self) -> None:
        self.terms = as_names("terms", self.terms, Term)
        if not self.terms:
            raise InputError("there are no terms to draw")
        for term in self.terms:
            try:
                json.dumps([term.description(), term.deviation], allow_nan=False, default=str)
            except ValueError:
                raise InputError(
                    f"the term of column {term.name} holds NaN or infinite numbers"
                ) from None
        check_missing(self.missing)
        if self.X is None:
            return
        X = as_frame(self.X)
        if np.ndim(X) == 2 and X.shape[1] <= self._columns[-1]:
            raise InputError(
                f"X has {X.shape[1]} columns, but the terms are of {1 + self._columns[-1]}"
            )
        if np.ndim(X) == 2 and len(self._columns) < X.shape[1]:
            X = X.iloc[:, self._columns] if hasattr(X, "iloc") else X[:, self._columns]
        levels = _levels_of(self.terms)
        levels = {i: levels[j] for i, j in enumerate(self._columns) if j in levels}
        self.X = check_matrix(in_numbers(X, levels), missing=SEPARATE)

    @property
    def _columns(self) -> list[int]:
        """Those that the terms read, which are all that `X` keeps."""
        return sorted({column for term in self.terms for column in term.columns})

    @classmethod
    def from_estimator(
        cls, ranker: Any, X: Any = None, *, n_columns: int = _N_COLUMNS, ax: Axes | None = None
    ) -> Self:
        """Display of a fitted ranker.

        Parameters
        ----------
        ranker : PAPKRanker or Model
        X : array of shape (n_rows, n_features), data frame or sparse matrix, optional
            Rows that show where the data lie, such as those of training.
        n_columns : int
            How many terms are shown at most.
        ax : Axes, optional
            The panels are drawn in its place, and its figure takes matplotlib's constrained layout;
            by default in a figure of their own.

        Returns
        -------
        TermsDisplay
        """
        from sklearn.utils.validation import check_is_fitted

        function = getattr(ranker, "function", None)  # of a model
        if function is None:
            check_is_fitted(ranker)
            function = getattr(ranker, "function_", None)
        if function is None:
            raise InputError(f"{type(ranker).__name__} has no terms: give a PAPKRanker or a Model")
        display = cls(function.terms, missing=ranker.missing or SEPARATE)
        if X is not None:
            display.X = ranker._features(X)
        return display.plot(ax, n_columns=n_columns)

    def plot(self, ax: Axes | None = None, *, n_columns: int = _N_COLUMNS) -> Self:
        """Draw in the place of the axes, or in a figure of its own; returns the display."""
        check_number("n_columns", n_columns, least=1)
        deviations = np.array([term.deviation for term in self.terms])
        shown = np.argsort(-deviations, kind="stable")[: int(n_columns)]
        if all(term.is_zero for term in self.terms):
            shown = shown[:0]
        with_maps = _have_maps([self.terms[t] for t in shown])
        ax = new_axes(ax, _figure_size(shown.size, with_maps))
        place = ax.get_subplotspec()
        if place is None:
            raise InputError("ax must be one of plt.subplots(..), whose place panels can divide")
        figure: Any = ax.figure
        figure.set_layout_engine("constrained")
        ax.set_axis_off()
        self.figure_ = figure
        self.axes_ = np.empty(shown.size, dtype=object)
        if not shown.size:
            ax.text(0.5, 0.5, _NOTHING, ha="center", va="center", transform=ax.transAxes)
            return self
        panels = [self._panel(self.terms[t]) for t in shown]
        scale = Scale.of(panels)
        area = figure.add_subfigure(place)
        width = area.bbox.width / area.figure.dpi
        caption = fill(self._caption(panels), round(14 * width), break_long_words=False)
        n_beside = _n_beside(shown.size)
        places = area.add_gridspec(ceil(shown.size / n_beside), n_beside)
        shares = deviations / (deviations.sum() or 1.0)
        for i, at in enumerate(_maps_last(panels)):
            self.axes_[i] = area.add_subplot(places[at])
            panels[i].draw(self.axes_[i], scale)
            _write_title(self.axes_[i], panels[i].term.names, shares[shown[i]])
        if any(panel.heights.size for panel in panels):
            area.supylabel("adds to the score", fontsize=_NAME_SIZE)
        area.supxlabel(caption, fontsize=SMALL_SIZE, color=DATA)
        return self

    def _panel(self, term: Term) -> Panel[Any]:
        """The panel of a term."""
        values = None
        if self.X is not None:
            values = [self._column(j) for j in term.columns]
        return _PANELS[type(term)](term, values, gap_is_extra=self.missing == LOWEST)

    def _column(self, j: int) -> Array:
        """Values of a column."""
        column = self.X[:, [self._columns.index(j)]]
        if sparse.issparse(column):
            column = column.toarray()
        return column[:, 0].astype(np.float64)

    def _caption(self, panels: Sequence[Panel[Any]]) -> str:
        """What percentages, colours and the grey bars or lines mean."""
        parts = ["%: share of the variation of scores within lists."]
        what = "terms" if _have_maps(self.terms) else "columns"
        if len(panels) < len(self.terms):
            parts.insert(0, f"{len(panels)} of {len(self.terms)} {what}.")
        if any(panel.has_strip for panel in panels):
            if self.X is not None:
                parts.append("Grey bars: number of rows.")
            else:
                parts.append("Grey lines: knots (quantiles).")
        if any(panel.is_relative for panel in panels):
            parts.append("Straight lines: x is a difference.")
        if any(panel.gap_is_beside_lowest for panel in panels):
            parts.append("Missing: beside the lowest value of its list.")
        if any(panel.is_map for panel in panels):
            parts.append("Maps: on top of both columns, blue adds, orange takes away.")
        return " ".join(part.replace(" ", "\u00a0") for part in parts)  # lines are whole sentences


def terms_figure(terms: Sequence[Term], matrix: Any = None, missing: str | None = None) -> Figure:
    """The picture of a `TermsDisplay`, in a figure that is not one of pyplot's.

    `matrix` holds numbers, of levels their places.
    """
    from matplotlib.figure import Figure

    display = TermsDisplay(terms, missing=missing or SEPARATE)
    display.X = matrix
    n_panels = min(len(terms), _N_COLUMNS)
    figure = Figure(figsize=_figure_size(n_panels, _have_maps(terms)))
    display.plot(figure.add_subplot())
    return figure


def _have_maps(terms: Sequence[Term]) -> bool:
    """Whether some of them are of two columns."""
    return any(len(term.columns) == 2 for term in terms)


def _levels_of(terms: Sequence[Term]) -> dict[int, tuple[Any, ...]]:
    """The levels of each column that has some."""
    levels: dict[int, tuple[Any, ...]] = {}
    for term in terms:
        levels |= term.levels_of_columns
    return levels


def _maps_last(panels: Sequence[Panel[Any]]) -> list[int]:
    """The place of each panel: in order, but maps last in their row: its first has ticks of y."""
    n_beside = _n_beside(len(panels))
    is_map = [panel.is_map for panel in panels]
    order = sorted(range(len(panels)), key=lambda i: (i // n_beside, is_map[i], i))
    return np.argsort(order).tolist()


def _n_beside(n_panels: int) -> int:
    """How many panels stand beside each other: up to three, more where there are many."""
    if n_panels in (0, 1, 2, 4):
        return max(1, min(n_panels, 2))
    return max(3, round((n_panels / 3) ** 0.5))


def _figure_size(n_panels: int, with_maps: bool = False) -> tuple[float, float]:
    """In inches: as wide as a column of text, wider where more than three stand beside another.

    Maps have names on both sides, and a scale of colours.
    """
    n_beside = _n_beside(n_panels)
    panel = max(2.5 if with_maps else 1.85, 5.5 / n_beside)
    height = ceil(n_panels / n_beside) * (0.42 + min(0.75 * panel, 2.6))
    return 0.65 + n_beside * panel, 0.25 + max(height, 1.0)


def _write_title(axes: Any, names: Sequence[str], share: float) -> None:
    """The names of a term's columns on the left, its share of the spread on the right."""
    corner = f"{share:.0%}"
    if 0 < share < 0.005:
        corner = "<1%"
    axes.set_title(corner, loc="right", fontsize=SMALL_SIZE, color=DATA, pad=3)
    room = axes.bbox.width / axes.figure.dpi - text_width(f"{corner}{_AND * len(names)}")
    shown = [shortened(column_name(name), room / len(names), _NAME_SIZE) for name in names]
    axes.set_title(_AND.join(shown), loc="left", fontsize=_NAME_SIZE, pad=3)
