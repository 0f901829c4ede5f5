"""One self-contained page of tables with drawings: of `evaluate`, and of `fuse`.

Nothing is loaded from elsewhere, and nothing runs; needs jinja2 (the extra `report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np

from structsvm_papk._html import filled

_WIDTH = 100.0  # units of a drawing


@dataclass(frozen=True)
class Column:
    """A column of a table; `wide` ones are left out on a phone."""

    name: str
    numbers: bool = True
    wide: bool = False


@dataclass(frozen=True)
class Drawing:
    """A value on an axis that all drawings of a table share: its interval, or a bar from zero.

    `lower` and `upper` are NaN where there is no interval; `marked` ones stand out. On the page
    they lie between 0 and 100.
    """

    value: float
    lower: float = np.nan
    upper: float = np.nan
    is_bar: bool = False
    marked: bool = False
    zero: float | None = None  # where a line is drawn

    def placed(self, lowest: float, highest: float, with_zero: bool) -> Self:
        """The drawing with its places on the axis."""

        def place(value: float) -> float:
            return round(_WIDTH * (value - lowest) / ((highest - lowest) or 1.0), 2)

        value = place(self.value)
        lower = value
        upper = value
        zero = None
        if not np.isnan(self.lower):
            lower = place(self.lower)
        if not np.isnan(self.upper):
            upper = place(self.upper)
        if with_zero:
            zero = place(0.0)
        return replace(self, value=value, lower=lower, upper=upper, zero=zero)


Row: TypeAlias = Sequence[str | Drawing | None]


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and a table; `with_zero` a line of its drawings shows where 0 is."""

    heading: str
    text: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    with_zero: bool = False

    def placed(self) -> Self:
        """The section with its drawings on one axis."""
        drawings = [cell for row in self.rows for cell in row if isinstance(cell, Drawing)]
        if not drawings:
            return self
        with_zero = self.with_zero or any(drawing.is_bar for drawing in drawings)
        ends = [end for each in drawings for end in (each.value, each.lower, each.upper)]
        if with_zero:
            ends.append(0.0)
        lowest = float(np.nanmin(ends))
        highest = float(np.nanmax(ends))
        rows = [
            [
                cell.placed(lowest, highest, with_zero) if isinstance(cell, Drawing) else cell
                for cell in row
            ]
            for row in self.rows
        ]
        return replace(self, rows=rows)


def page(title: str, sections: Sequence[Section], advice: str = "", facts: str = "") -> str:
    """The page as a string of HTML: what to do, what it rests on, and the tables."""
    values = {
        "title": title,
        "advice": advice,
        "facts": facts,
        "sections": [section.placed() for section in sections],
    }
    return filled("plots/page.html", values)
