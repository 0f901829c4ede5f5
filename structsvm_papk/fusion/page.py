"""One self-contained page about a fusion; needs jinja2 (the extra `report`)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from structsvm_papk._html import filled
from structsvm_papk.fusion.report import FusionReport

_WIDTH = 100.0  # units of a drawing


def page(report: FusionReport) -> str:
    """The page as a string of HTML: rankings, weights, advice."""
    values = {
        "title": f"Fusion of {len(report.weights)} runs",
        "report": report,
        "level": f"{100 * report.level:g}%",
        "means": _drawn(
            [
                _whisker(ranking.name, ranking.mean, ranking.lower, ranking.upper)
                for ranking in report.rankings
            ]
        ),
        "ahead": _drawn(
            [
                _whisker(ranking.name, ranking.ahead, ranking.ahead_lower, ranking.ahead_upper)
                for ranking in report.rankings[1:]
            ],
            with_zero=True,
        ),
        "largest": max(abs(weight.share) for weight in report.weights) or 1.0,
        "result": report.ranker.result_,
    }
    return filled("fusion/page.html", values)


class _Whisker(NamedTuple):
    """A value and the ends of its interval."""

    name: str
    value: float
    low: float
    high: float


def _whisker(name: str, value: float, lower: float, upper: float) -> _Whisker:
    """A value and its interval; of no length where there is none."""
    if math.isnan(lower):
        return _Whisker(name, value, low=value, high=value)
    return _Whisker(name, value, low=lower, high=upper)


def _drawn(whiskers: list[_Whisker], with_zero: bool = False) -> dict[str, Any]:
    """Places on a drawing from 0 to `_WIDTH`, and what stands at its ends."""
    lowest = min(whisker.low for whisker in whiskers)
    highest = max(whisker.high for whisker in whiskers)
    if with_zero:
        lowest = min(lowest, 0.0)
        highest = max(highest, 0.0)
    width = (highest - lowest) or 1.0

    def place(value: float) -> float:
        return round(_WIDTH * (value - lowest) / width, 2)

    rows = [
        whisker._asdict()
        | {
            "value_at": place(whisker.value),
            "low_at": place(whisker.low),
            "high_at": place(whisker.high),
        }
        for whisker in whiskers
    ]
    return {"rows": rows, "lowest": lowest, "highest": highest, "zero": place(0.0)}
