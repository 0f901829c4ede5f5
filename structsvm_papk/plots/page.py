"""Tables with drawings, of `evaluate` and of `fuse`, and one self-contained page of them.

Commands print the same tables. On the page nothing is loaded from elsewhere, and nothing runs; it
needs jinja2 (the extra `report`), as other pages of the package do, see `filled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from math import ceil
from typing import Self, TypeAlias

import numpy as np

from structsvm_papk.errors import InputError

_WIDTH = 100.0  # units of a drawing
_CHARACTERS = 18  # of the longest bar, in a terminal


@dataclass(frozen=True)
class Column:
    """A column of a table, whose drawings share an axis.

    `wide` ones are left out on a phone; `with_zero` a line shows where 0 is.
    """

    name: str
    numbers: bool = True
    wide: bool = False
    with_zero: bool = False


@dataclass(frozen=True)
class Drawing:
    """A value on the axis of its column: its interval, or a bar from zero.

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

    def __str__(self) -> str:
        """A bar in a character that every terminal has; of an interval nothing."""
        if not self.is_bar or self.zero is None:
            return ""
        length = self.value - self.zero
        return ("#" if length >= 0 else "-") * ceil(_CHARACTERS * abs(length) / _WIDTH)


Cell: TypeAlias = str | Drawing | None
Row: TypeAlias = Sequence[Cell]


@dataclass(frozen=True)
class Section:
    """A heading, a sentence, and a table."""

    heading: str
    text: str
    columns: Sequence[Column]
    rows: Sequence[Row]

    def placed(self) -> Self:
        """The section with the drawings of each column on one axis."""
        in_columns = [
            _on_one_axis(cells, column.with_zero)
            for column, cells in zip(self.columns, zip(*self.rows, strict=True), strict=False)
        ]
        return replace(self, rows=list(zip(*in_columns, strict=True)))


def _on_one_axis(cells: Sequence[Cell], with_zero: bool) -> list[Cell]:
    drawings = {i: cell for i, cell in enumerate(cells) if isinstance(cell, Drawing)}
    if not drawings:
        return list(cells)
    with_zero = with_zero or any(each.is_bar for each in drawings.values())
    ends = [end for each in drawings.values() for end in (each.value, each.lower, each.upper)]
    if with_zero:
        ends.append(0.0)
    lowest = float(np.nanmin(ends))
    highest = float(np.nanmax(ends))
    placed = {i: each.placed(lowest, highest, with_zero) for i, each in drawings.items()}
    return [placed.get(i, cell) for i, cell in enumerate(cells)]


def page(title: str, sections: Sequence[Section], advice: str = "", facts: str = "") -> str:
    """The page as a string of HTML: what to do, what it rests on, and the tables."""
    values = {
        "title": title,
        "advice": advice,
        "facts": facts,
        "sections": [section.placed() for section in sections],
    }
    return filled("plots/page.html", values)


# --- templates ------------------------------------------------------------------------------------


def check_templates() -> None:
    """Refuse a page that could not be made, before the work starts: jinja2 is missing."""
    if find_spec("jinja2") is None:
        raise InputError("HTML pages need jinja2; pip install 'structsvm-papk[report]'")


def filled(
    template: str,
    values: Mapping[str, object],
    filters: Mapping[str, Callable[..., object]] | None = None,
) -> str:
    """A template of the package with values put in; text is escaped, also inside of `tojson`."""
    check_templates()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    page = Environment(
        loader=PackageLoader("structsvm_papk", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    page.filters.update(filters or {})
    return page.get_template(template).render(values)
