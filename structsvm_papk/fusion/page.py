"""One self-contained page about a fusion; needs jinja2 (the extra `report`)."""

from __future__ import annotations

import math
from typing import Any

from structsvm_papk._html import filled
from structsvm_papk.fusion.report import FusionReport, Ranking

_WIDTH = 100.0  # units of a drawing


def page(report: FusionReport) -> str:
    """The page as a string of HTML: rankings, weights, advice."""
    values = {
        "title": f"Fusion of {len(report.weights)} runs",
        "report": report,
        "level": f"{100 * report.level:g}%",
        "means": _drawn([_whisker(each, "mean", "lower", "upper") for each in report.rankings]),
        "ahead": _drawn(
            [_whisker(each, "ahead", "ahead_lower", "ahead_upper") for each in report.rankings[1:]],
            zero=True,
        ),
        "largest": max(abs(each.share) for each in report.weights) or 1.0,
        "result": report.ranker.result_,
    }
    return filled("fusion/page.html", values)


def _whisker(ranking: Ranking, value: str, lower: str, upper: str) -> dict[str, Any]:
    at = getattr(ranking, value)
    low, high = (getattr(ranking, name) for name in (lower, upper))
    ends = (at, at) if math.isnan(low) else (low, high)
    return {"name": ranking.name, "value": at, "low": ends[0], "high": ends[1]}


def _drawn(whiskers: list[dict[str, Any]], zero: bool = False) -> dict[str, Any]:
    """Places on a drawing from 0 to `_WIDTH`, and what stands at its ends."""
    lowest = min([each["low"] for each in whiskers] + [0.0] * zero)
    highest = max([each["high"] for each in whiskers] + [0.0] * zero)
    width = (highest - lowest) or 1.0

    def place(value: float) -> float:
        return round(_WIDTH * (value - lowest) / width, 2)

    rows = [
        each | {name + "_at": place(each[name]) for name in ("value", "low", "high")}
        for each in whiskers
    ]
    return {"rows": rows, "lowest": lowest, "highest": highest, "zero": place(0.0)}
